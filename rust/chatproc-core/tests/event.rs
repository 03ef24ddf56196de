//! What of a collector's line is accepted, what is refused and why, and what the two hashes see.
//! Every line is read in both ways, which must tell the same. The oracle for JSON is `serde_json`; every departure from it is named where it is made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::time::Duration;

use chatproc_core::event::{
    AttachmentState, ConversationType, Event, Kind, Mention, Reason, Refusal, Role, Sequence, State,
    read_strictly,
};
use chatproc_core::fingerprint;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

/// The contract's example.
fn full() -> Value {
    json!({
        "schema": "chatproc.event/1", "event_id": "8f3c", "message_key": "qq:10000:999000:7550123",
        "revision": 0, "state": "normal", "kind": "message", "platform": "qq", "account_id": "10000",
        "conversation": {"id": "999000", "name": "实验室", "type": "group"},
        "message_id": "7550123", "sent_at": 1_782_871_200,
        "sender": {"id": "10001", "name": "王老师", "role": "user"},
        "text": "请大家周五 17:00 前把报告交到 302", "mentions": [{"all": true}], "reply_to": null,
        "attachments": [{"id": "a1", "name": "模板.docx", "mime": "application/x", "size": 20480,
            "sha256": "ab", "path": "2026/07/模板.docx", "state": "present"}],
        "sequence": {"index": 665_034, "predecessor": "qq:10000:999000:7550122"},
        "selection": {"rules": ["mentions-all"], "window": [1_782_867_600, 1_782_874_800]},
        "collected_at": 1_782_871_260,
        "source": {"module": "qq-nt", "detail": "…", "database": "nt_msg.db", "local_id": 4412},
    })
}

/// Only what is required.
fn least() -> Value {
    json!({
        "schema": "chatproc.event/1", "event_id": "e", "message_key": "k", "revision": 0, "platform": "qq",
        "account_id": "", "conversation": {"id": ""}, "sent_at": 0, "sender": {}, "text": "",
    })
}

/// The document with the value at a pointer's place set, written as given: JSON text, so that numbers
/// and escapes stand as they are.
fn with(document: &Value, pointer: &str, text: &str) -> String {
    const MARK: &str = "\u{1}place\u{1}";
    let mut document = document.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.insert(key.to_owned(), MARK.into())),
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = MARK.into(),
        _ => panic!("{parent} holds nothing"),
    }
    document.to_string().replace(&Value::from(MARK).to_string(), text)
}

fn without(document: &Value, pointer: &str) -> String {
    let mut document = document.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    assert!(document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).is_some());
    document.to_string()
}

/// Reads a line in both ways, which must tell the same of it.
#[track_caller]
fn read_event(line: &[u8]) -> Result<Event<'_>, Refusal> {
    let read = chatproc_core::event::read_event(line);
    assert_eq!(read, read_strictly(line), "{}", String::from_utf8_lossy(line));
    read
}

#[track_caller]
fn accepted(line: &str) -> Event<'_> {
    read_event(line.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal:?}: {line}"))
}

#[track_caller]
fn refused(line: impl AsRef<[u8]>) -> Refusal {
    let line = line.as_ref();
    let refusal = read_event(line).expect_err(&String::from_utf8_lossy(line));
    assert!(!refusal.explanation.is_empty());
    assert!(!refusal.explanation.chars().any(char::is_control), "{:?}", refusal.explanation);
    assert!(refusal.explanation.chars().count() < 400, "{}", refusal.explanation);
    refusal
}

#[track_caller]
fn assert_refused(line: impl AsRef<[u8]>, reason: Reason, explanation: &str) {
    let refusal = refused(line);
    assert_eq!(refusal.reason, reason, "{}", refusal.explanation);
    assert!(refusal.explanation.contains(explanation), "{:?} lacks {explanation:?}", refusal.explanation);
}

#[test]
fn the_contracts_example_is_read_whole() {
    let line = full().to_string();
    let event = accepted(&line);
    assert_eq!((&*event.event_id, &*event.message_key), ("8f3c", "qq:10000:999000:7550123"));
    assert_eq!((event.revision, event.state, event.kind), (0, State::Normal, Kind::Message));
    assert_eq!((&*event.platform, &*event.account_id, &*event.conversation_id), ("qq", "10000", "999000"));
    assert_eq!(event.conversation_name.as_deref(), Some("实验室"));
    assert_eq!(event.conversation_type, ConversationType::Group);
    assert_eq!(event.message_id.as_deref(), Some("7550123"));
    assert_eq!((event.sent_at, event.collected_at), (1_782_871_200_000, 1_782_871_260_000));
    assert_eq!((event.sender_id.as_deref(), event.sender_name.as_deref()), (Some("10001"), Some("王老师")));
    assert_eq!((event.role, event.reply_to), (Role::User, None));
    assert_eq!(event.text, "请大家周五 17:00 前把报告交到 302");
    assert_eq!(event.mentions, [Mention { all: true, id: None, name: None }]);
    let attachment = &event.attachments[0];
    assert_eq!((&*attachment.id, attachment.name.as_deref()), ("a1", Some("模板.docx")));
    assert_eq!((attachment.size, attachment.sha256.as_deref()), (Some(20480), Some("ab")));
    assert_eq!(attachment.path.as_deref(), Some("2026/07/模板.docx"));
    assert_eq!(
        (attachment.mime.as_deref(), attachment.state),
        (Some("application/x"), Some(AttachmentState::Present))
    );
    let predecessor = Some("qq:10000:999000:7550122".into());
    assert_eq!(event.sequence, Some(Sequence { index: Some(665_034), predecessor }));
    assert_eq!(event.rules, ["mentions-all"]);
}

#[test]
fn the_least_event_gets_the_defaults() {
    let line = least().to_string();
    let event = accepted(&line);
    assert_eq!((event.state, event.kind, event.role), (State::Normal, Kind::Message, Role::Unknown));
    assert_eq!(event.conversation_type, ConversationType::Unknown);
    assert_eq!((event.collected_at, event.sent_at), (0, 0));
    assert!(event.mentions.is_empty() && event.attachments.is_empty() && event.rules.is_empty());
    assert_eq!((event.sequence, event.sender_id, event.conversation_name), (None, None, None));
}

