package echohttp

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// publicBody is a product as every buyer may see it.
type publicBody struct {
	ProductID     string `json:"productId"`
	State         string `json:"state"`
	Total         int64  `json:"total"`
	Remaining     *int64 `json:"remaining"` // null: could not be read
	OpensAt       string `json:"opensAt,omitempty"`
	ClosesAt      string `json:"closesAt,omitempty"`
	LimitPerBuyer int64  `json:"limitPerBuyer"`
}

func (d buyersDoor) showPublicStock(ctx context.Context, c echo.Context, _ Identity) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	s, err := d.deps.Stock.Public(ctx, product)
	if err != nil {
		return err
	}
	return d.writeJSON(c, http.StatusOK, publicBody{s.Product, s.State, s.Total, s.Remaining,
		stampOrNone(s.OpensAt), stampOrNone(s.ClosesAt), s.LimitPerBuyer})
}

// saleBody answers what changed a sale: the ledger's record alone.
type saleBody struct {
	ProductID     string     `json:"productId"`
	State         string     `json:"state"`
	Paused        bool       `json:"paused"`
	Reason        string     `json:"reason,omitempty"`
	Epoch         int64      `json:"epoch"`
	Total         int64      `json:"total"`
	OpensAt       string     `json:"opensAt,omitempty"`
	ClosesAt      string     `json:"closesAt,omitempty"`
	LimitPerBuyer int64      `json:"limitPerBuyer"`
	Ledger        ledgerBody `json:"ledger"`
}

type ledgerBody struct {
	Stock   int64 `json:"stock"`
	Version int64 `json:"version"`
}

func saleOf(s domain.Stock) saleBody {
	t := s.Terms()
	return saleBody{s.Product(), s.State().String(), t.Paused, s.Reason(), s.Epoch(), s.Total(),
		stampOrNone(t.OpensAt), stampOrNone(t.ClosesAt), t.LimitPerBuyer, ledgerBody{s.Remaining(), s.Version()}}
}

func (d operatorsDoor) openSale(ctx context.Context, c echo.Context, who Identity) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	var body struct {
		Total         *int64     `json:"total"`
		OpensAt       *time.Time `json:"opensAt"`
		ClosesAt      *time.Time `json:"closesAt"`
		LimitPerBuyer *int64     `json:"limitPerBuyer"`
		Reason        string     `json:"reason"`
	}
	if err := readJSON(c, &body, false); err != nil {
		return err
	}
	switch {
	case body.Total == nil:
		return badInput("body", "/total", "must be there")
	case len(body.Reason) > reasonMax:
		return badInput("body", "/reason", "must have at most 200 bytes")
	}
	sale, err := domain.NewSale(product, *body.Total, orZero(body.OpensAt), orZero(body.ClosesAt), orZero(body.LimitPerBuyer))
	if err != nil {
		return err
	}
	if _, err := d.matched(ctx, c, product); err != nil {
		return err
	}
	stock, created, err := d.deps.Open.Open(ctx, sale, port.Audit{Actor: who.Subject, Action: "open-sale", Reason: body.Reason})
	if err != nil {
		return err
	}
	tagEdition(c, stock.Edition())
	if !created {
		return d.writeJSON(c, http.StatusOK, saleOf(stock))
	}
	c.Response().Header().Set("Location", "/admin/v1/products/"+product)
	return d.writeJSON(c, http.StatusCreated, saleOf(stock))
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (d operatorsDoor) showStock(ctx context.Context, c echo.Context, _ Identity) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	view, err := d.deps.Stock.Show(ctx, product)
	if err != nil {
		return err
	}
	tagEdition(c, view.Edition)
	return d.writeView(c, http.StatusOK, view)
}

func (d operatorsDoor) listStocks(ctx context.Context, c echo.Context, _ Identity) error {
	after, limit, err := page(c)
	if err != nil {
		return err
	}
	views, err := d.deps.Stock.List(ctx, after, limit)
	if err != nil {
		return err
	}
	return d.writeView(c, http.StatusOK, listOf(views, limit, func(v application.StockView) string { return v.Product }))
}

func (d operatorsDoor) pause(ctx context.Context, c echo.Context, who Identity) error {
	return d.setPaused(ctx, c, true, port.Audit{Actor: who.Subject, Action: "pause-sale"})
}

func (d operatorsDoor) resume(ctx context.Context, c echo.Context, who Identity) error {
	return d.setPaused(ctx, c, false, port.Audit{Actor: who.Subject, Action: "resume-sale"})
}

// rebuild answers 202: what was begun ends by itself. A mere report is 200.
func (d operatorsDoor) rebuild(ctx context.Context, c echo.Context, who Identity) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	var body struct {
		Reason string                 `json:"reason"`
		Lost   application.LostPolicy `json:"lost"`
	}
	if err := readJSON(c, &body, false); err != nil {
		return err
	}
	if body.Reason == "" || len(body.Reason) > reasonMax {
		return badInput("body", "/reason", "must have 1 to 200 bytes")
	}
	switch body.Lost {
	case "", application.LostReport, application.LostRestore, application.LostDrop:
	default:
		return badInput("body", "/lost", "must be report, restore or drop")
	}
	if _, err := d.matched(ctx, c, product); err != nil {
		return err
	}
	answer, err := d.deps.Rebuild.Rebuild(ctx, product, body.Lost,
		port.Audit{Actor: who.Subject, Action: "rebuild-product", Reason: body.Reason})
	if err != nil {
		return err
	}
	if body.Lost == application.LostReport {
		return d.writeJSON(c, http.StatusOK, answer)
	}
	return d.writeJSON(c, http.StatusAccepted, answer)
}

const reasonMax = 200

// setPaused takes an optional body that says why.
func (d operatorsDoor) setPaused(ctx context.Context, c echo.Context, paused bool, audit port.Audit) error {
	product, err := pathID(c, "productId")
	if err != nil {
		return err
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := readJSON(c, &body, true); err != nil {
		return err
	}
	if len(body.Reason) > reasonMax {
		return badInput("body", "/reason", "must have at most 200 bytes")
	}
	audit.Reason = body.Reason
	only, err := d.matched(ctx, c, product)
	if err != nil {
		return err
	}
	stock, err := d.deps.Pause.SetPaused(ctx, product, paused, only, audit)
	if err != nil {
		return err
	}
	tagEdition(c, stock.Edition())
	return d.writeJSON(c, http.StatusOK, saleOf(stock))
}
