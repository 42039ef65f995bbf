package echohttp

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"seckill/application"
	"seckill/application/port"
)

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
	cursor, limit, err := pageByRow(c)
	if err != nil {
		return err
	}
	product, err := queryID(c, "productId")
	if err != nil {
		return err
	}
	reason, err := queryReason(c)
	if err != nil {
		return err
	}
	parked, err := d.deps.Parked.List(ctx, reason, product, cursor, limit)
	if err != nil {
		return err
	}
	items := make([]parkedBody, len(parked))
	for i, p := range parked {
		items[i] = parkedOf(p)
	}
	return d.writeJSON(c, http.StatusOK, listOf(items, limit, func(p parkedBody) string { return p.ID }))
}

// queryReason reads ?reason=, empty where it is not there.
func queryReason(c echo.Context) (port.ParkReason, error) {
	values, there := c.QueryParams()["reason"]
	if !there {
		return "", nil
	}
	reason := port.ParkReason(values[0])
	if len(values) != 1 || !slices.Contains(port.ParkReasons, reason) {
		return "", badInput("query", "reason", "must be one reason that a message is parked for")
	}
	return reason, nil
}

const actionReplay = "replay-parked"

func (d operatorsDoor) replayOne(ctx context.Context, c echo.Context, who Identity) error {
	id, err := pathRowID(c, "id")
	if err != nil {
		return err
	}
	var body struct {
		Why string `json:"why"`
	}
	if err := readJSON(c, &body, true); err != nil {
		return err
	}
	audit, err := replayAudit(who, body.Why)
	if err != nil {
		return err
	}
	result, err := d.deps.Replay.ReplayOne(ctx, id, audit)
	if err != nil {
		return err
	}
	return d.writeJSON(c, http.StatusOK, result)
}

func replayAudit(who Identity, why string) (port.Audit, error) {
	if len(why) > reasonMax {
		return port.Audit{}, badInput("body", "/why", "must have at most 200 bytes")
	}
	return port.Audit{Actor: who.Subject, Action: actionReplay, Reason: why}, nil
}

// replayBody names what is to be replayed: by id, or by what it was parked for and its product.
type replayBody struct {
	IDs       []string        `json:"ids"`
	Reason    port.ParkReason `json:"reason"`
	ProductID *string         `json:"productId"`
	After     *string         `json:"after"`
	Why       string          `json:"why"`
}

func (d operatorsDoor) replaySome(ctx context.Context, c echo.Context, who Identity) error {
	var body replayBody
	if err := readJSON(c, &body, false); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	audit, err := replayAudit(who, body.Why)
	if err != nil {
		return err
	}
	var results []application.ReplayResult
	var next string
	if len(body.IDs) > 0 {
		results, err = d.deps.Replay.ReplayThese(ctx, body.IDs, audit)
	} else {
		results, next, err = d.deps.Replay.ReplayMatching(ctx, body.Reason, orZero(body.ProductID), orZero(body.After), audit)
	}
	if err != nil {
		return err
	}
	answer := list[application.ReplayResult]{Items: results}
	if next != "" {
		answer.Next = &next
	}
	return d.writeJSON(c, http.StatusOK, answer)
}

func (b replayBody) check() error {
	matching := b.Reason != "" || b.ProductID != nil
	switch {
	case b.IDs != nil && (matching || b.After != nil):
		return badInput("body", "/ids", "does not go with reason, productId or after")
	case len(b.IDs) == 0 && !matching:
		return badInput("body", "", "must name ids, a reason or a productId")
	case b.Reason != "" && !slices.Contains(port.ParkReasons, b.Reason):
		return badInput("body", "/reason", "is no reason that a message is parked for")
	}
	for _, id := range b.IDs {
		if err := checkRowID("body", "/ids", id); err != nil {
			return err
		}
	}
	if b.ProductID != nil {
		if err := checkID("body", "/productId", *b.ProductID); err != nil {
			return err
		}
	}
	if b.After != nil {
		return checkRowID("body", "/after", *b.After)
	}
	return nil
}