#[test]
fn what_is_within_bounds_is_accepted() {
    let longest_id = format!("\"{}\"", "界".repeat(256));
    let longest_key = format!("\"{}\"", "🎉".repeat(512));
    let longest_platform = format!("\"{}\"", "a".repeat(32));
    for (pointer, text) in [
        ("/event_id", longest_id.as_str()),
        ("/message_key", &longest_key),
        ("/platform", &longest_platform),
        ("/platform", "\"a-z_09\""),
        ("/revision", "9007199254740991"),
        ("/revision", "1.0"),
        ("/revision", "10e-1"),
        ("/revision", "-0"),
        ("/revision", "9007199254740991.000"),
        ("/state", "null"),
        ("/state", "\"recalled\""),
        ("/kind", "\"system\""),
        ("/account_id", "\"\""),
        ("/conversation/name", "null"),
        ("/conversation/type", "null"),
        ("/conversation/type", "\"mailbox\""),
        ("/message_id", "null"),
        ("/sent_at", "1.5e3"),
        ("/sent_at", "0.001"),
        ("/sent_at", "1782871200.250"),
        ("/sent_at", "0e999999999999999999999"),
        ("/sent_at", "253402207199.999"),
        ("/sender", "{}"),
        ("/sender", "{\"id\":null,\"name\":null,\"role\":null}"),
        ("/sender/role", "\"self\""),
        ("/text", "\"\""),
        ("/text", "\"a\\u0000b\\ud83c\\udf89\\/\""),
        ("/mentions", "null"),
        (
            "/mentions",
            "[{\"id\":\"1\",\"all\":false},{\"name\":\"x\",\"id\":null},{\"all\":true,\"name\":null}]",
        ),
        ("/reply_to", "\"k\""),
        ("/attachments", "null"),
        ("/attachments/0", "{\"id\":\"\"}"),
        ("/attachments/0/size", "9007199254740991"),
        ("/attachments/0/size", "null"),
        ("/attachments/0/state", "null"),
        ("/sequence", "null"),
        ("/sequence", "{}"),
        ("/sequence/index", "-9223372036854775808"),
        ("/sequence/index", "9223372036854775807"),
        ("/sequence/index", "null"),
        ("/sequence/predecessor", "null"),
        ("/selection", "null"),
        ("/selection", "{\"rules\":null,\"window\":\"any\"}"),
        ("/collected_at", "null"),
        ("/collected_at", "1.001"),
        ("/source", "null"),
        ("/source", "{}"),
        ("/unknown", "1e-99999999"),
        ("/unknown", "1e308"),
        ("/unknown", "\"\\u007f\\uffff\""),
    ] {
        accepted(&with(&full(), pointer, text));
    }
    let text = with(&least(), "/text", "\"a\\u0000\\ud83c\\udf89\\/\\b\\f\\n\\r\\t\\\"\\\\\"");
    assert_eq!(accepted(&text).text, "a\0🎉/\u{8}\u{c}\n\r\t\"\\");
}

#[test]
fn every_bad_field_is_named_with_what_was_found_and_what_is_wanted() {
    let too_long_id = format!("\"{}\"", "界".repeat(257));
    let too_long_key = format!("\"{}\"", "k".repeat(513));
    let too_long_platform = format!("\"{}\"", "a".repeat(33));
    for (pointer, text, explanation) in [
        ("/event_id", "\"\"", "`event_id` has 0 characters, wanted 1 to 256"),
        ("/event_id", &too_long_id, "`event_id` has 257 characters"),
        ("/event_id", "7", "`event_id` is 7, wanted a string"),
        ("/message_key", &too_long_key, "`message_key` has 513 characters, wanted 1 to 512"),
        ("/message_key", "null", "`message_key` is null"),
        ("/revision", "-1", "`revision` is -1, wanted a whole number"),
        ("/revision", "9007199254740992", "`revision` is 9007199254740992"),
        ("/revision", "1.5", "`revision` is 1.5"),
        ("/revision", "1e300", "`revision` is 1e300"),
        ("/revision", "\"1\"", "`revision` is \"1\""),
        ("/revision", "true", "`revision` is true"),
        ("/revision", "null", "`revision` is null"),
        ("/state", "\"Normal\"", "`state` is \"Normal\", wanted one of: normal edited recalled"),
        ("/kind", "1", "wanted one of: message system"),
        ("/platform", "\"\"", "`platform` is \"\""),
        ("/platform", "\"QQ\"", "`platform` is \"QQ\", wanted 1 to 32 of"),
        ("/platform", &too_long_platform, "`platform`"),
        ("/account_id", "null", "`account_id` is null, wanted a string"),
        ("/conversation", "null", "`conversation` is null, wanted an object"),
        ("/conversation/id", "null", "`conversation.id` is null, wanted a string"),
        ("/conversation/name", "[]", "`conversation.name` is a list"),
        ("/conversation/type", "\"club\"", "`conversation.type` is \"club\""),
        ("/message_id", "7550123", "`message_id` is 7550123, wanted a string or null"),
        ("/sent_at", "-1", "`sent_at` is -1, wanted Unix seconds"),
        ("/sent_at", "1.0005", "`sent_at` is 1.0005"),
        ("/sent_at", "1e-400", "`sent_at` is 1e-400"),
        ("/sent_at", "253402207200", "253402207200"),
        ("/sent_at", "\"2026-07-01\"", "`sent_at` is \"2026-07-01\""),
        ("/sender", "null", "`sender` is null, wanted an object"),
        ("/sender/id", "1", "`sender.id` is 1"),
        ("/sender/role", "\"admin\"", "`sender.role` is \"admin\", wanted one of: user self bot"),
        ("/text", "null", "`text` is null, wanted a string"),
        ("/mentions", "{}", "`mentions` is an object, wanted a list or null"),
        ("/mentions", "[{\"id\":\"1\"},\"王\"]", "`mentions[1]` is \"王\""),
        ("/mentions", "[{}]", "`mentions[0]` names nobody"),
        ("/mentions", "[{\"all\":false,\"id\":null}]", "`mentions[0]` names nobody"),
        ("/mentions", "[{\"all\":1}]", "`mentions[0].all` is 1"),
        ("/mentions", "[{\"id\":1}]", "`mentions[0].id` is 1"),
        ("/reply_to", "1", "`reply_to` is 1"),
        ("/attachments", "[null]", "`attachments[0]` is null"),
        ("/attachments/0/id", "null", "`attachments[0].id` is null"),
        ("/attachments/0/size", "-1", "`attachments[0].size` is -1"),
        ("/attachments/0/size", "0.5", "`attachments[0].size` is 0.5"),
        ("/attachments/0/state", "\"here\"", "wanted one of: present missing not_exported expired"),
        ("/sequence", "1", "`sequence` is 1, wanted an object or null"),
        ("/sequence/index", "9223372036854775808", "`sequence.index`"),
        ("/sequence/index", "0.1", "`sequence.index` is 0.1"),
        ("/sequence/predecessor", "0", "`sequence.predecessor` is 0"),
        ("/selection", "[]", "`selection` is a list"),
        ("/selection/rules", "\"all\"", "`selection.rules` is \"all\""),
        ("/selection/rules", "[\"a\",null]", "`selection.rules[1]` is null, wanted a string"),
        ("/collected_at", "-0.001", "`collected_at` is -0.001"),
        ("/source", "\"qq\"", "`source` is \"qq\""),
        // What only the reader of JSON sees, anywhere in the line.
        ("/unknown", "NaN", "`unknown` is NaN"),
        ("/source/x", "[0,{\"y\":Infinity}]", "`source.x[1].y` is Infinity"),
        ("/sent_at", "-Infinity", "`sent_at` is -Infinity"),
        ("/unknown", "1e309", "`unknown` is 1e309, which is beyond a 64-bit float"),
        ("/unknown", "1e-1000000000000000000", "beyond a 64-bit float"),
        ("/text", "\"\\ud83c\"", "`text` has the lone surrogate \\ud83c"),
        ("/text", "\"\\udf89\\ud83c\"", "`text` has the lone surrogate \\udf89"),
        ("/text", "\"\\ud83c\\ud83c\\udf89\"", "`text` has the lone surrogate \\ud83c"),
        ("/text", "\"\\ud83cx\"", "`text` has the lone surrogate"),
        ("/source", "{\"\\ud800\":1,\"\\ud801\":1}", "has the lone surrogate \\ud800"),
    ] {
        assert_refused(with(&full(), pointer, text), Reason::BadField, explanation);
    }
}

