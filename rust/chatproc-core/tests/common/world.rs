//! Small worlds of chats: messages with revisions, each delivered several times, never in conflict.

use chatproc_core::plan::{Batching, Options};
use chatproc_core::segment::Grouping;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// 2026-07-01T00:00:00+08:00, in milliseconds.
pub const DAY: i64 = 1_782_835_200_000;

/// Names that senders share, and names that look like what is made of shared ones.
pub const NAMES: [Option<&str>; 8] =
    [None, Some(""), Some("王"), Some("王"), Some("王#2"), Some("李\"\u{0}\\"), Some("😀"), Some("王#3")];

/// A file's name and MIME type, and the type that is shown.
pub const FILES: [(Option<&str>, Option<&str>, &str); 9] = [
    (Some("模板.DOCX"), None, "docx"),
    (Some("a.tar.gz"), Some("application/pdf"), "gz"),
    (Some("noname"), Some("application/pdf"), "pdf"),
    (None, Some("image/png"), "png"),
    (None, Some("image/gif"), "gif"),
    (None, None, "file"),
    (Some("trailing."), None, "file"),
    (Some("q\"\n\u{1}.txt"), None, "txt"),
    (Some("b.md"), Some("text/plain"), "md"),
];

/// An attachment of a delivery.
#[derive(Clone, Debug)]
pub struct File {
    pub id: String,
    pub named: usize,
    pub size: Option<u64>,
    pub sha256: Option<String>,
    pub path: Option<String>,
    pub state: Option<&'static str>,
}

/// A proof of position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub index: Option<i64>,
    pub predecessor: Option<String>,
}

/// One delivery of one revision of one message.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub event_id: String,
    pub key: String,
    pub revision: u64,
    pub state: &'static str,
    pub kind: &'static str,
    pub platform: &'static str,
    pub account: &'static str,
    pub conversation: String,
    pub conversation_name: Option<String>,
    pub sent_at: i64,
    pub sender_id: Option<String>,
    pub sender_name: Option<String>,
    pub role: &'static str,
    pub text: String,
    pub mentions: Value,
    pub reply_to: Option<String>,
    pub files: Vec<File>,
    pub sequence: Option<Link>,
    pub rules: Vec<String>,
    pub collected_at: i64,
}

/// A plain message of a chat, to be changed at will.
pub fn delivery(key: &str, second: i64) -> Delivery {
    Delivery {
        event_id: format!("event of {key}"),
        key: key.to_owned(),
        revision: 0,
        state: "normal",
        kind: "message",
        platform: "qq",
        account: "self-id",
        conversation: "room".to_owned(),
        conversation_name: None,
        sent_at: DAY + second * 1000,
        sender_id: None,
        sender_name: None,
        role: "user",
        text: format!("text of {key}"),
        mentions: json!([]),
        reply_to: None,
        files: Vec::new(),
        sequence: None,
        rules: Vec::new(),
        collected_at: 0,
    }
}

/// Messages that follow each other, ten seconds apart.
pub fn chain(keys: &[&str]) -> Vec<Delivery> {
    let mut before = None;
    let mut made = Vec::new();
    for (second, key) in (0..).step_by(10).zip(keys) {
        let sequence = Some(Link { index: Some(second), predecessor: before.replace((*key).to_owned()) });
        made.push(Delivery { sequence, ..delivery(key, second) });
    }
    made
}

impl Delivery {
    /// The line of a batch file.
    pub fn line(&self) -> Vec<u8> {
        let files: Vec<Value> = self.files.iter().map(File::value).collect();
        let mut line = json!({
            "schema": "chatproc.event/1", "event_id": self.event_id, "message_key": self.key,
            "revision": self.revision, "state": self.state, "kind": self.kind,
            "platform": self.platform, "account_id": self.account,
            "conversation": {"id": self.conversation, "name": self.conversation_name, "type": "group"},
            "sent_at": Value::Null,
            "sender": {"id": self.sender_id, "name": self.sender_name, "role": self.role},
            "text": self.text, "mentions": self.mentions, "reply_to": self.reply_to, "attachments": files,
            "selection": {"rules": self.rules},
        });
        line["sent_at"] = decimal(self.sent_at);
        if self.collected_at > 0 {
            line["collected_at"] = decimal(self.collected_at);
        }
        if let Some(link) = &self.sequence {
            line["sequence"] = json!({"index": link.index, "predecessor": link.predecessor});
        }
        line.to_string().into_bytes()
    }
}

