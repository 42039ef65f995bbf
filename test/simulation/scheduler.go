package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"seckill/domain"
)

// server is what a call goes to.
type server uint8

const (
	toRedis server = iota
	toLedger
	toBroker
	serversCount
)

var serverNames = [serversCount]string{"redis", "ledger", "broker"}

// plan is what becomes of a call.
type plan uint8

const (
	planRun         plan = iota
	planLoseRequest      // nothing happens, and the caller learns that it may have
	planRefuse           // nothing happens, and the caller learns so: the connection was refused
	planLoseReply        // it happens, and the caller does not learn it
	planTwice            // it happens now, and once more later
	planLate             // the caller hears of a fault, and it happens later
	planCrashBefore      // the instance dies with its request unsent
	planCrashAfter       // the instance dies before it has the reply
)

var planNames = [...]string{"runs", "request lost", "refused", "reply lost", "twice", "late", "crash before", "crash after"}

// verdict is what a parked caller is woken with.
type verdict uint8

const (
	letRun verdict = iota
	letRunUnheard
	letFail
	letRefuse
	letDie
	letRunAndDie
)

// call is one port call on its way.
type call struct {
	inst   *instance // nil: of nobody who can crash
	to     server
	who    string // use case
	what   string
	args   string // what else tells it from others
	effect bool   // it changes something
	sure   bool   // no fault may come to it
	late   func() // carries it out with nobody to hear the reply; nil: cannot come late
	once   bool   // what was heard cannot come again, and what is late comes at once

	order  int
	plan   plan
	due    time.Time
	gone   bool // the caller has left
	parked chan verdict
}

func (c *call) name() string {
	return fmt.Sprintf("%s %s %s %s", c.inst, c.who, serverNames[c.to], c.what)
}

// oneWayCall is a verdict on a half, which nobody acknowledges.
const oneWayCall = "end"

// lateAtOnce is how late a request comes whose connection is given up: the driver resets it, so that
// what is not in Redis' hands by then will never be.
const lateAtOnce = 5 * time.Millisecond

// event is something that happens at a time.
type event struct {
	due   time.Time
	order int
	name  string
	do    func()
}

// scheduler owns time and every call's fate. One thing happens at a time: it carries out the earliest
// call or event, and waits until every goroutine of the bubble is blocked again. Calls that were parked
// meanwhile are taken in in an order that does not depend on goroutines.
type scheduler struct {
	dice  *rand.Rand
	trace *trace

	mu     sync.Mutex
	fresh  []*call  // parked and not taken in
	notes  []string // of what was heard, for the trace
	wake   chan struct{}
	calls  []*call
	events []event
	orders int
	turns  int

	faulty   bool                    // the safety phase
	rate     float64                 // of faults among calls
	lateMax  time.Duration           // most that a thing comes late
	down     [serversCount]time.Time // unreachable until then
	slowFrom time.Time               // until slowTo verdicts on halves come only from then on
	slowTo   time.Time
	injected map[plan]int
	crash    func(*instance)
}

func newScheduler(seed uint64, t *trace) *scheduler {
	return &scheduler{dice: rand.New(rand.NewPCG(seed, 0x5ec)), trace: t, wake: make(chan struct{}, 1), injected: map[plan]int{}}
}

// span gives a time between least and most.
func (s *scheduler) span(least, most time.Duration) time.Duration {
	return least + time.Duration(s.dice.Int64N(int64(most-least)+1))
}

func (s *scheduler) chance(p float64) bool { return s.dice.Float64() < p }

// at plans an event; only the scheduler's own goroutine may call it.
func (s *scheduler) at(after time.Duration, name string, do func()) {
	s.orders++
	s.events = append(s.events, event{due: time.Now().Add(after), order: s.orders, name: name, do: do})
}

// What a caller hears of a fault.
var (
	errLost    error = domain.NewError(domain.CodeUnavailable, "lost on the way", nil)
	errRefused error = refusedError{domain.NewError(domain.CodeUnavailable, "connection refused", nil)}
	errDead    error = domain.NewError(domain.CodeUnavailable, "this instance is dead", nil)
)

