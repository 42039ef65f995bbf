package echohttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

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

// Shared by all answers.
var (
	yes       = []string{"true"}
	oneSecond = []string{"1"}
)

func (d buyersDoor) createOrder(ctx context.Context, c echo.Context, who Identity) error {
	command, err := readPurchase(c, who)
	if err != nil {
		return err
	}
	if d.cfg.Tracer != nil {
		defer d.cfg.Tracer.Awaits(ctx, command.Key())()
	}
	receipt, err := d.deps.Deduct.Deduct(ctx, command)
	if err != nil {
		return purchaseError(err)
	}
	key := command.Key()
	c.Response().Header()["Location"] = []string{"/api/v1/products/" + key.Product() + "/orders/" + key.Token()} // ids need no escape in a path
	return d.answerPurchase(c, receipt)
}

// purchaseError says of a purchase that ran out of time what is known of it.
func purchaseError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return domain.NewError(domain.CodeOutcomeUnknown, "", err)
	}
	return err
}

// answerPurchase tells a buyer what became of a purchase.
func (d *Door) answerPurchase(c echo.Context, receipt application.Receipt) error {
	body, h := orderOf(receipt.Order), c.Response().Header()
	body.Remaining, body.Repeat = &receipt.Remaining, receipt.Replayed
	if receipt.Replayed {
		h["Idempotency-Replayed"] = yes
	}
	if body.Status != application.OrderPending {
		return d.writeOrder(c, http.StatusOK, body)
	}
	h["Retry-After"] = oneSecond
	return d.writeOrder(c, http.StatusAccepted, body)
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
	quantity, err := readQuantity(c)
	if err != nil {
		return none, err
	}
	return domain.NewDeductCommand(product, who.Subject, token, quantity)
}

func readQuantity(c echo.Context) (int64, error) {
	buf := bodies.Get().(*bodyBuffer)
	defer bodies.Put(buf)
	sent, err := readBody(c.Request(), buf)
	if err != nil {
		return 0, err
	}
	if quantity, read := scanQuantity(sent); read {
		return quantity, nil
	}
	var body struct {
		Quantity *int64 `json:"quantity"`
	}
	if err := decode(sent, &body); err != nil {
		return 0, err
	}
	if body.Quantity == nil {
		return 0, badInput("body", "/quantity", "must be there")
	}
	return *body.Quantity, nil
}

// scanQuantity reads the body as nearly everybody writes it. It understands nothing else: that is left to the parser.
func scanQuantity(body []byte) (int64, bool) {
	number, opened := bytes.CutPrefix(body, []byte(`{"quantity":`))
	number, closed := bytes.CutSuffix(bytes.TrimLeft(number, " "), []byte(`}`))
	const digitsMax = 7
	if !opened || !closed || len(number) == 0 || len(number) > digitsMax || number[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for _, digit := range number {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = 10*n + int64(digit-'0')
	}
	return n, true
}

func (d buyersDoor) showOrder(ctx context.Context, c echo.Context, who Identity) error {
	key, err := ownKey(c, who)
	if err != nil {
		return err
	}
	wait, err := readWait(c)
	if err != nil {
		return err
	}
	order, err := d.lookUp(ctx, c, key, wait)
	if err != nil {
		return err
	}
	return d.writeOrder(c, http.StatusOK, orderOf(order))
}

var waitForm = regexp.MustCompile(`^([0-9]{1,4}ms|[12]?[0-9]s|30s)$`)

// readWait reads ?wait=, a time with its unit.
func readWait(c echo.Context) (time.Duration, error) {
	values, there := c.QueryParams()["wait"]
	if !there {
		return 0, nil
	}
	if len(values) != 1 || !waitForm.MatchString(values[0]) {
		return 0, badInput("query", "wait", "must be a time of at most 30s with its unit, as 10s or 500ms")
	}
	return time.ParseDuration(values[0])
}

// lookUp gives the order as it is, or as it is once it is decided or the wait is over. Waiting ends with the door.
func (d buyersDoor) lookUp(ctx context.Context, c echo.Context, key domain.Key, wait time.Duration) (application.OrderView, error) {
	if wait == 0 {
		return d.deps.Orders.Show(ctx, key)
	}
	atWork := wait + d.cfg.RequestTimeout
	holdOpen(c, atWork)
	ctx, cancel := context.WithTimeout(c.Request().Context(), atWork)
	defer cancel()
	defer context.AfterFunc(d.stopping, cancel)()
	return d.deps.Await.Await(ctx, key, wait)
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
	return d.writeOrder(c, http.StatusOK, orderOf(order))
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
