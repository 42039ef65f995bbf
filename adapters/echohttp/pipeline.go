package echohttp

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"seckill/application/port"
)

func (d operatorsDoor) showPipeline(ctx context.Context, c echo.Context, _ Identity) error {
	return writeView(c, http.StatusOK, d.deps.Pipeline.Show(ctx))
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
	return writeView(c, http.StatusOK, verification)
}

// bodyShown is how much of a parked message an operator sees, in bytes.
const bodyShown = 1024

type parkedBody struct {
	ID        string     `json:"id"`
	Reason    string     `json:"reason"`
	Detail    string     `json:"detail"`
	ProductID string     `json:"productId,omitempty"`
	Body      string     `json:"body"` // its beginning; what is no text is replaced
	BodyBytes int        `json:"bodyBytes"`
	Origin    originBody `json:"origin"`
	ParkedAt  string     `json:"parkedAt"`
}

type originBody struct {
	MessageID  string `json:"messageId"`
	Queue      string `json:"queue"`
	Offset     int64  `json:"offset"`
	Deliveries int    `json:"deliveries"` // before the one that was parked
}

func parkedOf(p port.Parked) parkedBody {
	return parkedBody{p.ID, string(p.Reason), text([]byte(p.Detail)), p.Product,
		text(p.Body[:min(len(p.Body), bodyShown)]), len(p.Body),
		originBody{p.Origin.MessageID, p.Origin.Queue, p.Origin.Offset, p.Origin.Times}, stamp(p.ParkedAt)}
}

func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func (d operatorsDoor) listParked(ctx context.Context, c echo.Context, _ Identity) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	parked, err := d.deps.Parked.List(ctx, cursor, limit)
	if err != nil {
		return err
	}
	items := make([]parkedBody, len(parked))
	for i, p := range parked {
		items[i] = parkedOf(p)
	}
	return writeJSON(c, http.StatusOK, listOf(items, limit, func(p parkedBody) string { return p.ID }))
}
