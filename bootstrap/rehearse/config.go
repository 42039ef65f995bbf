package rehearse

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"seckill/domain"
)

// The forms of the result.
const (
	OutputText = "text"
	OutputJSON = "json"
	OutputLine = "jsonl" // JSON on one line
)

// Config is one rehearsal.
type Config struct {
	Target        string                           // buyers' door, with scheme
	Admin         string                           // operators' door, with scheme
	BuyerToken    func(sub string) (string, error) // bearer token of a buyer
	OperatorToken string                           // bearer token with stock:admin and ops:read

	Buyers      int     // distinct buyers, spread over the products
	Units       int64   // units of each product
	Products    int     // fresh products
	Repeats     float64 // share of buyers that ask twice with the same token, 0 to 1
	Connections int     // closed loop: so many buyers at a time; 0 with Rate 0: 50
	Rate        float64 // open loop: so many new buyers a second; not with Connections

	Settle         time.Duration // from the end of the load until everything must be settled; 0: 60 s
	RequestTimeout time.Duration // of one HTTP request; 0: 10 s
	InFlightMax    int           // open loop: buyers at a time; one more means that the plan cannot be kept; 0: 10,000
	LateMax        time.Duration // open loop: how far the generator may fall behind its plan; 0: 1 s

	JournalPath string // file for what each buyer was told, JSON lines; empty: none
	Output      string // OutputText (also if empty), OutputJSON or OutputLine
	HTMLPath    string // file for the report as a page; empty: none
	FailIf      []Threshold
	Paint       Paint // colours of the text; nil: none
	Plain       bool  // no bars, also on a terminal
}

const buyersMax = 10_000_000

func (c Config) withDefaults() Config {
	if c.Connections == 0 && c.Rate == 0 {
		c.Connections = 50
	}
	c.Settle = orElse(c.Settle, 60*time.Second)
	c.RequestTimeout = orElse(c.RequestTimeout, 10*time.Second)
	c.LateMax = orElse(c.LateMax, time.Second)
	c.InFlightMax = orElse(c.InFlightMax, 10_000)
	c.Output = orElse(c.Output, OutputText)
	return c
}

func orElse[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// check lists every mistake at once, as CodeInvalidRequest.
func (c Config) check() error {
	var faults []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	must(c.Buyers >= 1 && c.Buyers <= buyersMax, "buyers must be 1 to %d", buyersMax)
	must(c.Units >= 1, "units must be at least 1")
	must(c.Products >= 1 && c.Products <= 100_000, "products must be 1 to 100000")
	must(c.Repeats >= 0 && c.Repeats <= 1, "repeats is a share between 0 and 1")
	must(c.Connections >= 0 && c.Connections <= 50_000, "connections must be 1 to 50000")
	must(c.Rate >= 0 && c.Rate <= 1e6, "rate must be above 0 and at most 1000000 a second")
	must(c.Rate == 0 || c.Connections == 0, "either connections or rate, not both")
	must(c.InFlightMax >= 1, "the most buyers in flight must be at least 1")
	must(c.Settle > 0 && c.RequestTimeout > 0 && c.LateMax > 0, "times must be positive")
	must(c.Output == OutputText || c.Output == OutputJSON || c.Output == OutputLine, "output %q is neither text, json nor jsonl", c.Output)
	must(c.BuyerToken != nil, "no way to make buyers' tokens")
	for name, door := range map[string]string{"target": c.Target, "admin": c.Admin} {
		u, err := url.Parse(door)
		must(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "",
			"%s %q is no http address", name, door)
	}
	if len(faults) == 0 {
		return nil
	}
	return domain.NewError(domain.CodeInvalidRequest, errors.Join(faults...).Error(), nil)
}

// atOnce is how many buyers the load has at a time, at most.
func (c Config) atOnce() int {
	if c.Rate > 0 {
		return c.InFlightMax
	}
	return c.Connections
}

// readers is how many requests at a time look at the result.
func (c Config) readers() int { return max(4, min(c.atOnce(), 64)) }
