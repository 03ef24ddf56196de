//! Segments against the messages that they are made of, what each waits for against the ledger, and the sums
//! that `status` shows against the segments.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::{Findings, differing};
use crate::error::Result;
use crate::segment::{Segment, View, alone_fits, segment};
use crate::store::ledger::standing;
use crate::store::slim::{Slim, slim_rows, stored_number};
use crate::store::{meta, status};

/// What segments are made with, as the last plan left it.
struct Made {
    view: View,
    settings_fp: [u8; 32],
    limit: u64,
}

/// Every segment of every conversation that has not changed since the last plan, made again.
pub(super) fn segments(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let Some(made) = made_with(conn)? else { return Ok(()) };
    let mut query = conn.prepare("SELECT conversation, forks FROM conversations WHERE dirty <> 1")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (conversation, forks): (i64, i64) = (row.get(0)?, row.get(1)?);
        let found = conversation_segments(conn, conversation, forks, &made, findings);
        findings.row("segment", format!("conversation number {conversation}"), found)?;
    }
    Ok(())
}

fn made_with(conn: &Connection) -> Result<Option<Made>> {
    let (view, settings) = (meta::<String>(conn, "view")?, meta::<[u8; 32]>(conn, "settings_fp")?);
    let (Some(view), Some(settings_fp)) = (view, settings) else { return Ok(None) };
    let limit = meta::<i64>(conn, "limit")?.unwrap_or_default().unsigned_abs();
    Ok(Some(Made { view: serde_json::from_str(&view)?, settings_fp, limit }))
}

fn conversation_segments(
    conn: &Connection,
    conversation: i64,
    forks: i64,
    made: &Made,
    findings: &mut Findings<'_>,
) -> Result<Vec<String>> {
    let slim = slim_rows(conn, conversation)?;
    let rows: Vec<_> = slim.iter().map(Slim::row).collect();
    let again = segment(&rows, &made.view);
    let mut stored = Stored::read(conn, conversation)?;
    let mut found = differing(
        "are not as many as the messages make",
        &[("forks", u64::try_from(forks).ok() == Some(again.forks))],
    );
    for segment in &again.segments {
        findings.checked.segments += 1;
        let first = segment.members.first().map_or("", |&at| rows[at].key);
        let Some(row) = stored.0.remove(&numbers(&slim, &segment.members)?) else {
            found.push(format!("no segment holds what belongs together from {first:?} on"));
            continue;
        };
        let differ = differences(conn, &row, segment, &slim, made)?;
        found.extend(
            differ.into_iter().map(|what| format!("segment {}, from {first:?} on: {what}", row.number)),
        );
    }
    found.extend(stored.0.into_values().map(|row| format!("segment {} is made of no messages", row.number)));
    Ok(found)
}

fn numbers(slim: &[Slim], places: &[usize]) -> Result<String> {
    let numbers: Vec<i64> = places.iter().filter_map(|&at| stored_number(&slim[at].member)).collect();
    Ok(serde_json::to_string(&numbers)?)
}

/// A segment's columns as they are stored.
struct StoredRow {
    number: i64,
    place: (i64, Option<i64>, String),
    predecessor: Option<String>,
    continuity: String,
    content_fp: Vec<u8>,
    sizes: [i64; 3],
    times: (Option<i64>, i64),
    standing: (String, Option<String>),
    tally: [i64; 4],
    cited: i64,
    carried: String,
}

/// The segments of a conversation by their members.
struct Stored(HashMap<String, StoredRow>);

impl Stored {
    fn read(conn: &Connection, conversation: i64) -> Result<Self> {
        let mut query = conn.prepare_cached("SELECT * FROM segments WHERE conversation = ?1")?;
        let rows = query.query_map([conversation], |row| Ok((row.get("members")?, Self::row(row)?)))?;
        Ok(Self(rows.collect::<rusqlite::Result<_>>()?))
    }

    fn row(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
        Ok(StoredRow {
            number: row.get("segment")?,
            place: (row.get("first_at")?, row.get("first_position")?, row.get("first_key")?),
            predecessor: row.get("predecessor")?,
            continuity: row.get("continuity")?,
            content_fp: row.get("content_fp")?,
            sizes: [row.get("chars")?, row.get("sent")?, row.get("files")?],
            times: (row.get("subject_at")?, row.get("newest_at")?),
            standing: (row.get("status")?, row.get("failure")?),
            tally: [row.get("system")?, row.get("recalled")?, row.get("history")?, row.get("live")?],
            cited: row.get("cited")?,
            carried: row.get("carried")?,
        })
    }
}

