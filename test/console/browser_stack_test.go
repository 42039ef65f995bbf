//go:build stack

package console

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"seckill/test/harness"
)

//go:embed testdata/axe.min.js
var axe string

// seenWithin is how long what a test waits for may take on a loaded machine.
const seenWithin = 45 * time.Second

// one is the browser that all tests share, each with a profile of its own.
var one struct {
	start   sync.Once
	ctx     context.Context
	closing []context.CancelFunc
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(one.closing) - 1; i >= 0; i-- {
		one.closing[i]()
	}
	os.Exit(code)
}

func browser(t *testing.T) context.Context {
	t.Helper()
	path := harness.Browser(t)
	one.start.Do(func() {
		var stop context.CancelFunc
		one.ctx, stop = chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))...)
		one.closing = append(one.closing, stop)
		one.ctx, stop = chromedp.NewContext(one.ctx)
		one.closing = append(one.closing, stop)
		one.err = chromedp.Do(one.ctx)
	})
	if one.err != nil {
		t.Fatal(one.err)
	}
	return one.ctx
}

// tab is a browser's window of one test, with no cookie and no memory.
type tab struct {
	t   *testing.T
	ctx context.Context
	at  string // the console's address

	mu      sync.Mutex
	excused []string // what may stand in the browser's console
}

// open opens a window for the console at an address, such as http://127.0.0.1:8081/console.
func open(t *testing.T, at string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, at: at}
	b.do(chromedp.Do(ctx))
	b.do(chromedp.Listen(ctx, b.heard))
	b.size(1440, 1000)
	return b
}

// excuse says what the browser's console may hold: "status of 409", or "ERR_CONNECTION_REFUSED" of a server that was stopped.
func (b *tab) excuse(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.excused = append(b.excused, texts...)
}

func (b *tab) heard(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && !strings.HasPrefix(b.at, u.Scheme+"://"+u.Host+"/") {
			b.t.Errorf("asked another host: %s", e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		args, _ := json.Marshal(e.Args)
		b.complain(string(args))
	case *runtime.EventExceptionThrown:
		b.complain(fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception.Description))
	case *log.EventEntryAdded:
		b.complain(e.Entry.Text + " " + e.Entry.URL)
	}
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, known := range b.excused {
		if strings.Contains(text, known) {
			return
		}
	}
	b.t.Errorf("in the browser's console: %s", text)
}

func (b *tab) do(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// eval gives the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.shot("failed")
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true in whatever page is shown by then.
func (b *tab) wait(what, expression string) {
	b.t.Helper()
	late := time.Now().Add(seenWithin)
	for {
		seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && seen {
			return
		}
		if time.Now().After(late) {
			b.shot("failed")
			b.t.Fatalf("never seen: %s (%s, %v); the page says:\n%s", what, expression, err, eval[string](b, "document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond) // between two looks
	}
}

// quoted is a text as the page's script writes it.
func quoted(text string) string {
	q, _ := json.Marshal(text)
	return string(q)
}

// says waits until a piece of the page has a text in it.
func (b *tab) says(selector, text string) {
	b.t.Helper()
	b.wait(selector+" says "+text, fmt.Sprintf("(document.querySelector(%s)||{innerText:''}).innerText.includes(%s)", quoted(selector), quoted(text)))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, "document.querySelector("+quoted(selector)+").innerText")
}

// cell is a cell of a product's row, by the head of its column.
func (b *tab) cell(product, column string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("[...document.querySelectorAll('[data-product=%s] > *')]"+
		"[[...document.querySelectorAll('#products thead th')].findIndex((h) => h.textContent === %s)].innerText", quoted(product), quoted(column)))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.wait(selector+" is there", "document.querySelector("+quoted(selector)+") && !document.querySelector("+quoted(selector)+").disabled")
	b.do(chromedp.Do(b.ctx, chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector))))
}

// press clicks the button with a text, inside of selector.
func (b *tab) press(selector, text string) {
	b.t.Helper()
	button := fmt.Sprintf("[...document.querySelectorAll(%s)].find((x) => x.innerText.trim() === %s && !x.disabled)", quoted(selector+" button"), quoted(text))
	b.wait("the button "+text, button)
	eval[bool](b, button+".click() || true")
}

// fill types into the fields of a form by their names.
func (b *tab) fill(form string, values ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(values); i += 2 {
		field := form + " [name=" + values[i] + "]"
		b.do(chromedp.Do(b.ctx, chromedp.WaitVisible(chromedp.CSS(field))))
		eval[bool](b, "(document.querySelector("+quoted(field)+").value = '') === ''")
		b.do(chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS(field), values[i+1])))
	}
}

func (b *tab) key(k string) { b.do(chromedp.Do(b.ctx, chromedp.KeyEvent(k))) }

func (b *tab) goTo(address string) {
	b.t.Helper()
	b.do(chromedp.Do(b.ctx, chromedp.Navigate(address)))
}

// signIn opens the link that signs in, and waits for the live page.
func (b *tab) signIn(token string) {
	b.t.Helper()
	b.goTo(b.at + "#t=" + token)
	b.live()
}

func (b *tab) live() {
	b.t.Helper()
	b.wait("live numbers", "document.querySelector('#link[data-mode=live]') && !document.documentElement.classList.contains('stale') && document.querySelector('#up').innerText")
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.Do(b.ctx, chromedp.EmulateViewport(width, height)))
}

func (b *tab) theme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	b.do(err)
}

// shot keeps the whole page as a picture.
func (b *tab) shot(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll("out", 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join("out", strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"), picture, 0o600)
	}
	if err != nil {
		b.t.Errorf("picture %s: %v", name, err)
	}
}

// finding is what axe-core found wrong.
type finding struct {
	ID, Help string
	Nodes    []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible looks at the page in both themes, keeps pictures, and wants no finding.
func (b *tab) accessible(name string) {
	b.t.Helper()
	for _, theme := range []string{"dark", "light"} {
		b.theme(theme)
		b.shot(name + "-" + theme)
		if eval[bool](b, "!window.axe") {
			b.do(chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
				_, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: axe})
				return err
			})))
		}
		for _, f := range eval[[]finding](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`) {
			b.t.Errorf("%s in %s: %s: %+v", name, theme, f.Help, f.Nodes)
		}
	}
}
