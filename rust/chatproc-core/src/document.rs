//! Groups of a batch → the one JSON document that a model is sent, and what its short names stand for.
//!
//! Pure. Nothing leaves the machine that is not written here: no keys, hashes, ids of accounts or
//! groups, paths or database names. The text is built once and never rebuilt elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::budget::{self, Shown};
use crate::error::Result;
use crate::event::Event;
use crate::event::FileFacts;
use crate::zone::Zone;

/// A message that stands in a segment of the batch.
pub struct Sent<'a> {
    /// The message as its newest delivery tells it.
    pub event: &'a Event<'a>,
    /// What is known of its attachments.
    pub facts: &'a [FileFacts],
    /// Whether it is shown as history: older than the start, or carried over a silence.
    pub history: bool,
    /// Whether it is carried over a silence, and stands in a segment of its own elsewhere.
    pub carried: bool,
}

/// A segment of the batch with its sent messages, the carried ones first.
pub struct SegmentText<'a> {
    /// The contract's word for its continuity.
    pub continuity: &'a str,
    /// Messages in order.
    pub messages: Vec<Sent<'a>>,
}

/// One conversation's group in the batch.
pub struct GroupText<'a> {
    /// The group's id.
    pub group: &'a str,
    /// The platform's name.
    pub platform: &'a str,
    /// Its segments in order.
    pub segments: Vec<SegmentText<'a>>,
}

/// A task that rests on messages of the batch.
#[derive(Clone, Debug)]
pub struct Related {
    /// The task's id.
    pub task_id: String,
    /// Its revision when it was read.
    pub revision: u64,
    /// What a model is shown of it.
    pub view: TaskView,
    /// Places of the conversations that it rests on, among those of the batch.
    pub conversations: Vec<usize>,
}

/// What a model is shown of a task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskView {
    /// The short action.
    pub title: String,
    /// What it is about.
    pub event: String,
    /// `open`, `completed`, `cancelled`.
    pub status: String,
    /// `P0`…`P4`.
    pub priority: String,
    /// `start`, `due`, `original`.
    pub time: Value,
    /// `[{name, role}]`.
    pub people: Value,
    /// Where.
    pub location: Option<String>,
}

/// A batch ready for its session.
#[derive(Clone, Debug, Serialize)]
pub struct Batch {
    /// The exact text of the user message.
    pub document: String,
    /// Its conversations, in order.
    pub conversations: Vec<ConversationRef>,
    /// What `m1` stands for.
    pub messages: BTreeMap<String, MessageRef>,
    /// What `f1` stands for.
    pub attachments: BTreeMap<String, FileRef>,
    /// What `t1` stands for.
    pub tasks: BTreeMap<String, TaskRef>,
}

/// A conversation of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct ConversationRef {
    /// As `c1`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The group's id.
    pub group: String,
    /// The platform's name.
    pub platform: String,
    /// Its messages in order.
    pub messages: Vec<String>,
    /// Tasks shown with it.
    pub related: Vec<String>,
}

/// A message of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct MessageRef {
    /// As `c1`.
    pub conversation: String,
    /// The message's key.
    pub key: String,
    /// Whether a task may rest on it alone; history may only support.
    pub subject: bool,
    /// The text as sent; empty for a recalled message.
    pub text: String,
    /// Unix seconds.
    pub sent_at: f64,
}

/// An attachment of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct FileRef {
    /// As `c1`.
    pub conversation: String,
    /// As `m1`.
    pub message: String,
    /// The attachment's id within its message.
    pub id: String,
    /// Its full name.
    pub name: Option<String>,
    /// Its MIME type.
    pub mime: Option<String>,
    /// The type shown.
    #[serde(rename = "type")]
    pub kind: String,
    /// Bytes.
    pub size: Option<u64>,
    /// Hexadecimal SHA-256.
    pub sha256: Option<String>,
    /// Relative to the archive's root.
    pub path: Option<String>,
    /// Whether the archive is said to hold it.
    pub available: bool,
}

/// A task of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct TaskRef {
    /// The task's id.
    pub task_id: String,
    /// Its revision when it was read.
    pub revision: u64,
    /// Conversations it is shown with, as `c1`.
    pub conversations: Vec<String>,
    /// What the model was shown.
    pub view: TaskView,
}

