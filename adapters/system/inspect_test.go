package system

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestASampleKeyIsFound(t *testing.T) {
	t.Parallel()
	for key, fine := range map[string]bool{
		"":                                         true, // made at the start
		"short":                                    false,
		strings.Repeat("a", 64):                    false,
		strings.Repeat("ab", 32):                   false,
		"changeme-changeme-changeme-changeme1":     false,
		"0123456789abcdef0123456789abcdef":         false,
		"this-is-my-secret-key-for-the-shop-x":     false,
		"a key of a test's shop, 32 bytes or more": true,
	} {
		if got := judgeKey([]byte(key)); got == "fine" != fine {
			t.Errorf("%q is %s", key, got)
		}
	}
	source := rand.NewChaCha8([32]byte{1}) // the same keys every time
	for range 1000 {
		random := make([]byte, 32)
		_, _ = source.Read(random)
		if got := judgeKey([]byte(base64.StdEncoding.EncodeToString(random))); got != "fine" {
			t.Errorf("a random key is %s", got)
		}
	}
}

func TestWhatGoesOverANetworkIsNamed(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[string][]string{
		"loopback":                      {"127.0.0.1:80", "localhost:1", "[::1]:2"},
		"without TLS: :8080":            {":8080", "127.0.0.1:1"},
		"without TLS: db:1, 10.0.0.1:2": {"db:1", "10.0.0.1:2"},
	} {
		if got := fmt.Sprint(transport(addresses)); got != want {
			t.Errorf("%v: %q, want %q", addresses, got, want)
		}
	}
}