// refusedError tells a connection that was never made from all else that is unavailable.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// note keeps a line for the trace; any goroutine may call it.
func (s *scheduler) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

type halfKey struct{}

// forHalf tells calls apart that are made for different halves and ask for the same: which of two equal
// calls is taken first would be Go's doing.
func forHalf(number int64) context.Context {
	return context.WithValue(context.Background(), halfKey{}, number)
}

// pass carries a call out when the scheduler lets it: do runs once at most, here. An error
// of pass's own is errLost, errRefused, errDead or ctx's.
func (s *scheduler) pass(ctx context.Context, c *call, do func()) error {
	c.parked = make(chan verdict, 1)
	if half, _ := ctx.Value(halfKey{}).(int64); half != 0 {
		c.args += fmt.Sprintf(" for half %d", half)
	}
	s.mu.Lock()
	if c.inst != nil && c.inst.dead {
		s.mu.Unlock()
		return errDead
	}
	s.fresh = append(s.fresh, c)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case v := <-c.parked:
		return s.carryOut(c, v, do)
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case v := <-c.parked: // both at once cannot be: one thing happens at a time
			panic(fmt.Sprint("released and left at once: ", v))
		default:
		}
		c.gone = true
		return domain.NewError(domain.CodeUnavailable, "no answer in time", ctx.Err())
	}
}

func (s *scheduler) carryOut(c *call, v verdict, do func()) error {
	switch v {
	case letRun:
		do()
		if c.inst.isDead() { // while it waited for a lock
			return errDead
		}
		return nil
	case letRunUnheard:
		do()
		return errLost
	case letRunAndDie:
		do()
		return errDead
	case letDie:
		return errDead
	case letRefuse:
		return errRefused
	default:
		return errLost
	}
}

// run goes on until done says so, or until the time is up. Whenever nothing moves it calls tend, which
// says whether something moves again.
func (s *scheduler) run(until time.Time, tend, done func() bool) {
	for {
		s.handOver()
		synctest.Wait()
		s.takeIn()
		if tend() {
			continue
		}
		if done() {
			return
		}
		due, act := s.next()
		if act == nil || due.After(until) {
			due, act = until, nil
		}
		if wait := time.Until(due); wait > 0 {
			timer := time.NewTimer(wait)
			s.handOver()
			select {
			case <-timer.C:
			case <-s.wake:
				timer.Stop()
			}
			continue // what else became due at this instant is taken in first
		}
		if act == nil {
			return
		}
		act()
	}
}

// handOver comes before the others move: what the scheduler has read and written until now happened before what
// they read and write under its lock. The bubble orders that by itself, but the race detector does not know it.
func (s *scheduler) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
}

// takeIn decides what becomes of calls that were parked.
func (s *scheduler) takeIn() {
	s.mu.Lock()
	fresh, notes := s.fresh, s.notes
	s.fresh, s.notes = nil, nil
	s.mu.Unlock()
	slices.Sort(notes)
	for _, n := range notes {
		s.trace.add("%s", n)
	}
	slices.SortStableFunc(fresh, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.name(), b.name()), cmp.Compare(a.args, b.args))
	})
	for _, c := range fresh {
		s.orders++
		c.order = s.orders
		s.choose(c)
		s.calls = append(s.calls, c)
		s.trace.add("%s(%s): %s at %s", c.name(), c.args, planNames[c.plan], since(c.due))
	}
}

