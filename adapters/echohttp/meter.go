package echohttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// Meter is told of answers. Route is asked once for each route, and what it gives is called for each answer.
type Meter interface {
	Route(method, route string) func(status int, took time.Duration)
}

// measured is next with its errors answered, so that the status is known, and told to the meter.
func (d *Door) measured(method, path string, next echo.HandlerFunc) echo.HandlerFunc {
	if d.cfg.Meter == nil {
		return next
	}
	note := d.cfg.Meter.Route(method, templateOf(path))
	return func(c echo.Context) error {
		begun := time.Now()
		if err := next(c); err != nil {
			d.fail(err, c)
		}
		note(c.Response().Status, time.Since(begun))
		return nil
	}
}

// templateOf spells Echo's path as the document does.
func templateOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ":") {
			parts[i] = "{" + p[1:] + "}"
		}
	}
	return strings.Join(parts, "/")
}

// unmatchedMethods are those that anybody but a scanner asks with; the rest counts as one.
var unmatchedMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions}

// unmatched answers what no route took. Whatever a client makes up, it is one route.
func (d *Door) unmatched() echo.HTTPErrorHandler {
	if d.cfg.Meter == nil {
		return d.fail
	}
	const route = "unmatched"
	other := d.cfg.Meter.Route("_OTHER", route)
	notes := make(map[string]func(int, time.Duration), len(unmatchedMethods))
	for _, m := range unmatchedMethods {
		notes[m] = d.cfg.Meter.Route(m, route)
	}
	return func(err error, c echo.Context) {
		begun := time.Now()
		d.fail(err, c)
		note, known := notes[c.Request().Method]
		if !known {
			note = other
		}
		note(c.Response().Status, time.Since(begun))
	}
}

// InFlight is how many requests are at work, probes not counted.
func (d *Door) InFlight() int64 { return d.inFlight.Load() }
