package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// changeBody is a stock change on the wire.
type changeBody struct {
	ProductID string `json:"productId"`
	Key       string `json:"key"`
	Delta     int64  `json:"delta"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt,omitempty"`
	Actor     string `json:"actor,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

func changeOf(c application.ChangeView) changeBody {
	return changeBody{c.Product, c.Token, c.Delta, c.Status, stampOrNone(c.CreatedAt), c.Actor, c.Reason}
}

func (d operatorsDoor) changeStock(ctx context.Context, c echo.Context, who Identity) error {
	change, reason, err := readChange(c)
	if err != nil {
		return err
	}
	if _, err := d.matched(ctx, c, change.Key().Product()); err != nil {
		return err
	}
	receipt, err := d.deps.Changes.Change(ctx, change, port.Audit{Actor: who.Subject, Reason: reason})
	if err != nil {
		return err
	}
	body, h := changeOf(receipt.Change), c.Response().Header()
	h.Set("Location", "/admin/v1/products/"+body.ProductID+"/stock-changes/"+body.Key)
	status := http.StatusOK
	switch {
	case body.Status == application.OrderPending:
		h.Set("Retry-After", "1")
		status = http.StatusAccepted
	case change.Adds() && !receipt.Replayed:
		status = http.StatusCreated
	}
	if receipt.Replayed {
		h["Idempotency-Replayed"] = yes
	}
	return d.writeJSON(c, status, body)
}

// readChange wants a reason: what changes a sale by hand is explained.
func readChange(c echo.Context) (change domain.StockChange, reason string, err error) {
	product, err := pathID(c, "productId")
	if err != nil {
		return change, "", err
	}
	token, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return change, "", err
	}
	var body struct {
		Delta  *int64 `json:"delta"`
		Reason string `json:"reason"`
	}
	if err := readJSON(c, &body, false); err != nil {
		return change, "", err
	}
	switch {
	case body.Delta == nil:
		return change, "", badInput("body", "/delta", "must be there")
	case body.Reason == "":
		return change, "", badInput("body", "/reason", "must be there and say why")
	case len(body.Reason) > reasonMax:
		return change, "", badInput("body", "/reason", "must have at most 200 bytes")
	}
	change, err = domain.NewStockChange(product, token, *body.Delta)
	return change, body.Reason, err
}

func (d operatorsDoor) showChange(ctx context.Context, c echo.Context, _ Identity) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	key, err := pathID(c, "key")
	if err != nil {
		return err
	}
	change, err := d.deps.Changes.Show(ctx, product, key)
	if err != nil {
		return err
	}
	return d.writeJSON(c, http.StatusOK, changeOf(change))
}

func (d operatorsDoor) listChanges(ctx context.Context, c echo.Context, _ Identity) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	cursor, limit, err := pageByRow(c)
	if err != nil {
		return err
	}
	changes, err := d.deps.Changes.List(ctx, product, cursor, limit)
	if err != nil {
		return err
	}
	full := listOf(changes, limit, func(v application.ChangeView) string { return v.ID })
	shown := list[changeBody]{Items: make([]changeBody, len(changes)), Next: full.Next}
	for i, v := range full.Items {
		shown.Items[i] = changeOf(v)
	}
	return d.writeJSON(c, http.StatusOK, shown)
}
