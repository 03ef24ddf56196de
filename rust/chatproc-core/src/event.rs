//! The wire type: one line of a collector's batch becomes an [`Event`], or a [`Refusal`] that says why not.
//! Pure. Must never panic on a line, guess a value, or let through what the contract refuses.

use std::borrow::Cow;
use std::io::Write as _;

use crate::fingerprint::{Fingerprint, sha256};
use crate::json::{self, FaultKind, Member, Unreadable, Value};

const SCHEMA: &str = "chatproc.event/1";
/// Whole numbers up to here are exact in every JSON reader.
const MAX_SAFE: i128 = (1 << 53) - 1;
/// The first second that cannot be written as a date in every time zone.
const END_OF_TIME: i128 = 253_402_207_200;
const SECONDS: &str =
    "Unix seconds, a number from 0 to below 253402207200 (a date of the year 9999), with at most 3 decimals";

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

/// Makes an enumeration out of the contract's words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$case_doc])* $case),+ }

        impl $name {
            /// The contract's words, in its order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The contract's word for this.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$case => $word),+ }
            }

            /// What the contract means by a word, if anything.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$case),)+ _ => None }
            }
        }
    };
}

words! {
    /// What became of a message in this revision.
    State {
        /// As first sent.
        Normal = "normal",
        /// Changed by its sender.
        Edited = "edited",
        /// Withdrawn: its text and attachments are not to be used.
        Recalled = "recalled",
    }
}
words! {
    /// What a message is.
    Kind {
        /// Something that someone says.
        Message = "message",
        /// A notice: a link in the sequence, never sent to a model.
        System = "system",
    }
}
words! {
    /// What a sender is.
    Role {
        /// Another person.
        User = "user",
        /// The collecting account itself.
        SelfRole = "self",
        /// A program.
        Bot = "bot",
        /// The platform.
        System = "system",
        /// Not told.
        Unknown = "unknown",
    }
}
words! {
    /// What sort of conversation a message stands in.
    ConversationType {
        /// Several people.
        Group = "group",
        /// Two people.
        Private = "private",
        /// One to many.
        Channel = "channel",
        /// A part of another conversation.
        Thread = "thread",
        /// A mailbox.
        Mailbox = "mailbox",
        /// Not told.
        Unknown = "unknown",
    }
}
words! {
    /// Whether the archive has an attachment's file.
    AttachmentState {
        /// It is there.
        Present = "present",
        /// It should be there and is not.
        Missing = "missing",
        /// The collector did not bring it.
        NotExported = "not_exported",
        /// The platform no longer has it.
        Expired = "expired",
    }
}
words! {
    /// Why a line was refused, in the order in which reasons are looked for.
    Reason {
        /// Longer than the configured limit.
        TooLong = "too-long",
        /// Bytes that are no UTF-8.
        NotUtf8 = "not-utf8",
        /// Text that is no JSON.
        NotJson = "not-json",
        /// JSON that is no object.
        NotAnObject = "not-an-object",
        /// More than 64 levels.
        TooDeep = "too-deep",
        /// A key twice in one object.
        DuplicateKey = "duplicate-key",
        /// Another schema.
        SchemaUnknown = "schema-unknown",
        /// A required field is not there.
        MissingField = "missing-field",
        /// A field outside its bounds.
        BadField = "bad-field",
        /// The event id of an earlier event that says something else.
        EventConflict = "event-conflict",
        /// The message and revision of an earlier event that says something else.
        RevisionConflict = "revision-conflict",
    }
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
    let json::Line { root, faults } = json::read(line).map_err(|unreadable| match unreadable {
        Unreadable::NotUtf8(explanation) => Refusal::of_bytes(Reason::NotUtf8, explanation, line),
        Unreadable::NotJson(explanation) => Refusal::of_bytes(Reason::NotJson, explanation, line),
    })?;
    let Value::Object(members) = root else {
        let explanation = format!("the line is {}, wanted an object", show(&root));
        return Err(Refusal::of_bytes(Reason::NotAnObject, explanation, line));
    };
    if !faults.is_empty() {
        let (reason, explanation) = first_fault(&faults, members);
        return Err(Refusal::of_bytes(reason, explanation, line));
    }
    let mut canonical = Vec::with_capacity(line.len() + 64);
    write_object(&mut canonical, &members, Shape::Event);
    let event_hash = sha256(&[&canonical]);
    let fields = Fields::new(members);
    let named = matches!(&fields.event_id, Some(Value::String(id)) if is_length(id, 1, 256));
    match fields.read() {
        Ok(mut event) => {
            event.event_hash = event_hash;
            canonical.clear();
            write_content(&mut canonical, &event);
            event.content_hash = sha256(&[&canonical]);
            Ok(event)
        }
        Err(wrong) if named => Err(Refusal::of_event(wrong.reason, wrong.explanation(), &event_hash)),
        Err(wrong) => Err(Refusal::of_bytes(wrong.reason, wrong.explanation(), line)),
    }
}

