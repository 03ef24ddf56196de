//! The task record: what a model submitted, what is published, and how a submission joins an older record.
//!
//! Pure. The model writes none of `sources`, `attachment_evidence`, `owner`, `context` and `processing`,
//! and never a status or priority that a user has set. The fields stand in the contract's order, which is
//! the order of the published keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::event::Event;
use crate::evidence::{Quote, check_quote};
use crate::zone::{Edge, Zone};

/// What the notes of a task say that a user keeps although its sources no longer hold it.
pub const EVIDENCE_GONE: &str = "The messages that this task rests on were edited, recalled or read again, and none of \
                                 them holds it any more. It stays because a user set its status.";

/// The longest title, in characters.
const MAX_TITLE: usize = 200;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// To be done.
    Open,
    /// Done; only a user says so.
    Completed,
    /// Not to be done any more.
    Cancelled,
    /// Its sources, all read again, no longer hold it.
    Superseded,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Open, Self::Completed, Self::Cancelled, Self::Superseded];

    /// The contract's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }

    /// The status of that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// How much a task matters, `P0` the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Priority {
    P0,
    P1,
    P2,
    P3,
    P4,
}

impl Priority {
    /// Every priority.
    pub const ALL: [Self; 5] = [Self::P0, Self::P1, Self::P2, Self::P3, Self::P4];

    /// The contract's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::P0 => "P0",
            Self::P1 => "P1",
            Self::P2 => "P2",
            Self::P3 => "P3",
            Self::P4 => "P4",
        }
    }

    /// The priority of that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.as_str() == word)
    }
}

/// Who set a status or a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A model; the next submission may change it.
    Model,
    /// A user; only a user may change it.
    User,
}

impl By {
    /// The contract's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::User => "user",
        }
    }
}

/// A task as the model submitted it, already checked once where the model could be answered.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Draft {
    /// The task it updates; none makes a new one.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The revision that the model was shown.
    #[serde(default)]
    pub seen_revision: Option<i64>,
    pub title: String,
    pub event: String,
    pub priority: String,
    #[serde(default)]
    pub priority_reason: String,
    pub status: String,
    #[serde(default)]
    pub time: DraftTime,
    #[serde(default)]
    pub people: Vec<Person>,
    #[serde(default)]
    pub location: Option<String>,
    #[serde(default)]
    pub action_steps: Vec<String>,
    #[serde(default)]
    pub notes: String,
    /// Keys of every message that it cites, those of cited units among them.
    pub sources: Vec<String>,
    /// The attachment units that it cites.
    #[serde(default)]
    pub evidence: Vec<CitedUnit>,
    #[serde(default)]
    pub quotes: Vec<DraftQuote>,
}

/// A draft's times.
#[derive(Clone, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct DraftTime {
    #[serde(default)]
    pub start: Option<String>,
    #[serde(default)]
    pub due: Option<String>,
    #[serde(default)]
    pub original: Option<String>,
}

/// A unit of an attachment, as `b3` of `a1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[allow(missing_docs)]
pub struct CitedUnit {
    pub message_key: String,
    pub attachment_id: String,
    pub unit: String,
}

/// A quote of a draft: of a message's text, or of an attachment's unit.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct DraftQuote {
    pub message_key: String,
    #[serde(default)]
    pub attachment_id: Option<String>,
    #[serde(default)]
    pub unit: Option<String>,
    pub text: String,
    pub check: Check,
}

/// How a stored quote was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// As it is.
    Exact,
    /// After folding; the text is the source's own wording.
    Repaired,
}

/// A task as it is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Record {
    pub title: String,
    pub event: String,
    pub priority: Priority,
    pub priority_reason: String,
    pub status: Status,
    pub status_by: By,
    pub priority_by: By,
    pub time: Time,
    pub people: Vec<Person>,
    pub location: Option<String>,
    pub action_steps: Vec<String>,
    pub notes: String,
    /// Always false; kept for old readers.
    pub needs_review: bool,
    /// Always empty; kept for old readers.
    pub review_reasons: Vec<String>,
    /// The keys of `sources`, in their order.
    pub source_message_keys: Vec<String>,
    /// By time sent, then by key.
    pub sources: Vec<Source>,
    pub attachment_evidence: Vec<AttachmentEvidence>,
    /// The conversation of the first commit.
    pub owner: Owner,
    pub context: Context,
    pub processing: Processing,
}

/// When a task is: RFC 3339 with an offset, a date, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Time {
    pub start: Option<String>,
    pub due: Option<String>,
    pub timezone: String,
    /// The wording in the message.
    pub original: Option<String>,
    /// How sure it is; null where there is no time, and in records of versions that computed none.
    pub check: Option<TimeCheck>,
}