/// Milliseconds as JSON seconds.
fn decimal(milliseconds: i64) -> Value {
    serde_json::from_str(&format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)).unwrap()
}

impl File {
    pub fn of(named: usize) -> Self {
        Self { id: format!("a{named}"), named, size: None, sha256: None, path: None, state: None }
    }

    fn value(&self) -> Value {
        let (name, mime, _) = FILES[self.named];
        let mut value = Map::new();
        value.insert("id".to_owned(), json!(self.id));
        value.insert("name".to_owned(), json!(name));
        value.insert("mime".to_owned(), json!(mime));
        value.insert("size".to_owned(), json!(self.size));
        value.insert("sha256".to_owned(), json!(self.sha256));
        value.insert("path".to_owned(), json!(self.path));
        value.insert("state".to_owned(), json!(self.state));
        Value::Object(value)
    }
}

/// What a delivery's position is made of.
#[derive(Clone, Copy, Debug)]
enum Position {
    None,
    First,
    Before,
    Unstored(u8),
    Any(usize),
}

fn position() -> impl Strategy<Value = Position> {
    prop_oneof![
        10 => Just(Position::Before),
        2 => Just(Position::None),
        1 => Just(Position::First),
        1 => (0..3u8).prop_map(Position::Unstored),
        1 => (0..12usize).prop_map(Position::Any),
    ]
}

/// How one collection of a revision differs from another.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent accidents
struct Collection {
    tag: u8,
    collected: i64,
    position: Option<Position>,
    renamed: bool,
    room_name: Option<u8>,
    known: bool,
    present: bool,
    rule: u8,
    moved: bool,
}

fn collection() -> impl Strategy<Value = Collection> {
    let seldom = || prop::bool::weighted(0.1);
    let position = prop_oneof![
        4 => Just(None),
        1 => position().prop_map(Some),
        1 => Just(Some(Position::None)),
    ];
    let odds = (seldom(), prop::option::of(0..2u8), any::<bool>(), any::<bool>(), 0..3u8, seldom());
    (any::<u8>(), 0..3i64, position, odds).prop_map(
        |(tag, collected, position, (renamed, room_name, known, present, rule, moved))| Collection {
            tag,
            collected,
            position,
            renamed,
            room_name,
            known,
            present,
            rule,
            moved,
        },
    )
}

#[derive(Clone, Debug)]
struct Revision {
    state: &'static str,
    text: String,
    collections: Vec<Collection>,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{0,40}",
        1 => Just(String::new()),
        2 => "[ -~\u{0}-\u{1f}\u{7f}\u{2028}\u{fffd}😀王]{0,12}",
        1 => "[字]{100,400}",
    ]
}

fn revision() -> impl Strategy<Value = Revision> {
    let state = prop::sample::select(vec!["normal", "normal", "edited", "recalled"]);
    (state, text(), prop::collection::vec(collection(), 1..4))
        .prop_map(|(state, text, collections)| Revision { state, text, collections })
}

#[derive(Clone, Debug)]
struct Message {
    room: usize,
    wait: i64,
    position: Position,
    system: bool,
    sender: (usize, usize),
    role: &'static str,
    mention: u8,
    reply: Option<usize>,
    files: Vec<usize>,
    revisions: Vec<Revision>,
}

fn message() -> impl Strategy<Value = Message> {
    let wait = prop_oneof![
        6 => 0..200_000i64,
        1 => Just(1_800_000i64),
        1 => Just(1_800_001i64),
        2 => 0..20_000_000i64,
        1 => Just(-5_000i64),
    ];
    let sender = (0..4usize, 0..NAMES.len());
    let role = prop::sample::select(vec!["user", "user", "self", "bot"]);
    let shown =
        (sender, role, 0..5u8, prop::option::of(0..12usize), prop::collection::vec(0..FILES.len(), 0..3));
    let room = prop::sample::select(vec![0, 0, 0, 1, 2]);
    let revisions = prop::collection::vec(revision(), 1..3);
    (room, wait, position(), prop::bool::weighted(0.1), shown, revisions).prop_map(
        |(room, wait, position, system, (sender, role, mention, reply, files), revisions)| Message {
            room,
            wait,
            position,
            system,
            sender,
            role,
            mention,
            reply,
            files,
            revisions,
        },
    )
}

/// A chat's deliveries, in the order in which a careful collector would write them.
pub fn world(most: usize) -> impl Strategy<Value = Vec<Delivery>> {
    prop::collection::vec(message(), 1..most).prop_map(|messages| deliveries(&messages))
}

