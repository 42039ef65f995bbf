package echohttp

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// timeForm is RFC 3339 with milliseconds; times are given in UTC.
const timeForm = "2006-01-02T15:04:05.000Z"

// withTimes writes every time.Time of a view in timeForm.
var withTimes = json.WithMarshalers(json.MarshalToFunc(func(out *jsontext.Encoder, t time.Time) error {
	return out.WriteToken(jsontext.String(stamp(t)))
}))

func stamp(t time.Time) string { return t.UTC().Format(timeForm) }

// stampOrNone is empty for the zero time.
func stampOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

// Shared by all answers, so that no request allocates them; nothing may write into them.
var (
	typeJSON    = []string{echo.MIMEApplicationJSON}
	typeProblem = []string{"application/problem+json"}
	typeYAML    = []string{"application/yaml"}
	typeText    = []string{echo.MIMETextPlainCharsetUTF8}
	typeBinary  = []string{echo.MIMEOctetStream}
)

// answer is the one way out of a door. While it stops, each answer is the last of its connection; the stop may have
// begun since the request came.
func (d *Door) answer(c echo.Context, status int, contentType []string, body []byte) error {
	h := c.Response().Header()
	h["Content-Type"] = contentType
	if d.draining.Load() {
		h["Connection"] = leaving
	}
	c.Response().WriteHeader(status)
	_, err := c.Response().Write(body)
	return err
}

// write marshals before it commits the status, so a fault here still becomes a problem.
func (d *Door) write(c echo.Context, status int, body any, options ...json.Options) error {
	out, err := json.Marshal(body, options...)
	if err != nil {
		return err
	}
	return d.answer(c, status, typeJSON, out)
}

// writeJSON answers with a body that holds no time.Time.
func (d *Door) writeJSON(c echo.Context, status int, body any) error {
	return d.write(c, status, body)
}

// writeView answers with a view of the application.
func (d *Door) writeView(c echo.Context, status int, body any) error {
	return d.write(c, status, body, withTimes)
}

// writeOrder and writeProblem are nearly all answers of a sale, so their JSON is spelled out.
func (d *Door) writeOrder(c echo.Context, status int, body orderBody) error {
	buf := bodies.Get().(*bodyBuffer)
	defer bodies.Put(buf)
	return d.answer(c, status, typeJSON, body.appendTo(buf[:0]))
}

func (d *Door) writeProblem(c echo.Context, body problem) error {
	buf := bodies.Get().(*bodyBuffer)
	defer bodies.Put(buf)
	out, err := body.appendTo(buf[:0])
	if err != nil {
		return err
	}
	return d.answer(c, body.Status, typeProblem, out)
}

// appendTo writes what json.Marshal would. Ids and words need no escape.
func (o orderBody) appendTo(to []byte) []byte {
	to = appendText(to, `{"productId":"`, o.ProductID, `","userId":"`, o.UserID, `","token":"`, o.Token, `","quantity":`)
	to = strconv.AppendInt(to, o.Quantity, 10)
	to = appendText(to, `,"status":"`, o.Status, `"`)
	if o.Remaining != nil {
		to = strconv.AppendInt(append(to, `,"remaining":`...), *o.Remaining, 10)
	}
	if o.Repeat {
		to = append(to, `,"repeat":true`...)
	}
	if o.CreatedAt != "" {
		to = appendText(to, `,"createdAt":"`, o.CreatedAt, `"`)
	}
	return append(to, '}')
}

// appendTo writes what json.Marshal would. The error is that of a text which is not UTF-8.
func (p problem) appendTo(to []byte) ([]byte, error) {
	to = appendText(to, `{"type":"`, p.Type, `","title":"`, p.Title, `","status":`)
	to = strconv.AppendInt(to, int64(p.Status), 10)
	var err error
	if p.Detail != "" {
		if to, err = jsontext.AppendQuote(append(to, `,"detail":`...), p.Detail); err != nil {
			return nil, err
		}
	}
	to = appendText(to, `,"instance":"`, p.Instance, `","code":"`, string(p.Code), `","retryable":`)
	to = strconv.AppendBool(to, p.Retryable)
	if len(p.Errors) > 0 {
		faults, err := json.Marshal(p.Errors)
		if err != nil {
			return nil, err
		}
		to = append(append(to, `,"errors":`...), faults...)
	}
	return append(to, '}'), nil
}

func appendText(to []byte, parts ...string) []byte {
	for _, p := range parts {
		to = append(to, p...)
	}
	return to
}

// list is one page, newest first; Next is the cursor of the page after it, null on the last.
type list[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// listOf makes a page of items; a full page may have another after it.
func listOf[T any](items []T, limit int, id func(T) string) list[T] {
	l := list[T]{Items: items}
	if len(items) == limit {
		last := id(items[limit-1])
		l.Next = &last
	}
	return l
}
