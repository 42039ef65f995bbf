package gormmysql

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"seckill/application/port"
	"seckill/domain"
)

// Apply is port.Ledger's.
func (s *Store) Apply(ctx context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	if len(items) == 0 {
		return port.ApplyResult{}, nil
	}
	for _, item := range items {
		if err := domain.CheckQuantity("quantity", item.Deduction.Quantity); err != nil {
			return port.ApplyResult{}, err
		}
	}
	var result port.ApplyResult
	again := false
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		g := group{store: s, tx: tx, items: items, id: newID(), again: again}
		again = true
		if err := g.apply(); err != nil {
			return err
		}
		var err error
		result, err = g.result()
		return err
	})
	if err != nil {
		return port.ApplyResult{}, err
	}
	return result, nil
}

// group is one try to apply items; the next try is another group with another id.
type group struct {
	store *Store
	tx    *gorm.DB
	items []port.ApplyItem
	id    binaryID
	again bool // not the first try: some of it may be there

	stocks   map[string]stockRow // as read
	at       utcTime             // the database's time when they were read
	outcomes []port.ApplyOutcome // of items
	rows     []orderRow          // new ones, in order of their key
	makers   []int               // of rows: the item that each was made for
	met      map[domain.Key]domain.Order
	suspects []string
}

func (g *group) apply() error {
	if err := g.readStocks(); err != nil {
		return err
	}
	g.judge()
	if err := g.meet(); err != nil {
		return err
	}
	g.makeRows()
	if err := insertRows(g.tx, g.rows, g.store.dialect.insertMax); err != nil {
		return err
	}
	if err := insertNew(g.tx, g.flows(), g.store.dialect.insertMax); err != nil {
		return err
	}
	return g.takeUnits()
}

// meet reads the rows that are there already. It locks nothing, so a group that comes a second time stands in nobody's way.
// The first try of a group that may be applied as a whole looks for none: nearly every group is new, and the look is
// a quarter of what the database does for it. Where a row is there after all, its unique key ends that try.
func (g *group) meet() error {
	refused := func(o port.ApplyOutcome) bool { return o != port.Applied }
	if !g.again && !slices.ContainsFunc(g.outcomes, refused) {
		return nil
	}
	keys := make([]domain.Key, len(g.items))
	for i, item := range g.items {
		keys[i] = item.Deduction.Key
	}
	slices.SortFunc(keys, domain.Key.Compare)
	var err error
	g.met, err = fates(g.tx, slices.Compact(keys))
	return err
}

// readStocks reads versions before the inserts instead of after them: the rows can then carry their stock
// version from the start, and an update that misses its guard is repaired under the lock.
func (g *group) readStocks() error {
	products := make([]string, len(g.items))
	for i, item := range g.items {
		products[i] = item.Deduction.Key.Product()
	}
	slices.Sort(products)
	var err error
	g.stocks, g.at, err = g.store.datedStocks(g.tx, slices.Compact(products))
	return err
}

// standing says what becomes of an item that has no row, in a product as it stands.
func standing(item port.ApplyItem, stock stockRow) port.ApplyOutcome {
	open := stock.State == domain.SaleOpen
	older := item.Plain || item.Deduction.Epoch < stock.Epoch
	// Of a gate before the one that is being replaced: that one was built without it, and has sold its units again.
	stale := item.Deduction.Epoch < stock.OpenEpoch && item.AdoptedEpoch != stock.OpenEpoch
	switch {
	case stock.Product == "":
		return port.UnknownProduct
	case !open && (item.Plain || stale):
		return port.Deferred
	case open && older && item.AdoptedEpoch != stock.Epoch:
		return port.Straggler
	}
	return port.Applied
}

// judge says what becomes of each item, if it has no row.
func (g *group) judge() {
	g.outcomes = make([]port.ApplyOutcome, len(g.items))
	for i, item := range g.items {
		g.outcomes[i] = standing(item, g.stocks[item.Deduction.Key.Product()])
	}
}

