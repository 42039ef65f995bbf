package echohttp

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

//go:embed pages
var pageFiles embed.FS

var (
	pages    = template.Must(template.ParseFS(pageFiles, "pages/*.html"))
	typeHTML = []string{echo.MIMETextHTMLCharsetUTF8}
	typeCSS  = []string{"text/css; charset=utf-8"}
	// Nothing but our own style sheet and our own form: the pages have no script.
	pagePolicy = []string{"default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"}
	noReferrer = []string{"no-referrer"}
)

// readDocument parses openapi.yaml when its page is first asked for; a test holds it valid.
var readDocument = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(openAPI) })

func (d *Door) pageRoutes() []route {
	return []route{
		{http.MethodGet, "/openapi.yaml", anyone, d.document, false},
		{http.MethodGet, "/docs", anyone, d.docs, false},
		{http.MethodGet, "/docs/style.css", anyone, d.style, false},
		{http.MethodGet, "/problems", anyone, d.listProblems, false},
		{http.MethodGet, "/problems/:code", anyone, d.showProblem, false},
	}
}

// writePage renders before it commits the status, so a fault here still becomes a problem.
func (d *Door) writePage(c echo.Context, name string, data any) error {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, data); err != nil {
		return err
	}
	h := c.Response().Header()
	h["Content-Security-Policy"], h["Referrer-Policy"] = pagePolicy, noReferrer
	return d.answer(c, http.StatusOK, typeHTML, out.Bytes())
}

func (d *Door) style(_ context.Context, c echo.Context, _ Identity) error {
	css, err := pageFiles.ReadFile("pages/style.css")
	if err != nil {
		return err
	}
	return d.answer(c, http.StatusOK, typeCSS, css)
}

type docsPage struct {
	Title, Door string
	Intro       []template.HTML
	IDs         []docsID
	Sub, Scopes string
	Operations  []docsOperation
}

// docsID is one of the caller's own ids, which the examples are written with.
type docsID struct{ Name, Label, Value string }

type docsOperation struct {
	ID, Method, Path, Summary, Scope, Curl string
	Text                                   []template.HTML
	Parameters, Body                       []docsField
	Answers                                []docsAnswer
}

type docsField struct {
	Name, In, Form string
	Required       bool
	Text           template.HTML
}

type docsAnswer struct {
	Status string
	Text   template.HTML
	Fields []docsField
}

