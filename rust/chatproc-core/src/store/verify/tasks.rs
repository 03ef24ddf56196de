//! A task against its last event, its sources against stored messages, its evidence against what was sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Findings, differing};
use crate::claim;
use crate::error::Result;
use crate::evidence::{Quote, check_quote};
use crate::revision::Place;
use crate::store::messages::stored_event;
use crate::store::outbox::TaskEvent;
use crate::task::{Record, Source, StoredQuote};
use crate::zone::{Edge, Zone};

/// What the events of a task told so far.
#[derive(Default)]
pub(super) struct History {
    pub(super) revision: i64,
    pub(super) created_at: i64,
    /// Whether the task itself was compared with its last event.
    told: bool,
    /// Where each source stood when the task first cited it.
    first: BTreeMap<String, Place>,
    /// Where any source ever stood: a message can move to another conversation.
    ever: BTreeSet<Place>,
}

impl History {
    pub(super) fn tell(&mut self, record: &Record) {
        for source in &record.sources {
            self.first.entry(source.message_key.clone()).or_insert_with(|| place_of(source));
            self.ever.insert(place_of(source));
        }
    }

    /// Forgets what is of no use once the task was looked at.
    pub(super) fn close(&mut self) {
        (self.first, self.ever) = (BTreeMap::new(), BTreeSet::new());
    }
}

fn place_of(source: &Source) -> Place {
    Place {
        platform: source.platform.clone(),
        account_id: source.account_id.clone(),
        conversation_id: source.conversation.id.clone(),
    }
}

/// Every task was told by an event of its present revision.
pub(super) fn all_told(
    conn: &Connection,
    histories: &HashMap<i64, History>,
    findings: &mut Findings<'_>,
) -> Result<()> {
    let mut query = conn.prepare("SELECT task, task_id, revision FROM tasks")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (task, id, revision): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let history = histories.get(&task);
        let last = history.map_or(0, |history| history.revision);
        if last != revision || !history.is_some_and(|history| history.told) {
            findings.broken("task", id, format!("has revision {revision}, its last event has {last}"));
        }
    }
    Ok(())
}

/// The counts that lists and `status` show, against the tasks.
pub(super) fn counts(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let counted = "SELECT status, priority, due_at >> 26, count(*) FROM tasks GROUP BY 1, 2, 3";
    let sql = format!(
        "SELECT DISTINCT status, priority FROM (
           SELECT * FROM ({counted} EXCEPT SELECT * FROM task_counts)
           UNION ALL SELECT * FROM (SELECT * FROM task_counts EXCEPT {counted}))"
    );
    let mut query = conn.prepare(&sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (status, priority): (String, String) = (row.get(0)?, row.get(1)?);
        findings.broken("task", format!("{status} {priority}"), "the counts are not those of the tasks");
    }
    Ok(())
}

/// A task's row against its last event; its sources, quotes and evidence against what is stored.
pub(super) fn task(
    conn: &Connection,
    task: i64,
    line: &[u8],
    at: i64,
    event: &TaskEvent,
    history: &mut History,
    findings: &mut Findings<'_>,
) -> Result<()> {
    history.told = true;
    findings.checked.tasks += 1;
    let found = row(conn, task, line, at, &event.task, history);
    findings.row("task", &event.task_id, found)?;
    let found = places(conn, task, &event.task, history);
    findings.row("task", &event.task_id, found)?;
    for source in &event.task.sources {
        findings.checked.quotes += source.quotes.len() as u64;
        let found = source_of(conn, task, source, &event.task);
        findings.row("task", &event.task_id, found)?;
    }
    findings.row("task", &event.task_id, evidence(conn, task, &event.task))?;
    findings.row("task", &event.task_id, Ok(times(&event.task)))
}

fn row(
    conn: &Connection,
    task: i64,
    line: &[u8],
    at: i64,
    record: &Record,
    history: &History,
) -> Result<Vec<String>> {
    let sql = "SELECT t.*, c.platform, c.account_id, c.id, (SELECT max(\"commit\") FROM submissions s
                 WHERE s.task = t.task) AS submitted
               FROM tasks t LEFT JOIN conversations c USING (conversation) WHERE t.task = ?1";
    let mut query = conn.prepare_cached(sql)?;
    let compared = query.query_row([task], |row| {
        let stored = row.get_ref("record")?.as_bytes().map_err(rusqlite::Error::from)?;
        let text = |name: &str| row.get::<_, Option<String>>(name);
        let number = |name: &str| row.get::<_, Option<i64>>(name);
        let owner = &record.owner;
        Ok([
            ("record", is_of_line(stored, line)),
            ("status", text("status")?.as_deref() == Some(record.status.as_str())),
            ("status_by", text("status_by")?.as_deref() == Some(record.status_by.as_str())),
            ("priority", text("priority")?.as_deref() == Some(record.priority.as_str())),
            ("due_at", number("due_at")? == record.due_at().ok()),
            ("created_at", number("created_at")? == Some(history.created_at)),
            ("updated_at", number("updated_at")? == Some(at)),
            (
                "last_commit",
                number("last_commit")?.is_some() && number("last_commit")? == number("submitted")?,
            ),
            ("platform", text("platform")?.as_deref() == Some(&owner.platform)),
            ("account_id", text("account_id")?.as_deref() == Some(&owner.account_id)),
            ("conversation", text("id")?.as_deref() == Some(&owner.conversation.id)),
        ])
    })?;
    Ok(differing("of the stored task differ from its last event", &compared))
}

/// Whether an event's line ends with that record.
fn is_of_line(record: &[u8], line: &[u8]) -> bool {
    let head = line.strip_suffix(b"}\n").and_then(|line| line.strip_suffix(record));
    head.is_some_and(|head| head.ends_with(b"\"task\":"))
}

