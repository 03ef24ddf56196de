//! Coverage: what became of each message of a conversation, page by page, and the conversations there are.
//!
//! Reads only. Each message is judged by [`OUTCOME`] alone, wherever its outcome is asked for, so that the counts
//! of a conversation add up to its messages at any moment. Those of a conversation that has not changed since
//! the last plan stand in its segments already, and are the same.

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::explain::{Asked, TaskOf};
use super::messages::{find_conversation, stored_event};
use super::status::{no_outcomes, outcomes_of};
use crate::error::{Error, Result};
use crate::revision::Place;
use crate::task::Sender;
use crate::zone::Zone;

/// The words for what became of a message.
pub(super) const OUTCOMES: [&str; 8] =
    ["cited", "read-no-task", "history", "pending", "failed", "oversized", "recalled", "system"];

/// SQL of a message's outcome, over its row `m` and the row `g` of its segment, where it stands in one.
pub(super) const OUTCOME: &str = "CASE
    WHEN g.segment IS NULL THEN 'pending'
    WHEN m.kind = 1 THEN 'system'
    WHEN m.state = 2 THEN 'recalled'
    WHEN m.sent_at < (SELECT coalesce(max(value), 0) FROM meta WHERE key = 'start_at') OR g.status = 'idle'
      THEN 'history'
    WHEN g.status <> 'done' THEN g.status
    WHEN EXISTS(SELECT 1 FROM task_sources u JOIN tasks t USING (task)
                WHERE u.message = m.message AND t.status <> 'superseded') THEN 'cited'
    ELSE 'read-no-task' END";

/// The messages of a conversation with their segments, the system notices and recalled ones among them.
const MESSAGES: &str = "messages m LEFT JOIN members s USING (message) LEFT JOIN segments g USING (segment)
    WHERE m.conversation = :conversation";

/// A page holds so many at most.
const LARGEST_PAGE: usize = 1_000;
/// Characters that are shown of a text.
const SHOWN: usize = 200;

/// Which messages of which conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Query {
    pub platform: String,
    pub account_id: String,
    pub conversation_id: String,
    /// Those with this outcome alone.
    pub outcome: Option<String>,
    pub limit: usize,
    /// Key of the message that the page follows.
    pub after: Option<String>,
}

/// What became of the messages of a conversation.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Coverage {
    pub conversation: Listed,
    /// Messages by outcome; they add up to those of the conversation.
    pub outcomes: Map<String, Value>,
    /// The page, in the order of time.
    pub messages: Vec<Covered>,
    /// The last of them, where more follow.
    pub next_after: Option<String>,
}

/// A conversation that the store holds messages of.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Listed {
    pub platform: String,
    pub account_id: String,
    pub id: String,
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    pub messages: i64,
    /// Places where two messages claim the same predecessor.
    pub forks: i64,
}

/// A message and what became of it.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Covered {
    pub message_key: String,
    /// `message` or `system`.
    pub kind: &'static str,
    /// `normal`, `edited` or `recalled`.
    pub state: &'static str,
    /// RFC 3339.
    pub sent_at: String,
    pub sender: Sender,
    /// Its first characters.
    pub text: String,
    /// Of the whole text.
    pub chars: usize,
    /// Why its segment's messages belong together; none before the first plan that knows it.
    pub continuity: Option<String>,
    /// The word that `status` counts it under.
    pub outcome: &'static str,
    /// Why, in words.
    pub why: String,
    /// Every task that rests on it.
    pub tasks: Vec<TaskOf>,
}

/// The contract's word for an outcome that was computed.
pub(super) fn word(outcome: &str) -> &'static str {
    OUTCOMES.into_iter().find(|word| *word == outcome).unwrap_or("pending")
}

