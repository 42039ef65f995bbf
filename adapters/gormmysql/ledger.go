package gormmysql

import (
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"seckill/application/port"
	"seckill/domain"
)

// Fates is port.Ledger's.
func (s *Store) Fates(ctx context.Context, keys []domain.Key) ([]domain.Order, error) {
	orders, err := fatesInOrder(s.read(ctx), keys)
	return orders, translate(err)
}

func fatesInOrder(db *gorm.DB, keys []domain.Key) ([]domain.Order, error) {
	found, err := fates(db, keys)
	if err != nil {
		return nil, err
	}
	orders := make([]domain.Order, len(keys))
	for i, k := range keys {
		orders[i] = found[k]
	}
	return orders, nil
}

// fates reads the rows of keys. Under READ COMMITTED each statement sees what was committed before it, so a row
// that made an insert of ours wait is seen here.
func fates(db *gorm.DB, keys []domain.Key) (map[domain.Key]domain.Order, error) {
	found := make(map[domain.Key]domain.Order) // a group is new as a rule
	changes, buyers := split(keys, domain.Key.IsChange)
	if err := changeFates(db, changes, found); err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(buyers, keysMax) {
		args := make([]any, 0, 3*len(chunk))
		for _, k := range chunk {
			args = append(args, k.Product(), k.User(), k.Token())
		}
		const one = "(product_id = ? AND uid = ? AND token = ?)"
		statement := "SELECT * FROM orders WHERE " + one + strings.Repeat(" OR "+one, len(chunk)-1)
		var rows []orderRow
		if err := written(db, statement, args).Find(&rows).Error; err != nil {
			return nil, err
		}
		orders, err := ordersOf(rows)
		if err != nil {
			return nil, err
		}
		for _, o := range orders {
			found[o.Key()] = o
		}
	}
	return found, nil
}

// Decide is port.Ledger's. It takes no lock on the stock: its rows hold no units, and a rebuild that misses
// one counts the flow as open until it is told.
func (s *Store) Decide(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	for _, c := range claims {
		if c.Status != domain.OrderCancelled && c.Status != domain.OrderRejected {
			return nil, domain.NewError(domain.CodeInvalidRequest, "only a cancelled or rejected fate can be claimed", nil)
		}
	}
	return s.decide(ctx, claims, nil)
}

// decide inserts the rows of claims to keys that have none, and then, where do is not nil, calls it with
// the rows that were there.
func (s *Store) decide(ctx context.Context, claims []port.FateClaim,
	do func(tx *gorm.DB, standing map[domain.Key]domain.Order) error) ([]domain.Order, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	for _, c := range claims {
		if err := domain.CheckQuantity("quantity", c.Quantity); err != nil {
			return nil, err
		}
	}
	var orders []domain.Order
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		keys := make([]domain.Key, len(claims))
		for i, c := range claims {
			keys[i] = c.Key
		}
		standing, err := fates(tx, keys)
		if err != nil {
			return err
		}
		rows, err := s.claimed(tx, claims, standing)
		if err != nil {
			return err
		}
		if err := insertRows(tx, rows, s.dialect.insertMax); err != nil {
			return err
		}
		if do != nil {
			if err := do(tx, standing); err != nil {
				return err
			}
		}
		orders, err = fatesInOrder(tx, keys)
		return err
	})
	if err != nil {
		return nil, err
	}
	return orders, nil
}

// claimed makes the rows of claims to keys that have none, the first of each key, in order of the unique key.
func (s *Store) claimed(tx *gorm.DB, claims []port.FateClaim, standing map[domain.Key]domain.Order) ([]orderRow, error) {
	products := make([]string, len(claims))
	for i, c := range claims {
		products[i] = c.Key.Product()
	}
	slices.Sort(products)
	stocks, at, err := s.datedStocks(tx, slices.Compact(products))
	if err != nil {
		return nil, err
	}
	sorted := slices.Clone(claims)
	slices.SortStableFunc(sorted, func(a, b port.FateClaim) int { return a.Key.Compare(b.Key) })
	sorted = slices.CompactFunc(sorted, func(a, b port.FateClaim) bool { return a.Key == b.Key })
	group := newID()
	rows := make([]orderRow, 0, len(sorted))
	for _, c := range sorted {
		stock, ok := stocks[c.Key.Product()]
		if !ok {
			return nil, domain.NewError(domain.CodeProductNotFound, "there is no product "+c.Key.Product(), nil)
		}
		if !standing[c.Key].IsZero() {
			continue
		}
		rows = append(rows, orderRow{ID: newID(), Product: c.Key.Product(), User: c.Key.User(), Token: c.Key.Token(),
			Quantity: c.Quantity, Status: c.Status, FromBirth: true, Epoch: c.Epoch, Sequence: c.Sequence,
			StockVersion: stock.Version, Attempt: c.Attempt, Group: group, Created: at, Updated: at})
	}
	return rows, nil
}

