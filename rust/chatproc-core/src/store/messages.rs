//! Messages and deliveries in the store: what is known before a slice, and a slice written down.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::event::FileFacts;
use crate::event::{Event, Kind, State, read_event};
use crate::revision::{
    Accepted, EventKey, Intake, Known, Link, Message, Naming, Place, Remembered, Slice, Told, Touched,
};
use crate::store::bulk::{self, Bulk, Delivery};
use crate::store::proof;
use crate::store::rows::{self, Values};

/// What was united over several deliveries of a revision, kept where it differs from the newest line.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Merged {
    /// Selection rules.
    pub rules: BTreeSet<String>,
    /// Size and SHA-256 of each attachment, in order.
    pub files: Vec<Facts>,
}

/// One attachment's entry in [`Merged`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Bytes.
    pub size: Option<u64>,
    /// Hexadecimal SHA-256.
    pub sha256: Option<String>,
}

impl From<&FileFacts> for Facts {
    fn from(facts: &FileFacts) -> Self {
        Self { size: facts.size, sha256: facts.sha256.clone() }
    }
}

impl From<Facts> for FileFacts {
    fn from(facts: Facts) -> Self {
        Self { size: facts.size, sha256: facts.sha256 }
    }
}

/// Rules and facts as the line itself tells them.
pub(super) fn told_by(event: &Event<'_>) -> Merged {
    Merged {
        rules: event.rules.iter().map(|rule| rule.as_ref().to_owned()).collect(),
        files: event
            .attachments
            .iter()
            .map(|file| Facts {
                size: file.size,
                sha256: file.sha256.as_ref().map(|hash| hash.as_ref().to_owned()),
            })
            .collect(),
    }
}

/// A stored line, read again.
pub fn stored_event(raw: &[u8]) -> Result<Event<'_>> {
    read_event(raw)
        .map_err(|refusal| Error::Invalid(format!("a stored line is damaged: {}", refusal.explanation)))
}

/// What is known of a stored message's attachments.
pub fn stored_facts(event: &Event<'_>, merged: Option<&str>) -> Result<Vec<FileFacts>> {
    let merged = match merged {
        Some(merged) => serde_json::from_str(merged)?,
        None => told_by(event),
    };
    Ok(merged.files.into_iter().map(FileFacts::from).collect())
}

pub(crate) fn kind_of(number: i64) -> Kind {
    if number == 1 { Kind::System } else { Kind::Message }
}

pub(crate) fn state_of(number: i64) -> State {
    match number {
        1 => State::Edited,
        2 => State::Recalled,
        _ => State::Normal,
    }
}

pub(super) fn kind_number(kind: Kind) -> i64 {
    i64::from(kind == Kind::System)
}

pub(super) fn state_number(state: State) -> i64 {
    match state {
        State::Normal => 0,
        State::Edited => 1,
        State::Recalled => 2,
    }
}

/// A revision as SQLite keeps it: the contract bounds it below 2^53.
pub(super) fn revision_number(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// The store, as what is known before a slice.
pub struct Stored<'c> {
    conn: &'c Connection,
    messages: bool,
    refused_events: bool,
    bulk: Option<&'c Bulk>,
}

impl<'c> Stored<'c> {
    /// The store as it is now. What it has none of at all is not looked for.
    pub fn over(conn: &'c Connection) -> Result<Self> {
        let sql =
            "SELECT EXISTS(SELECT 1 FROM messages), EXISTS(SELECT 1 FROM quarantine WHERE event IS NOT NULL)";
        let row = conn.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
        let (messages, refused_events) = row?;
        Ok(Self { conn, messages, refused_events, bulk: None })
    }

    /// The same of a store in the making.
    #[must_use]
    pub fn with(self, bulk: Option<&'c Bulk>) -> Self {
        Self { bulk, ..self }
    }
}