// docs shows the door's part of the document. ?productId=, ?uid= and ?token= go into the examples.
func (d *Door) docs(_ context.Context, c echo.Context, _ Identity) error {
	doc, err := readDocument()
	if err != nil {
		return err
	}
	ids := []docsID{{"productId", "Product", "demo-phone"}, {"uid", "Buyer", "alice"}, {"token", "Token (Idempotency-Key)", "try-1"}}
	known := map[string]string{"id": "ID", "key": "more-1", "profile": "heap", "code": "busy", "seconds": "10"}
	for i := range ids {
		if id, err := queryID(c, ids[i].Name); err != nil {
			return err
		} else if id != "" {
			ids[i].Value = id
		}
		known[ids[i].Name] = ids[i].Value
	}
	page := docsPage{Title: doc.Info.Title, Door: d.name, Intro: prose(doc.Info.Description), IDs: ids, Sub: ids[1].Value}
	if d.name != "buyers" {
		page.Sub = "me"
	}
	var scopes []string
	for _, r := range d.routes {
		item := doc.Paths.Find(templated(r.path))
		if item == nil || item.GetOperation(r.method) == nil {
			continue
		}
		page.Operations = append(page.Operations, describe(r, item, base(c.Request()), known))
		if scope := scopeOf(r); scope != "" && !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	page.Scopes = strings.Join(scopes, ",")
	return d.writePage(c, "docs.html", page)
}

var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`)

// base is where the caller reached us; a name that could mean something to a shell is left out.
func base(r *http.Request) string {
	scheme, host := "http", r.Host
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	if !plainHost.MatchString(host) {
		host = "localhost"
	}
	return scheme + "://" + host
}

// templated spells Echo's path as the document does.
func templated(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ":") {
			parts[i] = "{" + p[1:] + "}"
		}
	}
	return strings.Join(parts, "/")
}

func scopeOf(r route) string {
	if r.right == anyone || r.right == probe {
		return ""
	}
	return r.right
}

func describe(r route, item *openapi3.PathItem, base string, known map[string]string) docsOperation {
	op := item.GetOperation(r.method)
	path := templated(r.path)
	o := docsOperation{ID: op.OperationID, Method: r.method, Path: path, Summary: op.Summary, Text: prose(op.Description), Scope: scopeOf(r)}
	url, query := path, []string{}
	var headers []string
	for _, ref := range slices.Concat(item.Parameters, op.Parameters) {
		p := ref.Value
		o.Parameters = append(o.Parameters, docsField{p.Name, p.In, form(p.Schema), p.Required, inline(p.Description)})
		switch {
		case p.In == openapi3.ParameterInPath:
			url = strings.ReplaceAll(url, "{"+p.Name+"}", known[p.Name])
		case p.In == openapi3.ParameterInQuery && (p.Required || p.Name == "seconds" || p.Name == "productId"):
			query = append(query, p.Name+"="+known[p.Name])
		case p.In == openapi3.ParameterInHeader && p.Required:
			key := known["token"]
			if strings.HasSuffix(path, "/stock-changes") {
				key = known["key"]
			}
			headers = append(headers, p.Name+": "+key)
		}
	}
	if len(query) > 0 {
		url += "?" + strings.Join(query, "&")
	}
	var body string
	if op.RequestBody != nil {
		media := op.RequestBody.Value.Content.Get("application/json")
		o.Body = fieldsOf("", media.Schema, 0)
		body = bodyExample(media)
	}
	o.Curl = curl(r, base+url, headers, body)
	for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		answer := op.Responses.Value(status).Value
		a := docsAnswer{Status: status, Text: withCodes(*answer.Description)}
		if media := answer.Content.Get("application/json"); media != nil && !strings.HasPrefix(status, "4") {
			a.Fields = fieldsOf("", media.Schema, 0)
		}
		o.Answers = append(o.Answers, a)
	}
	return o
}

// curl is the call as it is typed.
func curl(r route, url string, headers []string, body string) string {
	lines := []string{"curl -i"}
	if r.method != http.MethodGet {
		lines[0] += " -X " + r.method
	}
	lines[0] += " '" + url + "'"
	if scopeOf(r) != "" {
		lines = append(lines, `-H "Authorization: Bearer $TOKEN"`)
	}
	for _, h := range headers {
		lines = append(lines, "-H '"+h+"'")
	}
	if body != "" {
		lines = append(lines, "-H 'Content-Type: application/json'", "-d '"+body+"'")
	}
	return strings.Join(lines, " \\\n  ")
}

// bodyExample is the document's example, or the least that the schema takes.
func bodyExample(media *openapi3.MediaType) string {
	example := media.Example
	if example == nil {
		least := map[string]any{}
		for _, name := range media.Schema.Value.Required {
			least[name] = leastOf(media.Schema.Value.Properties[name].Value)
		}
		example = least
	}
	out, err := json.Marshal(example, json.Deterministic(true), jsontext.EscapeForHTML(false))
	if err != nil {
		return "{}"
	}
	return string(out)
}

func leastOf(s *openapi3.Schema) any {
	switch {
	case s.Example != nil:
		return s.Example
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type.Is("integer"):
		return 1
	case s.Type.Is("boolean"):
		return true
	}
	return "why"
}

// fieldsOf lists the members of an object, those of objects in it by a path with dots.
func fieldsOf(prefix string, ref *openapi3.SchemaRef, depth int) []docsField {
	const depthMax = 3
	s := whole(ref)
	if s == nil || depth > depthMax {
		return nil
	}
	var fields []docsField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member := s.Properties[name]
		v := whole(member)
		fields = append(fields, docsField{Name: prefix + name, Form: form(member), Required: slices.Contains(s.Required, name), Text: inline(member.Value.Description)})
		switch {
		case v.Type.Is("object"):
			fields = append(fields, fieldsOf(prefix+name+".", member, depth+1)...)
		case v.Type.Is("array"):
			fields = append(fields, fieldsOf(prefix+name+"[].", v.Items, depth+1)...)
		}
	}
	return fields
}

// whole looks through an allOf of one, which is how a reference gets a description of its own.
func whole(ref *openapi3.SchemaRef) *openapi3.Schema {
	if ref == nil || ref.Value == nil {
		return nil
	}
	if len(ref.Value.AllOf) == 1 {
		return ref.Value.AllOf[0].Value
	}
	return ref.Value
}

// form is a schema in a few words.
func form(ref *openapi3.SchemaRef) string {
	s := whole(ref)
	if s == nil {
		return ""
	}
	words := strings.Join(s.Type.Slice(), " ")
	switch {
	case len(s.Enum) > 0:
		var names []string
		for _, e := range s.Enum {
			if name, is := e.(string); is {
				names = append(names, name)
			}
		}
		words = strings.Join(names, " | ")
	case s.Format == "date-time":
		words = "time"
	case s.Type.Is("array"):
		words = "list"
	}
	if s.Nullable {
		words += " or null"
	}
	return words
}

var word = regexp.MustCompile("`[^`]+`")

// inline makes code of what stands between backticks, and is safe.
func inline(text string) template.HTML { return marked(text, func(string) string { return "" }) }

// withCodes is inline, and leads to the page of each code.
func withCodes(text string) template.HTML {
	return marked(text, func(name string) string {
		for code := range answers {
			if string(code) == name {
				return "problems/" + name
			}
		}
		return ""
	})
}

func marked(text string, link func(string) string) template.HTML {
	escaped := template.HTMLEscapeString(text)
	return template.HTML(word.ReplaceAllStringFunc(escaped, func(w string) string { //nolint:gosec // escaped above
		name := strings.Trim(w, "`")
		code := "<code>" + name + "</code>"
		if at := link(name); at != "" {
			return `<a href="` + at + `">` + code + "</a>"
		}
		return code
	}))
}

// prose makes paragraphs of a description.
func prose(text string) []template.HTML {
	var paragraphs []template.HTML
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			paragraphs = append(paragraphs, withCodes(p))
		}
	}
	return paragraphs
}
