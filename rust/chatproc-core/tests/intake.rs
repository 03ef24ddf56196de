//! What is stored does not depend on how it came: any order, any repetition, any split into files and
//! rounds and any re-collection give the same plan, and a preview shows what a round then does.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::collections::{BTreeMap, BTreeSet};

use chatproc_core::agenda::plan_lines;
use chatproc_core::document::seconds;
use chatproc_core::plan::Options;
use chatproc_core::revision::Known as _;
use chatproc_core::round::{Round, Settings};
use chatproc_core::segment::Grouping;
use chatproc_core::store::messages::Stored;
use common::world::{self, Delivery, File, chain, delivery};
use common::{NOW, Planned, Project, agenda_of, batches_of, intake_of, oracle, settings};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

fn lines_of(deliveries: &[Delivery]) -> Vec<Vec<u8>> {
    deliveries.iter().map(Delivery::line).collect()
}

fn slices(lines: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    lines.iter().map(Vec::as_slice)
}

/// What is planned from memory, and each batch's document.
fn in_memory(lines: &[Vec<u8>], options: &Options) -> (Value, Vec<String>) {
    let mut plan = plan_lines(slices(lines), options).unwrap();
    plan.as_object_mut().unwrap().remove("counts");
    let intake = intake_of(slices(lines));
    let batches = batches_of(&intake, &agenda_of(&intake, options), options);
    (plan, batches.into_iter().map(|batch| batch.document).collect())
}

/// All that is pending, in one round.
fn unbounded(options: &Options) -> Options {
    Options { max_groups_per_round: 1_000, ..options.clone() }
}

fn shape(plan: &Planned) -> Value {
    json!({"groups": plan.groups, "batches": plan.batches, "oversized": plan.oversized})
}

fn picked(plan: &Value) -> Value {
    json!({"groups": plan["groups"], "batches": plan["batches"], "oversized": plan["oversized"]})
}

/// Deliveries in the collector's order, and the same shuffled with repetitions and cut into rounds.
fn scattered() -> impl Strategy<Value = (Vec<Delivery>, Vec<Vec<Delivery>>)> {
    let repeated = |deliveries: Vec<Delivery>| {
        let again = prop::collection::vec(prop::sample::select(deliveries.clone()), 0..4);
        (Just(deliveries), again)
    };
    let shuffled = |(deliveries, again): (Vec<Delivery>, Vec<Delivery>)| {
        let all: Vec<Delivery> = deliveries.iter().cloned().chain(again).collect();
        (Just(deliveries), Just(all).prop_shuffle(), prop::collection::vec(any::<Index>(), 0..3))
    };
    let cut = |(deliveries, all, cuts): (Vec<Delivery>, Vec<Delivery>, Vec<Index>)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len())).collect();
        cuts.extend([0, all.len()]);
        cuts.sort_unstable();
        let rounds = cuts.windows(2).filter(|pair| pair[0] < pair[1]);
        (deliveries, rounds.map(|pair| all[pair[0]..pair[1]].to_vec()).collect())
    };
    world::world(10).prop_flat_map(repeated).prop_flat_map(shuffled).prop_map(cut)
}

/// The outcomes add up to the messages.
fn check_coverage(status: &Value, messages: usize) {
    let outcomes = status["outcomes"].as_object().unwrap();
    assert!(outcomes.values().all(|count| count.as_i64().unwrap() >= 0), "{status}");
    let sum: i64 = outcomes.values().map(|count| count.as_i64().unwrap()).sum();
    assert_eq!((sum, &status["messages"]), (i64::try_from(messages).unwrap(), &json!(messages)), "{status}");
}

/// What becomes of each message where nothing was committed yet.
fn outcomes(held: &BTreeMap<&str, oracle::Held<'_>>, planned: &oracle::Planned, options: &Options) -> Value {
    let too_long: BTreeSet<&String> = planned.oversized.iter().flat_map(|segment| &segment.members).collect();
    let mut counts = json!({"cited": 0, "read-no-task": 0, "history": 0, "pending": 0, "failed": 0,
        "oversized": 0, "recalled": 0, "system": 0});
    for held in held.values() {
        let told = held.told;
        let outcome = if told.kind == "system" {
            "system"
        } else if told.state == "recalled" {
            "recalled"
        } else if chatproc_core::document::seconds(told.sent_at) < options.start_at {
            "history"
        } else if too_long.contains(&told.key) {
            "oversized"
        } else {
            "pending"
        };
        counts[outcome] = json!(counts[outcome].as_u64().unwrap() + 1);
    }
    counts
}