impl Stored<'_> {
    fn read(&self, which: &str, value: impl rusqlite::ToSql) -> Result<Option<Message>> {
        let sql = format!(
            "SELECT m.*, l.raw, c.platform, c.account_id, c.id FROM messages m
             JOIN lines l USING (message) JOIN conversations c USING (conversation) WHERE {which}"
        );
        let mut query = self.conn.prepare_cached(&sql)?;
        let mut rows = query.query([value])?;
        rows.next()?.map(message_of).transpose()
    }
}

impl Known for Stored<'_> {
    fn event(&self, key: &EventKey) -> Result<Option<[u8; 32]>> {
        if let Some(bulk) = self.bulk
            && let waiting = bulk.waiting(key)
            && (waiting.is_some() || !bulk.may_hold(key))
        {
            return Ok(waiting);
        }
        if !self.messages {
            return Ok(None);
        }
        let mut query = self.conn.prepare_cached("SELECT hash FROM events WHERE id = ?1")?;
        Ok(query.query_row([key], |row| row.get(0)).optional()?)
    }

    fn refused_event(&self, key: &EventKey) -> Result<Option<[u8; 32]>> {
        if !self.refused_events {
            return Ok(None);
        }
        let sql = "SELECT identity FROM quarantine WHERE event = ?1 AND state <> 'accepted'";
        Ok(self.conn.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
    }

    fn refused(&self, identity: &[u8; 32]) -> Result<bool> {
        let mut query = self.conn.prepare_cached("SELECT 1 FROM quarantine WHERE identity = ?1")?;
        Ok(query.exists([identity])?)
    }

    fn message(&self, key: &str) -> Result<Option<Message>> {
        if let Some(bulk) = self.bulk {
            let Some(row) = bulk.row(key) else { return Ok(None) };
            let found = self.read("m.message = ?1", row)?;
            if found.as_ref().is_some_and(|found| &*found.key == key) {
                return Ok(found);
            }
        }
        if self.messages { self.read("m.key = ?1", key) } else { Ok(None) }
    }

    fn lower(&self, number: i64, revision: u64) -> Result<Option<Remembered>> {
        let sql = "SELECT content, merged FROM revisions WHERE message = ?1 AND revision = ?2";
        let mut query = self.conn.prepare_cached(sql)?;
        let found: Option<([u8; 32], Option<String>)> = query
            .query_row(params![number, revision_number(revision)], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((content, files)) = found else { return Ok(None) };
        let files: Vec<Facts> = files.map_or(Ok(Vec::new()), |files| serde_json::from_str(&files))?;
        Ok(Some(Remembered { content, facts: files.into_iter().map(FileFacts::from).collect() }))
    }
}

fn message_of(row: &Row<'_>) -> Result<Message> {
    let raw: Vec<u8> = row.get("raw")?;
    let told = Told { collected_at: row.get("collected_at")?, event_id: row.get("event_id")? };
    let revision = u64::try_from(row.get::<_, i64>("revision")?).unwrap_or_default();
    let merged: Option<String> = row.get("merged")?;
    let plain = merged.is_none();
    let merged = match merged {
        Some(merged) => serde_json::from_str(&merged)?,
        None => told_by(&stored_event(&raw)?),
    };
    let link = if row.get::<_, bool>("sequenced")? {
        let origin: Option<String> = row.get("link")?;
        let (revision, told) = match origin {
            Some(origin) => {
                let (revision, collected_at, event_id): (_, _, String) = serde_json::from_str(&origin)?;
                (revision, Told { collected_at, event_id: event_id.into() })
            }
            None => (revision, told.clone()),
        };
        Some(Link { index: row.get("position")?, predecessor: row.get("predecessor")?, revision, told })
    } else {
        None
    };
    Ok(Message {
        number: Some(row.get("message")?),
        key: row.get("key")?,
        place: Arc::new(Place {
            platform: row.get("platform")?,
            account_id: row.get("account_id")?,
            conversation_id: row.get("id")?,
        }),
        revision,
        kind: kind_of(row.get("kind")?),
        state: state_of(row.get("state")?),
        sent_at: row.get("sent_at")?,
        content: row.get("content")?,
        told,
        link,
        rules: merged.rules,
        facts: merged.files.into_iter().map(FileFacts::from).collect(),
        plain,
        cost: row.get("cost")?,
        digest: row.get("digest")?,
        raw: raw.into(),
    })
}

/// Writes a slice down and empties the intake but for its counts.
///
/// `file` is the row of the batch file that the slice came from, `bulk` what a store in the making holds.
pub fn write_slice(
    transaction: &Transaction<'_>,
    intake: &mut Intake,
    file: Option<i64>,
    mut bulk: Option<&mut Bulk>,
) -> Result<()> {
    let Slice { messages, accepted, refused, names } = intake.take();
    let mut conversations = Conversations { transaction, numbers: HashMap::new() };
    conversations.name(&names, bulk.as_deref_mut())?;
    // New rows lie together by conversation and time, as planning and people read them.
    let mut order = Vec::with_capacity(messages.list.len());
    for (at, touched) in messages.list.iter().enumerate().filter(|(_, touched)| touched.changed) {
        let message = &touched.message;
        let conversation = conversations.number(&message.place, bulk.as_deref())?;
        order.push((conversation, message.sent_at, &*message.key, at));
    }
    order.sort_unstable();
    let rows = write_messages(transaction, &messages.list, &order)?;
    let mut dirty = HashSet::new();
    let mut added = 0;
    for &(conversation, _, key, at) in &order {
        let touched = &messages.list[at];
        added += u64::from(touched.message.number.is_none());
        for (revision, lower) in &touched.lower {
            write_lower(transaction, rows[at], *revision, lower)?;
        }
        if touched.resegment {
            dirty.insert(conversation);
        }
        if let Some(place) = &touched.left {
            dirty.insert(conversations.number(place, bulk.as_deref())?);
        }
        if let Some(bulk) = &mut bulk {
            bulk.note(key, rows[at]);
        }
    }
    let taken = accepted.len() as u64;
    let deliveries = accepted.into_iter().map(|Accepted { key, hash, message, revision, line }| Delivery {
        key,
        hash,
        message: rows[message],
        revision,
        file,
        line,
    });
    if let Some(bulk) = bulk {
        bulk.take(transaction, deliveries)?;
        bulk.soil(dirty);
    } else {
        bulk::write(transaction, &mut deliveries.collect())?;
        for conversation in dirty {
            let sql = "UPDATE conversations SET dirty = 1 WHERE conversation = ?1";
            transaction.prepare_cached(sql)?.execute([conversation])?;
        }
    }
    for refused in &refused {
        super::quarantine::hold(transaction, refused)?;
    }
    super::count(transaction, "events", taken)?;
    super::count(transaction, "messages", added)
}

/// The rows of conversations, each looked up once.
struct Conversations<'t> {
    transaction: &'t Transaction<'t>,
    numbers: HashMap<Arc<Place>, i64>,
}

