//! Any line, by a tree of its values: an event, or the first thing wrong with it in the contract's order.

use std::borrow::Cow;

use super::bounds::{self, SCHEMA};
use super::canonical::{Shape, write_content, write_object};
use super::wrong::{Checked, Wrong, show};
use super::{
    Attachment, AttachmentState, ConversationType, Event, Kind, Mention, Reason, Refusal, Role, Sequence,
    State,
};
use crate::fingerprint::{Fingerprint, sha256};
use crate::json::{self, FaultKind, Member, Unreadable, Value};

const SECONDS: &str =
    "Unix seconds, a number from 0 to below 253402207200 (a date of the year 9999), with at most 3 decimals";

/// Reads one line as [`super::read_event`] does, whatever it holds: slower, and what that is held against.
pub fn read_strictly(line: &[u8]) -> Result<Event<'_>, Refusal> {
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
    let named = matches!(&fields.event_id, Some(Value::String(id)) if bounds::is_length(id, 1, 256));
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
        Value::String(text) if bounds::is_length(&text, least, most) => Ok(text),
        other if most == usize::MAX => Err(Wrong::bad(field, &other, "a string")),
        Value::String(text) => Err(Wrong {
            reason: Reason::BadField,
            field: field.to_owned(),
            what: format!("has {} characters, wanted {least} to {most}", text.chars().count()),
        }),
        other => Err(Wrong::bad(field, &other, &format!("a string of {least} to {most} characters"))),
    }
}

fn natural(field: &str, value: &Value<'_>) -> Checked<u64> {
    number(field, value, bounds::natural, "a whole number from 0 to 9007199254740991")
}

fn seconds(field: &str, value: &Value<'_>) -> Checked<i64> {
    number(field, value, bounds::seconds, SECONDS)
}

fn number<T>(field: &str, value: &Value<'_>, meaning: fn(&str) -> Option<T>, wanted: &str) -> Checked<T> {
    let known = if let Value::Number(text) = value { meaning(text) } else { None };
    known.ok_or_else(|| Wrong::bad(field, value, wanted))
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
    match value.unwrap_or(Value::Null) {
        Value::String(text) if bounds::is_platform(&text) => Ok(text),
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
    let position =
        |value: Value<'_>| number("index", &value, bounds::position, "a whole number of 64 bits or null");
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
