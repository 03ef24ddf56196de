-- Planning looks at what new and changed messages touch, however long their conversation is.

-- Messages that stand in a segment and changed since it was made. `moved`: their place may be another one.
CREATE TABLE changed(
  message INTEGER PRIMARY KEY,
  moved INTEGER NOT NULL
) STRICT;
CREATE TRIGGER messages_changed AFTER UPDATE ON messages
WHEN (old.conversation, old.kind, old.state, old.sent_at, old.sequenced, old.position, old.predecessor,
      old.cost, old.files, old.digest)
  IS NOT (new.conversation, new.kind, new.state, new.sent_at, new.sequenced, new.position, new.predecessor,
      new.cost, new.files, new.digest)
  AND EXISTS(SELECT 1 FROM members WHERE message = new.message)
BEGIN
  INSERT INTO changed VALUES(new.message,
    (old.conversation, old.kind, old.sent_at, old.sequenced, old.predecessor)
      IS NOT (new.conversation, new.kind, new.sent_at, new.sequenced, new.predecessor))
  ON CONFLICT DO UPDATE SET moved = max(moved, excluded.moved);
END;

-- The key that a segment's first message claims to follow. Within a segment each follows the one before it, so
-- that these are all claims there are, wherever links decide.
ALTER TABLE segments ADD COLUMN predecessor TEXT;
CREATE INDEX segments_predecessor ON segments(conversation, predecessor) WHERE predecessor IS NOT NULL;
DROP INDEX segments_conversation;
CREATE INDEX segments_conversation ON segments(conversation, first_at);
-- Every conversation is segmented anew, once, which fills it in.
DELETE FROM meta WHERE key = 'view';
