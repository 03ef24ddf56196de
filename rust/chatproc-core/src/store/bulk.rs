//! What a store in the making holds so far, in memory: deliveries on their way into it, the row of each message,
//! and its conversations. What is known of none is not looked for in the store, and its indexes wait for their end.
//!
//! It grows with the input. Where it would take more memory than it may, it ends, and the store is asked.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::mem::size_of;
use std::sync::Arc;

use rusqlite::{Connection, params};

use super::messages::revision_number;
use super::rows::insert;
use crate::error::Result;
use crate::revision::{EventKey, Naming, Place};

/// Deliveries that are held before they are written: sorted, they enter their table much faster.
const MOST_WAITING: usize = 1 << 18;
/// Bytes that reading takes beside: two slices, what they become, and pages.
const BESIDE: u64 = 32 << 20;
/// Bytes of a conversation, as an estimate.
const CONVERSATION: usize = 512;
/// Entries that may come before it is asked again whether all is too much.
const MORE: usize = 50_000;

/// An accepted delivery on its way into the store.
pub(super) struct Delivery {
    /// Its identity.
    pub(super) key: EventKey,
    /// Its event hash.
    pub(super) hash: [u8; 32],
    /// The row of its message.
    pub(super) message: i64,
    /// Its revision.
    pub(super) revision: u64,
    /// The row of its file.
    pub(super) file: Option<i64>,
    /// Its line, from 1.
    pub(super) line: u64,
}

/// A conversation that has a row.
struct Conversation {
    number: i64,
    naming: Naming,
}

/// What was taken into a store that nobody else can see.
#[derive(Default)]
pub struct Bulk {
    hasher: RandomState,
    waiting: Vec<Delivery>,
    /// The place of each among those that wait.
    places: HashMap<EventKey, u32>,
    /// Hashes of the identities of those that were written.
    written: HashSet<u64, Hashed>,
    /// Rows of messages by hashes of their keys. Of two that share one the first.
    messages: HashMap<u64, i64, Hashed>,
    conversations: HashMap<Arc<Place>, Conversation>,
    /// Rows of those that have to be segmented.
    dirty: HashSet<i64>,
    /// What makes the indexes that wait for the end.
    indexes: Vec<String>,
}

impl std::fmt::Debug for Bulk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Bulk({} waiting)", self.waiting.len())
    }
}

impl Bulk {
    /// That of a store whose indexes were taken off.
    pub(super) fn new(indexes: Vec<String>) -> Self {
        Self { indexes, ..Self::default() }
    }

    /// The event hash of a delivery that waits.
    pub(super) fn waiting(&self, key: &EventKey) -> Option<[u8; 32]> {
        self.places.get(key).and_then(|&place| self.waiting.get(place as usize)).map(|waiting| waiting.hash)
    }

    /// Whether a delivery may have been written.
    pub(super) fn may_hold(&self, key: &EventKey) -> bool {
        !self.written.is_empty() && self.written.contains(&self.hasher.hash_one(key))
    }

    /// The row of the message with that key, or of another one with its hash.
    pub(super) fn row(&self, key: &str) -> Option<i64> {
        self.messages.get(&self.hasher.hash_one(key)).copied()
    }

    /// Notes the row of a message that was written.
    pub(super) fn note(&mut self, key: &str, row: i64) {
        if let Entry::Vacant(new) = self.messages.entry(self.hasher.hash_one(key)) {
            new.insert(row);
        }
    }

    /// The row of a conversation.
    pub(super) fn conversation(&self, place: &Place) -> Option<i64> {
        self.conversations.get(place).map(|conversation| conversation.number)
    }

    /// Notes how a conversation calls itself; false for one that needs a row first.
    pub(super) fn name(&mut self, place: &Place, naming: &Naming) -> bool {
        let Some(conversation) = self.conversations.get_mut(place) else { return false };
        if conversation.naming.told < naming.told {
            conversation.naming.clone_from(naming);
        }
        true
    }

    /// Notes the row of a conversation.
    pub(super) fn add(&mut self, place: &Arc<Place>, number: i64, naming: &Naming) {
        self.conversations.insert(place.clone(), Conversation { number, naming: naming.clone() });
    }

    /// Notes conversations that have to be segmented.
    pub(super) fn soil(&mut self, numbers: HashSet<i64>) {
        self.dirty.extend(numbers);
    }

    /// Takes deliveries in; they are written once they are many, or when the store is done.
    pub(super) fn take(
        &mut self,
        conn: &Connection,
        deliveries: impl Iterator<Item = Delivery>,
    ) -> Result<()> {
        for delivery in deliveries {
            let place = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
            self.places.insert(delivery.key, place);
            self.waiting.push(delivery);
        }
        if self.waiting.len() < MOST_WAITING { Ok(()) } else { self.write(conn) }
    }

    /// Writes the deliveries that wait.
    fn write(&mut self, conn: &Connection) -> Result<()> {
        self.written.extend(self.waiting.iter().map(|delivery| self.hasher.hash_one(delivery.key)));
        self.places.clear();
        write(conn, &mut self.waiting)
    }

    /// Whether it might soon take more than so many bytes, with all that reading takes beside.
    pub(super) fn exceeds(&self, most: u64) -> bool {
        let tables = table::<(u64, i64)>(self.messages.len(), self.messages.capacity())
            + table::<u64>(self.written.len(), self.written.capacity())
            + table::<(EventKey, u32)>(self.places.len(), self.places.capacity());
        let rest = self.waiting.capacity() * size_of::<Delivery>() + self.conversations.len() * CONVERSATION;
        (tables + rest) as u64 > most.saturating_sub(BESIDE)
    }

    /// Writes all that waits, so that the store can be asked from now on.
    pub(super) fn end(mut self, conn: &Connection) -> Result<()> {
        self.write(conn)?;
        let sql = "UPDATE conversations SET name = ?2, type = ?3, named_at = ?4, named_by = ?5, dirty = ?6
                   WHERE conversation = ?1";
        let mut update = conn.prepare_cached(sql)?;
        for Conversation { number, naming: Naming { name, kind, told } } in self.conversations.values() {
            let dirty = self.dirty.contains(number);
            update.execute(params![number, name, kind, told.collected_at, told.event_id, dirty])?;
        }
        let indexes = std::mem::take(&mut self.indexes);
        drop(self);
        for index in &indexes {
            conn.execute_batch(index)?;
        }
        Ok(())
    }
}

/// Bytes of a hash table that soon has more entries; while it grows the old one is still there.
fn table<T>(entries: usize, capacity: usize) -> usize {
    let now = capacity / 7 * 8 * (size_of::<T>() + 1);
    if entries + MORE > capacity { 3 * now } else { now }
}

/// Writes deliveries in the order of their identities, and leaves none.
pub(super) fn write(conn: &Connection, deliveries: &mut Vec<Delivery>) -> Result<()> {
    deliveries.sort_unstable_by_key(|delivery| delivery.key);
    insert(conn, "events", 6, deliveries, |delivery, values| {
        let Delivery { key, hash, message, revision, file, line } = delivery;
        values.give(key)?;
        values.give(hash)?;
        values.give(message)?;
        values.give(revision_number(*revision))?;
        values.give(file)?;
        values.give(i64::try_from(*line).unwrap_or(i64::MAX))
    })?;
    deliveries.clear();
    Ok(())
}

type Hashed = BuildHasherDefault<Hash>;

/// Takes what is a hash already as it is.
#[derive(Default)]
struct Hash(u64);

impl Hasher for Hash {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
