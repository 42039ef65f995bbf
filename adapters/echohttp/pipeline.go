package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

func (d operatorsDoor) showPipeline(ctx context.Context, c echo.Context, _ Identity) error {
	return d.writeView(c, http.StatusOK, d.deps.Pipeline.Show(ctx))
}

func (d operatorsDoor) trace(ctx context.Context, c echo.Context, _ Identity) error {
	var ids [3]string
	for i, name := range [...]string{"productId", "uid", "token"} {
		id, err := queryID(c, name)
		if err != nil {
			return err
		}
		if id == "" {
			return badInput("query", name, "must be there")
		}
		ids[i] = id
	}
	key, err := domain.NewKey(ids[0], ids[1], ids[2])
	if err != nil {
		return err
	}
	view, err := d.deps.Trace.Trace(ctx, key)
	if err != nil {
		return err
	}
	return d.writeView(c, http.StatusOK, view)
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
