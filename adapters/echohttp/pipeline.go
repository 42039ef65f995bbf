package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
)

func (d operatorsDoor) showPipeline(ctx context.Context, c echo.Context, _ Identity) error {
	return d.writeView(c, http.StatusOK, d.deps.Pipeline.Show(ctx))
}

func (d operatorsDoor) verify(ctx context.Context, c echo.Context, _ Identity) error {
	product, err := queryID(c, "productId")
	if err != nil {
		return err
	}
	verification, err := d.deps.Verify.Verify(ctx, product, nil)
	if err != nil {
		return err
	}
	return d.writeView(c, http.StatusOK, verification)
}

func (d operatorsDoor) examine(ctx context.Context, c echo.Context, _ Identity) error {
	examination, err := d.deps.Doctor.Examine(ctx)
	if err != nil {
		return err
	}
	return d.writeView(c, http.StatusOK, examination)
}
