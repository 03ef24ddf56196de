//! Tasks as they are now, their history, and what a user says of them.
//!
//! Every change is a revision, and every revision is one row of the outbox, written in the same
//! transaction. Must never change a task without its event.

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::outbox::{self, TaskEvent};
use super::{counts, proof};
use crate::document::{Related, TaskView};
use crate::error::{Error, Result};
use crate::task::{By, Deliverable, Person, Priority, Record, Status, Time, deliverables};
use crate::zone::Zone;

/// The longest request id or name of a user, in characters.
const MAX_NAME: usize = 256;

/// A task with its revision, as it is read by users, by a model's search and for related tasks.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct TaskRow {
    pub task_id: String,
    pub revision: i64,
    pub title: String,
    pub event: String,
    pub status: Status,
    pub priority: Priority,
    pub time: Time,
    pub people: Vec<Person>,
    pub location: Option<String>,
    /// Of the owner.
    pub platform: String,
    /// When its newest revision was made, RFC 3339.
    pub updated: String,
    /// Files to pass on.
    pub attachments: Vec<Deliverable>,
    /// The whole record as published.
    pub record: Record,
}

/// One revision of a task: what it said, since when, through whom and why.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct TaskRevision {
    pub revision: i64,
    /// RFC 3339.
    pub at: String,
    /// `model:NAME`, `user:NAME` or `program`.
    pub actor: String,
    pub why: String,
    pub task: Record,
}

/// The columns that [`TaskRow`] is read from.
pub(super) const ROW_COLUMNS: &str = "task_id, revision, updated_at, record";

impl TaskRow {
    /// Reads a row that has [`ROW_COLUMNS`].
    pub(super) fn read(row: &Row<'_>, zone: &Zone) -> Result<Self> {
        let record = read_record(row)?;
        Ok(Self {
            task_id: row.get("task_id")?,
            revision: row.get("revision")?,
            title: record.title.clone(),
            event: record.event.clone(),
            status: record.status,
            priority: record.priority,
            time: record.time.clone(),
            people: record.people.clone(),
            location: record.location.clone(),
            platform: record.owner.platform.clone(),
            updated: zone.rfc3339(row.get("updated_at")?)?,
            attachments: deliverables(&record),
            record,
        })
    }
}

fn read_record(row: &Row<'_>) -> Result<Record> {
    let text = row.get_ref("record")?;
    Ok(serde_json::from_str(text.as_str().map_err(rusqlite::Error::from)?)?)
}

/// The task of that id as it is now.
pub fn task(conn: &Connection, task_id: &str, zone: &Zone) -> Result<TaskRow> {
    let sql = format!("SELECT {ROW_COLUMNS} FROM tasks WHERE task_id = ?1");
    let found =
        conn.prepare_cached(&sql)?.query_row([task_id], |row| Ok(TaskRow::read(row, zone))).optional()?;
    found.unwrap_or_else(|| Err(unknown(task_id)))
}

/// Every revision of the task, the first one first.
pub fn history(conn: &Connection, task_id: &str) -> Result<Vec<TaskRevision>> {
    let sql = "SELECT o.line, o.actor, o.why FROM outbox o JOIN tasks t USING(task)
               WHERE t.task_id = ?1 ORDER BY o.revision";
    let mut revisions = Vec::new();
    let mut query = conn.prepare_cached(sql)?;
    let mut rows = query.query([task_id])?;
    while let Some(row) = rows.next()? {
        let line = row.get_ref("line")?.as_blob().map_err(rusqlite::Error::from)?;
        let event: TaskEvent = serde_json::from_slice(line)?;
        revisions.push(TaskRevision {
            revision: event.revision,
            at: event.emitted_at,
            actor: row.get("actor")?,
            why: row.get("why")?,
            task: event.task,
        });
    }
    if revisions.is_empty() { Err(unknown(task_id)) } else { Ok(revisions) }
}

