package echohttp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// discard is a ResponseWriter that costs nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkBarePurchase is one purchase through Echo, guard, token and JSON, without a connection.
func BenchmarkBarePurchase(b *testing.B) {
	f := newFixture(b)
	door := Bare(Config{Tokens: f.tokens, MaxInFlight: 1 << 20, RequestTimeout: 10 * time.Second})
	tokens := make([]string, 1024)
	for i := range tokens {
		tokens[i] = "Bearer " + f.token(b, fmt.Sprint("buyer-", i), "order:create", "order:read")
	}
	body := strings.NewReader(`{"quantity":1}`)
	r := httptest.NewRequest("POST", "/api/v1/products/p1/orders", io.NopCloser(body))
	r.ContentLength = 14
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k1")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = body.Seek(0, io.SeekStart)
		r.Header["Authorization"] = []string{tokens[i%len(tokens)]}
		door.ServeHTTP(&discard{http.Header{}}, r)
	}
}

func BenchmarkVerifyToken(b *testing.B) {
	f := newFixture(b)
	token := f.token(b, "alice", "order:create", "order:read")
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("known=%t", known), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !known {
					f.tokens.verified.Remove(token)
				}
				if _, err := f.tokens.Verify(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
