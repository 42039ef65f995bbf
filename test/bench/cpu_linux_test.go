package main

import (
	"net"
	"os"
	"testing"
)

func TestTheProcessBehindAnAddressIsFound(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	pid, err := listenerPID(listener.Addr().String())
	if err != nil || pid != os.Getpid() {
		t.Fatalf("%d, %v", pid, err)
	}
	m := meter{"load": pid, "nobody": 1 << 30}
	before := m.read()
	spent := m.since(before)
	if seconds, ok := spent["load"]; !ok || seconds < 0 || len(spent) != 1 {
		t.Error(spent)
	}
	if resident := residentBytes(pid); resident < 1<<20 {
		t.Error(resident)
	}
}