/// Of a line that is an object with faults: the first reason in the contract's order.
fn first_fault(faults: &[json::Fault], members: Vec<Member<'_>>) -> (Reason, String) {
    let found = |kind| faults.iter().find(|fault| fault.kind == kind).map(json::Fault::explanation);
    if let Some(explanation) = found(FaultKind::TooDeep) {
        return (Reason::TooDeep, explanation);
    }
    if let Some(explanation) = found(FaultKind::DuplicateKey) {
        return (Reason::DuplicateKey, explanation);
    }
    match Fields::new(members).check_presence() {
        Err(wrong) => (wrong.reason, wrong.explanation()),
        Ok(()) => (Reason::BadField, found(FaultKind::BadValue).unwrap_or_default()),
    }
}

/// The first thing wrong with a line that is a sound object.
struct Wrong {
    reason: Reason,
    field: String,
    what: String,
}

type Checked<T> = Result<T, Wrong>;

impl Wrong {
    fn missing(field: &str) -> Self {
        Self { reason: Reason::MissingField, field: field.to_owned(), what: "is missing".to_owned() }
    }

    fn bad(field: &str, value: &Value<'_>, wanted: &str) -> Self {
        let what = format!("is {}, wanted {wanted}", show(value));
        Self { reason: Reason::BadField, field: field.to_owned(), what }
    }

    /// The same, seen from the field that holds the one it names.
    fn within(mut self, outer: &str) -> Self {
        self.field = if self.field.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.field) };
        self
    }

    fn explanation(&self) -> String {
        format!("`{}` {}", self.field, self.what)
    }
}

/// What was found, for an explanation.
fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::True => "true".to_owned(),
        Value::False => "false".to_owned(),
        Value::Number(text) => json::shorten(text, 40),
        Value::String(text) => json::quote(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The line's values by field, as they came.
#[derive(Default)]
struct Fields<'a> {
    schema: Option<Value<'a>>,
    event_id: Option<Value<'a>>,
    message_key: Option<Value<'a>>,
    revision: Option<Value<'a>>,
    state: Option<Value<'a>>,
    kind: Option<Value<'a>>,
    platform: Option<Value<'a>>,
    account_id: Option<Value<'a>>,
    conversation: Option<Value<'a>>,
    message_id: Option<Value<'a>>,
    sent_at: Option<Value<'a>>,
    sender: Option<Value<'a>>,
    text: Option<Value<'a>>,
    mentions: Option<Value<'a>>,
    reply_to: Option<Value<'a>>,
    attachments: Option<Value<'a>>,
    sequence: Option<Value<'a>>,
    selection: Option<Value<'a>>,
    collected_at: Option<Value<'a>>,
    source: Option<Value<'a>>,
}

impl<'a> Fields<'a> {
    fn new(members: Vec<Member<'a>>) -> Self {
        let mut fields = Self::default();
        for Member { key, value, .. } in members {
            let field = match &*key {
                "schema" => &mut fields.schema,
                "event_id" => &mut fields.event_id,
                "message_key" => &mut fields.message_key,
                "revision" => &mut fields.revision,
                "state" => &mut fields.state,
                "kind" => &mut fields.kind,
                "platform" => &mut fields.platform,
                "account_id" => &mut fields.account_id,
                "conversation" => &mut fields.conversation,
                "message_id" => &mut fields.message_id,
                "sent_at" => &mut fields.sent_at,
                "sender" => &mut fields.sender,
                "text" => &mut fields.text,
                "mentions" => &mut fields.mentions,
                "reply_to" => &mut fields.reply_to,
                "attachments" => &mut fields.attachments,
                "sequence" => &mut fields.sequence,
                "selection" => &mut fields.selection,
                "collected_at" => &mut fields.collected_at,
                "source" => &mut fields.source,
                _ => continue,
            };
            *field = Some(value);
        }
        fields
    }

