package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// Redis is a miniredis in this process, on a loopback port of its own.
type Redis struct {
	server   *miniredis.Miniredis
	identity string
}

// StartRedis starts an empty one.
func StartRedis() (*Redis, error) {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	var id [20]byte
	if _, err := rand.Read(id[:]); err != nil {
		server.Close()
		return nil, fmt.Errorf("name the embedded redis: %w", err)
	}
	return &Redis{server: server, identity: hex.EncodeToString(id[:])}, nil
}

// Addr is its host and port.
func (r *Redis) Addr() string { return r.server.Addr() }

// Identity is another one at every start, as a server's replication history would be: what an
// earlier process wrote is gone. miniredis knows no INFO replication, so the gate is handed it.
func (r *Redis) Identity() string { return r.identity }

// Close stops it and forgets what it held.
func (r *Redis) Close() { r.server.Close() }
