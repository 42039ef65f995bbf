package echohttp

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"seckill/domain"
)

// bodyMax is the largest request body, in bytes.
const bodyMax = 4 << 10

// Doubled members, trailing data, other letter case and broken UTF-8 are refused by default.
var strict = json.JoinOptions(json.RejectUnknownMembers(true))

type bodyBuffer [bodyMax + 1]byte

var bodies = sync.Pool{New: func() any { return new(bodyBuffer) }}

// readJSON decodes the body into dst. With optional, an empty body leaves dst as it is.
func readJSON(c echo.Context, dst any, optional bool) error {
	if optional && c.Request().ContentLength == 0 {
		return nil
	}
	buf := bodies.Get().(*bodyBuffer)
	defer bodies.Put(buf)
	body, err := readBody(c.Request(), buf)
	if err != nil {
		return err
	}
	return decode(body, dst)
}

// readBody reads a body of JSON into buf.
func readBody(r *http.Request, buf *bodyBuffer) ([]byte, error) {
	if !isJSON(r.Header) {
		return nil, &requestError{code: codeJSONOnly}
	}
	n, err := io.ReadFull(r.Body, buf[:])
	switch {
	case err == nil:
		return nil, tooLarge()
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		return nil, badInput("body", "", "could not be read to its end")
	}
	return buf[:n], nil
}

func tooLarge() error {
	return &requestError{code: codeBodyTooLarge, detail: "at most " + strconv.Itoa(bodyMax) + " bytes"}
}

func isJSON(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 || h.Get("Content-Encoding") != "" {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	kind, params, err := mime.ParseMediaType(types[0])
	charset := params["charset"]
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

func decode(body []byte, dst any) error {
	err := json.Unmarshal(body, dst, strict)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return badInput("body", string(semantic.JSONPointer), "is not a known member")
	case errors.As(err, &semantic):
		return badInput("body", string(semantic.JSONPointer), "is not of the right type or form")
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return badInput("body", string(syntactic.JSONPointer), "is there more than once")
	case errors.As(err, &syntactic):
		return badInput("body", string(syntactic.JSONPointer), "is not one valid JSON document")
	}
	return badInput("body", "", "is not valid")
}

// pathID gives an id from the path, unescaped exactly once.
func pathID(c echo.Context, name string) (string, error) {
	id := c.Param(name)
	if c.Request().URL.RawPath != "" { // Echo matched the escaped form; otherwise net/http has unescaped it
		plain, err := url.PathUnescape(id)
		if err != nil {
			return "", badInput("path", name, "is not escaped properly")
		}
		id = plain
	}
	return id, checkID("path", name, id)
}

func checkID(in, name, id string) error {
	err := domain.CheckID(name, id)
	if err == nil {
		return nil
	}
	e, _ := errors.AsType[*domain.Error](err)
	return badInput(in, name, e.Detail)
}

// pathRowID unescapes a path parameter, and requires the form of an id of the ledger's.
func pathRowID(c echo.Context, name string) (string, error) {
	id, err := pathID(c, name)
	if err != nil {
		return "", err
	}
	return id, checkRowID("path", name, id)
}

var rowIDForm = regexp.MustCompile("^[0-9a-fA-F]{32}$")

func checkRowID(in, name, id string) error {
	if !rowIDForm.MatchString(id) {
		return badInput(in, name, "must have 32 hexadecimal digits")
	}
	return nil
}

// idempotencyKey reads the header, bare or as a quoted string; both are the same key.
func idempotencyKey(h http.Header) (string, error) {
	const name = "Idempotency-Key"
	keys := h[name]
	if len(keys) != 1 {
		return "", badInput("header", name, "must be there exactly once")
	}
	key := keys[0]
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	return key, checkID("header", name, key)
}

// queryID gives an id from the query, empty where it is not there.
func queryID(c echo.Context, name string) (string, error) {
	values, there := c.QueryParams()[name]
	if !there {
		return "", nil
	}
	if len(values) != 1 {
		return "", badInput("query", name, "must be there at most once")
	}
	return values[0], checkID("query", name, values[0])
}

const (
	pageDefault = 50
	pageMax     = 200
)

// page reads ?limit= and ?cursor=.
func page(c echo.Context) (cursor string, limit int, err error) {
	if cursor, err = queryID(c, "cursor"); err != nil {
		return "", 0, err
	}
	values, there := c.QueryParams()["limit"]
	if !there {
		return cursor, pageDefault, nil
	}
	n, bad := strconv.ParseUint(values[0], 10, 16)
	if len(values) != 1 || bad != nil || n < 1 || n > pageMax {
		return "", 0, badInput("query", "limit", "must be a whole number from 1 to "+strconv.Itoa(pageMax))
	}
	return cursor, int(n), nil
}

// pageByRow is page for lists whose cursor is an id of the ledger's.
func pageByRow(c echo.Context) (cursor string, limit int, err error) {
	cursor, limit, err = page(c)
	if err == nil && cursor != "" {
		err = checkRowID("query", "cursor", cursor)
	}
	return cursor, limit, err
}
