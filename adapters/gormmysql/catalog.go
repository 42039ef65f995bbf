package gormmysql

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"seckill/application/port"
	"seckill/domain"
)

const reasonNew = "new: its gate is not built yet"

// Create is port.Catalog's.
func (s *Store) Create(ctx context.Context, sale domain.Sale, audit port.Audit) (domain.Stock, bool, error) {
	terms := sale.Terms()
	var row stockRow
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		now, err := s.now(tx)
		if err != nil {
			return err
		}
		row = stockRow{Product: sale.Product(), Stock: sale.Total(), Total: sale.Total(), OpenedWith: sale.Total(), Version: 1,
			State: domain.SaleSuspended, Reason: reasonNew, Paused: terms.Paused, OpensAt: timeOf(terms.OpensAt),
			ClosesAt: timeOf(terms.ClosesAt), Limit: terms.LimitPerBuyer, Revision: terms.Revision, SuspendedAt: now, Created: now, Updated: now}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return s.record(tx, audit, sale.Product(), "null", saleJSON(sale))
	})
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		stocks, err := s.Stocks(ctx, []string{sale.Product()})
		if err != nil {
			return domain.Stock{}, false, err
		}
		return stocks[0], false, nil
	}
	if err != nil {
		return domain.Stock{}, false, err
	}
	stock, err := row.stock()
	return stock, err == nil, err
}

// saleJSON is a sale as the audit log keeps it.
func saleJSON(sale domain.Sale) string {
	t := sale.Terms()
	body, _ := json.Marshal(struct { // never fails: two numbers and two times
		Total         int64      `json:"total"`
		LimitPerBuyer int64      `json:"limitPerBuyer"`
		OpensAt       *time.Time `json:"opensAt,omitempty"`
		ClosesAt      *time.Time `json:"closesAt,omitempty"`
	}{sale.Total(), t.LimitPerBuyer, orNil(t.OpensAt), orNil(t.ClosesAt)})
	return string(body)
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// now is the database's time.
func (s *Store) now(tx *gorm.DB) (utcTime, error) {
	var t utcTime
	err := tx.Raw("SELECT ?", s.dialect.now()).Row().Scan(&t)
	return t, err
}

// Stocks is port.Catalog's.
func (s *Store) Stocks(ctx context.Context, products []string) ([]domain.Stock, error) {
	rows, _, err := s.datedStocks(s.read(ctx), products)
	if err != nil {
		return nil, translate(err)
	}
	stocks := make([]domain.Stock, len(products))
	for i, p := range products {
		if row, ok := rows[p]; ok {
			if stocks[i], err = row.stock(); err != nil {
				return nil, err
			}
		}
	}
	return stocks, nil
}

// List is port.Catalog's.
func (s *Store) List(ctx context.Context, after string, limit int) ([]domain.Stock, error) {
	var rows []stockRow
	err := s.read(ctx).Where("product_id > ?", after).Order("product_id").Limit(pageOf(limit)).Find(&rows).Error
	if err != nil {
		return nil, translate(err)
	}
	return stocksOf(rows)
}

// SetPaused is port.Catalog's. Where the wish is the same already it leaves no audit row either.
func (s *Store) SetPaused(ctx context.Context, product string, paused bool, only string, audit port.Audit) (domain.Stock, error) {
	var row stockRow
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		var err error
		if row, err = lockStock(tx, product); err != nil {
			return err
		}
		if row.Product == "" {
			return domain.NewError(domain.CodeProductNotFound, "there is no product "+product, nil)
		}
		if stock, err := row.stock(); err != nil || only != "" && only != stock.Edition() {
			return cmp.Or(err, error(domain.NewError(domain.CodeEditionOutdated, "the product has been changed since", nil)))
		}
		if row.Paused == paused {
			return nil
		}
		err = tx.Exec("UPDATE product_stock SET paused = ?, terms_revision = terms_revision + 1, updated_at = ? WHERE product_id = ?",
			paused, s.dialect.now(), product).Error
		if err != nil {
			return err
		}
		row.Paused, row.Revision = paused, row.Revision+1
		return s.record(tx, audit, product, pausedJSON(!paused), pausedJSON(paused))
	})
	if err != nil {
		return domain.Stock{}, err
	}
	return row.stock()
}

func pausedJSON(paused bool) string {
	if paused {
		return `{"paused":true}`
	}
	return `{"paused":false}`
}

// lockStock reads a stock row under its lock; the zero row stands for one that is not there.
func lockStock(tx *gorm.DB, product string) (stockRow, error) {
	var rows []stockRow
	err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
		Where("product_id = ?", product).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return stockRow{}, err
	}
	return rows[0], nil
}
