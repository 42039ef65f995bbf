package bootstrap

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"seckill/adapters/doorclient"
	"seckill/application"
	"seckill/domain"
)

func TestWhatADoorAnswersIsAViewOrAnErrorOfItsCode(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status int
		body   string
		code   domain.Code // "" with broken: an error that has none of ours
		broken bool
	}{
		"a view":              {status: 200, body: `{"productId":"p","drift":null}`},
		"a problem":           {status: 404, body: `{"code":"product-not-found","detail":"no p"}`, code: domain.CodeProductNotFound},
		"a problem of no one": {status: 502, body: `<html>`, broken: true},
		"an empty problem":    {status: 500, broken: true},
		"no JSON":             {status: 200, body: `<html>`, broken: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer secret" || r.URL.EscapedPath() != "/admin/v1/products/p%2F1" {
					t.Errorf("asked for %s as %q", r.URL.EscapedPath(), r.Header.Get("Authorization"))
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			client, err := newDoorClient(s.URL+"/", "secret")
			if err != nil {
				t.Fatal(err)
			}
			v, err := readAnswer[application.StockView](client.ShowStock(t.Context(), "p/1"))
			switch {
			case c.code != "" && domain.CodeOf(err) != c.code, c.broken && err == nil:
				t.Errorf("got %v, want %q", err, c.code)
			case c.code == "" && !c.broken && (err != nil || v.Product != "p" || v.Drift != nil):
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

func TestATornConnectionIsUnavailableAndNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"status":"ok"}`) // leaves a connection that is kept, on which net/http would ask again
			return
		}
		posts.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	client, err := newDoorClient(s.URL, "secret")
	if err != nil || !client.answers(t.Context()) {
		t.Fatal(err, "no answer")
	}
	_, err = readAnswer[application.Receipt](client.CreateOrder(t.Context(), "p", &doorclient.CreateOrderParams{IdempotencyKey: "k"},
		doorclient.Purchase{Quantity: 1}))
	if domain.CodeOf(err) != domain.CodeUnavailable || !strings.Contains(err.Error(), s.URL) {
		t.Errorf("got %v", err)
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestAnAddressThatIsNoDoorIsAMistakeOfUsage(t *testing.T) {
	t.Parallel()
	_, err := newDoorClient("127.0.0.1:8081", "secret")
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != ExitUsage {
		t.Errorf("got %v", err)
	}
}
