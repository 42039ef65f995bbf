//go:build stack

package fault

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"seckill/test/shop"
)

// F17: an id too long for a message, or with the broker's own separators in it, is refused before any
// stock is taken; the longest that is allowed goes through, in batches larger than one message may be.
func f17IDsOfEveryLength(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 10_000, 0)
	tokens := []string{strings.Repeat("a", 65), strings.Repeat("a", 200), strings.Repeat("a", 40<<10), strings.Repeat("a", 5<<20),
		"a b", "a\x01TAGS\x01x", "a\x02PGROUP\x01y", "a\tb", "\u00e9"}
	changesNothing(t, s, product, func() {
		var messages []string
		for _, token := range tokens {
			switch status := buyRaw(t, s, product, token); status {
			case http.StatusBadRequest, http.StatusRequestHeaderFieldsTooLarge:
			default:
				t.Errorf("a token of %d bytes, %.20q: %d", len(token), token, status)
			}
			quoted, err := json.Marshal(token)
			if err != nil {
				t.Fatal(err)
			}
			if len(token) < 1<<20 { // the producer itself refuses what is above 4 MB
				messages = append(messages, fmt.Sprintf(`{"productId":%q,"uid":"alice","token":%s,"quantity":1}`, product, quoted))
			}
		}
		parked(t, s, product, messages...)
	})

	crowd := make([]*purchase, tenth(t, 3000))
	for i := range crowd {
		crowd[i] = &purchase{product: product, quantity: 1,
			user: fmt.Sprintf("u%063d", i), token: fmt.Sprintf("t%063d", i)}
	}
	atOnce(s, crowd)
	for _, p := range crowd {
		converge(t, s, p)
	}
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
}

// buyRaw is a purchase whose token no HTTP client would send; the status, or 400 where the door shut in
// the middle of the header.
func buyRaw(t *testing.T, s *shop.Shop, product, token string) int {
	t.Helper()
	door, err := url.Parse(s.Buyers())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", door.Host, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /api/v1/products/%s/orders HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 14\r\nIdempotency-Key: %s\r\n\r\n"+`{"quantity":1}`,
			product, door.Host, s.Token("alice"), token)
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if len(token) > 1<<20 {
			return http.StatusBadRequest
		}
		t.Fatalf("a token of %d bytes, %.20q: %v", len(token), token, err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
