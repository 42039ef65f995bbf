-- +goose Up
CREATE TABLE IF NOT EXISTS product_stock (
  product_id VARBINARY(64) NOT NULL,
  stock BIGINT NOT NULL,
  version BIGINT NOT NULL,
  total BIGINT NOT NULL COMMENT 'put on sale, stock changes included',
  opened_with BIGINT NOT NULL COMMENT 'total at the start',
  epoch BIGINT NOT NULL,
  open_epoch BIGINT NOT NULL COMMENT 'epoch under which it is or was last open',
  state TINYINT NOT NULL COMMENT '1 open, 2 suspended, 3 damaged',
  reason VARCHAR(500) NOT NULL,
  paused TINYINT NOT NULL,
  opens_at DATETIME(3) NULL,
  closes_at DATETIME(3) NULL,
  limit_per_buyer BIGINT NOT NULL,
  terms_revision BIGINT NOT NULL,
  lease_holder VARBINARY(128) NOT NULL,
  lease_until DATETIME(3) NULL,
  suspension BIGINT NOT NULL COMMENT 'raised when the product is suspended',
  suspended_at DATETIME(3) NULL COMMENT 'while it is not open',
  closed_ms BIGINT NOT NULL COMMENT 'how long it was not open, the last time',
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  PRIMARY KEY (product_id),
  CONSTRAINT product_stock_within_total CHECK (stock >= 0 AND stock <= total)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS orders (
  id BINARY(16) NOT NULL,
  product_id VARBINARY(64) NOT NULL,
  uid VARBINARY(64) NOT NULL,
  token VARBINARY(64) NOT NULL,
  quantity BIGINT NOT NULL,
  status TINYINT NOT NULL COMMENT '1 confirmed, 2 cancelled, 3 rejected',
  from_birth TINYINT NOT NULL COMMENT '0: was confirmed before it was cancelled',
  epoch BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  stock_version BIGINT NOT NULL,
  attempt VARBINARY(64) NOT NULL,
  group_id BINARY(16) NOT NULL COMMENT 'the try that wrote the row',
  gate_told TINYINT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY orders_key (product_id, uid, token),
  KEY orders_version (product_id, stock_version, id),
  KEY orders_untold (gate_told, id),
  CONSTRAINT orders_quantity CHECK (quantity > 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS stock_flow (
  product_id VARBINARY(64) NOT NULL,
  quantity BIGINT NOT NULL COMMENT 'units, always positive; op_type gives the direction',
  op_type VARBINARY(16) NOT NULL COMMENT 'SECKILL takes, CANCEL gives back',
  action VARBINARY(16) NOT NULL COMMENT 'the action of the gate''s flow',
  order_id BINARY(16) NOT NULL,
  epoch BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  create_time DATETIME(3) NOT NULL,
  PRIMARY KEY (product_id, order_id, op_type),
  CONSTRAINT stock_flow_quantity CHECK (quantity > 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS stock_changes (
  id BINARY(16) NOT NULL,
  product_id VARBINARY(64) NOT NULL,
  idempotency_key VARBINARY(64) NOT NULL,
  quantity BIGINT NOT NULL COMMENT 'units, always positive; status gives the direction',
  status TINYINT NOT NULL COMMENT '1 withdrawn, 2 cancelled and 3 rejected: a withdrawal that took nothing, 4 added',
  epoch BIGINT NOT NULL COMMENT 'with sequence and attempt: of the flow of a withdrawal',
  sequence BIGINT NOT NULL,
  stock_version BIGINT NOT NULL,
  attempt VARBINARY(64) NOT NULL,
  gate_told TINYINT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY stock_changes_key (product_id, idempotency_key),
  KEY stock_changes_version (product_id, stock_version, id),
  KEY stock_changes_untold (gate_told, id),
  CONSTRAINT stock_changes_quantity CHECK (quantity > 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS stock_changes;
DROP TABLE IF EXISTS stock_flow;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS product_stock;