/// How a stored time stands to the wording it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeCheck {
    /// The model gave what the wording means.
    Agrees,
    /// It is what the wording means; the model gave none, or another.
    Computed,
    /// The wording is missing or not understood: the time is the model's.
    Unresolved,
    /// The wording has several meanings, which the notes list.
    Ambiguous,
}

impl TimeCheck {
    /// The contract's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Computed => "computed",
            Self::Unresolved => "unresolved",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// Someone that a task names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Person {
    pub name: String,
    #[serde(default)]
    pub role: Option<String>,
}

/// A message that a task rests on, as its newest revision tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Source {
    pub platform: String,
    pub account_id: String,
    pub conversation: Conversation,
    pub message_key: String,
    pub message_id: Option<String>,
    pub sender: Sender,
    pub sent_at: Seconds,
    pub sent_at_local: String,
    pub collected_at: Option<Seconds>,
    /// Empty when the message was recalled, like `attachments`.
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub quotes: Vec<StoredQuote>,
    /// As collected, the rules of all deliveries united.
    pub selection: Option<Value>,
    /// As collected.
    pub source: Option<Value>,
}

/// A conversation, named as the newest delivery names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Conversation {
    pub id: String,
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
}

/// Who sent a message; nothing is invented.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Sender {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

impl Sender {
    /// Who the event says.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Self {
        Self {
            id: event.sender_id.as_deref().map(str::to_owned),
            name: event.sender_name.as_deref().map(str::to_owned),
        }
    }
}

/// A reference to an attachment in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Attachment {
    pub id: String,
    pub name: Option<String>,
    pub mime: Option<String>,
    pub size: Option<u64>,
    pub sha256: Option<String>,
    pub path: Option<String>,
    pub state: Option<String>,
}

/// A quote that stands in its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct StoredQuote {
    pub text: String,
    pub check: Check,
    /// Null for the message's own text.
    pub attachment_id: Option<String>,
    pub unit: Option<String>,
}

/// A unit of an attachment that was read and cited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AttachmentEvidence {
    pub attachment_id: String,
    pub name: Option<String>,
    /// Of the bytes that were read.
    pub sha256: String,
    pub unit: String,
    pub message_key: String,
    pub path: Option<String>,
}

/// The conversation that a task first came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Owner {
    pub platform: String,
    pub account_id: String,
    pub conversation: Conversation,
}

/// The group that the last submission came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Context {
    pub group_id: String,
    pub subject: Vec<String>,
    pub history: Vec<String>,
    /// One word a segment, in order.
    pub continuity: Vec<String>,
}

/// What the last submission was made with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Processing {
    pub rules_file: String,
    pub rules_sha256: String,
    pub model: String,
    pub settings_fp: String,
    /// One a segment, in order.
    pub content_fp: Vec<String>,
    pub time: String,
    /// The version of the reading of times that its time was computed by; none in records of before there
    /// was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_version: Option<u32>,
    /// Of the whole batch.
    pub usage: Value,
}

/// Milliseconds that are written as Unix seconds, with a fraction only where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub i64);

impl Serialize for Seconds {
    #[allow(clippy::cast_precision_loss)] // milliseconds of any year that can be stored fit 53 bits
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 % 1000 {
            0 => serializer.serialize_i64(self.0 / 1000),
            _ => serializer.serialize_f64(self.0 as f64 / 1000.0),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    #[allow(clippy::cast_possible_truncation)] // the cast saturates
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(Self((f64::deserialize(deserializer)? * 1000.0).round() as i64))
    }
}

/// What the core adds to a draft.
pub struct Basis {
    /// The draft's sources, and those of the task that it updates, as they are now and without quotes.
    pub sources: Vec<Source>,
    /// What the draft cites of attachments.
    pub evidence: Vec<AttachmentEvidence>,
    /// The group's conversation.
    pub owner: Owner,
    /// The group.
    pub context: Context,
    /// What it was made with.
    pub processing: Processing,
}

impl Draft {
    /// Checks what can be known of a draft alone; a fault is [`Error::Evidence`].
    pub fn validate(&self, zone: &Zone) -> Result<()> {
        let fault = |what: String| Err(Error::Evidence(what));
        let length = self.title.chars().count();
        if self.title.trim().is_empty() || length > MAX_TITLE {
            return fault(format!("a title has 1 to {MAX_TITLE} characters, this one has {length}"));
        }
        self.priority()?;
        if !matches!(self.status()?, Status::Open | Status::Cancelled) {
            return fault(format!("a model may not set the status {}", self.status));
        }
        if self.sources.is_empty() {
            return fault("a task needs a source".to_owned());
        }
        let cited = |key: &String| self.sources.contains(key);
        if let Some(unit) = self.evidence.iter().find(|unit| !cited(&unit.message_key)) {
            return fault(format!("{} is cited, its message {} is not", unit.unit, unit.message_key));
        }
        if let Some(quote) = self.quotes.iter().find(|quote| !self.has_cited(quote)) {
            return fault(format!("a quote of {} is of nothing that is cited", quote.message_key));
        }
        self.time.validate(zone)
    }

