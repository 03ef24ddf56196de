//! Messages against their lines: every column that planning and tasks rest on is computed again.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{Findings, differing};
use crate::budget;
use crate::delivery::event_key;
use crate::error::Result;
use crate::event::{Event, FileFacts};
use crate::fingerprint;
use crate::store::messages::{Merged, kind_number, state_number, stored_event, stored_facts, told_by};
use crate::store::{meta, proof};

/// Every message's columns against its line, and its line against its delivery.
pub(super) fn messages(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let sql = "SELECT m.*, l.raw, c.platform, c.account_id, c.id FROM messages m
               LEFT JOIN lines l USING (message) LEFT JOIN conversations c USING (conversation)";
    let mut query = conn.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.messages += 1;
        findings.step()?;
        let found = message(conn, row);
        if !matches!(&found, Ok(found) if found.is_empty()) {
            findings.row("message", name_of(row), found)?;
        }
    }
    counted(conn, findings, "messages", findings.checked.messages)
}

fn name_of(row: &Row<'_>) -> String {
    row.get("key").unwrap_or_else(|_| format!("number {}", row.get::<_, i64>("message").unwrap_or_default()))
}

fn message(conn: &Connection, row: &Row<'_>) -> Result<Vec<String>> {
    let raw: &[u8] = row.get_ref("raw")?.as_blob().map_err(rusqlite::Error::from)?;
    let event = stored_event(raw)?;
    let merged: Option<String> = row.get("merged")?;
    let facts = stored_facts(&event, merged.as_deref())?;
    let text = |name: &str| row.get::<_, Option<String>>(name);
    let number = |name: &str| row.get::<_, Option<i64>>(name);
    let digest = |name: &str| row.get::<_, Vec<u8>>(name);
    let is = |value: Option<i64>, wanted: u64| value == i64::try_from(wanted).ok();
    let files = budget::visible_files(&event).len() as u64;
    let told = fingerprint::message_digest(
        &event.message_key,
        event.revision,
        &event.content_hash,
        event.sender_name.as_deref(),
    );
    let mut found = differing(
        "differ from what the message's line says",
        &[
            ("key", text("key")?.as_deref() == Some(&event.message_key)),
            ("platform", text("platform")?.as_deref() == Some(&event.platform)),
            ("account_id", text("account_id")?.as_deref() == Some(&event.account_id)),
            ("conversation", text("id")?.as_deref() == Some(&event.conversation_id)),
            ("event_id", text("event_id")?.as_deref() == Some(&event.event_id)),
            ("revision", is(number("revision")?, event.revision)),
            ("kind", number("kind")? == Some(kind_number(event.kind))),
            ("state", number("state")? == Some(state_number(event.state))),
            ("sent_at", number("sent_at")? == Some(event.sent_at)),
            ("collected_at", number("collected_at")? == Some(event.collected_at)),
            ("content", digest("content")? == event.content_hash),
            ("digest", digest("digest")? == told),
            ("cost", is(number("cost")?, budget::message_cost(&event, &facts).into())),
            ("files", is(number("files")?, files)),
        ],
    );
    found.extend(link(conn, row, &event)?);
    found.extend(unions(&event, merged.as_deref(), &facts)?);
    let proven: Option<Vec<u8>> = row.get("proof")?;
    let (position, predecessor, origin) = (number("position")?, text("predecessor")?, text("link")?);
    let now = proof::message(
        &event.message_key,
        position,
        predecessor.as_deref(),
        origin.as_deref(),
        merged.as_deref(),
    );
    if proven.is_some() && proven.as_deref() != now.as_ref().map(<[u8; 32]>::as_slice) {
        found.push("position, link or what other deliveries told is not what was written".to_owned());
    }
    found.extend(delivery(conn, row, &event)?);
    Ok(found)
}

/// The proof of position: the line's own, or one of an older delivery.
fn link(conn: &Connection, row: &Row<'_>, event: &Event<'_>) -> Result<Vec<String>> {
    let sequenced: i64 = row.get("sequenced")?;
    let (position, predecessor): (Option<i64>, Option<String>) =
        (row.get("position")?, row.get("predecessor")?);
    let origin: Option<String> = row.get("link")?;
    if let Some(sequence) = &event.sequence {
        return Ok(differing(
            "differ from the position that the message's line proves",
            &[
                ("sequenced", sequenced == 1),
                ("link", origin.is_none()),
                ("position", position == sequence.index),
                ("predecessor", predecessor.as_deref() == sequence.predecessor.as_deref()),
            ],
        ));
    }
    let Some(origin) = origin else {
        let none = sequenced == 0 && position.is_none() && predecessor.is_none();
        return Ok(differing("is not proven by any delivery", &[("position", none)]));
    };
    let (_, _, event_id): (u64, i64, String) = serde_json::from_str(&origin)?;
    let told = delivered_as(conn, &event_id)?
        .is_some_and(|(_, message, _)| Some(message) == row.get("message").ok());
    Ok(differing("names a delivery that is none of this message", &[("link", sequenced == 1 && told)]))
}

/// What several deliveries told together holds at least what the newest one says.
fn unions(event: &Event<'_>, merged: Option<&str>, facts: &[FileFacts]) -> Result<Vec<String>> {
    let Some(merged) = merged else { return Ok(Vec::new()) };
    let merged: Merged = serde_json::from_str(merged)?;
    let told = told_by(event);
    let holds = told.files.iter().zip(facts).all(|(told, known)| {
        (told.size.is_none() || told.size == known.size)
            && (told.sha256.is_none() || told.sha256 == known.sha256)
    });
    let same_length = told.files.len() == facts.len();
    Ok(differing(
        "of all deliveries lack what the message's line says",
        &[("rules", merged.rules.is_superset(&told.rules)), ("files", holds && same_length)],
    ))
}

