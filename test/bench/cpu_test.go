package main

import (
	"slices"
	"testing"
)

func TestCPUSecondsAreUserAndSystem(t *testing.T) {
	t.Parallel()
	const after = " S 1 2 3 0 -1 4194560 9 8 7 6 1234 66 5 4 20 0 17 0 100 200 300"
	for _, name := range []string{"(seckill)", "(a b)", "(tricky) R 1 (2)"} {
		got, err := parseCPU([]byte("4711 " + name + after))
		if err != nil || got != 13 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, torn := range []string{"", "4711 (x", "4711 (x) S 1 2", "4711 (x) S 1 2 3 0 -1 4 9 8 7 6 many 66 5"} {
		if _, err := parseCPU([]byte(torn)); err == nil {
			t.Errorf("%q was read", torn)
		}
	}
}

func TestASumNeedsEveryProcess(t *testing.T) {
	t.Parallel()
	spent := map[string]float64{"service": 1, "redis": 2, "broker": 4}
	if total, ok := sum(spent, "service", "broker"); !ok || total != 5 {
		t.Error(total, ok)
	}
	if _, ok := sum(spent, "service", "mariadb"); ok {
		t.Error("what was not read was counted as nothing")
	}
}

func TestListenersAreFoundInTheKernelsTable(t *testing.T) {
	t.Parallel()
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0
   1: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0
`
	if got := listeningInodes([]byte(table), "8080"); !slices.Equal(got, []string{"111"}) {
		t.Error(got)
	}
}
