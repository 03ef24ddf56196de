//! Commits with their receipts and submissions, and the places of connections.

use std::collections::HashMap;

use rusqlite::{Connection, Row};

use super::{Findings, differing};
use crate::error::Result;
use crate::store::proof;

/// Every commit as it was written: what was sent of attachments and which tasks it submitted, too.
pub(super) fn commits(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let mut contents = contents(conn)?;
    let mut query = conn.prepare("SELECT \"commit\", proof, usage FROM commits")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.commits += 1;
        let number: i64 = row.get(0)?;
        findings.row(
            "commit",
            format!("number {number}"),
            commit(conn, number, contents.remove(&number), row),
        )?;
    }
    let sql = "SELECT \"commit\", unit, length >= 0 AND length(content_sha256) = 64
                 AND length(attachment_sha256) = 64 FROM receipts";
    let mut query = conn.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.receipts += 1;
        if !row.get::<_, bool>(2)? {
            let place = format!("unit {} of commit {}", row.get::<_, String>(1)?, row.get::<_, i64>(0)?);
            findings.broken("receipt", place, "a digest or a length cannot be one");
        }
    }
    Ok(())
}

/// The contents that each commit finished.
fn contents(conn: &Connection) -> Result<HashMap<i64, Vec<[u8; 32]>>> {
    let mut contents: HashMap<i64, Vec<[u8; 32]>> = HashMap::new();
    let mut query = conn.prepare("SELECT \"commit\", content_fp FROM ledger")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        contents.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(contents)
}

fn commit(
    conn: &Connection,
    number: i64,
    contents: Option<Vec<[u8; 32]>>,
    row: &Row<'_>,
) -> Result<Vec<String>> {
    let proven: Option<Vec<u8>> = row.get(1)?;
    let usage: String = row.get(2)?;
    let same = match proven {
        Some(proven) => proven == proof::commit(conn, number, contents.unwrap_or_default())?,
        None => true,
    };
    Ok(differing(
        "is not what was committed",
        &[
            ("it, a receipt, a submission or its ledger", same),
            ("usage", serde_json::from_str::<serde_json::Value>(&usage).is_ok()),
        ],
    ))
}

/// Every connection's place is one that its connector can read.
pub(super) fn connections(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let mut query = conn.prepare("SELECT toolkit, id, cursor FROM connections")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let name = format!("{}/{}", row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        let cursor: String = row.get(2)?;
        if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&cursor).is_err() {
            findings.broken("connection", name, "its cursor is no JSON object");
        }
    }
    Ok(())
}