    /// Checks all fields, in the order of the contract's table.
    fn read(self) -> Checked<Event<'a>> {
        self.check_presence()?;
        let event_id = required_text("event_id", self.event_id, 1, 256)?;
        let message_key = required_text("message_key", self.message_key, 1, 512)?;
        let revision = natural("revision", &self.revision.unwrap_or(Value::Null))?;
        let state = word("state", self.state, State::from_word, State::WORDS)?;
        let kind = word("kind", self.kind, Kind::from_word, Kind::WORDS)?;
        let platform = read_platform(self.platform)?;
        let account_id = required_text("account_id", self.account_id, 0, usize::MAX)?;
        let conversation = read_conversation(self.conversation.unwrap_or(Value::Null))
            .map_err(|wrong| wrong.within("conversation"))?;
        let message_id = optional_text("message_id", self.message_id)?;
        let sent_at = seconds("sent_at", &self.sent_at.unwrap_or(Value::Null))?;
        let sender =
            read_sender(self.sender.unwrap_or(Value::Null)).map_err(|wrong| wrong.within("sender"))?;
        let text = required_text("text", self.text, 0, usize::MAX)?;
        let mentions = list("mentions", self.mentions, read_mention)?;
        let reply_to = optional_text("reply_to", self.reply_to)?;
        let attachments = list("attachments", self.attachments, read_attachment)?;
        let sequence = present(self.sequence)
            .map(read_sequence)
            .transpose()
            .map_err(|wrong| wrong.within("sequence"))?;
        let rules = present(self.selection)
            .map(read_selection)
            .transpose()
            .map_err(|wrong| wrong.within("selection"))?;
        let collected_at =
            present(self.collected_at).map(|value| seconds("collected_at", &value)).transpose()?;
        if let Some(source) = present(self.source) {
            object("source", source, "an object or null")?;
        }
        Ok(Event {
            event_id,
            message_key,
            revision,
            state: state.unwrap_or(State::Normal),
            kind: kind.unwrap_or(Kind::Message),
            platform,
            account_id,
            conversation_id: conversation.id,
            conversation_name: conversation.name,
            conversation_type: conversation.sort,
            message_id,
            sent_at,
            sender_id: sender.id,
            sender_name: sender.name,
            role: sender.role,
            text,
            mentions,
            reply_to,
            attachments,
            sequence,
            rules: rules.unwrap_or_default(),
            collected_at: collected_at.unwrap_or(0),
            event_hash: Fingerprint::default(),
            content_hash: Fingerprint::default(),
        })
    }

    /// Checks the schema, then that every required field is there at all.
    fn check_presence(&self) -> Checked<()> {
        match &self.schema {
            None => {}
            Some(Value::String(schema)) if schema == SCHEMA => {}
            Some(other) => {
                let bad = Wrong::bad("schema", other, &json::quote(SCHEMA));
                return Err(Wrong { reason: Reason::SchemaUnknown, ..bad });
            }
        }
        let required = [
            ("schema", self.schema.is_some()),
            ("event_id", self.event_id.is_some()),
            ("message_key", self.message_key.is_some()),
            ("revision", self.revision.is_some()),
            ("platform", self.platform.is_some()),
            ("account_id", self.account_id.is_some()),
            ("conversation", self.conversation.is_some()),
            ("conversation.id", self.conversation.as_ref().is_none_or(may_have_id)),
            ("sent_at", self.sent_at.is_some()),
            ("sender", self.sender.is_some()),
            ("text", self.text.is_some()),
        ];
        if let Some((field, _)) = required.iter().find(|(_, there)| !there) {
            return Err(Wrong::missing(field));
        }
        if let Some(Value::Array(items)) = &self.attachments
            && let Some(index) = items.iter().position(|item| !may_have_id(item))
        {
            return Err(Wrong::missing("id").within(&format!("attachments[{index}]")));
        }
        Ok(())
    }
}

/// False for an object without an id; what is no object has another fault.
fn may_have_id(value: &Value<'_>) -> bool {
    !matches!(value, Value::Object(members) if members.iter().all(|member| member.key != "id"))
}

