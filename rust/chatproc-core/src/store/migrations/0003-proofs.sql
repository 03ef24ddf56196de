-- `proof`: SHA-256 over the values of the row, see store/proof.rs: a changed byte shows where nothing else
-- in the store tells it. Null in rows that were written before, and where a message's line tells all.
-- A commit's covers its receipts and submissions too.
ALTER TABLE messages ADD COLUMN proof BLOB;
ALTER TABLE revisions ADD COLUMN proof BLOB;
ALTER TABLE commits ADD COLUMN proof BLOB;
ALTER TABLE outbox ADD COLUMN proof BLOB;
ALTER TABLE requests ADD COLUMN proof BLOB;
