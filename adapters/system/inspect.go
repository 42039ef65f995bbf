package system

import (
	"context"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"seckill/application/port"
)

// Settings are what an inspector looks at of the service's own.
type Settings struct {
	SigningKey []byte   // not kept in any reading; empty where this process makes one for itself
	Addresses  []string // host:port of what is spoken to, or listened on, without TLS
}

// Inspector looks at the service's own settings and limits.
type Inspector struct{ settings Settings }

var _ port.Inspector = Inspector{}

// NewInspector makes an inspector of these settings.
func NewInspector(settings Settings) Inspector { return Inspector{settings} }

// Inspect implements port.Inspector.
func (i Inspector) Inspect(context.Context) []port.Reading {
	host, _ := os.Hostname() // only a name
	found := []port.Reading{{Name: port.ReadSigningKey, Known: true, Text: judgeKey(i.settings.SigningKey)},
		{Name: port.ReadTransport, Known: true, Text: transport(i.settings.Addresses)}, openFiles()}
	for n := range found {
		found[n].Part, found[n].Node = port.PartService, host
	}
	return found
}

// samples are what keys in examples are made of.
var samples = []string{"changeme", "change-me", "change_me", "secret", "example", "password", "0123456789", "sample"}

const (
	keyMin      = 32
	keyLettered = 8 // different bytes that a random key of that length has without fail
)

// judgeKey says "fine" or what is wrong, without the key.
func judgeKey(key []byte) string {
	if len(key) == 0 {
		return "fine" // made from a random source at the start
	}
	different := slices.Compact(slices.Sorted(slices.Values(key)))
	text := strings.ToLower(string(key))
	switch {
	case len(key) < keyMin:
		return "too short"
	case len(different) < keyLettered:
		return "a few characters, repeated"
	case slices.ContainsFunc(samples, func(s string) bool { return strings.Contains(text, s) }):
		return "looks like a sample from a document"
	}
	return "fine"
}

// transport says "loopback", or which addresses go over a network in the clear.
func transport(addresses []string) string {
	var open []string
	for _, addr := range addresses {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		ip := net.ParseIP(host)
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			open = append(open, addr)
		}
	}
	if len(open) == 0 {
		return "loopback"
	}
	return "without TLS: " + strings.Join(open, ", ")
}

func openFiles() port.Reading {
	r := port.Reading{Name: port.ReadOpenFiles}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		r.Detail = err.Error()
		return r
	}
	r.Known, r.Number = true, int64(min(limit.Cur, math.MaxInt64))
	return r
}