#[test]
fn every_missing_field_is_named_and_an_unknown_schema_comes_before() {
    for field in [
        "schema",
        "event_id",
        "message_key",
        "revision",
        "platform",
        "account_id",
        "conversation",
        "conversation/id",
        "sent_at",
        "sender",
        "text",
    ] {
        let explanation = format!("`{}` is missing", field.replace('/', "."));
        assert_refused(without(&full(), &format!("/{field}")), Reason::MissingField, &explanation);
    }
    assert_refused(without(&full(), "/attachments/0/id"), Reason::MissingField, "`attachments[0].id`");
    assert_refused("{}", Reason::MissingField, "`schema` is missing");
    let found = "`schema` is \"chatproc.event/2\", wanted \"chatproc.event/1\"";
    assert_refused(with(&full(), "/schema", "\"chatproc.event/2\""), Reason::SchemaUnknown, found);
    assert_refused("{\"schema\":null}", Reason::SchemaUnknown, "`schema` is null");
}

#[test]
fn what_is_no_json_says_where_and_why() {
    for (line, explanation) in [
        ("", "at byte 0 is the end, wanted a value"),
        ("{", "wanted a key"),
        ("{\"a\":1,}", "at byte 7 is \"}\", wanted a key"),
        ("{\"a\" 1}", "wanted `:`"),
        ("[1 2]", "wanted `,` or `]`"),
        ("[1,]", "wanted a value"),
        ("{}{}", "at byte 2 is \"{\", wanted nothing more"),
        ("{'a':1}", "wanted a key"),
        ("{\"a\":01}", "wanted `,` or `}`"),
        ("{\"a\":1.}", "wanted a digit"),
        ("{\"a\":-}", "wanted a digit"),
        ("{\"a\":-NaN}", "wanted a digit"),
        ("{\"a\":1e+}", "wanted a digit"),
        ("{\"a\":+1}", "wanted a value"),
        ("{\"a\":nul}", "wanted a value"),
        ("{\"a\":\"\\x\"}", "wanted an escape"),
        ("{\"a\":\"\\u12g4\"}", "wanted four hexadecimal digits"),
        ("{\"a\":\"\\u12界\"}", "is \"界\", wanted four hexadecimal digits"),
        ("{\"a\":\"\t\"}", "is \"\\t\", wanted control characters as escapes"),
        ("{\"a\":\"b", "wanted the end of the string"),
        ("{\"a\":\"b\u{1b}[2J\"}", "is \"\\u{1b}\""),
        ("\u{feff}{}", "wanted a value"),
        ("{\"a\":1}\0", "wanted nothing more"),
        ("\0\0\0\0", "wanted a value"),
        ("{\"a\":\u{a0}1}", "wanted a value"),
    ] {
        assert_refused(line, Reason::NotJson, explanation);
    }
    for scalar in ["1", "\"x\"", "null", "[]", "[{}]", "NaN", " true "] {
        assert_refused(scalar, Reason::NotAnObject, "wanted an object");
    }
}

#[test]
fn utf16_is_named_and_other_bytes_are_shown() {
    let little: Vec<u8> = full().to_string().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = full().to_string().encode_utf16().flat_map(u16::to_be_bytes).collect();
    // What is left of the lines of a file that was split at the byte of the line feed.
    let next_of_little = [b"\0", &*little].concat();
    for line in [&little, &big, &next_of_little, &[b"\xff\xfe", &*little].concat(), &vec![0]] {
        assert_refused(line, Reason::NotUtf8, "UTF-16");
    }
    assert_refused(b"{\"a\":\"\xff\"}", Reason::NotUtf8, "byte 6 (0xff) is not UTF-8");
    assert_refused(b"{\"a\":\"\xed\xa0\x80\"}", Reason::NotUtf8, "byte 6 (0xed)");
    assert_refused("{\"a\":\"实".as_bytes().split_last().unwrap().1, Reason::NotUtf8, "byte 6");
}

