-- +goose Up
CREATE TABLE IF NOT EXISTS parked_messages (
  id BLOB NOT NULL,
  fingerprint BLOB NOT NULL, -- of origin, reason and body: a repeat is stored once
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  product_id TEXT NOT NULL,
  body BLOB NOT NULL,
  message_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  queue_offset INTEGER NOT NULL,
  times INTEGER NOT NULL,
  parked_at TEXT NOT NULL,
  replayed_at TEXT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS parked_messages_once ON parked_messages (fingerprint);
CREATE INDEX IF NOT EXISTS parked_messages_waiting ON parked_messages (replayed_at, id);

CREATE TABLE IF NOT EXISTS reconcile_reports (
  id BLOB NOT NULL,
  created_at TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (id)
) STRICT;

CREATE TABLE IF NOT EXISTS audit_log (
  id BLOB NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  reason TEXT NOT NULL,
  product_id TEXT NOT NULL,
  state_before TEXT NOT NULL,
  state_after TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX IF NOT EXISTS audit_log_product ON audit_log (product_id, id);

CREATE TABLE IF NOT EXISTS barriers (
  id TEXT NOT NULL,
  place TEXT NOT NULL,
  passed_at TEXT NOT NULL,
  PRIMARY KEY (id, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS barriers_age ON barriers (passed_at);

-- +goose Down
DROP TABLE IF EXISTS barriers;
DROP TABLE IF EXISTS audit_log;
DROP TABLE IF EXISTS reconcile_reports;
DROP TABLE IF EXISTS parked_messages;
