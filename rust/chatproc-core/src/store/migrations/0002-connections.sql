-- Where each connection stands in its source, and its runs. Times are milliseconds since 1970.

-- `cursor`: JSON, the connector's own; written with the events that it passes. `budget_day`: the day that
-- `requests_used` and `items_used` count for. `page_limit`: what the source found not too large.
-- `stopped_by`: mark of the configuration and credential that a source refused. runs … quarantined count
-- for ever. The lease is the run's that is at work; it is lost only when another run takes it.
CREATE TABLE connections(
  toolkit TEXT NOT NULL,
  id TEXT NOT NULL,
  cursor TEXT NOT NULL DEFAULT '{}',
  last_attempt_at INTEGER,
  last_success_at INTEGER,
  next_due_at INTEGER,
  budget_day TEXT NOT NULL DEFAULT '',
  requests_used INTEGER NOT NULL DEFAULT 0,
  items_used INTEGER NOT NULL DEFAULT 0,
  failures_in_row INTEGER NOT NULL DEFAULT 0,
  breaker TEXT NOT NULL DEFAULT 'closed' CHECK(breaker IN ('closed', 'open', 'half-open')),
  page_limit INTEGER,
  stopped_by TEXT,
  error_class TEXT,
  error_text TEXT,
  error_at INTEGER,
  more_pending INTEGER NOT NULL DEFAULT 0,
  runs INTEGER NOT NULL DEFAULT 0,
  written INTEGER NOT NULL DEFAULT 0,
  repeats INTEGER NOT NULL DEFAULT 0,
  quarantined INTEGER NOT NULL DEFAULT 0,
  lease_run INTEGER,
  lease_holder TEXT,
  lease_until INTEGER,
  PRIMARY KEY(toolkit, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sync_runs(
  run INTEGER PRIMARY KEY,
  toolkit TEXT NOT NULL,
  id TEXT NOT NULL,
  "trigger" TEXT NOT NULL CHECK("trigger" IN ('tick', 'watch', 'sync', 'nudge')),
  started INTEGER NOT NULL,
  ended INTEGER,
  read INTEGER NOT NULL DEFAULT 0,
  written INTEGER NOT NULL DEFAULT 0,
  repeats INTEGER NOT NULL DEFAULT 0,
  quarantined INTEGER NOT NULL DEFAULT 0,
  requests INTEGER NOT NULL DEFAULT 0,
  more_pending INTEGER NOT NULL,
  outcome TEXT CHECK(outcome IN ('done', 'paused', 'failed', 'stopped')),
  error_class TEXT,
  error_text TEXT
) STRICT;
CREATE INDEX sync_runs_connection ON sync_runs(toolkit, id, run);
