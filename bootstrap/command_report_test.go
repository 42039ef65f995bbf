package bootstrap

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"seckill/application"
)

// The operators' door refuses an empty product: all products are asked about by leaving it out.
func TestVerifyAsksForAllProductsOrForOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		query string
	}{{nil, ""}, {[]string{"--product", "a:b"}, "productId=a%3Ab"}} {
		door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/admin/v1/verification" && r.URL.RawQuery != c.query {
				t.Errorf("asked with %q, not %q", r.URL.RawQuery, c.query)
			}
			_ = json.NewEncoder(w).Encode(application.Verification{Drained: true, Holds: true})
		}))
		defer door.Close()
		var out, fault bytes.Buffer
		args := append([]string{"verify", "--data", t.TempDir(), "--admin", door.URL, "--token", "t"}, c.args...)
		if code := Main(args, &out, &fault, "test"); code != ExitFine {
			t.Errorf("%v: exit code %d: %s", args, code, fault.String())
		}
	}
}
