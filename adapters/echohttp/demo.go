package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"seckill/adapters/echohttp/console"
	"seckill/domain"
)

// demoPath is of the console alone: no document has it, and no door that has no demo.
const demoPath = console.APIPath + "/demo/purchases"

// demoRoute buys for whoever is named, as that buyer would. No token is made for it: the session's holder asks.
func (d *Door) demoRoute(deduct deductor) route {
	return route{method: http.MethodPost, path: demoPath, right: "stock:admin", handle: func(ctx context.Context, c echo.Context, _ Identity) error {
		command, err := readDemoPurchase(c)
		if err != nil {
			return err
		}
		receipt, err := deduct.Deduct(ctx, command)
		if err != nil {
			return purchaseError(err)
		}
		return d.answerPurchase(c, receipt)
	}}
}

func readDemoPurchase(c echo.Context) (none domain.DeductCommand, err error) {
	token, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return none, err
	}
	var body struct {
		ProductID string `json:"productId"`
		UserID    string `json:"userId"`
		Quantity  int64  `json:"quantity"`
	}
	if err := readJSON(c, &body, false); err != nil {
		return none, err
	}
	if err := checkID("body", "/productId", body.ProductID); err != nil {
		return none, err
	}
	if err := checkID("body", "/userId", body.UserID); err != nil {
		return none, err
	}
	return domain.NewDeductCommand(body.ProductID, body.UserID, token, body.Quantity)
}
