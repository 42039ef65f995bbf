package console

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"seckill/application"
)

//go:embed page.html signin.html
var markup embed.FS

var (
	pageTemplate   = parse("page.html")
	signInTemplate = parse("signin.html")
)

func parse(name string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{
		"n": number, "age": age, "count": func(n int64) string { return number(&n) }}).ParseFS(markup, name))
}

// policy is all that the page may do.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// firstLookMax is how long a page waits for its first picture; without one it shows that nothing is known yet.
const firstLookMax = 3 * time.Second

type pageData struct {
	About   About
	Visitor Visitor
	CSRF    string
	Form    string
	Admin   bool // may change stock
	Repair  bool // may reconcile and replay
	Demo    bool // may buy
	View    *application.Overview
}

// page is the console, or the way in.
func (c *Console) page(w http.ResponseWriter, r *http.Request) error {
	v, err := c.visitor(r)
	if err != nil {
		return render(w, signInTemplate, struct{ Form, Failed string }{formCode(w, r), failureOf(r)})
	}
	data := pageData{About: c.cfg.About, Visitor: v, CSRF: v.csrf(), Form: formCode(w, r),
		Admin: v.May("stock:admin"), Repair: v.May("reconcile:run"),
		Demo: c.cfg.Demo && v.May("stock:admin")}
	ctx, cancel := context.WithTimeout(r.Context(), firstLookMax)
	defer cancel()
	if p, err := c.hub.latest(ctx); err == nil {
		data.View = &p.view
	}
	return render(w, pageTemplate, data)
}

func render(w http.ResponseWriter, t *template.Template, data any) error {
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	_, err := w.Write(out.Bytes())
	return err
}

const unknown = "?"

// number groups digits as the page's script does; what could not be read is unknown.
func number(n *int64) string {
	if n == nil {
		return unknown
	}
	text := strconv.FormatInt(*n, 10)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "−", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

func age(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return strconv.FormatFloat(*seconds, 'f', 1, 64) + " s"
}