/// A page of a conversation's messages with the counts of all; none where the store has no such conversation.
pub fn coverage(conn: &Connection, query: &Query, zone: &Zone) -> Result<Option<Coverage>> {
    let place = Place {
        platform: query.platform.as_str().into(),
        account_id: query.account_id.as_str().into(),
        conversation_id: query.conversation_id.as_str().into(),
    };
    if let Some(outcome) = query.outcome.as_ref().filter(|outcome| !OUTCOMES.contains(&outcome.as_str())) {
        return Err(Error::Invalid(format!("{outcome:?} is no outcome; there are {}", OUTCOMES.join(", "))));
    }
    let Some(conversation) = find_conversation(conn, &place)? else { return Ok(None) };
    let limit = page_length(query.limit)?;
    let mut messages = page(conn, conversation, query, limit + 1, zone)?;
    let more = messages.len() > limit;
    messages.truncate(limit);
    let listed = listed(conn, conversation)?;
    Ok(Some(Coverage {
        outcomes: outcomes(conn, conversation, listed.messages)?,
        conversation: listed,
        next_after: messages.last().filter(|_| more).map(|last| last.message_key.clone()),
        messages,
    }))
}

fn page_length(limit: usize) -> Result<usize> {
    if (1..=LARGEST_PAGE).contains(&limit) {
        Ok(limit)
    } else {
        Err(Error::Invalid(format!("limit must be 1 to {LARGEST_PAGE}, it is {limit}")))
    }
}

fn listed(conn: &Connection, conversation: i64) -> Result<Listed> {
    let sql = format!("{LISTED} WHERE c.conversation = ?1");
    Ok(conn.prepare_cached(&sql)?.query_row([conversation], listed_row)?)
}

const LISTED: &str =
    "SELECT c.*, (SELECT count(*) FROM messages m WHERE m.conversation = c.conversation) messages
    FROM conversations c";

fn listed_row(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        platform: row.get("platform")?,
        account_id: row.get("account_id")?,
        id: row.get("id")?,
        name: row.get("name")?,
        kind: row.get("type")?,
        messages: row.get("messages")?,
        forks: row.get("forks")?,
    })
}

fn outcomes(conn: &Connection, conversation: i64, messages: i64) -> Result<Map<String, Value>> {
    let mut query = conn.prepare_cached("SELECT dirty FROM conversations WHERE conversation = ?1")?;
    if !query.query_row([conversation], |row| row.get::<_, bool>(0))? {
        return outcomes_of(conn, conversation, messages);
    }
    let mut counts = no_outcomes();
    let sql = format!("SELECT {OUTCOME} outcome, count(*) FROM {MESSAGES} GROUP BY outcome");
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(named_params! {":conversation": conversation})?;
    while let Some(row) = rows.next()? {
        counts.insert(word(&row.get::<_, String>(0)?).to_owned(), json!(row.get::<_, i64>(1)?));
    }
    Ok(counts)
}

/// Messages in the order of time, place in the conversation and key, which is the same whatever came first.
fn page(
    conn: &Connection,
    conversation: i64,
    query: &Query,
    limit: usize,
    zone: &Zone,
) -> Result<Vec<Covered>> {
    // Outcomes are looked up for all messages only where the page is chosen by them.
    let (from, wanted) = match query.outcome {
        Some(_) => (MESSAGES, format!("{OUTCOME} = :outcome")),
        None => ("messages m WHERE m.conversation = :conversation", ":outcome IS NULL".to_owned()),
    };
    let sql = format!(
        "WITH page AS MATERIALIZED (
           SELECT m.message FROM {from} AND {wanted}
             AND (m.sent_at, coalesce(m.position, -1), m.key) > (:sent_at, :position, :key)
           ORDER BY m.sent_at, coalesce(m.position, -1), m.key LIMIT :limit)
         SELECT m.message, m.key, m.sent_at, segment, g.continuity, c.dirty, l.raw, {OUTCOME} outcome
         FROM page CROSS JOIN messages m USING (message) JOIN lines l USING (message)
           JOIN conversations c USING (conversation) LEFT JOIN members s USING (message)
           LEFT JOIN segments g USING (segment)
         ORDER BY m.sent_at, coalesce(m.position, -1), m.key"
    );
    let (sent_at, position, key) = match &query.after {
        Some(key) => place_of(conn, conversation, key)?,
        None => (i64::MIN, i64::MIN, ""),
    };
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(named_params! {
        ":conversation": conversation, ":sent_at": sent_at, ":position": position, ":key": key,
        ":outcome": query.outcome, ":limit": i64::try_from(limit).unwrap_or(i64::MAX),
    })?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(covered(conn, row, zone)?);
    }
    Ok(messages)
}

