//! What a store in the making holds so far, in memory: deliveries on their way into it, and the row of each
//! message. What is known of neither is not looked for in the store, and its indexes wait for their end.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use rusqlite::{Connection, params};

use super::messages::revision_number;
use crate::error::Result;
use crate::revision::EventKey;

/// Deliveries that are held before they are written: sorted, they enter their table much faster.
const MOST_WAITING: usize = 1 << 18;

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

/// What was taken into a store that nobody else can see.
#[derive(Default)]
pub struct Bulk {
    hasher: RandomState,
    waiting: Vec<Delivery>,
    /// The place of each among those that wait.
    places: HashMap<EventKey, u32>,
    /// Hashes of the identities of those that were written.
    written: HashSet<u64>,
    /// Rows of messages by hashes of their keys. Of two that share one the first.
    messages: HashMap<u64, i64>,
}

impl std::fmt::Debug for Bulk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Bulk({} waiting)", self.waiting.len())
    }
}

impl Bulk {
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
    pub(super) fn write(&mut self, conn: &Connection) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.written.extend(waiting.iter().map(|delivery| self.hasher.hash_one(delivery.key)));
        self.places = HashMap::new();
        write(conn, waiting)
    }
}

/// Writes deliveries in the order of their identities.
pub(super) fn write(conn: &Connection, mut deliveries: Vec<Delivery>) -> Result<()> {
    deliveries.sort_unstable_by_key(|delivery| delivery.key);
    let mut insert = conn.prepare_cached("INSERT INTO events VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
    for Delivery { key, hash, message, revision, file, line } in &deliveries {
        let line = i64::try_from(*line).unwrap_or(i64::MAX);
        insert.execute(params![key, hash, message, revision_number(*revision), file, line])?;
    }
    Ok(())
}
