package echohttp

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/labstack/echo/v4"

	"seckill/adapters/echohttp/console"
	"seckill/application"
	"seckill/domain"
)

type overviewShower interface {
	Show(context.Context) application.Overview
}

const operatorsAPI = "/admin/v1"

// ConsoleDeps are what the console needs beside the door's own use cases.
type ConsoleDeps struct {
	Overview overviewShower
	About    console.About
	Token    string   // signs in beside bearer tokens, with every operator's scope; empty: none
	Demo     deductor // buys from the page, for a demo alone; nil: neither route nor form
}

// AddConsole mounts the operators' console, and the door's API a second time for those who are signed in there. Its
// pages are no API and stand in no document. Once, before Start.
func (d *Door) AddConsole(deps ConsoleDeps) {
	c := console.New(console.Config{Verify: d.visitors(deps.Token), Look: deps.Overview.Show, About: deps.About, Demo: deps.Demo != nil,
		Until: d.stopping, Spawn: d.background.Go, Log: d.log})
	for _, r := range c.Routes() {
		d.echo.Add(r.Method, r.Path, d.measured(r.Method, r.Path,
			d.guard(route{method: r.Method, path: r.Path, right: anyone, handle: d.consoleHandler(r)})))
	}
	for _, r := range d.routes {
		if below, is := strings.CutPrefix(r.path, operatorsAPI); is {
			d.echo.Add(r.method, console.APIPath+below, d.measured(r.method, console.APIPath+below, d.guardBy(r, bySession(c))))
		}
	}
	if deps.Demo != nil {
		r := d.demoRoute(deps.Demo)
		d.echo.Add(r.method, r.path, d.measured(r.method, r.path, d.guardBy(r, bySession(c))))
	}
}

// visitors takes bearer tokens, and the one token of the settings where there is one.
func (d *Door) visitors(fixed string) func(token string) (console.Visitor, error) {
	return func(token string) (console.Visitor, error) {
		if fixed != "" && subtle.ConstantTimeCompare([]byte(token), []byte(fixed)) == 1 {
			return console.Visitor{Subject: "console", May: func(string) bool { return true }}, nil
		}
		who, err := d.cfg.Tokens.Verify(token)
		return console.Visitor{Subject: who.Subject, May: who.May}, err
	}
}

// consoleHandler gives a request to the console. A stream is not bounded by the time of a request.
func (d *Door) consoleHandler(r console.Route) handler {
	return func(ctx context.Context, c echo.Context, _ Identity) error {
		request := c.Request()
		if !r.Streams {
			request = request.WithContext(ctx)
		}
		if d.draining.Load() {
			c.Response().Header()["Connection"] = leaving
		}
		return consoleError(r.Handle(c.Response(), request))
	}
}

// consoleError translates what the console says to what the door knows.
func consoleError(err error) error {
	switch {
	case errors.Is(err, console.ErrSignedOut):
		return &requestError{code: codeUnauthenticated, detail: err.Error()}
	case errors.Is(err, console.ErrForged):
		return &requestError{code: codeForbidden, detail: err.Error()}
	case errors.Is(err, console.ErrFull):
		return domain.NewError(domain.CodeBusy, err.Error(), nil)
	case errors.Is(err, console.ErrNoAsset):
		return echo.ErrNotFound
	}
	return err
}

// bySession finds out who asks by the console's session, in place of a bearer token.
func bySession(c *console.Console) authority {
	return func(e echo.Context, right string) (Identity, error) {
		visitor, err := c.Authorize(e.Request())
		if err != nil {
			return Identity{}, consoleError(err)
		}
		if !visitor.May(right) {
			return Identity{}, &requestError{code: codeForbidden, detail: "the scope " + right + " is needed"}
		}
		return Identity{Subject: visitor.Subject}, nil
	}
}
