//! A line, read and hashed: what it tells of its message, whatever is known of that.
//!
//! Pure, and apart from what lines are taken in over, so that they can be read ahead of it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::budget;
use crate::event::{Event, FileFacts, Reason, Refusal, read_event};
use crate::fingerprint;
use crate::revision::{EventKey, Link, Message, Place, Told};

/// A line as it came. Lines that came together share their bytes.
#[derive(Clone)]
pub struct Raw {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Raw {
    /// A part of bytes that several lines share; nothing of them when it is none.
    #[must_use]
    pub fn of(bytes: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        Self { bytes: bytes.clone(), range }
    }
}

impl From<Vec<u8>> for Raw {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { bytes: Arc::new(bytes), range }
    }
}

impl Deref for Raw {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}

/// A line that was read and hashed. It holds all that is taken in of it, and nothing known decided it yet: it
/// may be read before, or beside, what it is then taken in over.
pub struct Reading(pub(crate) Result<Delivery, Unread>);

/// A delivery, as its line alone tells it.
pub(crate) struct Delivery {
    pub(crate) key: EventKey,
    pub(crate) hash: [u8; 32],
    pub(crate) message: Message,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) kind: &'static str,
}

/// A line in which there is no event to accept.
pub(crate) struct Unread {
    pub(crate) refusal: Refusal,
    pub(crate) length: u64,
    /// The line itself; none of one that was too long to hold.
    pub(crate) raw: Option<Raw>,
}

/// Reads lines one after the other. What they share of conversations is held once.
#[derive(Default)]
pub struct Reader {
    places: HashMap<Arc<Place>, Option<Arc<str>>>,
    /// Room for the place that is looked up.
    place: Place,
}

/// Conversations that are held while lines are read.
const MOST_PLACES: usize = 1 << 16;

impl Reader {
    /// Reads one line, without its newline. The line is not blank.
    pub fn read(&mut self, raw: Raw) -> Reading {
        match read_event(&raw) {
            Ok(event) => Reading(Ok(self.delivery(&event, raw.clone()))),
            Err(refusal) => Reading(Err(Unread { refusal, length: raw.len() as u64, raw: Some(raw) })),
        }
    }

    /// Reads one line as [`Self::read`] does, if it has no more than `limit` bytes.
    pub(crate) fn read_within(&mut self, raw: Raw, limit: u64) -> Reading {
        let length = raw.len() as u64;
        if length <= limit {
            return self.read(raw);
        }
        let refusal = Refusal::of_bytes(Reason::TooLong, beyond(length, limit), &raw);
        Reading(Err(Unread { refusal, length, raw: Some(raw) }))
    }

    /// A line that was longer than `limit` bytes and was skipped unread.
    #[must_use]
    pub fn too_long(length: u64, limit: u64) -> Reading {
        let refusal = Refusal::of_bytes(Reason::TooLong, beyond(length, limit), &length.to_le_bytes());
        Reading(Err(Unread { refusal, length, raw: None }))
    }

    fn delivery(&mut self, event: &Event<'_>, raw: Raw) -> Delivery {
        let (place, name) = self.conversation(event);
        Delivery {
            key: event_key(&event.event_id),
            hash: event.event_hash,
            message: Message::told_by(event, raw, place),
            name,
            kind: event.conversation_type.as_str(),
        }
    }

    /// The event's conversation and what it calls it, one allocation for all its events.
    fn conversation(&mut self, event: &Event<'_>) -> (Arc<Place>, Option<Arc<str>>) {
        self.place.set(event);
        let told = event.conversation_name.as_deref();
        if let Some((place, name)) = self.places.get_key_value(&self.place)
            && name.as_deref() == told
        {
            return (place.clone(), name.clone());
        }
        if self.places.len() >= MOST_PLACES {
            self.places.clear();
        }
        let (place, name) = (Arc::new(self.place.clone()), told.map(Arc::from));
        self.places.insert(place.clone(), name.clone());
        (place, name)
    }
}

fn beyond(length: u64, limit: u64) -> String {
    format!("the line has {length} bytes, input.max_line_bytes allows {limit}")
}

impl Delivery {
    /// Its line, on its way to the quarantine.
    pub(crate) fn unread(self, reason: Reason, explanation: String) -> Unread {
        let raw = self.message.raw;
        let refusal = Refusal::of_event(reason, explanation, &self.hash);
        Unread { refusal, length: raw.len() as u64, raw: Some(raw) }
    }
}

impl Place {
    fn set(&mut self, event: &Event<'_>) {
        event.platform.as_ref().clone_into(&mut self.platform);
        event.account_id.as_ref().clone_into(&mut self.account_id);
        event.conversation_id.as_ref().clone_into(&mut self.conversation_id);
    }
}

impl Told {
    fn by(event: &Event<'_>) -> Self {
        Self { collected_at: event.collected_at, event_id: event.event_id.as_ref().into() }
    }
}

impl Message {
    fn told_by(event: &Event<'_>, raw: Raw, place: Arc<Place>) -> Self {
        let facts = facts_of(event);
        let told = Told::by(event);
        Self {
            number: None,
            key: event.message_key.as_ref().into(),
            place,
            revision: event.revision,
            kind: event.kind,
            state: event.state,
            sent_at: event.sent_at,
            content: event.content_hash,
            link: link_of(event, &told),
            told,
            rules: BTreeSet::new(),
            cost: budget::message_cost(event, &facts),
            digest: digest_of(event),
            plain: true,
            facts,
            raw,
        }
    }
}

/// The identity under which a delivery is remembered for ever.
#[must_use]
pub(crate) fn event_key(event_id: &str) -> EventKey {
    let digest = Sha256::digest(event_id.as_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    key
}

fn link_of(event: &Event<'_>, told: &Told) -> Option<Link> {
    event.sequence.as_ref().map(|sequence| Link {
        index: sequence.index,
        predecessor: sequence.predecessor.as_ref().map(|key| key.as_ref().to_owned()),
        revision: event.revision,
        told: told.clone(),
    })
}

fn digest_of(event: &Event<'_>) -> [u8; 32] {
    fingerprint::message_digest(
        &event.message_key,
        event.revision,
        &event.content_hash,
        event.sender_name.as_deref(),
    )
}

fn facts_of(event: &Event<'_>) -> Vec<FileFacts> {
    event
        .attachments
        .iter()
        .map(|file| FileFacts {
            size: file.size,
            sha256: file.sha256.as_ref().map(|digest| digest.as_ref().to_owned()),
        })
        .collect()
}

/// The selection rules that a line tells.
pub(crate) fn rules_of(raw: &[u8]) -> Vec<String> {
    read_event(raw)
        .map_or_else(|_| Vec::new(), |event| event.rules.into_iter().map(Cow::into_owned).collect())
}
