package gormmysql

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

// Suspend is port.Epochs'. A product that is suspended already is marked damaged, too: that
// is what stops a rebuild which found out on its way that the database went back.
func (s *Store) Suspend(ctx context.Context, products []string, reason string, damaged bool) error {
	if len(products) == 0 {
		return nil
	}
	from, to := []domain.SaleState{domain.SaleOpen}, domain.SaleSuspended
	if damaged {
		from, to = []domain.SaleState{domain.SaleOpen, domain.SaleSuspended}, domain.SaleDamaged
	}
	products = slices.Clone(products)
	slices.Sort(products)
	return s.inTx(ctx, func(tx *gorm.DB) error {
		for chunk := range slices.Chunk(products, idsMax) {
			err := tx.Exec("UPDATE product_stock SET state = ?, reason = ?, suspension = suspension + 1, "+
				"suspended_at = COALESCE(suspended_at, ?), updated_at = ? WHERE product_id IN ? AND state IN ?",
				to, text(reason, reasonMax), s.dialect.now(), s.dialect.now(), chunk, statesOf(from)).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Accept is port.Epochs'.
func (s *Store) Accept(ctx context.Context, product string, version, epoch int64) error {
	return s.inTx(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE product_stock SET state = ?, suspension = suspension + 1, lease_holder = '', lease_until = NULL, updated_at = ?, "+
			"version = CASE WHEN version > ? THEN version ELSE ? END + 1, epoch = CASE WHEN epoch > ? THEN epoch ELSE ? END "+
			"WHERE product_id = ? AND state = ?",
			domain.SaleSuspended, s.dialect.now(), version, version, epoch, epoch, product, domain.SaleDamaged).Error
	})
}

// statesOf are states as numbers: GORM takes a slice of bytes for one value.
func statesOf(states []domain.SaleState) []int {
	numbers := make([]int, len(states))
	for i, state := range states {
		numbers[i] = int(state)
	}
	return numbers
}

// Suspended is port.Epochs'.
func (s *Store) Suspended(ctx context.Context) ([]domain.Stock, error) {
	var rows []stockRow
	err := s.read(ctx).Where("state <> ?", domain.SaleOpen).Order("product_id").Find(&rows).Error
	if err != nil {
		return nil, translate(err)
	}
	return stocksOf(rows)
}

// TakeAttempt is port.Epochs'.
func (s *Store) TakeAttempt(ctx context.Context, product, holder string, suspension int64, lease time.Duration) (domain.Stock, bool, error) {
	var row stockRow
	var taken bool
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		done := tx.Exec("UPDATE product_stock SET epoch = epoch + 1, lease_holder = ?, lease_until = ?, updated_at = ? "+
			"WHERE product_id = ? AND suspension = ? AND state = ? AND (lease_holder IN ? OR lease_until IS NULL OR lease_until <= ?)",
			holder, s.dialect.after(lease), s.dialect.now(), product, suspension, domain.SaleSuspended, []string{"", holder}, s.dialect.now())
		if done.Error != nil {
			return done.Error
		}
		taken = done.RowsAffected == 1
		row = stockRow{}
		return tx.Where("product_id = ?", product).Limit(1).Find(&row).Error
	})
	if err != nil || row.Product == "" {
		return domain.Stock{}, false, err
	}
	stock, err := row.stock()
	return stock, taken && err == nil, err
}

// KeepAttempt is port.Epochs'.
func (s *Store) KeepAttempt(ctx context.Context, product, holder string, epoch int64, lease time.Duration) (bool, error) {
	var kept bool
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		done := tx.Exec("UPDATE product_stock SET lease_until = ?, updated_at = ? "+
			"WHERE product_id = ? AND epoch = ? AND state = ? AND lease_holder = ?",
			s.dialect.after(lease), s.dialect.now(), product, epoch, domain.SaleSuspended, holder)
		kept = done.RowsAffected == 1
		return done.Error
	})
	return kept && err == nil, err
}

