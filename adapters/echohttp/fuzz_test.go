package echohttp

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/application"
	"seckill/domain"
)

// Whatever request line, headers and body come over the wire, no door answers 5xx, and what reaches the
// use case has the ids and the quantity of a purchase that may be.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"POST /api/v1/products/p1/orders HTTP/1.1\r\nIdempotency-Key: k1\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"quantity\":1}",
		"GET /api/v1/products/a%3Ab/orders/t%2f1?x=%zz HTTP/1.1\r\n\r\n", "DELETE /api/v1/products/../orders/. HTTP/1.0\r\n\r\n",
		"GET //healthz HTTP/1.1\r\n\r\n", "HEAD /openapi.yaml HTTP/1.1\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n",
		"GET /admin/v1/trace?productId=p&uid=u&token=t HTTP/1.1\r\n\r\n", "GET /admin/v1/parked?limit=-1&cursor=%00 HTTP/1.1\r\n\r\n",
		"PUT /admin/v1/products/p1 HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{\"total\":10}\r\n0\r\n\r\n",
		"POST /admin/v1/reconciliations HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{\"mode\":\"dry-run\"}",
	} {
		f.Add(s)
	}
	fix := newFixture(f)
	token := fix.token(f, "alice", allScopes...)
	f.Fuzz(func(t *testing.T, raw string) {
		fix.deduct = func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
			if domain.CheckQuantity("quantity", c.Quantity()) != nil || c.Key().User() != "alice" || !strings.Contains(raw, "quantity") {
				t.Errorf("%q bought %d of %s", raw, c.Quantity(), c.Key())
			}
			return application.Receipt{Order: application.OrderView{Key: c.Key(), Quantity: c.Quantity(), Status: "pending"}}, nil
		}
		for _, door := range []*Door{fix.buyers, fix.operators} {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
			if err != nil {
				return // net/http answers it
			}
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			door.Handler().ServeHTTP(w, r.WithContext(t.Context()))
			if w.Code >= 500 {
				t.Errorf("%q: %d %s", raw, w.Code, w.Body)
			}
		}
	})
}

// A token counts only if our key signed exactly these bytes, by HS256, for a subject that is an id.
func FuzzToken(f *testing.F) {
	tokens, err := NewTokens([]byte(testKey), "shop", "seckill")
	if err != nil {
		f.Fatal(err)
	}
	good, err := tokens.Issue("alice", []string{"order:create"}, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	claims := jwt.MapClaims{"sub": "a b", "iss": "shop", "aud": "seckill", "exp": time.Now().Add(time.Hour).Unix()}
	for _, s := range []string{good, good + "=", good + ".", strings.ToUpper(good), "", ".", "..", "a.b.c", good[:len(good)-1],
		signed(f, jwt.SigningMethodHS256, []byte(testKey), claims), signed(f, jwt.SigningMethodHS512, []byte(testKey), claims),
		signed(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		who, err := tokens.Verify(token)
		if err != nil {
			if strings.Contains(err.Error(), token) && token != "" && len(token) > len("the token is not valid") {
				t.Errorf("the error tells %q", token)
			}
			return
		}
		at := strings.LastIndexByte(token, '.')
		mac := hmac.New(sha256.New, []byte(testKey))
		mac.Write([]byte(token[:max(at, 0)]))
		if token[at+1:] != base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) || domain.CheckID("sub", who.Subject) != nil {
			t.Errorf("%q counts, for %q", token, who.Subject)
		}
	})
}