// makeRows makes a row for the first item of each key that may be applied, in order of the unique key,
// so that groups which share keys lock them in the same order.
func (g *group) makeRows() {
	candidates := make([]int, 0, len(g.items))
	for i, item := range g.items {
		if _, met := g.met[item.Deduction.Key]; met {
			g.outcomes[i] = port.Met
		} else if g.outcomes[i] == port.Applied {
			candidates = append(candidates, i)
		}
	}
	key := func(i int) domain.Key { return g.items[i].Deduction.Key }
	slices.SortStableFunc(candidates, func(a, b int) int { return key(a).Compare(key(b)) })
	candidates = slices.CompactFunc(candidates, func(a, b int) bool { return key(a) == key(b) })

	g.rows, g.makers = make([]orderRow, len(candidates)), candidates
	for n, i := range candidates {
		d := g.items[i].Deduction
		row := orderRow{ID: newID(), Product: d.Key.Product(), User: d.Key.User(), Token: d.Key.Token(),
			Quantity: d.Quantity, Status: domain.OrderConfirmed, FromBirth: true, Epoch: d.Epoch, Sequence: d.Sequence,
			StockVersion: g.stocks[d.Key.Product()].Version + 1, Attempt: d.Attempt, Group: g.id,
			Created: g.at, Updated: g.at}
		if g.items[i].Plain {
			row.Epoch, row.Sequence = 0, 0
		}
		g.rows[n] = row
	}
}

// insertNew writes rows in one statement, or a few for more than rowsMax. A unique key that is there was
// of an earlier delivery, or was written by somebody since we looked: the next try meets it.
func insertNew[T any, P interface {
	*T
	insertable
}](tx *gorm.DB, rows []T, rowsMax int) error {
	for chunk := range slices.Chunk(rows, rowsMax) {
		statement, args := insertOf[T, P](chunk)
		err := run(tx, statement, args).Error
		if errors.Is(err, gorm.ErrDuplicatedKey) {
			return errMoved
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// insertMissing leaves out rows whose unique key is there; every other error stays one (INSERT IGNORE would
// hide truncation).
func insertMissing[T any](tx *gorm.DB, rows []T, rowsMax int) error {
	for chunk := range slices.Chunk(rows, rowsMax) {
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&chunk).Error; err != nil {
			return err
		}
	}
	return nil
}

// flows are of purchases alone: a withdrawal sells nothing.
func (g *group) flows() []flowRow {
	flows := make([]flowRow, 0, len(g.rows))
	for _, r := range g.rows {
		if r.isChange() {
			continue
		}
		flows = append(flows, flowRow{Product: r.Product, Quantity: r.Quantity, OpType: port.OpSale,
			Action: domain.ActionDeduct, Order: r.ID, Epoch: r.Epoch, Sequence: r.Sequence, Created: g.at})
	}
	return flows
}

// result answers the items. Those of a key after the first meet the row that the first one made.
func (g *group) result() (port.ApplyResult, error) {
	result := port.ApplyResult{Replies: make([]port.ApplyReply, len(g.items)), Suspects: g.suspects}
	for i := range g.rows {
		order, err := g.rows[i].orderOf(g.items[g.makers[i]].Deduction.Key)
		if err != nil {
			return result, err
		}
		result.Replies[g.makers[i]] = port.ApplyReply{Outcome: port.Applied, Order: order}
	}
	for i, item := range g.items {
		if result.Replies[i].Outcome != 0 {
			continue
		}
		if order, met := g.met[item.Deduction.Key]; met {
			result.Replies[i] = port.ApplyReply{Outcome: port.Met, Order: order}
		} else if n, made := g.made(item.Deduction.Key); made {
			result.Replies[i] = port.ApplyReply{Outcome: port.Met, Order: result.Replies[g.makers[n]].Order}
		} else {
			result.Replies[i] = port.ApplyReply{Outcome: g.outcomes[i]}
		}
	}
	return result, nil
}

// made finds the row of a key, if one was made.
func (g *group) made(key domain.Key) (int, bool) {
	return slices.BinarySearchFunc(g.makers, key, func(i int, key domain.Key) int { return g.items[i].Deduction.Key.Compare(key) })
}