// Rows is port.Epochs'.
func (s *Store) Rows(ctx context.Context, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	orders, next, err := s.rowsAfter(s.read(ctx), product, after, limit)
	return orders, next, translate(err)
}

func (s *Store) rowsAfter(db *gorm.DB, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	var from binaryID
	if after.ID != "" {
		var err error
		if from, err = parseID(after.ID); err != nil {
			return nil, after, err
		}
	}
	page := func(table string) *gorm.DB {
		return db.Table(s.dialect.along(table, table+"_version")).Where("product_id = ? AND stock_version >= ? AND (stock_version > ? OR id > ?)",
			product, after.Version, after.Version, from).Order("stock_version, id").Limit(pageOf(limit))
	}
	var rows []orderRow
	if err := page("orders").Find(&rows).Error; err != nil {
		return nil, after, err
	}
	rows, err := withChanges(rows, page("stock_changes"), byVersion, pageOf(limit))
	if err != nil || len(rows) == 0 {
		return nil, after, err
	}
	orders, err := ordersOf(rows)
	last := rows[len(rows)-1]
	return orders, port.RowCursor{Version: last.StockVersion, ID: last.ID.String()}, err
}

// Locked is port.Epochs'. It tries once: do has effects outside the database, and its
// caller begins again with what it then reads.
func (s *Store) Locked(ctx context.Context, product string, epoch int64, do func(port.LockedStock) error) (bool, error) {
	var called bool
	var own error // do's, which goes back as it is
	err := s.writer.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		row, err := lockStock(tx, product)
		if err != nil || row.Product == "" || row.Epoch != epoch || row.State != domain.SaleSuspended {
			return err
		}
		stock, err := row.stock()
		if err != nil {
			return err
		}
		called = true
		own = do(lockedStock{store: s, tx: tx, stock: stock})
		return own
	})
	if own != nil {
		return false, own
	}
	return called && err == nil, translate(err)
}

// lockedStock carries the transaction, so that its reads see the row under the lock and need no second connection.
type lockedStock struct {
	store *Store
	tx    *gorm.DB
	stock domain.Stock
}

func (l lockedStock) Stock() domain.Stock { return l.stock }

func (l lockedStock) Rows(after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	orders, next, err := l.store.rowsAfter(l.tx, l.stock.Product(), after, limit)
	return orders, next, translate(err)
}

func (l lockedStock) Fates(keys []domain.Key) ([]domain.Order, error) {
	orders, err := fatesInOrder(l.tx, keys)
	return orders, translate(err)
}

// Untold walks the product's own index: the outbox's may be long with other products' rows.
func (l lockedStock) Untold(limit int) ([]domain.Order, error) {
	untold := func() *gorm.DB {
		return l.tx.Where("product_id = ? AND gate_told = 0", l.stock.Product()).Order("stock_version, id").Limit(pageOf(limit))
	}
	var rows []orderRow
	if err := untold().Find(&rows).Error; err != nil {
		return nil, translate(err)
	}
	rows, err := withChanges(rows, untold(), byVersion, pageOf(limit))
	if err != nil {
		return nil, translate(err)
	}
	return ordersOf(rows)
}

func (l lockedStock) MarkTold(orders []domain.Order) error { return translate(markTold(l.tx, orders)) }

func (l lockedStock) Reopen() error {
	now, err := l.store.now(l.tx)
	if err != nil {
		return translate(err)
	}
	closed := max(0, now.at.Sub(l.stock.SuspendedAt()))
	return translate(l.tx.Exec("UPDATE product_stock SET state = ?, reason = '', lease_holder = '', lease_until = NULL, "+
		"suspended_at = NULL, closed_ms = ?, open_epoch = epoch, version = version + 1, updated_at = ? WHERE product_id = ?",
		domain.SaleOpen, closed.Milliseconds(), now, l.stock.Product()).Error)
}
