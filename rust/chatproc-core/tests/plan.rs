//! Segments become groups, rounds and batches within exact budgets: against the slow oracle, and the
//! sentences of the contract one by one.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::collections::BTreeSet;

use chatproc_core::agenda::plan_lines;
use chatproc_core::plan::{Batching, Group, Options, Pending, Plan, Waiting, batches, plan};
use chatproc_core::revision::Place;
use common::oracle;
use common::world::{self, Delivery, Link};
use proptest::prelude::*;
use serde_json::{Value, json};

fn place(number: usize) -> Place {
    let [platform, account_id, conversation_id] =
        [["qq", "1", "b"], ["qq", "1", "a"], ["qq", "", "c"], ["aa", "9", "z"]][number].map(str::to_owned);
    Place { platform, account_id, conversation_id }
}

fn pending() -> impl Strategy<Value = Pending> {
    (100..900u64, 1..4u64, 0..3u64, 0..40i64).prop_map(|(chars, sent, carried, subject_at)| Pending {
        segment: 0,
        chars,
        sent,
        refs: sent + carried,
        files: 0,
        subject_at,
    })
}

/// Conversations with pending segments; a conversation's are in the order of their first subject message.
fn waiting() -> impl Strategy<Value = Vec<Waiting>> {
    let segments = || prop::collection::vec(pending(), 0..7);
    prop::collection::vec(segments(), 4).prop_map(|conversations| {
        let mut segment = 0;
        let number = |(conversation, mut segments): (usize, Vec<Pending>)| {
            segments.sort_by_key(|pending| pending.subject_at);
            for pending in &mut segments {
                pending.segment = segment;
                segment += 1;
            }
            Waiting { place: place(conversation), segments }
        };
        conversations.into_iter().enumerate().map(number).collect()
    })
}

fn find(waiting: &[Waiting], segment: usize) -> &Pending {
    waiting.iter().flat_map(|waiting| &waiting.segments).find(|pending| pending.segment == segment).unwrap()
}

fn limit(options: &Options) -> u64 {
    options.max_conversation_chars.min(options.max_input_chars - 200)
}