fn differences(
    conn: &Connection,
    row: &StoredRow,
    segment: &Segment,
    slim: &[Slim],
    made: &Made,
) -> Result<Vec<String>> {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let first = segment.members.first().map(|&at| slim[at].row());
    let place = first.as_ref().map(|row| (row.sent_at, row.index, row.key.to_owned()));
    let tally = segment.tally;
    let fits = alone_fits(segment.chars, segment.refs(), segment.files, made.limit);
    let subject = segment.subject_at.is_some();
    let (status, failure) = standing(conn, &segment.content_fp, &made.settings_fp, subject, fits)?;
    let held = segment.members.iter().all(|&at| slim[at].segment == Some(row.number));
    Ok(differing(
        "is not what its messages and the ledger make",
        &[
            ("place", place.as_ref() == Some(&row.place)),
            ("predecessor", first.as_ref().and_then(|row| row.predecessor) == row.predecessor.as_deref()),
            ("continuity", row.continuity == segment.continuity.as_str()),
            ("content_fp", row.content_fp == segment.content_fp),
            ("size", row.sizes == [segment.chars, segment.sent, segment.files].map(signed)),
            ("times", row.times == (segment.subject_at, segment.newest_at)),
            ("status", (row.standing.0.as_str(), &row.standing.1) == (status, &failure)),
            ("tally", row.tally == [tally.system, tally.recalled, tally.history, tally.live].map(signed)),
            ("carried", row.carried == numbers(slim, &segment.carried)?),
            ("its messages' segment", held),
            ("cited", row.cited == cited(conn, row.number, made.view.start_at)?),
        ],
    ))
}

/// How many live messages of a segment are sources of a task that is not superseded.
fn cited(conn: &Connection, segment: i64, start_at: i64) -> Result<i64> {
    let sql = "SELECT count(DISTINCT m.message) FROM segments g, json_each(g.members) e
               JOIN task_sources s ON s.message = e.value
               JOIN tasks t ON t.task = s.task AND t.status <> 'superseded'
               JOIN messages m ON m.message = e.value AND m.kind = 0 AND m.state <> 2 AND m.sent_at >= ?2
               WHERE g.segment = ?1";
    Ok(conn.prepare_cached(sql)?.query_row(params![segment, start_at], |row| row.get(0))?)
}

/// The sums of `status` against the segments, and their sum against the messages.
pub(super) fn sums(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let sql = "SELECT c.status FROM coverage c WHERE (system, recalled, history, live, cited) IS NOT (
                 SELECT coalesce(sum(s.system), 0), coalesce(sum(s.recalled), 0), coalesce(sum(s.history), 0),
                   coalesce(sum(s.live), 0), coalesce(sum(s.cited), 0) FROM segments s WHERE s.status = c.status)
               UNION ALL SELECT DISTINCT status FROM segments WHERE status NOT IN (SELECT status FROM coverage)
               UNION ALL SELECT word FROM (SELECT column1 AS word FROM (VALUES ('pending'), ('failed'), ('oversized'), ('done'), ('idle')))
               WHERE word NOT IN (SELECT status FROM coverage)";
    let mut query = conn.prepare(sql)?;
    for status in query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()? {
        findings.broken("coverage", status, "the counts are not the sums over the segments");
    }
    let sql = "SELECT segment FROM segments
               WHERE system + recalled + history + live <> json_array_length(members) OR cited > live";
    let mut query = conn.prepare(sql)?;
    for segment in query.query_map([], |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()? {
        findings.broken(
            "coverage",
            format!("segment {segment}"),
            "its outcomes are not as many as its messages",
        );
    }
    let messages = meta::<i64>(conn, "messages")?.unwrap_or_default();
    let outcomes = status::outcomes(conn, messages)?;
    let counts: Vec<i64> = outcomes.values().filter_map(serde_json::Value::as_i64).collect();
    if counts.iter().sum::<i64>() != messages || counts.iter().any(|&count| count < 0) {
        let explanation = format!("{outcomes:?} do not add up to {messages} messages");
        findings.broken("coverage", "outcomes", explanation);
    }
    let sql = "SELECT hex(l.content_fp) FROM ledger l LEFT JOIN commits c USING (\"commit\")
               WHERE l.settings_fp IS NOT c.settings_fp OR length(l.content_fp) <> 32";
    let mut query = conn.prepare(sql)?;
    for row in query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()? {
        findings.broken("ledger", row, "its commit was made under other settings, or is not there");
    }
    Ok(())
}
