package echohttp

import (
	"context"
	_ "embed"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"seckill/application"
)

// healthy says that the process answers, and nothing about its parts.
func (d *Door) healthy(_ context.Context, c echo.Context, _ Identity) error {
	return d.writeJSON(c, http.StatusOK, map[string]string{"status": "ok"})
}

type readinessBody struct {
	Ready    bool                              `json:"ready"`
	Draining bool                              `json:"draining"`
	Parts    map[string]application.PartStatus `json:"parts"`
}

// readyOf says which part is away, and takes the door out of service while it drains.
func (d *Door) readyOf(readiness readinessChecker) handler {
	return func(ctx context.Context, c echo.Context, _ Identity) error {
		parts, ready := readiness.Check(ctx)
		body := readinessBody{Draining: d.draining.Load(), Parts: parts}
		body.Ready = ready && !body.Draining
		status := http.StatusOK
		if !body.Ready {
			status = http.StatusServiceUnavailable
		}
		return d.writeView(c, status, body)
	}
}

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the document of both doors, as they serve it: YAML.
func OpenAPI() []byte { return slices.Clone(openAPI) }

func (d *Door) document(_ context.Context, c echo.Context, _ Identity) error {
	return d.answer(c, http.StatusOK, typeYAML, openAPI)
}
