//! A project whose rounds play a model that answers by chance, with tasks, quotes, evidence and failures.

use std::path::Path;

use chatproc_core::document::{Batch, ConversationRef, TaskRef};
use chatproc_core::plan::Options;
use chatproc_core::store::Store;
use chatproc_core::store::commit::Accepted;
use chatproc_core::store::tasks::{Request, update_priority, update_status};
use chatproc_core::store::verify::{Verdict, verify};
use chatproc_core::zone::Zone;
use serde_json::{Value, json};

use crate::common::sync::source;
use crate::common::world::Delivery;
use crate::common::{NOW, Project, settings};

/// A project with a clock.
pub struct Chat {
    pub project: Project,
    pub options: Options,
    pub now: i64,
    files: usize,
    pages: i64,
}

/// What the model answers to a group.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Nothing,
    Task,
    Update,
    Failure,
}

impl Answer {
    /// What a session accepts of it; nothing where it failed.
    fn to(self, batch: &Batch, conversation: &ConversationRef) -> Option<Accepted> {
        let tasks = match self {
            Self::Failure => return None,
            Self::Nothing => Vec::new(),
            Self::Task => vec![draft(batch, conversation, None)],
            Self::Update => {
                let known =
                    batch.tasks.values().find(|task| task.conversations.contains(&conversation.reference));
                known.map_or_else(Vec::new, |task| vec![draft(batch, conversation, Some(task))])
            }
        };
        let reason = if tasks.is_empty() { json!("only talk") } else { Value::Null };
        let receipts = receipts(batch, conversation);
        let outcome = json!({"no_task_reason": reason, "tasks": tasks, "receipts": receipts});
        Some(serde_json::from_value(outcome).unwrap())
    }
}

impl Chat {
    pub fn new(options: Options) -> Self {
        Self { project: Project::new(), options, now: NOW, files: 0, pages: 0 }
    }

    /// Writes deliveries as a batch file and reads it.
    pub fn deliver(&mut self, deliveries: &[Delivery]) {
        let lines: Vec<Vec<u8>> = deliveries.iter().map(Delivery::line).collect();
        self.files += 1;
        self.project.write_lines(&format!("batch-{:03}.jsonl", self.files), &lines);
        self.project.ingest();
    }

    /// The same through a connection.
    pub fn page(&mut self, deliveries: &[Delivery]) {
        let lines: Vec<Vec<u8>> = deliveries.iter().map(Delivery::line).collect();
        self.pages += 1;
        let mut connection = source(&self.project.state(), "me");
        let run = connection.lease_at(NOW + self.pages * 1_000_000).unwrap().run;
        connection.page(run, &lines, self.pages).unwrap();
        connection.record(run, json!({}), NOW + self.pages * 1_000_000 + 1);
    }

    /// One round in which the groups are answered in that order, over and over.
    pub fn round(&mut self, answers: &[Answer]) {
        let mut round = self.project.round();
        self.now += 1_000;
        round.begin(self.now).unwrap();
        let plan = round.plan(self.options.clone(), settings()).unwrap();
        let mut answers = answers.iter().cycle();
        for groups in &plan.batches {
            let batch = round.document(groups).unwrap();
            self.now += 10;
            let mut accepted = Vec::new();
            for conversation in &batch.conversations {
                let answer = answers.next().copied().unwrap_or(Answer::Nothing);
                match answer.to(&batch, conversation) {
                    Some(outcome) => accepted.push((conversation.group.clone(), outcome)),
                    None => round.fail(&conversation.group, "the model is away", self.now, true).unwrap(),
                }
            }
            let names: Vec<String> = accepted.iter().map(|(group, _)| group.clone()).collect();
            let usage = json!({"requests": 1, "input_tokens": 17});
            for (group, ended) in names.iter().zip(round.commit(accepted, &usage, self.now).unwrap()) {
                if let Err(error) = ended {
                    round.fail(group, &error.to_string(), self.now, true).unwrap();
                }
            }
        }
        round.finish(self.now, &json!({"groups": plan.groups.len()})).unwrap();
    }

