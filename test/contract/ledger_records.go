package contract

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

var recordCases = []ledgerTest{
	{"a message is parked once", parkOnce},
	{"the record of a failure does not fail", parkOversized},
	{"parked plain messages come back when their product is open", parkReplayable},
	{"parked messages are listed newest first, a page at a time", parkPages},
	{"parked messages are found by reason and product, oldest first, and listed, newest first", parkFinds},
	{"parked messages are read by id", parkReads},
	{"an audit row of any size is kept", auditAny},
	{"reports are stored, replaced and listed", reports},
	{"barriers are remembered and forgotten", barriers},
	{"the books of a product that is not there", booksUnknown},
	{"an order's stock flow rows are read, what was taken first", bookMovements},
}

func (c *ledgerCase) parked(reason port.ParkReason, product, body string, offset int64) port.Parked {
	return port.Parked{ID: c.ids.Unique(), Reason: reason, Detail: "why", Product: product, Body: []byte(body),
		Origin:   port.Origin{MessageID: "m1", Queue: "topic/broker/0", Offset: offset, Times: 3},
		ParkedAt: time.Now().UTC().Truncate(time.Millisecond)}
}

func parkOnce(c *ledgerCase) {
	message := c.parked(port.ParkPoison, "p", "body", 1)
	again := message
	again.ID, again.Origin.Times = c.ids.Unique(), 4
	c.ok(c.Park(c.ctx(), []port.Parked{message, c.parked(port.ParkPoison, "p", "other part", 1)}), "park")
	c.ok(c.Park(c.ctx(), []port.Parked{again}), "park again")
	c.ok(c.Park(c.ctx(), nil), "park nothing")
	n, err := c.CountParked(c.ctx())
	c.ok(err, "count")
	wantEqual(c, n, 2, "parked")
	list, err := c.ListParked(c.ctx(), "", "", "", 10)
	c.ok(err, "list")
	i := slices.IndexFunc(list, func(p port.Parked) bool { return p.ID == message.ID })
	wantEqual(c, i >= 0, true, "the first is listed")
	got := list[i]
	wantEqual(c, string(got.Body), "body", "body")
	wantEqual(c, got.Origin, message.Origin, "origin")
	wantEqual(c, got.ParkedAt, message.ParkedAt, "parked at")
	wantEqual(c, got.Reason, port.ParkPoison, "reason")
	wantEqual(c, got.Detail+got.Product, "whyp", "detail and product")
}

func parkOversized(c *ledgerCase) {
	message := c.parked(port.ParkMalformed, strings.Repeat("x", 300), strings.Repeat("b", 100<<10), 1)
	message.Detail = strings.Repeat("ä", 2000) + "\xff\x00"
	message.Origin.MessageID, message.Origin.Queue = strings.Repeat("m", 999), strings.Repeat("q", 999)
	empty := c.parked(port.ParkMalformed, "", "", 2)
	empty.Body, empty.ParkedAt = nil, time.Time{}
	c.ok(c.Park(c.ctx(), []port.Parked{message, empty}), "park")
	list, err := c.ListParked(c.ctx(), "", "", "", 10)
	c.ok(err, "list")
	wantEqual(c, len(list), 2, "parked")
	for _, p := range list {
		wantEqual(c, p.ParkedAt.IsZero(), false, "no time")
		wantEqual(c, len(p.Body) <= 64<<10 && len(p.Detail) <= 500, true, "cut")
	}
}

func parkReplayable(c *ledgerCase) {
	c.open("open", 1)
	c.sale("shut", 1)
	waits := c.parked(port.ParkNotOpen, "shut", "a", 1)
	ready, later := c.parked(port.ParkNotOpen, "open", "b", 2), c.parked(port.ParkNotOpen, "open", "c", 3)
	c.ok(c.Park(c.ctx(), []port.Parked{later, waits, ready, c.parked(port.ParkPoison, "open", "d", 4)}), "park")
	list, err := c.Replayable(c.ctx(), 10)
	c.ok(err, "replayable")
	wantEqual(c, len(list), 2, "replayable")
	wantEqual(c, list[0].ID, ready.ID, "the oldest first")
	c.ok(c.MarkReplayed(c.ctx(), []string{ready.ID, later.ID}), "mark replayed")
	list, err = c.Replayable(c.ctx(), 10)
	c.ok(err, "replayable")
	wantEqual(c, len(list), 0, "replayable afterwards")
	n, err := c.CountParked(c.ctx())
	c.ok(err, "count")
	wantEqual(c, n, 2, "still parked")
}