/// The faults that one line can have at once, in the contract's order.
#[test]
fn of_several_faults_the_first_of_the_contracts_order_is_told() {
    let deep = format!("{}0{}", "[".repeat(64), "]".repeat(64));
    let faults: [(Reason, &str); 5] = [
        (Reason::TooDeep, &format!("\"d\":{deep}")),
        (Reason::DuplicateKey, "\"twice\":{\"a\":1,\"\\u0061\":2}"),
        (Reason::SchemaUnknown, "\"schema\":\"other\""),
        (Reason::MissingField, "\"event_id\":\"e\""), // and nothing else
        (Reason::BadField, "\"x\":NaN"),
    ];
    for (first, (reason, text)) in faults.iter().enumerate() {
        for (later, other) in &faults[first + 1..] {
            for line in [format!("{{{text},{other}}}"), format!("{{{other},{text}}}")] {
                // Only a known schema lets a later reason be told.
                let schema = if first > 2 { "{\"schema\":\"chatproc.event/1\"," } else { "{" };
                let line = format!("{schema}{}", &line[1..]);
                assert_refused(&line, *reason, "");
                assert_refused(format!("{line},"), Reason::NotJson, "");
                assert_refused(format!("[{line}]"), Reason::NotAnObject, "");
                assert_refused([line.as_bytes(), b"\xff"].concat(), Reason::NotUtf8, "");
                assert_ne!(reason, later);
            }
        }
    }
    // A bad field stands before a missing one, and is told after it.
    let line = with(&serde_json::from_str(&without(&full(), "/text")).unwrap(), "/revision", "-1");
    assert_refused(line, Reason::MissingField, "`text`");
    let line = with(&serde_json::from_str(&without(&full(), "/text")).unwrap(), "/conversation", "null");
    assert_refused(line, Reason::MissingField, "`text`");
    // What only the reader sees is a bad field like others.
    let line = with(&serde_json::from_str(&without(&full(), "/text")).unwrap(), "/revision", "1e999");
    assert_refused(line, Reason::MissingField, "`text`");
}

#[test]
fn the_object_is_the_first_of_64_levels() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for nest in [nested, objects] {
        accepted(&with(&full(), "/unknown", &nest(63)));
        assert_refused(with(&full(), "/unknown", &nest(64)), Reason::TooDeep, "deeper than 64 levels");
    }
    accepted(&with(&full(), "/source/x", &nested(62)));
    assert_refused(with(&full(), "/source/x", &nested(63)), Reason::TooDeep, "`source.x[0]");
}

#[test]
fn duplicate_keys_are_seen_everywhere_after_unescaping() {
    let line = full().to_string();
    let again = format!("{},\"te\\u0078t\":\"\"}}", line.strip_suffix('}').unwrap());
    assert_refused(again, Reason::DuplicateKey, "has the key \"text\" twice");
    let nested = with(&full(), "/source", "{\"x\":[1,{\"k\":1,\"\":2,\"\":3}]}");
    assert_refused(nested, Reason::DuplicateKey, "`source.x[1]` has the key \"\" twice");
    accepted(&with(&full(), "/source", "{\"a\":1,\"a\\u0000\":2,\"abcdefgh\":3,\"abcdefghi\":4,\"\":5}"));
}

#[test]
fn numbers_are_hashed_by_exact_value() {
    let hash = |text: &str| accepted(&with(&least(), "/unknown", text)).event_hash;
    for equal in [
        &["1", "1.0", "10e-1", "0.1E+1", "1e0", "100e-2"][..],
        &["0", "-0", "0.0", "0e5", "-0.0e-99", "0e99999999999999999999"],
        &["120", "1.2e2", "12e1", "120.00"],
        &["-1.5", "-15e-1", "-0.0015e3"],
        &["1e21", "1000000000000000000000", "1000000000000000000000.0"],
        &["1e-99999999", "0.1e-99999998", "10e-100000000"],
        &["123456789012345678901234567890", "12345678901234567890123456789e1"],
    ] {
        for text in equal {
            assert_eq!(hash(text), hash(equal[0]), "{text}");
        }
    }
    for (left, right) in [
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740992.0"),
        ("1", "-1"),
        ("1", "true"),
        ("1", "\"1\""),
        ("1e-99999999", "0"),
        ("1e-99999999", "1e-99999998"),
        ("0.1", "0.10000000000000001"),
        ("1e21", "1e22"),
        ("123456789012345678901", "123456789012345678902"),
    ] {
        assert_ne!(hash(left), hash(right), "{left} {right}");
    }
    // A defined number is by value, too.
    let (whole, fraction) = (with(&full(), "/revision", "1"), with(&full(), "/revision", "1.0"));
    assert_eq!(accepted(&whole), accepted(&fraction));
}

#[test]
fn a_defined_field_at_its_default_is_as_one_left_out() {
    let hash = |line: &str| accepted(line).event_hash;
    let full = full();
    for (pointer, default) in [
        ("/state", "\"normal\""),
        ("/kind", "\"message\""),
        ("/conversation/name", "null"),
        ("/conversation/type", "\"unknown\""),
        ("/message_id", "null"),
        ("/sender/id", "null"),
        ("/sender/name", "null"),
        ("/sender/role", "\"unknown\""),
        ("/mentions", "[]"),
        ("/reply_to", "null"),
        ("/attachments", "[]"),
        ("/attachments/0/name", "null"),
        ("/attachments/0/mime", "null"),
        ("/attachments/0/size", "null"),
        ("/attachments/0/sha256", "null"),
        ("/attachments/0/path", "null"),
        ("/attachments/0/state", "null"),
        ("/sequence", "null"),
        ("/sequence/index", "null"),
        ("/sequence/predecessor", "null"),
        ("/selection", "null"),
        ("/selection/rules", "[]"),
        ("/selection/window", "null"),
        ("/collected_at", "null"),
        ("/source", "null"),
    ] {
        let left_out = without(&full, pointer);
        assert_eq!(hash(&with(&full, pointer, default)), hash(&left_out), "{pointer} {default}");
        assert_eq!(hash(&with(&full, pointer, "null")), hash(&left_out), "{pointer} null");
    }
    let everyone = with(&full, "/mentions", "[{\"id\":\"1\"}]");
    assert_eq!(
        hash(&with(&full, "/mentions", "[{\"id\":\"1\",\"all\":false,\"name\":null}]")),
        hash(&everyone)
    );
    // A first message has proof of its position, one without sequence has none.
    assert_ne!(hash(&with(&full, "/sequence", "{}")), hash(&without(&full, "/sequence")));
    // An unknown key has no default, nor has a defined one where the contract does not define it.
    for pointer in ["/x", "/conversation/x", "/attachments/0/x", "/source/state", "/sender/state"] {
        assert_ne!(hash(&with(&full, pointer, "null")), hash(&full.to_string()), "{pointer}");
    }
}

