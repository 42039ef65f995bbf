package echohttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/netutil"
)

// Config is what one door is told.
type Config struct {
	Addr           string  // host:port; port 0 takes a free one
	Tokens         *Tokens // who may enter
	Meter          Meter   // is told of every answer; nil: nobody is
	Tracer         Tracer  // makes the span of every request; nil: there is none
	MaxInFlight    int     // requests at work at once, probes not counted; more are answered busy
	MaxConnections int     // open connections; more wait to be accepted

	HeaderTimeout  time.Duration // to read a request's header
	ReadTimeout    time.Duration // to read the whole request
	WriteTimeout   time.Duration // from the end of the header to the end of the answer
	IdleTimeout    time.Duration // a kept connection without a request
	RequestTimeout time.Duration // a handler's context; below WriteTimeout, so that it can answer
	LongTimeout    time.Duration // instead of both for reconciling and verifying

	BuyerRate  int // requests a second of one buyer; 0: as many as come
	BuyerBurst int // requests of one buyer at once
}

// DefaultConfig has every default; Addr and Tokens are left to the caller.
func DefaultConfig() Config {
	return Config{
		MaxInFlight:    4096,
		MaxConnections: 16384,
		HeaderTimeout:  2 * time.Second,
		ReadTimeout:    5 * time.Second,
		WriteTimeout:   15 * time.Second,
		IdleTimeout:    60 * time.Second,
		RequestTimeout: 10 * time.Second,
		LongTimeout:    5 * time.Minute,
	}
}

const headerBytesMax = 16 << 10

// Door is one listener with its routes. It is a Runner of the application.
type Door struct {
	name     string
	cfg      Config
	log      *slog.Logger
	echo     *echo.Echo
	server   *http.Server
	routes   []route
	hideAway bool // buyers are not told which part is away
	grants   *allowance
	ids      requestIDs
	inFlight atomic.Int64
	draining atomic.Bool
	endBase  context.CancelFunc
	stopping context.Context // ends when Stop begins: long requests end with it, and may be asked again
	stop     context.CancelFunc

	background sync.WaitGroup // what requests have left running; it ends with stopping

	mu       sync.Mutex
	listener net.Listener
	served   chan struct{} // closed when Serve has returned; nil before Start
}

func newDoor(name string, cfg Config, log *slog.Logger) *Door {
	d := &Door{name: name, cfg: cfg, log: log.With("door", name), ids: newRequestIDs()}
	d.echo = echo.New()
	d.echo.HideBanner, d.echo.HidePort = true, true
	d.echo.IPExtractor = echo.ExtractIPDirect()
	d.echo.HTTPErrorHandler = d.unmatched()
	base, end := context.WithCancel(context.Background())
	d.endBase = end
	d.stopping, d.stop = context.WithCancel(base)
	d.server = &http.Server{
		Handler:           d.echo,
		ReadHeaderTimeout: cfg.HeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	return d
}

func (d *Door) add(routes []route) {
	d.routes = routes
	for _, r := range routes {
		d.echo.Add(r.method, r.path, d.measured(r.method, r.path, d.traced(r, d.guard(r))))
	}
}

// Name names the door.
func (d *Door) Name() string { return d.name }

// Handler is the door without its listener.
func (d *Door) Handler() http.Handler { return d.echo }

// Draining turns readiness off; requests are still answered, each as the last of its connection, so that the
// stop finds few kept ones to cut: a request on its way over one of those would go unheard.
func (d *Door) Draining() { d.draining.Store(true) }

// Listen binds the address and says which one it is. A second call changes nothing.
func (d *Door) Listen(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", d.cfg.Addr)
		if err != nil {
			return "", fmt.Errorf("%s: listen on %s: %w", d.name, d.cfg.Addr, err)
		}
		d.listener = netutil.LimitListener(l, d.cfg.MaxConnections)
	}
	return d.listener.Addr().String(), nil
}

// Start binds the address, if Listen has not, and serves until Stop.
func (d *Door) Start(ctx context.Context) error {
	if _, err := d.Listen(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.served != nil {
		return nil
	}
	served := make(chan struct{})
	d.served = served
	go func() {
		defer close(served)
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			d.log.ErrorContext(context.WithoutCancel(ctx), "door closed by a fault", "event", "door_failed", "error", err)
		}
	}()
	return nil
}

// Stop turns readiness off, accepts no more, and waits until every request at work is
// answered; long ones are ended and answered. When ctx ends first, what is left is cut off and ctx's
// error returned.
func (d *Door) Stop(ctx context.Context) error {
	d.Draining()
	d.stop()
	d.mu.Lock()
	listener, served := d.listener, d.served
	d.mu.Unlock()
	err := d.server.Shutdown(ctx)
	d.endBase()
	if err != nil {
		err = fmt.Errorf("%s: %d requests unanswered: %w", d.name, d.inFlight.Load(), err)
		_ = d.server.Close() // the answers are lost either way
	}
	d.background.Wait()
	if served != nil {
		<-served
	} else if listener != nil {
		_ = listener.Close() // never served; a second close of it is no fault
	}
	return err
}

// Routes lists method and path of every route, as Echo spells them.
func (d *Door) Routes() []string {
	out := make([]string, len(d.routes))
	for i, r := range d.routes {
		out[i] = strings.Join([]string{r.method, r.path}, " ")
	}
	return out
}
