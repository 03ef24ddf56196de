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
CREATE TRIGGER tasks_added AFTER INSERT ON tasks BEGIN
  INSERT INTO task_counts VALUES (new.status, new.priority, new.due_at >> 26, 1)
    ON CONFLICT DO UPDATE SET tasks = tasks + 1;
END;
CREATE TRIGGER tasks_gone AFTER DELETE ON tasks BEGIN
  UPDATE task_counts SET tasks = tasks - 1
    WHERE status = old.status AND priority = old.priority AND span = old.due_at >> 26;
  DELETE FROM task_counts
    WHERE status = old.status AND priority = old.priority AND span = old.due_at >> 26 AND tasks = 0;
END;
CREATE TRIGGER tasks_changed AFTER UPDATE OF status, priority, due_at ON tasks
WHEN old.status <> new.status OR old.priority <> new.priority OR old.due_at <> new.due_at BEGIN
  UPDATE task_counts SET tasks = tasks - 1
    WHERE status = old.status AND priority = old.priority AND span = old.due_at >> 26;
  DELETE FROM task_counts
    WHERE status = old.status AND priority = old.priority AND span = old.due_at >> 26 AND tasks = 0;
  INSERT INTO task_counts VALUES (new.status, new.priority, new.due_at >> 26, 1)
    ON CONFLICT DO UPDATE SET tasks = tasks + 1;
END;

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
