//! The outbox row by row: each revision's event as it was written, in order, in the file that is its own,
//! and the task that its last one tells. And users' requests.

use std::collections::HashMap;

use rusqlite::{Connection, Row};
use sha2::{Digest, Sha256};

use super::tasks::{self, History};
use super::{Findings, differing};
use crate::error::Result;
use crate::fingerprint;
use crate::store::outbox::TaskEvent;
use crate::store::proof;
use crate::zone::{Edge, Zone};

/// Every row in order, with what it says of its task.
pub(super) fn outbox(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let mut files = Files::read(conn)?;
    let mut histories: HashMap<i64, History> = HashMap::new();
    let sql = "SELECT o.*, t.task_id, t.revision AS newest FROM outbox o LEFT JOIN tasks t USING (task)
               ORDER BY o.\"row\"";
    let mut query = conn.prepare(sql)?;
    let mut rows = query.query([])?;
    let mut before = 0;
    while let Some(row) = rows.next()? {
        findings.checked.events += 1;
        findings.step()?;
        let number: i64 = row.get("row")?;
        if number != before + 1 {
            findings.broken("event", format!("row {number}"), format!("follows row {before}"));
        }
        before = number;
        let line = row.get_ref("line")?.as_blob().map_err(rusqlite::Error::from)?;
        files.take(number, line, findings);
        let found = event(conn, row, line, &mut histories, findings);
        findings.row("event", format!("row {number}"), found)?;
    }
    files.end(before, findings);
    let last: Option<i64> =
        conn.query_row("SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'", [], |row| row.get(0))?;
    if last.unwrap_or_default() != before {
        findings.broken("event", format!("row {before}"), "is not the last row that was ever written");
    }
    tasks::all_told(conn, &histories, findings)
}

fn event(
    conn: &Connection,
    row: &Row<'_>,
    line: &[u8],
    histories: &mut HashMap<i64, History>,
    findings: &mut Findings<'_>,
) -> Result<Vec<String>> {
    let (task, revision, at): (i64, i64, i64) = (row.get("task")?, row.get("revision")?, row.get("at")?);
    let (actor, why): (String, String) = (row.get("actor")?, row.get("why")?);
    let (event_id, task_id): (String, Option<String>) = (row.get("event_id")?, row.get("task_id")?);
    let proven: Option<Vec<u8>> = row.get("proof")?;
    let event: TaskEvent = serde_json::from_slice(line)?;
    let zone = Zone::named(&event.task.time.timezone)?;
    let id = fingerprint::task_event_id(&event.task_id, event.revision.unsigned_abs());
    let known_actor = actor == "program" || actor.starts_with("model:") || actor.starts_with("user:");
    let proof = proof::event(task, revision, at, &actor, &why, line);
    let mut found = differing(
        "of the event is not what was published",
        &[
            ("the row", proven.is_none_or(|proven| proven == proof)),
            ("event_id", event_id == id && event.event_id == id),
            ("task_id", task_id.as_deref() == Some(&event.task_id)),
            ("revision", event.revision == revision),
            ("schema", event.schema == "chatproc.task-event/1" && event.operation == "upsert"),
            ("emitted_at", zone.instant(&event.emitted_at, Edge::Start).ok() == Some(at)),
            ("actor", known_actor),
            ("line end", line.last() == Some(&b'\n')),
        ],
    );
    let history = histories.entry(task).or_default();
    if revision != history.revision + 1 {
        found.push(format!(
            "revision {revision} of task {} follows revision {}",
            event.task_id, history.revision
        ));
    }
    history.revision = revision;
    if revision == 1 {
        history.created_at = at;
    }
    let newest = row.get::<_, Option<i64>>("newest")?;
    let is_newest = newest == Some(revision);
    history.tell(&event.task);
    if is_newest {
        tasks::task(conn, task, line, at, &event, history, findings)?;
        history.close();
    }
    Ok(found)
}

/// Which rows are in which file, and the digest of the rows of the file in hand.
struct Files {
    /// First row, last row, name, digest, done; the next one last.
    waiting: Vec<(i64, i64, String, Vec<u8>, i64)>,
    digest: Sha256,
    next: i64,
}

impl Files {
    fn read(conn: &Connection) -> Result<Self> {
        let sql = "SELECT first_row, last_row, file, sha256, done FROM exports ORDER BY first_row DESC";
        let mut query = conn.prepare(sql)?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
        Ok(Self { waiting: rows.collect::<rusqlite::Result<_>>()?, digest: Sha256::new(), next: 1 })
    }

    fn take(&mut self, row: i64, line: &[u8], findings: &mut Findings<'_>) {
        self.digest.update(line);
        if self.waiting.last().is_some_and(|(_, last, ..)| *last == row)
            && let Some((first, last, file, sha256, done)) = self.waiting.pop()
        {
            let digest = std::mem::take(&mut self.digest).finalize();
            let named = file == format!("todos-{first:012}-{last:012}.jsonl");
            let differ = differing(
                "is not what the file's rows make",
                &[
                    ("first row", first == self.next),
                    ("name", named),
                    ("sha256", digest.as_slice() == sha256),
                    ("done", (0..=1).contains(&done)),
                ],
            );
            for explanation in differ {
                findings.broken("export", &file, explanation);
            }
            self.next = last + 1;
        }
    }

    fn end(self, last: i64, findings: &mut Findings<'_>) {
        for (first, to, file, ..) in self.waiting {
            findings.broken("export", file, format!("holds rows {first} to {to} of {last}"));
        }
    }
}

/// Every request against the event that answered it, and every user's event against its request.
pub(super) fn requests(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let sql = "SELECT r.*, o.actor FROM requests r LEFT JOIN outbox o USING (\"row\")";
    let mut query = conn.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.requests += 1;
        let id: String = row.get("request_id")?;
        findings.row("request", format!("{id:?}"), request(&id, row))?;
    }
    let sql = "SELECT \"row\" FROM outbox WHERE actor LIKE 'user:%'
               AND (SELECT count(*) FROM requests r WHERE r.\"row\" = outbox.\"row\") <> 1";
    let mut query = conn.prepare(sql)?;
    for row in query.query_map([], |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()? {
        findings.broken("request", format!("row {row}"), "a user's event has not one request");
    }
    Ok(())
}

fn request(id: &str, row: &Row<'_>) -> Result<Vec<String>> {
    let content: Vec<u8> = row.get("content")?;
    let proven: Option<Vec<u8>> = row.get("proof")?;
    let actor: Option<String> = row.get("actor")?;
    let proof = proof::request(id, &content, row.get("row")?);
    Ok(differing(
        "is not what was asked for",
        &[
            ("the request", proven.is_none_or(|proven| proven == proof)),
            ("its event", actor.is_some_and(|actor| actor.starts_with("user:"))),
        ],
    ))
}
