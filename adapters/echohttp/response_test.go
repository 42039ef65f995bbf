package echohttp

import (
	stdjson "encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"seckill/domain"
)

// What is spelled out for speed is what encoders write.
func TestSpelledOutAnswersAreThoseOfAnEncoder(t *testing.T) {
	t.Parallel()
	left := int64(0)
	for _, o := range []orderBody{{}, {ProductID: "p:1@x", UserID: "u", Token: strings.Repeat("t", 64), Quantity: domain.QuantityMax, Status: "pending",
		Remaining: &left, Repeat: true, CreatedAt: stamp(time.UnixMilli(1764633600123))}, {ProductID: "p", Status: "confirmed", Remaining: new(int64(1 << 40))}} {
		sameJSON(t, string(o.appendTo(nil)), o)
	}
	for code, a := range answers {
		p := problem{Type: "/problems/" + string(code), Title: a.title, Status: a.status, Instance: "r1a2b3c4d5e6-z", Code: code, Retryable: a.retryable}
		for _, detail := range []string{"", "3 left", "a \"quoted\" \\ text\twith\u2028é"} {
			for _, faults := range [][]fault{nil, {{"body", "/quantity", "must be \"there\""}, {"header", "Idempotency-Key", "é"}}} {
				p.Detail, p.Errors = detail, faults
				out, err := p.appendTo(nil)
				if err != nil {
					t.Fatal(err)
				}
				sameJSON(t, string(out), p)
			}
		}
	}
	if _, err := (problem{Detail: "\xff"}).appendTo(nil); err == nil {
		t.Error("wrote what is not UTF-8")
	}
}

func sameJSON(t *testing.T, got string, body any) {
	t.Helper()
	want, err := json.Marshal(body)
	if err != nil || got != string(want) {
		t.Errorf("wrote %s, want %s (%v)", got, want, err)
	}
	var escaped strings.Builder
	standard := stdjson.NewEncoder(&escaped)
	standard.SetEscapeHTML(false)
	if err := standard.Encode(body); err != nil {
		t.Fatal(err)
	}
	if plain := strings.TrimSpace(strings.ReplaceAll(escaped.String(), `\u2028`, "\u2028")); got != plain { // which encoding/json escapes, and need not
		t.Errorf("wrote %s, encoding/json %s", got, plain)
	}
}

// scanQuantity never reads what the parser refuses, nor another number.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{`{"quantity":1}`, `{"quantity": 12}`, `{"quantity":0}`, `{"quantity":01}`, `{"quantity":1 }`, `{"quantity":1}}`, `{"quantity":-1}`,
		`{"quantity":1234567}`, `{"quantity":12345678}`, `{"quantity":}`, `{"quantity":1,"quantity":2}`, `{"quantity":1}{"quantity":1}`, ``, `{"quantity":1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		n, read := scanQuantity([]byte(body))
		if !read {
			return
		}
		var parsed struct {
			Quantity *int64 `json:"quantity"`
		}
		if err := decode([]byte(body), &parsed); err != nil || parsed.Quantity == nil || *parsed.Quantity != n {
			t.Errorf("%q was read as %d, the parser has %v (%v)", body, n, parsed.Quantity, err)
		}
	})
}
