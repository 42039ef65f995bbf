package doorclient

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// New gives a client of the door at base, an http or https URL, which sends bearer as its token; "" sends none. doer makes
// the requests and bounds their time; nil is a plain http.Client. A base that is no such URL is an error.
//
// net/http sends a request again by itself after a torn connection when it has an Idempotency-Key and its body can be had once
// more. Whoever buys has to know how often it asked, so here no body can.
func New(base, bearer string, doer HttpRequestDoer) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no http URL of a door", base)
	}
	if doer == nil {
		doer = &http.Client{}
	}
	return NewClient(base, WithHTTPClient(doer), WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.GetBody = nil
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		return nil
	}))
}
