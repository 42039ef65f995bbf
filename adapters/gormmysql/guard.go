package gormmysql

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

const savepoint = "guarded"

// taking is what a transaction takes of one product.
type taking struct {
	product string
	version int64 // that the stock row must still have
	units   int64 // below zero: given back
	offSale int64 // those of the units that are withdrawn: they go off the total, too
}

// takings sums the confirmed rows, in product order.
func (g *group) takings() []taking {
	var sums []taking
	for _, r := range g.rows { // in order of their key, so of their product
		if r.Status != domain.OrderConfirmed {
			continue
		}
		if n := len(sums); n == 0 || sums[n-1].product != r.Product {
			sums = append(sums, taking{product: r.Product, version: g.stocks[r.Product].Version})
		}
		sums[len(sums)-1].units += r.Quantity
		if r.isChange() {
			sums[len(sums)-1].offSale += r.Quantity
		}
	}
	return sums
}

// takeUnits is the last step: one guarded update over the group's products. Where one of them misses its
// guard, those that were changed go back to the savepoint, and it is decided again under the locks.
func (g *group) takeUnits() error {
	sums := g.takings()
	if len(sums) == 0 {
		return nil
	}
	several := len(sums) > 1 // a single one that misses has changed nothing
	if several {
		if err := g.tx.SavePoint(savepoint).Error; err != nil {
			return err
		}
	}
	taken, err := g.store.take(g.tx, sums)
	if err != nil || taken {
		return err
	}
	g.store.conflicts.Add(1)
	if several {
		if err := g.tx.RollbackTo(savepoint).Error; err != nil {
			return err
		}
	}
	return g.takeUnitsLocked(sums)
}

// take updates all of the products or says that some missed their guard. The rows are locked
// in product order, since they are ranges of the primary key.
func (s *Store) take(tx *gorm.DB, sums []taking) (bool, error) {
	var changed int64
	for chunk := range slices.Chunk(sums, keysMax) {
		var guard strings.Builder
		var guards []any
		for i, t := range chunk {
			if i > 0 {
				guard.WriteString(" OR ")
			}
			guard.WriteString("(product_id = ? AND version = ? AND stock >= ?)")
			guards = append(guards, t.product, t.version, t.units)
		}
		set, amounts := lessening("stock", chunk, func(t taking) int64 { return t.units })
		if slices.ContainsFunc(chunk, func(t taking) bool { return t.offSale > 0 }) {
			total, off := lessening("total", chunk, func(t taking) int64 { return t.offSale })
			set, amounts = set+", "+total, append(amounts, off...)
		}
		now := s.dialect.now()
		args := append(append(amounts, now.Vars...), guards...)
		done := run(tx, "UPDATE product_stock SET "+set+", version = version + 1, updated_at = "+now.SQL+" WHERE "+guard.String(), args)
		if done.Error != nil {
			return false, done.Error
		}
		changed += done.RowsAffected
	}
	return changed == int64(len(sums)), nil
}

// lessening takes an amount of each product's own off a column.
func lessening(column string, takings []taking, amount func(taking) int64) (set string, args []any) {
	if len(takings) == 1 {
		return column + " = " + column + " - ?", []any{amount(takings[0])}
	}
	var cases strings.Builder
	for _, t := range takings {
		cases.WriteString(" WHEN ? THEN ?")
		args = append(args, t.product, amount(t))
	}
	return column + " = " + column + " - CASE product_id" + cases.String() + " END", args
}

// takeUnitsLocked decides again with the stock rows locked, so that nothing can move any more and the
// second update cannot miss. If a product was suspended, reopened or rebuilt so that an item
// of ours is to be treated in another way, the whole try is for nothing.
func (g *group) takeUnitsLocked(sums []taking) error {
	products := make([]string, len(sums))
	for i, t := range sums {
		products[i] = t.product
	}
	moved, _, err := g.store.lockedStocks(g.tx, products)
	if err != nil {
		return err
	}
	for n, i := range g.makers {
		if standing(g.items[i], moved[g.rows[n].Product]) != port.Applied {
			return errMoved
		}
	}
	g.stocks = moved
	if err := g.rejectBeyond(); err != nil {
		return err
	}
	if err := g.stampVersions(); err != nil {
		return err
	}
	taken, err := g.store.take(g.tx, g.takings())
	if err == nil && !taken {
		return errMoved // cannot be: the rows are locked
	}
	return err
}

