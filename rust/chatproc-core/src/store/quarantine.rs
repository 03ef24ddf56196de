//! Refused lines: kept verbatim, listed, tried again, discarded; never dropped silently.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::inbox;
use crate::revision::{Intake, Refused, Spot, Verdict};
use crate::store::Store;
use crate::store::messages::{Stored, write_slice};

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

/// What a retry did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retried {
    /// The line's number.
    pub id: i64,
    /// `accepted`, `repeat` or `refused`.
    pub outcome: &'static str,
    /// Why it is still refused.
    pub reason: Option<String>,
    /// The same in words.
    pub explanation: Option<String>,
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

/// Takes a held line in again: the rules, or what is known, may have changed since.
pub fn retry(store: &mut Store, id: i64, max_line_bytes: u64) -> Result<Retried> {
    let line = show(store.conn(), id)?;
    let raw = match line.raw {
        Some(raw) => raw,
        None if line.length <= max_line_bytes => {
            let again = inbox::read_again(Path::new(&line.file), line.offset, line.length)?;
            again.ok_or_else(|| {
                let gone =
                    format!("no line of {} bytes stands at byte {} any more", line.length, line.offset);
                Error::Invalid(format!("{}: {gone}", line.file))
            })?
        }
        None => {
            let explanation =
                format!("the line has {} bytes, input.max_line_bytes allows {max_line_bytes}", line.length);
            let reason = Some(line.reason);
            return Ok(Retried { id, outcome: "refused", reason, explanation: Some(explanation) });
        }
    };
    store.write(|transaction| {
        // Set aside first, so that the line does not meet itself as one that was refused.
        transaction
            .execute("UPDATE quarantine SET identity = zeroblob(32), event = NULL WHERE id = ?1", [id])?;
        let mut intake = Intake::default();
        let spot = Spot { file: line.file, line: line.line, offset: line.offset };
        let verdict = intake.line(&Stored(transaction), &raw, spot)?;
        if verdict == Verdict::Refused {
            let refused = intake.refused.remove(0);
            let sql =
                "UPDATE quarantine SET identity = ?2, event = ?3, reason = ?4, explanation = ?5, raw = ?6
                       WHERE id = ?1";
            let reason = refused.reason.as_str().to_owned();
            let row = params![id, refused.identity, refused.event, reason, refused.explanation, refused.raw];
            transaction.execute(sql, row)?;
            let explanation = Some(refused.explanation);
            return Ok(Retried { id, outcome: "refused", reason: Some(reason), explanation });
        }
        // An accepted line is known by its event from now on: the row keeps only its history.
        let sql = "UPDATE quarantine SET identity = randomblob(32), state = 'accepted' WHERE id = ?1";
        transaction.execute(sql, [id])?;
        write_slice(transaction, &mut intake, None)?;
        let outcome = if verdict == Verdict::Repeat { "repeat" } else { "accepted" };
        Ok(Retried { id, outcome, reason: None, explanation: None })
    })
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
