//! The bytes that an event's two hashes are over.

use std::borrow::Cow;
use std::io::Write as _;

use super::Event;
use crate::json::{self, Member, Value};

/// Which of the contract's objects is being written.
#[derive(Clone, Copy)]
pub enum Shape {
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
pub fn write_value(out: &mut Vec<u8>, value: &Value<'_>, shape: Shape) {
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
pub fn write_object(out: &mut Vec<u8>, members: &[Member<'_>], shape: Shape) {
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
pub fn write_content(out: &mut Vec<u8>, event: &Event<'_>) {
    out.push(b'[');
    write_optional(out, event.sender_id.as_ref());
    out.push(b',');
    write_optional(out, event.reply_to.as_ref());
    out.extend_from_slice(b",\"");
    out.extend_from_slice(event.kind.as_str().as_bytes());
    out.extend_from_slice(b"\",\"");
    out.extend_from_slice(event.state.as_str().as_bytes());
    // Writing into memory cannot fail.
    let _ = write!(out, "\",{},", event.sent_at);
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
