-- Planning reads every message of a conversation and no line, and writes nothing but segment numbers: each
-- stands in a table of its own, so that neither drags the long rows along.

-- The newest delivery's line as it came.
CREATE TABLE lines(
  message INTEGER PRIMARY KEY,
  raw BLOB NOT NULL
) STRICT;
INSERT INTO lines SELECT message, raw FROM messages;
ALTER TABLE messages DROP COLUMN raw;

-- The segment that a message stands in; none before its conversation is planned.
CREATE TABLE members(
  message INTEGER PRIMARY KEY,
  segment INTEGER NOT NULL
) STRICT;
INSERT INTO members SELECT message, segment FROM messages WHERE segment IS NOT NULL;
ALTER TABLE messages DROP COLUMN segment;
