//! Every revision of every task, in order and as it is published, and which file its row belongs to.
//!
//! A row is written in the transaction that makes its revision and never changes. Rows have no gaps:
//! nothing deletes one, and a rolled-back transaction gives its numbers back.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::proof;
use crate::error::{Error, Result};
use crate::fingerprint;
use crate::task::Record;
use crate::zone::Zone;

/// The most rows of a file.
const FILE_ROWS: i64 = 10_000;
/// A file that holds so many bytes takes no further row: its bytes are held while it is written.
const FILE_BYTES: usize = 32 << 20;

/// One line of the output: `chatproc.task-event/1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TaskEvent {
    pub schema: String,
    pub operation: String,
    /// The same for the same revision, for ever.
    pub event_id: String,
    pub task_id: String,
    pub revision: i64,
    pub emitted_at: String,
    pub task: Record,
}

/// A revision to publish.
pub(super) struct Revision<'a> {
    pub task: i64,
    pub task_id: &'a str,
    pub number: i64,
    pub record: &'a Record,
    pub at: i64,
    /// `model:NAME`, `user:NAME` or `program`.
    pub actor: &'a str,
    pub why: &'a str,
}

/// A file that rows are assigned to and that does not stand under its name yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Whether its bytes are at hand: they were read to assign it.
    read: bool,
    /// Its name in the output folder.
    pub file: String,
    /// Its first row.
    pub first: i64,
    /// Its last row.
    pub last: i64,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
}

impl Assigned {
    /// How many events it holds.
    #[must_use]
    pub fn events(&self) -> i64 {
        self.last - self.first + 1
    }

    /// Reads the bytes of its rows, if [`next_file`] did not. They must be those that were assigned.
    pub fn read(&self, conn: &Connection, bytes: &mut Vec<u8>) -> Result<()> {
        if self.read {
            return Ok(());
        }
        bytes.clear();
        for_each_line(conn, self.first, self.last, |_, line| {
            bytes.extend_from_slice(line);
            Ok(true)
        })?;
        if <[u8; 32]>::from(Sha256::digest(&bytes)) != self.sha256 {
            let what = "the outbox no longer holds the bytes that were assigned to";
            return Err(Error::Invalid(format!("{what} {}", self.file)));
        }
        Ok(())
    }
}

/// Writes a revision's event and returns its row.
pub(super) fn append(conn: &Connection, revision: &Revision<'_>, zone: &Zone) -> Result<i64> {
    let event = TaskEvent {
        schema: "chatproc.task-event/1".to_owned(),
        operation: "upsert".to_owned(),
        event_id: fingerprint::task_event_id(revision.task_id, revision.number.unsigned_abs()),
        task_id: revision.task_id.to_owned(),
        revision: revision.number,
        emitted_at: zone.rfc3339(revision.at)?,
        task: revision.record.clone(),
    };
    let mut line = serde_json::to_vec(&event)?;
    line.push(b'\n');
    let proof =
        proof::event(revision.task, revision.number, revision.at, revision.actor, revision.why, &line);
    conn.prepare_cached(
        "INSERT INTO outbox(event_id, task, revision, at, actor, why, line, proof)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        event.event_id,
        revision.task,
        revision.number,
        revision.at,
        revision.actor,
        revision.why,
        line,
        proof
    ])?;
    Ok(conn.last_insert_rowid())
}

/// The event of a row.
pub(super) fn event(conn: &Connection, row: i64) -> Result<TaskEvent> {
    let line: Vec<u8> =
        conn.query_row("SELECT line FROM outbox WHERE \"row\" = ?1", [row], |row| row.get(0))?;
    Ok(serde_json::from_slice(&line)?)
}

/// How many events stand in no finished file.
pub fn pending(conn: &Connection) -> Result<i64> {
    let sql = "SELECT coalesce(max(\"row\"), 0) - coalesce(
                 (SELECT last_row FROM exports WHERE done = 1 ORDER BY first_row DESC LIMIT 1), 0) FROM outbox";
    Ok(conn.query_row(sql, [], |row| row.get(0))?)
}

/// Marks a file that stands under its name, and gives the one to write next, both durably: one that an earlier
/// run left, else one for the rows that no file has yet, whose bytes are then in `bytes`.
pub fn next_file(
    conn: &mut Connection,
    written: Option<&Assigned>,
    bytes: &mut Vec<u8>,
) -> Result<Option<Assigned>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(written) = written {
        tx.execute("UPDATE exports SET done = 1 WHERE first_row = ?1", [written.first])?;
    }
    let next = match unfinished(&tx)? {
        Some(file) => Some(file),
        None => assign(&tx, bytes)?,
    };
    tx.commit()?;
    Ok(next)
}

/// The first file that rows are assigned to and that is not done.
fn unfinished(conn: &Connection) -> Result<Option<Assigned>> {
    let sql =
        "SELECT file, first_row, last_row, sha256 FROM exports WHERE done = 0 ORDER BY first_row LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Assigned {
            read: false,
            file: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            sha256: row.get(3)?,
        })
    };
    Ok(conn.query_row(sql, [], read).optional()?)
}

/// Assigns the oldest rows that have no file to one, up to ten thousand.
fn assign(tx: &Connection, bytes: &mut Vec<u8>) -> Result<Option<Assigned>> {
    let watermark: i64 = tx.query_row(
        "SELECT coalesce((SELECT last_row FROM exports ORDER BY first_row DESC LIMIT 1), 0)",
        [],
        |row| row.get(0),
    )?;
    let (first, mut last) = (watermark + 1, watermark);
    bytes.clear();
    for_each_line(tx, first, watermark + FILE_ROWS, |row, line| {
        bytes.extend_from_slice(line);
        last = row;
        Ok(bytes.len() < FILE_BYTES)
    })?;
    if last < first {
        return Ok(None);
    }
    let file = Assigned {
        file: format!("todos-{first:012}-{last:012}.jsonl"),
        first,
        last,
        sha256: Sha256::digest(&bytes).into(),
        read: true,
    };
    tx.execute(
        "INSERT INTO exports(first_row, last_row, file, sha256, done) VALUES (?1, ?2, ?3, ?4, 0)",
        params![file.first, file.last, file.file, file.sha256],
    )?;
    Ok(Some(file))
}

/// The first and the last row of a file, by its name; none where that is not one of ours.
#[must_use]
pub fn rows_of(file: &str) -> Option<(i64, i64)> {
    let (first, last) = file.strip_prefix("todos-")?.strip_suffix(".jsonl")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Gives the numbers and lines of rows `first` to `last`, one after the other, while `take` wants more.
pub fn for_each_line(
    conn: &Connection,
    first: i64,
    last: i64,
    mut take: impl FnMut(i64, &[u8]) -> Result<bool>,
) -> Result<()> {
    let sql = "SELECT \"row\", line FROM outbox WHERE \"row\" BETWEEN ?1 AND ?2 ORDER BY \"row\"";
    let mut lines = conn.prepare_cached(sql)?;
    let mut rows = lines.query([first, last])?;
    while let Some(row) = rows.next()? {
        if !take(row.get(0)?, row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)? {
            break;
        }
    }
    Ok(())
}
