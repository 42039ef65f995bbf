package gormmysql

import (
	"fmt"
	"time"

	"seckill/domain"
)

// The rows, as GORM reads and writes them. Field names avoid CreatedAt and UpdatedAt, which GORM
// would fill from this process's clock: row times are the database's.
type stockRow struct {
	Product     string           `gorm:"column:product_id;primaryKey"`
	Stock       int64            `gorm:"column:stock"`
	Version     int64            `gorm:"column:version"`
	Total       int64            `gorm:"column:total"`
	OpenedWith  int64            `gorm:"column:opened_with"`
	Epoch       int64            `gorm:"column:epoch"`
	OpenEpoch   int64            `gorm:"column:open_epoch"`
	State       domain.SaleState `gorm:"column:state"`
	Reason      string           `gorm:"column:reason"`
	Paused      bool             `gorm:"column:paused"`
	OpensAt     utcTime          `gorm:"column:opens_at"`
	ClosesAt    utcTime          `gorm:"column:closes_at"`
	Limit       int64            `gorm:"column:limit_per_buyer"`
	Revision    int64            `gorm:"column:terms_revision"`
	LeaseHolder string           `gorm:"column:lease_holder"`
	LeaseUntil  utcTime          `gorm:"column:lease_until"`
	Suspension  int64            `gorm:"column:suspension"`
	SuspendedAt utcTime          `gorm:"column:suspended_at"`
	ClosedMs    int64            `gorm:"column:closed_ms"`
	Created     utcTime          `gorm:"column:created_at"`
	Updated     utcTime          `gorm:"column:updated_at"`
}

func (stockRow) TableName() string { return "product_stock" }

func (r stockRow) stock() (domain.Stock, error) {
	s, err := domain.NewStock(domain.StockFields{Product: r.Product, Total: r.Total, Stock: r.Stock,
		Version: r.Version, Epoch: r.Epoch, State: r.State, Reason: r.Reason,
		Terms: domain.Terms{OpensAt: r.OpensAt.at, ClosesAt: r.ClosesAt.at, LimitPerBuyer: r.Limit,
			Paused: r.Paused, Revision: r.Revision},
		Suspension: r.Suspension, SuspendedAt: r.SuspendedAt.at, LastClosed: time.Duration(r.ClosedMs) * time.Millisecond})
	if err != nil {
		return s, damaged("stock", r.Product, err)
	}
	return s, nil
}

// datedStockRow is a row with the database's time when it was read.
type datedStockRow struct {
	Row stockRow `gorm:"embedded"`
	Now utcTime  `gorm:"column:now_at;->"`
}

func (datedStockRow) TableName() string { return "product_stock" }

func stocksOf(rows []stockRow) ([]domain.Stock, error) {
	stocks := make([]domain.Stock, len(rows))
	for i, r := range rows {
		s, err := r.stock()
		if err != nil {
			return nil, err
		}
		stocks[i] = s
	}
	return stocks, nil
}

type orderRow struct {
	ID           binaryID           `gorm:"column:id;primaryKey;autoIncrement:false"`
	Product      string             `gorm:"column:product_id"`
	User         string             `gorm:"column:uid"`
	Token        string             `gorm:"column:token"`
	Quantity     int64              `gorm:"column:quantity"`
	Status       domain.OrderStatus `gorm:"column:status"`
	FromBirth    bool               `gorm:"column:from_birth"`
	Epoch        int64              `gorm:"column:epoch"`
	Sequence     int64              `gorm:"column:sequence"`
	StockVersion int64              `gorm:"column:stock_version"`
	Attempt      string             `gorm:"column:attempt"`
	Group        binaryID           `gorm:"column:group_id"`
	GateTold     bool               `gorm:"column:gate_told"`
	Created      utcTime            `gorm:"column:created_at"`
	Updated      utcTime            `gorm:"column:updated_at"`
}

func (orderRow) TableName() string { return "orders" }

