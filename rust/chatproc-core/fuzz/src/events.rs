//! The reader of events against a common JSON reader, and lines through the whole plan.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chatproc_core::agenda::plan_lines;
use chatproc_core::event::{Event, Reason, Refusal, read_event, read_strictly};
use chatproc_core::plan::{Batching, Options};
use chatproc_core::segment::Grouping;
use serde_json::Value;

use super::Bytes;
use super::common::{agenda_of, batches_of, intake_of};

/// Both readers tell the same of a line. They and `serde_json` take the same lines for JSON and read the same in them, and spelling an event
/// in another way changes neither of its hashes.
pub fn event(line: &[u8]) {
    let read = read_event(line);
    assert_eq!(read, read_strictly(line));
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        assert!(read.is_err(), "what no reader takes for JSON was accepted");
        return;
    };
    match &read {
        Ok(event) => assert_same(&value, event),
        Err(Refusal { reason, explanation, .. }) => {
            assert!(!matches!(reason, Reason::NotJson | Reason::NotUtf8), "{explanation}");
            assert_eq!(*reason == Reason::NotAnObject, !value.is_object(), "{explanation}");
            assert!(explanation.chars().count() < 1000 && !explanation.contains('\n'), "{explanation}");
        }
    }
    let text = std::str::from_utf8(line).unwrap();
    let again = respelled(text);
    assert_eq!(read_event(again.as_bytes()), read_strictly(again.as_bytes()));
    match (read, read_event(again.as_bytes())) {
        (Ok(event), Ok(again)) => {
            assert_eq!((event.event_hash, event.content_hash), (again.event_hash, again.content_hash));
        }
        (Err(refusal), Err(again)) => {
            assert_eq!(refusal.reason, again.reason);
            assert!(!refusal.of_event || refusal.identity == again.identity);
        }
        (one, other) => panic!("{:?} and, respelled, {:?}", one.err(), other.err()),
    }
}

#[allow(clippy::cast_precision_loss)] // the numbers of an event are below 2^53
fn assert_same(value: &Value, event: &Event<'_>) {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    assert_eq!(text("/event_id"), Some(&*event.event_id));
    assert_eq!(text("/message_key"), Some(&*event.message_key));
    assert_eq!(text("/platform"), Some(&*event.platform));
    assert_eq!(text("/account_id"), Some(&*event.account_id));
    assert_eq!(text("/conversation/id"), Some(&*event.conversation_id));
    assert_eq!(text("/conversation/name"), event.conversation_name.as_deref());
    assert_eq!(text("/message_id"), event.message_id.as_deref());
    assert_eq!(text("/sender/id"), event.sender_id.as_deref());
    assert_eq!(text("/sender/name"), event.sender_name.as_deref());
    assert_eq!(text("/text"), Some(&*event.text));
    assert_eq!(text("/reply_to"), event.reply_to.as_deref());
    assert_eq!(text("/state").unwrap_or("normal"), event.state.as_str());
    assert_eq!(text("/kind").unwrap_or("message"), event.kind.as_str());
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    let close = |told: Option<f64>, read: f64| (told.unwrap_or(0.0) - read).abs() < 0.000_5;
    assert!(close(number("/revision"), event.revision as f64));
    assert!(close(number("/sent_at"), event.sent_at as f64 / 1000.0));
    assert!(close(number("/collected_at"), event.collected_at as f64 / 1000.0));
    let count = |key: &str| value[key].as_array().map_or(0, Vec::len);
    assert_eq!((count("mentions"), count("attachments")), (event.mentions.len(), event.attachments.len()));
    for (place, file) in event.attachments.iter().enumerate() {
        assert_eq!(text(&format!("/attachments/{place}/id")), Some(&*file.id));
        assert_eq!(text(&format!("/attachments/{place}/path")), file.path.as_deref());
    }
    let sequence = event.sequence.as_ref();
    assert_eq!(sequence.is_some(), value["sequence"].is_object());
    assert_eq!(text("/sequence/predecessor"), sequence.and_then(|sequence| sequence.predecessor.as_deref()));
    assert_eq!(
        value.pointer("/selection/rules").and_then(Value::as_array).map_or(0, Vec::len),
        event.rules.len()
    );
}