// datedStocks reads the products that are there, and the database's time.
func (s *Store) datedStocks(db *gorm.DB, products []string) (map[string]stockRow, utcTime, error) {
	stocks := make(map[string]stockRow, len(products))
	var at utcTime
	for chunk := range slices.Chunk(products, idsMax) {
		var rows []datedStockRow
		err := db.Select("product_stock.*, ? AS now_at", s.dialect.now()).Where("product_id IN ?", chunk).Find(&rows).Error
		if err != nil {
			return nil, at, err
		}
		for _, r := range rows {
			stocks[r.Row.Product], at = r.Row, r.Now
		}
	}
	return stocks, at, nil
}

// lockedStocks is datedStocks with the rows locked, in product order.
func (s *Store) lockedStocks(tx *gorm.DB, products []string) (map[string]stockRow, utcTime, error) {
	locking := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Order("product_id")
	return s.datedStocks(locking.Session(&gorm.Session{}), products)
}

// Untold is port.Outbox's. A row's age is counted from its newest fate, by the database's clock alone.
func (s *Store) Untold(ctx context.Context, age time.Duration, after string, limit int) ([]domain.Order, error) {
	var from binaryID
	if after != "" {
		var err error
		if from, err = parseID(after); err != nil {
			return nil, err
		}
	}
	var rows []orderRow
	untold := func(table string) *gorm.DB {
		return s.read(ctx).Table(s.dialect.along(table, table+"_untold")).Where("gate_told = 0 AND id > ? AND updated_at <= ?", from, s.dialect.after(-age)).
			Order("id").Limit(pageOf(limit))
	}
	if err := untold("orders").Find(&rows).Error; err != nil {
		return nil, translate(err)
	}
	rows, err := withChanges(rows, untold("stock_changes"), byID, pageOf(limit))
	if err != nil {
		return nil, translate(err)
	}
	return ordersOf(rows)
}

// MarkTold is port.Outbox's.
func (s *Store) MarkTold(ctx context.Context, orders []domain.Order) error {
	if len(orders) == 0 {
		return nil
	}
	return s.inTx(ctx, func(tx *gorm.DB) error { return markTold(tx, orders) })
}

// markTold names rows by id and fate: a fate that has changed since stays untold. It asks for nothing else,
// so that the primary key is the only way and ids are locked in one order.
func markTold(tx *gorm.DB, orders []domain.Order) error {
	changes, purchases := split(orders, func(o domain.Order) bool { return o.Key().IsChange() })
	if err := markTableTold(tx, "stock_changes", changes); err != nil {
		return err
	}
	return markTableTold(tx, "orders", purchases)
}

func markTableTold(tx *gorm.DB, table string, orders []domain.Order) error {
	byStatus := map[domain.OrderStatus][]binaryID{}
	for _, o := range orders {
		id, err := parseID(o.ID())
		if err != nil {
			return err
		}
		byStatus[o.Status()] = append(byStatus[o.Status()], id)
	}
	for _, status := range []domain.OrderStatus{domain.OrderConfirmed, domain.OrderCancelled, domain.OrderRejected, domain.OrderAdded} {
		ids := byStatus[status]
		slices.SortFunc(ids, func(a, b binaryID) int { return slices.Compare(a[:], b[:]) })
		for chunk := range slices.Chunk(ids, idsMax) {
			args := make([]any, 0, len(chunk)+1)
			for i := range chunk {
				args = append(args, chunk[i][:])
			}
			statement := "UPDATE " + table + " SET gate_told = TRUE WHERE id IN (" + places(len(chunk)) + ") AND status = ?"
			if err := run(tx, statement, append(args, int64(status))).Error; err != nil {
				return err
			}
		}
	}
	return nil
}
