//! One message's whole way: where it was read, what it stands in, what became of it and why.
//!
//! Reads only. Its outcome is the one that `status` counts it under.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;

use super::coverage::{OUTCOME, word};
use super::messages::stored_event;
use super::{Store, meta};
use crate::budget;
use crate::error::Result;
use crate::task::{Conversation, Sender};
use crate::zone::Zone;

/// A message's way through the store.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Way {
    pub message_key: String,
    pub platform: String,
    pub account_id: String,
    pub conversation: Conversation,
    /// `message` or `system`.
    pub kind: &'static str,
    /// `normal`, `edited` or `recalled`.
    pub state: &'static str,
    /// The newest.
    pub revision: i64,
    /// Those below it, in order.
    pub earlier_revisions: Vec<i64>,
    /// RFC 3339.
    pub sent_at: String,
    pub sender: Sender,
    /// As the newest delivery says it, of a recalled message too.
    pub text: String,
    /// Where it was read, each delivery once.
    pub deliveries: Vec<Delivery>,
    /// None before the first plan that knows the message.
    pub segment: Option<SegmentPlace>,
    /// The word that `status` counts the message under.
    pub outcome: &'static str,
    /// Why, in words.
    pub why: String,
    /// Commits that finished its segment as it is now, or submitted a task that rests on it; the last one last.
    pub commits: Vec<CommitOf>,
    /// Of the last attempt at its segment, while that is not done.
    pub failure: Option<Failure>,
    /// Every task that rests on it.
    pub tasks: Vec<TaskOf>,
}

/// Where a delivery was read.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Delivery {
    pub revision: i64,
    /// The batch file; null for one that came through a connection or out of the quarantine.
    pub file: Option<String>,
    /// From 1.
    pub line: i64,
}

/// A message's place in its segment.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct SegmentPlace {
    /// Why its messages belong together.
    pub continuity: String,
    /// `pending`, `failed`, `oversized`, `done` or `idle`.
    pub status: String,
    /// Characters as sent.
    pub chars: i64,
    /// Messages in it, notices and recalled ones among them.
    pub messages: usize,
    /// From 1.
    pub position: usize,
    /// Key of the message before it there.
    pub previous: Option<String>,
    /// Key of the message after it there.
    pub next: Option<String>,
    /// Key that its own proof of position names.
    pub predecessor: Option<String>,
}

/// A commit that had to do with the message.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct CommitOf {
    pub commit: i64,
    pub round: i64,
    pub group: String,
    /// RFC 3339.
    pub at: String,
    pub model: String,
    /// Whether it was made under the settings of the last plan.
    pub current: bool,
    /// Whether it finished the message's segment as it is now.
    pub finished: bool,
    /// What the model said when it found no task in the group.
    pub no_task_reason: Option<String>,
    /// Tasks that it submitted and that rest on the message.
    pub tasks: Vec<String>,
}

/// Why a segment is not done.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Failure {
    pub attempts: i64,
    /// RFC 3339.
    pub at: String,
    pub reason: String,
}

/// A task that rests on the message.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct TaskOf {
    pub task_id: String,
    pub revision: i64,
    pub status: String,
    pub title: String,
}

/// A message's row with what is asked of it more than once.
pub(super) struct Asked<'c> {
    conn: &'c Connection,
    zone: &'c Zone,
    message: i64,
    segment: Option<i64>,
    /// Its conversation changed since the last plan.
    dirty: bool,
}

/// What a message's outcome rests on.
pub(super) struct Grounds {
    pub(super) outcome: &'static str,
    /// Of its segment, as sent.
    chars: Option<i64>,
    commits: Vec<CommitOf>,
    failure: Option<Failure>,
    pub(super) tasks: Vec<TaskOf>,
}

/// The way of the message with that key; none where the store has no such message.
pub fn explain(store: &Store, key: &str, zone: &Zone) -> Result<Option<Way>> {
    let conn = store.conn();
    let sql = format!(
        "SELECT m.*, l.raw, s.segment, c.platform, c.account_id, c.id, c.name, c.type, c.dirty, {OUTCOME} outcome
         FROM messages m JOIN lines l USING (message) JOIN conversations c USING (conversation)
         LEFT JOIN members s USING (message) LEFT JOIN segments g USING (segment) WHERE m.key = ?1"
    );
    let way = conn.prepare_cached(&sql)?.query_row([key], |row| Ok(way(conn, row, zone))).optional()?;
    way.transpose()
}

