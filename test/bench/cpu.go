package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// clockTick is the unit of times in /proc/PID/stat: 1/100 s on every Linux that Go runs on.
const clockTick = 100.0

// cpuSeconds is what a process has spent so far, user and system, its ended threads included.
func cpuSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return 0, err
	}
	return parseCPU(stat)
}

// parseCPU reads utime and stime. The name before them is in brackets and may hold anything, brackets and spaces too.
func parseCPU(stat []byte) (float64, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, errors.New("stat holds no name")
	}
	fields := bytes.Fields(stat[end+1:]) // the first is the third of the line
	if len(fields) < 13 {
		return 0, errors.New("stat is cut short")
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return float64(user+system) / clockTick, errors.Join(err1, err2)
}

// residentBytes of a process; 0 where they cannot be read.
func residentBytes(pid int) int64 { return procKibibytes(procPath(pid, "status"), "VmRSS") }

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// procField reads what follows a name and a colon; empty where it cannot be read.
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func procKibibytes(path, name string) int64 {
	return procNumber(strings.TrimSuffix(procField(path, name), " kB")) * 1024
}

func procNumber(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// meter reads the CPU of named processes.
type meter map[string]int // name → pid

// read gives what each has spent; one that cannot be read is left out.
func (m meter) read() map[string]float64 {
	spent := map[string]float64{}
	for name, pid := range m {
		if seconds, err := cpuSeconds(pid); err == nil {
			spent[name] = seconds
		}
	}
	return spent
}

// since is what was spent after an earlier reading, by those that were read both times.
func (m meter) since(before map[string]float64) map[string]float64 {
	spent := m.read()
	for name := range spent {
		if was, ok := before[name]; ok {
			spent[name] -= was
		} else {
			delete(spent, name)
		}
	}
	return spent
}

// sum is what the named ones have spent; all must have been read.
func sum(spent map[string]float64, names ...string) (float64, bool) {
	total := 0.0
	for _, name := range names {
		seconds, ok := spent[name]
		if !ok {
			return 0, false
		}
		total += seconds
	}
	return total, true
}

// listenerPID finds the process that listens on host:port of this machine: whoever started the servers only says where
// they are.
func listenerPID(addr string) (int, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	var inodes []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err == nil {
			inodes = append(inodes, listeningInodes(text, port)...)
		}
	}
	if len(inodes) == 0 {
		return 0, fmt.Errorf("nothing on this machine listens on %s", addr)
	}
	sockets, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, err
	}
	for _, path := range sockets {
		link, err := os.Readlink(path)
		if err == nil && slices.Contains(inodes, strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")) {
			return strconv.Atoi(strings.Split(path, "/")[2])
		}
	}
	return 0, fmt.Errorf("the process that listens on %s belongs to somebody else", addr)
}

// listeningInodes finds the sockets that listen on a port in a table like /proc/net/tcp.
func listeningInodes(table []byte, port string) []string {
	const listening = "0A"
	var inodes []string
	for line := range bytes.Lines(table) {
		fields := bytes.Fields(line)
		if len(fields) < 10 || string(fields[3]) != listening {
			continue
		}
		_, hexPort, _ := strings.Cut(string(fields[1]), ":")
		raw, err := hex.DecodeString(hexPort)
		if err == nil && len(raw) == 2 && strconv.Itoa(int(binary.BigEndian.Uint16(raw))) == port {
			inodes = append(inodes, string(fields[9]))
		}
	}
	return inodes
}
