package gormmysql

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

// Cancel is port.Ledger's. Keys without a row are decided as Decide does; what is confirmed is reversed.
func (s *Store) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	for _, c := range claims {
		if c.Status != domain.OrderCancelled || c.Key.IsChange() {
			return nil, domain.NewError(domain.CodeInvalidRequest, "a cancel claims a cancelled fate of an order", nil)
		}
	}
	return s.decide(ctx, claims, s.reverse)
}

// reverse flips those of the orders that are confirmed and gives their units back. Whoever flips an order
// holds its stock row, so an order that is confirmed under that lock stays so until we are done.
// Orders are updated after the stock is locked, as a rebuild does that marks them told under its lock.
func (s *Store) reverse(tx *gorm.DB, standing map[domain.Key]domain.Order) error {
	keys := confirmedOf(standing)
	if len(keys) == 0 {
		return nil
	}
	stocks, at, err := s.lockedStocks(tx, productsOf(keys))
	if err != nil {
		return err
	}
	if standing, err = fates(tx, keys); err != nil {
		return err
	}
	if keys = confirmedOf(standing); len(keys) == 0 {
		return nil // somebody was faster
	}
	var returns []taking
	ids := make([]binaryID, len(keys))
	flows := make([]flowRow, len(keys))
	for i, k := range keys {
		o := standing[k]
		if ids[i], err = parseID(o.ID()); err != nil {
			return err
		}
		if n := len(returns); n == 0 || returns[n-1].product != k.Product() {
			returns = append(returns, taking{product: k.Product(), version: stocks[k.Product()].Version})
		}
		returns[len(returns)-1].units -= o.Quantity()
		flows[i] = flowRow{Product: k.Product(), Quantity: o.Quantity(), OpType: port.OpCancel,
			Action: domain.ActionDeduct, Order: ids[i], Epoch: o.Epoch(), Sequence: o.Sequence(), Created: at}
	}
	if moved, err := s.take(tx, returns); err != nil || !moved {
		return orMoved(err)
	}
	if err := s.flip(tx, ids); err != nil {
		return err
	}
	return insertNew(tx, flows, s.dialect.insertMax)
}

// flip makes confirmed orders cancelled ones, at the version that their stock row has now.
func (s *Store) flip(tx *gorm.DB, ids []binaryID) error {
	slices.SortFunc(ids, func(a, b binaryID) int { return slices.Compare(a[:], b[:]) })
	for chunk := range slices.Chunk(ids, idsMax) {
		done := tx.Exec("UPDATE orders SET status = ?, from_birth = 0, gate_told = 0, updated_at = ?, "+
			"stock_version = (SELECT version FROM product_stock WHERE product_stock.product_id = orders.product_id) "+
			"WHERE id IN ? AND status = ?", domain.OrderCancelled, s.dialect.now(), chunk, domain.OrderConfirmed)
		if done.Error != nil || done.RowsAffected != int64(len(chunk)) {
			return orMoved(done.Error)
		}
	}
	return nil
}

// orMoved is the error, or what begins the transaction again.
func orMoved(err error) error {
	if err == nil {
		return errMoved
	}
	return err
}

// confirmedOf gives the keys of confirmed orders, in their order.
func confirmedOf(orders map[domain.Key]domain.Order) []domain.Key {
	var keys []domain.Key
	for k, o := range orders {
		if o.Status() == domain.OrderConfirmed {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, domain.Key.Compare)
	return keys
}

// productsOf names the products of sorted keys, in their order.
func productsOf(sorted []domain.Key) []string {
	products := make([]string, len(sorted))
	for i, k := range sorted {
		products[i] = k.Product()
	}
	return slices.Compact(products)
}
