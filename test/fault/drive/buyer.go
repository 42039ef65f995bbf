package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"seckill/application"
	"seckill/test/fault/campaign"
	"seckill/test/shop"
)

// repeatEvery: of so many buyers who have bought, one asks once more.
const repeatEvery = 10

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 3 * time.Second
	slots        = 128 // repeats under way at once
)

// told is one answer of the journal.
type told struct {
	application.JournalEntry
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"`
	Code   string    `json:"code,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// buyer is one purchase and all that it was told. The run's lock guards it.
type buyer struct {
	number      int
	user, token string
	told        []told
	content     bool // it asks for nothing more
}

// answer is the last that stands, of the purchase or of its cancel.
func (b *buyer) answer(cancel bool) application.Answer {
	for _, t := range slices.Backward(b.told) {
		if t.Cancel == cancel && t.Answer != application.AnswerUnknown {
			return t.Answer
		}
	}
	return application.AnswerUnknown
}

func (b *buyer) wasTold(a application.Answer) bool {
	return slices.ContainsFunc(b.told, func(t told) bool { return !t.Cancel && t.Answer == a })
}

// cancels says that the buyer has begun to cancel.
func (b *buyer) cancels() bool { return len(b.told) > 0 && b.told[len(b.told)-1].Cancel }

// buy asks until the answer stands, at another door each time. Of those who have bought, some ask once
// more, some cancel. A refused one does not ask again: it could buy what another has given back.
func (r *run) buy(ctx context.Context, b *buyer) {
	answer := r.insist(ctx, b, r.ask)
	switch {
	case answer != application.AnswerAccepted:
	case r.sale.CancelEvery > 0 && b.number%r.sale.CancelEvery == 1:
		r.insist(ctx, b, r.cancel)
	case b.number%repeatEvery == 0 && pause(ctx, 500*time.Millisecond):
		r.ask(ctx, b, 1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b.content = true
}

// insist asks until the answer stands, or ctx ends. All but first requests share a number of slots, so
// that those who wait do not keep the service from its work.
func (r *run) insist(ctx context.Context, b *buyer, ask func(context.Context, *buyer, int) (application.Answer, time.Duration)) application.Answer {
	answer, wish := ask(ctx, b, 0)
	for try := 1; answer == application.AnswerUnknown; try++ {
		if !pause(ctx, max(min(firstPause<<min(try-1, 8), longestPause), min(wish, longestPause))) {
			return answer
		}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return answer
		}
		answer, wish = ask(ctx, b, try)
		<-r.slots
	}
	return answer
}

// ask asks for the purchase once and keeps the answer; it gives what that means, and how long the service
// wishes the buyer to wait.
func (r *run) ask(ctx context.Context, b *buyer, try int) (application.Answer, time.Duration) {
	a := r.door(b, try).Buy(ctx, r.sale.Product, b.user, b.token, 1)
	return r.keep(ctx, b, a, false, meaning(a))
}

// cancel is ask for the purchase's cancel.
func (r *run) cancel(ctx context.Context, b *buyer, try int) (application.Answer, time.Duration) {
	a := r.door(b, try).Cancel(r.sale.Product, b.user, b.token)
	means := application.AnswerUnknown
	if a.Definite() {
		means = application.AnswerRefused
		if a.Text("status") == application.OrderCancelled {
			means = application.AnswerAccepted
		}
	}
	return r.keep(ctx, b, a, true, means)
}

func (r *run) door(b *buyer, try int) *shop.Shop {
	return r.sale.Doors[(b.number+try)%len(r.sale.Doors)]
}

func (r *run) keep(ctx context.Context, b *buyer, a shop.Answer, cancel bool, means application.Answer) (application.Answer, time.Duration) {
	if ctx.Err() != nil {
		return application.AnswerUnknown, 0 // sent home
	}
	entry := told{At: time.Now().UTC(), Status: a.Status, Code: codeOf(a), JournalEntry: r.entry(b, cancel, means)}
	if a.Err != nil {
		entry.Detail = a.Err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Requests++
	if a.Header.Get("Idempotency-Replayed") == "true" {
		r.counts.Seen["repeats answered with their order"]++
	}
	b.told = append(b.told, entry)
	seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	return means, time.Duration(seconds) * time.Second
}

func (r *run) entry(b *buyer, cancel bool, answer application.Answer) application.JournalEntry {
	e := application.JournalEntry{Product: r.sale.Product, User: b.user, Token: b.token, Cancel: cancel, Answer: answer}
	if !cancel {
		e.Quantity = 1
	}
	return e
}

// meaning is what an answer tells its buyer.
func meaning(a shop.Answer) application.Answer {
	switch status := a.Text("status"); {
	case !a.Definite():
		return application.AnswerUnknown
	case a.Accepted() && status != application.OrderRejected && status != application.OrderCancelled:
		return application.AnswerAccepted
	}
	return application.AnswerRefused
}

func codeOf(a shop.Answer) string {
	switch code := string(a.Code()); {
	case a.Err != nil && a.Status == 0:
		return "no-answer"
	case code != "":
		return code
	case a.Accepted():
		return a.Text("status")
	}
	return strconv.Itoa(a.Status)
}

// waiting counts the buyers who have not come to their end, with one of them.
func (r *run) waiting() (n int, example string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.buyers {
		if !b.content {
			n++
			example = b.user
			if len(b.told) > 0 {
				example = fmt.Sprintf("%+v", b.told[len(b.told)-1])
			}
		}
	}
	return n, example
}

// judge counts what the buyers were told, has the journal verified, and adds it all to the figures.
func (r *run) judge(from time.Time, v application.Verification, settled time.Duration) Result {
	r.t.Helper()
	journal, contradicted := r.count()
	accepted := r.counts.Accepted
	judged := r.verifyJournal(journal)
	for settled > 0 && undecided(judged) { // a loss that was noticed after the books had agreed: what it costs counts, too
		v, settled = r.settle(from)
		judged = r.verifyJournal(journal)
	}
	for i, s := range r.sale.Doors {
		for _, o := range s.Reopenings()[r.begun[i]:] {
			if o.Product == r.sale.Product {
				r.counts.Closed = append(r.counts.Closed, o.Closed.Seconds())
			}
		}
	}
	if settled > 0 {
		r.counts.Settle = []float64{settled.Seconds()}
	}
	r.checkVerdicts(judged, contradicted)
	cancelled := r.counts.Seen["cancelled"]
	if v.Holds && judged.Confirmed != accepted-cancelled+r.sale.Strangers && r.counts.Residual == 0 {
		r.violation("C", 1, "%d accepted, %d of them cancelled, %d orders of others, and %d orders are confirmed",
			accepted, cancelled, r.sale.Strangers, judged.Confirmed)
	}
	if r.counts.Broken() > 0 {
		r.keepJournal()
	}
	r.sale.Figures.Add(r.counts)
	r.t.Logf("%s: %d accepted, %d refused, first unknown %v, ended %v; settled in %v", r.sale.Product, accepted, r.counts.Refused,
		r.counts.Unknown, r.counts.Ended, settled.Round(time.Millisecond))
	return Result{Product: r.sale.Product, Settled: settled, Verification: judged, Journal: journal, Figures: r.counts}
}

// count fills the counts and gives the journal, in the order of the answers of each buyer, and how many
// were told accepted and later otherwise.
func (r *run) count() (journal []application.JournalEntry, contradicted int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.buyers {
		last := b.answer(false)
		switch last {
		case application.AnswerAccepted:
			r.counts.Accepted++
		case application.AnswerRefused:
			r.counts.Refused++
			r.counts.Seen["refused: "+b.told[len(b.told)-1].Code]++
		case application.AnswerUnknown:
		}
		end := string(last)
		if b.cancels() {
			if end = "cancelled"; b.answer(true) != application.AnswerAccepted {
				end = "not cancelled"
			}
			r.counts.Seen[end]++
			journal = append(journal, r.entry(b, true, b.answer(true)))
		}
		if len(b.told) > 0 && b.told[0].Answer == application.AnswerUnknown {
			r.counts.Unknown[b.told[0].Code]++
			r.counts.Ended[end]++
		}
		if last == application.AnswerRefused && b.wasTold(application.AnswerAccepted) {
			contradicted++
		}
		// What was accepted once was promised: the journal holds the service to it.
		if b.wasTold(application.AnswerAccepted) {
			last = application.AnswerAccepted
		}
		journal = append(journal, r.entry(b, false, last))
	}
	r.counts.AcceptedThenRefused = contradicted
	return journal, contradicted
}

// verifyJournal has a process of its own open the servers; the embedded folder has room for one.
func (r *run) verifyJournal(journal []application.JournalEntry) application.Verification {
	r.t.Helper()
	s := r.sale.Doors[0].For(r.t)
	if s.Profile == shop.Embedded && !s.RunsHere() {
		s.Stop()
		defer s.Start()
	}
	return s.VerifyJournalOf(r.sale.Product, journal)
}

// undecided reports whether nothing is broken, and something moves still.
func undecided(v application.Verification) bool {
	return !v.Holds && !slices.ContainsFunc(v.Invariants, func(i application.InvariantResult) bool { return i.Broken > 0 })
}

// checkVerdicts takes over what verify found broken, less what both stores have lost.
func (r *run) checkVerdicts(v application.Verification, contradicted int64) {
	r.t.Helper()
	residual := int64(0)
	if r.sale.MayEndRejected != nil {
		residual = r.sale.MayEndRejected()
	}
	for _, i := range v.Invariants {
		broken := i.Broken
		if i.Name == "D" {
			r.counts.AcceptedThenRefused = max(contradicted, broken)
			broken = max(contradicted, broken)
			r.counts.Residual = min(broken, residual)
			broken -= r.counts.Residual
		}
		switch {
		case broken > 0:
			r.violation(i.Name, broken, "%+v", i.Findings)
		case i.Verdict == application.VerdictUnknown:
			r.violation(i.Name, 1, "could not be decided: %+v", i.Findings)
		}
	}
}

// keepJournal leaves every answer beside the figures, for whoever looks for the cause.
func (r *run) keepJournal() {
	r.t.Helper()
	folder, err := campaign.Folder()
	if err != nil {
		r.t.Error(err)
		return
	}
	var lines []byte
	for _, b := range r.buyers {
		for _, entry := range b.told {
			line, err := json.Marshal(entry)
			if err != nil {
				r.t.Error(err)
				return
			}
			lines = append(append(lines, line...), '\n')
		}
	}
	path := filepath.Join(folder, r.sale.Product+".journal.jsonl")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		r.t.Error(err)
		return
	}
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		r.t.Error(err)
		return
	}
	r.t.Logf("every answer is in %s", path)
}

// pause waits half the time to all of it; false says that ctx ended.
func pause(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(most/2 + rand.N(most/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
