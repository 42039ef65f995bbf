-- +goose Up
CREATE TABLE IF NOT EXISTS product_stock (
  product_id TEXT NOT NULL,
  stock INTEGER NOT NULL,
  version INTEGER NOT NULL,
  total INTEGER NOT NULL, -- put on sale, stock changes included
  opened_with INTEGER NOT NULL, -- total at the start
  epoch INTEGER NOT NULL,
  open_epoch INTEGER NOT NULL,
  state INTEGER NOT NULL, -- 1 open, 2 suspended, 3 damaged
  reason TEXT NOT NULL,
  paused INTEGER NOT NULL,
  opens_at TEXT NULL,
  closes_at TEXT NULL,
  limit_per_buyer INTEGER NOT NULL,
  terms_revision INTEGER NOT NULL,
  lease_holder TEXT NOT NULL,
  lease_until TEXT NULL,
  suspension INTEGER NOT NULL, -- raised when the product is suspended
  suspended_at TEXT NULL, -- while it is not open
  closed_ms INTEGER NOT NULL, -- how long it was not open, the last time
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (product_id),
  CONSTRAINT product_stock_within_total CHECK (stock >= 0 AND stock <= total),
  CONSTRAINT product_stock_lengths CHECK (octet_length(product_id) <= 64)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS orders (
  id BLOB NOT NULL,
  product_id TEXT NOT NULL,
  uid TEXT NOT NULL,
  token TEXT NOT NULL,
  quantity INTEGER NOT NULL,
  status INTEGER NOT NULL, -- 1 confirmed, 2 cancelled, 3 rejected
  from_birth INTEGER NOT NULL, -- 0: was confirmed before it was cancelled
  epoch INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  stock_version INTEGER NOT NULL,
  attempt TEXT NOT NULL,
  group_id BLOB NOT NULL, -- the try that wrote the row
  gate_told INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT orders_quantity CHECK (quantity > 0),
  CONSTRAINT orders_lengths CHECK (octet_length(product_id) <= 64 AND octet_length(uid) <= 64 AND octet_length(token) <= 64 AND octet_length(attempt) <= 64)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS orders_key ON orders (product_id, uid, token);
CREATE INDEX IF NOT EXISTS orders_version ON orders (product_id, stock_version, id);
CREATE INDEX IF NOT EXISTS orders_untold ON orders (gate_told, id);

CREATE TABLE IF NOT EXISTS stock_flow (
  product_id TEXT NOT NULL,
  quantity INTEGER NOT NULL, -- units, always positive; op_type gives the direction
  op_type TEXT NOT NULL, -- SECKILL takes, CANCEL gives back
  action TEXT NOT NULL, -- the action of the gate's flow
  order_id BLOB NOT NULL,
  epoch INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  create_time TEXT NOT NULL,
  PRIMARY KEY (product_id, order_id, op_type),
  CONSTRAINT stock_flow_quantity CHECK (quantity > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS stock_changes (
  id BLOB NOT NULL,
  product_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  quantity INTEGER NOT NULL, -- units, always positive; status gives the direction
  status INTEGER NOT NULL, -- 1 withdrawn, 2 cancelled and 3 rejected: a withdrawal that took nothing, 4 added
  epoch INTEGER NOT NULL, -- with sequence and attempt: of the flow of a withdrawal
  sequence INTEGER NOT NULL,
  stock_version INTEGER NOT NULL,
  attempt TEXT NOT NULL,
  gate_told INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT stock_changes_quantity CHECK (quantity > 0),
  CONSTRAINT stock_changes_lengths CHECK (octet_length(product_id) <= 64 AND octet_length(idempotency_key) <= 64 AND octet_length(attempt) <= 64)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS stock_changes_key ON stock_changes (product_id, idempotency_key);
CREATE INDEX IF NOT EXISTS stock_changes_version ON stock_changes (product_id, stock_version, id);
CREATE INDEX IF NOT EXISTS stock_changes_untold ON stock_changes (gate_told, id);

-- +goose Down
DROP TABLE IF EXISTS stock_changes;
DROP TABLE IF EXISTS stock_flow;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS product_stock;
