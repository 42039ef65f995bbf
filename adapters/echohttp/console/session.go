package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

const (
	sessionCookie = "seckill_console"
	formCookie    = "seckill_console_form"
	formMax       = 8 << 10 // bytes
	scopeRead     = "ops:read"

	// CSRFHeader carries the code of a session with every request that changes something.
	CSRFHeader = "X-CSRF-Token"
)

// Visitor is who is signed in.
type Visitor struct {
	Subject string
	May     func(scope string) bool
	token   string
}

// csrf is the code that goes with a session. It is derived from the token, which no script and no other site has.
func (v Visitor) csrf() string {
	mac := hmac.New(sha256.New, []byte(v.token))
	mac.Write([]byte("console: this page asks"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// visitor reads the session; ErrSignedOut without one, or when its token no longer counts.
func (c *Console) visitor(r *http.Request) (Visitor, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return Visitor{}, ErrSignedOut
	}
	v, err := c.cfg.Verify(cookie.Value)
	if err != nil || !v.May(scopeRead) {
		return Visitor{}, ErrSignedOut
	}
	v.token = cookie.Value
	return v, nil
}

// Authorize says who asks below /console/api. What may change something needs the session's code as well: ErrForged.
func (c *Console) Authorize(r *http.Request) (Visitor, error) {
	v, err := c.visitor(r)
	if err != nil {
		return v, err
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !safe && !same(r.Header.Get(CSRFHeader), v.csrf()) {
		return v, ErrForged
	}
	return v, nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// The reasons why nobody was signed in; the page puts them in words.
const (
	failedToken = "token"
	failedScope = "scope"
	failedForm  = "form"
)

var failures = []string{failedToken, failedScope, failedForm}

func failureOf(r *http.Request) string {
	if why := r.URL.Query().Get("failed"); slices.Contains(failures, why) {
		return why
	}
	return ""
}

// signIn takes a token by form. Whatever comes of it, the page is next, so that no form is ever sent twice.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	if err := r.ParseForm(); err != nil {
		return toPage(w, failedForm)
	}
	own, err := r.Cookie(formCookie)
	if err != nil || own.Value == "" || !same(own.Value, r.PostForm.Get("form")) {
		return toPage(w, failedForm)
	}
	token := tokenIn(r.PostForm.Get("token"))
	v, err := c.cfg.Verify(token)
	switch {
	case err != nil:
		return toPage(w, failedToken)
	case !v.May(scopeRead):
		return toPage(w, failedScope)
	}
	setCookie(w, r, sessionCookie, token, 0)
	return toPage(w, "")
}

// tokenIn takes what people paste: a token, "Bearer" in front of it, or the whole link.
func tokenIn(pasted string) string {
	token := strings.TrimSpace(pasted)
	if _, behind, isLink := strings.Cut(token, linkMark); isLink {
		token = behind
	}
	if scheme, rest, two := strings.Cut(token, " "); two && strings.EqualFold(scheme, "Bearer") {
		token = strings.TrimSpace(rest)
	}
	return token
}

// linkMark stands between the page's address and the token, in a link that signs in. What follows "#" stays in the
// browser.
const linkMark = "#t="

// Link is the address of the console with a token in it: whoever opens it is signed in for as long as the token counts. The door is
// the operators', with its scheme. The link is as secret as the token.
func Link(door, token string) string { return door + Path + linkMark + token }

// signOut ends the session of this browser; the token counts until it runs out.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) error {
	v, err := c.visitor(r)
	if err != nil {
		return toPage(w, "")
	}
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	if err := r.ParseForm(); err != nil || !same(r.PostForm.Get("csrf"), v.csrf()) {
		return ErrForged
	}
	setCookie(w, r, sessionCookie, "", -1)
	return toPage(w, "")
}

// toPage is relative: whatever stands in front of /console stays there.
func toPage(w http.ResponseWriter, failed string) error {
	to := "../console"
	if failed != "" {
		to += "?failed=" + failed
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// setCookie sets no path: the browser takes the folder of the address, /console as it knows it.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure where the address is https; on loopback it is not
		Name: name, Value: value, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"})
}

// formCode is the code of the sign-in form, the one that the browser has already or a new one.
func formCode(w http.ResponseWriter, r *http.Request) string {
	if own, err := r.Cookie(formCookie); err == nil && len(own.Value) == base64.RawURLEncoding.EncodedLen(formCodeBytes) {
		return own.Value
	}
	code := make([]byte, formCodeBytes)
	_, _ = rand.Read(code) // never fails
	text := base64.RawURLEncoding.EncodeToString(code)
	setCookie(w, r, formCookie, text, 0)
	return text
}

const formCodeBytes = 18
