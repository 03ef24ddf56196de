-- Lists and searches cost a page, however many tasks there are.

-- Tasks by status, priority and `span`, which is `due_at` without its last 26 bits (some 18 hours): `total` of
-- a list, and the counts that `status` shows. A row that counts none is gone.
CREATE TABLE task_counts(
  status TEXT NOT NULL,
  priority TEXT NOT NULL,
  span INTEGER NOT NULL,
  tasks INTEGER NOT NULL,
  PRIMARY KEY(status, priority, span)
) STRICT, WITHOUT ROWID;
INSERT INTO task_counts SELECT status, priority, due_at >> 26, count(*) FROM tasks GROUP BY 1, 2, 3;

-- All that filters and orders ask of a task that a search found: rows are wide.
CREATE INDEX tasks_places ON tasks(task, status, priority, due_at, updated_at);
CREATE INDEX conversations_id ON conversations(id);
-- A page of a conversation is in the order of time.
DROP INDEX messages_conversation;
CREATE INDEX messages_conversation ON messages(conversation, sent_at);

-- Grams as words instead of pairs, see store/grams.rs; the migration fills it from the tasks.
DROP TABLE task_search;
CREATE VIRTUAL TABLE task_search USING fts5(
  texts, people, content = '', contentless_delete = 1, tokenize = 'ascii'
);
