package application

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// The verdicts on what a promise hangs on; VerdictUnknown is the fourth.
const (
	VerdictRight = "right"
	VerdictNote  = "note"  // fine as it is; an operator should know it
	VerdictWrong = "wrong" // a promise hangs on it
)

// ExamineConfig bounds an examination, and has the settings of the service that the servers' must fit.
type ExamineConfig struct {
	Total         time.Duration // for all questions
	Grace         time.Duration // after it, for who is still reading an answer
	CheckTimeout  time.Duration // what the service takes for the broker's transactionTimeOut
	CheckInterval time.Duration // the same of transactionCheckInterval
	FlowBytes     int64         // of memory that the gate needs for one purchase
	PoolMax       int           // connections of one instance to the database
	InFlightMax   int           // requests at work at one time
}

// DefaultExamineConfig leaves the service's settings to the caller.
func DefaultExamineConfig() ExamineConfig {
	return ExamineConfig{Total: 8 * time.Second, Grace: time.Second, CheckTimeout: 10 * time.Second, CheckInterval: 10 * time.Second,
		FlowBytes: 512, PoolMax: 16, InFlightMax: 20000}
}

// ExamineCheck is one finding: what is right, what was found, why it matters and how to change it.
type ExamineCheck struct {
	Part    string `json:"part"`
	Node    string `json:"node"` // what was asked; empty for the part as a whole
	Name    string `json:"name"`
	Verdict string `json:"verdict"` // right, note, wrong, unknown
	Found   string `json:"found"`   // for unknown: why it could not be read
	Right   string `json:"right"`
	Why     string `json:"why"`
	Change  string `json:"change"`
	Matters bool   `json:"matters"` // a promise hangs on it: unknown is no comfort
}

// Examination is the whole of it. Healthy: nothing is wrong, and nothing that matters is unknown.
type Examination struct {
	At      time.Time      `json:"at"`
	Healthy bool           `json:"healthy"`
	Wrong   int            `json:"wrong"`
	Unknown int            `json:"unknown"` // of what matters
	Notes   int            `json:"notes"`   // what is unknown and does not matter much is one, too
	Checks  []ExamineCheck `json:"checks"`
}

// Examine reads the settings and the state of the live servers and judges them by one table of rules.
type Examine struct {
	inspections []*inspection
	catalog     port.Catalog
	gate        port.GateAdmin
	clock       port.Clock
	cfg         ExamineConfig
	slot        chan struct{} // one at a time, whoever asks
}

// PartInspector is an inspector of one of the parts.
type PartInspector struct {
	Part      string
	Inspector port.Inspector
}

// inspection is an inspector under way. One that does not come back is not begun again until it has, so that it
// costs one goroutine and no more.
type inspection struct {
	PartInspector
	running atomic.Bool
}

// NewExamine takes the inspectors in the order in which they are shown.
func NewExamine(inspectors []PartInspector, catalog port.Catalog, gate port.GateAdmin, clock port.Clock, cfg ExamineConfig) *Examine {
	e := &Examine{catalog: catalog, gate: gate, clock: clock, cfg: cfg, slot: make(chan struct{}, 1)}
	for _, i := range inspectors {
		e.inspections = append(e.inspections, &inspection{PartInspector: i})
	}
	return e
}

// Examine asks all parts at once. What cannot be read is unknown and no error; the error is ctx's alone.
func (e *Examine) Examine(ctx context.Context) (Examination, error) {
	select {
	case e.slot <- struct{}{}:
		defer func() { <-e.slot }()
	case <-ctx.Done():
		return Examination{}, ctx.Err()
	}
	at := e.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Total)
	defer cancel()
	var books bookChecks
	var both sync.WaitGroup
	both.Go(func() { books = e.lookAtBooks(ctx) })
	readings := e.inspect(ctx)
	both.Wait()
	judged := Examination{At: at, Checks: []ExamineCheck{}}
	f := facts{cfg: e.cfg, unitsLeft: books.unitsLeft, unitsKnown: books.known}
	f.read(readings)
	for _, r := range readings {
		if check, ruled := judge(r, f); ruled {
			judged.add(check)
		}
	}
	for _, check := range books.checks {
		judged.add(check)
	}
	judged.Healthy = judged.Wrong == 0 && judged.Unknown == 0
	return judged, nil
}

func (x *Examination) add(c ExamineCheck) {
	switch {
	case c.Verdict == VerdictWrong:
		x.Wrong++
	case c.Verdict == VerdictUnknown && c.Matters:
		x.Unknown++
	case c.Verdict != VerdictRight:
		x.Notes++
	}
	x.Checks = append(x.Checks, c)
}

