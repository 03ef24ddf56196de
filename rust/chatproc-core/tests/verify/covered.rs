//! The coverage of a conversation adds up at any moment, and says of each message what `explain` says.

use std::collections::BTreeMap;

use chatproc_core::plan::Options;
use chatproc_core::store::Store;
use chatproc_core::store::coverage::{
    ConversationsQuery, Coverage, Covered, Listed, Query, conversations, coverage,
};
use chatproc_core::store::explain::explain;
use chatproc_core::zone::Zone;
use proptest::prelude::*;

use crate::chat::{Answer, Chat};
use crate::common::world::{Delivery, chain, delivery, world};

fn store(chat: &Chat) -> Store {
    Store::read(&chat.project.state()).unwrap().unwrap()
}

fn zone() -> Zone {
    Zone::named("Asia/Shanghai").unwrap()
}

fn all_conversations(store: &Store, limit: usize) -> Vec<Listed> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = conversations(store.conn(), &ConversationsQuery { query: None, limit, after }).unwrap();
        assert!(page.conversations.len() <= limit);
        all.extend(page.conversations);
        after = page.next_after;
        if after.is_none() {
            assert_eq!(i64::try_from(all.len()).unwrap(), page.total);
            return all;
        }
    }
}

fn one_page(
    store: &Store,
    of: &Listed,
    outcome: Option<&str>,
    limit: usize,
    after: Option<String>,
) -> Coverage {
    let query = Query {
        platform: of.platform.clone(),
        account_id: of.account_id.clone(),
        conversation_id: of.id.clone(),
        outcome: outcome.map(str::to_owned),
        limit,
        after,
    };
    coverage(store.conn(), &query, &zone()).unwrap().unwrap()
}

fn pages(store: &Store, of: &Listed, outcome: Option<&str>, limit: usize) -> Vec<Covered> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = one_page(store, of, outcome, limit, after);
        assert!(page.messages.len() <= limit);
        all.extend(page.messages);
        after = page.next_after;
        if after.is_none() {
            return all;
        }
    }
}

fn counts(of: &Coverage) -> BTreeMap<String, i64> {
    of.outcomes.iter().map(|(outcome, count)| (outcome.clone(), count.as_i64().unwrap())).collect()
}

/// Looks at every conversation, and gives the counts of all together.
fn check(chat: &Chat) -> BTreeMap<String, i64> {
    let store = store(chat);
    let mut sums = BTreeMap::new();
    let mut seen = 0;
    for listed in all_conversations(&store, 1) {
        let all = pages(&store, &listed, None, 3);
        assert_eq!(i64::try_from(all.len()).unwrap(), listed.messages);
        let counted = counts(&one_page(&store, &listed, None, 1, None));
        assert_eq!(counted.values().sum::<i64>(), listed.messages, "{counted:?}");
        for pair in all.windows(2) {
            assert!(pair[0].sent_at <= pair[1].sent_at);
        }
        for message in &all {
            let way = explain(&store, &message.message_key, &zone()).unwrap().unwrap();
            assert_eq!((message.outcome, &message.why), (way.outcome, &way.why));
            assert_eq!(
                (&message.sent_at, &message.sender, message.state),
                (&way.sent_at, &way.sender, way.state)
            );
            assert_eq!(message.text, way.text.chars().take(200).collect::<String>());
            assert_eq!((way.platform, way.conversation.id), (listed.platform.clone(), listed.id.clone()));
            let ids = |tasks: &[chatproc_core::store::explain::TaskOf]| {
                tasks.iter().map(|task| task.task_id.clone()).collect::<Vec<_>>()
            };
            assert_eq!(ids(&message.tasks), ids(&way.tasks));
        }
        for (outcome, count) in counted {
            let keys = |messages: Vec<Covered>| -> Vec<String> {
                messages.into_iter().map(|message| message.message_key).collect()
            };
            let those = all.iter().filter(|message| message.outcome == outcome).cloned().collect();
            let filtered = pages(&store, &listed, Some(&outcome), 2);
            assert_eq!(i64::try_from(filtered.len()).unwrap(), count);
            assert_eq!(keys(filtered), keys(those), "{outcome}");
            *sums.entry(outcome).or_default() += count;
        }
        seen += listed.messages;
    }
    let messages: i64 =
        store.conn().query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, messages);
    sums
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversations_counts_are_its_messages_at_any_moment(
        deliveries in world(12).prop_shuffle(),
        answers in prop::collection::vec(prop::sample::select(vec![Answer::Nothing, Answer::Task, Answer::Failure]), 1..5),
        start_at in prop::sample::select(vec![0.0, 1_782_835_260.0]),
    ) {
        let mut chat = Chat::new(Options { max_conversation_chars: 900, start_at, ..Options::default() });
        let (first, second) = deliveries.split_at(deliveries.len() / 2);
        for part in [first, second] {
            chat.deliver(part);
            check(&chat);
            chat.round(&answers);
            let status = chat.project.status();
            for (outcome, count) in check(&chat) {
                prop_assert_eq!(status["outcomes"][&outcome].as_i64().unwrap(), count, "{}", outcome);
            }
        }
    }
}

#[test]
fn an_edit_a_recall_and_a_move_are_counted_before_the_next_round_too() {
    let mut chat = Chat::new(Options::default());
    chat.deliver(&chain(&["m1", "m2", "m3"]));
    chat.round(&[Answer::Task]);
    let later = |key: &str, state, conversation: &str| Delivery {
        event_id: format!("{key}-later"),
        revision: 1,
        state,
        conversation: conversation.to_owned(),
        ..chain(&["m1", "m2", "m3"]).into_iter().find(|it| it.key == key).unwrap()
    };
    let home = delivery("m1", 1).conversation;
    chat.page(&[
        later("m1", "recalled", &home),
        later("m2", "edited", &home),
        later("m3", "edited", "elsewhere"),
    ]);
    let sums = check(&chat);
    assert_eq!((sums["recalled"], sums["cited"]), (1, 2));
    assert_eq!(all_conversations(&store(&chat), 9).iter().map(|it| it.messages).sum::<i64>(), 3);
    chat.round(&[Answer::Nothing]);
    assert_eq!(check(&chat)["recalled"], 1);
}

#[test]
fn what_is_not_there_is_told() {
    let mut chat = Chat::new(Options::default());
    chat.deliver(&chain(&["m1", "m2"]));
    let store = store(&chat);
    let listed = all_conversations(&store, 9).remove(0);
    let ask = |id: &str, outcome: Option<&str>, limit, after: Option<&str>| {
        let query = Query {
            platform: listed.platform.clone(),
            account_id: listed.account_id.clone(),
            conversation_id: id.to_owned(),
            outcome: outcome.map(str::to_owned),
            limit,
            after: after.map(str::to_owned),
        };
        coverage(store.conn(), &query, &zone()).map(|found| found.is_some())
    };
    assert!(ask(&listed.id, None, 1, Some("m2")).unwrap());
    assert!(!ask("another", None, 1, None).unwrap());
    for refused in [
        ask(&listed.id, Some("lost"), 1, None),
        ask(&listed.id, None, 0, None),
        ask(&listed.id, None, 1_001, None),
        ask(&listed.id, None, 1, Some("m9")),
    ] {
        assert!(refused.is_err());
    }
}
