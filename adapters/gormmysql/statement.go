package gormmysql

import (
	"strings"

	"gorm.io/gorm"
)

// written is a statement of many values, spelled out: GORM carries it out, with its callbacks, translated errors and
// scanning, and does not take it apart. Looking at every value by reflection cost more than everything else that
// this process does for a group.
func written(db *gorm.DB, statement string, args []any) *gorm.DB {
	tx := db.Raw("")
	tx.Statement.SQL.WriteString(statement)
	tx.Statement.Vars = args
	return tx
}

// run is written, for a statement that answers no rows.
func run(db *gorm.DB, statement string, args []any) *gorm.DB {
	tx := written(db, statement, args)
	return tx.Callback().Raw().Execute(tx)
}

// insertable is a row that spells out its INSERT.
type insertable interface {
	insertion() (table string, columns []string)
	values(args []any, times *timeTexts) []any // appends one for each column
}

// insertOf is the INSERT of rows. The ids in its arguments are those of the rows, not copies.
func insertOf[T any, P interface {
	*T
	insertable
}](rows []T) (statement string, args []any) {
	table, columns := P(&rows[0]).insertion()
	row := "(" + places(len(columns)) + ")"
	args = make([]any, 0, len(rows)*len(columns))
	var times timeTexts
	for i := range rows {
		args = P(&rows[i]).values(args, &times)
	}
	return "INSERT INTO " + table + " (" + strings.Join(columns, ",") + ") VALUES " + row + strings.Repeat(","+row, len(rows)-1), args
}

// places is ?,?,… for n arguments, at least one.
func places(n int) string { return "?" + strings.Repeat(",?", n-1) }

// timeTexts writes times as utcTime does, one that comes again and again, as in the rows of a group, only once.
type timeTexts struct {
	last utcTime
	text any
}

func (t *timeTexts) of(at utcTime) any {
	if t.text == nil || at != t.last {
		t.last = at
		t.text, _ = at.Value() // has no error
	}
	return t.text
}

var orderColumns = []string{"id", "product_id", "uid", "token", "quantity", "status", "from_birth", "epoch", "sequence",
	"stock_version", "attempt", "group_id", "gate_told", "created_at", "updated_at"}

func (*orderRow) insertion() (string, []string) { return "orders", orderColumns }

func (r *orderRow) values(args []any, times *timeTexts) []any {
	return append(args, r.ID[:], r.Product, r.User, r.Token, r.Quantity, int64(r.Status), r.FromBirth, r.Epoch, r.Sequence,
		r.StockVersion, r.Attempt, r.Group[:], r.GateTold, times.of(r.Created), times.of(r.Updated))
}

var changeColumns = []string{"id", "product_id", "idempotency_key", "quantity", "status", "epoch", "sequence",
	"stock_version", "attempt", "gate_told", "created_at", "updated_at"}

func (*changeRow) insertion() (string, []string) { return "stock_changes", changeColumns }

func (r *changeRow) values(args []any, times *timeTexts) []any {
	return append(args, r.ID[:], r.Product, r.Token, r.Quantity, int64(r.Status), r.Epoch, r.Sequence,
		r.StockVersion, r.Attempt, r.GateTold, times.of(r.Created), times.of(r.Updated))
}

var flowColumns = []string{"product_id", "quantity", "op_type", "action", "order_id", "epoch", "sequence", "create_time"}

func (*flowRow) insertion() (string, []string) { return "stock_flow", flowColumns }

func (r *flowRow) values(args []any, times *timeTexts) []any {
	return append(args, r.Product, r.Quantity, r.OpType, r.Action, r.Order[:], r.Epoch, r.Sequence, times.of(r.Created))
}
