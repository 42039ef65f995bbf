package gormmysql

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

// What the columns hold at most; what is longer is cut, since a record of a failure must not fail.
const (
	reasonMax  = 500
	nameMax    = 64
	messageMax = 255
	placeMax   = 512
)

// text cuts s to that many bytes of whole, valid characters.
func text(s string, bytesMax int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > bytesMax {
		s = strings.ToValidUTF8(s[:bytesMax], "")
	}
	return s
}

// Park is port.Parking's. Two deliveries of one message are the same if origin, reason and body
// are; the number of deliveries is not looked at.
func (s *Store) Park(ctx context.Context, messages []port.Parked) error {
	if len(messages) == 0 {
		return nil
	}
	rows := make([]parkedRow, len(messages))
	for i, m := range messages {
		row, err := parkedRowOf(m)
		if err != nil {
			return err
		}
		rows[i] = row
	}
	slices.SortFunc(rows, func(a, b parkedRow) int { return slices.Compare(a.Fingerprint, b.Fingerprint) })
	return s.inTx(ctx, func(tx *gorm.DB) error {
		now, err := s.now(tx)
		if err != nil {
			return err
		}
		for i := range rows {
			if rows[i].ParkedAt.at.IsZero() {
				rows[i].ParkedAt = now
			}
		}
		return insertMissing(tx, rows, 50) // at 64 KiB each, well within a packet of 16 MB
	})
}

func parkedRowOf(m port.Parked) (parkedRow, error) {
	id, err := parseID(m.ID)
	if err != nil {
		return parkedRow{}, err
	}
	body := m.Body
	if len(body) > port.ParkedBodyMax {
		body = body[:port.ParkedBodyMax]
	}
	if body == nil {
		body = []byte{}
	}
	print := sha256.New()
	for _, part := range []string{m.Origin.MessageID, m.Origin.Queue, string(m.Reason)} {
		print.Write(binary.AppendUvarint(nil, uint64(len(part))))
		print.Write([]byte(part))
	}
	print.Write(binary.AppendVarint(nil, m.Origin.Offset))
	print.Write(m.Body)
	return parkedRow{ID: id, Fingerprint: print.Sum(nil), Reason: text(string(m.Reason), 32), Detail: text(m.Detail, reasonMax),
		Product: text(m.Product, nameMax), Body: body, MessageID: text(m.Origin.MessageID, messageMax),
		Queue: text(m.Origin.Queue, placeMax), Offset: m.Origin.Offset, Times: int64(m.Origin.Times),
		ParkedAt: timeOf(m.ParkedAt), ReplayedAt: timeOf(m.ReplayedAt)}, nil
}

func (r parkedRow) parked() port.Parked {
	return port.Parked{ID: r.ID.String(), Reason: port.ParkReason(r.Reason), Detail: r.Detail, Product: r.Product, Body: r.Body,
		Origin:   port.Origin{MessageID: r.MessageID, Queue: r.Queue, Offset: r.Offset, Times: int(r.Times)},
		ParkedAt: r.ParkedAt.at, ReplayedAt: r.ReplayedAt.at}
}

func parkedOf(rows []parkedRow) []port.Parked {
	messages := make([]port.Parked, len(rows))
	for i, r := range rows {
		messages[i] = r.parked()
	}
	return messages
}

// ListParked is port.Parking's.
func (s *Store) ListParked(ctx context.Context, reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
	query, err := newestBefore(s.read(ctx), before, limit)
	if err != nil {
		return nil, err
	}
	var rows []parkedRow
	if err := waiting(query, reason, product).Find(&rows).Error; err != nil {
		return nil, translate(err)
	}
	return parkedOf(rows), nil
}

// waiting leaves what waits, of a reason and a product; empty is any.
func waiting(query *gorm.DB, reason port.ParkReason, product string) *gorm.DB {
	query = query.Where("replayed_at IS NULL")
	if reason != "" {
		query = query.Where("reason = ?", string(reason))
	}
	if product != "" {
		query = query.Where("product_id = ?", product)
	}
	return query
}

// newestBefore pages backwards by id.
func newestBefore(db *gorm.DB, before string, limit int) (*gorm.DB, error) {
	query := db.Order("id DESC").Limit(pageOf(limit))
	if before == "" {
		return query, nil
	}
	id, err := parseID(before)
	if err != nil {
		return nil, err
	}
	return query.Where("id < ?", id), nil
}

// FindParked is port.Parking's.
func (s *Store) FindParked(ctx context.Context, reason port.ParkReason, product, after string, limit int) ([]port.Parked, error) {
	query := waiting(s.read(ctx), reason, product).Order("id").Limit(pageOf(limit))
	if after != "" {
		id, err := parseID(after)
		if err != nil {
			return nil, err
		}
		query = query.Where("id > ?", id)
	}
	var rows []parkedRow
	err := query.Find(&rows).Error
	return parkedOf(rows), translate(err)
}

// ReadParked is port.Parking's. An id that cannot be is one that is not there.
func (s *Store) ReadParked(ctx context.Context, ids []string) ([]port.Parked, error) {
	var parsed []binaryID
	for _, id := range ids {
		if p, err := parseID(id); err == nil {
			parsed = append(parsed, p)
		}
	}
	found := make(map[string]port.Parked, len(parsed))
	for chunk := range slices.Chunk(parsed, idsMax) {
		var rows []parkedRow
		if err := s.read(ctx).Where("id IN ?", chunk).Find(&rows).Error; err != nil {
			return nil, translate(err)
		}
		for _, p := range parkedOf(rows) {
			found[p.ID] = p
		}
	}
	messages := make([]port.Parked, len(ids))
	for i, id := range ids {
		messages[i] = found[id]
	}
	return messages, nil
}

// CountParked is port.Parking's.
func (s *Store) CountParked(ctx context.Context) (int64, error) {
	var n int64
	err := s.read(ctx).Table("parked_messages").Where("replayed_at IS NULL").Count(&n).Error
	return n, translate(err)
}

// Replayable is port.Parking's.
func (s *Store) Replayable(ctx context.Context, limit int) ([]port.Parked, error) {
	var rows []parkedRow
	err := s.read(ctx).Where("replayed_at IS NULL AND reason = ?", string(port.ParkNotOpen)).
		Where("EXISTS (SELECT 1 FROM product_stock s WHERE s.product_id = parked_messages.product_id AND s.state = ?)", domain.SaleOpen).
		Order("id").Limit(pageOf(limit)).Find(&rows).Error
	return parkedOf(rows), translate(err)
}

// MarkReplayed is port.Parking's.
func (s *Store) MarkReplayed(ctx context.Context, ids []string) error {
	parsed, err := parseIDs(ids)
	if err != nil || len(parsed) == 0 {
		return err
	}
	return s.inTx(ctx, func(tx *gorm.DB) error {
		for chunk := range slices.Chunk(parsed, idsMax) {
			err := tx.Table("parked_messages").Where("id IN ? AND replayed_at IS NULL", chunk).
				Update("replayed_at", s.dialect.now()).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}
