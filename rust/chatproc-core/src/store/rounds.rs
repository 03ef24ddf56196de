//! The rounds that were run: when, and what came of each.

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde_json::{Value, json};

use crate::document::seconds;
use crate::error::Result;

/// Notes that a round begins; returns its number.
pub fn begin(transaction: &Transaction<'_>, now: i64) -> Result<i64> {
    transaction.execute("INSERT INTO rounds(started) VALUES(?1)", [now])?;
    Ok(transaction.last_insert_rowid())
}

/// Notes how a round ended.
pub fn finish(transaction: &Transaction<'_>, round: i64, now: i64, report: &Value) -> Result<()> {
    let report = serde_json::to_string(report)?;
    transaction
        .execute("UPDATE rounds SET ended = ?2, report = ?3 WHERE round = ?1", params![round, now, report])?;
    Ok(())
}

/// The newest round: `started` and `ended` in Unix seconds, `report`; null when there was none.
pub fn last(conn: &Connection) -> Result<Value> {
    let sql = "SELECT started, ended, report FROM rounds ORDER BY round DESC LIMIT 1";
    let round = conn.query_row(sql, [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<String>>(2)?))
    });
    let Some((started, ended, report)) = round.optional()? else { return Ok(Value::Null) };
    let report: Value = report.map_or(Ok(Value::Null), |report| serde_json::from_str(&report))?;
    Ok(json!({"started": seconds(started), "ended": ended.map(seconds), "report": report}))
}