fn place_of<'k>(conn: &Connection, conversation: i64, key: &'k str) -> Result<(i64, i64, &'k str)> {
    let sql = "SELECT sent_at, coalesce(position, -1) FROM messages WHERE key = ?1 AND conversation = ?2";
    let mut query = conn.prepare_cached(sql)?;
    let place = query.query_row((key, conversation), |row| Ok((row.get(0)?, row.get(1)?, key))).optional()?;
    place.ok_or_else(|| Error::Invalid(format!("the conversation has no message {key:?} to go on after")))
}

fn covered(conn: &Connection, row: &Row<'_>, zone: &Zone) -> Result<Covered> {
    let raw: Vec<u8> = row.get("raw")?;
    let event = stored_event(&raw)?;
    let asked = Asked::of(conn, row, zone)?;
    let grounds = asked.grounds(word(&row.get::<_, String>("outcome")?))?;
    Ok(Covered {
        message_key: row.get("key")?,
        kind: event.kind.as_str(),
        state: event.state.as_str(),
        sent_at: zone.rfc3339(row.get("sent_at")?)?,
        sender: Sender::of(&event),
        text: event.text.chars().take(SHOWN).collect(),
        chars: event.text.chars().count(),
        continuity: row.get("continuity")?,
        outcome: grounds.outcome,
        why: asked.why(&grounds)?,
        tasks: grounds.tasks,
    })
}

/// Which conversations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ConversationsQuery {
    /// Part of a name or id; case of ASCII letters does not matter.
    pub query: Option<String>,
    pub limit: usize,
    /// [`Conversations::next_after`] of the page before.
    pub after: Option<i64>,
}

/// A page of conversations.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Conversations {
    pub total: i64,
    pub conversations: Vec<Listed>,
    pub next_after: Option<i64>,
}

/// The conversations of the store by name, those without one by their id.
pub fn conversations(conn: &Connection, query: &ConversationsQuery) -> Result<Conversations> {
    let wanted = "(:query IS NULL OR instr(lower(c.id), lower(:query)) OR instr(lower(coalesce(c.name, '')), lower(:query)))";
    let total = conn
        .prepare_cached(&format!("SELECT count(*) FROM conversations c WHERE {wanted}"))?
        .query_row(named_params! {":query": query.query}, |row| row.get(0))?;
    let sql = format!(
        "{LISTED} WHERE {wanted} AND (:after IS NULL OR (coalesce(c.name, c.id), c.conversation) >
           (SELECT coalesce(a.name, a.id), a.conversation FROM conversations a WHERE a.conversation = :after))
         ORDER BY coalesce(c.name, c.id), c.conversation LIMIT :limit"
    );
    let limit = page_length(query.limit)?;
    let mut select = conn.prepare_cached(&sql)?;
    let parameters = named_params! {
        ":query": query.query, ":after": query.after, ":limit": i64::try_from(limit + 1).unwrap_or(i64::MAX),
    };
    let rows = select.query_map(parameters, |row| Ok((row.get("conversation")?, listed_row(row)?)))?;
    let mut rows: Vec<(i64, Listed)> = rows.collect::<rusqlite::Result<_>>()?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    Ok(Conversations {
        total,
        next_after: rows.last().filter(|_| more).map(|(number, _)| *number),
        conversations: rows.into_iter().map(|(_, listed)| listed).collect(),
    })
}
