package redislua

import (
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ClientConfig names the servers: one address is a single server, several are a cluster, and
// with a master's name they are sentinels.
type ClientConfig struct {
	Addrs    []string
	Master   string
	Username string
	Password string

	SentinelUsername string // of the sentinels themselves
	SentinelPassword string

	TLS *tls.Config // nil: plain
}

// clusterLook is how often a cluster's masters are looked up. The driver does not look by itself when a
// master does not answer, so that a promoted replica would be found after a minute.
const clusterLook = time.Second

// Options are the driver's settings that the gate relies on.
func Options(cfg ClientConfig) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:      cfg.Addrs,
		MasterName: cfg.Master,
		Username:   cfg.Username,
		Password:   cfg.Password,

		SentinelUsername: cfg.SentinelUsername,
		SentinelPassword: cfg.SentinelPassword,

		TLSConfig: cfg.TLS,

		// Redis 7.0's access lists cannot allow CLIENT SETINFO.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		MaxRetries:            -1, // this package repeats by itself, see doc.go
		DialerRetries:         1,
		DialTimeout:           time.Second,
		ReadTimeout:           2 * time.Second,
		WriteTimeout:          2 * time.Second,
		PoolTimeout:           2 * time.Second,
		ContextTimeoutEnabled: true,
	}
}

// NewClient makes a client; it connects when it is first used.
func NewClient(cfg ClientConfig) redis.UniversalClient {
	options := Options(cfg)
	if len(cfg.Addrs) > 1 && cfg.Master == "" {
		cluster := options.Cluster()
		cluster.ClusterStateReloadInterval = clusterLook
		return redis.NewClusterClient(cluster)
	}
	return redis.NewUniversalClient(options)
}