// rejectBeyond goes through the rows as the gate took them and rejects those that no longer
// fit. The gate gave what was not there, so the product is a suspect.
func (g *group) rejectBeyond() error {
	order := make([]int, len(g.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return byArrival(g.rows[a], g.rows[b]) })
	left := make(map[string]int64, len(g.stocks))
	for product, s := range g.stocks {
		left[product] = s.Stock
	}
	var rejected []*orderRow
	for _, i := range order {
		r := &g.rows[i]
		if r.Quantity <= left[r.Product] {
			left[r.Product] -= r.Quantity
			continue
		}
		r.Status = domain.OrderRejected
		rejected = append(rejected, r)
		g.suspects = append(g.suspects, r.Product)
	}
	slices.Sort(g.suspects)
	g.suspects = slices.Compact(g.suspects)
	changes, orders := split(rejected, (*orderRow).isChange)
	if err := g.update("stock_changes", idsOf(changes), "status", domain.OrderRejected); err != nil {
		return err
	}
	if err := g.update("orders", idsOf(orders), "status", domain.OrderRejected); err != nil {
		return err
	}
	return g.takeBackFlows(orders)
}

// takeBackFlows removes what was written for rows that are rejected after all; rejected ones are in order of their product.
func (g *group) takeBackFlows(rejected []*orderRow) error {
	for len(rejected) > 0 {
		n := 1
		for n < min(len(rejected), idsMax) && rejected[n].Product == rejected[0].Product {
			n++
		}
		err := g.tx.Where("product_id = ? AND order_id IN ? AND op_type = ?", rejected[0].Product, idsOf(rejected[:n]), port.OpSale).
			Delete(&flowRow{}).Error
		if err != nil {
			return err
		}
		rejected = rejected[n:]
	}
	return nil
}

// update sets a column of rows that are named one by one.
func (g *group) update(table string, ids []binaryID, column string, value any) error {
	for chunk := range slices.Chunk(ids, idsMax) {
		if err := g.tx.Table(table).Where("id IN ?", chunk).Update(column, value).Error; err != nil {
			return err
		}
	}
	return nil
}

func idsOf(rows []*orderRow) []binaryID {
	ids := make([]binaryID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// stampVersions gives my rows the version that the update under the lock is going to make. Rows are named one
// by one: a range of ids would wait for other groups' rows that lie between mine, while those wait for the
// stock row that we hold.
func (g *group) stampVersions() error {
	version := make(map[string]int64, len(g.stocks))
	for product, s := range g.stocks {
		version[product] = s.Version
	}
	for _, t := range g.takings() {
		version[t.product]++
	}
	stale := map[string][]*orderRow{}
	for i := range g.rows {
		if r := &g.rows[i]; r.StockVersion != version[r.Product] {
			r.StockVersion = version[r.Product]
			stale[r.Product] = append(stale[r.Product], r)
		}
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(stale)), keysMax) {
		var set strings.Builder
		var args []any
		var rows []*orderRow
		for _, product := range chunk {
			set.WriteString(" WHEN ? THEN ?")
			args = append(args, product, version[product])
			rows = append(rows, stale[product]...)
		}
		to := gorm.Expr("CASE product_id"+set.String()+" END", args...)
		changes, orders := split(rows, (*orderRow).isChange)
		if err := g.update("stock_changes", idsOf(changes), "stock_version", to); err != nil {
			return err
		}
		if err := g.update("orders", idsOf(orders), "stock_version", to); err != nil {
			return err
		}
	}
	return nil
}

// byArrival orders rows as the gate took them.
func byArrival(a, b orderRow) int {
	return cmp.Or(strings.Compare(a.Product, b.Product), cmp.Compare(a.Epoch, b.Epoch),
		cmp.Compare(a.Sequence, b.Sequence))
}
