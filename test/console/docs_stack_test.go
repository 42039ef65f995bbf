//go:build stack

package console

import (
	"testing"

	"seckill/test/shop"
)

// What the doors say of themselves is read on a phone, too.
func TestTheDoorsDescriptionsAreReadWithoutMovingThemSideways(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Embedded)
	s.StartHere()
	for name, at := range map[string]string{
		"buyers": s.Buyers() + "/docs", "operators": s.Operators() + "/docs?productId=phone&userId=alice&token=try-1",
		"problems": s.Buyers() + "/problems", "problem": s.Operators() + "/problems/outcome-unknown",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, at)
			b.goTo(at)
			for size, width := range map[string]int64{"narrow": 390, "wide": 1440} {
				b.size(width, 844)
				if wide := eval[[]string](b, `[...document.querySelectorAll("body *")].filter((x) => !x.closest("pre, .scroll") && x.getBoundingClientRect().right > innerWidth + 0.5).map((x) => x.outerHTML.slice(0, 120))`); len(wide) > 0 ||
					eval[bool](b, "document.documentElement.scrollWidth > innerWidth") {
					t.Errorf("%s has to be moved sideways for %v", size, wide)
				}
				b.accessible(size)
			}
		})
	}
}
