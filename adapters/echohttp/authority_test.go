package echohttp

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func signed(t testing.TB, method jwt.SigningMethod, key any, c jwt.MapClaims) string {
	t.Helper()
	s, err := jwt.NewWithClaims(method, c).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func goodClaims() jwt.MapClaims {
	return jwt.MapClaims{"sub": "alice", "iss": "shop", "aud": "seckill", "scope": strings.Join(allScopes, " "),
		"exp": time.Now().Add(time.Hour).Unix()}
}

func with(change map[string]any) jwt.MapClaims {
	c := goodClaims()
	for k, v := range change {
		if v == nil {
			delete(c, k)
		} else {
			c[k] = v
		}
	}
	return c
}

// badTokens all name alice and every scope.
func badTokens(t testing.TB) map[string]string {
	key := []byte(testKey)
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	good := signed(t, jwt.SigningMethodHS256, key, goodClaims())
	body := strings.Split(good, ".")
	hs := func(change map[string]any) string {
		return signed(t, jwt.SigningMethodHS256, key, with(change))
	}
	return map[string]string{
		"garbage":         "garbage",
		"no signature":    body[0] + "." + body[1] + ".",
		"two parts":       body[0] + "." + body[1],
		"alg none":        signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, goodClaims()),
		"alg NONE":        part(`{"alg":"NONE","typ":"JWT"}`) + "." + body[1] + ".",
		"alg HS512":       signed(t, jwt.SigningMethodHS512, key, goodClaims()),
		"other key":       signed(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), goodClaims()),
		"altered claims":  body[0] + "." + part(`{"sub":"bob","exp":9999999999}`) + "." + body[2],
		"expired":         hs(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"without exp":     hs(map[string]any{"exp": nil}),
		"not yet":         hs(map[string]any{"nbf": time.Now().Add(time.Minute).Unix()}),
		"other issuer":    hs(map[string]any{"iss": "else"}),
		"no issuer":       hs(map[string]any{"iss": nil}),
		"other audience":  hs(map[string]any{"aud": "else"}),
		"no sub":          hs(map[string]any{"sub": nil}),
		"sub of no id":    hs(map[string]any{"sub": "al|ice"}),
		"sub too long":    hs(map[string]any{"sub": strings.Repeat("a", 65)}),
		"sub a number":    hs(map[string]any{"sub": 7}),
		"scope a list":    hs(map[string]any{"scope": []string{"order:create"}}),
		"much too long":   hs(map[string]any{"more": strings.Repeat("a", tokenBytesMax)}),
		"standard base64": strings.NewReplacer("-", "+", "_", "/").Replace(good) + "=",
	}
}

// concrete fills a route's parameters and gives it the body that it wants.
func concrete(r route) *http.Request {
	path := strings.NewReplacer(":productId", "p1", ":token", "t1", ":id", "00000000000000000000000000000001", ":key", "k1", ":profile", "heap", ":code", "busy").Replace(r.path)
	if r.path == "/admin/v1/trace" {
		path += "?productId=p1&uid=alice&token=t1"
	}
	body := map[string]string{"createOrder": `{"quantity":1}`}["createOrder"]
	switch {
	case r.method == "PUT":
		body = `{"total":10}`
	case strings.HasSuffix(r.path, "/reconciliations") && r.method == "POST":
		body = `{"mode":"dry-run"}`
	case strings.HasSuffix(r.path, "/stock-changes") && r.method == "POST":
		body = `{"delta":5,"reason":"a test"}`
	case strings.HasSuffix(r.path, "/rebuild"):
		body = `{"reason":"a test"}`
	case r.path == "/admin/v1/parked/replay":
		body = `{"reason":"poison"}`
	case !strings.HasSuffix(r.path, "/orders"):
		body = ""
	}
	return request(r.method, path, body, "Idempotency-Key", "k1")
}

func TestEveryRouteAsksForItsScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bad := badTokens(t)
	for _, door := range []*Door{f.buyers, f.operators} {
		for _, r := range door.routes {
			t.Run(door.Name()+" "+r.method+" "+r.path, func(t *testing.T) {
				t.Parallel()
				ask := func(token string) *http.Response {
					req := concrete(r)
					if token != "" {
						req.Header.Set("Authorization", "Bearer "+token)
					}
					return serve(t, door, req)
				}
				if r.right == anyone || r.right == probe {
					if res := ask(""); res.StatusCode != 200 {
						t.Fatalf("open to anyone, got %d", res.StatusCode)
					}
					return
				}
				res := ask("")
				wantProblem(t, res, 401, codeUnauthenticated)
				if !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
					t.Error("no challenge")
				}
				for name, token := range bad {
					if res := ask(token); res.StatusCode != 401 {
						t.Errorf("%s: got %d", name, res.StatusCode)
					}
				}
				for _, scope := range append(allScopes, "", r.right+"x", strings.ToUpper(r.right)) {
					res := ask(f.token(t, "alice", scope))
					if scope == r.right && res.StatusCode/100 != 2 {
						t.Errorf("%s does not open it: %d", scope, res.StatusCode)
					}
					if scope != r.right {
						wantProblem(t, res, 403, codeForbidden)
					}
				}
			})
		}
	}
}

func TestARouteThatNamesNoRightAnswersNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.buyers.add([]route{{"GET", "/forgotten", "", f.buyers.healthy, false}})
	for _, scopes := range [][]string{allScopes, {""}, {" "}, {}} {
		r := request("GET", "/forgotten", "", "Authorization", "Bearer "+f.token(t, "alice", scopes...))
		wantProblem(t, serve(t, f.buyers, r), 403, codeForbidden)
	}
}

func TestAuthorizationHeaderForms(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token(t, "alice", "order:read")
	for header, status := range map[string]int{
		"Bearer " + token: 200, "bearer " + token: 200, "Basic " + token: 401, token: 401,
		"Bearer": 401, "Bearer ": 401, "Bearer  " + token: 401, "Bearer " + token + " x": 401,
	} {
		res := serve(t, f.buyers, request("GET", "/api/v1/products/p1/orders/t1", "", "Authorization", header))
		if res.StatusCode != status {
			t.Errorf("%.12q…: got %d, want %d", header, res.StatusCode, status)
		}
	}
	twice := request("GET", "/api/v1/products/p1/orders/t1", "", "Authorization", "Bearer "+token, "Authorization", "Bearer "+token)
	wantProblem(t, serve(t, f.buyers, twice), 401, codeUnauthenticated)
}

func TestTokensRefuseWeakKeysAndForeignSubs(t *testing.T) {
	t.Parallel()
	if _, err := NewTokens([]byte(testKey[:31]), "", ""); err == nil {
		t.Error("31 bytes were enough")
	}
	tokens, err := NewTokens([]byte(testKey), "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Issue("a b", nil, time.Hour); err == nil {
		t.Error("issued for a sub that is no id")
	}
	s, err := tokens.Issue("alice", []string{"ops:read", "order:read"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	who, err := tokens.Verify(s)
	if err != nil || who.Subject != "alice" || !who.May("ops:read") || !who.May("order:read") || who.May("order") || who.May("") {
		t.Errorf("%+v %v", who, err)
	}
}

func TestARememberedTokenRunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens, err := NewTokens([]byte(testKey), "", "")
		if err != nil {
			t.Fatal(err)
		}
		s, err := tokens.Issue("alice", nil, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := tokens.Verify(s); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute + clockLeeway)
		if _, err := tokens.Verify(s); err == nil {
			t.Error("counts after its end")
		}
		const kept = 8
		tokens.verified.Resize(kept)
		for i := range 3 * kept {
			who, err := tokens.Issue(fmt.Sprint("u", i), nil, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tokens.Verify(who); err != nil {
				t.Fatal(err)
			}
		}
		if n := tokens.verified.Len(); n > kept {
			t.Errorf("remembers %d", n)
		}
	})
}

func TestTokensKeepTheirKeyOutOfTexts(t *testing.T) {
	t.Parallel()
	tokens, err := NewTokens([]byte(testKey), "", "")
	if err != nil {
		t.Fatal(err)
	}
	out := new(lockedBuffer)
	slog.New(slog.NewJSONHandler(out, nil)).Info("x", "tokens", tokens)
	texts := out.String() + fmt.Sprintf("%v %s %+v", tokens, tokens, Config{Tokens: tokens})
	if strings.Contains(texts, testKey) || strings.Contains(texts, "48 49 50 51") {
		t.Errorf("the key shows: %s", texts)
	}
}

// A remembered token counts as a whole and for its own key alone.
func TestARememberedTokenVouchesForNothingElse(t *testing.T) {
	t.Parallel()
	tokens, err := NewTokens([]byte(testKey), "shop", "seckill")
	if err != nil {
		t.Fatal(err)
	}
	s, err := tokens.Issue("alice", allScopes, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Verify(s); err != nil || !tokens.verified.Contains(s) {
		t.Fatalf("not remembered: %v", err)
	}
	changed, err := NewTokens([]byte(strings.Repeat("n", 32)), "shop", "seckill") // as after a change of the key: a new start
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changed.Verify(s); err == nil {
		t.Error("counts after its key was changed")
	}
	for at := range s {
		other := []byte(s)
		other[at] ^= 1
		if _, err := tokens.Verify(string(other)); err == nil {
			t.Errorf("counts with byte %d changed", at)
		}
	}
	if n := tokens.verified.Len(); n != 1 {
		t.Errorf("remembers %d", n)
	}
}
