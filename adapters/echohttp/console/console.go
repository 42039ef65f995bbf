package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"seckill/application"
)

// What a handler may end with beside an answer.
var (
	ErrSignedOut = errors.New("nobody is signed in, or the session has run out")
	ErrForged    = errors.New("the code that goes with the session is missing or another one's")
	ErrFull      = errors.New("too many watch already")
	ErrNoAsset   = errors.New("there is no such file")

	errStopping = fmt.Errorf("the service stops: %w", context.Canceled)
)

// About is what a page says of its service.
type About struct {
	Version string
	Profile string
	Started time.Time
	NextRun func(after time.Time) time.Time // of the scheduled reconciliation; nil: not known
}

// Config is what a console is made of.
type Config struct {
	Verify func(token string) (Visitor, error)
	Look   func(context.Context) application.Overview
	About  About
	Demo   bool            // the page has a form that buys
	Until  context.Context // ends when the door stops: streams and looks end with it
	Spawn  func(func())    // runs what the door waits for
	Log    *slog.Logger
}

// Console is the page with what it needs.
type Console struct {
	cfg Config
	hub *hub
}

// New makes a console; nothing runs until somebody watches.
func New(cfg Config) *Console {
	return &Console{cfg: cfg, hub: newHub(cfg.Until, cfg.Spawn, cfg.Look, cfg.About, cfg.Log)}
}

// Route is an address of the console. Its handler answers, or gives one of this package's errors.
type Route struct {
	Method, Path string
	Handle       func(http.ResponseWriter, *http.Request) error
	Streams      bool // ends when its reader goes, not in the time of a request
}

// The paths that a door needs to know.
const (
	Path    = "/console"
	APIPath = Path + "/api"

	assetsPath = Path + "/assets/"
)

// Routes are all of them but the API's.
func (c *Console) Routes() []Route {
	return []Route{
		{http.MethodGet, Path, c.page, false},
		{http.MethodPost, Path + "/sign-in", c.signIn, false},
		{http.MethodPost, Path + "/sign-out", c.signOut, false},
		{http.MethodGet, Path + "/snapshot", c.snapshot, false},
		{http.MethodGet, Path + "/history", c.history, false},
		{http.MethodGet, Path + "/stream", c.stream, true},
		{http.MethodGet, assetsPath + ":name", c.asset, false},
	}
}

// snapshot is the newest picture, for pages whose stream does not work.
func (c *Console) snapshot(w http.ResponseWriter, r *http.Request) error {
	if _, err := c.visitor(r); err != nil {
		return err
	}
	p, err := c.hub.latest(r.Context())
	if err != nil {
		return err
	}
	return answerJSON(w, p.body)
}

// history is what was seen in the last 15 minutes, while somebody watched.
func (c *Console) history(w http.ResponseWriter, r *http.Request) error {
	if _, err := c.visitor(r); err != nil {
		return err
	}
	body, err := c.hub.samples()
	if err != nil {
		return err
	}
	return answerJSON(w, body)
}

func answerJSON(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(body)
	return err
}

// asset is a file of the page; browsers keep it and ask whether it has changed.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) error {
	a, there := assets[strings.TrimPrefix(r.URL.Path, assetsPath)]
	if !there {
		return ErrNoAsset
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", a.tag)
	h.Set("Content-Type", a.kind)
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Vary", "Accept-Encoding")
	body := a.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.packed()
	}
	_, err := w.Write(body)
	return err
}