fn way(conn: &Connection, row: &Row<'_>, zone: &Zone) -> Result<Way> {
    let raw: Vec<u8> = row.get("raw")?;
    let event = stored_event(&raw)?;
    let asked = Asked::of(conn, row, zone)?;
    let grounds = asked.grounds(word(&row.get::<_, String>("outcome")?))?;
    let why = asked.why(&grounds)?;
    let Grounds { outcome, commits, failure, tasks, .. } = grounds;
    Ok(Way {
        message_key: row.get("key")?,
        platform: row.get("platform")?,
        account_id: row.get("account_id")?,
        conversation: Conversation { id: row.get("id")?, name: row.get("name")?, kind: row.get("type")? },
        kind: event.kind.as_str(),
        state: event.state.as_str(),
        revision: row.get("revision")?,
        earlier_revisions: asked.earlier_revisions()?,
        sent_at: zone.rfc3339(row.get("sent_at")?)?,
        sender: Sender::of(&event),
        text: event.text.as_ref().to_owned(),
        deliveries: asked.deliveries()?,
        segment: asked.segment_place(row.get("predecessor")?)?,
        outcome,
        why,
        commits,
        failure,
        tasks,
    })
}

impl<'c> Asked<'c> {
    /// Of a row with `message segment dirty`.
    pub(super) fn of(conn: &'c Connection, row: &Row<'_>, zone: &'c Zone) -> Result<Self> {
        let (message, segment, dirty) = (row.get("message")?, row.get("segment")?, row.get("dirty")?);
        Ok(Self { conn, zone, message, segment, dirty })
    }