fn commit(round: &mut Round, group: &str) {
    let nothing = json!({"no_task_reason": "x", "tasks": [], "receipts": []});
    let outcome = serde_json::from_value(nothing).unwrap();
    round.commit(vec![(group.to_owned(), outcome)], &json!({}), NOW).unwrap().remove(0).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_any_order_and_repetition_plans_the_same(
        (deliveries, rounds) in scattered(), options in world::options(),
    ) {
        let (wanted, documents) = in_memory(&lines_of(&deliveries), &options);
        let (plan, same) = in_memory(&lines_of(&rounds.concat()), &options);
        prop_assert_eq!(plan, wanted);
        prop_assert_eq!(same, documents);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_fed_in_any_order_over_any_files_plans_what_memory_plans(
        (deliveries, rounds) in scattered(), options in world::options(), append in any::<bool>(),
    ) {
        let options = unbounded(&options);
        let (wanted, documents) = in_memory(&lines_of(&deliveries), &options);
        let project = Project::new();
        let mut whole = Vec::new();
        let (mut lines, mut accepted) = (0, 0);
        for (number, round) in rounds.iter().enumerate() {
            if append {
                whole.extend(lines_of(round));
                project.write_lines("all.jsonl", &whole);
            } else {
                project.write_lines(&format!("{}.jsonl", 9 - number), &lines_of(round));
            }
            let counts = project.ingest().counts;
            prop_assert_eq!(counts.lines, counts.accepted + counts.repeats + counts.quarantined);
            prop_assert_eq!(counts.quarantined, 0);
            (lines, accepted) = (lines + counts.lines, accepted + counts.accepted);
            if number % 2 == 1 {
                project.plan(&Options { grouping: Grouping::Session, ..options.clone() });
            }
        }
        prop_assert_eq!(lines, rounds.concat().len() as u64);
        prop_assert_eq!(accepted, deliveries.len() as u64);
        let (plan, same) = project.plan(&options);
        prop_assert_eq!(shape(&plan), picked(&wanted));
        prop_assert_eq!(same, documents);

        let held = oracle::held(&deliveries);
        let status = project.status();
        check_coverage(&status, held.len());
        let planned = oracle::plan(&held, &options);
        prop_assert_eq!(&status["outcomes"], &outcomes(&held, &planned, &options));
        prop_assert_eq!(&status["forks"], &json!(planned.forks));
        prop_assert_eq!(&status["events"], &json!(deliveries.len()));
        check_stored(&project, &held)?;
    }

    #[test]
    fn a_preview_shows_what_the_round_then_plans_and_writes_nothing(
        (_, rounds) in scattered(), options in world::options(), planned in any::<bool>(), done in 0..3usize,
    ) {
        let options = unbounded(&options);
        let project = Project::new();
        for (number, round) in rounds.iter().enumerate() {
            let mut writer = project.round();
            if planned {
                let plan = writer.plan(options.clone(), settings()).unwrap();
                for group in plan.groups.iter().take(done) {
                    commit(&mut writer, &group.id);
                }
            }
            drop(writer);
            project.write_lines(&format!("{}.jsonl", 9 - number), &lines_of(round));
            let before = project.status();
            let preview = project.preview(&options);
            prop_assert_eq!(&project.status(), &before);
            let ingested = project.ingest();
            prop_assert_eq!(&preview.ingest, &ingested);
            let unplanned = project.preview(&options);
            let (plan, documents) = project.plan(&options);
            for preview in [preview, unplanned] {
                let shown = json!({"groups": preview.groups, "oversized": preview.oversized});
                prop_assert_eq!(shown, json!({"groups": plan.groups, "oversized": plan.oversized}));
                prop_assert_eq!(preview.pending, plan.pending);
                prop_assert_eq!(&preview.documents, &documents);
            }
        }
    }

    #[test]
    fn of_conflicting_lines_the_first_stays_and_all_are_counted(
        (lines, cut) in conflicting(), options in world::options(),
    ) {
        let options = unbounded(&options);
        let expected = read_in_order(&lines);
        let raw: Vec<Vec<u8>> = lines.iter().map(Delivery::line).collect();
        let plan = plan_lines(slices(&raw), &options).unwrap();
        let reasons: Vec<(u64, &str)> = plan["quarantined"].as_array().unwrap().iter()
            .map(|refused| (refused["line"].as_u64().unwrap(), refused["reason"].as_str().unwrap())).collect();
        prop_assert_eq!(&reasons, &expected.refused);
        let counts = json!({"lines": lines.len(), "accepted": expected.accepted.len(),
            "repeats": lines.len() - expected.accepted.len() - expected.refused.len(),
            "quarantined": expected.refused.len()});
        prop_assert_eq!(&plan["counts"], &counts);
        let (wanted, documents) = in_memory(&lines_of(&expected.accepted), &options);
        prop_assert_eq!(picked(&plan), picked(&wanted));

        let project = Project::new();
        let cut = cut.index(raw.len());
        let (mut refused, mut accepted) = (0, 0);
        for (name, part) in [("1.jsonl", &raw[..cut]), ("2.jsonl", &raw[cut..]), ("3.jsonl", &raw)] {
            if part.is_empty() {
                continue;
            }
            project.write_lines(name, part);
            let counts = project.ingest().counts;
            prop_assert_eq!(counts.lines, counts.accepted + counts.repeats + counts.quarantined);
            (refused, accepted) = (refused + counts.quarantined, accepted + counts.accepted);
            if name == "3.jsonl" {
                prop_assert_eq!(counts.repeats, counts.lines);
            }
        }
        prop_assert_eq!(refused, expected.refused.len() as u64);
        prop_assert_eq!(accepted, expected.accepted.len() as u64);
        let held = project.quarantine();
        prop_assert_eq!(held.len(), expected.refused.len());
        for (held, (line, reason)) in held.iter().zip(&expected.refused) {
            let at = usize::try_from(*line).unwrap() - 1;
            prop_assert_eq!(&held.4, reason);
            prop_assert_eq!(held.5.as_ref().unwrap(), &raw[at]);
        }
        let (plan, same) = project.plan(&options);
        prop_assert_eq!(shape(&plan), picked(&wanted));
        prop_assert_eq!(same, documents);
    }
}

/// What the store holds of each message, against what all deliveries together tell.
fn check_stored(project: &Project, held: &BTreeMap<&str, oracle::Held<'_>>) -> Result<(), TestCaseError> {
    let store = chatproc_core::store::Store::read(&project.state()).unwrap().unwrap();
    for (key, held) in held {
        let message = Stored::over(store.conn()).unwrap().message(key).unwrap().unwrap();
        prop_assert_eq!(message.revision, held.told.revision);
        prop_assert_eq!(&*message.told.event_id, held.told.event_id.as_str());
        prop_assert_eq!(&message.raw[..], &held.told.line());
        prop_assert_eq!(&message.rules, &held.rules);
        let link = message.link.map(|link| world::Link { index: link.index, predecessor: link.predecessor });
        prop_assert_eq!(&link, &held.link);
        let sizes: Vec<_> = message.facts.iter().map(|facts| facts.size).collect();
        let digests: Vec<_> = message.facts.iter().map(|facts| facts.sha256.clone()).collect();
        prop_assert_eq!(&sizes, &held.sizes);
        prop_assert_eq!(&digests, &held.digests);
        if message.kind == chatproc_core::event::Kind::Message {
            prop_assert_eq!(u64::from(message.cost), held.cost());
        }
    }
    Ok(())
}

/// Deliveries of which some say something else under a known event id or revision, and a cut.
fn conflicting() -> impl Strategy<Value = (Vec<Delivery>, Index)> {
    let liars = |deliveries: Vec<Delivery>| {
        let changed = (prop::sample::select(deliveries.clone()), 0..4u8, 0..2u8);
        let liars = prop::collection::vec(changed, 1..6);
        (Just(deliveries), liars)
    };
    let mixed = |(mut deliveries, liars): (Vec<Delivery>, Vec<(Delivery, u8, u8)>)| {
        for (told, lie, name) in liars {
            let event_id = format!("liar {name} of {}", told.event_id);
            deliveries.push(match lie {
                // Another event under the id of a delivery.
                0 => Delivery { collected_at: told.collected_at + 77_000, ..told },
                // Another text of a revision; two such liars may meet under one id.
                1 => Delivery { event_id, text: format!("{} lie", told.text), ..told },
                2 => Delivery { event_id, sent_at: told.sent_at + 1, ..told },
                // Another size where one may be known.
                _ => {
                    let files =
                        told.files.iter().map(|file| File { size: Some(1), ..file.clone() }).collect();
                    Delivery { event_id, files, ..told }
                }
            });
        }
        Just(deliveries).prop_shuffle()
    };
    (world::world(6).prop_flat_map(liars).prop_flat_map(mixed), any::<Index>())
}

/// What is left after reading in order.
#[derive(Default)]
struct Read {
    accepted: Vec<Delivery>,
    refused: Vec<(u64, &'static str)>,
}

/// Reads deliveries one by one, by the contract's sentences.
fn read_in_order(lines: &[Delivery]) -> Read {
    let mut read = Read::default();
    let mut owners: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
    for (number, told) in (1..).zip(lines) {
        let line = told.line();
        if known.contains(&line) {
            continue;
        }
        known.insert(line.clone());
        if owners.get(&told.event_id).is_some_and(|owner| *owner != line) {
            read.refused.push((number, "event-conflict"));
            continue;
        }
        owners.insert(told.event_id.clone(), line);
        let same = |other: &&Delivery| (&other.key, other.revision) == (&told.key, told.revision);
        if read.accepted.iter().filter(same).all(|other| agree(other, told)) {
            read.accepted.push(told.clone());
        } else {
            read.refused.push((number, "revision-conflict"));
        }
    }
    read
}

fn agree(one: &Delivery, other: &Delivery) -> bool {
    let content = |told: &Delivery| {
        let files: Vec<_> =
            told.files.iter().map(|file| (file.id.clone(), world::FILES[file.named].0)).collect();
        let mentions: Vec<_> = told
            .mentions
            .as_array()
            .unwrap()
            .iter()
            .map(|mention| json!([mention["all"], mention["id"]]))
            .collect();
        let sender = (told.sender_id.clone(), told.text.clone(), told.reply_to.clone());
        (told.kind, told.state, told.sent_at, sender, mentions, files)
    };
    let compatible = |one: &File, other: &File| {
        let size = one.size.is_none() || other.size.is_none() || one.size == other.size;
        let digest = one.sha256.is_none() || other.sha256.is_none() || one.sha256 == other.sha256;
        size && digest
    };
    content(one) == content(other)
        && one.files.iter().zip(&other.files).all(|(one, other)| compatible(one, other))
}

/// A project whose groups are all committed.
fn finished(deliveries: &[Delivery], options: &Options) -> Project {
    let project = Project::new();
    project.write_lines("1.jsonl", &lines_of(deliveries));
    project.ingest();
    finish(&project, options);
    project
}

/// Commits everything that is pending.
fn finish(project: &Project, options: &Options) {
    let mut round = project.round();
    let plan = round.plan(unbounded(options), settings()).unwrap();
    for group in plan.groups {
        commit(&mut round, &group.id);
    }
}

/// Keys of pending messages, after reading some more.
fn pending(project: &Project, more: &[Delivery], options: &Options) -> Vec<String> {
    if !more.is_empty() {
        let number = more[0].event_id.len();
        project.write_lines(&format!("more-{number}-{}.jsonl", more[0].revision), &lines_of(more));
        let counts = project.ingest().counts;
        assert_eq!(counts.accepted, more.len() as u64);
    }
    let plan = project.plan(&unbounded(options)).0;
    let segments = plan.groups.into_iter().flat_map(|group| group.segments);
    segments.flat_map(|segment| segment.messages).collect()
}

/// Two chains and a message of its own.
fn three_segments() -> Vec<Delivery> {
    let mut all = chain(&["a", "b", "c"]);
    let mut other = chain(&["x", "y"]);
    for told in &mut other {
        told.sent_at += 100_000;
    }
    all.append(&mut other);
    all.push(delivery("z", 500));
    all
}

#[test]
fn a_committed_group_is_done_and_nothing_new_is_pending() {
    let all = three_segments();
    let project = finished(&all, &Options::default());
    assert_eq!(pending(&project, &[], &Options::default()), [""; 0]);
    let status = project.status();
    assert_eq!(status["outcomes"]["read-no-task"], 6);
    check_coverage(&status, 6);
    // The same lines again, in another file, are repeats and cost nothing.
    project.write_lines("again.jsonl", &lines_of(&all));
    assert_eq!(project.ingest().counts.repeats, 6);
    assert_eq!(pending(&project, &[], &Options::default()), [""; 0]);
}

#[test]
fn an_edit_makes_only_its_own_segment_pending() {
    let project = finished(&three_segments(), &Options::default());
    let edited = Delivery {
        revision: 1,
        state: "edited",
        text: "changed".to_owned(),
        event_id: "edit".to_owned(),
        ..three_segments()[1].clone()
    };
    assert_eq!(pending(&project, &[edited], &Options::default()), ["a", "b", "c"]);
    let status = project.status();
    assert_eq!((&status["outcomes"]["pending"], &status["outcomes"]["read-no-task"]), (&json!(3), &json!(3)));
    check_coverage(&status, 6);
}

#[test]
fn a_message_that_goes_on_a_chain_makes_only_that_one_pending() {
    let project = finished(&three_segments(), &Options::default());
    let next = Delivery {
        sequence: Some(world::Link { index: None, predecessor: Some("y".to_owned()) }),
        ..delivery("new", 900)
    };
    assert_eq!(pending(&project, &[next], &Options::default()), ["x", "y", "new"]);
}

#[test]
fn a_notice_at_the_end_of_a_chain_makes_nothing_pending() {
    let project = finished(&three_segments(), &Options::default());
    let notice = Delivery {
        kind: "system",
        sequence: Some(world::Link { index: None, predecessor: Some("y".to_owned()) }),
        ..delivery("notice", 900)
    };
    assert_eq!(pending(&project, &[notice], &Options::default()), [""; 0]);
    check_coverage(&project.status(), 7);
    assert_eq!(project.status()["outcomes"]["system"], 1);
}

#[test]
fn what_becomes_known_of_a_file_makes_nothing_pending_and_is_sent() {
    let mut all = three_segments();
    all[5].files = vec![File::of(3)];
    let project = finished(&all, &Options::default());
    let known =
        File { size: Some(77), sha256: Some("ab".repeat(32)), path: Some("p".to_owned()), ..File::of(3) };
    let again =
        Delivery { files: vec![known], event_id: "again".to_owned(), collected_at: 9_000, ..all[5].clone() };
    assert_eq!(pending(&project, &[again], &Options::default()), [""; 0]);
    let edited = Delivery { revision: 2, files: Vec::new(), event_id: "edited".to_owned(), ..all[5].clone() };
    assert_eq!(pending(&project, &[edited], &Options::default()), ["z"]);
}

#[test]
fn a_renamed_sender_makes_his_segments_pending_and_a_renamed_room_none() {
    let mut all = three_segments();
    all[5].sender_id = Some("s".to_owned());
    let project = finished(&all, &Options::default());
    let room = Delivery {
        conversation_name: Some("new name".to_owned()),
        event_id: "room".to_owned(),
        collected_at: 5_000,
        ..all[0].clone()
    };
    assert_eq!(pending(&project, &[room], &Options::default()), [""; 0]);
    let named = Delivery {
        sender_name: Some("王".to_owned()),
        event_id: "named".to_owned(),
        collected_at: 5_000,
        ..all[5].clone()
    };
    assert_eq!(pending(&project, &[named], &Options::default()), ["z"]);
}

#[test]
fn changed_settings_make_all_pending_and_budgets_none() {
    let project = finished(&three_segments(), &Options::default());
    let base = settings();
    let changes = [
        Settings { protocol: 2, ..base.clone() },
        Settings { rules_sha256: "11".repeat(32), ..base.clone() },
        Settings { base_url: "http://127.0.0.1:2/v1".to_owned(), ..base.clone() },
        Settings { model: "large".to_owned(), ..base.clone() },
        Settings { vision: true, ..base.clone() },
    ];
    let planned = |settings: &Settings, options: &Options| {
        let plan = project.round().plan(options.clone(), settings.clone()).unwrap();
        plan.groups.iter().map(|group| group.messages).sum::<u64>()
    };
    let options = Options::default();
    for changed in &changes {
        assert_eq!(planned(changed, &options), 6, "{changed:?}");
        check_coverage(&project.status(), 6);
        assert_eq!(project.status()["outcomes"]["pending"], 6);
        assert_eq!(planned(&base, &options), 0);
    }
    assert_eq!(planned(&Settings { rules_file: "elsewhere.md".to_owned(), ..base.clone() }, &options), 0);
    assert_eq!(planned(&base, &Options { timezone: "UTC".to_owned(), ..options.clone() }), 6);
    assert_eq!(planned(&base, &Options { grouping: Grouping::Time, ..options.clone() }), 6);
    let budgets = Options {
        max_conversation_chars: 1_000,
        max_messages: 1,
        max_related_chars: 0,
        max_input_chars: 2_000,
        max_groups_per_round: 1,
        batching: chatproc_core::plan::Batching::SingleConversation,
        // Of no meaning where predecessors decide.
        gap_minutes: 1.0,
        carry_messages: 0,
        ..options.clone()
    };
    assert_eq!(planned(&base, &budgets), 0);
    let tiny = Options { max_conversation_chars: 161, ..options.clone() };
    assert_eq!(planned(&base, &tiny), 0);
    assert_eq!(project.status()["outcomes"]["oversized"], 0);
    let session = Options { grouping: Grouping::Session, ..options };
    finish(&project, &session);
    assert_eq!(planned(&base, &Options { gap_minutes: 31.0, ..session.clone() }), 6);
    assert_eq!(planned(&base, &Options { carry_messages: 4, ..session.clone() }), 6);
    assert_eq!(planned(&base, &session), 0);
}

#[test]
fn history_never_makes_a_segment_pending() {
    let project = Project::new();
    project.write_lines("1.jsonl", &lines_of(&three_segments()));
    project.ingest();
    let after = |second: f64| Options { start_at: 1_782_835_200.0 + second, ..Options::default() };
    assert_eq!(pending(&project, &[], &after(15.0)), ["a", "b", "c", "x", "y", "z"]);
    assert_eq!(pending(&project, &[], &after(25.0)), ["x", "y", "z"]);
    check_coverage(&project.status(), 6);
    assert_eq!(project.status()["outcomes"]["history"], 3);
    assert_eq!(pending(&project, &[], &after(500.001)), [""; 0]);
    assert_eq!(project.status()["outcomes"]["history"], 6);
}

#[test]
fn a_failed_group_stays_pending_with_its_reason_until_it_is_committed() {
    let project = Project::new();
    project.write_lines("1.jsonl", &lines_of(&three_segments()));
    project.ingest();
    let mut round = project.round();
    let plan = round.plan(Options { max_messages: 1, ..Options::default() }, settings()).unwrap();
    round.fail(&plan.groups[0].id, "no answer", NOW, true).unwrap();
    drop(round);
    let status = project.status();
    assert_eq!((&status["outcomes"]["failed"], &status["outcomes"]["pending"]), (&json!(3), &json!(3)));
    check_coverage(&status, 6);
    assert_eq!(pending(&project, &[], &Options::default()).len(), 6);
    finish(&project, &Options::default());
    assert_eq!(project.status()["outcomes"]["read-no-task"], 6);
}

#[test]
fn what_fails_again_and_again_waits_longer_and_longer_where_it_is_asked_to() {
    let project = Project::new();
    project.write_lines("1.jsonl", &lines_of(&three_segments()));
    project.ingest();
    let at =
        |now| Options { back_off: true, now: Some(now), max_groups_per_round: 1000, ..Options::default() };
    let count = |now| project.round().plan(at(now), settings()).unwrap().put_off;
    let mut now = NOW;
    for wait in [0, 20, 40, 80, 160, 320, 360, 360, 360] {
        let mut round = project.round();
        let plan = round.plan(at(now), settings()).unwrap();
        assert_eq!(plan.put_off, 0);
        for group in &plan.groups {
            round.fail(&group.id, "no answer", now, true).unwrap();
            // What is not its own fault changes nothing.
            round.fail(&group.id, "no network", now, false).unwrap();
        }
        let told = round.plan(at(now), settings()).unwrap();
        let retry = now + wait * 60_000;
        assert_eq!(told.groups.is_empty(), wait > 0);
        assert_eq!(told.retry_at, (wait > 0).then(|| seconds(retry)));
        assert_eq!(project.status()["retry"]["segments"], json!(3));
        assert_eq!(project.status()["retry"]["at"], json!(seconds(retry)));
        drop(round);
        if retry > now {
            assert_eq!((count(retry - 1), count(retry)), (3, 0));
        }
        now = retry;
    }
    assert_eq!(count(NOW - 600_000), 0, "a clock that was set back holds nothing up");
    let hurried = Options { back_off: false, ..at(now) };
    assert_eq!(project.round().plan(hurried, settings()).unwrap().put_off, 0);
    let other = Settings { model: "another".to_owned(), ..settings() };
    assert_eq!(
        project.round().plan(at(now - 1), other).unwrap().put_off,
        0,
        "another model is asked at once"
    );
    // An edit is another content; the segments beside it wait on.
    let mut edited = three_segments().remove(0);
    edited.revision = 1;
    edited.text.push('!');
    edited.event_id = "edited".to_owned();
    project.write_lines("2.jsonl", &lines_of(&[edited]));
    project.ingest();
    let plan = project.round().plan(at(now - 1), settings()).unwrap();
    assert_eq!((plan.put_off, plan.groups.len()), (2, 1));
}

#[test]
fn a_segment_that_is_still_talked_in_waits_and_stays_pending() {
    let project = Project::new();
    project.write_lines("a.jsonl", &lines_of(&three_segments()));
    project.ingest();
    let all = project.plan(&Options::default()).0;
    let newest = three_segments().iter().map(|delivery| delivery.sent_at).max().unwrap();
    let planned = |quiet_before, now| {
        let plan = project.plan(&Options { quiet_before, now, ..Options::default() }).0;
        (plan.groups.iter().map(|group| group.segments.len()).sum::<usize>(), plan.waiting)
    };
    let count = all.groups.iter().map(|group| group.segments.len()).sum::<usize>();
    assert_eq!(planned(None, None), (count, 0));
    assert_eq!(planned(Some(newest), Some(newest + 5)), (count, 0), "nobody said anything since");
    assert_eq!(planned(Some(newest - 1), None), (count - 1, 1));
    assert_eq!(planned(Some(newest - 1), Some(newest + 9)), (count - 1, 1));
    assert_eq!(planned(Some(0), None), (0, count));
    // A message that is dated into the future is not talk of now, but for a clock that is a little fast.
    assert_eq!(planned(Some(newest - 20), Some(newest - 10)), (count - 1, 1));
    assert_eq!(planned(Some(newest - 20), Some(newest - 11)), (count, 0));
    assert_eq!(project.status()["pending_segments"], count);
}

#[test]
fn an_oversized_segment_is_listed_and_never_done() {
    let mut all = three_segments();
    all[5].text = "长".repeat(30_000);
    let project = finished(&all, &Options::default());
    let status = project.status();
    assert_eq!(status["outcomes"]["oversized"], 1);
    assert_eq!(status["oversized"][0]["first_message"], "z");
    assert!(status["oversized"][0]["chars"].as_u64().unwrap() > 30_000);
    check_coverage(&status, 6);
    let wide = Options { max_conversation_chars: 50_000, ..Options::default() };
    assert_eq!(pending(&project, &[], &wide), ["z"]);
    assert_eq!(project.status()["outcomes"]["pending"], 1);
}

#[test]
fn a_message_that_moves_to_another_room_leaves_the_first_one() {
    let project = finished(&chain(&["a", "b", "c"]), &Options::default());
    let moved = Delivery {
        conversation: "elsewhere".to_owned(),
        event_id: "moved".to_owned(),
        collected_at: 1_000,
        ..chain(&["a", "b", "c"])[1].clone()
    };
    assert_eq!(pending(&project, &[moved], &Options::default()), ["a", "c", "b"]);
    let plan = project.plan(&unbounded(&Options::default())).0;
    let rooms: Vec<&Value> = plan.groups.iter().map(|group| &group.conversation["id"]).collect();
    assert_eq!(rooms, ["room", "elsewhere"]);
    check_coverage(&project.status(), 3);
}

#[test]
fn forks_are_counted_and_gone_when_a_newer_collection_settles_them() {
    let mut all = chain(&["a", "b", "c"]);
    all[2].sequence = Some(world::Link { index: None, predecessor: Some("a".to_owned()) });
    let project = finished(&all, &Options::default());
    assert_eq!(project.status()["forks"], 1);
    let settled = Delivery {
        sequence: Some(world::Link { index: None, predecessor: Some("b".to_owned()) }),
        event_id: "settled".to_owned(),
        collected_at: 1_000,
        ..all[2].clone()
    };
    assert_eq!(pending(&project, &[settled], &Options::default()), ["a", "b", "c"]);
    assert_eq!(project.status()["forks"], 0);
}

#[test]
fn a_delivery_without_sequence_changes_no_link() {
    let all = chain(&["a", "b", "c"]);
    let project = finished(&all, &Options::default());
    let unlinked =
        Delivery { sequence: None, event_id: "unlinked".to_owned(), collected_at: 9_000, ..all[1].clone() };
    assert_eq!(pending(&project, &[unlinked], &Options::default()), [""; 0]);
}

#[test]
fn the_newest_link_wins_however_new_the_deliveries_without_one_are() {
    let told = |event_id: &str, collected_at: i64, predecessor: Option<&str>| Delivery {
        event_id: event_id.to_owned(),
        collected_at,
        sequence: predecessor.map(|key| world::Link { index: None, predecessor: Some(key.to_owned()) }),
        ..delivery("new", 900)
    };
    let project = finished(&three_segments(), &Options::default());
    assert_eq!(pending(&project, &[told("1", 5_000, Some("y"))], &Options::default()), ["x", "y", "new"]);
    assert_eq!(pending(&project, &[told("22", 9_000, None)], &Options::default()), ["x", "y", "new"]);
    let newer = told("333", 7_000, Some("c"));
    assert_eq!(pending(&project, &[newer], &Options::default()), ["a", "b", "c", "new"]);
    let older = told("4444", 6_000, Some("y"));
    assert_eq!(pending(&project, &[older], &Options::default()), ["a", "b", "c", "new"]);
}

#[test]
fn a_preview_shows_a_changed_type_of_the_same_length() {
    let png = Delivery { files: vec![File::of(3)], ..delivery("z", 0) };
    let project = Project::new();
    project.write_lines("1.jsonl", &lines_of(std::slice::from_ref(&png)));
    project.ingest();
    project.plan(&Options::default());
    let gif = File { id: "a3".to_owned(), ..File::of(4) };
    let gif = Delivery { files: vec![gif], event_id: "again".to_owned(), collected_at: 1_000, ..png };
    project.write_lines("2.jsonl", &lines_of(&[gif]));
    let preview = project.preview(&Options::default());
    assert!(preview.documents[0].contains(r#""type":"gif""#), "{}", preview.documents[0]);
    project.ingest();
    assert_eq!(project.plan(&Options::default()).1, preview.documents);
}

#[test]
fn of_two_names_collected_at_one_time_the_larger_event_id_wins_in_a_preview_too() {
    let named = |event_id: &str, name: &str| Delivery {
        event_id: event_id.to_owned(),
        conversation_name: Some(name.to_owned()),
        ..delivery("z", 0)
    };
    let project = Project::new();
    project.write_lines("1.jsonl", &lines_of(&[named("event 2", "second")]));
    project.ingest();
    project.write_lines("2.jsonl", &lines_of(&[named("event 1", "first")]));
    let preview = project.preview(&Options::default());
    assert_eq!(preview.groups[0].conversation["name"], "second");
    project.ingest();
    assert_eq!(project.plan(&Options::default()).0.groups[0].conversation["name"], "second");
}