// inspect asks the inspectors side by side. One that does not come back in time is left behind, and its part
// is not reachable.
func (e *Examine) inspect(ctx context.Context) []port.Reading {
	answers := make([]chan []port.Reading, len(e.inspections))
	for n, i := range e.inspections {
		if i.running.CompareAndSwap(false, true) {
			answer := make(chan []port.Reading, 1)
			answers[n] = answer
			go func() { answer <- i.inspect(ctx) }()
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Total+e.cfg.Grace)
	defer cancel()
	var all []port.Reading
	for n, i := range e.inspections {
		found, answered := await(late, answers[n])
		if !answered {
			found = []port.Reading{unreadable(i.Part, "it did not answer in time")}
		}
		all = append(all, found...)
	}
	return all
}

// await gives an answer that is there even when the time has run out meanwhile; a nil channel has none.
func await(late context.Context, answer chan []port.Reading) ([]port.Reading, bool) {
	select {
	case found := <-answer:
		return found, true
	case <-late.Done():
	}
	select {
	case found := <-answer:
		return found, true
	default:
		return nil, false
	}
}

func (i *inspection) inspect(ctx context.Context) (found []port.Reading) {
	defer i.running.Store(false)
	defer func() {
		if cause := recover(); cause != nil {
			found = []port.Reading{unreadable(i.Part, "the inspection failed")}
		}
	}()
	if found = i.Inspector.Inspect(ctx); len(found) == 0 {
		found = []port.Reading{unreadable(i.Part, "nothing could be read")}
	}
	return found
}

func unreadable(part, detail string) port.Reading {
	return port.Reading{Part: part, Name: port.ReadReachable, Detail: detail}
}

// judge applies the rule of a reading; a reading without one is not shown.
func judge(r port.Reading, f facts) (ExamineCheck, bool) {
	rule, ruled := ruleOf(r.Part, r.Name)
	if !ruled {
		return ExamineCheck{}, false
	}
	c := ExamineCheck{Part: r.Part, Node: r.Node, Name: string(r.Name), Verdict: VerdictUnknown, Found: r.Detail,
		Right: rule.want(f), Why: rule.why, Change: rule.change, Matters: rule.matters}
	if !r.Known {
		return c, true
	}
	c.Verdict, c.Found = rule.judge(r, f), rule.show(r)
	if c.Verdict == VerdictUnknown {
		c.Found += "; what it has to be compared with could not be read"
	}
	return c, true
}

// LogFindings says each finding once, at the start of a service.
func (x Examination) LogFindings(log *slog.Logger) {
	for _, c := range x.Checks {
		at := []any{"event", "doctor_finding", "part", c.Part, "node", c.Node, "setting", c.Name, "found", c.Found,
			"right", c.Right, "why", c.Why, "change", c.Change}
		switch {
		case c.Verdict == VerdictWrong:
			log.Error("a setting that the promise hangs on is wrong", at...)
		case c.Verdict == VerdictUnknown && c.Matters:
			log.Warn("a setting that the promise hangs on could not be read", at...)
		}
	}
}

// bookChecks is what ledger and gate say about the products.
type bookChecks struct {
	checks    []ExamineCheck
	unitsLeft int64
	known     bool // unitsLeft
}

const (
	nameProducts = "products"
	nameWentBack = "database-went-back"
	nameDamaged  = "product-damaged"
)

// lookAtBooks compares the stock rows with what the gate was told, and counts the units that may still be sold.
func (e *Examine) lookAtBooks(ctx context.Context) bookChecks {
	var b bookChecks
	compared := ExamineCheck{Part: port.PartLedger, Name: nameProducts, Verdict: VerdictUnknown, Matters: true,
		Right: "no stock row is behind what the gate was told", Why: whyWentBack, Change: "make gate and ledger reachable, then ask again"}
	seen := 0
	for after := ""; ; {
		stocks, err := e.catalog.List(ctx, after, lookPage)
		if err != nil {
			compared.Found = "the products could not be read"
			b.checks = append(b.checks, compared)
			return b
		}
		for _, s := range stocks {
			b.unitsLeft += s.Remaining()
			b.noteDamaged(s)
		}
		if err := e.compare(ctx, stocks, &b); err != nil && compared.Found == "" {
			compared.Found = "the gate could not be compared with the stock rows"
		}
		seen += len(stocks)
		if len(stocks) < lookPage {
			break
		}
		after = stocks[len(stocks)-1].Product()
	}
	b.known = true
	if compared.Found == "" && len(b.checks) == 0 {
		compared.Verdict, compared.Found = VerdictRight, fmt.Sprintf("%d products compared", seen)
	}
	if compared.Found != "" {
		b.checks = append(b.checks, compared)
	}
	return b
}

func (b *bookChecks) noteDamaged(s domain.Stock) {
	if s.State() == domain.SaleDamaged {
		b.found(nameDamaged, s.Product(), s.Reason())
	}
}

func (b *bookChecks) found(name, product, what string) {
	if len(b.checks) >= findingsMax {
		return
	}
	b.checks = append(b.checks, ExamineCheck{Part: port.PartLedger, Node: product, Name: name, Verdict: VerdictWrong,
		Found: what, Right: "the stock row is at the version that the gate was told, or beyond",
		Why: whyWentBack, Change: changeWentBack, Matters: true})
}

// compare finds the products whose stock row is behind their gate.
func (e *Examine) compare(ctx context.Context, stocks []domain.Stock, b *bookChecks) error {
	odd, judgements, err := judgeGates(ctx, e.catalog, e.gate, stocks)
	for i, s := range odd {
		if judgements[i].verdict == ledgerBack {
			b.found(nameWentBack, s.Product(), judgements[i].reason)
		}
	}
	return err
}
