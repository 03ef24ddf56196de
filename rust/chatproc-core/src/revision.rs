//! What one more delivery changes about a message: duplicate, newer, stale or conflict.
//!
//! Pure: the rules of acceptance over what is already known, whoever keeps it. The result is the same
//! for any order of the same deliveries, conflicting ones aside (there the first read stays).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::budget;
use crate::delivery::{Delivery, Raw, Reader, Reading, Unread, rules_of};
use crate::error::Result;
use crate::event::{FileFacts, Kind, Reason, Refusal, State, read_event};
use crate::fingerprint;
use crate::json;
use crate::met::Met;

/// The name of a conversation: platform, account and the platform's own id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The platform, as `qq`.
    pub platform: String,
    /// The collecting account.
    pub account_id: String,
    /// The platform's id of the conversation.
    pub conversation_id: String,
}

/// How a conversation calls itself, and the delivery that said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The display name, if any delivery gave one.
    pub name: Option<String>,
    /// `group`, `private`, `channel`, `thread`, `mailbox` or `unknown`.
    pub kind: &'static str,
    /// The delivery that told it.
    pub told: Told,
}

/// Which of two deliveries is the newer: by collection time, ties by event id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// Milliseconds since 1970.
    pub collected_at: i64,
    /// The delivery's identity.
    pub event_id: Arc<str>,
}

/// A message's proven position, from the newest delivery that carried one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Order within the source's sequence.
    pub index: Option<i64>,
    /// The key of the message just before; none says this is the first.
    pub predecessor: Option<String>,
    /// The revision that carried the link; a higher one's link wins.
    pub revision: u64,
    /// The delivery that carried it.
    pub told: Told,
}

/// A message as its highest revision stands, told by that revision's newest delivery.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its row in the store; none while it is only in memory.
    pub number: Option<i64>,
    /// Its identity through all revisions.
    pub key: Arc<str>,
    /// Its conversation.
    pub place: Arc<Place>,
    /// The highest revision.
    pub revision: u64,
    /// Message or system notice.
    pub kind: Kind,
    /// Normal, edited or recalled.
    pub state: State,
    /// Milliseconds since 1970.
    pub sent_at: i64,
    /// The content hash, without what may become known later.
    pub content: [u8; 32],
    /// The delivery that tells the message.
    pub told: Told,
    /// Its proven position, if any.
    pub link: Option<Link>,
    /// The selection rules of all deliveries of this revision; of a `plain` one only the line need tell them.
    pub rules: BTreeSet<String>,
    /// What is known of its attachments, by their order.
    pub facts: Vec<FileFacts>,
    /// Whether rules and facts are just what the newest delivery's line tells.
    pub plain: bool,
    /// Characters as sent, see [`budget::message_cost`].
    pub cost: u32,
    /// Its part of a fingerprint, see [`fingerprint::message_digest`].
    pub digest: [u8; 32],
    /// The newest delivery's line.
    pub raw: Raw,
}

/// What is kept of a revision below the highest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The content hash.
    pub content: [u8; 32],
    /// What is known of its attachments.
    pub facts: Vec<FileFacts>,
}

/// What a delivery did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted.
    Accepted,
    /// The same delivery, or the same refused line, again.
    Repeat,
    /// Refused; the line belongs in the quarantine.
    Refused,
}

/// The identity of a delivery in the store: the first half of SHA-256 of its event id.
pub type EventKey = [u8; 16];

/// What is known before a slice is read: a store, or nothing.
pub trait Known {
    /// The event hash of an accepted delivery.
    fn event(&self, key: &EventKey) -> Result<Option<[u8; 32]>>;
    /// The identity of a line that owned this event id and was refused for its revision.
    fn refused_event(&self, key: &EventKey) -> Result<Option<[u8; 32]>>;
    /// Whether a refused line with this identity is listed.
    fn refused(&self, identity: &[u8; 32]) -> Result<bool>;
    /// A message by its key.
    fn message(&self, key: &str) -> Result<Option<Message>>;
    /// A revision below a message's highest.
    fn lower(&self, number: i64, revision: u64) -> Result<Option<Remembered>>;
}

/// Nothing is known: planning without a store.
pub struct Nothing;

impl Known for Nothing {
    fn event(&self, _: &EventKey) -> Result<Option<[u8; 32]>> {
        Ok(None)
    }
    fn refused_event(&self, _: &EventKey) -> Result<Option<[u8; 32]>> {
        Ok(None)
    }
    fn refused(&self, _: &[u8; 32]) -> Result<bool> {
        Ok(false)
    }
    fn message(&self, _: &str) -> Result<Option<Message>> {
        Ok(None)
    }
    fn lower(&self, _: i64, _: u64) -> Result<Option<Remembered>> {
        Ok(None)
    }
}

