//go:build stack

package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/fault/campaign"
	"seckill/test/harness"
	"seckill/test/shop"
)

const l6 = "the broker is lost, stands still, or loses halves"

// leaveRoom of a full disk is less than the tenth at which the broker takes no more, and room enough for
// the files that it has mapped already.
const leaveRoom = 64 << 20

// L6: the broker is killed, stands still, comes back before or after others, and asks late; one
// shop through fault after fault.
func TestL6Broker(t *testing.T) {
	t.Parallel()
	s, servers := ownParts(t, harness.Parts{Redis: true, RocketMQ: true}, t.TempDir())
	s.Start()
	for range campaign.Size(t, 1, 20) {
		t.Run("killed", func(t *testing.T) {
			layer := campaign.Open(t, "L6", l6)
			sellThrough(t, s.For(t), layer, func() {
				layer.Fault("broker kill -9")
				killAndStart(t, servers.Broker)
			})
		})
	}
	for range campaign.Size(t, 1, 10) {
		t.Run("stands_still", func(t *testing.T) {
			layer := campaign.Open(t, "L6", l6)
			long := time.Duration(campaign.Size(t, 5, 15)) * time.Second
			sellThrough(t, s.For(t), layer, func() {
				layer.Fault("broker stands still for " + long.String())
				must(t, frozen(servers.Broker, long)())
			})
		})
	}
	t.Run("F13_brokers_come_back", func(t *testing.T) { f13BrokersComeBack(t, s.For(t), servers) })
	// The field cases of the layer; a usual run plays them elsewhere.
	for _, c := range []struct {
		name  string
		times int
		play  func(*testing.T, *shop.Shop, *harness.Stack)
	}{
		{"late commit", 100, f02LateCommit},
		{"status flush timeout", 10, f06NilError},
		{"halves thrown away after the last check", 5, f04DiscardedHalves},
	} {
		for range campaign.Size(t, 0, c.times) {
			t.Run(c.name, func(t *testing.T) {
				campaign.Open(t, "L6", l6).Fault(c.name)
				c.play(t, s.For(t), servers)
			})
		}
	}
}

// L6: the power of the broker is cut, with and without a flush at each message. What the broker forgets is
// still open in the gate, so nothing is lost either way.
func TestL6PowerCut(t *testing.T) {
	t.Parallel()
	disk := harness.NewDisk(t)
	s, servers := ownParts(t, harness.Parts{RocketMQ: true}, disk.Dir)
	s.Start()
	layer := campaign.Open(t, "L6", l6)
	for _, flush := range []string{"SYNC_FLUSH", "ASYNC_FLUSH"} {
		setBroker(t, servers, "flushDiskType", flush) // from its next start on
		ctx, cancel := context.WithTimeout(context.Background(), startsWithin)
		must(t, servers.Broker.Restart(ctx))
		cancel()
		for range campaign.Size(t, 1, 10) {
			must(t, disk.Flush()) // the topic was made long ago
			sellThrough(t, s, layer, func() {
				layer.Fault("broker power cut, " + flush)
				cutPower(t, disk, servers.NameServer, servers.Broker)
			})
		}
	}
}

// L6: the broker's disk is full. Buyers hear that nothing is known yet, or that nobody new is taken; the log
// says why; once there is room, all is finished.
func TestL6DiskFull(t *testing.T) {
	t.Parallel()
	disk := harness.NewDisk(t)
	s, _ := ownParts(t, harness.Parts{RocketMQ: true}, disk.Dir)
	s.Start()
	layer := campaign.Open(t, "L6", l6)
	side := onSale(t, s, 1000, 0)
	sellThrough(t, s, layer, func() {
		layer.Fault("broker's disk full")
		ballast := fillUp(t, disk.Dir)
		n := 0
		shop.Eventually(t, startsWithin, "the broker takes no message", func() (bool, string) {
			n++
			a := s.Buy(context.Background(), side, fmt.Sprintf("full%d", n), "t", 1)
			if !a.Accepted() && a.Code() != domain.CodeOutcomeUnknown && a.Code() != domain.CodeBusy {
				t.Errorf("while the disk is full: %v", a)
			}
			return strings.Contains(s.Log(), "disk is full") && !a.Accepted(), a.String()
		})
		must(t, os.Remove(ballast))
		shop.Eventually(t, startsWithin, "the broker has seen that there is room", func() (bool, string) {
			n++
			a := s.Buy(context.Background(), side, fmt.Sprintf("full%d", n), "t", 1)
			return a.Accepted(), a.String()
		})
	})
	s.HoldsEventually(side)
}

// fillUp takes nearly all room that is left in dir.
func fillUp(t *testing.T, dir string) (ballast string) {
	t.Helper()
	var fs syscall.Statfs_t
	must(t, syscall.Statfs(dir, &fs))
	room := int64(fs.Bavail) * fs.Bsize
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	must(t, err)
	defer func() { _ = f.Close() }()
	must(t, syscall.Fallocate(int(f.Fd()), 0, 0, room-leaveRoom))
	return ballast
}