#[test]
fn the_event_hash_sees_every_key_and_the_content_hash_only_what_is_said() {
    let original = full().to_string();
    let original = accepted(&original);
    let said = [
        ("/kind", "\"system\""),
        ("/state", "\"edited\""),
        ("/sent_at", "1"),
        ("/sender/id", "\"2\""),
        ("/sender/id", "null"),
        ("/text", "\"other\""),
        ("/mentions", "[]"),
        ("/mentions", "[{\"id\":\"1\"}]"),
        ("/reply_to", "\"k\""),
        ("/reply_to", "\"null\""),
        ("/attachments", "[]"),
        ("/attachments/0/id", "\"a2\""),
        ("/attachments/0/name", "null"),
    ];
    let unsaid = [
        ("/event_id", "\"other\""),
        ("/account_id", "\"other\""),
        ("/conversation/name", "\"other\""),
        ("/message_id", "null"),
        ("/sender/name", "\"other\""),
        ("/sender/role", "\"bot\""),
        ("/mentions", "[{\"all\":true,\"name\":\"全体\"}]"),
        ("/attachments/0/size", "null"),
        ("/attachments/0/sha256", "null"),
        ("/attachments/0/path", "\"elsewhere\""),
        ("/attachments/0/state", "\"missing\""),
        ("/sequence", "null"),
        ("/selection/rules", "[]"),
        ("/selection/window", "null"),
        ("/collected_at", "1"),
        ("/source/x", "1"),
        ("/unknown", "1"),
        ("/attachments/0/unknown", "{}"),
        ("/mentions/0/unknown", "0"),
    ];
    for (changes, pointer, text) in said
        .map(|(pointer, text)| (true, pointer, text))
        .into_iter()
        .chain(unsaid.map(|(pointer, text)| (false, pointer, text)))
    {
        let line = with(&full(), pointer, text);
        let event = accepted(&line);
        assert_ne!(event.event_hash, original.event_hash, "{pointer} {text}");
        assert_eq!(event.content_hash != original.content_hash, changes, "{pointer} {text}");
    }
}

#[test]
fn hashes_are_the_same_for_ever() {
    let line = full().to_string();
    let event = accepted(&line);
    // Computed with Python's json and hashlib; another value would make conflicts in every store.
    assert_eq!(
        fingerprint::hex(&event.event_hash),
        "1cdffa8c5e5d6e16292eb79bb79175cf9ba46d22ca50fcaa0dd1788c1d319fc6"
    );
    assert_eq!(
        fingerprint::hex(&event.content_hash),
        "cd37a972541d21d9f20261d63b18af3b164fd20a4e696831631fe2393653f98b"
    );
}

#[test]
fn a_refused_event_is_known_again_in_any_writing_and_other_bytes_by_themselves() {
    let bad = with(&full(), "/revision", "-1");
    let Value::Object(members) = serde_json::from_str(&bad).unwrap() else { unreachable!() };
    let members: Vec<_> = members.iter().rev().map(|(key, value)| format!(" \"{key}\" : {value}")).collect();
    let rewritten = format!("{{{}}}", members.join(" ,"));
    assert_eq!(refused(&bad).identity, refused(&rewritten).identity);
    assert_eq!(refused(&bad).identity, refused(bad.replace("-1", "-1.0")).identity);
    assert_ne!(refused(&bad).identity, refused(bad.replace("-1", "-2")).identity);
    for reason in [with(&full(), "/schema", "\"other\""), without(&full(), "/text")] {
        assert_eq!(refused(&reason).identity, refused(format!(" {reason}")).identity);
    }
    for raw in [with(&full(), "/event_id", "\"\""), with(&full(), "/x", "NaN"), "[]".into(), "{".into()] {
        assert_eq!(refused(&raw).identity, refused(&raw).identity);
        assert_ne!(refused(&raw).identity, refused(format!(" {raw}")).identity, "{raw}");
    }
    let event_hash = accepted(&full().to_string()).event_hash;
    let conflict = Refusal::of_event(Reason::EventConflict, "because".into(), &event_hash);
    assert_ne!(conflict.identity, Refusal::of_bytes(Reason::TooLong, "because".into(), &event_hash).identity);
}

#[test]
fn reasons_are_the_contracts_words_in_its_order() {
    let order = "too-long not-utf8 not-json not-an-object too-deep duplicate-key schema-unknown missing-field \
                 bad-field event-conflict revision-conflict";
    assert_eq!(Reason::WORDS.join(" "), order);
    assert_eq!(Reason::from_word("bad-field").map(Reason::as_str), Some("bad-field"));
    assert_eq!(Role::from_word("self"), Some(Role::SelfRole));
    assert_eq!(Role::from_word("Self"), None);
}

#[test]
fn an_explanation_shows_hostile_text_shortened_and_harmless() {
    let hostile = "\"\\u001b]0;x\\u0007\\u202e\\n\\u009b实验室 it's\"";
    assert_refused(
        with(&full(), "/state", hostile),
        Reason::BadField,
        "\\u{1b}]0;x\\u{7}\\u{202e}\\n\\u{9b}实验室 it's",
    );
    assert_refused(with(&full(), "/state", &format!("\"{}\"", "x".repeat(5000))), Reason::BadField, "x…\"");
    let key = format!("{{\"{}\\u001b\":{{\"y\":NaN}}}}", "k".repeat(5000));
    assert_refused(with(&full(), "/source", &key), Reason::BadField, "is NaN");
    assert_refused(with(&full(), "/x", &"9".repeat(100_000)), Reason::BadField, "999…, which is beyond");
}