func (s *scheduler) choose(c *call) {
	wait := s.span(50*time.Microsecond, 2*time.Millisecond)
	if c.sure {
		c.due = time.Now().Add(s.span(1, 1000))
		return
	}
	if s.faulty {
		if s.chance(0.01) {
			wait = s.span(10*time.Millisecond, 700*time.Millisecond)
		} else if s.chance(0.001) {
			wait = s.span(time.Second, 12*time.Second)
		}
		rate := s.rate
		if !c.effect {
			rate /= 4
		}
		if c.what == oneWayCall { // nobody notices when it is lost, so it may be lost often
			rate = 0.15
		}
		if s.chance(rate) {
			c.plan = s.fault(c)
		}
	}
	c.due = time.Now().Add(wait)
	if c.what == oneWayCall && s.faulty && time.Now().Before(s.slowTo) {
		c.due = s.slowFrom.Add(s.span(0, s.slowTo.Sub(s.slowFrom)))
	}
}

func (s *scheduler) fault(c *call) plan {
	options := []plan{planLoseRequest, planRefuse}
	if c.effect {
		options = []plan{planLoseRequest, planRefuse, planLoseReply, planLoseReply}
	}
	if c.effect && c.late != nil {
		options = append(options, planLate)
	}
	if c.effect && c.late != nil && !c.once {
		options = append(options, planTwice)
	}
	if c.inst != nil && s.chance(0.08) {
		options = []plan{planCrashBefore, planCrashAfter}
	}
	return options[s.dice.IntN(len(options))]
}

// next gives the earliest call or event.
func (s *scheduler) next() (time.Time, func()) {
	var due time.Time
	var order int
	var act func()
	for i := range s.events {
		if e := &s.events[i]; act == nil || e.due.Before(due) || e.due.Equal(due) && e.order < order {
			due, order = e.due, e.order
			act = func() {
				e := s.events[i]
				s.events = slices.Delete(s.events, i, i+1)
				s.trace.add("event %s", e.name)
				e.do()
			}
		}
	}
	for i, c := range s.calls {
		if act == nil || c.due.Before(due) || c.due.Equal(due) && c.order < order {
			due, order = c.due, c.order
			act = func() {
				s.calls = slices.Delete(s.calls, i, i+1)
				s.release(c)
			}
		}
	}
	return due, act
}

// release lets a call go its way.
func (s *scheduler) release(c *call) {
	s.mu.Lock()
	gone := c.gone || c.inst != nil && c.inst.dead
	s.mu.Unlock()
	if gone { // its caller has given up or died; the request may still arrive
		if c.effect && !c.once && c.late != nil && c.plan != planLoseRequest && c.plan != planRefuse {
			s.trace.add("late: %s(%s)", c.name(), c.args)
			go c.late()
		}
		return
	}
	p := c.plan
	if time.Now().Before(s.down[c.to]) && !c.sure {
		p = planLoseRequest
		if c.order%2 == 0 {
			p = planRefuse
		}
	}
	s.injected[p]++
	s.trace.add("%s(%s) %s", c.name(), c.args, planNames[p])
	switch p {
	case planRun:
		c.parked <- letRun
	case planTwice:
		s.comeLate(c)
		c.parked <- letRun
	case planLoseReply:
		c.parked <- letRunUnheard
	case planLate:
		s.comeLate(c)
		c.parked <- letFail
	case planRefuse:
		c.parked <- letRefuse
	case planLoseRequest:
		c.parked <- letFail
	case planCrashBefore:
		s.crash(c.inst)
		c.parked <- letDie
	case planCrashAfter:
		s.crash(c.inst)
		c.parked <- letRunAndDie
	}
}

// abandon wakes everybody who waits in an instance that has died. What they asked for may still arrive.
func (s *scheduler) abandon(inst *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inst.dead = true
	for _, c := range s.calls {
		if c.inst == inst && !c.gone {
			c.gone = true
			c.parked <- letDie
		}
	}
}

// comeLate carries a call out once more, later. A verdict on its way to the broker may come very late:
// what is late at a server must come before its client has given up.
func (s *scheduler) comeLate(c *call) {
	late, most := c.late, s.lateMax
	switch {
	case c.once:
		most = lateAtOnce
	case c.what == oneWayCall:
		most *= 10
	}
	s.at(s.span(time.Millisecond, most), "late copy of "+c.name()+" "+c.args, func() { go late() })
}