func parkPages(c *ledgerCase) {
	var messages []port.Parked
	for i := range 9 {
		messages = append(messages, c.parked(port.ParkMalformed, "", "x", int64(i)))
	}
	c.ok(c.Park(c.ctx(), messages), "park")
	var seen []string
	before := ""
	for {
		page, err := c.ListParked(c.ctx(), "", "", before, 4)
		c.ok(err, "list")
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			seen = append(seen, p.ID)
		}
		before = seen[len(seen)-1]
	}
	slices.Reverse(seen)
	for i, id := range seen {
		wantEqual(c, id, messages[i].ID, "in order")
	}
	wantEqual(c, len(seen), 9, "all of them")
	_, err := c.ListParked(c.ctx(), "", "", "no id", 4)
	wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, "an id that cannot be")
}

func parkFinds(c *ledgerCase) {
	a, b, d := c.parked(port.ParkPoison, "p", "a", 1), c.parked(port.ParkPoison, "q", "b", 2), c.parked(port.ParkDeadLetter, "p", "d", 3)
	gone := c.parked(port.ParkPoison, "p", "gone", 4)
	c.ok(c.Park(c.ctx(), []port.Parked{d, gone, b, a}), "park")
	c.ok(c.MarkReplayed(c.ctx(), []string{gone.ID}), "mark replayed")
	find := func(reason port.ParkReason, product, after string, limit int, want ...port.Parked) {
		found, err := c.FindParked(c.ctx(), reason, product, after, limit)
		c.ok(err, "find")
		wantEqual(c, len(found), len(want), "found")
		for i := range want {
			wantEqual(c, found[i].ID, want[i].ID, "in order")
		}
	}
	find("", "", "", 10, a, b, d)
	find(port.ParkPoison, "", "", 10, a, b)
	find("", "p", "", 10, a, d)
	find(port.ParkPoison, "p", "", 10, a)
	find("", "", a.ID, 1, b)
	find("", "", d.ID, 10)
	list := func(reason port.ParkReason, product, before string, limit int, want ...port.Parked) {
		listed, err := c.ListParked(c.ctx(), reason, product, before, limit)
		c.ok(err, "list")
		wantEqual(c, len(listed), len(want), "listed")
		for i := range want {
			wantEqual(c, listed[i].ID, want[i].ID, "newest first")
		}
	}
	list("", "", "", 10, d, b, a)
	list(port.ParkPoison, "", "", 10, b, a)
	list("", "p", "", 10, d, a)
	list(port.ParkPoison, "p", "", 10, a)
	list("", "p", d.ID, 10, a)
	list("", "p", "", 1, d)
	list(port.ParkMalformed, "", "", 10)
	list("", "nowhere", "", 10)
	_, err := c.FindParked(c.ctx(), "", "", "no id", 4)
	wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, "an id that cannot be")
}

func parkReads(c *ledgerCase) {
	a, b := c.parked(port.ParkPoison, "p", "a", 1), c.parked(port.ParkPoison, "p", "b", 2)
	c.ok(c.Park(c.ctx(), []port.Parked{a, b}), "park")
	for range 2 { // a repeat changes nothing
		c.ok(c.MarkReplayed(c.ctx(), []string{b.ID}), "mark replayed")
	}
	read, err := c.ReadParked(c.ctx(), []string{b.ID, c.ids.Unique(), "no id", a.ID, a.ID})
	c.ok(err, "read")
	wantEqual(c, len(read), 5, "read")
	wantEqual(c, read[0].ID+string(read[0].Body), b.ID+"b", "one that was replayed")
	wantEqual(c, read[0].ReplayedAt.IsZero(), false, "when it was replayed")
	wantEqual(c, read[1].ID+read[2].ID, "", "those that are not there")
	wantEqual(c, read[3].ID == a.ID && read[4].ID == a.ID && read[3].ReplayedAt.IsZero(), true, "the same twice")
}

