package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

// Tracer makes the span of a request. done ends it with the status of the answer, and the code of what went wrong inside,
// which may be another than the caller is told; empty: nothing.
type Tracer interface {
	Request(r *http.Request, route string) (ctx context.Context, done func(status int, code string))

	// Awaits makes the span known to the batches that the purchase will be part of, until done.
	Awaits(ctx context.Context, key domain.Key) (done func())
}

// traced is next within a span, its errors answered, so that the status is known. Probes have none.
func (d *Door) traced(r route, next echo.HandlerFunc) echo.HandlerFunc {
	if d.cfg.Tracer == nil || r.right == probe {
		return next
	}
	template := templateOf(r.path)
	return func(c echo.Context) error {
		ctx, done := d.cfg.Tracer.Request(c.Request(), template)
		c.SetRequest(c.Request().WithContext(ctx))
		code := ""
		if err := next(c); err != nil {
			code = string(problemOf(err).Code)
			d.fail(err, c)
		}
		done(c.Response().Status, code)
		return nil
	}
}
