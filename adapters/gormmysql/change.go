package gormmysql

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

// changeRow is an orderRow of a stock change, which has a table of its own: what is in orders was sold.
type changeRow struct {
	ID           binaryID           `gorm:"column:id;primaryKey;autoIncrement:false"`
	Product      string             `gorm:"column:product_id"`
	Token        string             `gorm:"column:idempotency_key"`
	Quantity     int64              `gorm:"column:quantity"`
	Status       domain.OrderStatus `gorm:"column:status"`
	Epoch        int64              `gorm:"column:epoch"`
	Sequence     int64              `gorm:"column:sequence"`
	StockVersion int64              `gorm:"column:stock_version"`
	Attempt      string             `gorm:"column:attempt"`
	GateTold     bool               `gorm:"column:gate_told"`
	Created      utcTime            `gorm:"column:created_at"`
	Updated      utcTime            `gorm:"column:updated_at"`
}

func (changeRow) TableName() string { return "stock_changes" }

func (r *orderRow) isChange() bool { return r.User == domain.ChangeUser }

func changeRowOf(r orderRow) changeRow {
	return changeRow{ID: r.ID, Product: r.Product, Token: r.Token, Quantity: r.Quantity, Status: r.Status, Epoch: r.Epoch,
		Sequence: r.Sequence, StockVersion: r.StockVersion, Attempt: r.Attempt, GateTold: r.GateTold, Created: r.Created, Updated: r.Updated}
}

// orderRow is the row as the rest of the package takes it. A stock change never leaves the status it was born in.
func (r changeRow) orderRow() orderRow {
	return orderRow{ID: r.ID, Product: r.Product, User: domain.ChangeUser, Token: r.Token, Quantity: r.Quantity, Status: r.Status,
		FromBirth: true, Epoch: r.Epoch, Sequence: r.Sequence, StockVersion: r.StockVersion, Attempt: r.Attempt, GateTold: r.GateTold,
		Created: r.Created, Updated: r.Updated}
}

func orderRowsOf(rows []changeRow) []orderRow {
	same := make([]orderRow, len(rows))
	for i, r := range rows {
		same[i] = r.orderRow()
	}
	return same
}

// split gives those of items that are changes, and the others, in their order.
func split[T any](items []T, isChange func(T) bool) (changes, others []T) {
	if !slices.ContainsFunc(items, isChange) { // nearly always
		return nil, items
	}
	for _, item := range items {
		if isChange(item) {
			changes = append(changes, item)
		} else {
			others = append(others, item)
		}
	}
	return changes, others
}

// insertRows writes each row to its table.
func insertRows(tx *gorm.DB, rows []orderRow, rowsMax int) error {
	changes, orders := split(rows, func(r orderRow) bool { return r.isChange() })
	if err := insertNew(tx, orders, rowsMax); err != nil {
		return err
	}
	changeRows := make([]changeRow, len(changes))
	for i, r := range changes {
		changeRows[i] = changeRowOf(r)
	}
	return insertNew(tx, changeRows, rowsMax)
}

// changeFates adds the rows of stock changes to found.
func changeFates(db *gorm.DB, keys []domain.Key, found map[domain.Key]domain.Order) error {
	for chunk := range slices.Chunk(keys, keysMax) {
		tokens := map[string][]string{} // by product
		for _, k := range chunk {
			tokens[k.Product()] = append(tokens[k.Product()], k.Token())
		}
		for product, some := range tokens {
			var rows []changeRow
			if err := db.Where("product_id = ? AND idempotency_key IN ?", product, some).Find(&rows).Error; err != nil {
				return err
			}
			orders, err := ordersOf(orderRowsOf(rows))
			if err != nil {
				return err
			}
			for _, o := range orders {
				found[o.Key()] = o
			}
		}
	}
	return nil
}

// withChanges adds the stock changes that query finds to a page of orders found in the same order.
func withChanges(page []orderRow, query *gorm.DB, order func(a, b orderRow) int, limit int) ([]orderRow, error) {
	var changes []changeRow
	if err := query.Find(&changes).Error; err != nil || len(changes) == 0 {
		return page, err
	}
	page = append(page, orderRowsOf(changes)...)
	slices.SortFunc(page, order)
	return page[:min(len(page), limit)], nil
}

func byID(a, b orderRow) int { return slices.Compare(a.ID[:], b.ID[:]) }

func byVersion(a, b orderRow) int {
	return cmp.Or(cmp.Compare(a.StockVersion, b.StockVersion), byID(a, b))
}

// Add is port.Changes'. Rows come first, in order of their key, then the stock rows in product order, as everywhere.
func (s *Store) Add(ctx context.Context, additions []port.Addition) ([]port.AddReply, error) {
	for _, a := range additions {
		if !a.Key.IsChange() {
			return nil, domain.NewError(domain.CodeInvalidRequest, "only a stock change adds units", nil)
		}
		if err := domain.CheckQuantity("quantity", a.Quantity); err != nil {
			return nil, err
		}
	}
	if len(additions) == 0 {
		return nil, nil
	}
	var replies []port.AddReply
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		var err error
		replies, err = s.add(tx, additions)
		return err
	})
	if err != nil {
		return nil, err
	}
	return replies, nil
}