func auditAny(c *ledgerCase) {
	c.ok(c.Record(c.ctx(), operator, "", `null`, `{"a":1}`), "record")
	long := port.Audit{Actor: strings.Repeat("a", 300), Action: strings.Repeat("b", 300), Reason: strings.Repeat("€", 999) + "\xff"}
	c.ok(c.Record(c.ctx(), long, "p", strings.Repeat("x", 70_000), ""), "record")
}

func reports(c *ledgerCase) {
	ids := []string{c.ids.Unique(), c.ids.Unique(), c.ids.Unique()}
	for i, id := range ids {
		c.ok(c.SaveReport(c.ctx(), id, time.Now(), []byte{'{', byte('0' + i), '}'}), "save")
	}
	c.ok(c.SaveReport(c.ctx(), ids[1], time.Now(), []byte("replaced")), "replace")
	body, err := c.ReadReport(c.ctx(), ids[1])
	c.ok(err, "read")
	wantEqual(c, string(body), "replaced", "body")
	list, err := c.ListReports(c.ctx(), "", 2)
	c.ok(err, "list")
	wantEqual(c, bytes.Equal(list[0], []byte("{2}")) && string(list[1]) == "replaced", true, "newest first")
	list, err = c.ListReports(c.ctx(), ids[1], 2)
	c.ok(err, "list")
	wantEqual(c, len(list) == 1 && string(list[0]) == "{0}", true, "the page after")
	for _, id := range []string{c.ids.Unique(), "no id"} {
		_, err = c.ReadReport(c.ctx(), id)
		wantEqual(c, errors.Is(err, domain.ErrReportNotFound), true, "report not found")
	}
}

func barriers(c *ledgerCase) {
	id := c.ids.Unique()
	for _, place := range []string{"q1", "check", "q1"} {
		c.ok(c.MarkBarrier(c.ctx(), id, place), "mark")
	}
	c.ok(c.MarkBarrier(c.ctx(), c.ids.Unique(), "q1"), "mark another")
	places, err := c.BarrierPlaces(c.ctx(), id)
	c.ok(err, "places")
	wantEqual(c, slices.Equal(places, []string{"check", "q1"}), true, "places")
	c.ok(c.ForgetBarriers(c.ctx(), time.Hour), "forget old ones")
	places, err = c.BarrierPlaces(c.ctx(), id)
	c.ok(err, "places")
	wantEqual(c, len(places), 2, "young ones stay")
	c.ok(c.ForgetBarriers(c.ctx(), -time.Minute), "forget all")
	places, err = c.BarrierPlaces(c.ctx(), id)
	c.ok(err, "places")
	wantEqual(c, len(places), 0, "none is left")
}

func bookMovements(c *ledgerCase) {
	c.open("p", 10)
	kept, gone := c.item("p", "kept", "t", 2, 1, 4), c.item("p", "gone", "t", 3, 1, 5)
	c.apply(kept, gone)
	_, err := c.Cancel(c.ctx(), []port.FateClaim{claim(gone.Deduction.Key, domain.OrderCancelled), claim(c.key("p", "never", "t"), domain.OrderCancelled)})
	c.ok(err, "cancel")
	orders, err := c.Fates(c.ctx(), []domain.Key{gone.Deduction.Key, c.key("p", "never", "t"), kept.Deduction.Key, gone.Deduction.Key})
	c.ok(err, "fates")
	movements, err := c.Movements(c.ctx(), orders)
	c.ok(err, "movements")
	for i, want := range []string{"SECKILL 3 1/5, CANCEL 3 1/5, ", "", "SECKILL 2 1/4, ", "SECKILL 3 1/5, CANCEL 3 1/5, "} {
		got := ""
		for _, m := range movements[i] {
			got += fmt.Sprintf("%s %d %d/%d, ", m.OpType, m.Quantity, m.Epoch, m.Sequence)
			wantEqual(c, m.At.IsZero() || m.At.Before(orders[i].CreatedAt()), false, "a time before its order")
		}
		wantEqual(c, got, want, "movements")
	}
	movements, err = c.Movements(c.ctx(), nil)
	c.ok(err, "movements of none")
	wantEqual(c, len(movements), 0, "movements of none")
}

func booksUnknown(c *ledgerCase) {
	_, err := c.Totals(c.ctx(), "nowhere")
	wantEqual(c, errors.Is(err, domain.ErrProductNotFound), true, "product not found")
}