/// Where a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The batch file's path, or the connection's name.
    pub file: Arc<str>,
    /// From 1; in pages, over all those of a run.
    pub line: u64,
    /// Bytes before the line; 0 in pages.
    pub offset: u64,
    /// Whether the line stands there again when its source is read again.
    lasting: bool,
}

impl Spot {
    /// A line of a batch file.
    #[must_use]
    pub fn in_file(file: impl Into<Arc<str>>, line: u64, offset: u64) -> Self {
        Self { file: file.into(), line, offset, lasting: true }
    }

    /// A line of a connection's page: another run may meet it under another number.
    #[must_use]
    pub fn in_page(connection: impl Into<Arc<str>>, line: u64) -> Self {
        Self { file: connection.into(), line, offset: 0, lasting: false }
    }
}

/// A refused line on its way to the quarantine.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Where it stands.
    pub spot: Spot,
    /// Bytes of the line.
    pub length: u64,
    /// Why.
    pub reason: Reason,
    /// Why, in words.
    pub explanation: String,
    /// What tells the line when it comes again.
    pub identity: [u8; 32],
    /// Whether that is its event, wherever it stands.
    pub of_event: bool,
    /// The event id it owns, when only its revision was refused.
    pub event: Option<EventKey>,
    /// The line itself; none of a line that was too long to hold.
    pub raw: Option<Vec<u8>>,
}

/// An accepted delivery on its way to the store.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Its identity.
    pub key: EventKey,
    /// Its event hash.
    pub hash: [u8; 32],
    /// The place of its message among those met.
    pub message: usize,
    /// Its revision.
    pub revision: u64,
    /// Its line, from 1.
    pub line: u64,
}

/// A message that this slice touched.
#[derive(Clone, Debug)]
pub struct Touched {
    /// As it is now.
    pub message: Message,
    /// Where it was before, when planning must look at that conversation too.
    pub left: Option<Arc<Place>>,
    /// Whether anything of the message changed that the store keeps.
    pub changed: bool,
    /// Whether its conversation has to be segmented again.
    pub resegment: bool,
    /// Lower revisions met or made in this slice.
    pub lower: BTreeMap<u64, Remembered>,
}

/// Counts of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Lines that are not blank.
    pub lines: u64,
    /// Deliveries accepted.
    pub accepted: u64,
    /// Deliveries, or refused lines, that came again.
    pub repeats: u64,
    /// Lines refused for the first time.
    pub quarantined: u64,
}

impl Counts {
    /// What came since the counts were `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            lines: self.lines - before.lines,
            accepted: self.accepted - before.accepted,
            repeats: self.repeats - before.repeats,
            quarantined: self.quarantined - before.quarantined,
        }
    }
}

/// A slice of lines taken in over what is known. Nothing is written until its owner does so.
#[derive(Default)]
pub struct Intake {
    /// What was counted since the intake was made.
    pub counts: Counts,
    /// Messages met.
    pub messages: Met,
    /// Deliveries accepted, in order.
    pub accepted: Vec<Accepted>,
    /// Lines refused, in order.
    pub refused: Vec<Refused>,
    /// How conversations call themselves.
    pub names: HashMap<Arc<Place>, Naming>,
    events: HashMap<EventKey, [u8; 32]>,
    refused_events: HashMap<EventKey, [u8; 32]>,
    identities: HashSet<[u8; 32]>,
    reader: Reader,
}

/// What an intake holds, on its way to the store.
pub struct Slice {
    /// Messages met.
    pub messages: Met,
    /// Deliveries accepted, in order.
    pub accepted: Vec<Accepted>,
    /// Lines refused, in order.
    pub refused: Vec<Refused>,
    /// How conversations call themselves.
    pub names: HashMap<Arc<Place>, Naming>,
}

impl Intake {
    /// Hands over all that was taken in; only the counts stay.
    pub fn take(&mut self) -> Slice {
        let taken = std::mem::replace(self, Self { counts: self.counts, ..Self::default() });
        Slice {
            messages: taken.messages,
            accepted: taken.accepted,
            refused: taken.refused,
            names: taken.names,
        }
    }

    /// Takes in one line, without its newline. The line is not blank.
    pub fn line(&mut self, known: &dyn Known, raw: &[u8], spot: Spot) -> Result<Verdict> {
        let reading = self.reader.read(raw.to_vec().into());
        self.receive(known, reading, spot)
    }

