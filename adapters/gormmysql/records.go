package gormmysql

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"seckill/application/port"
	"seckill/domain"
)

const (
	stateMax   = 1 << 20
	auditsPage = 500 // rows of the audit log in one read
)

// Record is port.AuditLog's.
func (s *Store) Record(ctx context.Context, audit port.Audit, product, before, after string) error {
	return s.inTx(ctx, func(tx *gorm.DB) error { return s.record(tx, audit, product, before, after) })
}

func (s *Store) record(tx *gorm.DB, audit port.Audit, product, before, after string) error {
	now, err := s.now(tx)
	if err != nil {
		return err
	}
	return tx.Create(&auditRow{ID: newID(), Actor: text(audit.Actor, nameMax), Action: text(audit.Action, nameMax),
		Reason: text(audit.Reason, reasonMax), Product: text(product, nameMax),
		Before: text(before, stateMax), After: text(after, stateMax), Created: now}).Error
}

// SaveReport is port.ReportStore's.
func (s *Store) SaveReport(ctx context.Context, id string, createdAt time.Time, body []byte) error {
	parsed, err := parseID(id)
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}},
			DoUpdates: clause.AssignmentColumns([]string{"created_at", "body"})}).
			Create(&reportRow{ID: parsed, Created: timeOf(createdAt), Body: body}).Error
	})
}

// ReadReport is port.ReportStore's. An id that cannot be is one that is not there.
func (s *Store) ReadReport(ctx context.Context, id string) ([]byte, error) {
	var rows []reportRow
	if parsed, err := parseID(id); err == nil {
		if err := s.read(ctx).Where("id = ?", parsed).Find(&rows).Error; err != nil {
			return nil, translate(err)
		}
	}
	if len(rows) == 0 {
		return nil, domain.NewError(domain.CodeReportNotFound, "there is no such report", nil)
	}
	return rows[0].Body, nil
}

// ListReports is port.ReportStore's.
func (s *Store) ListReports(ctx context.Context, before string, limit int) ([][]byte, error) {
	query, err := newestBefore(s.read(ctx), before, limit)
	if err != nil {
		return nil, err
	}
	var rows []reportRow
	if err := query.Find(&rows).Error; err != nil {
		return nil, translate(err)
	}
	bodies := make([][]byte, len(rows))
	for i, r := range rows {
		bodies[i] = r.Body
	}
	return bodies, nil
}

// MarkBarrier is port.BarrierLog's.
func (s *Store) MarkBarrier(ctx context.Context, id, place string) error {
	return s.inTx(ctx, func(tx *gorm.DB) error {
		now, err := s.now(tx)
		if err != nil {
			return err
		}
		return insertMissing(tx, []barrierRow{{ID: id, Place: place, Passed: now}}, 1)
	})
}

// BarrierPlaces is port.BarrierLog's.
func (s *Store) BarrierPlaces(ctx context.Context, id string) ([]string, error) {
	var places []string
	err := s.read(ctx).Table("barriers").Where("id = ?", id).Order("place").Pluck("place", &places).Error
	return places, translate(err)
}

// ForgetBarriers is port.BarrierLog's.
func (s *Store) ForgetBarriers(ctx context.Context, age time.Duration) error {
	return s.inTx(ctx, func(tx *gorm.DB) error {
		return tx.Where("passed_at < ?", s.dialect.after(-age)).Delete(&barrierRow{}).Error
	})
}
