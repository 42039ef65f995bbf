package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below 32768, where Linux serves no outgoing connections, and
// leave room above for a cluster node's second port (port + 10000).
const (
	portMin   = 10_000
	portMax   = 22_000
	portTries = 1_000
)

var (
	portsMu    sync.Mutex
	portsGiven = map[int]bool{} // of this process; a few dozen
)

// freePort finds a port that is free together with its neighbours at the given
// offsets.
func freePort(offsets ...int) (int, error) {
	portsMu.Lock()
	defer portsMu.Unlock()
	for range portTries {
		port := portMin + rand.IntN(portMax-portMin)
		all := []int{port}
		for _, offset := range offsets {
			all = append(all, port+offset)
		}
		if !allFree(all) {
			continue
		}
		for _, p := range all {
			portsGiven[p] = true
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d", portMin, portMax)
}

func allFree(ports []int) bool {
	for _, port := range ports {
		if portsGiven[port] {
			return false
		}
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(port)) // on all addresses, as the broker does for its replicas
		if err != nil {
			return false
		}
		if listener.Close() != nil {
			return false
		}
	}
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