func (r *orderRow) order() (domain.Order, error) {
	key, err := domain.StoredKey(r.Product, r.User, r.Token)
	if err != nil {
		return domain.Order{}, damaged("order", r.ID.String(), err)
	}
	return r.orderOf(key)
}

// orderOf is order, where the row's key is at hand.
func (r *orderRow) orderOf(key domain.Key) (domain.Order, error) {
	o, err := domain.NewOrder(domain.OrderFields{ID: r.ID.String(), Key: key, Quantity: r.Quantity, Status: r.Status,
		FromBirth: r.FromBirth, Epoch: r.Epoch, Sequence: r.Sequence, StockVersion: r.StockVersion,
		Attempt: r.Attempt, GateTold: r.GateTold, CreatedAt: r.Created.at})
	if err != nil {
		return o, damaged("order", r.ID.String(), err)
	}
	return o, nil
}

func ordersOf(rows []orderRow) ([]domain.Order, error) {
	orders := make([]domain.Order, len(rows))
	for i := range rows {
		o, err := rows[i].order()
		if err != nil {
			return nil, err
		}
		orders[i] = o
	}
	return orders, nil
}

// damaged is a row that this program cannot have written.
func damaged(what, id string, err error) error {
	return domain.NewError(domain.CodeInternal, fmt.Sprintf("the row of %s %s is damaged", what, id), err)
}

// flowRow has no id: an order takes once and gives back once, so its key names it, and the table is one tree instead of three.
type flowRow struct {
	Product  string   `gorm:"column:product_id;primaryKey"`
	Quantity int64    `gorm:"column:quantity"`
	OpType   string   `gorm:"column:op_type;primaryKey"`
	Action   string   `gorm:"column:action"`
	Order    binaryID `gorm:"column:order_id;primaryKey"`
	Epoch    int64    `gorm:"column:epoch"`
	Sequence int64    `gorm:"column:sequence"`
	Created  utcTime  `gorm:"column:create_time"`
}

func (flowRow) TableName() string { return "stock_flow" }

type parkedRow struct {
	ID          binaryID `gorm:"column:id;primaryKey;autoIncrement:false"`
	Fingerprint []byte   `gorm:"column:fingerprint"`
	Reason      string   `gorm:"column:reason"`
	Detail      string   `gorm:"column:detail"`
	Product     string   `gorm:"column:product_id"`
	Body        []byte   `gorm:"column:body"`
	MessageID   string   `gorm:"column:message_id"`
	Queue       string   `gorm:"column:queue"`
	Offset      int64    `gorm:"column:queue_offset"`
	Times       int64    `gorm:"column:times"`
	ParkedAt    utcTime  `gorm:"column:parked_at"`
	ReplayedAt  utcTime  `gorm:"column:replayed_at"`
}

func (parkedRow) TableName() string { return "parked_messages" }

type reportRow struct {
	ID      binaryID `gorm:"column:id;primaryKey;autoIncrement:false"`
	Created utcTime  `gorm:"column:created_at"`
	Body    []byte   `gorm:"column:body"`
}

func (reportRow) TableName() string { return "reconcile_reports" }

type auditRow struct {
	ID      binaryID `gorm:"column:id;primaryKey;autoIncrement:false"`
	Actor   string   `gorm:"column:actor"`
	Action  string   `gorm:"column:action"`
	Reason  string   `gorm:"column:reason"`
	Product string   `gorm:"column:product_id"`
	Before  string   `gorm:"column:state_before"`
	After   string   `gorm:"column:state_after"`
	Created utcTime  `gorm:"column:created_at"`
}

func (auditRow) TableName() string { return "audit_log" }

type barrierRow struct {
	ID     string  `gorm:"column:id;primaryKey;autoIncrement:false"`
	Place  string  `gorm:"column:place;primaryKey"`
	Passed utcTime `gorm:"column:passed_at"`
}

func (barrierRow) TableName() string { return "barriers" }
