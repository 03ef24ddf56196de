//! Refused lines: kept verbatim, listed, discarded; never dropped silently.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::revision::Refused;
use crate::store::Store;

/// A refused line as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldLine {
    /// Its number in the quarantine.
    pub id: i64,
    /// The batch file.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// Bytes before it.
    pub offset: u64,
    /// Bytes of the line.
    pub length: u64,
    /// The contract's reason code.
    pub reason: String,
    /// Why, in words.
    pub explanation: String,
    /// The line's bytes; none of a line that was too long to hold.
    #[serde(skip)]
    pub raw: Option<Vec<u8>>,
}

/// Lists a line that was refused for the first time.
pub(crate) fn hold(transaction: &Transaction<'_>, refused: &Refused) -> Result<()> {
    let sql = "INSERT INTO quarantine VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'held')";
    transaction.prepare_cached(sql)?.execute(params![
        refused.identity,
        refused.spot.file,
        signed(refused.spot.line),
        signed(refused.spot.offset),
        signed(refused.length),
        refused.reason.as_str(),
        refused.explanation,
        refused.event,
        refused.raw,
    ])?;
    Ok(())
}

/// All lines that are held, in the order in which they were met.
pub fn list(conn: &Connection) -> Result<Vec<HeldLine>> {
    let mut query = conn.prepare_cached("SELECT * FROM quarantine WHERE state = 'held' ORDER BY id")?;
    let lines = query.query_map([], held_line)?.collect::<rusqlite::Result<_>>()?;
    Ok(lines)
}

/// How many lines are held.
pub fn held(conn: &Connection) -> Result<u64> {
    let sql = "SELECT count(*) FROM quarantine WHERE state = 'held'";
    Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// One held line.
pub fn show(conn: &Connection, id: i64) -> Result<HeldLine> {
    let mut query = conn.prepare_cached("SELECT * FROM quarantine WHERE id = ?1 AND state = 'held'")?;
    query
        .query_row([id], held_line)
        .optional()?
        .ok_or_else(|| Error::NotFound(format!("no line {id} is in the quarantine")))
}

/// Takes a line off the list. It stays known: when it comes again it is a repeat.
pub fn discard(store: &mut Store, id: i64) -> Result<()> {
    show(store.conn(), id)?;
    store.write(|transaction| {
        transaction.execute("UPDATE quarantine SET state = 'discarded' WHERE id = ?1", [id])?;
        Ok(())
    })
}

fn held_line(row: &Row<'_>) -> rusqlite::Result<HeldLine> {
    let unsigned = |name| row.get::<_, i64>(name).map(i64::unsigned_abs);
    Ok(HeldLine {
        id: row.get("id")?,
        file: row.get("file")?,
        line: unsigned("line")?,
        offset: unsigned("offset")?,
        length: unsigned("length")?,
        reason: row.get("reason")?,
        explanation: row.get("explanation")?,
        raw: row.get("raw")?,
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