impl Conversations<'_> {
    /// Makes rows of new conversations and brings names up to date.
    fn name(&self, names: &HashMap<Arc<Place>, Naming>, mut bulk: Option<&mut Bulk>) -> Result<()> {
        let mut named: Vec<_> = names.iter().collect();
        named.sort_by_key(|(place, _)| *place);
        let sql = "INSERT INTO conversations VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)
                   ON CONFLICT(platform, account_id, id) DO UPDATE SET name = excluded.name,
                     type = excluded.type, named_at = excluded.named_at, named_by = excluded.named_by
                   WHERE (excluded.named_at, excluded.named_by) > (named_at, named_by)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        for (place, naming) in named {
            if bulk.as_mut().is_some_and(|bulk| bulk.name(place, naming)) {
                continue;
            }
            insert.execute(params![
                place.platform,
                place.account_id,
                place.conversation_id,
                naming.name,
                naming.kind,
                naming.told.collected_at,
                naming.told.event_id,
            ])?;
            if let Some(bulk) = &mut bulk {
                bulk.add(place, self.transaction.last_insert_rowid(), naming);
            }
        }
        Ok(())
    }

    fn number(&mut self, place: &Arc<Place>, bulk: Option<&Bulk>) -> Result<i64> {
        let known = self.numbers.get(place).copied();
        if let Some(number) = known.or_else(|| bulk?.conversation(place)) {
            return Ok(number);
        }
        let number = find_conversation(self.transaction, place)?
            .ok_or_else(|| Error::Invalid(format!("conversation {place:?} has no row")))?;
        self.numbers.insert(place.clone(), number);
        Ok(number)
    }
}