    fn priority(&self) -> Result<Priority> {
        Priority::named(&self.priority)
            .ok_or_else(|| Error::Evidence(format!("{:?} is no priority, P0 to P4 are", self.priority)))
    }

    fn status(&self) -> Result<Status> {
        Status::named(&self.status).ok_or_else(|| Error::Evidence(format!("{:?} is no status", self.status)))
    }

    fn has_cited(&self, quote: &DraftQuote) -> bool {
        match (&quote.attachment_id, &quote.unit) {
            (None, None) => self.sources.contains(&quote.message_key),
            (Some(attachment), Some(unit)) => self.evidence.iter().any(|cited| {
                (&cited.message_key, &cited.attachment_id, &cited.unit)
                    == (&quote.message_key, attachment, unit)
            }),
            _ => false,
        }
    }
}

impl DraftTime {
    fn validate(&self, zone: &Zone) -> Result<()> {
        let read = |name: &str, text: &Option<String>, edge| match text {
            Some(text) => zone
                .instant(text, edge)
                .map(Some)
                .map_err(|error| Error::Evidence(format!("time.{name}: {error}"))),
            None => Ok(None),
        };
        match (read("start", &self.start, Edge::Start)?, read("due", &self.due, Edge::End)?) {
            (Some(start), Some(due)) if start > due => {
                Err(Error::Evidence("time.start is later than time.due".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl Record {
    /// The record of a task that is new. A quote that its source does not hold is [`Error::Evidence`].
    pub fn new(draft: &Draft, basis: Basis, zone: &Zone) -> Result<Self> {
        let mut sources = basis.sources;
        for quote in &draft.quotes {
            let source = sources.iter_mut().find(|source| source.message_key == quote.message_key);
            let held = source.and_then(|source| Some((stored(quote).held_by(source)?, source)));
            let (quote, source) = held.ok_or_else(|| {
                Error::Evidence(format!("{} does not hold the quote {:?}", quote.message_key, quote.text))
            })?;
            source.add_quote(quote);
        }
        let mut record = Self {
            title: draft.title.clone(),
            event: draft.event.clone(),
            priority: draft.priority()?,
            priority_reason: draft.priority_reason.clone(),
            status: draft.status()?,
            status_by: By::Model,
            priority_by: By::Model,
            time: Time {
                start: draft.time.start.clone(),
                due: draft.time.due.clone(),
                timezone: zone.name().to_owned(),
                original: draft.time.original.clone(),
                check: None,
            },
            people: draft.people.clone(),
            location: draft.location.clone(),
            action_steps: draft.action_steps.clone(),
            notes: draft.notes.clone(),
            needs_review: false,
            review_reasons: Vec::new(),
            source_message_keys: Vec::new(),
            sources: Vec::new(),
            attachment_evidence: united_evidence(&[], basis.evidence),
            owner: basis.owner,
            context: basis.context,
            processing: basis.processing,
        };
        record.set_sources(sources);
        Ok(record)
    }

    /// Whether a revision would say nothing new: all but `context` and `processing` is the same.
    #[must_use]
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let like_other =
            Self { context: other.context.clone(), processing: other.processing.clone(), ..self.clone() };
        like_other == *other
    }

    /// The instant of `time.due`, a date's end; the greatest number without one, so that it sorts last.
    pub fn due_at(&self) -> Result<i64> {
        match &self.time.due {
            Some(due) => Zone::named(&self.time.timezone)?.instant(due, Edge::End),
            None => Ok(i64::MAX),
        }
    }

    fn set_sources(&mut self, mut sources: Vec<Source>) {
        sources.sort_by(|a, b| (a.sent_at, &a.message_key).cmp(&(b.sent_at, &b.message_key)));
        self.source_message_keys = sources.iter().map(|source| source.message_key.clone()).collect();
        self.sources = sources;
    }
}

impl Source {
    fn add_quote(&mut self, quote: StoredQuote) {
        if !self.quotes.iter().any(|known| known.is_of_same(&quote)) {
            self.quotes.push(quote);
        }
    }
}

impl StoredQuote {
    /// This quote in the source's present wording, or nothing when the source no longer holds it. Units
    /// are not stored, so theirs hold as long as the attachment is there.
    fn held_by(self, source: &Source) -> Option<Self> {
        if let Some(id) = &self.attachment_id {
            return source.attachments.iter().any(|attachment| attachment.id == *id).then_some(self);
        }
        match check_quote(&self.text, &source.text) {
            Quote::Exact => Some(self),
            Quote::Repaired(own) => Some(Self { text: own.to_owned(), check: Check::Repaired, ..self }),
            Quote::Unverified => None,
        }
    }

    fn is_of_same(&self, other: &Self) -> bool {
        (&self.text, &self.attachment_id, &self.unit) == (&other.text, &other.attachment_id, &other.unit)
    }
}

fn stored(quote: &DraftQuote) -> StoredQuote {
    StoredQuote {
        text: quote.text.clone(),
        check: quote.check,
        attachment_id: quote.attachment_id.clone(),
        unit: quote.unit.clone(),
    }
}

/// Joins a submission to the record that it updates.
///
/// What the model says is taken as said now; sources, evidence and quotes that still hold stay beside the
/// new ones; the owner stays, and so do a status and a priority that a user has set.
#[must_use]
pub fn merge(old: &Record, new: Record) -> Record {
    let mut merged = new;
    if old.status_by == By::User {
        (merged.status, merged.status_by) = (old.status, By::User);
    }
    if old.priority_by == By::User {
        (merged.priority, merged.priority_by) = (old.priority, By::User);
        merged.priority_reason.clone_from(&old.priority_reason);
    }
    merged.owner = old.owner.clone();
    merged.attachment_evidence = united_evidence(&old.attachment_evidence, merged.attachment_evidence);
    let sources = united_sources(&old.sources, std::mem::take(&mut merged.sources));
    merged.set_sources(sources);
    merged
}

/// What becomes of a task that its sources no longer hold: superseded, or, where a user set the status, kept
/// with a note. Nothing when it says so already.
#[must_use]
pub fn without_evidence(record: &Record) -> Option<Record> {
    if record.status_by == By::Model {
        return Some(Record { status: Status::Superseded, ..record.clone() });
    }
    if record.notes.contains(EVIDENCE_GONE) {
        return None;
    }
    let pause = if record.notes.is_empty() { "" } else { "\n" };
    Some(Record { notes: format!("{}{pause}{EVIDENCE_GONE}", record.notes), ..record.clone() })
}

/// Each source as it is in `new`, with the old quotes that it still holds before the new ones; an old
/// source that `new` does not tell stays as it was.
fn united_sources(old: &[Source], new: Vec<Source>) -> Vec<Source> {
    let old: BTreeMap<&str, &Source> =
        old.iter().map(|source| (source.message_key.as_str(), source)).collect();
    let mut united: BTreeMap<String, Source> =
        old.iter().map(|(&key, &source)| (key.to_owned(), source.clone())).collect();
    for mut source in new {
        let quotes = std::mem::take(&mut source.quotes);
        let earlier = old.get(source.message_key.as_str()).map_or(&[][..], |old| &old.quotes);
        let held: Vec<_> = earlier.iter().filter_map(|quote| quote.clone().held_by(&source)).collect();
        held.into_iter().chain(quotes).for_each(|quote| source.add_quote(quote));
        united.insert(source.message_key.clone(), source);
    }
    united.into_values().collect()
}

fn united_evidence(old: &[AttachmentEvidence], new: Vec<AttachmentEvidence>) -> Vec<AttachmentEvidence> {
    let mut united = old.to_vec();
    for unit in new {
        let same = |known: &&mut AttachmentEvidence| {
            (&known.message_key, &known.attachment_id, &known.unit)
                == (&unit.message_key, &unit.attachment_id, &unit.unit)
        };
        match united.iter_mut().find(same) {
            Some(known) => *known = unit,
            None => united.push(unit),
        }
    }
    united
}

/// A file to pass on with a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Deliverable {
    pub name: Option<String>,
    pub sha256: Option<String>,
    pub size: Option<u64>,
    pub mime: Option<String>,
    pub path: Option<String>,
    /// Keys of the messages that bring it.
    pub sources: Vec<String>,
}

/// The files of a task's sources. The same bytes under the same full name are one entry with united
/// sources; where the bytes are not known, each attachment is an entry of its own.
#[must_use]
pub fn deliverables(record: &Record) -> Vec<Deliverable> {
    let mut files: Vec<Deliverable> = Vec::new();
    for source in &record.sources {
        for attachment in &source.attachments {
            let same = |file: &&mut Deliverable| {
                attachment.sha256.is_some()
                    && file.sha256 == attachment.sha256
                    && file.name == attachment.name
            };
            match files.iter_mut().find(same) {
                Some(file) if file.sources.contains(&source.message_key) => {}
                Some(file) => file.sources.push(source.message_key.clone()),
                None => files.push(Deliverable {
                    name: attachment.name.clone(),
                    sha256: attachment.sha256.clone(),
                    size: attachment.size,
                    mime: attachment.mime.clone(),
                    path: attachment.path.clone(),
                    sources: vec![source.message_key.clone()],
                }),
            }
        }
    }
    files
}
