//! Counts of what the store holds, cheap enough to ask at any moment.

use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use serde_json::{Map, Value, json};

use crate::document::seconds;
use crate::error::Result;
use crate::plan::{Failed, retry_at};
use crate::revision::{Place, Told};
use crate::store::coverage::OUTCOMES;
use crate::store::{connections, meta, outbox, quarantine, rounds, tasks};

/// Segments that are not done, from the index that holds them alone: it answers where its own condition stands.
const OPEN: &str = "segments s INDEXED BY segments_open";
const IS_OPEN: &str = "s.status IN ('pending', 'failed', 'oversized')";

/// A conversation's name and the delivery that told it.
pub fn conversation_name(conn: &Connection, place: &Place) -> Result<Option<(Option<String>, Told)>> {
    let sql = "SELECT name, named_at, named_by FROM conversations
               WHERE platform = ?1 AND account_id = ?2 AND id = ?3";
    let mut query = conn.prepare_cached(sql)?;
    let place = params![place.platform, place.account_id, place.conversation_id];
    let named = query
        .query_row(place, |row| Ok((row.get(0)?, Told { collected_at: row.get(1)?, event_id: row.get(2)? })));
    Ok(named.optional()?)
}

/// What the store holds: messages by outcome, tasks by status, what waits, what went wrong.
///
/// The outcomes always add up to the number of messages; one that stands in no segment yet is pending.
pub fn status(conn: &Connection) -> Result<Value> {
    let messages: i64 = meta(conn, "messages")?.unwrap_or_default();
    let count = |sql: &str| -> Result<i64> { Ok(conn.query_row(sql, [], |row| row.get(0))?) };
    Ok(json!({
        "events": meta::<i64>(conn, "events")?.unwrap_or_default(),
        "messages": messages,
        "conversations": count("SELECT count(*) FROM conversations")?,
        "tasks": tasks_by_status(conn)?,
        "outcomes": outcomes(conn, messages)?,
        "forks": count("SELECT coalesce(sum(forks), 0) FROM conversations WHERE forks > 0")?,
        "oversized": oversized(conn)?,
        "quarantined": quarantine::held(conn)?,
        "outbox": outbox::pending(conn)?,
        "pending_segments": count(&format!(
            "SELECT count(*) FROM {OPEN} WHERE {IS_OPEN} AND s.status IN ('pending', 'failed')"
        ))?,
        "retry": retry(conn)?,
        "last_round": rounds::last(conn)?,
        "connections": connections_without_cursor(conn)?,
    }))
}

/// Connections as they stand; what a cursor holds is its connector's own.
fn connections_without_cursor(conn: &Connection) -> Result<Value> {
    let mut states = json!(connections::states(conn)?);
    for state in states.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        state.shift_remove("cursor");
    }
    Ok(states)
}

fn no_tasks() -> Map<String, Value> {
    let statuses = ["open", "completed", "cancelled", "superseded"];
    statuses.into_iter().map(|status| (status.to_owned(), json!(0))).collect()
}

pub(super) fn no_outcomes() -> Map<String, Value> {
    OUTCOMES.into_iter().map(|outcome| (outcome.to_owned(), json!(0))).collect()
}

fn tasks_by_status(conn: &Connection) -> Result<Map<String, Value>> {
    let mut counts = no_tasks();
    counts.extend(tasks::counts(conn)?.into_iter().map(|(status, count)| (status, json!(count))));
    Ok(counts)
}

/// All messages by outcome.
pub(super) fn outcomes(conn: &Connection, messages: i64) -> Result<Map<String, Value>> {
    summed(conn, "SELECT status, system, recalled, history, live, cited FROM coverage", &[], messages)
}

/// The messages of a conversation by outcome, as its segments count them.
pub(super) fn outcomes_of(conn: &Connection, conversation: i64, messages: i64) -> Result<Map<String, Value>> {
    let sql = "SELECT status, system, recalled, history, live, cited FROM segments WHERE conversation = ?1";
    summed(conn, sql, &[conversation], messages)
}

/// Outcomes of so many messages, by rows that count those of segments.
fn summed(conn: &Connection, sql: &str, of: &[i64], messages: i64) -> Result<Map<String, Value>> {
    let mut counts = no_outcomes();
    let mut add = |outcome: &str, more: i64| {
        let sum = counts.get(outcome).and_then(Value::as_i64).unwrap_or_default() + more;
        counts.insert(outcome.to_owned(), json!(sum));
    };
    let mut placed = 0;
    let mut query = conn.prepare_cached(sql)?;
    let mut rows = query.query(params_from_iter(of))?;
    while let Some(row) = rows.next()? {
        let status: String = row.get(0)?;
        let (system, recalled, history): (i64, i64, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let (live, cited): (i64, i64) = (row.get(4)?, row.get(5)?);
        placed += system + recalled + history + live;
        add("system", system);
        add("recalled", recalled);
        add("history", history);
        if status == "done" {
            add("cited", cited);
            add("read-no-task", live - cited);
        } else {
            add(if status == "idle" { "history" } else { &status }, live);
        }
    }
    add("pending", messages - placed);
    Ok(counts)
}

/// Segments whose last try failed, and when `run` tries the first of them again, in Unix seconds.
fn retry(conn: &Connection) -> Result<Value> {
    let sql = format!(
        "SELECT f.attempts, f.at FROM {OPEN} JOIN failures f USING (content_fp) WHERE {IS_OPEN}
           AND s.status = 'failed' AND f.settings_fp = (SELECT value FROM meta WHERE key = 'settings_fp')"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let failed = query.query_map([], |row| Ok(Failed { attempts: row.get(0)?, at: row.get(1)? }))?;
    let at: Vec<i64> = failed.map(|failed| Ok(retry_at(failed?))).collect::<Result<_>>()?;
    Ok(json!({"segments": at.len(), "at": at.iter().min().copied().map(seconds)}))
}

fn oversized(conn: &Connection) -> Result<Vec<Value>> {
    let sql = format!(
        "SELECT s.chars, s.sent, s.first_key, s.subject_at, c.platform, c.account_id, c.id, c.name
         FROM {OPEN} JOIN conversations c USING (conversation)
         WHERE {IS_OPEN} AND s.status = 'oversized' ORDER BY s.conversation, s.first_at"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let limit: i64 = meta(conn, "limit")?.unwrap_or_default();
    let envelope = i64::try_from(crate::budget::CONVERSATION).unwrap_or_default();
    let rows = query.query_map([], |row| {
        let conversation = json!({
            "platform": row.get::<_, String>(4)?, "account_id": row.get::<_, String>(5)?,
            "id": row.get::<_, String>(6)?, "name": row.get::<_, Option<String>>(7)?,
        });
        Ok(json!({
            "conversation": conversation, "chars": row.get::<_, i64>(0)? + envelope, "limit": limit,
            "messages": row.get::<_, i64>(1)?, "first_message": row.get::<_, String>(2)?,
            "first_sent_at": seconds(row.get(3)?),
        }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
