package echohttp

import (
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

// write marshals before it commits the status, so a fault here still becomes a problem.
func write(c echo.Context, status int, contentType string, body any, options ...json.Options) error {
	out, err := json.Marshal(body, options...)
	if err != nil {
		return err
	}
	return c.Blob(status, contentType, out)
}

// writeJSON answers with a body that holds no time.Time.
func writeJSON(c echo.Context, status int, body any) error {
	return write(c, status, echo.MIMEApplicationJSON, body)
}

// writeView answers with a view of the application.
func writeView(c echo.Context, status int, body any) error {
	return write(c, status, echo.MIMEApplicationJSON, body, withTimes)
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
