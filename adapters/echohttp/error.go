package echohttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

// Codes that only HTTP knows.
const (
	codeUnauthenticated  domain.Code = "unauthenticated"
	codeForbidden        domain.Code = "forbidden"
	codeNoSuchRoute      domain.Code = "no-such-route"
	codeMethodNotAllowed domain.Code = "method-not-allowed"
	codeBodyTooLarge     domain.Code = "body-too-large"
	codeJSONOnly         domain.Code = "json-only"
	codeTooManyRequests  domain.Code = "too-many-requests"
)

// answer is how a code is told. retryable: the same request may do better later, and with the
// same token it cannot buy twice.
type answer struct {
	status    int
	title     string
	retryable bool
}

// answers is every code that either door can give, and openapi.yaml lists the same.
var answers = map[domain.Code]answer{
	domain.CodeInvalidRequest:  {http.StatusBadRequest, "The request is not valid", false},
	codeUnauthenticated:        {http.StatusUnauthorized, "A valid bearer token is needed", false},
	codeForbidden:              {http.StatusForbidden, "The token does not grant this", false},
	domain.CodeSaleClosed:      {http.StatusForbidden, "The sale is not open now", false},
	domain.CodeProductNotFound: {http.StatusNotFound, "There is no such product", false},
	domain.CodeOrderNotFound:   {http.StatusNotFound, "There is no such order", false},
	domain.CodeReportNotFound:  {http.StatusNotFound, "There is no such report", false},
	domain.CodeChangeNotFound:  {http.StatusNotFound, "There is no such stock change", false},
	domain.CodeParkedNotFound:  {http.StatusNotFound, "There is no such parked message", false},
	codeNoSuchRoute:            {http.StatusNotFound, "There is no such route", false},
	codeMethodNotAllowed:       {http.StatusMethodNotAllowed, "The route does not know this method", false},
	domain.CodeStockNotEnough:  {http.StatusConflict, "The stock is not enough", false},
	domain.CodeLimitReached:    {http.StatusConflict, "The limit per buyer is reached", false},
	domain.CodeTokenRefused:    {http.StatusConflict, "The token is refused for good", false},
	domain.CodeProductExists:   {http.StatusConflict, "The product is on sale with other terms", false},
	domain.CodePlanOutdated:    {http.StatusConflict, "The plan no longer fits, make a new dry run", false},
	domain.CodeEditionOutdated: {http.StatusPreconditionFailed, "The record has changed since it was read", false},
	codeBodyTooLarge:           {http.StatusRequestEntityTooLarge, "The body is too large", false},
	codeJSONOnly:               {http.StatusUnsupportedMediaType, "The body must be application/json", false},
	domain.CodeTokenReused:     {http.StatusUnprocessableEntity, "The token was used for something else", false},
	codeTooManyRequests:        {http.StatusTooManyRequests, "Too many requests", true},
	domain.CodeOutcomeUnknown:  {http.StatusServiceUnavailable, "The outcome is not known yet, ask again with the same token", true},
	domain.CodeBusy:            {http.StatusServiceUnavailable, "The service is busy, this request changed nothing", true},
	domain.CodeRebuilding:      {http.StatusServiceUnavailable, "The sale is being made ready, this request changed nothing", true},
	domain.CodeUnavailable:     {http.StatusServiceUnavailable, "A part of the service is away", true},
	domain.CodeInternal:        {http.StatusInternalServerError, "Something went wrong inside", true},
}

// fault names one input that is wrong: a JSON pointer for the body, a name for the rest.
type fault struct {
	In      string `json:"in"` // body, path, query, header
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problem is the body of every error, RFC 9457.
type problem struct {
	Type      string      `json:"type"`
	Title     string      `json:"title"`
	Status    int         `json:"status"`
	Detail    string      `json:"detail,omitempty"`
	Instance  string      `json:"instance"`
	Code      domain.Code `json:"code"`
	Retryable bool        `json:"retryable"`
	Errors    []fault     `json:"errors,omitempty"`
}

// requestError is an error that HTTP itself found.
type requestError struct {
	code   domain.Code
	detail string
	faults []fault
}

func (e *requestError) Error() string { return string(e.code) + ": " + e.detail }

func badInput(in, pointer, detail string) *requestError {
	const shown = 200 // a caller's text is not handed back at any length
	if len(pointer) > shown {
		pointer = pointer[:shown]
	}
	return &requestError{domain.CodeInvalidRequest, "", []fault{{in, pointer, detail}}}
}

// panicError carries a recovered panic to the one place that logs.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// problemOf translates any error; what has no code is internal and shows nothing of itself.
func problemOf(err error) problem {
	p := problem{Code: domain.CodeInternal}
	own, isOwn := errors.AsType[*requestError](err)
	dom, isDomain := errors.AsType[*domain.Error](err)
	switch {
	case isOwn:
		p.Code, p.Detail, p.Errors = own.code, own.detail, own.faults
	case isDomain:
		p.Code = dom.Code
		if dom.Code != domain.CodeInternal {
			p.Detail = dom.Detail
		}
		if dom.Code == domain.CodeInvalidRequest && dom.Field != "" {
			p.Errors = []fault{{"body", "/" + dom.Field, dom.Detail}}
		}
	case errors.Is(err, echo.ErrNotFound):
		p.Code = codeNoSuchRoute
	case errors.Is(err, echo.ErrMethodNotAllowed):
		p.Code = codeMethodNotAllowed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p.Code = domain.CodeUnavailable
	}
	if _, known := answers[p.Code]; !known {
		p = problem{Code: domain.CodeInternal}
	}
	return p
}

// fail answers with a problem. It is Echo's error handler, so routes that do not exist come here too.
func (d *Door) fail(err error, c echo.Context) {
	id := d.begin(c)
	p := problemOf(err)
	if p.Code == domain.CodeUnavailable && d.hideAway {
		p.Code = domain.CodeRebuilding
	}
	if p.Code == domain.CodeInternal {
		d.logFault(c, id, err)
	}
	if c.Response().Committed {
		return // the caller has an answer, or a part of one
	}
	a := answers[p.Code]
	p.Type, p.Title, p.Status, p.Retryable = "/problems/"+string(p.Code), a.title, a.status, a.retryable
	p.Instance = id
	h := c.Response().Header()
	if a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests {
		// Spread, so that a crowd does not come back at once.
		h.Set("Retry-After", strconv.Itoa(1+rand.IntN(3))) //nolint:gosec // no secret
	}
	if p.Code == codeBodyTooLarge {
		h.Set("Connection", "close") // the rest of the body is not worth reading
	}
	if err := d.writeProblem(c, p); err != nil {
		d.log.Debug("answer not sent", "event", "answer_not_sent", "request_id", id, "error", err)
	}
}

func (d *Door) logFault(c echo.Context, id string, err error) {
	attrs := []any{"event", "request_failed", "request_id", id, "method", c.Request().Method,
		"route", c.Path(), "error", err.Error()}
	var p *panicError
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.stack))
	}
	d.log.Log(context.WithoutCancel(c.Request().Context()), slog.LevelError, "request failed", attrs...)
}
