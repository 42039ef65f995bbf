//go:build stack

package console

import (
	"fmt"
	"testing"

	"go.uber.org/fx"

	"seckill/adapters/echohttp/console"
	"seckill/application"
	"seckill/bootstrap"
	"seckill/test/shop"
)

// The embedded demo's own page buys, and shows at once what that does.
func TestADemosPageBuysAndShowsTheEffectLive(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Embedded)
	s.StartHere(fx.Supply(bootstrap.Demo(true)))
	s.OpenSale("phone", 3, 2)
	s.OpenSale("tv", 5, 0)
	b := open(t, s.Operators()+"/console")
	b.signIn(s.OperatorToken())
	sold := func(product, units string) {
		b.wait(units+" of "+product+" sold", fmt.Sprintf("document.querySelector('[data-product=%s] td:nth-child(5)').innerText === '%s' && document.querySelector('[data-product=%s]').innerText.includes('agree at rest')", product, units, product))
	}
	b.press("#buy", "Buy")
	b.says("#bought", "Accepted: 1 unit of phone for u-1; pending, 2 left.")
	sold("phone", "1")
	b.says("#feed-rows", "u-1")
	b.accessible("accepted")
	b.press("#buy", "Same token again")
	b.says("#bought", "Repeat: this token is known, and its order is confirmed. Nothing was taken a second time.")
	b.press("#bought", "Trace it")
	b.says("#trace-result", "1 unit, confirmed")
	sold("phone", "1")
	b.excuse("status of 409")
	b.fill("#buy", "quantity", "2")
	b.press("#buy", "Buy")
	b.says("#bought", "Refused: this buyer would have more than one may.")
	b.fill("#buy", "userId", "u-2")
	b.press("#buy", "Buy")
	b.says("#bought", "Accepted: 2 units of phone for u-2; pending, 0 left.")
	b.says("[data-product=phone]", "sold out")
	b.fill("#buy", "userId", "u-3")
	b.press("#buy", "Buy")
	b.says("#bought", "Refused: fewer units are left than were asked for.")
	b.size(390, 844)
	b.accessible("refused-narrow")
	if eval[bool](b, "document.documentElement.scrollWidth > innerWidth") {
		t.Error("has to be moved sideways")
	}
	eval[bool](b, "(document.querySelector('#buy [name=productId]').value = 'tv') === 'tv'")
	b.press("#buy", "Buy")
	b.says("#bought", "Accepted: 2 units of tv for u-3; pending, 3 left.")
	sold("tv", "2")
	s.HoldsEventually("phone")
}

func TestAPurchaseWithoutAnAnswerIsNotKnownAndAskedAgainUnderItsToken(t *testing.T) {
	t.Parallel()
	s := onStage(t, func(c *console.Config) { c.Demo = true })
	unknown := refusal(503, "outcome-unknown", "The outcome is not known yet")
	s.on("POST demo/purchases", unknown)
	b := open(t, s.at)
	b.excuse("status of 503", "status of 403")
	b.signIn("all")
	b.press("#buy", "Buy")
	b.says("#bought", "Not known: Whether it was done is not known yet. Ask again: it is never done twice.")
	b.accessible("unknown")
	s.on("POST demo/purchases", func(asked) (int, any) { return 202, map[string]any{"status": "pending", "remaining": 59} })
	b.press("#buy", "Same token again")
	b.says("#bought", "Accepted: 1 unit of phone for u-1; pending, 59 left.")
	s.on("POST demo/purchases", refusal(403, "sale-closed", "The sale is closed"))
	b.press("#buy", "Buy")
	b.says("#bought", "Refused: the sale is paused, or outside of its window.")
	sent := s.called()
	if len(sent) != 3 || sent[0].key == "" || sent[1].key != sent[0].key || sent[2].key == sent[0].key ||
		fmt.Sprint(sent[0].body) != "map[productId:phone quantity:1 userId:u-1]" || fmt.Sprint(sent[1].body) != fmt.Sprint(sent[0].body) {
		t.Errorf("sent %+v", sent)
	}
	s.show(func(v *application.Overview) { v.Products = nil })
	b.wait("nothing to buy", "!document.querySelector('#buy [name=productId]').options.length")
	b.press("#buy", "Buy") // the browser asks for a product first
	if sent := s.called(); len(sent) != 3 {
		t.Errorf("sent %+v", sent)
	}
}

func TestAPageWithoutADemoHasNothingThatBuys(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := s.play(t, "all")
	if eval[bool](b, "!!document.querySelector('#demo, #buy, #bought')") {
		t.Error("it has a form that buys")
	}
}