fn first_subject(waiting: &[Waiting], group: &Group) -> (i64, Place) {
    (find(waiting, group.segments[0]).subject_at, waiting[group.conversation].place.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_hold_each_segment_once_within_the_sum(waiting in waiting(), options in world::options()) {
        let Plan { groups, oversized } = plan(&waiting, &options);
        for group in &groups {
            let held: Vec<&Pending> = group.segments.iter().map(|&segment| find(&waiting, segment)).collect();
            prop_assert_eq!(group.chars, 160 + held.iter().map(|pending| pending.chars).sum::<u64>());
            prop_assert_eq!(group.sent, held.iter().map(|pending| pending.sent).sum::<u64>());
            prop_assert!(group.chars <= limit(&options));
            // Closed once it holds that many: before its last segment it held fewer.
            let before = group.sent - held.last().unwrap().sent;
            prop_assert!(held.len() == 1 || before < options.max_messages);
        }
        for &(conversation, segment) in &oversized {
            prop_assert!(find(&waiting, segment).chars + 160 > limit(&options));
            prop_assert!(waiting[conversation].segments.iter().any(|pending| pending.segment == segment));
        }
        let planned = groups.iter().flat_map(|group| group.segments.iter().copied());
        let mut all: Vec<usize> = planned.chain(oversized.iter().map(|&(_, segment)| segment)).collect();
        all.sort_unstable();
        let wanted: usize = waiting.iter().map(|waiting| waiting.segments.len()).sum();
        prop_assert_eq!(all, (0..wanted).collect::<Vec<_>>());
    }

    #[test]
    fn a_groups_segments_and_a_conversations_groups_are_in_order_and_as_full_as_they_may_be(
        waiting in waiting(), options in world::options(),
    ) {
        let Plan { groups, oversized } = plan(&waiting, &options);
        let too_long: BTreeSet<usize> = oversized.iter().map(|&(_, segment)| segment).collect();
        for (conversation, waiting_there) in waiting.iter().enumerate() {
            let own: Vec<&Group> = groups.iter().filter(|group| group.conversation == conversation).collect();
            let planned: Vec<usize> = own.iter().flat_map(|group| group.segments.clone()).collect();
            let fitting = waiting_there.segments.iter().map(|pending| pending.segment);
            let fitting: Vec<usize> = fitting.filter(|segment| !too_long.contains(segment)).collect();
            prop_assert_eq!(planned, fitting);
            for pair in own.windows(2) {
                let next = find(&waiting, pair[1].segments[0]);
                let full = pair[0].sent >= options.max_messages;
                prop_assert!(full || pair[0].chars + next.chars > limit(&options));
            }
        }
    }

    #[test]
    fn rounds_take_the_conversation_whose_next_group_is_the_oldest(
        waiting in waiting(), options in world::options(),
    ) {
        let groups = plan(&waiting, &options).groups;
        for (at, group) in groups.iter().enumerate() {
            let mut met = BTreeSet::new();
            let next = groups[at..].iter().filter(|group| met.insert(group.conversation));
            let oldest = next.map(|group| first_subject(&waiting, group)).min();
            prop_assert_eq!(Some(first_subject(&waiting, group)), oldest);
        }
    }

    #[test]
    fn a_plans_beginning_never_depends_on_its_end(
        waiting in waiting(), options in world::options(), later in prop::collection::vec(pending(), 4),
    ) {
        let before = plan(&waiting, &options).groups;
        let mut more = waiting.clone();
        for (number, (waiting, pending)) in more.iter_mut().zip(later).enumerate() {
            waiting.segments.push(Pending { segment: 1_000 + number, subject_at: 50, ..pending });
        }
        let after = plan(&more, &options).groups;
        // Only a conversation's last group may still grow.
        let open = |group: &Group| {
            let last = before.iter().rev().find(|other| other.conversation == group.conversation);
            last == Some(group)
        };
        let closed: Vec<&Group> = before.iter().filter(|group| !open(group)).collect();
        let kept: Vec<&Group> = after.iter().filter(|group| closed.contains(group)).collect();
        prop_assert_eq!(kept, closed);
        for (one, other) in before.iter().zip(&after) {
            prop_assert_eq!(one.segments[0], other.segments[0]);
            prop_assert!(other.segments.starts_with(&one.segments));
        }
        // Next-fit: a longer round begins with the batches of the shorter one, whose last may still grow.
        let whole = batches(&after, &options);
        for count in 0..=after.len() {
            let shorter = batches(&after[..count], &options);
            let closed = shorter.len().saturating_sub(1);
            prop_assert_eq!(&shorter[..closed], &whole[..closed]);
            if let Some(last) = shorter.last() {
                prop_assert!(whole[closed].starts_with(last));
            }
        }
    }

    #[test]
    fn an_oversized_segment_closes_no_group(
        waiting in waiting(), options in world::options(), at in 0..7usize, conversation in 0..4usize,
    ) {
        let mut more = waiting.clone();
        let at = at.min(more[conversation].segments.len());
        let giant =
            Pending { segment: 1_000, chars: 5_001, sent: 9, refs: 9, files: 0, subject_at: 0 };
        more[conversation].segments.insert(at, giant);
        let (one, other) = (plan(&waiting, &options), plan(&more, &options));
        prop_assert_eq!(one.groups, other.groups);
        prop_assert_eq!(other.oversized.len(), one.oversized.len() + 1);
    }

    #[test]
    fn batches_are_next_fit_with_a_conversation_at_most_once(waiting in waiting(), options in world::options()) {
        let groups = plan(&waiting, &options).groups;
        let made = batches(&groups, &options);
        prop_assert_eq!(made.concat(), (0..groups.len()).collect::<Vec<_>>());
        let sum = |batch: &[usize]| 200 + batch.iter().map(|&at| groups[at].chars).sum::<u64>();
        for (number, batch) in made.iter().enumerate() {
            let conversations: BTreeSet<usize> = batch.iter().map(|&at| groups[at].conversation).collect();
            prop_assert_eq!(conversations.len(), batch.len());
            prop_assert!(sum(batch) <= options.max_input_chars);
            prop_assert!(options.batching == Batching::Auto || batch.len() == 1);
            if let Some(next) = made.get(number + 1).filter(|_| options.batching == Batching::Auto) {
                let next = &groups[next[0]];
                let fits = sum(batch) + next.chars <= options.max_input_chars;
                prop_assert!(!fits || conversations.contains(&next.conversation));
            }
        }
    }
}

/// Conversations with one list of (characters, messages) each.
fn sized(conversations: &[&[(u64, u64)]]) -> Vec<Waiting> {
    let mut segment = 0;
    let mut pending = |&(chars, sent): &(u64, u64)| {
        segment += 1;
        Pending { segment, chars, sent, refs: sent, files: 0, subject_at: 0 }
    };
    let segments = conversations.iter().map(|sizes| sizes.iter().map(&mut pending).collect::<Vec<_>>());
    segments.enumerate().map(|(at, segments)| Waiting { place: place(at), segments }).collect()
}

#[test]
fn budgets_hold_to_the_character() {
    let options = |max_conversation_chars, max_input_chars| Options {
        max_conversation_chars,
        max_input_chars,
        ..Options::default()
    };
    let two = sized(&[&[(300, 1), (400, 1)]]);
    assert_eq!(plan(&two, &options(860, 10_000)).groups.len(), 1);
    assert_eq!(plan(&two, &options(859, 10_000)).groups.len(), 2);
    assert_eq!(plan(&two, &options(560, 10_000)).oversized, []);
    assert_eq!(plan(&two, &options(559, 10_000)).oversized, [(0, 2)]);
    // No group is longer than a document has room for.
    assert_eq!(plan(&two, &options(10_000, 760)).oversized, []);
    assert_eq!(plan(&two, &options(10_000, 759)).oversized, [(0, 2)]);
    let apart = sized(&[&[(300, 1)], &[(400, 1)]]);
    let groups = plan(&apart, &options(1_000, 10_000)).groups;
    assert_eq!(batches(&groups, &options(1_000, 200 + 460 + 560)).len(), 1);
    assert_eq!(batches(&groups, &options(1_000, 200 + 460 + 560 - 1)).len(), 2);
}

#[test]
fn a_group_is_closed_once_it_holds_so_many_messages_and_no_segment_is_cut_for_it() {
    let lengths = |sizes: &[(u64, u64)]| -> Vec<usize> {
        let options = Options { max_messages: 4, ..Options::default() };
        plan(&sized(&[sizes]), &options).groups.iter().map(|group| group.segments.len()).collect()
    };
    assert_eq!(lengths(&[(9, 3), (9, 9), (9, 1)]), [2, 1]);
    assert_eq!(lengths(&[(9, 4), (9, 9), (9, 1)]), [1, 1, 1]);
    assert_eq!(lengths(&[(9, 1), (9, 1), (9, 1), (9, 1), (9, 1)]), [4, 1]);
}

/// The plan without what only digests tell.
fn shape(plan: &Value) -> Value {
    let names: Vec<&Value> = plan["groups"].as_array().unwrap().iter().map(|group| &group["id"]).collect();
    let number = |id: &Value| names.iter().position(|name| *name == id).unwrap();
    let segment = |segment: &Value| {
        json!([segment["continuity"], segment["chars"], segment["messages"], segment["carried"]])
    };
    let list = |value: &Value, shape: &dyn Fn(&Value) -> Value| -> Vec<Value> {
        value.as_array().unwrap().iter().map(shape).collect()
    };
    let place = |value: &Value| {
        json!([
            value["conversation"]["platform"],
            value["conversation"]["account_id"],
            value["conversation"]["id"]
        ])
    };
    json!({
        "segments": list(&plan["segments"], &|value| json!([place(value), segment(value), value["oversized"]])),
        "groups": list(&plan["groups"], &|value| {
            json!([place(value), value["messages"], value["chars"], list(&value["segments"], &segment)])
        }),
        "batches": list(&plan["batches"], &|batch| json!(list(batch, &|id| json!(number(id))))),
        "oversized": list(&plan["oversized"], &|value| {
            json!([place(value), value["chars"], value["limit"], value["messages"], value["first_message"]])
        }),
    })
}

fn wanted(deliveries: &[Delivery], options: &Options) -> Value {
    let planned = oracle::plan(&oracle::held(deliveries), options);
    let limit = limit(options);
    let segment = |segment: &oracle::Segment| {
        json!([segment.continuity, segment.chars, segment.members, segment.carried])
    };
    let segments =
        planned.segments.iter().map(|one| json!([one.place, segment(one), one.chars + 160 > limit]));
    let groups = planned.groups.iter().map(|group| {
        let segments: Vec<Value> = group.segments.iter().map(segment).collect();
        json!([group.segments[0].place, group.messages(), group.chars, segments])
    });
    let oversized = planned
        .oversized
        .iter()
        .map(|one| json!([one.place, one.chars + 160, limit, one.sent, one.members[0]]));
    json!({
        "segments": segments.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "batches": planned.batches,
        "oversized": oversized.collect::<Vec<_>>(),
    })
}

fn plan_of(deliveries: &[Delivery], options: &Options) -> Value {
    let lines: Vec<Vec<u8>> = deliveries.iter().map(Delivery::line).collect();
    plan_lines(lines.iter().map(Vec::as_slice), options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn planned_lines_are_what_the_slow_oracle_plans(deliveries in world::world(14), options in world::options()) {
        let plan = plan_of(&deliveries, &options);
        prop_assert_eq!(shape(&plan), wanted(&deliveries, &options));
        prop_assert_eq!(&plan["counts"]["accepted"], &json!(deliveries.len()));
        prop_assert_eq!(&plan["messages"], &json!(oracle::held(&deliveries).len()));
    }
}

/// The fingerprint of the only segment.
fn fingerprint(deliveries: &[Delivery]) -> String {
    let plan = plan_of(deliveries, &Options::default());
    assert_eq!(plan["segments"].as_array().unwrap().len(), 1);
    plan["segments"][0]["fingerprint"].as_str().unwrap().to_owned()
}

type Change = fn(&mut Delivery);

#[test]
fn a_fingerprint_knows_each_thing_that_the_contract_names() {
    let base = world::chain(&["a", "b"]);
    let changes: [Change; 12] = [
        |delivery| delivery.key = "other".to_owned(),
        |delivery| delivery.revision = 1,
        |delivery| delivery.text = "other".to_owned(),
        |delivery| delivery.sender_name = Some("somebody".to_owned()),
        |delivery| delivery.sender_name = Some(String::new()),
        |delivery| delivery.sender_id = Some("s".to_owned()),
        |delivery| delivery.state = "recalled",
        |delivery| delivery.sent_at += 1,
        |delivery| delivery.mentions = json!([{"all": true}]),
        |delivery| delivery.reply_to = Some("a".to_owned()),
        |delivery| delivery.files = vec![world::File::of(0)],
        |delivery| delivery.sequence = Some(Link { index: None, predecessor: Some("a".to_owned()) }),
    ];
    let mut seen = BTreeSet::from([fingerprint(&base)]);
    let (named, last) = changes.split_at(11);
    for (number, change) in named.iter().enumerate() {
        let mut deliveries = base.clone();
        change(&mut deliveries[1]);
        assert!(seen.insert(fingerprint(&deliveries)), "change {number} is not in the fingerprint");
    }
    // The index is no part of what is sent.
    let mut deliveries = base.clone();
    last[0](&mut deliveries[1]);
    assert_eq!(fingerprint(&deliveries), fingerprint(&base));
}

#[test]
fn a_fingerprint_knows_history_and_continuity_and_not_budgets_or_carried_messages() {
    let base = world::chain(&["a", "b"]);
    let with = |options: &Options| {
        let plan = plan_of(&base, options);
        plan["segments"].as_array().unwrap().last().unwrap()["fingerprint"].clone()
    };
    let plain = with(&Options::default());
    let day = 1_782_835_200.0;
    assert_ne!(with(&Options { start_at: day + 5.0, ..Options::default() }), plain);
    let by_time = Options { grouping: chatproc_core::segment::Grouping::Time, ..Options::default() };
    assert_ne!(with(&by_time), plain);
    let small = Options {
        max_messages: 1,
        max_conversation_chars: 900,
        max_input_chars: 2_000,
        ..Options::default()
    };
    assert_eq!(with(&small), plain);
    let cut = |carry_messages| Options {
        grouping: chatproc_core::segment::Grouping::Session,
        gap_minutes: 0.1,
        carry_messages,
        ..Options::default()
    };
    assert_eq!(with(&cut(0)), with(&cut(5)));
}

#[test]
fn a_round_takes_the_first_groups_and_no_more() {
    let deliveries: Vec<Delivery> = (0..5).map(|at| world::delivery(&format!("k{at}"), at)).collect();
    let options = Options { max_messages: 1, max_groups_per_round: 3, ..Options::default() };
    let lines: Vec<Vec<u8>> = deliveries.iter().map(Delivery::line).collect();
    let intake = common::intake_of(lines.iter().map(Vec::as_slice));
    let agenda = common::agenda_of(&intake, &options);
    assert_eq!(agenda.groups.len(), 5);
    assert_eq!(agenda.round(&options), [[0], [1], [2]]);
}