/// What this thread took of a processor, whatever else the machine does. A reader that takes the square of a
/// line's length takes minutes of it for the lines below; one without optimisation takes a second.
fn processor_time() -> Duration {
    let told = fs_err::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn hostile_lines_are_refused_in_time_and_without_a_full_stack() {
    let million = 1_000_000;
    let keys: Vec<String> = (0..100_000).map(|number| format!("\"common prefix {number}\":0")).collect();
    let same_keys = vec!["\"common prefix\":0"; 100_000].join(",");
    let escaped_keys = keys.join(",").replace("common", "c\\u006fmmon");
    let lines = [
        ("open lists", "[".repeat(million), Reason::NotJson),
        ("deep lists", format!("{{\"a\":{}{}}}", "[".repeat(million), "]".repeat(million)), Reason::TooDeep),
        ("deep top", format!("{}{}", "[".repeat(million), "]".repeat(million)), Reason::NotAnObject),
        ("crossed", format!("{{\"a\":{}{}}}", "[".repeat(million), "}".repeat(million)), Reason::NotJson),
        ("deep objects", format!("{}1{}", "{\"a\":".repeat(million), "}".repeat(million)), Reason::TooDeep),
        ("open objects", "{\"a\":".repeat(million), Reason::NotJson),
        ("deep, then broken", format!("{{\"a\":{}{},}}", "[".repeat(99), "]".repeat(99)), Reason::NotJson),
        ("many keys", format!("{{{}}}", keys.join(",")), Reason::MissingField),
        ("the last key twice", format!("{{{},{}}}", keys.join(","), keys[99_999]), Reason::DuplicateKey),
        ("one key often", format!("{{{same_keys}}}"), Reason::DuplicateKey),
        ("twice by escapes", format!("{{{},{escaped_keys}}}", keys.join(",")), Reason::DuplicateKey),
        ("a long number", with(&full(), "/x", &"7".repeat(million)), Reason::BadField),
        ("a long exponent", with(&full(), "/x", &format!("1e-{}", "7".repeat(million))), Reason::BadField),
        ("a long time", with(&full(), "/sent_at", &format!("0.{}1", "0".repeat(million))), Reason::BadField),
        (
            "many surrogates",
            with(&full(), "/text", &format!("\"{}\"", "\\ud800".repeat(million))),
            Reason::BadField,
        ),
        ("an open string", format!("{{\"{}", "\\\\".repeat(million)), Reason::NotJson),
        ("spaces", " ".repeat(million), Reason::NotJson),
        ("NULs", "\0".repeat(million), Reason::NotJson),
    ];
    for (name, line, reason) in &lines {
        let before = processor_time();
        let read = chatproc_core::event::read_event(line.as_bytes());
        let taken = processor_time().saturating_sub(before);
        assert_eq!(read.map_err(|refusal| refusal.reason), Err(*reason), "{name}");
        assert!(taken < Duration::from_secs(20), "{name}: {taken:?}");
    }
    for line in [
        with(&full(), "/x", &format!("1.{}", "7".repeat(million))),
        with(&full(), "/x", &format!("[{}0]", "1e308,".repeat(million))),
        with(&full(), "/x", &format!("{{{}}}", keys.join(","))),
        with(&full(), "/text", &format!("\"{}\"", "\\u0001".repeat(million))),
    ] {
        let before = processor_time();
        assert!(chatproc_core::event::read_event(line.as_bytes()).is_ok());
        assert!(processor_time().saturating_sub(before) < Duration::from_secs(20));
    }
}

#[test]
fn a_line_cut_anywhere_is_refused_and_no_prefix_is_taken_for_the_whole() {
    let line = with(&full(), "/text", "\"\\ud83c\\udf89 实验\\n\"");
    for end in 0..line.len() {
        let refusal = refused(&line.as_bytes()[..end]);
        assert!(matches!(refusal.reason, Reason::NotJson | Reason::NotUtf8), "{end}: {refusal:?}");
    }
    accepted(&line);
}

// ── against serde_json ──────────────────────────────────────────────────────────────────────────────

/// Any JSON value of few levels whose numbers are exact in `serde_json`.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1_000_000_i32..1_000_000).prop_map(|number| Value::from(f64::from(number) / 64.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An event with any text and any unknown keys at every level.
fn any_event() -> impl Strategy<Value = Value> {
    let extra = || prop::collection::btree_map("x[a-z\u{0}-\u{ffff}]{0,9}", any_value(), 0..4);
    (any::<bool>(), any::<String>(), extra(), extra(), extra()).prop_map(
        |(least_one, text, root, conversation, file)| {
            let mut event = if least_one { least() } else { full() };
            let add = |event: &mut Value, pointer: &str, extra: std::collections::BTreeMap<String, Value>| {
                if let Some(Value::Object(members)) = event.pointer_mut(pointer) {
                    members.extend(extra);
                }
            };
            add(&mut event, "", root);
            add(&mut event, "/conversation", conversation);
            add(&mut event, "/attachments/0", file);
            event["text"] = text.into();
            event
        },
    )
}

/// A member of an event: mostly as the contract has it, at times at a bound, at its default or wrong.
fn any_member() -> impl Strategy<Value = (&'static str, Value)> {
    let text = || {
        prop_oneof![
            3 => "[a-z0-9:]{0,12}".prop_map(Value::from),
            2 => any::<String>().prop_map(Value::from),
            1 => prop::sample::select(vec!["", "normal", "message", "unknown", "present", "实验室"]).prop_map(Value::from),
            1 => Just(Value::Null),
        ]
    };
    let number = || {
        prop_oneof![
            3 => (0..2_000_000_000_u64).prop_map(Value::from),
            1 => any::<i64>().prop_map(Value::from),
            1 => (0_i32..1_000_000).prop_map(|number| Value::from(f64::from(number) / 8.0)),
            1 => Just(Value::Null),
        ]
    };
    let of = |keys: &'static [&'static str], value: BoxedStrategy<Value>| {
        let members = prop::collection::vec((prop::sample::select(keys), value), 0..5);
        members.prop_map(|members| {
            Value::from(
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>(),
            )
        })
    };
    let list = |item: BoxedStrategy<Value>| prop::collection::vec(item, 0..3).prop_map(Value::from);
    let names = |words: &'static [&'static str]| {
        prop_oneof![
            5 => prop::sample::select(words).prop_map(Value::from),
            1 => text(),
        ]
    };
    let mention = prop_oneof![
        of(&["all", "id", "name"], text().boxed()),
        Just(json!({"all": true})),
        Just(json!({"id": "1", "all": false})),
        Just(json!({"id": "1", "name": "王"})),
    ];
    let file = of(&["name", "mime", "sha256", "path"], text().boxed());
    let file = (file, number(), names(AttachmentState::WORDS), 0..8_u8).prop_map(
        |(mut file, size, state, which)| {
            if which > 0 {
                file["id"] = "f".into();
            }
            if which > 4 {
                (file["size"], file["state"]) = (size, state);
            }
            file
        },
    );
    let source = prop_oneof![
        3 => of(&["module", "detail", "a", "a b", "a!", "local_id"], prop_oneof![text(), number()].boxed()),
        1 => of(&["module", "detail"], any_value().boxed()),
        1 => any_value(),
    ];
    let selection = (
        of(&["window", "x"], prop_oneof![list(number().boxed()), any_value()].boxed()),
        list(text().boxed()),
    )
        .prop_map(|(mut selection, rules)| {
            selection["rules"] = rules;
            selection
        });
    let sequence =
        (number(), text()).prop_map(|(index, before)| json!({"index": index, "predecessor": before}));
    let texts =
        prop::sample::select(vec!["event_id", "message_key", "account_id", "message_id", "text", "reply_to"]);
    prop_oneof![
        8 => (texts, text()),
        3 => (prop::sample::select(vec!["revision", "sent_at", "collected_at"]), number()),
        1 => (Just("state"), names(State::WORDS)),
        1 => (Just("kind"), names(Kind::WORDS)),
        1 => (Just("platform"), "[a-z_A]{0,4}".prop_map(Value::from)),
        1 => (Just("conversation"), (of(&["name", "x"], text().boxed()), names(ConversationType::WORDS)).prop_map(
            |(mut conversation, sort)| {
                (conversation["id"], conversation["type"]) = ("c".into(), sort);
                conversation
            })),
        1 => (Just("sender"), (of(&["id", "name"], text().boxed()), names(Role::WORDS)).prop_map(
            |(mut sender, role)| {
                sender["role"] = role;
                sender
            })),
        2 => (Just("mentions"), list(mention.boxed())),
        2 => (Just("attachments"), list(file.boxed())),
        2 => (Just("sequence"), prop_oneof![sequence, Just(json!({})), text()]),
        2 => (Just("selection"), prop_oneof![2 => selection, 1 => any_value()]),
        3 => (Just("source"), source),
        1 => (Just("unknown"), any_value()),
    ]
}

