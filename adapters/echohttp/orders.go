package echohttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"seckill/application"
	"seckill/domain"
)

// orderBody is an order on the wire.
type orderBody struct {
	ProductID string `json:"productId"`
	UserID    string `json:"userId"`
	Token     string `json:"token"`
	Quantity  int64  `json:"quantity"`
	Status    string `json:"status"`
	Remaining *int64 `json:"remaining,omitempty"` // answers to a purchase alone
	Repeat    bool   `json:"repeat,omitzero"`
	CreatedAt string `json:"createdAt,omitempty"`
}

func orderOf(o application.OrderView) orderBody {
	return orderBody{ProductID: o.Key.Product(), UserID: o.Key.User(), Token: o.Key.Token(),
		Quantity: o.Quantity, Status: o.Status, CreatedAt: stampOrNone(o.CreatedAt)}
}

var yes = []string{"true"} // shared by all answers

func (d buyersDoor) createOrder(ctx context.Context, c echo.Context, who Identity) error {
	command, err := readPurchase(c, who)
	if err != nil {
		return err
	}
	receipt, err := d.deps.Deduct.Deduct(ctx, command)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return domain.NewError(domain.CodeOutcomeUnknown, "", err)
	}
	if err != nil {
		return err
	}
	body := orderOf(receipt.Order)
	body.Remaining, body.Repeat = &receipt.Remaining, receipt.Replayed
	key := command.Key()
	h := c.Response().Header()
	h.Set("Location", "/api/v1/products/"+key.Product()+"/orders/"+key.Token()) // ids need no escape in a path
	if receipt.Replayed {
		h["Idempotency-Replayed"] = yes
	}
	if body.Status != application.OrderPending {
		return writeJSON(c, http.StatusOK, body)
	}
	h.Set("Retry-After", "1")
	return writeJSON(c, http.StatusAccepted, body)
}

// readPurchase binds each source on its own: product from the path, user from the bearer token,
// token from the header, quantity from the body.
func readPurchase(c echo.Context, who Identity) (domain.DeductCommand, error) {
	var none domain.DeductCommand
	product, err := pathID(c, "productId")
	if err != nil {
		return none, err
	}
	token, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return none, err
	}
	var body struct {
		Quantity *int64 `json:"quantity"`
	}
	if err := readJSON(c, &body, false); err != nil {
		return none, err
	}
	if body.Quantity == nil {
		return none, badInput("body", "/quantity", "must be there")
	}
	return domain.NewDeductCommand(product, who.Subject, token, *body.Quantity)
}

func (d buyersDoor) showOrder(ctx context.Context, c echo.Context, who Identity) error {
	key, err := ownKey(c, who)
	if err != nil {
		return err
	}
	order, err := d.deps.Orders.Show(ctx, key)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, orderOf(order))
}

func (d buyersDoor) cancelOrder(ctx context.Context, c echo.Context, who Identity) error {
	key, err := ownKey(c, who)
	if err != nil {
		return err
	}
	order, err := d.deps.Cancel.Cancel(ctx, key)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, orderOf(order))
}

// ownKey names the caller's own order of the path.
func ownKey(c echo.Context, who Identity) (domain.Key, error) {
	product, err := pathID(c, "productId")
	if err != nil {
		return domain.Key{}, err
	}
	token, err := pathID(c, "token")
	if err != nil {
		return domain.Key{}, err
	}
	return domain.NewKey(product, who.Subject, token)
}
