//! `explain` tells a message's whole way, and the outcome that `status` counts it under.

use std::collections::BTreeMap;

use chatproc_core::plan::Options;
use chatproc_core::store::Store;
use chatproc_core::store::explain::{Way, explain};
use chatproc_core::zone::Zone;
use proptest::prelude::*;

use crate::chat::{Answer, Chat};
use crate::common::world::{Delivery, chain, delivery, world};

fn way(chat: &Chat, key: &str) -> Option<Way> {
    let store = Store::read(&chat.project.state()).unwrap().unwrap();
    explain(&store, key, &Zone::named("Asia/Shanghai").unwrap()).unwrap()
}

fn keys(chat: &Chat) -> Vec<String> {
    let store = Store::read(&chat.project.state()).unwrap().unwrap();
    let mut query = store.conn().prepare("SELECT key FROM messages").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

#[test]
fn a_messages_way_is_told_from_its_line_to_its_task() {
    let mut chat = Chat::new(Options::default());
    chat.deliver(&chain(&["m1", "m2", "m3"]));
    let fresh = way(&chat, "m2").unwrap();
    assert_eq!((fresh.outcome, fresh.segment.is_none()), ("pending", true));
    assert!(fresh.why.contains("after the last round"), "{}", fresh.why);
    chat.round(&[Answer::Failure]);
    let failed = way(&chat, "m2").unwrap();
    assert_eq!((failed.outcome, failed.failure.unwrap().reason.as_str()), ("failed", "the model is away"));
    chat.round(&[Answer::Task]);
    let cited = way(&chat, "m2").unwrap();
    assert_eq!((cited.outcome, cited.tasks.len(), cited.failure.is_none()), ("cited", 1, true));
    let place = cited.segment.unwrap();
    assert_eq!((place.continuity.as_str(), place.status.as_str(), place.position), ("proven", "done", 2));
    assert_eq!((place.previous.as_deref(), place.next.as_deref()), (Some("m1"), Some("m3")));
    assert_eq!(place.predecessor.as_deref(), Some("m1"));
    let commit = &cited.commits[0];
    assert!(commit.current && commit.finished && commit.group.starts_with("g_"));
    assert_eq!((commit.model.as_str(), &commit.tasks), ("small", &vec![cited.tasks[0].task_id.clone()]));
    let read = &cited.deliveries[0];
    assert!(read.file.as_ref().is_some_and(|file| file.ends_with("batch-001.jsonl")) && read.line == 2);

    let edited = Delivery {
        event_id: "edit".to_owned(),
        revision: 1,
        state: "edited",
        ..chain(&["m1", "m2"]).pop().unwrap()
    };
    chat.page(&[edited]);
    let changed = way(&chat, "m2").unwrap();
    assert_eq!((changed.revision, changed.earlier_revisions, changed.state), (1, vec![0], "edited"));
    assert_eq!((changed.deliveries.len(), changed.deliveries[1].file.is_none()), (2, true));
    assert!(changed.why.contains("looks at it again"), "{}", changed.why);
    chat.round(&[Answer::Nothing]);
    let read = way(&chat, "m2").unwrap();
    assert_eq!((read.outcome, read.tasks[0].status.as_str()), ("read-no-task", "superseded"));
    assert_eq!(read.why, "small read it and found no task: only talk");

    chat.options.timezone = "UTC".to_owned();
    chat.options.max_conversation_chars = 300;
    chat.round(&[]);
    let oversized = way(&chat, "m2").unwrap();
    assert_eq!(oversized.outcome, "oversized");
    assert!(oversized.why.contains("a group takes 300"), "{}", oversized.why);
    assert!(way(&chat, "m9").is_none());
}

#[test]
fn a_segment_that_was_done_under_other_settings_says_so() {
    let mut chat = Chat::new(Options { max_groups_per_round: 1, ..Options::default() });
    chat.deliver(&[delivery("m1", 1), Delivery { conversation: "other".to_owned(), ..delivery("m2", 2) }]);
    chat.round(&[Answer::Nothing]);
    chat.round(&[Answer::Nothing]);
    chat.options.timezone = "UTC".to_owned();
    chat.round(&[Answer::Nothing]);
    let waiting = way(&chat, "m2").unwrap();
    assert_eq!((waiting.outcome, waiting.commits[0].current), ("pending", false));
    assert!(waiting.why.contains("under other settings"), "{}", waiting.why);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_has_the_outcome_that_status_counts(
        deliveries in world(12).prop_shuffle(),
        answers in prop::collection::vec(prop::sample::select(vec![Answer::Nothing, Answer::Task, Answer::Failure]), 1..5),
        start_at in prop::sample::select(vec![0.0, 1_782_835_260.0]),
    ) {
        let mut chat = Chat::new(Options { max_conversation_chars: 900, start_at, ..Options::default() });
        let (first, second) = deliveries.split_at(deliveries.len() / 2);
        for part in [first, second] {
            chat.deliver(part);
            chat.round(&answers);
        }
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for key in keys(&chat) {
            *counts.entry(way(&chat, &key).unwrap().outcome.to_owned()).or_default() += 1;
        }
        let status = chat.project.status();
        for (outcome, count) in status["outcomes"].as_object().unwrap() {
            prop_assert_eq!(counts.remove(outcome).unwrap_or_default(), count.as_i64().unwrap(), "{}", outcome);
        }
        prop_assert!(counts.is_empty());
    }
}