/// Tasks that are not superseded and rest on one of these messages, the most recently updated first.
///
/// `messages`: for each conversation of a batch the rows of its messages.
pub fn related(conn: &Connection, messages: &[Vec<i64>], zone: &Zone) -> Result<Vec<Related>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS}, task FROM tasks WHERE status <> 'superseded' AND task IN (
           SELECT task FROM task_sources WHERE message IN (SELECT value FROM json_each(?1)))
         ORDER BY updated_at DESC, task DESC"
    );
    let rests = "SELECT 1 FROM task_sources WHERE task = ?1 AND message IN (SELECT value FROM json_each(?2))";
    let mut query = conn.prepare_cached(&sql)?;
    let mut rests = conn.prepare_cached(rests)?;
    let lists = messages.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
    let mut rows = query.query([serde_json::to_string(&messages.concat())?])?;
    let mut related = Vec::new();
    while let Some(row) = rows.next()? {
        let task = TaskRow::read(row, zone)?;
        let number: i64 = row.get("task")?;
        let mut conversations = Vec::new();
        for (place, list) in lists.iter().enumerate() {
            if rests.exists(params![number, list])? {
                conversations.push(place);
            }
        }
        related.push(Related {
            revision: task.revision.unsigned_abs(),
            view: view(&task)?,
            task_id: task.task_id,
            conversations,
        });
    }
    Ok(related)
}

/// What a model is shown of a task.
pub(super) fn view(task: &TaskRow) -> Result<TaskView> {
    Ok(TaskView {
        title: task.title.clone(),
        event: task.event.clone(),
        status: task.status.as_str().to_owned(),
        priority: task.priority.as_str().to_owned(),
        time: serde_json::json!({
            "start": task.time.start, "due": task.time.due, "original": task.time.original,
        }),
        people: serde_json::to_value(&task.people)?,
        location: task.location.clone(),
    })
}

/// How many tasks there are of each status that any has.
pub fn counts(conn: &Connection) -> Result<Vec<(String, i64)>> {
    let mut query = conn.prepare_cached("SELECT status, sum(tasks) FROM task_counts GROUP BY status")?;
    let counts = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(counts.collect::<rusqlite::Result<_>>()?)
}

// ── revisions ──────────────────────────────────────────────────────────────────────────────────────

/// A task as stored.
pub(super) struct Stored {
    pub task: i64,
    pub task_id: String,
    pub revision: i64,
    pub record: Record,
    updated_at: i64,
}

/// Who makes a revision, when and why.
pub(super) struct Author<'a> {
    pub at: i64,
    /// `model:NAME`, `user:NAME` or `program`.
    pub actor: &'a str,
    pub why: &'a str,
}

const STORED_COLUMNS: &str = "task, task_id, revision, record, updated_at";

fn read_stored(row: &Row<'_>) -> Result<Stored> {
    Ok(Stored {
        task: row.get("task")?,
        task_id: row.get("task_id")?,
        revision: row.get("revision")?,
        record: read_record(row)?,
        updated_at: row.get("updated_at")?,
    })
}

/// The task of that id.
pub(super) fn stored(conn: &Connection, task_id: &str) -> Result<Option<Stored>> {
    let sql = format!("SELECT {STORED_COLUMNS} FROM tasks WHERE task_id = ?1");
    let found = conn.prepare_cached(&sql)?.query_row([task_id], |row| Ok(read_stored(row))).optional()?;
    found.transpose()
}

/// The task of that number.
pub(super) fn numbered(conn: &Connection, task: i64) -> Result<Stored> {
    let sql = format!("SELECT {STORED_COLUMNS} FROM tasks WHERE task = ?1");
    conn.prepare_cached(&sql)?.query_row([task], |row| Ok(read_stored(row)))?
}