/// The same values: every letter escaped, white space wherever it may stand, whole numbers with a point.
fn respelled(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    let (mut in_string, mut number) = (false, String::new());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                in_string = !in_string;
                out.push('"');
            }
            '\\' if in_string => {
                out.push('\\');
                let escape = letters.next().unwrap_or_default();
                out.push(escape);
                if escape == 'u' {
                    out.extend(letters.by_ref().take(4).map(|digit| digit.to_ascii_uppercase()));
                }
            }
            letter if in_string => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    write!(out, "\\u{unit:04x}").unwrap();
                }
            }
            '0'..='9' | '-' | '+' | '.' | 'e' | 'E'
                if letter.is_ascii_digit() || !number.is_empty() || letter == '-' =>
            {
                number.push(letter);
            }
            letter => out.push(letter),
        }
        let goes_on =
            letters.peek().is_some_and(|next| matches!(next, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        if !number.is_empty() && !goes_on {
            out.push_str(&number);
            if number.bytes().all(|byte| byte.is_ascii_digit()) {
                out.push_str(".00");
            }
            number.clear();
        }
        if !in_string && matches!(letter, '{' | '}' | '[' | ']' | ',' | ':') {
            out.push_str(" \t");
        }
    }
    out
}

/// Lines of any kind are planned: each message stands in one segment, budgets hold, every document is JSON
/// of the length it was planned with, and the order of lines changes nothing where none is refused.
pub fn plan_events(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let options = options(&mut bytes);
    let lines: Vec<&[u8]> = bytes.0.split(|byte| *byte == b'\n').take(64).collect();
    let plan = plan_lines(lines.iter().copied(), &options).unwrap();
    let list = |value: &Value, key: &str| value[key].as_array().unwrap().clone();
    let mut keys = BTreeSet::new();
    for segment in list(&plan, "segments") {
        for key in list(&segment, "messages") {
            assert!(keys.insert(key.to_string()), "{key} stands in two segments");
        }
    }
    let limit = options.max_conversation_chars.min(options.max_input_chars.saturating_sub(200));
    let groups = list(&plan, "groups");
    assert!(groups.iter().all(|group| group["chars"].as_u64().unwrap() <= limit));
    assert_eq!(plan, plan_lines(lines.iter().copied(), &options).unwrap());
    if list(&plan, "quarantined").is_empty() {
        let mut turned = plan_lines(lines.iter().rev().copied(), &options).unwrap();
        turned["counts"] = plan["counts"].clone();
        assert_eq!(plan["segments"], turned["segments"]);
        assert_eq!(plan["groups"], turned["groups"]);
        assert_eq!(plan["batches"], turned["batches"]);
    }
    documents_hold(&lines, &options);
}

fn documents_hold(lines: &[&[u8]], options: &Options) {
    let intake = intake_of(lines.iter().copied().filter(|line| !line.trim_ascii().is_empty()));
    let agenda = agenda_of(&intake, options);
    for batch in batches_of(&intake, &agenda, options) {
        let document: Value = serde_json::from_str(&batch.document).unwrap();
        assert!(batch.document.chars().count() as u64 <= options.max_input_chars);
        let conversations = document["conversations"].as_array().unwrap();
        assert_eq!(conversations.len(), batch.conversations.len());
        let shown = conversations.iter().flat_map(|one| one["segments"].as_array().unwrap());
        let shown = shown.flat_map(|one| one["messages"].as_array().unwrap());
        assert!(shown.clone().all(|one| batch.messages.contains_key(one["id"].as_str().unwrap())));
        assert_eq!(shown.count(), batch.messages.len());
        for word in ["message_key", "event_id", "account_id"] {
            assert!(document.get(word).is_none());
        }
    }
}

pub fn options(bytes: &mut Bytes<'_>) -> Options {
    Options {
        grouping: bytes.of(&[Grouping::Sql, Grouping::Time, Grouping::Session]),
        batching: bytes.of(&[Batching::Auto, Batching::SingleConversation]),
        start_at: bytes.of(&[0.0, 1_782_871_200.0]),
        max_conversation_chars: 300 + 50 * u64::from(bytes.byte()),
        max_input_chars: 600 + 100 * u64::from(bytes.byte()),
        carry_messages: u64::from(bytes.byte() % 6),
        max_messages: 1 + u64::from(bytes.byte() % 9),
        max_groups_per_round: 1 + u64::from(bytes.byte() % 9),
        ..Options::default()
    }
}