/// The line is an accepted delivery, byte for byte in every value.
fn delivery(conn: &Connection, row: &Row<'_>, event: &Event<'_>) -> Result<Vec<String>> {
    let number: i64 = row.get("message")?;
    Ok(match delivered_as(conn, &event.event_id)? {
        None => vec!["its line was never delivered".to_owned()],
        Some((hash, message, revision)) => differing(
            "differ from the delivery's",
            &[
                ("values of its line", hash == event.event_hash),
                ("message", message == number),
                ("revision", u64::try_from(revision).ok() == Some(event.revision)),
            ],
        ),
    })
}

/// Hash, message and revision of an accepted delivery.
fn delivered_as(conn: &Connection, event_id: &str) -> Result<Option<([u8; 32], i64, i64)>> {
    let mut query = conn.prepare_cached("SELECT hash, message, revision FROM events WHERE id = ?1")?;
    let key = event_key(event_id);
    Ok(query.query_row([key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?)
}

/// Every conversation against the delivery that named it, where that is still a message's line.
pub(super) fn conversations(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let mut query = conn.prepare("SELECT * FROM conversations")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.conversations += 1;
        let number: i64 = row.get("conversation")?;
        findings.row("conversation", format!("number {number}"), conversation(conn, row))?;
    }
    Ok(())
}

fn conversation(conn: &Connection, row: &Row<'_>) -> Result<Vec<String>> {
    let dirty: i64 = row.get("dirty")?;
    let mut found = differing("is neither 0 nor 1", &[("dirty", (0..=1).contains(&dirty))]);
    let named_by: String = row.get("named_by")?;
    let Some((_, message, _)) = delivered_as(conn, &named_by)? else {
        found.push("was named by a delivery that never came".to_owned());
        return Ok(found);
    };
    let sql = "SELECT raw FROM messages JOIN lines USING (message) WHERE message = ?1 AND event_id = ?2";
    let mut query = conn.prepare_cached(sql)?;
    let raw: Option<Vec<u8>> = query.query_row(params![message, named_by], |row| row.get(0)).optional()?;
    let Some(raw) = raw else { return Ok(found) };
    let event = stored_event(&raw)?;
    let text = |name: &str| row.get::<_, Option<String>>(name);
    found.extend(differing(
        "differ from what the delivery says that named it",
        &[
            ("platform", text("platform")?.as_deref() == Some(&event.platform)),
            ("account_id", text("account_id")?.as_deref() == Some(&event.account_id)),
            ("id", text("id")?.as_deref() == Some(&event.conversation_id)),
            ("name", text("name")?.as_deref() == event.conversation_name.as_deref()),
            ("type", text("type")?.as_deref() == Some(event.conversation_type.as_str())),
            ("named_at", row.get::<_, i64>("named_at")? == event.collected_at),
        ],
    ));
    Ok(found)
}

/// Every revision below a message's newest.
pub(super) fn revisions(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let sql = "SELECT r.*, m.key, m.revision AS newest FROM revisions r LEFT JOIN messages m USING (message)";
    let mut query = conn.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.revisions += 1;
        let (message, revision): (i64, i64) = (row.get("message")?, row.get("revision")?);
        findings.row("revision", format!("{revision} of message number {message}"), lower(row))?;
    }
    Ok(())
}

fn lower(row: &Row<'_>) -> Result<Vec<String>> {
    let (message, revision): (i64, i64) = (row.get("message")?, row.get("revision")?);
    let content: Vec<u8> = row.get("content")?;
    let merged: Option<String> = row.get("merged")?;
    let proven: Option<Vec<u8>> = row.get("proof")?;
    let newest: Option<i64> = row.get("newest")?;
    let now = proof::revision(message, revision, &content, merged.as_deref());
    Ok(differing(
        "is not what was written",
        &[
            ("its number", newest.is_some_and(|newest| revision < newest)),
            ("its content", proven.is_none_or(|proven| proven == now)),
        ],
    ))
}

/// Every delivery names a message and a revision that are there.
pub(super) fn deliveries(conn: &Connection, findings: &mut Findings<'_>) -> Result<()> {
    let sql = "SELECT hex(e.id), length(e.id) = 16 AND length(e.hash) = 32
                 AND (e.revision = m.revision OR (e.revision < m.revision AND EXISTS(
                   SELECT 1 FROM revisions r WHERE r.message = e.message AND r.revision = e.revision)))
               FROM events e LEFT JOIN messages m USING (message)";
    let mut query = conn.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        findings.checked.deliveries += 1;
        if row.get::<_, Option<bool>>(1)? != Some(true) {
            let explanation = "is of a message or a revision that is not there";
            findings.broken("delivery", row.get::<_, String>(0)?, explanation);
        }
    }
    counted(conn, findings, "events", findings.checked.deliveries)
}

/// A count of `status` against the rows themselves.
fn counted(conn: &Connection, findings: &mut Findings<'_>, name: &'static str, rows: u64) -> Result<()> {
    let count = meta::<i64>(conn, name)?.unwrap_or_default();
    if u64::try_from(count).ok() != Some(rows) {
        let explanation = format!("status counts {count} {name}, the store holds {rows}");
        findings.broken("coverage", name, explanation);
    }
    Ok(())
}
