package redislua

import (
	"testing"

	"seckill/application/port"
	"seckill/test/contract"
)

// miniredis knows little of INFO and no replication: what it does not say is unknown, never right.
func TestInspectorContractOnMiniredis(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{
		Part: port.PartGate,
		Here: func(tb testing.TB) port.Inspector {
			client := miniClient(tb)
			return NewInspector(client, ClientConfig{}, contract.ShiftedClock{})
		},
		Away: awayInspector,
	})
}

func awayInspector(tb testing.TB) port.Inspector {
	cfg := ClientConfig{Addrs: []string{"127.0.0.1:1"}, Password: "hidden-word"}
	client := NewClient(cfg)
	tb.Cleanup(func() { _ = client.Close() })
	return NewInspector(client, cfg, contract.ShiftedClock{})
}

func TestInspectionReadsInfo(t *testing.T) {
	t.Parallel()
	n := readingsOf("n", infoFields("# Server\r\nredis_version:7.0.15\r\nmaxmemory:100\r\nused_memory:40\r\n"))
	n.version()
	if r := n.Found[0]; !r.Known || r.Number != 7 || r.Text != "Redis 7.0.15" {
		t.Errorf("%+v", r)
	}
	if free, known := n.free(); free != 60 || !known {
		t.Errorf("%d %v free", free, known)
	}
	n.info["maxmemory"] = "0"
	if _, known := n.free(); known {
		t.Error("no limit and no machine's memory, yet room is known")
	}
	n.info["total_system_memory"] = "1000"
	if free, _ := n.free(); free != 960 {
		t.Errorf("%d free", free)
	}
	n.info = infoFields("redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n")
	n.version()
	if r := n.Found[1]; r.Number != 8 || r.Text != "Valkey 8.0.1" {
		t.Errorf("%+v", r)
	}
}
