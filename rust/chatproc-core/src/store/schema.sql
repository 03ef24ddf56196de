-- The whole state of chatproc, version 1. One file, opened by Rust alone.
--
-- Left to right, as a datum walks: files and events say what was read; messages hold each message's
-- newest revision as the newest delivery told it; segments are what is proven contiguous; the ledger
-- says which segments are done under which settings; tasks are the current records; the outbox holds
-- every revision ever published, in order; exports say which of its rows are in which file.
--
-- Times are milliseconds since 1970. Digests are 32 raw bytes. Lists are JSON text.
-- Sums that `status` shows are kept by triggers on segments, so that they add up after any fault.

CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

-- ── what was read ──────────────────────────────────────────────────────────────────────────────────
-- `consumed` bytes and `lines` lines are done with, `digest` is SHA-256 over exactly those bytes.
-- `waiting`: a last line without its newline was left unread, so that the file must be looked at again.
CREATE TABLE files(
  file INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  consumed INTEGER NOT NULL,
  lines INTEGER NOT NULL,
  digest BLOB NOT NULL,
  waiting INTEGER NOT NULL
) STRICT;

-- One row an accepted delivery. `id`: the first 16 bytes of SHA-256 of the event id; slim, because
-- there is one for every delivery for ever. `file` is null for a connector's page.
CREATE TABLE events(
  id BLOB PRIMARY KEY,
  hash BLOB NOT NULL,
  message INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  file INTEGER,
  line INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Refused lines, verbatim. `identity` tells a line that comes again: SHA-256 over the event hash where
-- there is one, else over its bytes and its place. `event`: the id that a line owns although its revision was refused.
-- `state`: held, accepted (by a retry), discarded.
CREATE TABLE quarantine(
  id INTEGER PRIMARY KEY,
  identity BLOB NOT NULL UNIQUE,
  file TEXT NOT NULL,
  line INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  reason TEXT NOT NULL,
  explanation TEXT NOT NULL,
  event BLOB,
  raw BLOB,
  state TEXT NOT NULL
) STRICT;
CREATE INDEX quarantine_event ON quarantine(event) WHERE event IS NOT NULL;
CREATE INDEX quarantine_held ON quarantine(id) WHERE state = 'held';

-- ── messages ───────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE conversations(
  conversation INTEGER PRIMARY KEY,
  platform TEXT NOT NULL,
  account_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT,
  type TEXT NOT NULL,
  named_at INTEGER NOT NULL,
  named_by TEXT NOT NULL,
  dirty INTEGER NOT NULL,
  forks INTEGER NOT NULL,
  UNIQUE(platform, account_id, id)
) STRICT;
CREATE INDEX conversations_dirty ON conversations(conversation) WHERE dirty = 1;
CREATE INDEX conversations_forks ON conversations(forks) WHERE forks > 0;

-- Everything that planning needs stands before `raw` and is short; planning reads no text.
-- `cost` and `digest` are the message's characters as sent and its part of the fingerprint.
-- `link`, `merged`: JSON, see store/messages.rs. `raw`: the newest delivery's line as it came.
CREATE TABLE messages(
  message INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  conversation INTEGER NOT NULL REFERENCES conversations,
  segment INTEGER,
  revision INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  state INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  sequenced INTEGER NOT NULL,
  position INTEGER,
  predecessor TEXT,
  cost INTEGER NOT NULL,
  files INTEGER NOT NULL,
  digest BLOB NOT NULL,
  content BLOB NOT NULL,
  collected_at INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  link TEXT,
  merged TEXT,
  raw BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_key ON messages(key);
CREATE INDEX messages_conversation ON messages(conversation);

-- Content of revisions below the newest: a repeat is a repeat, a change is a conflict.
CREATE TABLE revisions(
  message INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  content BLOB NOT NULL,
  merged TEXT,
  PRIMARY KEY(message, revision)
) STRICT, WITHOUT ROWID;

-- ── segments and the ledger ────────────────────────────────────────────────────────────────────────
-- `members`: message numbers in order; `carried`: those shown before them as history.
-- `status`: pending, failed, oversized, done, or idle (nothing of it can be pending).
-- system + recalled + history + live = number of members; `cited` of the live ones are sources of a task.
CREATE TABLE segments(
  segment INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL REFERENCES conversations,
  first_at INTEGER NOT NULL,
  first_position INTEGER,
  first_key TEXT NOT NULL,
  continuity TEXT NOT NULL,
  content_fp BLOB NOT NULL,
  chars INTEGER NOT NULL,
  sent INTEGER NOT NULL,
  files INTEGER NOT NULL,
  subject_at INTEGER,
  newest_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  failure TEXT,
  system INTEGER NOT NULL,
  recalled INTEGER NOT NULL,
  history INTEGER NOT NULL,
  live INTEGER NOT NULL,
  cited INTEGER NOT NULL,
  carried TEXT NOT NULL,
  members TEXT NOT NULL
) STRICT;
CREATE INDEX segments_conversation ON segments(conversation);
CREATE INDEX segments_open ON segments(status, conversation) WHERE status IN ('pending', 'failed', 'oversized');

-- Σ over segments by status; messages that stand in no segment yet are the rest.
CREATE TABLE coverage(
  status TEXT PRIMARY KEY,
  system INTEGER NOT NULL,
  recalled INTEGER NOT NULL,
  history INTEGER NOT NULL,
  live INTEGER NOT NULL,
  cited INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO coverage VALUES
  ('pending', 0, 0, 0, 0, 0), ('failed', 0, 0, 0, 0, 0), ('oversized', 0, 0, 0, 0, 0),
  ('done', 0, 0, 0, 0, 0), ('idle', 0, 0, 0, 0, 0);
CREATE TRIGGER segments_added AFTER INSERT ON segments BEGIN
  UPDATE coverage SET system = system + new.system, recalled = recalled + new.recalled,
    history = history + new.history, live = live + new.live, cited = cited + new.cited
  WHERE status = new.status;
END;
CREATE TRIGGER segments_gone AFTER DELETE ON segments BEGIN
  UPDATE coverage SET system = system - old.system, recalled = recalled - old.recalled,
    history = history - old.history, live = live - old.live, cited = cited - old.cited
  WHERE status = old.status;
END;
CREATE TRIGGER segments_changed
AFTER UPDATE OF status, system, recalled, history, live, cited ON segments BEGIN
  UPDATE coverage SET system = system - old.system, recalled = recalled - old.recalled,
    history = history - old.history, live = live - old.live, cited = cited - old.cited
  WHERE status = old.status;
  UPDATE coverage SET system = system + new.system, recalled = recalled + new.recalled,
    history = history + new.history, live = live + new.live, cited = cited + new.cited
  WHERE status = new.status;
END;

-- Which commit finished which content under which settings.
CREATE TABLE ledger(
  content_fp BLOB NOT NULL,
  settings_fp BLOB NOT NULL,
  "commit" INTEGER NOT NULL REFERENCES commits,
  PRIMARY KEY(content_fp, settings_fp)
) STRICT, WITHOUT ROWID;

CREATE TABLE commits(
  "commit" INTEGER PRIMARY KEY,
  round INTEGER NOT NULL,
  conversation INTEGER NOT NULL REFERENCES conversations,
  group_id TEXT NOT NULL,
  settings_fp BLOB NOT NULL,
  at INTEGER NOT NULL,
  model TEXT NOT NULL,
  rules_sha256 TEXT NOT NULL,
  usage TEXT NOT NULL,
  no_task_reason TEXT
) STRICT;

-- Why a segment's last attempt failed; the row goes when its content is committed.
CREATE TABLE failures(
  content_fp BLOB NOT NULL,
  settings_fp BLOB NOT NULL,
  attempts INTEGER NOT NULL,
  at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY(content_fp, settings_fp)
) STRICT, WITHOUT ROWID;

CREATE TABLE rounds(
  round INTEGER PRIMARY KEY,
  started INTEGER NOT NULL,
  ended INTEGER,
  report TEXT
) STRICT;

-- What of an attachment was sent to the model of a commit.
CREATE TABLE receipts(
  "commit" INTEGER NOT NULL REFERENCES commits,
  message INTEGER NOT NULL REFERENCES messages,
  attachment_id TEXT NOT NULL,
  unit TEXT NOT NULL,
  attachment_sha256 TEXT NOT NULL,
  content_sha256 TEXT NOT NULL,
  length INTEGER NOT NULL,
  PRIMARY KEY("commit", message, attachment_id, unit)
) STRICT, WITHOUT ROWID;

-- ── tasks ──────────────────────────────────────────────────────────────────────────────────────────
-- `record`: the task as published. The other columns are copies for filters and order.
-- `due_at`: the instant for order and filters; a date stands for its end; without one it is the
-- greatest number, so that such tasks come last.
CREATE TABLE tasks(
  task INTEGER PRIMARY KEY,
  task_id TEXT NOT NULL UNIQUE,
  revision INTEGER NOT NULL,
  status TEXT NOT NULL,
  status_by TEXT NOT NULL,
  priority TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  conversation INTEGER NOT NULL REFERENCES conversations,
  last_commit INTEGER NOT NULL REFERENCES commits,
  record TEXT NOT NULL
) STRICT;
-- One index an order; `list_tasks` reads each status by itself and merges them.
CREATE INDEX tasks_due ON tasks(status, due_at);
CREATE INDEX tasks_priority ON tasks(status, priority, due_at);
CREATE INDEX tasks_updated ON tasks(status, updated_at);
CREATE INDEX tasks_created ON tasks(status);

CREATE TABLE task_sources(
  task INTEGER NOT NULL REFERENCES tasks,
  message INTEGER NOT NULL REFERENCES messages,
  PRIMARY KEY(task, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_sources_message ON task_sources(message);

-- Conversations of a task's sources, for the filters by platform and conversation.
CREATE TABLE task_conversations(
  task INTEGER NOT NULL REFERENCES tasks,
  conversation INTEGER NOT NULL REFERENCES conversations,
  PRIMARY KEY(task, conversation)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_conversations_conversation ON task_conversations(conversation);

-- Which tasks a commit submitted, changed or not.
CREATE TABLE submissions(
  "commit" INTEGER NOT NULL REFERENCES commits,
  task INTEGER NOT NULL REFERENCES tasks,
  PRIMARY KEY("commit", task)
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_task ON submissions(task);

-- Pairs of neighbouring characters as words, so that one index finds substrings of any length,
-- two Chinese characters too; rowid = task. `people` are the names, apart for the filter by people.
CREATE VIRTUAL TABLE task_search USING fts5(
  pairs, people, content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- ── outbox ─────────────────────────────────────────────────────────────────────────────────────────
-- Every revision of every task, as it is published: the line's bytes never change.
CREATE TABLE outbox(
  "row" INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  task INTEGER NOT NULL REFERENCES tasks,
  revision INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  why TEXT NOT NULL,
  line BLOB NOT NULL,
  UNIQUE(task, revision)
) STRICT;

-- Rows first…last are in `file`; `done` once it stands there under its name.
CREATE TABLE exports(
  first_row INTEGER PRIMARY KEY,
  last_row INTEGER NOT NULL,
  file TEXT NOT NULL UNIQUE,
  sha256 BLOB NOT NULL,
  done INTEGER NOT NULL
) STRICT;
CREATE INDEX exports_open ON exports(first_row) WHERE done = 0;

-- Users' requests, remembered for ever: the same one again gets the first answer.
CREATE TABLE requests(
  request_id TEXT PRIMARY KEY,
  content BLOB NOT NULL,
  "row" INTEGER NOT NULL REFERENCES outbox
) STRICT, WITHOUT ROWID;