/// Adds a task that has no revision yet; [`revise`] makes its first.
pub(super) fn add(
    conn: &Connection,
    task_id: String,
    record: Record,
    conversation: i64,
    commit: i64,
    at: i64,
) -> Result<Stored> {
    conn.prepare_cached(
        "INSERT INTO tasks(task_id, revision, status, status_by, priority, due_at, created_at, updated_at,
           conversation, last_commit, record) VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, '')",
    )?
    .execute(params![
        task_id,
        record.status.as_str(),
        record.status_by.as_str(),
        record.priority.as_str(),
        record.due_at()?,
        at,
        conversation,
        commit
    ])?;
    let task = conn.last_insert_rowid();
    counts::added(conn, &record)?;
    Ok(Stored { task, task_id, revision: 0, record, updated_at: at })
}

/// Makes `record` the task's next revision and publishes it; returns the outbox row.
pub(super) fn revise(
    conn: &Connection,
    task: &mut Stored,
    record: Record,
    author: &Author<'_>,
    zone: &Zone,
) -> Result<i64> {
    let old = std::mem::replace(&mut task.record, record);
    task.revision += 1;
    write(conn, task)?;
    let record = &task.record;
    let moved = (old.status, old.priority, &old.time) != (record.status, record.priority, &record.time);
    if moved || task.updated_at != author.at {
        task.updated_at = author.at;
        place(conn, task)?;
        counts::changed(conn, &old, &task.record)?;
    }
    let revision = outbox::Revision {
        task: task.task,
        task_id: &task.task_id,
        number: task.revision,
        record: &task.record,
        at: author.at,
        actor: author.actor,
        why: author.why,
    };
    outbox::append(conn, &revision, zone)
}

/// Writes what no index holds.
fn write(conn: &Connection, task: &Stored) -> Result<()> {
    let sql = "UPDATE tasks SET revision = ?2, status_by = ?3, record = ?4 WHERE task = ?1";
    let record = serde_json::to_string(&task.record)?;
    let values = params![task.task, task.revision, task.record.status_by.as_str(), record];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Writes what lists are ordered by: each value stands in several indexes.
fn place(conn: &Connection, task: &Stored) -> Result<()> {
    let sql = "UPDATE tasks SET status = ?2, priority = ?3, due_at = ?4, updated_at = ?5 WHERE task = ?1";
    let (status, priority) = (task.record.status.as_str(), task.record.priority.as_str());
    let due_at = task.record.due_at()?;
    conn.prepare_cached(sql)?.execute(params![task.task, status, priority, due_at, task.updated_at])?;
    Ok(())
}

// ── what users say ─────────────────────────────────────────────────────────────────────────────────

/// A user's wish for a task.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The task.
    pub task_id: &'a str,
    /// The new status or priority.
    pub value: &'a str,
    /// Tells this request from every other, for ever.
    pub request_id: &'a str,
    /// The user's name.
    pub actor: &'a str,
    /// Refuse when the task has another revision.
    pub expected_revision: Option<i64>,
    /// Kept in the history.
    pub note: Option<&'a str>,
}

/// Which field a request sets, and to what.
#[derive(Clone, Copy)]
enum Wish {
    Status(Status),
    Priority(Priority),
}

/// Sets a task's status for a user: `open`, `completed` or `cancelled`. No model changes it afterwards.
///
/// The same request again gets the first answer and changes nothing. Errors: [`Error::Invalid`] for a
/// value that is none, [`Error::NotFound`] for an unknown task, [`Error::TaskConflict`] for a superseded
/// task, another revision than expected, or a request id that asked for something else before.
pub fn update_status(
    conn: &mut Connection,
    request: &Request<'_>,
    now: i64,
    zone: &Zone,
) -> Result<TaskEvent> {
    let status =
        Status::named(request.value).filter(|&status| status != Status::Superseded).ok_or_else(|| {
            Error::Invalid(format!("{:?} is no status to set: open, completed, cancelled", request.value))
        })?;
    fulfil(conn, request, Wish::Status(status), now, zone)
}

