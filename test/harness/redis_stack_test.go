//go:build stack

package harness_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redislua"
	"seckill/test/harness"
)

func own(t *testing.T, parts harness.Parts, dir string) *harness.Stack {
	t.Helper()
	stack, err := harness.Start(t.Context(), parts, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return stack
}

// writes tries until the client can write again.
func writes(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := client.Set(ctx, "key", "value", 0).Err()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no server takes writes: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestSentinelsPromoteAReplica(t *testing.T) {
	t.Parallel()
	stack := own(t, harness.Parts{Redis: true, Replicas: 1, Sentinels: 1}, t.TempDir())
	client := redislua.NewClient(redislua.ClientConfig{Addrs: stack.SentinelAddrs(), Master: harness.SentinelMaster})
	t.Cleanup(func() { _ = client.Close() })
	writes(t, client)
	if err := stack.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	writes(t, client)
	if err := stack.Redis.Start(t.Context()); err != nil { // comes back as a replica
		t.Fatal(err)
	}
}

func TestAClusterPromotesAReplica(t *testing.T) {
	t.Parallel()
	stack := own(t, harness.Parts{Cluster: true, ClusterReplicas: true}, t.TempDir())
	client := redislua.NewClient(redislua.ClientConfig{Addrs: stack.ClusterAddrs()})
	t.Cleanup(func() { _ = client.Close() })
	writes(t, client)
	for _, server := range stack.Cluster {
		if master, err := client.(*redis.ClusterClient).MasterForKey(t.Context(), "key"); err == nil && master.Options().Addr == server.Addr {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	writes(t, client)
}

func TestAPowerCutLosesWhatWasNotFlushed(t *testing.T) {
	t.Parallel()
	disk := harness.NewDisk(t)
	stack := own(t, harness.Parts{Redis: true}, disk.Dir)
	client := redis.NewClient(&redis.Options{Addr: stack.Redis.Addr})
	t.Cleanup(func() { _ = client.Close() })
	for _, setting := range [][2]string{{"appendfsync", "always"}, {"appendfsync", "no"}} {
		if err := client.ConfigSet(t.Context(), setting[0], setting[1]).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.Set(t.Context(), "under "+setting[1], "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(disk.Dir, "plain"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := disk.Cut(stack.Redis); err != nil {
		t.Fatal(err)
	}
	if err := stack.Redis.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept := client.Get(t.Context(), "under always").Val(); kept != "value" {
		t.Errorf("what was flushed is %q", kept)
	}
	if lost := client.Get(t.Context(), "under no").Val(); lost != "" {
		t.Errorf("what was not flushed is %q", lost)
	}
	if text, err := os.ReadFile(filepath.Join(disk.Dir, "plain")); err == nil && len(text) > 0 {
		t.Errorf("a file that was not flushed holds %q", text)
	}
	if out, err := exec.Command("mountpoint", "-q", disk.Dir).CombinedOutput(); err != nil {
		t.Errorf("not mounted: %v %s", err, out)
	}
}