/// Choices for a writer of JSON, used over and over.
struct Choices<'a> {
    choices: &'a [u8],
    at: usize,
}

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.at += 1;
        usize::from(
            self.choices[self.at % self.choices.len()].wrapping_add(u8::try_from(self.at % 251).unwrap()),
        ) % bound
    }

    fn space(&mut self) -> &'static str {
        ["", "", " ", "\t", "\r\n  "][self.below(5)]
    }

    /// Writes a value in one of its many writings.
    fn write(&mut self, out: &mut String, value: &Value) {
        out.push_str(self.space());
        match value {
            Value::String(text) => self.write_string(out, text),
            Value::Number(number) if number.is_i64() && self.below(3) == 0 => {
                let endings = if number.as_i64() == Some(0) { 2 } else { 3 };
                let ending = [".0", "e0", "0e-1"][self.below(endings)];
                write!(out, "{number}{ending}").unwrap();
            }
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    self.write(out, item);
                }
                out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for last in (1..members.len()).rev() {
                    let other = self.below(last + 1);
                    members.swap(last, other);
                }
                out.push('{');
                for (index, (key, member)) in members.into_iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    out.push_str(self.space());
                    self.write_string(out, key);
                    out.push_str(self.space());
                    out.push(':');
                    self.write(out, member);
                }
                out.push('}');
            }
            scalar => out.push_str(&scalar.to_string()),
        }
        out.push_str(self.space());
    }

    fn write_string(&mut self, out: &mut String, text: &str) {
        out.push('"');
        for character in text.chars() {
            if character < ' ' || matches!(character, '"' | '\\') || self.below(8) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    match self.below(2) {
                        0 => write!(out, "\\u{unit:04x}").unwrap(),
                        _ => write!(out, "\\u{unit:04X}").unwrap(),
                    }
                }
            } else {
                out.push(character);
            }
        }
        out.push('"');
    }
}

/// What `serde_json` takes for no JSON and we for JSON with a fault of its own.
fn is_a_named_departure(line: &[u8], error: &str) -> bool {
    let line = String::from_utf8_lossy(line).to_lowercase();
    let lenient = ["nan", "infinity", "\\ud"].iter().any(|text| line.contains(text));
    lenient || error.contains("number out of range") || error.contains("recursion limit")
}