/// The row of a conversation, if the store has one.
pub fn find_conversation(conn: &Connection, place: &Place) -> Result<Option<i64>> {
    let sql = "SELECT conversation FROM conversations WHERE platform = ?1 AND account_id = ?2 AND id = ?3";
    let place = params![place.platform, place.account_id, place.conversation_id];
    Ok(conn.prepare_cached(sql)?.query_row(place, |row| row.get(0)).optional()?)
}

/// The columns of a message, as [`give_message`] gives them.
const MESSAGE: &str = "\
    messages(message, key, conversation, revision, kind, state, sent_at, sequenced, position, predecessor, cost,
      files, digest, content, collected_at, event_id, link, merged, proof)";
const MESSAGE_COLUMNS: usize = 19;
const UPDATE_MESSAGE: &str = "\
    UPDATE messages SET key = ?2, conversation = ?3, revision = ?4, kind = ?5, state = ?6, sent_at = ?7,
      sequenced = ?8, position = ?9, predecessor = ?10, cost = ?11, files = ?12, digest = ?13, content = ?14,
      collected_at = ?15, event_id = ?16, link = ?17, merged = ?18, proof = ?19
    WHERE message = ?1";

/// A message to be written: its conversation, what orders it there, and its place in the slice.
type Order<'m> = (i64, i64, &'m str, usize);

/// Writes messages and their lines, new ones in that order; the row of each by its place in the slice.
fn write_messages(transaction: &Transaction<'_>, slice: &[Touched], order: &[Order<'_>]) -> Result<Vec<i64>> {
    let message = |at: usize| &slice[at].message;
    let (new, known): (Vec<Order<'_>>, Vec<Order<'_>>) =
        order.iter().partition(|(.., at)| message(*at).number.is_none());
    rows::insert(transaction, MESSAGE, MESSAGE_COLUMNS, &new, |(conversation, .., at), values| {
        give_message(values, message(*at), *conversation)
    })?;
    // New rows are numbered one after the other.
    let last = transaction.last_insert_rowid();
    let mut numbers: Vec<i64> = slice.iter().map(|touched| touched.message.number.unwrap_or(last)).collect();
    for ((.., at), number) in new.iter().rev().zip((0..=last).rev()) {
        numbers[*at] = number;
    }
    rows::insert(transaction, "lines", 2, &new, |(.., at), values| {
        values.give(numbers[*at])?;
        values.give(&message(*at).raw[..])
    })?;
    let mut update = transaction.prepare_cached(UPDATE_MESSAGE)?;
    let mut update_line = transaction.prepare_cached("UPDATE lines SET raw = ?2 WHERE message = ?1")?;
    for (conversation, .., at) in known {
        let mut values = Values::of(&mut update);
        give_message(&mut values, message(at), conversation)?;
        values.run()?;
        update_line.execute(params![numbers[at], &message(at).raw[..]])?;
    }
    Ok(numbers)
}