/// Builds the document of a batch.
///
/// `related` is in the order in which tasks are wanted; those that do not fit into `max_related_chars`
/// are left out, a model finds them by its tool.
pub fn document(
    groups: &[GroupText<'_>],
    related: &[Related],
    timezone: &str,
    max_related_chars: u64,
) -> Result<Batch> {
    let mut builder = Builder {
        zone: Zone::named(timezone)?,
        batch: Batch {
            document: String::new(),
            conversations: Vec::new(),
            messages: BTreeMap::new(),
            attachments: BTreeMap::new(),
            tasks: BTreeMap::new(),
        },
        files: String::new(),
    };
    let tasks = builder.relate(related, max_related_chars)?;
    let mut text = String::from(r#"{"timezone":"#);
    budget::write_string(&mut text, timezone);
    text.push_str(r#","conversations":["#);
    for (place, group) in groups.iter().enumerate() {
        separate(&mut text, place);
        builder.group(&mut text, place, group);
    }
    let _ = write!(text, r#"],"attachments":[{}],"tasks":[{tasks}]}}"#, builder.files);
    builder.batch.document = text;
    Ok(builder.batch)
}

struct Builder {
    zone: Zone,
    batch: Batch,
    files: String,
}

impl Builder {
    /// Numbers the related tasks that fit and returns their JSON.
    fn relate(&mut self, related: &[Related], max_chars: u64) -> Result<String> {
        #[derive(Serialize)]
        struct Entry<'a> {
            #[serde(rename = "ref")]
            reference: &'a str,
            #[serde(flatten)]
            view: &'a TaskView,
        }
        let mut text = String::new();
        let mut used = 0;
        for task in related {
            let reference = format!("t{}", self.batch.tasks.len() + 1);
            let entry = serde_json::to_string(&Entry { reference: &reference, view: &task.view })?;
            // The entry with its comma, and its name in each conversation's list.
            let cost = entry.chars().count() + 1 + task.conversations.len() * (reference.len() + 3);
            if used + cost as u64 > max_chars {
                continue;
            }
            used += cost as u64;
            separate(&mut text, self.batch.tasks.len());
            text.push_str(&entry);
            let conversations = task.conversations.iter().map(|place| conversation_ref(*place)).collect();
            let task = TaskRef {
                task_id: task.task_id.clone(),
                revision: task.revision,
                conversations,
                view: task.view.clone(),
            };
            self.batch.tasks.insert(reference, task);
        }
        Ok(text)
    }

    fn group(&mut self, text: &mut String, place: usize, group: &GroupText<'_>) {
        let reference = conversation_ref(place);
        let names = Names::of(group);
        let refs = self.number(group);
        let _ = write!(text, r#"{{"id":"{reference}","platform":"#);
        budget::write_string(text, group.platform);
        text.push_str(r#","segments":["#);
        let mut messages = Vec::new();
        for (at, segment) in group.segments.iter().enumerate() {
            separate(text, at);
            let _ = write!(text, r#"{{"continuity":"{}","messages":["#, segment.continuity);
            for (at, sent) in segment.messages.iter().enumerate() {
                separate(text, at);
                messages.push(self.message(text, &reference, sent, &names, &refs));
            }
            text.push_str("]}");
        }
        let mut related: Vec<(usize, String)> = Vec::new();
        for (name, task) in &self.batch.tasks {
            if task.conversations.contains(&reference) {
                related.push((name[1..].parse().unwrap_or(usize::MAX), name.clone()));
            }
        }
        related.sort();
        let related: Vec<String> = related.into_iter().map(|(_, name)| name).collect();
        let quoted: Vec<String> = related.iter().map(|name| format!("\"{name}\"")).collect();
        let _ = write!(text, r#"],"related_tasks":[{}]}}"#, quoted.join(","));
        self.batch.conversations.push(ConversationRef {
            reference,
            group: group.group.to_owned(),
            platform: group.platform.to_owned(),
            messages,
            related,
        });
    }

    /// Numbers for the group's messages, by key. A carried message has one in each segment that shows it;
    /// an answer names the message in its own place where that is in the group.
    fn number(&self, group: &GroupText<'_>) -> HashMap<String, String> {
        let mut refs = HashMap::new();
        let mut next = self.batch.messages.len();
        for sent in group.segments.iter().flat_map(|segment| &segment.messages) {
            next += 1;
            let (key, number) = (sent.event.message_key.as_ref().to_owned(), format!("m{next}"));
            if sent.carried {
                refs.entry(key).or_insert(number);
            } else {
                refs.insert(key, number);
            }
        }
        refs
    }

    fn message(
        &mut self,
        text: &mut String,
        conversation: &str,
        sent: &Sent<'_>,
        names: &Names,
        refs: &HashMap<String, String>,
    ) -> String {
        let event = sent.event;
        let id = format!("m{}", self.batch.messages.len() + 1);
        let files: Vec<String> = budget::visible_files(event)
            .iter()
            .enumerate()
            .map(|(number, _)| self.file(conversation, &id, sent, number))
            .collect();
        // Whole seconds: every time has the same length, and a model needs no more.
        let time = self.zone.rfc3339(event.sent_at.div_euclid(1000) * 1000).unwrap_or_default();
        let shown = Shown {
            id: &id,
            time: &time,
            sender: names.name(event),
            history: sent.history,
            reply_to: event.reply_to.as_ref().and_then(|key| refs.get(key.as_ref())).map(String::as_str),
            files: &files,
        };
        budget::write_message(text, event, &shown);
        let recalled = event.state == crate::event::State::Recalled;
        let message = MessageRef {
            conversation: conversation.to_owned(),
            key: event.message_key.as_ref().to_owned(),
            subject: !sent.history,
            text: if recalled { String::new() } else { event.text.as_ref().to_owned() },
            sent_at: seconds(event.sent_at),
        };
        self.batch.messages.insert(id.clone(), message);
        id
    }

    fn file(&mut self, conversation: &str, message: &str, sent: &Sent<'_>, number: usize) -> String {
        let file = &sent.event.attachments[number];
        let facts = sent.facts.get(number);
        let reference = format!("f{}", self.batch.attachments.len() + 1);
        separate(&mut self.files, self.batch.attachments.len());
        budget::write_file(&mut self.files, file, facts, &reference);
        let owned =
            |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(|text| text.as_ref().to_owned());
        let entry = FileRef {
            conversation: conversation.to_owned(),
            message: message.to_owned(),
            id: file.id.as_ref().to_owned(),
            name: owned(&file.name),
            mime: owned(&file.mime),
            kind: budget::file_type(file.name.as_deref(), file.mime.as_deref()),
            size: facts.and_then(|facts| facts.size).or(file.size),
            sha256: facts.and_then(|facts| facts.sha256.clone()).or_else(|| owned(&file.sha256)),
            path: owned(&file.path),
            available: budget::available(file),
        };
        self.batch.attachments.insert(reference.clone(), entry);
        reference
    }
}

/// Senders' names in one group: two senders of one name are told apart by a number.
struct Names {
    shown: HashMap<(Option<String>, String), String>,
}

impl Names {
    fn of(group: &GroupText<'_>) -> Self {
        let senders = || {
            let sent = group.segments.iter().flat_map(|segment| &segment.messages);
            sent.filter_map(|sent| Some((sent.event.sender_id.as_deref(), budget::sender_name(sent.event)?)))
        };
        let mut taken: HashSet<String> = senders().map(|(_, name)| name.to_owned()).collect();
        let mut met: HashSet<&str> = HashSet::new();
        let mut shown = HashMap::new();
        for (id, name) in senders() {
            let sender = (id.map(str::to_owned), name.to_owned());
            if shown.contains_key(&sender) {
                continue;
            }
            let mut own = name.to_owned();
            if !met.insert(name) {
                let mut number = 2;
                while taken.contains(&format!("{name}#{number}")) {
                    number += 1;
                }
                own = format!("{name}#{number}");
                taken.insert(own.clone());
            }
            shown.insert(sender, own);
        }
        Self { shown }
    }

    fn name(&self, event: &Event<'_>) -> Option<&str> {
        let name = budget::sender_name(event)?.to_owned();
        let id = event.sender_id.as_ref().map(|id| id.as_ref().to_owned());
        self.shown.get(&(id, name)).map(String::as_str)
    }
}

fn conversation_ref(place: usize) -> String {
    format!("c{}", place + 1)
}

fn separate(text: &mut String, before: usize) {
    if before > 0 {
        text.push(',');
    }
}

/// Unix seconds of a time in milliseconds.
#[must_use]
#[allow(clippy::cast_precision_loss)] // times before the year 9999 are exact
pub fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1000.0
}
