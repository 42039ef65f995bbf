-- +goose Up
CREATE TABLE IF NOT EXISTS parked_messages (
  id BINARY(16) NOT NULL,
  fingerprint BINARY(32) NOT NULL COMMENT 'of origin, reason and body: a repeat is stored once',
  reason VARBINARY(32) NOT NULL,
  detail VARCHAR(500) NOT NULL,
  product_id VARBINARY(64) NOT NULL,
  body MEDIUMBLOB NOT NULL,
  message_id VARBINARY(255) NOT NULL,
  queue VARBINARY(512) NOT NULL,
  queue_offset BIGINT NOT NULL,
  times BIGINT NOT NULL,
  parked_at DATETIME(3) NOT NULL,
  replayed_at DATETIME(3) NULL,
  PRIMARY KEY (id),
  UNIQUE KEY parked_messages_once (fingerprint),
  KEY parked_messages_waiting (replayed_at, id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS reconcile_reports (
  id BINARY(16) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  body MEDIUMBLOB NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit_log (
  id BINARY(16) NOT NULL,
  actor VARCHAR(64) NOT NULL,
  action VARCHAR(64) NOT NULL,
  reason VARCHAR(500) NOT NULL,
  product_id VARBINARY(64) NOT NULL,
  state_before MEDIUMTEXT NOT NULL,
  state_after MEDIUMTEXT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  KEY audit_log_product (product_id, id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS barriers (
  id VARBINARY(64) NOT NULL,
  place VARBINARY(512) NOT NULL,
  passed_at DATETIME(3) NOT NULL,
  PRIMARY KEY (id, place),
  KEY barriers_age (passed_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS barriers;
DROP TABLE IF EXISTS audit_log;
DROP TABLE IF EXISTS reconcile_reports;
DROP TABLE IF EXISTS parked_messages;
