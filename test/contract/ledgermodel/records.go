package ledgermodel

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// What a parked message may take.
const (
	detailMax = 500
	nameMax   = 255
)

type parkedRow struct {
	p    port.Parked
	body string // whole
}

// auditRow is in the order in which it was written.
type auditRow struct {
	port.Audit
	product, before, after string
}

type report struct {
	id   string
	body []byte
}

type barrier struct {
	id, place string
	at        time.Time
}

func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}

// Park implements port.Parking.
func (l *Ledger) Park(ctx context.Context, messages []port.Parked) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		whole := string(m.Body)
		m.Origin.MessageID, m.Origin.Queue = clip(m.Origin.MessageID, nameMax), clip(m.Origin.Queue, nameMax)
		same := func(r *parkedRow) bool {
			return r.body == whole && r.p.Reason == m.Reason && r.p.Origin.MessageID == m.Origin.MessageID &&
				r.p.Origin.Queue == m.Origin.Queue && r.p.Origin.Offset == m.Origin.Offset
		}
		if slices.ContainsFunc(l.parked, same) {
			continue
		}
		if m.ParkedAt.IsZero() {
			m.ParkedAt = time.Now().UTC()
		}
		m.Body, m.Detail = bytes.Clone(m.Body[:min(len(m.Body), port.ParkedBodyMax)]), clip(m.Detail, detailMax)
		l.parked = append(l.parked, &parkedRow{p: m, body: whole})
	}
	slices.SortFunc(l.parked, func(a, b *parkedRow) int { return strings.Compare(a.p.ID, b.p.ID) })
	return nil
}

// ListParked implements port.Parking.
func (l *Ledger) ListParked(ctx context.Context, reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
	if before != "" && len(before) != 32 {
		return nil, domain.NewError(domain.CodeInvalidRequest, "no id", nil)
	}
	list, err := l.waiting(ctx, func(p port.Parked) bool {
		return (before == "" || p.ID < before) && (reason == "" || p.Reason == reason) && (product == "" || p.Product == product)
	})
	slices.Reverse(list)
	return list[:min(len(list), limit)], err
}

// waiting gives the chosen messages that wait, in order of id.
func (l *Ledger) waiting(ctx context.Context, chosen func(port.Parked) bool) ([]port.Parked, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []port.Parked
	for _, r := range l.parked {
		if r.p.ReplayedAt.IsZero() && chosen(r.p) {
			list = append(list, r.p)
		}
	}
	return list, nil
}

// FindParked implements port.Parking.
func (l *Ledger) FindParked(ctx context.Context, reason port.ParkReason, product, after string, limit int) ([]port.Parked, error) {
	if after != "" && len(after) != 32 {
		return nil, domain.NewError(domain.CodeInvalidRequest, "no id", nil)
	}
	list, err := l.waiting(ctx, func(p port.Parked) bool {
		return p.ID > after && (reason == "" || p.Reason == reason) && (product == "" || p.Product == product)
	})
	return list[:min(len(list), limit)], err
}

// ReadParked implements port.Parking.
func (l *Ledger) ReadParked(ctx context.Context, ids []string) ([]port.Parked, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]port.Parked, len(ids))
	for i, id := range ids {
		for _, r := range l.parked {
			if r.p.ID == id {
				list[i] = r.p
			}
		}
	}
	return list, nil
}

// CountParked implements port.Parking.
func (l *Ledger) CountParked(ctx context.Context) (int64, error) {
	list, err := l.waiting(ctx, func(port.Parked) bool { return true })
	return int64(len(list)), err
}

// Replayable implements port.Parking.
func (l *Ledger) Replayable(ctx context.Context, limit int) ([]port.Parked, error) {
	list, err := l.waiting(ctx, func(p port.Parked) bool {
		s := l.stocks[p.Product]
		return p.Reason == port.ParkNotOpen && s != nil && s.f.State == domain.SaleOpen
	})
	return list[:min(len(list), limit)], err
}

// MarkReplayed implements port.Parking.
func (l *Ledger) MarkReplayed(ctx context.Context, ids []string) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.parked {
		if slices.Contains(ids, r.p.ID) && r.p.ReplayedAt.IsZero() {
			r.p.ReplayedAt = time.Now().UTC()
		}
	}
	return nil
}

// Record implements port.AuditLog.
func (l *Ledger) Record(ctx context.Context, audit port.Audit, product, before, after string) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audits = append(l.audits, auditRow{audit, product, before, after})
	return nil
}

// SaveReport implements port.ReportStore.
func (l *Ledger) SaveReport(ctx context.Context, id string, _ time.Time, body []byte) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports = slices.DeleteFunc(l.reports, func(r report) bool { return r.id == id })
	l.reports = append(l.reports, report{id, bytes.Clone(body)})
	slices.SortFunc(l.reports, func(a, b report) int { return strings.Compare(a.id, b.id) })
	return nil
}

// ReadReport implements port.ReportStore.
func (l *Ledger) ReadReport(ctx context.Context, id string) ([]byte, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.reports {
		if r.id == id {
			return bytes.Clone(r.body), nil
		}
	}
	return nil, domain.NewError(domain.CodeReportNotFound, "there is no such report", nil)
}

// ListReports implements port.ReportStore.
func (l *Ledger) ListReports(ctx context.Context, before string, limit int) ([][]byte, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var bodies [][]byte
	for _, r := range slices.Backward(l.reports) {
		if (before == "" || r.id < before) && len(bodies) < limit {
			bodies = append(bodies, bytes.Clone(r.body))
		}
	}
	return bodies, nil
}

// MarkBarrier implements port.BarrierLog.
func (l *Ledger) MarkBarrier(ctx context.Context, id, place string) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.ContainsFunc(l.barriers, func(b barrier) bool { return b.id == id && b.place == place }) {
		l.barriers = append(l.barriers, barrier{id, place, time.Now()})
	}
	return nil
}

// BarrierPlaces implements port.BarrierLog.
func (l *Ledger) BarrierPlaces(ctx context.Context, id string) ([]string, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var places []string
	for _, b := range l.barriers {
		if b.id == id {
			places = append(places, b.place)
		}
	}
	slices.Sort(places)
	return places, nil
}

// ForgetBarriers implements port.BarrierLog.
func (l *Ledger) ForgetBarriers(ctx context.Context, age time.Duration) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.barriers = slices.DeleteFunc(l.barriers, func(b barrier) bool { return time.Since(b.at) > age })
	return nil
}
