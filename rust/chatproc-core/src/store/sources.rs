//! A stored message → the source that a task's record tells of it.
//!
//! Reads only. What later deliveries made known (rules, sizes and digests of files) goes over what the
//! newest line says; a recalled message keeps neither text nor attachments.

use rusqlite::{Connection, OptionalExtension, Row};
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::error::Result;
use crate::task::{Attachment, Conversation, Owner, Seconds, Sender, Source};
use crate::zone::Zone;

/// `messages.state` of a message that was recalled.
const RECALLED: i64 = 2;

/// A message that a task can cite.
pub(super) struct Citable {
    pub message: i64,
    pub conversation: i64,
    pub source: Source,
}

/// What the newest delivery's line says beyond the columns. Unknown keys are no fault.
#[derive(Deserialize)]
struct Line {
    message_id: Option<String>,
    #[serde(default)]
    sender: Sender,
    #[serde(default)]
    text: String,
    attachments: Option<Vec<LineAttachment>>,
    selection: Option<Value>,
    source: Option<Value>,
}

#[derive(Deserialize)]
struct LineAttachment {
    id: String,
    name: Option<String>,
    mime: Option<String>,
    size: Option<Number>,
    sha256: Option<String>,
    path: Option<String>,
    state: Option<String>,
}

/// What all deliveries together made known: `messages.merged`.
#[derive(Default, Deserialize)]
struct Merged {
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    files: Vec<Option<KnownFile>>,
}

#[derive(Default, Deserialize)]
struct KnownFile {
    size: Option<u64>,
    sha256: Option<String>,
}

/// The message of that key as a source without quotes.
pub(super) fn citable(conn: &Connection, key: &str, zone: &Zone) -> Result<Option<Citable>> {
    let sql = "SELECT m.message, m.conversation, m.key, m.state, m.sent_at, m.collected_at, m.merged, l.raw,
                 c.platform, c.account_id, c.id, c.name, c.type
               FROM messages m JOIN lines l USING(message) JOIN conversations c USING(conversation)
               WHERE m.key = ?1";
    let found = conn.prepare_cached(sql)?.query_row([key], |row| Ok(read(row, zone))).optional()?;
    found.transpose()
}

fn read(row: &Row<'_>, zone: &Zone) -> Result<Citable> {
    let raw = row.get_ref("raw")?;
    let mut line: Line = serde_json::from_slice(raw.as_blob().map_err(rusqlite::Error::from)?)?;
    let merged: Merged = match row.get_ref("merged")?.as_str_or_null().map_err(rusqlite::Error::from)? {
        Some(text) => serde_json::from_str(text)?,
        None => Merged::default(),
    };
    if row.get::<_, i64>("state")? == RECALLED {
        line.text.clear();
        line.attachments = None;
    }
    let sent_at: i64 = row.get("sent_at")?;
    let collected_at: i64 = row.get("collected_at")?;
    let source = Source {
        platform: row.get("platform")?,
        account_id: row.get("account_id")?,
        conversation: conversation(row)?,
        message_key: row.get("key")?,
        message_id: line.message_id,
        sender: line.sender,
        sent_at: Seconds(sent_at),
        sent_at_local: zone.rfc3339(sent_at)?,
        collected_at: (collected_at > 0).then_some(Seconds(collected_at)),
        text: line.text,
        attachments: attachments(line.attachments.unwrap_or_default(), merged.files),
        quotes: Vec::new(),
        selection: selection(line.selection, merged.rules),
        source: line.source,
    };
    Ok(Citable { message: row.get("message")?, conversation: row.get("conversation")?, source })
}

/// The conversation as a task's owner.
pub(super) fn owner(conn: &Connection, number: i64) -> Result<Owner> {
    let sql = "SELECT platform, account_id, id, name, type FROM conversations WHERE conversation = ?1";
    Ok(conn.query_row(sql, [number], |row| {
        Ok(Owner {
            platform: row.get("platform")?,
            account_id: row.get("account_id")?,
            conversation: conversation(row)?,
        })
    })?)
}

fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation { id: row.get("id")?, name: row.get("name")?, kind: row.get("type")? })
}

fn attachments(told: Vec<LineAttachment>, known: Vec<Option<KnownFile>>) -> Vec<Attachment> {
    let known =
        known.into_iter().map(Option::unwrap_or_default).chain(std::iter::repeat_with(KnownFile::default));
    let joined = |(told, known): (LineAttachment, KnownFile)| Attachment {
        id: told.id,
        name: told.name,
        mime: told.mime,
        size: known.size.or_else(|| told.size.as_ref().and_then(whole)),
        sha256: known.sha256.or(told.sha256),
        path: told.path,
        state: told.state,
    };
    told.into_iter().zip(known).map(joined).collect()
}

/// A size by its value: `1.0` is `1`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
fn whole(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| number.as_f64().filter(|size| size.fract() == 0.0).map(|size| size as u64))
}

/// The newest selection with the rules of all deliveries.
fn selection(newest: Option<Value>, rules: Vec<String>) -> Option<Value> {
    if rules.is_empty() {
        return newest;
    }
    let mut members = match newest {
        Some(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    members.insert("rules".to_owned(), Value::from(rules));
    Some(Value::Object(members))
}