    /// Takes in one line as [`Self::line`] does, if it has no more than `limit` bytes.
    pub fn line_within(&mut self, known: &dyn Known, raw: &[u8], spot: Spot, limit: u64) -> Result<Verdict> {
        let reading = self.reader.read_within(raw.to_vec().into(), limit);
        self.receive(known, reading, spot)
    }

    /// Makes room for so many lines.
    pub fn expect(&mut self, lines: usize) {
        self.messages.expect(lines);
        self.events.reserve(lines);
        self.accepted.reserve(lines);
    }

    /// Takes in a line that was read.
    pub fn receive(&mut self, known: &dyn Known, reading: Reading, spot: Spot) -> Result<Verdict> {
        match reading.0 {
            Ok(delivery) => self.delivery(known, delivery, spot),
            Err(unread) => self.refuse(known, unread, None, spot),
        }
    }

    fn delivery(&mut self, known: &dyn Known, delivery: Delivery, spot: Spot) -> Result<Verdict> {
        let Delivery { key, hash, ref message, .. } = delivery;
        let accepted = match self.events.get(&key) {
            Some(hash) => Some(*hash),
            None => known.event(&key)?,
        };
        if accepted == Some(hash) {
            self.counts.lines += 1;
            self.counts.repeats += 1;
            return Ok(Verdict::Repeat);
        }
        let refused = match self.refused_events.get(&key) {
            Some(owner) => Some(*owner),
            None => known.refused_event(&key)?,
        };
        if accepted.is_some() || refused.is_some_and(|owner| owner != Refusal::identity_of(&hash)) {
            let id = json::quote(&message.told.event_id);
            let explanation = format!("event_id {id} was delivered before with other content");
            return self.refuse(known, delivery.unread(Reason::EventConflict, explanation), None, spot);
        }
        let met = self.meet(known, &message.key)?;
        if let Some(met) = met
            && !admits(&mut self.messages.list[met], known, message)?
        {
            let (revision, id) = (message.revision, json::quote(&message.key));
            let explanation =
                format!("revision {revision} of message {id} was delivered before with other content");
            return self.refuse(
                known,
                delivery.unread(Reason::RevisionConflict, explanation),
                Some(key),
                spot,
            );
        }
        let Delivery { message, name, kind, .. } = delivery;
        self.name(&message, name.as_deref(), kind);
        let revision = message.revision;
        let message = self.accept(message, met);
        self.events.insert(key, hash);
        self.accepted.push(Accepted { key, hash, message, revision, line: spot.line });
        self.counts.lines += 1;
        self.counts.accepted += 1;
        Ok(Verdict::Accepted)
    }

    fn refuse(
        &mut self,
        known: &dyn Known,
        unread: Unread,
        event: Option<EventKey>,
        spot: Spot,
    ) -> Result<Verdict> {
        let Unread { refusal, length, raw } = unread;
        self.counts.lines += 1;
        let identity = identity_of(&refusal, &spot);
        if self.identities.contains(&identity) || known.refused(&identity)? {
            self.counts.repeats += 1;
            return Ok(Verdict::Repeat);
        }
        self.identities.insert(identity);
        if let Some(key) = event {
            self.refused_events.insert(key, identity);
        }
        self.counts.quarantined += 1;
        self.refused.push(Refused {
            spot,
            length,
            reason: refusal.reason,
            explanation: refusal.explanation,
            identity,
            of_event: refusal.of_event,
            event,
            raw: raw.map(|raw| raw.to_vec()),
        });
        Ok(Verdict::Refused)
    }

    /// Brings a message that is known into this slice; its place among those met.
    fn meet(&mut self, known: &dyn Known, key: &str) -> Result<Option<usize>> {
        let met = self.messages.place(key);
        if met.is_some() {
            return Ok(met);
        }
        let message = known.message(key)?;
        Ok(message.map(|message| self.messages.add(Touched::unchanged(message))))
    }

    /// Gives what a delivery tells to its message, and returns the message's place among those met.
    fn accept(&mut self, told: Message, met: Option<usize>) -> usize {
        match met {
            None => self.messages.add(Touched { resegment: true, changed: true, ..Touched::unchanged(told) }),
            Some(met) => {
                self.messages.list[met].receive(told);
                met
            }
        }
    }

    /// Notes what the newest delivery calls a conversation.
    fn name(&mut self, message: &Message, name: Option<&str>, kind: &'static str) {
        match self.names.get_mut(&message.place) {
            None => {
                let naming = Naming { name: name.map(str::to_owned), kind, told: message.told.clone() };
                self.names.insert(message.place.clone(), naming);
            }
            Some(naming) if naming.told < message.told => {
                naming.told.clone_from(&message.told);
                naming.kind = kind;
                if naming.name.as_deref() != name {
                    naming.name = name.map(str::to_owned);
                }
            }
            Some(_) => {}
        }
    }
}

