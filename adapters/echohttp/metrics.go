package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
)

// showMetrics answers a scrape. Prometheus can send a bearer token, so it needs a right like every other reader.
func (d operatorsDoor) showMetrics(_ context.Context, c echo.Context, _ Identity) error {
	kind, body, err := d.deps.Metrics.Text()
	if err != nil {
		return err
	}
	return d.answer(c, http.StatusOK, []string{kind}, body)
}
