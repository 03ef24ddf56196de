//! Whatever happens, and in whatever order: the outcomes add up to the messages, and nothing is broken.

use chatproc_core::plan::Options;
use chatproc_core::segment::Grouping;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::chat::{Answer, Chat, verdict};
use crate::common::settings;
use crate::common::world::{Delivery, delivery, world};

#[derive(Clone, Debug)]
enum Step {
    Deliver(usize),
    Page(usize),
    Round(Vec<Answer>),
    User(usize),
    Export,
    Settings(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let answer = prop::sample::select(vec![
        Answer::Nothing,
        Answer::Task,
        Answer::Task,
        Answer::Update,
        Answer::Update,
        Answer::Failure,
    ]);
    prop_oneof![
        3 => (1..8usize).prop_map(Step::Deliver),
        1 => (1..4usize).prop_map(Step::Page),
        4 => prop::collection::vec(answer, 1..4).prop_map(Step::Round),
        2 => (0..30usize).prop_map(Step::User),
        1 => Just(Step::Export),
        1 => (0..3usize).prop_map(Step::Settings),
    ]
}

fn take(chat: &mut Chat, step: Step, waiting: &mut Vec<Delivery>) {
    let mut next = |count: usize| {
        let rest = waiting.split_off(count.min(waiting.len()));
        std::mem::replace(waiting, rest)
    };
    match step {
        Step::Deliver(count) => chat.deliver(&next(count)),
        Step::Page(count) => chat.page(&next(count)),
        Step::Round(answers) => chat.round(&answers),
        Step::User(turn) => chat.user(turn),
        Step::Export => chat.export(),
        Step::Settings(number) => match number {
            0 => chat.options.grouping = Grouping::Time,
            1 => chat.options.grouping = Grouping::Session,
            _ => {
                chat.options.grouping = Grouping::Sql;
                chat.options.start_at = 1_782_835_260.0;
            }
        },
    }
}

fn check(chat: &Chat) {
    let verdict = chat.verdict();
    assert!(verdict.ok, "{:#?}", verdict.breaks);
    let status = chat.project.status();
    let outcomes = status["outcomes"].as_object().unwrap();
    let counts: Vec<i64> = outcomes.values().map(|count| count.as_i64().unwrap()).collect();
    assert!(counts.iter().all(|&count| count >= 0), "{outcomes:?}");
    assert_eq!(Value::from(counts.iter().sum::<i64>()), status["messages"], "{outcomes:?}");
}

#[test]
fn nothing_is_broken_at_any_moment_of_a_round_that_is_at_work() {
    let mut chat = Chat::new(Options { max_groups_per_round: 3, ..Options::default() });
    let room = |number: usize| Delivery {
        conversation: format!("room {number}"),
        ..delivery(&format!("m{number}"), i64::try_from(number).unwrap())
    };
    chat.deliver(&(0..30).map(room).collect::<Vec<_>>());
    let (state, output) = (chat.project.state(), chat.output());
    let worker = std::thread::spawn(move || {
        for turn in 0..10 {
            chat.round(&[Answer::Task, Answer::Nothing, Answer::Failure]);
            chat.user(turn);
            chat.export();
        }
        chat
    });
    let mut looked = 0;
    while !worker.is_finished() || looked == 0 {
        let found = verdict(&state, &output).unwrap();
        assert!(found.ok, "{:#?}", found.breaks);
        looked += 1;
    }
    // The files go with the project, which lives until here.
    drop(worker.join().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outcomes_add_up_and_nothing_is_broken_after_every_step(
        deliveries in world(12).prop_shuffle(), steps in prop::collection::vec(step(), 1..14)
    ) {
        let mut chat = Chat::new(Options { max_conversation_chars: 900, max_input_chars: 3_000, ..Options::default() });
        let mut waiting = deliveries;
        for step in steps {
            take(&mut chat, step, &mut waiting);
            check(&chat);
        }
    }
}

#[test]
fn a_group_that_is_committed_twice_leaves_both_commits_sound() {
    let mut chat = Chat::new(Options::default());
    chat.deliver(&[delivery("m1", 60)]);
    let mut round = chat.project.round();
    round.begin(chat.now).unwrap();
    let plan = round.plan(chat.options.clone(), settings()).unwrap();
    for _ in 0..2 {
        let outcome = serde_json::from_value(json!({"no_task_reason": "only talk"})).unwrap();
        let groups = vec![(plan.groups[0].id.clone(), outcome)];
        let ended = round.commit(groups, &json!({"requests": 1}), chat.now).unwrap();
        assert!(ended[0].is_ok(), "{ended:?}");
    }
    drop(round);
    let verdict = chat.verdict();
    assert!(verdict.ok, "{:?}", verdict.breaks);
}