/// Sets a task's priority for a user, `P0` to `P4`; the rules are those of [`update_status`].
pub fn update_priority(
    conn: &mut Connection,
    request: &Request<'_>,
    now: i64,
    zone: &Zone,
) -> Result<TaskEvent> {
    let priority = Priority::named(request.value)
        .ok_or_else(|| Error::Invalid(format!("{:?} is no priority: P0 to P4", request.value)))?;
    fulfil(conn, request, Wish::Priority(priority), now, zone)
}

fn fulfil(
    conn: &mut Connection,
    request: &Request<'_>,
    wish: Wish,
    now: i64,
    zone: &Zone,
) -> Result<TaskEvent> {
    check_name("request_id", request.request_id)?;
    check_name("actor", request.actor)?;
    let content = content_of(request, wish)?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(row) = answered(&tx, request.request_id, content)? {
        return outbox::event(&tx, row);
    }
    let mut task = stored(&tx, request.task_id)?.ok_or_else(|| unknown(request.task_id))?;
    check_changeable(&task, request.expected_revision)?;
    let record = wish.granted(&task.record, request.note);
    let actor = format!("user:{}", request.actor);
    let author = Author { at: now, actor: &actor, why: request.note.unwrap_or_default() };
    let row = revise(&tx, &mut task, record, &author, zone)?;
    tx.execute(
        "INSERT INTO requests(request_id, content, \"row\", proof) VALUES (?1, ?2, ?3, ?4)",
        params![request.request_id, content, row, proof::request(request.request_id, &content, row)],
    )?;
    let event = outbox::event(&tx, row)?;
    tx.commit()?;
    Ok(event)
}

impl Wish {
    fn granted(self, old: &Record, note: Option<&str>) -> Record {
        let mut record = old.clone();
        match self {
            Self::Status(status) => (record.status, record.status_by) = (status, By::User),
            Self::Priority(priority) => {
                (record.priority, record.priority_by) = (priority, By::User);
                // The model's ground is for the model's priority.
                note.unwrap_or_default().clone_into(&mut record.priority_reason);
            }
        }
        record
    }
}

fn check_name(field: &str, name: &str) -> Result<()> {
    match name.chars().count() {
        1..=MAX_NAME => Ok(()),
        length => {
            Err(Error::Invalid(format!("{field} has 1 to {MAX_NAME} characters, this one has {length}")))
        }
    }
}

fn check_changeable(task: &Stored, expected: Option<i64>) -> Result<()> {
    if task.record.status == Status::Superseded {
        let hint = "its sources no longer hold it, so it cannot be changed";
        return Err(Error::TaskConflict(format!("task {} is superseded: {hint}", task.task_id)));
    }
    match expected {
        Some(expected) if expected != task.revision => Err(Error::TaskConflict(format!(
            "task {} has revision {}, not {expected}: read it again",
            task.task_id, task.revision
        ))),
        _ => Ok(()),
    }
}

/// What a request asks for, as one digest.
fn content_of(request: &Request<'_>, wish: Wish) -> Result<[u8; 32]> {
    let field = match wish {
        Wish::Status(_) => "status",
        Wish::Priority(_) => "priority",
    };
    let Request { task_id, value, request_id: _, actor, expected_revision, note } = request;
    let content = serde_json::to_vec(&(field, task_id, value, actor, expected_revision, note))?;
    Ok(Sha256::digest(content).into())
}

/// The outbox row that answered the request before, if any did.
fn answered(conn: &Connection, request_id: &str, content: [u8; 32]) -> Result<Option<i64>> {
    let known: Option<([u8; 32], i64)> = conn
        .query_row("SELECT content, \"row\" FROM requests WHERE request_id = ?1", [request_id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match known {
        Some((known, _)) if known != content => Err(Error::TaskConflict(format!(
            "request {request_id:?} asked for something else before: use a fresh request id"
        ))),
        known => Ok(known.map(|(_, row)| row)),
    }
}

fn unknown(task_id: &str) -> Error {
    Error::NotFound(format!("no task {task_id:?}"))
}