/// The rows that say which messages and conversations a task rests on.
fn places(conn: &Connection, task: i64, record: &Record, history: &History) -> Result<Vec<String>> {
    let keys: BTreeSet<String> = record.sources.iter().map(|source| source.message_key.clone()).collect();
    let sql = "SELECT m.key FROM task_sources s LEFT JOIN messages m USING (message) WHERE s.task = ?1";
    let mut query = conn.prepare_cached(sql)?;
    let linked =
        query.query_map([task], |row| row.get(0))?.collect::<rusqlite::Result<BTreeSet<String>>>()?;
    let sql = "SELECT c.platform, c.account_id, c.id FROM task_conversations s
               JOIN conversations c USING (conversation) WHERE s.task = ?1";
    let mut query = conn.prepare_cached(sql)?;
    let rows = query.query_map([task], |row| {
        Ok(Place { platform: row.get(0)?, account_id: row.get(1)?, conversation_id: row.get(2)? })
    })?;
    let stored = rows.collect::<rusqlite::Result<BTreeSet<Place>>>()?;
    let first: BTreeSet<&Place> = history.first.values().collect();
    let told = first.iter().all(|place| stored.contains(place)) && stored.is_subset(&history.ever);
    Ok(differing(
        "of the stored task differ from the record",
        &[
            (
                "source_message_keys",
                record.sources.iter().map(|it| &it.message_key).eq(&record.source_message_keys),
            ),
            ("sources", linked == keys),
            ("conversations", told),
        ],
    ))
}

/// A source against its message, where the message was last read no later than the task was submitted:
/// one that changed since waits to be read again. And its quotes, which stand in it word for word.
fn source_of(conn: &Connection, task: i64, source: &Source, record: &Record) -> Result<Vec<String>> {
    let sql = "SELECT raw, m.state, EXISTS(
                 SELECT 1 FROM segments g JOIN ledger l USING (content_fp) JOIN tasks t ON t.task = ?2
                 WHERE g.segment = s.segment AND g.conversation = m.conversation AND c.dirty = 0
                   AND l.\"commit\" <= t.last_commit)
               FROM messages m JOIN lines USING (message) JOIN conversations c USING (conversation)
               LEFT JOIN members s USING (message) WHERE m.key = ?1";
    let mut query = conn.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?, row.get(2)?));
    let stored: Option<(Vec<u8>, i64, bool)> =
        query.query_row(params![source.message_key, task], read).optional()?;
    let Some((raw, state, settled)) = stored else {
        return Ok(vec![format!("its source {:?} is no stored message", source.message_key)]);
    };
    let mut found = Vec::new();
    if settled {
        let event = stored_event(&raw)?;
        let recalled = state == 2;
        let text = if recalled { "" } else { event.text.as_ref() };
        let files = if recalled { &[][..] } else { &event.attachments[..] };
        let compared = [
            ("text", source.text == text),
            ("time", source.sent_at.0 == event.sent_at),
            ("sender", source.sender.id.as_deref() == event.sender_id.as_deref()),
            (
                "attachments",
                source.attachments.iter().map(|it| it.id.as_str()).eq(files.iter().map(|it| it.id.as_ref())),
            ),
        ];
        let what = format!("of its source {:?} differ from the message", source.message_key);
        found.extend(differing(&what, &compared));
    }
    for quote in &source.quotes {
        if !stands(quote, source, record) {
            found.push(format!("the quote {:?} does not stand in {:?}", quote.text, source.message_key));
        }
    }
    Ok(found)
}

/// A quote of a text stands in it as it is; one of a unit is of a unit that the task cites.
fn stands(quote: &StoredQuote, source: &Source, record: &Record) -> bool {
    match (&quote.attachment_id, &quote.unit) {
        (None, None) => check_quote(&quote.text, &source.text) == Quote::Exact,
        (Some(attachment), Some(unit)) => record.attachment_evidence.iter().any(|cited| {
            (&cited.message_key, &cited.attachment_id, &cited.unit) == (&source.message_key, attachment, unit)
        }),
        _ => false,
    }
}

/// Every unit that a task cites was sent to the model of one of its commits, of the same file.
fn evidence(conn: &Connection, task: i64, record: &Record) -> Result<Vec<String>> {
    let sql = "SELECT 1 FROM submissions s JOIN receipts r USING (\"commit\") JOIN messages m USING (message)
               WHERE s.task = ?1 AND m.key = ?2 AND r.attachment_id = ?3 AND r.unit = ?4
                 AND r.attachment_sha256 = ?5";
    let mut found = Vec::new();
    for cited in &record.attachment_evidence {
        let row = params![task, cited.message_key, cited.attachment_id, cited.unit, cited.sha256];
        if !conn.prepare_cached(sql)?.exists(row)? {
            found.push(format!("no receipt says that {} of {:?} was read", cited.unit, cited.message_key));
        }
    }
    Ok(found)
}

/// A task's times can be read, it does not end before it begins, and they are what its sources mean.
fn times(record: &Record) -> Vec<String> {
    let Ok(zone) = Zone::named(&record.time.timezone) else {
        return vec![format!("{:?} is no time zone", record.time.timezone)];
    };
    let read = |text: &Option<String>, edge| text.as_ref().map(|text| zone.instant(text, edge));
    match (read(&record.time.start, Edge::Start), read(&record.time.due, Edge::End)) {
        (Some(Err(error)), _) | (_, Some(Err(error))) => vec![error.to_string()],
        (Some(Ok(start)), Some(Ok(due))) if start > due => vec!["it is due before it starts".to_owned()],
        _ => match claim::doubt(record) {
            Ok(doubt) => doubt.into_iter().collect(),
            Err(error) => vec![error.to_string()],
        },
    }
}