fn give_message(values: &mut Values<'_, '_>, message: &Message, conversation: i64) -> Result<()> {
    let merged = if message.plain {
        None
    } else {
        let files = message.facts.iter().map(Facts::from).collect();
        Some(serde_json::to_string(&Merged { rules: message.rules.clone(), files })?)
    };
    let link = message.link.as_ref();
    let origin = match link {
        Some(link) if (link.revision, &link.told) != (message.revision, &message.told) => {
            Some(serde_json::to_string(&(link.revision, link.told.collected_at, &*link.told.event_id))?)
        }
        _ => None,
    };
    let (position, predecessor) = link.map_or((None, None), |link| (link.index, link.predecessor.as_deref()));
    let proof = proof::message(&message.key, position, predecessor, origin.as_deref(), merged.as_deref());
    values.give(message.number)?;
    values.give(&*message.key)?;
    values.give(conversation)?;
    values.give(revision_number(message.revision))?;
    values.give(kind_number(message.kind))?;
    values.give(state_number(message.state))?;
    values.give(message.sent_at)?;
    values.give(link.is_some())?;
    values.give(position)?;
    values.give(predecessor)?;
    values.give(message.cost)?;
    values.give(i64::try_from(message.files()).unwrap_or(i64::MAX))?;
    values.give(message.digest)?;
    values.give(message.content)?;
    values.give(message.told.collected_at)?;
    values.give(&*message.told.event_id)?;
    values.give(origin)?;
    values.give(merged)?;
    values.give(proof)
}

fn write_lower(transaction: &Transaction<'_>, message: i64, revision: u64, lower: &Remembered) -> Result<()> {
    let files: Vec<Facts> = lower.facts.iter().map(Facts::from).collect();
    let files = if files.is_empty() { None } else { Some(serde_json::to_string(&files)?) };
    let revision = revision_number(revision);
    let proof = proof::revision(message, revision, &lower.content, files.as_deref());
    let sql = "INSERT OR REPLACE INTO revisions(message, revision, content, merged, proof)
               VALUES(?1, ?2, ?3, ?4, ?5)";
    transaction.prepare_cached(sql)?.execute(params![message, revision, lower.content, files, proof])?;
    Ok(())
}

/// A stored message as a document needs it.
pub struct StoredLine {
    /// The newest delivery's line.
    pub raw: Vec<u8>,
    /// United rules and attachments' facts, where they differ from the line's.
    pub merged: Option<String>,
}

/// The line of a stored message by its row.
pub fn line(conn: &Connection, message: i64) -> Result<StoredLine> {
    let sql = "SELECT raw, merged FROM messages JOIN lines USING (message) WHERE message = ?1";
    let mut query = conn.prepare_cached(sql)?;
    Ok(query.query_row([message], |row| Ok(StoredLine { raw: row.get(0)?, merged: row.get(1)? }))?)
}

/// What of a message decides whether it is still the one that was planned.
pub struct Present {
    /// Its key.
    pub key: String,
    /// Its conversation.
    pub conversation: i64,
    /// Message or system notice.
    pub kind: Kind,
    /// Milliseconds since 1970.
    pub sent_at: i64,
    /// Its part of a fingerprint.
    pub digest: [u8; 32],
}

/// A stored message as it is now, by its row.
pub fn present(conn: &Connection, message: i64) -> Result<Present> {
    let sql = "SELECT key, conversation, kind, sent_at, digest FROM messages WHERE message = ?1";
    let present = conn.prepare_cached(sql)?.query_row([message], |row| {
        Ok(Present {
            key: row.get(0)?,
            conversation: row.get(1)?,
            kind: kind_of(row.get(2)?),
            sent_at: row.get(3)?,
            digest: row.get(4)?,
        })
    });
    Ok(present?)
}

/// Key and kind of a stored message by its row.
pub fn slim(conn: &Connection, message: i64) -> Result<(String, Kind)> {
    let mut query = conn.prepare_cached("SELECT key, kind FROM messages WHERE message = ?1")?;
    Ok(query.query_row([message], |row| Ok((row.get(0)?, kind_of(row.get(1)?))))?)
}
