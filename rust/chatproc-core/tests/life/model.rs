//! A model that answers well, says the same twice, lies, or is away.

use chatproc_core::document::{Batch, ConversationRef};
use serde_json::{Value, json};

use super::chance::Chance;
use super::truth::Said;

pub enum Answer {
    /// What must be accepted, unless others changed something meanwhile.
    Good { tasks: Vec<Value>, said: Vec<Said> },
    /// What must be refused, whatever else is so.
    Lie(Vec<Value>),
    /// None.
    Away,
}

/// Answers to a conversation of a batch.
pub fn answer(chance: &mut Chance, batch: &Batch, conversation: &ConversationRef, honest: bool) -> Answer {
    match chance.below(if honest { 5 } else { 9 }) {
        0 | 1 => Answer::Good { tasks: Vec::new(), said: Vec::new() },
        2 | 3 => good(chance, batch, conversation, false),
        4 => good(chance, batch, conversation, true),
        5 => Answer::Away,
        _ => Answer::Lie(lie(chance, batch, conversation)),
    }
}

/// One or two tasks; `again`: the shown ones with what was shown of them.
fn good(chance: &mut Chance, batch: &Batch, conversation: &ConversationRef, again: bool) -> Answer {
    let shown: Vec<_> =
        batch.tasks.values().filter(|task| task.conversations.contains(&conversation.reference)).collect();
    let (mut tasks, mut said) = (Vec::new(), Vec::new());
    for place in 0..=chance.place(2) {
        let updated = shown.get(place).filter(|_| again || chance.one_in(2));
        if again && updated.is_none() {
            break;
        }
        let (draft, mut told) = draft(chance, batch, conversation);
        let mut draft = draft;
        if let Some(task) = updated {
            draft["task_id"] = json!(task.task_id);
            draft["seen_revision"] = json!(task.revision);
            if again {
                draft["title"] = json!(task.view.title);
                draft["priority"] = json!(task.view.priority);
            }
            draft["priority"].as_str().unwrap().clone_into(&mut told.priority);
            (told.task, told.seen) = (Some(task.task_id.clone()), i64::try_from(task.revision).ok());
        }
        tasks.push(draft);
        said.push(told);
    }
    Answer::Good { tasks, said }
}

fn draft(chance: &mut Chance, batch: &Batch, conversation: &ConversationRef) -> (Value, Said) {
    let messages = || conversation.messages.iter().map(|id| &batch.messages[id]);
    let subject: Vec<_> = messages().filter(|message| message.subject).collect();
    let mut cited = vec![chance.of(&subject)];
    cited.extend(subject.iter().filter(|_| chance.one_in(3)).copied());
    cited.sort_by(|one, other| one.key.cmp(&other.key));
    cited.dedup_by(|one, other| one.key == other.key);
    let quotes: Vec<Value> = cited
        .iter()
        .filter(|message| !message.text.trim().is_empty())
        .map(|message| {
            let text: String = message.text.chars().take(6).collect();
            json!({"message_key": message.key, "text": text, "check": "exact"})
        })
        .collect();
    let original = cited.iter().find(|message| message.text.contains("周五17:00前")).map(|_| "周五17:00前");
    let (status, priority) = (chance.of(&["open", "open", "cancelled"]), chance.of(&["P0", "P2", "P4"]));
    let keys: Vec<&String> = cited.iter().map(|message| &message.key).collect();
    let draft = json!({
        "task_id": null, "seen_revision": null, "title": format!("交 {}", chance.next()), "event": "课程报告",
        "priority": priority, "priority_reason": "有截止时间", "status": status,
        "time": {"start": null, "due": null, "original": original}, "people": [], "location": null,
        "action_steps": [], "notes": "", "sources": keys, "evidence": [], "quotes": quotes,
    });
    let said = Said {
        status: status.to_owned(),
        priority: priority.to_owned(),
        sources: keys.into_iter().cloned().collect(),
        task: None,
        seen: None,
    };
    (draft, said)
}

fn lie(chance: &mut Chance, batch: &Batch, conversation: &ConversationRef) -> Vec<Value> {
    let (honest, _) = draft(chance, batch, conversation);
    let mut draft = honest.clone();
    let key = honest["sources"][0].clone();
    let elsewhere = batch.messages.values().find(|message| message.conversation != conversation.reference);
    match chance.below(11) {
        0 => draft["sources"] = json!([key, "never seen"]),
        1 => draft["sources"] = json!([elsewhere.map_or("nowhere", |message| message.key.as_str()), key]),
        2 => draft["status"] = json!("completed"),
        3 => draft["status"] = json!("superseded"),
        4 => draft["priority"] = json!("P9"),
        5 => draft["title"] = json!(" "),
        6 => draft["evidence"] = json!([{"message_key": key, "attachment_id": "a0", "unit": "p1"}]),
        7 => draft["quotes"] = json!([{"message_key": key, "text": "what nobody said", "check": "exact"}]),
        8 => draft["task_id"] = json!("t_none"),
        9 => draft["time"]["due"] = json!("2026-02-30"),
        _ => draft["sources"] = json!([]),
    }
    // A lie among truths takes them with it.
    if chance.one_in(2) { vec![honest, draft] } else { vec![draft] }
}
