package gormmysql

import (
	"context"
	"database/sql/driver"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm/schema"

	"seckill/application/port"
	"seckill/domain"
)

// The statements that are spelled out name the columns that GORM reads, each with the value that GORM would write.
func TestSpelledOutInsertsAreThoseOfTheModel(t *testing.T) {
	t.Parallel()
	at, later := timeOf(time.UnixMilli(1764633600123)), timeOf(time.UnixMilli(1764633600456))
	order := orderRow{ID: newID(), Product: "p", User: "u", Token: "t", Quantity: 2, Status: domain.OrderRejected, FromBirth: true,
		Epoch: 3, Sequence: 4, StockVersion: 5, Attempt: "a", Group: newID(), GateTold: true, Created: at, Updated: later}
	insertsAsTheModel(t, []orderRow{order, {ID: newID()}, order})
	insertsAsTheModel(t, []changeRow{changeRowOf(order), {ID: newID(), Created: later}})
	insertsAsTheModel(t, []flowRow{{Product: "p", Quantity: 2, OpType: port.OpSale, Action: domain.ActionDeduct, Order: order.ID,
		Epoch: 3, Sequence: 4, Created: at}})
}

func insertsAsTheModel[T any, P interface {
	*T
	insertable
}](t *testing.T, rows []T) {
	t.Helper()
	model, err := schema.Parse(new(T), &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		t.Fatal(err)
	}
	table, columns := P(&rows[0]).insertion()
	if table != model.Table || !slices.Equal(columns, model.DBNames) {
		t.Errorf("%s %v, the model has %s %v", table, columns, model.Table, model.DBNames)
	}
	_, args := insertOf[T, P](rows)
	if len(args) != len(rows)*len(columns) {
		t.Fatalf("%d arguments for %d rows of %d columns", len(args), len(rows), len(columns))
	}
	for i, arg := range args {
		row := reflect.ValueOf(rows[i/len(columns)])
		value, _ := model.FieldsByDBName[columns[i%len(columns)]].ValueOf(context.Background(), row)
		want, err := driver.DefaultParameterConverter.ConvertValue(value)
		if got, bad := driver.DefaultParameterConverter.ConvertValue(arg); err != nil || bad != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("row %d, %s: %v (%v), GORM writes %v (%v)", i/len(columns), columns[i%len(columns)], got, bad, want, err)
		}
	}
}