/// Of an optional field null and absent are one.
fn present(value: Option<Value<'_>>) -> Option<Value<'_>> {
    value.filter(|value| *value != Value::Null)
}

fn optional_text<'a>(field: &str, value: Option<Value<'a>>) -> Checked<Option<Cow<'a, str>>> {
    match present(value) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Wrong::bad(field, &other, "a string or null")),
    }
}

/// Reads a field whose presence is known, of `least` to `most` characters.
fn required_text<'a>(
    field: &str,
    value: Option<Value<'a>>,
    least: usize,
    most: usize,
) -> Checked<Cow<'a, str>> {
    match value.unwrap_or(Value::Null) {
        Value::String(text) if is_length(&text, least, most) => Ok(text),
        other if most == usize::MAX => Err(Wrong::bad(field, &other, "a string")),
        Value::String(text) => Err(Wrong {
            reason: Reason::BadField,
            field: field.to_owned(),
            what: format!("has {} characters, wanted {least} to {most}", text.chars().count()),
        }),
        other => Err(Wrong::bad(field, &other, &format!("a string of {least} to {most} characters"))),
    }
}

fn is_length(text: &str, least: usize, most: usize) -> bool {
    // No text has more characters than bytes: the count is seldom needed.
    text.len() >= least && (text.len() <= most || text.chars().count() <= most)
}

fn natural(field: &str, value: &Value<'_>) -> Checked<u64> {
    whole(value, 0)
        .filter(|number| *number <= MAX_SAFE)
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| Wrong::bad(field, value, "a whole number from 0 to 9007199254740991"))
}

/// Reads seconds since 1970 as milliseconds.
fn seconds(field: &str, value: &Value<'_>) -> Checked<i64> {
    whole(value, 3)
        .filter(|milliseconds| (0..END_OF_TIME * 1000).contains(milliseconds))
        .and_then(|milliseconds| i64::try_from(milliseconds).ok())
        .ok_or_else(|| Wrong::bad(field, value, SECONDS))
}

/// The value times 10^`scale` if it is a number and that is whole.
fn whole(value: &Value<'_>, scale: u32) -> Option<i128> {
    match value {
        Value::Number(text) => json::scaled(text, scale),
        _ => None,
    }
}

/// Reads an optional field that holds one of a few words.
fn word<T>(
    field: &str,
    value: Option<Value<'_>>,
    meaning: fn(&str) -> Option<T>,
    words: &[&str],
) -> Checked<Option<T>> {
    let Some(value) = present(value) else { return Ok(None) };
    let known = if let Value::String(word) = &value { meaning(word) } else { None };
    match known {
        Some(known) => Ok(Some(known)),
        None => Err(Wrong::bad(field, &value, &format!("one of: {}", words.join(" ")))),
    }
}

fn object<'a>(field: &str, value: Value<'a>, wanted: &str) -> Checked<Vec<Member<'a>>> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(Wrong::bad(field, &other, wanted)),
    }
}

/// Reads each item of an optional list; what is wrong within one names its place in the list.
fn list<'a, T>(field: &str, value: Option<Value<'a>>, read: fn(Value<'a>) -> Checked<T>) -> Checked<Vec<T>> {
    let items = match present(value) {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(Wrong::bad(field, &other, "a list or null")),
    };
    let place = |index| move |wrong: Wrong| wrong.within(&format!("{field}[{index}]"));
    items.into_iter().enumerate().map(|(index, item)| read(item).map_err(place(index))).collect()
}

fn read_platform(value: Option<Value<'_>>) -> Checked<Cow<'_, str>> {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    match value.unwrap_or(Value::Null) {
        Value::String(text) if is_length(&text, 1, 32) && text.bytes().all(allowed) => Ok(text),
        other => Err(Wrong::bad("platform", &other, "1 to 32 of the characters a-z 0-9 _ -")),
    }
}

struct Conversation<'a> {
    id: Cow<'a, str>,
    name: Option<Cow<'a, str>>,
    sort: ConversationType,
}

fn read_conversation(value: Value<'_>) -> Checked<Conversation<'_>> {
    let (mut id, mut name, mut sort) = (None, None, None);
    for Member { key, value, .. } in object("", value, "an object")? {
        match &*key {
            "id" => id = Some(value),
            "name" => name = Some(value),
            "type" => sort = Some(value),
            _ => {}
        }
    }
    Ok(Conversation {
        id: required_text("id", id, 0, usize::MAX)?,
        name: optional_text("name", name)?,
        sort: word("type", sort, ConversationType::from_word, ConversationType::WORDS)?
            .unwrap_or(ConversationType::Unknown),
    })
}

struct Sender<'a> {
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    role: Role,
}

