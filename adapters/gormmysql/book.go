package gormmysql

import (
	"context"
	"database/sql"
	"slices"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

// Totals is port.Book's. Its statements share one snapshot, so that the sums are those of one moment.
func (s *Store) Totals(ctx context.Context, product string) (port.BookTotals, error) {
	var totals port.BookTotals
	err := s.read(ctx).Transaction(func(tx *gorm.DB) error {
		var row stockRow
		if err := tx.Where("product_id = ?", product).Limit(1).Find(&row).Error; err != nil {
			return err
		}
		if row.Product == "" {
			return domain.NewError(domain.CodeProductNotFound, "there is no product "+product, nil)
		}
		stock, err := row.stock()
		if err != nil {
			return err
		}
		totals = port.BookTotals{Stock: stock, OpenedWith: row.OpenedWith}
		if err := orderTotals(tx, product, &totals); err != nil {
			return err
		}
		if err := changeTotals(tx, product, &totals); err != nil {
			return err
		}
		return flowTotals(tx, product, &totals)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	return totals, translate(err)
}

// Movements is port.Book's.
func (s *Store) Movements(ctx context.Context, orders []domain.Order) ([][]port.Movement, error) {
	found := make(map[string][]port.Movement, len(orders))
	for chunk := range slices.Chunk(orders, keysMax) {
		products, ids := make([]string, len(chunk)), make([]binaryID, len(chunk))
		for i, o := range chunk {
			id, err := parseID(o.ID())
			if err != nil {
				return nil, err
			}
			products[i], ids[i] = o.Key().Product(), id
		}
		var rows []flowRow
		err := s.read(ctx).Where("product_id IN ? AND order_id IN ?", products, ids).Order("op_type DESC").Find(&rows).Error
		if err != nil {
			return nil, translate(err)
		}
		for _, r := range rows {
			found[r.Order.String()] = append(found[r.Order.String()],
				port.Movement{OpType: r.OpType, Quantity: r.Quantity, Epoch: r.Epoch, Sequence: r.Sequence, At: r.Created.at})
		}
	}
	movements := make([][]port.Movement, len(orders))
	for i, o := range orders {
		movements[i] = found[o.ID()]
	}
	return movements, nil
}

func orderTotals(tx *gorm.DB, product string, t *port.BookTotals) error {
	sums := tx.Raw(`SELECT
		COUNT(CASE WHEN status = ? THEN 1 END), COALESCE(SUM(CASE WHEN status = ? THEN quantity END), 0),
		COUNT(CASE WHEN status = ? THEN 1 END), COUNT(CASE WHEN status = ? AND from_birth = 0 THEN 1 END),
		COUNT(CASE WHEN status = ? THEN 1 END), COUNT(CASE WHEN gate_told = 0 THEN 1 END)
		FROM orders WHERE product_id = ?`,
		domain.OrderConfirmed, domain.OrderConfirmed, domain.OrderCancelled, domain.OrderCancelled, domain.OrderRejected, product)
	err := sums.Row().Scan(&t.ConfirmedOrders, &t.ConfirmedUnits, &t.CancelledOrders, &t.ReversedOrders,
		&t.RejectedOrders, &t.UntoldOrders)
	if err != nil {
		return err
	}
	return tx.Raw(`SELECT COUNT(*) FROM orders o WHERE o.product_id = ?
		AND (o.status = ? OR (o.status = ? AND o.from_birth = 0))
		AND (NOT EXISTS (SELECT 1 FROM stock_flow f WHERE f.product_id = o.product_id AND f.order_id = o.id AND f.op_type = ?)
		OR (o.status = ? AND NOT EXISTS (SELECT 1 FROM stock_flow f WHERE f.product_id = o.product_id AND f.order_id = o.id AND f.op_type = ?)))`,
		product, domain.OrderConfirmed, domain.OrderCancelled, port.OpSale, domain.OrderCancelled, port.OpCancel).Row().Scan(&t.OrphanOrders)
}

func changeTotals(tx *gorm.DB, product string, t *port.BookTotals) error {
	return tx.Raw(`SELECT COALESCE(SUM(CASE WHEN status = ? THEN quantity END), 0), COALESCE(SUM(CASE WHEN status = ? THEN quantity END), 0),
		COUNT(CASE WHEN gate_told = 0 THEN 1 END) FROM stock_changes WHERE product_id = ?`,
		domain.OrderAdded, domain.OrderConfirmed, product).Row().Scan(&t.AddedUnits, &t.WithdrawnUnits, &t.UntoldChanges)
}

func flowTotals(tx *gorm.DB, product string, t *port.BookTotals) error {
	sums := tx.Raw(`SELECT COUNT(*), COALESCE(SUM(CASE WHEN op_type = ? THEN quantity ELSE -quantity END), 0)
		FROM stock_flow WHERE product_id = ?`, port.OpSale, product)
	if err := sums.Row().Scan(&t.FlowRows, &t.FlowUnits); err != nil {
		return err
	}
	err := tx.Raw(`SELECT COUNT(*) FROM stock_flow f WHERE f.product_id = ?
		AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = f.order_id)`, product).Row().Scan(&t.OrphanFlows)
	if err != nil {
		return err
	}
	return tx.Raw(`SELECT COUNT(*) FROM (SELECT order_id FROM stock_flow WHERE product_id = ? AND op_type = ?
		GROUP BY order_id HAVING COUNT(*) > 1) doubles`, product, port.OpSale).Row().Scan(&t.DoubleFlows)
}