/// Whether what a delivery tells agrees with what is known of its revision.
fn admits(touched: &mut Touched, known: &dyn Known, told: &Message) -> Result<bool> {
    if told.revision > touched.message.revision {
        return Ok(true);
    }
    if told.revision == touched.message.revision {
        return Ok(agree(&touched.message.content, &touched.message.facts, told));
    }
    if !touched.lower.contains_key(&told.revision)
        && let Some(number) = touched.message.number
        && let Some(remembered) = known.lower(number, told.revision)?
    {
        touched.lower.insert(told.revision, remembered);
    }
    Ok(touched.lower.get(&told.revision).is_none_or(|lower| agree(&lower.content, &lower.facts, told)))
}

impl Message {
    /// Attachments that are sent: none of a recalled message.
    #[must_use]
    pub fn files(&self) -> usize {
        if self.state == State::Recalled { 0 } else { self.facts.len() }
    }

    /// The row that segmenting needs, compared to learn whether it changed.
    fn planned(&self) -> impl PartialEq + use<> {
        let position = self.link.as_ref().map(|link| (link.index, link.predecessor.clone()));
        (self.place.clone(), self.sent_at, self.kind, self.state, position, self.cost, self.digest)
    }
}

impl Touched {
    fn unchanged(message: Message) -> Self {
        Self { message, left: None, changed: false, resegment: false, lower: BTreeMap::new() }
    }

    /// Takes in what a delivery tells that agrees with what is known.
    fn receive(&mut self, mut told: Message) {
        let before = self.message.planned();
        let place = self.message.place.clone();
        let highest = self.message.revision;
        let link = told.link.take();
        match told.revision.cmp(&highest) {
            Ordering::Less => {
                let lower = self
                    .lower
                    .entry(told.revision)
                    .or_insert_with(|| Remembered { content: told.content, facts: Vec::new() });
                unite(&mut lower.facts, &told.facts);
            }
            Ordering::Greater => {
                told.number = self.message.number;
                told.link = self.message.link.take();
                let older = std::mem::replace(&mut self.message, told);
                self.lower.insert(highest, Remembered { content: older.content, facts: older.facts });
            }
            Ordering::Equal => self.collected_again(told),
        }
        if let Some(link) = link
            && self
                .message
                .link
                .as_ref()
                .is_none_or(|held| (held.revision, &held.told) < (link.revision, &link.told))
        {
            self.message.link = Some(link);
        }
        self.changed = true;
        self.resegment |= before != self.message.planned();
        if place != self.message.place && self.left.is_none() {
            self.left = Some(place);
        }
    }

    fn collected_again(&mut self, told: Message) {
        let held = &mut self.message;
        if held.plain {
            held.rules.extend(rules_of(&held.raw));
        }
        held.rules.extend(rules_of(&told.raw));
        unite(&mut held.facts, &told.facts);
        if held.told < told.told {
            held.place = told.place;
            held.told = told.told;
            held.digest = told.digest;
            held.raw = told.raw;
        }
        // A size or a name that became known changes what is sent, so the winner is measured again.
        if let Ok(winner) = read_event(&held.raw) {
            held.cost = budget::message_cost(&winner, &held.facts);
        }
        held.plain = false;
    }
}

/// What tells a refused line when it comes again: an event wherever it stands, other bytes by their place,
/// which in a page is the connection.
fn identity_of(refusal: &Refusal, spot: &Spot) -> [u8; 32] {
    if refusal.of_event {
        return refusal.identity;
    }
    let line: &[u8] = if spot.lasting { &spot.line.to_le_bytes() } else { &[] };
    fingerprint::sha256(&[&refusal.identity, line, spot.file.as_bytes()])
}

/// Whether content agrees: equal but for what was not known before.
fn agree(content: &[u8; 32], facts: &[FileFacts], told: &Message) -> bool {
    fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
        matches!((one, other), (Some(one), Some(other)) if one != other)
    }
    *content == told.content
        && facts.iter().zip(&told.facts).all(|(one, other)| {
            !differ(one.size.as_ref(), other.size.as_ref())
                && !differ(one.sha256.as_ref(), other.sha256.as_ref())
        })
}

fn unite(held: &mut Vec<FileFacts>, told: &[FileFacts]) {
    if held.len() < told.len() {
        held.resize(told.len(), FileFacts::default());
    }
    for (held, told) in held.iter_mut().zip(told) {
        held.size = held.size.or(told.size);
        if held.sha256.is_none() {
            held.sha256.clone_from(&told.sha256);
        }
    }
}
