package echohttp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

// Rights beside the scopes. The zero value grants nothing to anybody.
const (
	anyone = "anyone" // no token asked for
	probe  = "probe"  // anyone, and never refused for load
)

// handler answers one request; ctx ends before the server gives up on it.
type handler func(ctx context.Context, c echo.Context, who Identity) error

// route is a line of a door's table.
type route struct {
	method, path string
	right        string // a scope, anyone or probe
	handle       handler
	long         bool // may take Config.LongTimeout
}

// authority finds out who asks, and whether the right is theirs.
type authority func(c echo.Context, right string) (Identity, error)

// guard is everything that goes around a handler.
func (d *Door) guard(r route) echo.HandlerFunc { return d.guardBy(r, d.authorize) }

func (d *Door) guardBy(r route, authorize authority) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		d.begin(c)
		defer func() {
			if p := recover(); p != nil {
				if e, is := p.(error); is && errors.Is(e, http.ErrAbortHandler) {
					panic(p)
				}
				err = &panicError{p, debug.Stack()}
			}
		}()
		for _, v := range c.ParamValues() {
			if v == "" || strings.Contains(v, "/") { // Echo lets a last parameter swallow further segments
				return echo.ErrNotFound
			}
		}
		if r.right != probe {
			defer d.inFlight.Add(-1)
			if d.inFlight.Add(1) > int64(d.cfg.MaxInFlight) {
				return domain.NewError(domain.CodeBusy, "too many requests at work", nil)
			}
		}
		who, err := authorize(c, r.right)
		if err != nil {
			return err
		}
		if err := d.grants.admit(c.Response().Header(), who.Subject); err != nil {
			return err
		}
		if c.Request().ContentLength > bodyMax {
			return tooLarge()
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), d.timeLimit(c, r))
		defer cancel()
		if r.long {
			defer context.AfterFunc(d.stopping, cancel)()
		}
		return r.handle(ctx, c, who)
	}
}

// timeLimit also moves the connection's deadlines for a route that may take long.
func (d *Door) timeLimit(c echo.Context, r route) time.Duration {
	if !r.long {
		return d.cfg.RequestTimeout
	}
	holdOpen(c, d.cfg.LongTimeout)
	return d.cfg.LongTimeout
}

// holdOpen moves the connection's deadlines for a handler that may take so long.
func holdOpen(c echo.Context, atWork time.Duration) {
	const toAnswer = 5 * time.Second
	until := time.Now().Add(atWork + toAnswer)
	conn := http.NewResponseController(c.Response())
	_ = conn.SetReadDeadline(until) // not supported without a connection, as in a test: then there is none to move
	_ = conn.SetWriteDeadline(until)
}

// authorize goes by the bearer token.
func (d *Door) authorize(c echo.Context, right string) (Identity, error) {
	if right == anyone || right == probe {
		return Identity{}, nil
	}
	token, there := bearer(c.Request().Header)
	if !there {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="seckill"`)
		return Identity{}, &requestError{code: codeUnauthenticated, detail: "the bearer token is missing"}
	}
	who, err := d.cfg.Tokens.Verify(token)
	if err != nil {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="seckill", error="invalid_token"`)
		return Identity{}, &requestError{code: codeUnauthenticated, detail: "the bearer token is not valid, or no longer"}
	}
	if !who.May(right) {
		c.Response().Header().Set("WWW-Authenticate",
			`Bearer realm="seckill", error="insufficient_scope", scope="`+right+`"`)
		return Identity{}, &requestError{code: codeForbidden, detail: "the scope " + right + " is needed"}
	}
	return who, nil
}

func bearer(h http.Header) (string, bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, token != "" && strings.EqualFold(scheme, "Bearer")
}

// Shared by all answers, so that no request allocates them; nothing may write into them.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
	leaving = []string{"close"}
)

const requestIDHeader = "X-Request-Id"

// begin gives the request an id, the caller's own if it is a proper one, and returns it. A second call changes nothing.
func (d *Door) begin(c echo.Context) string {
	h := c.Response().Header()
	if id := h[requestIDHeader]; len(id) == 1 {
		return id[0]
	}
	id := c.Request().Header.Get(requestIDHeader)
	if id == "" || domain.CheckID("request id", id) != nil {
		id = d.ids.next()
	}
	h[requestIDHeader] = []string{id}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	return id
}

// requestIDs are unique enough to find a line in a log, and cost next to nothing.
type requestIDs struct {
	prefix string
	count  *atomic.Uint64
}

func newRequestIDs() requestIDs {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return requestIDs{"r" + hex.EncodeToString(b[:]) + "-", new(atomic.Uint64)}
}

func (r requestIDs) next() string {
	var room [40]byte
	return string(strconv.AppendUint(append(room[:0], r.prefix...), r.count.Add(1), 36))
}