proptest! {
    #[test]
    fn any_writing_of_an_event_has_the_same_hashes(
        event in any_event(),
        choices in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let plain = event.to_string();
        let plain = read_event(plain.as_bytes()).unwrap();
        let mut written = String::new();
        Choices { choices: &choices, at: 0 }.write(&mut written, &event);
        prop_assert_eq!(&serde_json::from_str::<Value>(&written).unwrap()["text"], &event["text"]);
        let written = read_event(written.as_bytes()).unwrap();
        prop_assert_eq!(&plain, &written);
        prop_assert_eq!(plain.text, event["text"].as_str().unwrap());
    }

    #[test]
    fn both_readers_tell_the_same_of_any_line(
        members in prop::collection::vec(any_member(), 0..6),
        whole in any::<bool>(),
        choices in prop::collection::vec(any::<u8>(), 1..64),
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 0..3),
    ) {
        let mut event = if whole { full() } else { least() };
        for (key, value) in members {
            event[key] = value;
        }
        let plain = event.to_string();
        let one = read_event(plain.as_bytes());
        let mut written = String::new();
        Choices { choices: &choices, at: 0 }.write(&mut written, &event);
        match (one, read_event(written.as_bytes())) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (Err(one), Err(other)) => prop_assert_eq!(one.reason, other.reason),
            (one, other) => prop_assert!(false, "{:?} and {:?}", one, other),
        }
        for line in [plain, written] {
            let mut line = line.into_bytes();
            for (at, byte) in &damage {
                let at = at.index(line.len());
                if byte % 3 == 0 {
                    line[at] = *byte;
                } else {
                    line.remove(at);
                }
            }
            drop(read_event(&line));
        }
    }

    #[test]
    fn different_values_have_different_event_hashes(left in any_event(), right in any_event()) {
        let (left_line, right_line) = (left.to_string(), right.to_string());
        let (one, other) = (read_event(left_line.as_bytes()).unwrap(), read_event(right_line.as_bytes()).unwrap());
        prop_assert_eq!(one.event_hash == other.event_hash, left == right);
    }

    #[test]
    fn what_serde_json_takes_is_json_to_us_and_the_other_way_round(
        event in any_event(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0..3_u8), 0..4),
        snippets in prop::collection::vec((any::<Index>(), prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u12", "\\ud800", "NaN", "Infinity", "-", "0", "1e5",
            "e", ".", "null", "true", " ", "\u{0}", "\u{1f}", "\u{7f}", "界",
        ])), 0..3),
    ) {
        let mut line = event.to_string().into_bytes();
        for (at, snippet) in &snippets {
            let at = at.index(line.len());
            line.splice(at..at, snippet.bytes());
        }
        for (at, byte, kind) in &changes {
            let at = at.index(line.len());
            match kind {
                0 => line[at] = *byte,
                1 => line.insert(at, *byte),
                _ => drop(line.remove(at)),
            }
        }
        let theirs = serde_json::from_slice::<Value>(&line);
        match (theirs, read_event(&line)) {
            (Ok(theirs), Ok(ours)) => prop_assert_eq!(theirs["text"].as_str(), Some(&*ours.text)),
            (Ok(_), Err(refusal)) => {
                prop_assert!(!matches!(refusal.reason, Reason::NotJson | Reason::NotUtf8), "{:?}", refusal);
            }
            (Err(error), Ok(_)) => prop_assert!(false, "we accept what is no JSON: {error}"),
            (Err(error), Err(refusal)) => {
                let broken = matches!(refusal.reason, Reason::NotJson | Reason::NotUtf8);
                prop_assert!(broken || is_a_named_departure(&line, &error.to_string()), "{error}: {refusal:?}");
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_event(&line).map_err(|refusal| assert!(!refusal.explanation.is_empty()));
    }
}

// ── fingerprints ────────────────────────────────────────────────────────────────────────────────────

#[test]
fn ids_are_the_contracts_functions_of_what_they_name() {
    let content_fp = fingerprint::content_fp("sql", [(&[7; 32], true)]);
    let group_fp = fingerprint::group_fp([&content_fp]);
    assert_eq!(group_fp, fingerprint::sha256(&[&content_fp]));
    let group_id = fingerprint::group_id(&group_fp);
    assert!(group_id.starts_with("g_") && group_id.len() == 28, "{group_id}");
    assert!(group_id[2..].bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')), "{group_id}");
    // Computed with Python's hashlib and base64.
    assert_eq!(fingerprint::task_id(&[0; 32], 3, None), "t_qlqg2762o5sxc2vxegobc3k2yw");
    assert_eq!(fingerprint::task_id(&[0; 32], 3, Some(12)), "t_haeyz4nbir6jymdj5t5wzxcgx5");
    assert_eq!(
        fingerprint::task_event_id("t_x", 2),
        "1539b29d8a2992511a14a16188469edc646d143adf9478567f2b1e875349ec6d"
    );
    assert_eq!(fingerprint::hex(&[0, 255]), "00ff");
}

#[test]
fn a_fingerprint_sees_each_part_and_its_borders() {
    let digest = fingerprint::message_digest;
    let all = [
        digest("k", 0, &[0; 32], None),
        digest("k", 0, &[0; 32], Some("")),
        digest("k", 0, &[0; 32], Some("n")),
        digest("k", 1, &[0; 32], None),
        digest("k", 0, &[1; 32], None),
        digest("kk", 0, &[0; 32], None),
    ];
    for (index, one) in all.iter().enumerate() {
        assert!(all[index + 1..].iter().all(|other| other != one), "{index}");
    }
    let segment = |continuity, members: &[([u8; 32], bool)]| {
        fingerprint::content_fp(continuity, members.iter().map(|(digest, subject)| (digest, *subject)))
    };
    let (one, two) = ([1; 32], [2; 32]);
    assert_ne!(segment("sql", &[(one, true)]), segment("by-time", &[(one, true)]));
    assert_ne!(segment("sql", &[(one, true)]), segment("sql", &[(one, false)]));
    assert_ne!(segment("sql", &[(one, true), (two, true)]), segment("sql", &[(two, true), (one, true)]));
    assert_ne!(fingerprint::group_fp([&one, &two]), fingerprint::group_fp([&two, &one]));
}

#[test]
fn settings_are_known_by_value() {
    let settings = fingerprint::settings_fp;
    assert_eq!(
        settings(&json!({"a": 30, "b": {"y": [1, "\n"], "x": null}})),
        settings(&json!({"b": {"x": null, "y": [1.0, "\n"]}, "a": 30.0}))
    );
    assert_ne!(settings(&json!({"a": 30})), settings(&json!({"a": 31})));
    assert_ne!(settings(&json!({"a": null})), settings(&json!({})));
    assert_eq!(
        settings(&json!({"b": true, "a": "é\""})),
        fingerprint::sha256(&["{\"a\":\"é\\\"\",\"b\":true}".as_bytes()])
    );
}
