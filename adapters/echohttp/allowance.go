package echohttp

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// callersKept is how many callers' allowances are remembered, about 13 MB when full. Whoever is forgotten begins anew.
const callersKept = 65536

// allowance grants each caller so many requests a second, and some at once. A nil one grants everything.
type allowance struct {
	perSecond int
	burst     int
	policy    []string
	callers   *lru.Cache[string, *rate.Limiter]
}

// newAllowance gives nil where perSecond is 0. A burst below perSecond is perSecond.
func newAllowance(perSecond, burst int) *allowance {
	if perSecond <= 0 {
		return nil
	}
	burst = max(burst, perSecond)
	callers, _ := lru.New[string, *rate.Limiter](callersKept) // fails for a size below one alone
	window := int(math.Ceil(float64(burst) / float64(perSecond)))
	return &allowance{perSecond, burst, []string{fmt.Sprintf(`"buyer";q=%d;w=%d`, burst, window)}, callers}
}

// admit takes one request off what the caller may ask, and tells what is left.
func (a *allowance) admit(h http.Header, caller string) error {
	if a == nil || caller == "" {
		return nil
	}
	limiter, known := a.callers.Get(caller)
	if !known {
		limiter = rate.NewLimiter(rate.Limit(a.perSecond), a.burst)
		if first, there, _ := a.callers.PeekOrAdd(caller, limiter); there {
			limiter = first
		}
	}
	now := time.Now()
	admitted := limiter.AllowN(now, 1)
	left := limiter.TokensAt(now)
	untilFull := math.Ceil((float64(a.burst) - left) / float64(a.perSecond))
	h["Ratelimit-Policy"] = a.policy
	h["Ratelimit"] = []string{`"buyer";r=` + strconv.Itoa(max(0, int(left))) + `;t=` + strconv.Itoa(int(untilFull))}
	if !admitted {
		return &requestError{code: codeTooManyRequests, detail: strconv.Itoa(a.perSecond) + " requests a second, " + strconv.Itoa(a.burst) + " at once"}
	}
	return nil
}
