// Package apidoc holds requests and answers of the HTTP doors against their OpenAPI document.
package apidoc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

func init() {
	for _, pageType := range []string{"text/html", "text/css"} {
		openapi3filter.RegisterBodyDecoder(pageType, openapi3filter.PlainBodyDecoder)
	}
}

// Document is an OpenAPI document that is valid.
type Document struct{ *openapi3.T }

// Read parses and validates a document.
func Read(yaml []byte) (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(yaml)
	if err != nil {
		return nil, err
	}
	return &Document{doc}, doc.Validate(context.Background(), openapi3.AllowExtensionsWithRef())
}

// problem is what is looked at of an answer that refuses.
type problem struct {
	Code   string
	Errors []struct{ In, Pointer string }
}

// Check says where an answer stands outside the document, and where the service and the document disagree about a
// request: one that was taken must be allowed by it, and one refused for a parameter must not. The request's body must
// be unread. What is no route is answered by a problem.
func (d *Document) Check(r *http.Request, res *http.Response, body []byte) error {
	var refused problem
	_ = json.Unmarshal(body, &refused) // what is none has no code
	path := d.pathOf(r.URL.EscapedPath())
	noRoute := res.StatusCode == http.StatusNotFound && refused.Code == "no-such-route" // also: a route of the other door
	if noRoute || path == "" || d.Paths.Find(path).GetOperation(r.Method) == nil {
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			return fmt.Errorf("%s %s is no problem: %w", r.Method, r.URL, err)
		}
		return d.Components.Schemas["Problem"].Value.VisitJSON(v)
	}
	item := d.Paths.Find(path)
	asked := &openapi3filter.RequestValidationInput{Request: r, PathParams: paramsOf(path, r.URL.EscapedPath()),
		Route:   &routers.Route{Spec: d.T, Path: path, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{RequestValidationInput: asked,
		Status: res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(body)), Options: asked.Options})
	if err != nil {
		return fmt.Errorf("%s %s answers outside the document: %w\n%s", r.Method, r.URL, err, body)
	}
	misled := refused.Code == "invalid-request" && len(refused.Errors) == 1 && refused.Errors[0].In != "body"
	if res.StatusCode >= 300 && !misled {
		return nil
	}
	err = openapi3filter.ValidateRequest(context.Background(), asked)
	if err != nil && !misled {
		return fmt.Errorf("%s %s was taken and stands outside the document: %w", r.Method, r.URL, err)
	}
	if err == nil && misled && len(r.URL.Query()[refused.Errors[0].Pointer]) < 2 { // a schema does not see a second one
		return fmt.Errorf("%s %s was refused and the document allows it: %+v", r.Method, r.URL, refused.Errors)
	}
	return nil
}

// Operation names what a request asks for: its method and its path's template, which is empty where there is none.
func (d *Document) Operation(r *http.Request) string {
	return r.Method + " " + d.pathOf(r.URL.EscapedPath())
}

// OperationID is the id of what a request asks for; empty where the document has no such operation.
func (d *Document) OperationID(r *http.Request) string {
	if item := d.Paths.Find(d.pathOf(r.URL.EscapedPath())); item != nil && item.GetOperation(r.Method) != nil {
		return item.GetOperation(r.Method).OperationID
	}
	return ""
}

// pathOf finds the document's path by the escaped path of a request.
func (d *Document) pathOf(escaped string) string {
	have := strings.Split(escaped, "/")
	best := ""
	for template := range d.Paths.Map() {
		want := strings.Split(template, "/")
		same := len(want) == len(have)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == have[i] || strings.HasPrefix(want[i], "{")
		}
		if same && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = template
		}
	}
	return best
}

// paramsOf reads a path's parameters by its template.
func paramsOf(template, escaped string) map[string]string {
	params, have := map[string]string{}, strings.Split(escaped, "/")
	for i, part := range strings.Split(template, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			params[strings.TrimSuffix(name, "}")], _ = url.PathUnescape(have[i])
		}
	}
	return params
}
