//! What a message costs: exactly the characters it takes in a request, whatever its number there.
//!
//! Pure. The same code renders a message for a request and measures it, so that no estimate is needed:
//! a document is never longer than the sum of its parts' costs.

use std::fmt::Write as _;

use crate::event::FileFacts;
use crate::event::{Attachment, AttachmentState, Event, Kind, Role, State};

/// Characters reserved for a document around its conversations.
pub const DOCUMENT: u64 = 200;
/// Characters reserved for a conversation around its segments.
pub const CONVERSATION: u64 = 160;
/// Characters reserved for a segment around its messages.
pub const SEGMENT: u64 = 64;
/// Characters that the mark of a history message takes.
pub const HISTORY: u32 = 15;
/// Messages, and attachments, that one document can number within their cost.
pub const MAX_REFS: usize = 9_999;

/// That mark.
const HISTORY_MARK: &str = r#","history":true"#;
const _: () = assert!(HISTORY_MARK.len() == HISTORY as usize);
const MESSAGE_REF: &str = "m0000";
const FILE_REF: &str = "f0000";
/// What a time looks like; every time has this many characters.
const TIME: &str = "2026-07-01T10:00:00+08:00";
/// Room for `#99` behind a name that two senders share.
const NAMESAKE: u32 = 3;

/// A message's variable parts in one request.
pub struct Shown<'a> {
    /// Its number there, as `m1`.
    pub id: &'a str,
    /// Its time in the rules' zone.
    pub time: &'a str,
    /// The sender's name, told apart from namesakes.
    pub sender: Option<&'a str>,
    /// Whether it is shown as history.
    pub history: bool,
    /// The number of the message it answers, when that is in the group.
    pub reply_to: Option<&'a str>,
    /// The numbers of its attachments.
    pub files: &'a [String],
}

/// Characters of a message in any request: its JSON with four-digit numbers, a comma, and its
/// attachments' entries. A system notice is never sent and costs nothing.
#[must_use]
pub fn message_cost(event: &Event<'_>, facts: &[FileFacts]) -> u32 {
    if event.kind == Kind::System {
        return 0;
    }
    let files = vec![FILE_REF.to_owned(); visible_files(event).len()];
    let shown = Shown {
        id: MESSAGE_REF,
        time: TIME,
        sender: sender_name(event),
        history: false,
        reply_to: event.reply_to.as_ref().map(|_| MESSAGE_REF),
        files: &files,
    };
    let mut text = String::with_capacity(128 + event.text.len());
    write_message(&mut text, event, &shown);
    text.push(',');
    for (number, file) in visible_files(event).iter().enumerate() {
        write_file(&mut text, file, facts.get(number), FILE_REF);
        text.push(',');
    }
    let namesake = if sender_name(event).is_some() { NAMESAKE } else { 0 };
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX).saturating_add(namesake)
}

/// The attachments that a model may see: none of a recalled message.
#[must_use]
pub fn visible_files<'e, 'a>(event: &'e Event<'a>) -> &'e [Attachment<'a>] {
    if event.state == State::Recalled { &[] } else { &event.attachments }
}

/// The sender's name as far as there is one to show: an empty one is none.
#[must_use]
pub fn sender_name<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    event.sender_name.as_deref().filter(|name| !name.is_empty())
}

/// Writes a message as it is sent. Keys that are null, false or empty are left out.
pub fn write_message(out: &mut String, event: &Event<'_>, shown: &Shown<'_>) {
    let _ = write!(out, r#"{{"id":"{}","time":"{}""#, shown.id, shown.time);
    if let Some(sender) = shown.sender {
        out.push_str(r#","sender":"#);
        write_string(out, sender);
    }
    let flags = [
        ("self", event.role == Role::SelfRole),
        ("history", shown.history),
        ("edited", event.state == State::Edited),
        ("recalled", event.state == State::Recalled),
        ("mentions_me", mentions_account(event)),
    ];
    for (name, _) in flags.iter().filter(|(_, set)| *set) {
        let _ = write!(out, r#","{name}":true"#);
    }
    if let Some(target) = shown.reply_to {
        let _ = write!(out, r#","reply_to":"{target}""#);
    }
    if event.state != State::Recalled && !event.text.is_empty() {
        out.push_str(r#","text":"#);
        write_string(out, &event.text);
    }
    if !shown.files.is_empty() {
        let _ = write!(out, r#","attachments":["{}"]"#, shown.files.join(r#"",""#));
    }
    out.push('}');
}

/// Writes an attachment's entry in a request's index.
pub fn write_file(out: &mut String, file: &Attachment<'_>, facts: Option<&FileFacts>, reference: &str) {
    let _ = write!(out, r#"{{"ref":"{reference}""#);
    if let Some(name) = &file.name {
        out.push_str(r#","name":"#);
        write_string(out, name);
    }
    out.push_str(r#","type":"#);
    write_string(out, &file_type(file.name.as_deref(), file.mime.as_deref()));
    if let Some(size) = facts.and_then(|facts| facts.size).or(file.size) {
        let _ = write!(out, r#","size":{size}"#);
    }
    let _ = write!(out, r#","available":{}}}"#, available(file));
}

/// Whether the archive is said to hold the attachment.
#[must_use]
pub fn available(file: &Attachment<'_>) -> bool {
    file.path.is_some() && matches!(file.state, None | Some(AttachmentState::Present))
}

/// The type shown of an attachment: its name's suffix in lower case, else by MIME type, else `file`.
#[must_use]
pub fn file_type(name: Option<&str>, mime: Option<&str>) -> String {
    let suffix = name.and_then(|name| name.rsplit_once('.')).map(|(_, suffix)| suffix.to_lowercase());
    if let Some(suffix) = suffix
        && (1..=16).contains(&suffix.chars().count())
        && suffix.chars().all(char::is_alphanumeric)
    {
        return suffix;
    }
    let Some(mime) = mime else { return "file".to_owned() };
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = match mime.as_str() {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/msword" => "doc",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.ms-powerpoint" => "ppt",
        "application/octet-stream" => "file",
        "text/plain" => "txt",
        "text/markdown" => "md",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    match mime.split_once('/') {
        Some((_, kind))
            if (1..=16).contains(&kind.len()) && kind.chars().all(|c| c.is_ascii_alphanumeric()) =>
        {
            kind.to_owned()
        }
        _ => "file".to_owned(),
    }
}

fn mentions_account(event: &Event<'_>) -> bool {
    event.mentions.iter().any(|mention| {
        mention.all
            || (!event.account_id.is_empty() && mention.id.as_deref() == Some(event.account_id.as_ref()))
    })
}

/// Writes a JSON string with no escape beyond JSON's own.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}
