//! The wire type: one line of a collector's batch becomes an [`Event`], or a [`Refusal`] that says why not.
//! Pure. Must never panic on a line, guess a value, or let through what the contract refuses.
//!
//! A line is read in one of two ways: [`usual`] reads what collectors usually write in one pass, and leaves
//! whatever else there is to [`strict`], which builds a tree of the line's values and can say what is wrong.

mod bounds;
mod canonical;
mod keys;
mod pass;
mod strict;
mod usual;
mod words;
mod wrong;

use std::borrow::Cow;

use crate::fingerprint::{Fingerprint, sha256};

pub use strict::read_strictly;
pub use words::{AttachmentState, ConversationType, Kind, Reason, Role, State};

/// One delivery of one revision of one message. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// Identity of this delivery.
    pub event_id: Cow<'a, str>,
    /// Identity of the message through all its revisions.
    pub message_key: Cow<'a, str>,
    /// Order among the message's revisions.
    pub revision: u64,
    /// Whether the message was edited or withdrawn.
    pub state: State,
    /// Whether a person's message or a notice.
    pub kind: Kind,
    /// The chat platform.
    pub platform: Cow<'a, str>,
    /// The collecting account.
    pub account_id: Cow<'a, str>,
    /// With platform and account, the conversation.
    pub conversation_id: Cow<'a, str>,
    /// What the conversation is called.
    pub conversation_name: Option<Cow<'a, str>>,
    /// What sort of conversation it is.
    pub conversation_type: ConversationType,
    /// The platform's own id of the message.
    pub message_id: Option<Cow<'a, str>>,
    /// When the message was sent.
    pub sent_at: i64,
    /// The sender's id, where known.
    pub sender_id: Option<Cow<'a, str>>,
    /// The sender's name, where known.
    pub sender_name: Option<Cow<'a, str>>,
    /// What the sender is.
    pub role: Role,
    /// The message's text, of a recalled one too.
    pub text: Cow<'a, str>,
    /// Who is addressed.
    pub mentions: Vec<Mention<'a>>,
    /// The key of the message that this one answers.
    pub reply_to: Option<Cow<'a, str>>,
    /// The message's files.
    pub attachments: Vec<Attachment<'a>>,
    /// Proof of position; without it the message stands alone.
    pub sequence: Option<Sequence<'a>>,
    /// Why the collector selected the message.
    pub rules: Vec<Cow<'a, str>>,
    /// When it was collected; 0 when that is not told.
    pub collected_at: i64,
    /// Over every key of the line, see [`read_event`].
    pub event_hash: Fingerprint,
    /// Over what the message says, see [`read_event`].
    pub content_hash: Fingerprint,
}

/// Someone addressed in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention<'a> {
    /// Everyone in the conversation.
    pub all: bool,
    /// Whose id it is.
    pub id: Option<Cow<'a, str>>,
    /// What name was written.
    pub name: Option<Cow<'a, str>>,
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// Its id within the message.
    pub id: Cow<'a, str>,
    /// Its file name.
    pub name: Option<Cow<'a, str>>,
    /// The media type that the platform claims.
    pub mime: Option<Cow<'a, str>>,
    /// Its length in bytes.
    pub size: Option<u64>,
    /// Its digest, as the collector wrote it.
    pub sha256: Option<Cow<'a, str>>,
    /// Where it should be, relative to the archive; not checked here.
    pub path: Option<Cow<'a, str>>,
    /// Whether it is there.
    pub state: Option<AttachmentState>,
}

/// Where a message stands in the full source sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence<'a> {
    /// Orders within the sequence.
    pub index: Option<i64>,
    /// The message just before; none says that this is the first.
    pub predecessor: Option<Cow<'a, str>>,
}

/// What may become known of an attachment after its message was first collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Bytes.
    pub size: Option<u64>,
    /// Hexadecimal SHA-256.
    pub sha256: Option<String>,
}

/// Why a line cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first reason that applies, in the contract's order.
    pub reason: Reason,
    /// One line for a person: the field, what was found, what is wanted.
    pub explanation: String,
    /// The same for the same refused event or, where no event can be made out, the same bytes.
    pub identity: Fingerprint,
    /// Whether an event could be made out: only such a line is the same one wherever it stands.
    pub of_event: bool,
}

impl Refusal {
    /// Refuses a line that holds an event with this hash.
    #[must_use]
    pub fn of_event(reason: Reason, explanation: String, event_hash: &Fingerprint) -> Self {
        Self { reason, explanation, identity: Self::identity_of(event_hash), of_event: true }
    }

    /// What a refused line that holds an event with this hash is known by.
    #[must_use]
    pub fn identity_of(event_hash: &Fingerprint) -> Fingerprint {
        sha256(&[b"event\0", event_hash])
    }

    /// Refuses bytes in which no event can be made out.
    #[must_use]
    pub fn of_bytes(reason: Reason, explanation: String, bytes: &[u8]) -> Self {
        Self { reason, explanation, identity: sha256(&[b"raw\0", bytes]), of_event: false }
    }
}

/// Reads one line without its line end.
///
/// The event hash is over the canonical JSON of every key, with defined fields at their default left
/// out at every level, unknown keys kept as they are; the content hash is over kind, state, time,
/// sender's id, text, whom the mentions mean, `reply_to` and the attachments' ids and names. (Their `size`
/// and `sha256` may become known later: who stores events compares these by itself.)
///
/// # Examples
///
/// ```
/// use chatproc_core::event::{Reason, read_event};
///
/// let line = br#"{"schema":"chatproc.event/1","event_id":"e1","message_key":"k1","revision":0,
///   "platform":"qq","account_id":"1","conversation":{"id":"c"},"sent_at":1782871200.5,"sender":{},"text":""}"#;
/// assert_eq!(read_event(line).unwrap().sent_at, 1_782_871_200_500);
/// assert_eq!(read_event(b"[]").unwrap_err().reason, Reason::NotAnObject);
/// ```
pub fn read_event(line: &[u8]) -> Result<Event<'_>, Refusal> {
    let usual = std::str::from_utf8(line).ok().and_then(usual::read);
    usual.map_or_else(|| read_strictly(line), Ok)
}