fn key_of(number: usize) -> String {
    format!("key-{number:03}\u{0}é")
}

fn room_of(room: usize) -> (&'static str, &'static str) {
    [("qq", "self-id"), ("qq", ""), ("wechat", "self-id")][room]
}

fn link_of(position: Position, number: usize, messages: &[Message]) -> Option<Link> {
    let room = messages[number].room;
    let before = (0..number).rev().find(|&at| messages[at].room == room);
    let predecessor = match position {
        Position::None => return None,
        Position::First => None,
        Position::Before => before.map(key_of),
        Position::Unstored(name) => Some(format!("never seen {name}")),
        Position::Any(at) => Some(key_of(at)),
    };
    let index = i64::try_from(number).unwrap();
    Some(Link { index: (number % 4 != 3).then_some(index), predecessor })
}

fn deliveries(messages: &[Message]) -> Vec<Delivery> {
    let mut made = Vec::new();
    let mut clock = DAY;
    for (number, message) in messages.iter().enumerate() {
        clock = (clock + message.wait).max(DAY);
        for (revision, told) in (0u64..).zip(&message.revisions) {
            for (delivery, collection) in told.collections.iter().enumerate() {
                let place = format!("{number}-{revision}-{delivery}");
                made.push(collected(messages, number, clock, (revision, told), collection, &place));
            }
        }
    }
    made
}

fn collected(
    messages: &[Message],
    number: usize,
    sent_at: i64,
    (revision, told): (u64, &Revision),
    collection: &Collection,
    place: &str,
) -> Delivery {
    let message = &messages[number];
    let room = if collection.moved { (message.room + 1) % 3 } else { message.room };
    let (platform, account) = room_of(room);
    let (sender, name) = message.sender;
    let name = if collection.renamed { Some("renamed") } else { NAMES[name] };
    let mentions = match message.mention {
        0 => json!([{"all": true}]),
        1 => json!([{"id": "self-id", "name": "me"}]),
        2 => json!([{"id": "somebody"}, {"id": ""}]),
        _ => json!([]),
    };
    let file = |(at, &named): (usize, &usize)| File {
        id: format!("a{at}"),
        named,
        size: collection.known.then_some(10 + number as u64 * 1000),
        sha256: (!collection.known).then(|| format!("{number:064}")),
        path: collection.present.then(|| format!("secret-path/{number}")),
        state: if collection.tag.is_multiple_of(7) { Some("expired") } else { None },
    };
    Delivery {
        event_id: format!("{:02x}/{place}", collection.tag),
        key: key_of(number),
        revision,
        state: told.state,
        kind: if message.system { "system" } else { "message" },
        platform,
        account,
        conversation: format!("room-{}", room.min(1)),
        conversation_name: collection.room_name.map(|name| format!("name {name}")),
        sent_at,
        sender_id: (sender > 0).then(|| format!("sender-{sender}")),
        sender_name: name.map(str::to_owned),
        role: message.role,
        text: told.text.clone(),
        mentions,
        reply_to: message.reply.map(key_of),
        files: message.files.iter().enumerate().map(file).collect(),
        sequence: link_of(collection.position.unwrap_or(message.position), number, messages),
        rules: vec![format!("rule-{}", collection.rule)],
        collected_at: collection.collected * 1000,
    }
}

/// Settings under which small worlds meet every rule.
pub fn options() -> impl Strategy<Value = Options> {
    let grouping =
        prop::sample::select(vec![Grouping::Sql, Grouping::Sql, Grouping::Time, Grouping::Session]);
    let batching = prop::sample::select(vec![Batching::Auto, Batching::Auto, Batching::SingleConversation]);
    let start_at =
        prop_oneof![2 => Just(0.0), 1 => (0..5_000i32).prop_map(|second| f64::from(second) * 1.001)];
    let sizes = (400..3_000u64, 600..5_000u64, 1..6u64, 0..4u64, 1..5u64);
    (grouping, batching, start_at, sizes).prop_map(|(grouping, batching, start_at, sizes)| {
        let (max_conversation_chars, max_input_chars, max_messages, carry_messages, rounds) = sizes;
        let day = 1_782_835_200.0;
        Options {
            grouping,
            batching,
            start_at: if start_at > 0.0 { day + (start_at * 1000.0_f64).round() / 1000.0 } else { 0.0 },
            max_conversation_chars,
            max_input_chars,
            max_messages,
            carry_messages,
            max_groups_per_round: rounds,
            ..Options::default()
        }
    })
}