    pub fn export(&self) {
        self.project.round().export(&self.output(), |_| {}).unwrap();
    }

    pub fn output(&self) -> std::path::PathBuf {
        self.project.path("todos")
    }

    /// A user says something of one of the tasks; `turn` chooses which, and what.
    pub fn user(&mut self, turn: usize) {
        let ids = self.tasks();
        let Some(id) = ids.get(turn % ids.len().max(1)) else { return };
        self.now += 1;
        let request_id = format!("request {} of {id}", self.now);
        let note = (turn.is_multiple_of(2)).then_some("it was \"said\"");
        let value = ["completed", "open", "P0", "cancelled", "P4"][turn % 5];
        let request = Request {
            task_id: id,
            value,
            request_id: &request_id,
            actor: "li",
            expected_revision: None,
            note,
        };
        let zone = Zone::named("Asia/Shanghai").unwrap();
        let mut store = Store::open(&self.project.state(), self.now).unwrap();
        let wish = if value.starts_with('P') { update_priority } else { update_status };
        // A superseded task refuses; that is no fault of the store.
        let _ = wish(store.conn_mut(), &request, self.now, &zone);
    }

    pub fn tasks(&self) -> Vec<String> {
        let Some(store) = Store::read(&self.project.state()).unwrap() else { return Vec::new() };
        let mut query = store.conn().prepare("SELECT task_id FROM tasks ORDER BY task").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    pub fn verdict(&self) -> Verdict {
        verdict(&self.project.state(), &self.output()).unwrap()
    }
}

pub fn verdict(state: &Path, output: &Path) -> chatproc_core::error::Result<Verdict> {
    verify(state, output, &mut |_, _| Ok(()))
}

/// A task that cites every subject message, quotes each, and cites what was read of its files.
fn draft(batch: &Batch, conversation: &ConversationRef, updated: Option<&TaskRef>) -> Value {
    let cited =
        || conversation.messages.iter().map(|id| &batch.messages[id]).filter(|message| message.subject);
    let sources: Vec<&String> = cited().map(|message| &message.key).collect();
    let quotes: Vec<Value> = cited()
        .filter(|message| !message.text.trim().is_empty())
        .map(|message| {
            let text: String = message.text.chars().take(7).collect();
            json!({"message_key": message.key, "text": text, "check": "exact"})
        })
        .filter(|quote| !quote["text"].as_str().unwrap().trim().is_empty())
        .collect();
    let evidence: Vec<Value> = receipts(batch, conversation)
        .into_iter()
        .filter(|unit| sources.iter().any(|key| **key == unit["message_key"]))
        .map(|unit| json!({"message_key": unit["message_key"], "attachment_id": unit["attachment_id"], "unit": "p1"}))
        .collect();
    json!({
        "task_id": updated.map(|task| &task.task_id), "seen_revision": updated.map(|task| task.revision), "title": format!("交 {}", sources.len()), "event": "课程报告",
        "priority": "P2", "priority_reason": "有截止时间", "status": "open",
        "time": {"start": null, "due": "2026-07-03T17:00:00+08:00", "original": "周五"},
        "people": [{"name": "王老师", "role": null}], "location": "302", "action_steps": ["写", "交"], "notes": "n",
        "sources": sources, "evidence": evidence, "quotes": quotes,
    })
}

fn receipts(batch: &Batch, conversation: &ConversationRef) -> Vec<Value> {
    let files = batch.attachments.values().filter(|file| file.conversation == conversation.reference);
    files
        .map(|file| {
            json!({"message_key": batch.messages[&file.message].key, "attachment_id": file.id, "unit": "p1",
                   "attachment_sha256": "ab".repeat(32), "content_sha256": "cd".repeat(32), "length": 5})
        })
        .collect()
}
