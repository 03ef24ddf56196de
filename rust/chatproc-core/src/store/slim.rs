//! Messages as segmenting needs them, from the store or from memory: no text.

use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::ToSql;

use super::ledger::Member;
use super::messages::{kind_of, state_of};
use crate::error::Result;
use crate::event::{Kind, State};
use crate::revision::Message;
use crate::segment::Row;

/// A message's row for segmenting, owned.
pub(super) struct Slim {
    pub(super) member: Member,
    pub(super) segment: Option<i64>,
    pub(super) key: Arc<str>,
    pub(super) sent_at: i64,
    sequenced: bool,
    pub(super) index: Option<i64>,
    pub(super) predecessor: Option<String>,
    kind: Kind,
    state: State,
    cost: u32,
    files: u32,
    digest: [u8; 32],
    /// Whether it is known to follow none of the messages beside it, whatever it claims.
    pub(super) apart: bool,
}

impl Slim {
    pub(super) fn row(&self) -> Row<'_> {
        Row {
            key: &self.key,
            sent_at: self.sent_at,
            sequenced: self.sequenced,
            index: self.index,
            predecessor: self.predecessor.as_deref().filter(|_| !self.apart),
            kind: self.kind,
            state: self.state,
            cost: self.cost,
            files: self.files,
            digest: self.digest,
        }
    }

    pub(super) fn fresh(message: &Message) -> Self {
        let link = message.link.as_ref();
        Self {
            member: Member::Fresh(message.key.clone()),
            segment: None,
            key: message.key.clone(),
            sent_at: message.sent_at,
            sequenced: link.is_some(),
            index: link.and_then(|link| link.index),
            predecessor: link.and_then(|link| link.predecessor.clone()),
            kind: message.kind,
            state: message.state,
            cost: message.cost,
            files: u32::try_from(message.files()).unwrap_or(u32::MAX),
            digest: message.digest,
            apart: false,
        }
    }

    fn stored(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            member: Member::Stored(row.get(0)?),
            segment: row.get(1)?,
            key: row.get(2)?,
            sent_at: row.get(3)?,
            sequenced: row.get(4)?,
            index: row.get(5)?,
            predecessor: row.get(6)?,
            kind: kind_of(row.get(7)?),
            state: state_of(row.get(8)?),
            cost: row.get(9)?,
            files: row.get(10)?,
            digest: row.get(11)?,
            apart: false,
        })
    }
}

/// All messages of a conversation.
pub(super) fn slim_rows(conn: &Connection, conversation: i64) -> Result<Vec<Slim>> {
    read(conn, "conversation = ?1", &[&conversation])
}

/// The same of a conversation of which nothing stands in a segment yet.
pub(super) fn unplanned_rows(conn: &Connection, conversation: i64) -> Result<Vec<Slim>> {
    select(conn, "NULL", "messages m WHERE conversation = ?1", &[&conversation])
}

/// Adds those in the rows of a list.
pub(super) fn add_rows(conn: &Connection, messages: &[i64], rows: &mut Vec<Slim>) -> Result<()> {
    for message in messages {
        rows.append(&mut read(conn, "m.message = ?1", &[message])?);
    }
    Ok(())
}

fn read(conn: &Connection, which: &str, values: &[&dyn ToSql]) -> Result<Vec<Slim>> {
    let from = format!("messages m LEFT JOIN members s USING (message) WHERE {which}");
    select(conn, "s.segment", &from, values)
}

fn select(conn: &Connection, segment: &str, from: &str, values: &[&dyn ToSql]) -> Result<Vec<Slim>> {
    let sql = format!(
        "SELECT m.message, {segment}, key, sent_at, sequenced, position, predecessor, kind, state, cost, files,
           digest FROM {from}"
    );
    let mut query = conn.prepare_cached(&sql)?;
    Ok(query.query_map(values, Slim::stored)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn stored_number(member: &Member) -> Option<i64> {
    match member {
        Member::Stored(number) => Some(*number),
        Member::Fresh(_) => None,
    }
}