func (s *Store) add(tx *gorm.DB, additions []port.Addition) ([]port.AddReply, error) {
	keys := make([]domain.Key, len(additions))
	for i, a := range additions {
		keys[i] = a.Key
	}
	standing, err := fates(tx, keys)
	if err != nil {
		return nil, err
	}
	now, err := s.now(tx)
	if err != nil {
		return nil, err
	}
	fresh := freshOf(additions, standing)
	rows := make([]orderRow, len(fresh))
	for n, i := range fresh {
		a := additions[i]
		rows[n] = orderRow{ID: newID(), Product: a.Key.Product(), User: a.Key.User(), Token: a.Key.Token(),
			Quantity: a.Quantity, Status: domain.OrderAdded, FromBirth: true, Created: now, Updated: now}
	}
	if err := insertRows(tx, rows, s.dialect.insertMax); err != nil {
		return nil, err
	}
	replies := make([]port.AddReply, len(additions))
	for n, i := range fresh {
		order, err := s.addUnits(tx, &rows[n], additions[i].Audit)
		if err != nil {
			return nil, err
		}
		standing[order.Key()], replies[i].Added = order, true
	}
	for i, a := range additions {
		replies[i].Row = standing[a.Key]
	}
	return replies, nil
}

// freshOf gives the places of the first addition of each key that has no row, in order of their key.
func freshOf(additions []port.Addition, standing map[domain.Key]domain.Order) []int {
	var fresh []int
	for i, a := range additions {
		if standing[a.Key].IsZero() {
			fresh = append(fresh, i)
		}
	}
	key := func(i int) domain.Key { return additions[i].Key }
	slices.SortStableFunc(fresh, func(a, b int) int { return key(a).Compare(key(b)) })
	return slices.CompactFunc(fresh, func(a, b int) bool { return key(a) == key(b) })
}

// addUnits puts the units of a row that was just written on sale, with the row's version and its audit row.
func (s *Store) addUnits(tx *gorm.DB, row *orderRow, audit port.Audit) (domain.Order, error) {
	locked, err := lockStock(tx, row.Product)
	if err != nil {
		return domain.Order{}, err
	}
	if locked.Product == "" {
		return domain.Order{}, domain.NewError(domain.CodeProductNotFound, "there is no product "+row.Product, nil)
	}
	before, err := locked.stock()
	if err != nil {
		return domain.Order{}, err
	}
	after, err := before.Add(row.Quantity)
	if err != nil {
		return domain.Order{}, err
	}
	done := tx.Exec("UPDATE product_stock SET stock = stock + ?, total = total + ?, version = version + 1, updated_at = ? "+
		"WHERE product_id = ? AND version = ?", row.Quantity, row.Quantity, s.dialect.now(), row.Product, before.Version())
	if done.Error != nil {
		return domain.Order{}, done.Error
	}
	if done.RowsAffected != 1 {
		return domain.Order{}, errMoved // cannot be: the row is locked
	}
	row.StockVersion = after.Version()
	if err := tx.Table("stock_changes").Where("id = ?", row.ID).Update("stock_version", row.StockVersion).Error; err != nil {
		return domain.Order{}, err
	}
	order, err := row.order()
	if err != nil {
		return domain.Order{}, err
	}
	was, is := port.ChangeStates(order.Key(), order.Delta(), before)
	return order, s.record(tx, audit, row.Product, was, is)
}

// Changes is port.Changes'.
func (s *Store) Changes(ctx context.Context, product, before string, limit int) ([]domain.Order, error) {
	query, err := newestBefore(s.read(ctx), before, limit)
	if err != nil {
		return nil, err
	}
	var rows []changeRow
	if err := query.Where("product_id = ?", product).Find(&rows).Error; err != nil {
		return nil, translate(err)
	}
	return ordersOf(orderRowsOf(rows))
}

// Asked is port.Changes'. The log is walked from its newest row on: what is looked for was mostly asked a moment ago.
func (s *Store) Asked(ctx context.Context, product string, changes []port.AskedChange) ([]port.Audit, error) {
	wanted := make(map[port.AskedChange]bool, len(changes))
	for _, c := range changes {
		wanted[c] = true
	}
	found := make(map[port.AskedChange]port.Audit, len(wanted))
	for before := ""; len(found) < len(wanted); {
		query, err := newestBefore(s.read(ctx), before, auditsPage)
		if err != nil {
			return nil, err
		}
		var rows []auditRow
		if err := query.Where("product_id = ? AND action IN ?", product, []string{port.AuditAdd, port.AuditWithdraw}).Find(&rows).Error; err != nil {
			return nil, translate(err)
		}
		for _, r := range rows {
			change := port.ChangeInState(product, r.After)
			if _, newer := found[change]; wanted[change] && !newer {
				found[change] = port.Audit{Actor: r.Actor, Action: r.Action, Reason: r.Reason}
			}
		}
		if len(rows) < auditsPage {
			break
		}
		before = rows[len(rows)-1].ID.String()
	}
	audits := make([]port.Audit, len(changes))
	for i, c := range changes {
		audits[i] = found[c]
	}
	return audits, nil
}