fn read_sender(value: Value<'_>) -> Checked<Sender<'_>> {
    let (mut id, mut name, mut role) = (None, None, None);
    for Member { key, value, .. } in object("", value, "an object")? {
        match &*key {
            "id" => id = Some(value),
            "name" => name = Some(value),
            "role" => role = Some(value),
            _ => {}
        }
    }
    Ok(Sender {
        id: optional_text("id", id)?,
        name: optional_text("name", name)?,
        role: word("role", role, Role::from_word, Role::WORDS)?.unwrap_or(Role::Unknown),
    })
}

fn read_mention(value: Value<'_>) -> Checked<Mention<'_>> {
    const WANTED: &str = "{\"all\":true} or an object with id or name";
    let (mut all, mut id, mut name) = (None, None, None);
    for Member { key, value, .. } in object("", value, WANTED)? {
        match &*key {
            "all" => all = Some(value),
            "id" => id = Some(value),
            "name" => name = Some(value),
            _ => {}
        }
    }
    let all = match present(all) {
        None | Some(Value::False) => false,
        Some(Value::True) => true,
        Some(other) => return Err(Wrong::bad("all", &other, "true, false or null")),
    };
    let mention = Mention { all, id: optional_text("id", id)?, name: optional_text("name", name)? };
    if !mention.all && mention.id.is_none() && mention.name.is_none() {
        let what = format!("names nobody, wanted {WANTED}");
        return Err(Wrong { reason: Reason::BadField, field: String::new(), what });
    }
    Ok(mention)
}

fn read_attachment(value: Value<'_>) -> Checked<Attachment<'_>> {
    let (mut id, mut name, mut mime, mut size, mut sha256, mut path, mut state) =
        (None, None, None, None, None, None, None);
    for Member { key, value, .. } in object("", value, "an object")? {
        match &*key {
            "id" => id = Some(value),
            "name" => name = Some(value),
            "mime" => mime = Some(value),
            "size" => size = Some(value),
            "sha256" => sha256 = Some(value),
            "path" => path = Some(value),
            "state" => state = Some(value),
            _ => {}
        }
    }
    Ok(Attachment {
        id: required_text("id", id, 0, usize::MAX)?,
        name: optional_text("name", name)?,
        mime: optional_text("mime", mime)?,
        size: present(size).map(|size| natural("size", &size)).transpose()?,
        sha256: optional_text("sha256", sha256)?,
        path: optional_text("path", path)?,
        state: word("state", state, AttachmentState::from_word, AttachmentState::WORDS)?,
    })
}

fn read_sequence(value: Value<'_>) -> Checked<Sequence<'_>> {
    let (mut index, mut predecessor) = (None, None);
    for Member { key, value, .. } in object("", value, "an object or null")? {
        match &*key {
            "index" => index = present(Some(value)),
            "predecessor" => predecessor = Some(value),
            _ => {}
        }
    }
    let position = |value: Value<'_>| {
        whole(&value, 0)
            .and_then(|number| i64::try_from(number).ok())
            .ok_or_else(|| Wrong::bad("index", &value, "a whole number of 64 bits or null"))
    };
    Ok(Sequence {
        index: index.map(position).transpose()?,
        predecessor: optional_text("predecessor", predecessor)?,
    })
}

/// Reads the rules of a selection; its window is free.
fn read_selection(value: Value<'_>) -> Checked<Vec<Cow<'_, str>>> {
    let members = object("", value, "an object or null")?;
    let rules = members.into_iter().find(|member| member.key == "rules").map(|member| member.value);
    list("rules", rules, |rule| match rule {
        Value::String(rule) => Ok(rule),
        other => Err(Wrong::bad("", &other, "a string")),
    })
}

/// Which of the contract's objects is being written.
#[derive(Clone, Copy)]
enum Shape {
    Event,
    Conversation,
    Sender,
    Mention,
    Attachment,
    Sequence,
    Selection,
    /// Nothing in it is defined by the contract.
    Free,
}

/// Which value of a field says no more than leaving it out.
#[derive(Clone, Copy)]
enum Absent {
    /// None: a required field or an unknown key.
    None,
    Null,
    NullOrFalse,
    NullOrNothing,
    NullOr(&'static str),
}

impl Absent {
    fn is(self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::None, _) => false,
            (_, Value::Null) | (Self::NullOrFalse, Value::False) => true,
            (Self::NullOrNothing, Value::Array(items)) => items.is_empty(),
            (Self::NullOr(word), Value::String(text)) => text == word,
            _ => false,
        }
    }
}

/// What the contract defines of a key: its default and the shape of its value or the value's items.
fn defined(shape: Shape, key: &str) -> (Absent, Shape) {
    match (shape, key) {
        (Shape::Event, "conversation") => (Absent::None, Shape::Conversation),
        (Shape::Event, "sender") => (Absent::None, Shape::Sender),
        (Shape::Event, "mentions") => (Absent::NullOrNothing, Shape::Mention),
        (Shape::Event, "attachments") => (Absent::NullOrNothing, Shape::Attachment),
        (Shape::Event, "sequence") => (Absent::Null, Shape::Sequence),
        (Shape::Event, "selection") => (Absent::Null, Shape::Selection),
        (Shape::Event, "state") => (Absent::NullOr("normal"), Shape::Free),
        (Shape::Event, "kind") => (Absent::NullOr("message"), Shape::Free),
        (Shape::Conversation, "type") | (Shape::Sender, "role") => (Absent::NullOr("unknown"), Shape::Free),
        (Shape::Mention, "all") => (Absent::NullOrFalse, Shape::Free),
        (Shape::Selection, "rules") => (Absent::NullOrNothing, Shape::Free),
        (Shape::Event, "message_id" | "reply_to" | "collected_at" | "source")
        | (Shape::Conversation, "name")
        | (Shape::Sender | Shape::Mention, "id" | "name")
        | (Shape::Attachment, "name" | "mime" | "size" | "sha256" | "path" | "state")
        | (Shape::Sequence, "index" | "predecessor")
        | (Shape::Selection, "window") => (Absent::Null, Shape::Free),
        _ => (Absent::None, Shape::Free),
    }
}

/// Writes a value in the event's canonical form.
fn write_value(out: &mut Vec<u8>, value: &Value<'_>, shape: Shape) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::True => out.extend_from_slice(b"true"),
        Value::False => out.extend_from_slice(b"false"),
        Value::Number(text) => json::write_number(out, text),
        Value::String(text) => json::write_text(out, text),
        Value::Array(items) => write_list(out, items, |out, item| write_value(out, item, shape)),
        Value::Object(members) => write_object(out, members, shape),
    }
}

/// Writes members, which stand sorted, without those at their default.
fn write_object(out: &mut Vec<u8>, members: &[Member<'_>], shape: Shape) {
    out.push(b'{');
    let start = out.len();
    for Member { key, value, .. } in members {
        let (absent, inner) = defined(shape, key);
        if absent.is(value) {
            continue;
        }
        if out.len() > start {
            out.push(b',');
        }
        json::write_text(out, key);
        out.push(b':');
        write_value(out, value, inner);
    }
    out.push(b'}');
}

fn write_list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Writes what the content hash is over: a list of a fixed order, so that no key is needed.
fn write_content(out: &mut Vec<u8>, event: &Event<'_>) {
    out.push(b'[');
    write_optional(out, event.sender_id.as_ref());
    out.push(b',');
    write_optional(out, event.reply_to.as_ref());
    // Writing into memory cannot fail.
    let _ = write!(out, ",\"{}\",\"{}\",{},", event.kind.as_str(), event.state.as_str(), event.sent_at);
    write_list(out, &event.mentions, |out, mention| {
        out.extend_from_slice(if mention.all { b"[true," } else { b"[false," });
        write_optional(out, mention.id.as_ref());
        out.push(b']');
    });
    out.push(b',');
    write_list(out, &event.attachments, |out, attachment| {
        out.push(b'[');
        json::write_text(out, &attachment.id);
        out.push(b',');
        write_optional(out, attachment.name.as_ref());
        out.push(b']');
    });
    out.push(b',');
    json::write_text(out, &event.text);
    out.push(b']');
}

fn write_optional(out: &mut Vec<u8>, text: Option<&Cow<'_, str>>) {
    match text {
        None => out.extend_from_slice(b"null"),
        Some(text) => json::write_text(out, text),
    }
}