    fn all<T>(&self, sql: &str, key: i64, read: impl Fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
        let mut query = self.conn.prepare_cached(sql)?;
        let mut rows = query.query([key])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// All that its outcome rests on.
    pub(super) fn grounds(&self, outcome: &'static str) -> Result<Grounds> {
        let mut query = self.conn.prepare_cached("SELECT chars FROM segments WHERE segment = ?1")?;
        let chars = query.query_row([self.segment], |row| row.get(0)).optional()?;
        let (commits, failure, tasks) = (self.commits()?, self.failure()?, self.tasks()?);
        Ok(Grounds { outcome, chars, commits, failure, tasks })
    }

    fn earlier_revisions(&self) -> Result<Vec<i64>> {
        let sql = "SELECT revision FROM revisions WHERE message = ?1 ORDER BY revision";
        self.all(sql, self.message, |row| Ok(row.get(0)?))
    }

    fn deliveries(&self) -> Result<Vec<Delivery>> {
        let sql = "SELECT e.revision, f.path, e.line FROM events e LEFT JOIN files f USING (file)
                   WHERE e.message = ?1 ORDER BY e.file IS NULL, e.file, e.line";
        self.all(sql, self.message, |row| {
            Ok(Delivery { revision: row.get(0)?, file: row.get(1)?, line: row.get(2)? })
        })
    }

    fn segment_place(&self, predecessor: Option<String>) -> Result<Option<SegmentPlace>> {
        let sql = "SELECT continuity, status, chars, members FROM segments WHERE segment = ?1";
        let mut query = self.conn.prepare_cached(sql)?;
        let mut rows = query.query(params![self.segment])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let members: Vec<i64> = serde_json::from_str(&row.get::<_, String>("members")?)?;
        let Some(at) = members.iter().position(|&member| member == self.message) else { return Ok(None) };
        let key = |place: Option<usize>| -> Result<Option<String>> {
            let Some(member) = place.and_then(|place| members.get(place)) else { return Ok(None) };
            let mut query = self.conn.prepare_cached("SELECT key FROM messages WHERE message = ?1")?;
            Ok(query.query_row([member], |row| row.get(0)).optional()?)
        };
        Ok(Some(SegmentPlace {
            continuity: row.get("continuity")?,
            status: row.get("status")?,
            chars: row.get("chars")?,
            messages: members.len(),
            position: at + 1,
            previous: key(at.checked_sub(1))?,
            next: key(Some(at + 1))?,
            predecessor,
        }))
    }

    fn commits(&self) -> Result<Vec<CommitOf>> {
        let finished: Vec<i64> = match self.segment {
            Some(segment) => self.all(
                "SELECT l.\"commit\" FROM segments g JOIN ledger l USING (content_fp) WHERE g.segment = ?1",
                segment,
                |row| Ok(row.get(0)?),
            )?,
            None => Vec::new(),
        };
        let submitted: Vec<(i64, String)> = self.all(
            "SELECT u.\"commit\", t.task_id FROM task_sources s JOIN submissions u USING (task)
             JOIN tasks t USING (task) WHERE s.message = ?1 ORDER BY t.task",
            self.message,
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut numbers: Vec<i64> =
            submitted.iter().map(|(commit, _)| *commit).chain(finished.iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of = |number: i64| submitted.iter().filter(move |(commit, _)| *commit == number);
        let commit = |&number: &i64| {
            let tasks = of(number).map(|(_, task)| task.clone()).collect();
            self.commit(number, finished.contains(&number), tasks)
        };
        numbers.iter().map(commit).collect()
    }

    fn commit(&self, number: i64, finished: bool, tasks: Vec<String>) -> Result<CommitOf> {
        let settings = meta::<Vec<u8>>(self.conn, "settings_fp")?;
        let mut query = self.conn.prepare_cached("SELECT * FROM commits WHERE \"commit\" = ?1")?;
        let mut rows = query.query([number])?;
        let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        Ok(CommitOf {
            commit: number,
            round: row.get("round")?,
            group: row.get("group_id")?,
            at: self.zone.rfc3339(row.get("at")?)?,
            model: row.get("model")?,
            current: settings == Some(row.get("settings_fp")?),
            finished,
            no_task_reason: row.get("no_task_reason")?,
            tasks,
        })
    }

    fn failure(&self) -> Result<Option<Failure>> {
        let Some(segment) = self.segment else { return Ok(None) };
        let sql = "SELECT f.attempts, f.at, f.reason FROM segments g JOIN failures f USING (content_fp)
                   WHERE g.segment = ?1 AND g.status = 'failed'
                     AND f.settings_fp = (SELECT value FROM meta WHERE key = 'settings_fp')";
        let failures = self.all(sql, segment, |row| {
            let at = self.zone.rfc3339(row.get(1)?)?;
            Ok(Failure { attempts: row.get(0)?, at, reason: row.get(2)? })
        })?;
        Ok(failures.into_iter().next())
    }

    fn tasks(&self) -> Result<Vec<TaskOf>> {
        let sql = "SELECT t.task_id, t.revision, t.status, json_extract(t.record, '$.title')
                   FROM task_sources s JOIN tasks t USING (task) WHERE s.message = ?1 ORDER BY t.task";
        self.all(sql, self.message, |row| {
            let (task_id, revision) = (row.get(0)?, row.get(1)?);
            Ok(TaskOf { task_id, revision, status: row.get(2)?, title: row.get(3)? })
        })
    }

    /// Why it has its outcome, in words.
    pub(super) fn why(&self, grounds: &Grounds) -> Result<String> {
        let again = if self.dirty && grounds.chars.is_some() {
            " Its conversation has changed since the last round: the next one looks at it again."
        } else {
            ""
        };
        Ok(format!("{}{again}", self.reason(grounds)?))
    }

    fn reason(&self, grounds: &Grounds) -> Result<String> {
        let done = grounds.commits.iter().rfind(|commit| commit.finished && commit.current);
        Ok(match grounds.outcome {
            "system" => "A notice: it links its neighbours and is never sent to a model.".to_owned(),
            "recalled" => "It was recalled: it links its neighbours, its text is not sent.".to_owned(),
            "history" => {
                "It was sent before input.start_at: shown as history, never a reason to ask.".to_owned()
            }
            "failed" => {
                let reason = grounds.failure.as_ref().map_or("", |failure| failure.reason.as_str());
                format!("The last attempt at its segment failed: {reason}. The next round tries again.")
            }
            "oversized" => self.oversized(grounds)?,
            "cited" => format!("Tasks rest on it: {}.", titles(&grounds.tasks)),
            "read-no-task" => match done.map(|commit| (commit, &commit.no_task_reason)) {
                Some((commit, Some(reason))) => {
                    format!("{} read it and found no task: {reason}", commit.model)
                }
                Some((commit, None)) => {
                    format!("{} read it; the tasks that it submitted rest on other messages.", commit.model)
                }
                None => "It was read, and no task rests on it.".to_owned(),
            },
            _ if grounds.chars.is_none() => {
                "It came after the last round: the next one puts it into a segment.".to_owned()
            }
            _ if grounds.commits.iter().any(|commit| commit.finished) => {
                "Its segment was done under other settings (rules, model or grouping); it waits to be read anew."
                    .to_owned()
            }
            _ => "Its segment waits for a round.".to_owned(),
        })
    }

    fn oversized(&self, grounds: &Grounds) -> Result<String> {
        let limit: i64 = meta(self.conn, "limit")?.unwrap_or_default();
        let envelope = i64::try_from(budget::CONVERSATION).unwrap_or_default();
        let chars = grounds.chars.unwrap_or_default() + envelope;
        Ok(format!(
            "Its segment has {chars} characters, a group takes {limit}: raise context.max_conversation_chars, or \
             cut long chats with context.grouping = \"session\"."
        ))
    }
}

fn titles(tasks: &[TaskOf]) -> String {
    let standing = tasks.iter().filter(|task| task.status != "superseded");
    standing.map(|task| format!("{} ({})", task.title, task.task_id)).collect::<Vec<_>>().join(", ")
}
