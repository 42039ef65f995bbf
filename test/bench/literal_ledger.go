package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// literalSchema has what the literal transaction needs, and no index more.
var literalSchema = []string{
	`CREATE TABLE product_stock (product_id VARBINARY(64) NOT NULL PRIMARY KEY, total BIGINT NOT NULL, stock BIGINT NOT NULL, version BIGINT NOT NULL) ENGINE = InnoDB`,
	`CREATE TABLE orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, product_id VARBINARY(64) NOT NULL, uid VARBINARY(64) NOT NULL,
		token VARBINARY(64) NOT NULL, quantity BIGINT NOT NULL, created_at DATETIME(3) NOT NULL, UNIQUE KEY orders_key (product_id, uid, token)) ENGINE = InnoDB`,
	`CREATE TABLE stock_flow (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, product_id VARBINARY(64) NOT NULL, uid VARBINARY(64) NOT NULL, token VARBINARY(64) NOT NULL,
		quantity BIGINT NOT NULL, op_type VARBINARY(16) NOT NULL, create_time DATETIME(3) NOT NULL) ENGINE = InnoDB`,
}

// literalLedger applies one message in one transaction.
type literalLedger struct{ db *sql.DB }

func openLiteralLedger(dsn string, workers int) (*literalLedger, error) {
	db, err := openReadCommitted(dsn, workers+2)
	if err != nil {
		return nil, err
	}
	return &literalLedger{db}, nil
}

// prepare makes the tables and a product.
func (l *literalLedger) prepare(ctx context.Context, product string, units int64) error {
	for _, statement := range literalSchema {
		if _, err := l.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	_, err := l.db.ExecContext(ctx, "INSERT INTO product_stock VALUES (?, ?, ?, 0)", product, units, units)
	return err
}

var errConflict = errors.New("the version has moved")

// apply tries until the version did not move between the read and the update.
func (l *literalLedger) apply(body []byte) error {
	var m literalMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for try := 1; ; try++ {
		err := l.once(ctx, m)
		if !again(err) || ctx.Err() != nil {
			return err
		}
		pauseBefore(try)
	}
}

// again says whether an error is a conflict with another worker: version, deadlock, lock wait, row changed.
func again(err error) bool {
	var server *mysql.MySQLError
	return errors.Is(err, errConflict) ||
		errors.As(err, &server) && (server.Number == 1213 || server.Number == 1205 || server.Number == 1020)
}

// once reads the version, takes the units if it has not moved, and writes flow and order. One that was there is met.
func (l *literalLedger) once(ctx context.Context, m literalMessage) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var version int64
	if err := tx.QueryRowContext(ctx, "SELECT version FROM product_stock WHERE product_id = ?", m.Product).Scan(&version); err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, "UPDATE product_stock SET stock = stock - ?, version = version + 1 WHERE product_id = ? AND version = ? AND stock >= ?",
		m.Quantity, m.Product, version, m.Quantity)
	if err != nil {
		return err
	}
	if changed, err := done.RowsAffected(); err != nil || changed != 1 {
		return errors.Join(err, errConflict)
	}
	now := time.Now().UTC()
	if _, err := tx.ExecContext(ctx, "INSERT INTO stock_flow (product_id, uid, token, quantity, op_type, create_time) VALUES (?, ?, ?, ?, 'SECKILL', ?)",
		m.Product, m.User, m.Token, m.Quantity, now); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO orders (product_id, uid, token, quantity, created_at) VALUES (?, ?, ?, ?, ?)",
		m.Product, m.User, m.Token, m.Quantity, now)
	var server *mysql.MySQLError
	if errors.As(err, &server) && server.Number == 1062 { // delivered before
		return nil
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// rows counts what is sold, and holds the three tables against each other in one snapshot.
func (l *literalLedger) rows(ctx context.Context, product string) (int64, error) {
	var sold, orders, flows int64
	err := l.db.QueryRowContext(ctx, `SELECT total - stock, (SELECT COUNT(*) FROM orders o WHERE o.product_id = s.product_id),
		(SELECT COUNT(*) FROM stock_flow f WHERE f.product_id = s.product_id) FROM product_stock s WHERE product_id = ?`, product).Scan(&sold, &orders, &flows)
	if err == nil && (sold != orders || sold != flows) {
		err = fmt.Errorf("the literal baseline is wrong: %d sold, %d orders, %d flows", sold, orders, flows)
	}
	return orders, err
}

// sold is the count alone, for looking often.
func (l *literalLedger) sold(ctx context.Context, product string) (n int64, err error) {
	return n, l.db.QueryRowContext(ctx, "SELECT total - stock FROM product_stock WHERE product_id = ?", product).Scan(&n)
}
