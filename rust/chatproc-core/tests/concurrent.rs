//! Pages come while a round reads, plans, waits for its model and commits: what is stored is as if one had
//! come after the other, and a commit never rests on what is no longer so.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use chatproc_core::error::{Error, Result};
use chatproc_core::failpoint::meanwhile;
use chatproc_core::plan::Options;
use chatproc_core::round::{Round, Settings};
use chatproc_core::segment::Grouping;
use chatproc_core::store::Store;
use chatproc_core::store::commit::Committed;
use chatproc_core::store::connections::Run;
use chatproc_core::store::intake::Ingested;
use chatproc_core::store::tasks::{Request, task, update_status};
use chatproc_core::task::Status;
use chatproc_core::zone::Zone;
use common::sync::{Source, dump, rows, source};
use common::world::{self, Delivery, chain, delivery};
use common::{NOW, Planned, Project, agenda_of, batches_of, intake_of, settings};
use proptest::prelude::*;
use serde_json::{Value, json};

fn lines(deliveries: &[Delivery]) -> Vec<Vec<u8>> {
    deliveries.iter().map(Delivery::line).collect()
}

// ── files and pages ──────────────────────────────────────────────────────────────────────────────────

/// A page that comes while the file after it is being read.
type Step = (Vec<Delivery>, Vec<Delivery>);

/// Deliveries, some of them twice and some against each other, dealt to pages and files.
fn dealt() -> impl Strategy<Value = Vec<Step>> {
    let mixed = world::world(8).prop_flat_map(|deliveries| {
        let lie = (prop::sample::select(deliveries.clone()), 0..4u8);
        (Just(deliveries), prop::collection::vec(lie, 0..5))
    });
    let told = mixed.prop_flat_map(|(mut deliveries, lies)| {
        for (told, lie) in lies {
            let event_id = format!("liar of {}", told.event_id);
            deliveries.push(match lie {
                0 => told,
                1 => Delivery { collected_at: told.collected_at + 77_000, ..told },
                2 => Delivery { event_id, text: format!("{} lie", told.text), ..told },
                _ => Delivery { event_id, collected_at: told.collected_at + 77_000, ..told },
            });
        }
        let count = deliveries.len();
        (Just(deliveries).prop_shuffle(), prop::collection::vec((0..3usize, any::<bool>()), count))
    });
    told.prop_map(|(deliveries, hands)| {
        let mut steps: Vec<Step> = vec![Step::default(); 3];
        for (delivery, (step, paged)) in deliveries.into_iter().zip(hands) {
            let (page, file) = &mut steps[step];
            if paged { page.push(delivery) } else { file.push(delivery) }
        }
        steps
    })
}

/// Hands over one page after the other.
fn pages(project: &Project, steps: &[Step]) -> impl FnMut() + use<> {
    let mut source = source(&project.state(), "me");
    let run = source.begin();
    let mut pages = steps.iter().map(|(page, _)| lines(page)).collect::<Vec<_>>().into_iter().zip(1..);
    move || {
        if let Some((page, place)) = pages.next() {
            source.page(run, &page, place).unwrap();
        }
    }
}

fn ingest(project: &Project, mut after_each: impl FnMut()) -> Ingested {
    let mut watch = |_, _| {
        after_each();
        Ok(())
    };
    project.round().ingest(&project.input(), &mut watch).unwrap()
}

fn forget(project: &Project) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs_err::remove_file(project.path(&format!("state.db{suffix}")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_page_that_comes_while_a_file_is_read_is_as_if_it_had_come_before(steps in dealt()) {
        let project = Project::new();
        for (number, (_, file)) in steps.iter().enumerate() {
            project.write_lines(&format!("{number}.jsonl"), &lines(file));
        }
        let mut page = pages(&project, &steps);
        page();
        let wanted = ingest(&project, &mut page);
        drop(page);
        let stored = dump(&project.state(), &[]);
        forget(&project);
        let page = pages(&project, &steps);
        let counted = meanwhile("ingest.slice", page, || ingest(&project, || {}));
        prop_assert_eq!(counted, wanted);
        prop_assert_eq!(dump(&project.state(), &[]), stored);
    }
}

#[test]
fn what_pages_brought_while_a_packed_file_was_read_is_a_repeat_in_it() {
    let project = Project::new();
    let chat = chain(&["a", "b", "c", "d"]);
    let line = |at: usize| chat[at].line();
    // Blank lines fill the first slice; the file's second half is in the next one.
    let blank = vec![b'\n'; 50_000];
    let text = [line(0), vec![b'\n'], line(1), blank, line(2), vec![b'\n'], line(3), vec![b'\n']].concat();
    project.write("a.jsonl.zst", &zstd::encode_all(text.as_slice(), 1).unwrap());
    let mut source = source(&project.state(), "me");
    let run = source.begin();
    let mut early = [line(1), line(3)].into_iter();
    let page = move || {
        source.page(run, &[early.next().unwrap()], 1).unwrap();
    };
    let counted = meanwhile("ingest.slice", page, || ingest(&project, || {})).counts;
    assert_eq!((counted.lines, counted.accepted, counted.repeats), (4, 2, 2));
    assert_eq!(project.status()["events"], 4);
}

#[test]
fn a_file_that_is_gone_once_it_was_read_is_stored_all_the_same() {
    let project = Project::new();
    project.write_lines("a.jsonl", &lines(&chain(&["a", "b"])));
    let (path, away) = (project.path("a.jsonl"), project.path("away"));
    let mut source = source(&project.state(), "me");
    let run = source.begin();
    let gone = {
        let (path, away) = (path.clone(), away.clone());
        move || {
            source.page(run, &lines(&[delivery("z", 1)]), 1).unwrap();
            fs_err::rename(&path, &away).unwrap();
        }
    };
    meanwhile("ingest.slice", gone, || ingest(&project, || {}));
    assert_eq!(project.status()["messages"], 3);
    fs_err::rename(&away, &path).unwrap();
    assert_eq!(project.ingest(), Ingested::default());
}

#[test]
fn a_round_and_a_run_that_read_the_same_files_at_once_store_each_line_once() {
    let project = Project::new();
    let mut chat = lines(&chain(&["a", "b", "c", "d", "e"]));
    chat.push(b"no json".to_vec());
    for (number, part) in chat.chunks(2).enumerate() {
        project.write_lines(&format!("{number}.jsonl"), part);
    }
    let (mut source, input) = (source(&project.state(), "files"), project.input());
    let run = source.begin();
    let mut total = 0;
    let read = move || {
        let run = Run { name: &source.name, number: run, holder: &source.holder };
        let counts = source.writer.ingest(&run, &input, &mut |_, _| Ok(())).unwrap().counts;
        total += counts.accepted;
        assert_eq!(total, 5, "all by the run, which is the first to write");
    };
    let counts = meanwhile("ingest.slice", read, || ingest(&project, || {})).counts;
    assert_eq!((counts.lines, counts.repeats), (6, 6));
    assert_eq!((project.status()["events"].as_i64(), project.quarantine().len()), (Some(5), 1));
    assert_eq!(project.ingest(), Ingested::default(), "both remember the files as read");
}

#[test]
fn a_store_that_somebody_makes_while_a_round_builds_one_stays_and_holds_all() {
    let chat = lines(&chain(&["a", "b", "c", "d"]));
    for point in ["ingest.slice", "build.finished", "build.made"] {
        let project = Project::new();
        project.write_lines("a.jsonl", &chat[..3]);
        let (state, mut page) = (project.state(), Some(vec![chat[3].clone()]));
        let made = move || {
            if let Some(page) = page.take() {
                let mut source = source(&state, "me");
                let run = source.begin();
                source.page(run, &page, 1).unwrap();
            }
        };
        let mut round = project.round();
        round.begin(NOW).unwrap();
        assert!(!project.state().exists(), "nobody sees it yet");
        let taken = meanwhile(point, made, || round.ingest(&project.input(), &mut |_, _| Ok(()))).unwrap();
        assert_eq!((taken.counts.lines, taken.counts.accepted), (3, 3), "{point}");
        round.finish(NOW, &json!({})).unwrap();
        drop(round);
        assert_eq!(project.status()["messages"], 4, "{point}");
        assert_eq!(rows(&project.state(), "SELECT started, ended FROM rounds").lines().count(), 1, "{point}");
        assert!(!project.path("state.db.build").exists(), "{point}");
    }
}

#[test]
fn a_store_that_was_built_is_as_one_that_was_written_slice_by_slice() {
    let mut chat = lines(&chain(&["a", "b", "c", "d", "e"]));
    chat.extend([chat[1].clone(), b"no json".to_vec()]);
    let edit = Delivery {
        event_id: "edit".to_owned(),
        revision: 1,
        state: "edited",
        ..chain(&["a", "b", "c"])[2].clone()
    };
    let written = Project::new();
    let built = Project::new();
    for project in [&written, &built] {
        project.write_lines("1.jsonl", &chat);
        project.write_lines("2.jsonl", &[edit.line(), chat[0].clone()]);
    }
    drop(Store::open(&written.state(), NOW).unwrap());
    assert_eq!(written.ingest(), built.ingest());
    assert_eq!(whole(&written), whole(&built));
}

/// Everything that a store holds, and how it is made.
fn whole(project: &Project) -> (String, String) {
    let schema = rows(&project.state(), "SELECT name, sql FROM sqlite_schema ORDER BY name");
    (dump(&project.state(), &["files", "quarantine"]), schema)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_build_that_outgrows_its_memory_is_as_one_that_does_not(steps in dealt()) {
        let (roomy, tight, slow) = (Project::new(), Project::tight(), Project::new());
        drop(Store::open(&slow.state(), NOW).unwrap());
        let projects = [&roomy, &tight, &slow];
        for project in projects {
            for (number, (one, other)) in steps.iter().enumerate() {
                project.write_lines(&format!("{number}a.jsonl"), &lines(one));
                project.write_lines(&format!("{number}b.jsonl"), &lines(other));
            }
        }
        let counted = projects.map(|project| ingest(project, || {}));
        prop_assert!(counted.iter().all(|counts| *counts == counted[0]), "{counted:?}");
        prop_assert_eq!(whole(&roomy), whole(&slow));
        prop_assert_eq!(whole(&tight), whole(&slow));
    }
}

/// More than is read without a thread, in several slices.
fn much() -> Vec<Vec<u8>> {
    let keys: Vec<String> = (0..400).map(|number| format!("{number:03}")).collect();
    let mut chat = chain(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    for told in &mut chat {
        told.text = told.key.repeat(3_000);
    }
    let mut lines = lines(&chat);
    lines.extend([lines[7].clone(), b"no json".to_vec(), vec![b'x'; 1 << 21]]);
    lines.rotate_left(3);
    lines
}

#[test]
fn what_is_read_ahead_is_stored_as_what_is_read_in_turn() {
    let lines = much();
    let (ahead, turns) = (Project::tight(), Project::new());
    ahead.write_lines("a.jsonl", &lines);
    let mut told = Vec::new();
    let mut watch = |done, total| {
        told.push((done, total));
        Ok(())
    };
    let taken = ahead.round().ingest(&ahead.input(), &mut watch).unwrap().counts;
    for (number, part) in lines.chunks(50).enumerate() {
        turns.write_lines(&format!("{number}.jsonl"), part);
        turns.ingest();
    }
    assert_eq!((taken.lines, taken.accepted, taken.repeats, taken.quarantined), (403, 400, 1, 2));
    let but = ["files", "quarantine", "events"];
    assert!(dump(&ahead.state(), &but) == dump(&turns.state(), &but));
    assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
    assert!(told.iter().all(|(_, total)| *total == told[told.len() - 1].0), "{told:?}");
    let places = ahead.quarantine().into_iter().map(|refused| (refused.1, refused.4));
    assert_eq!(places.collect::<Vec<_>>(), [(399, "not-json".to_owned()), (400, "too-long".to_owned())]);
}

#[test]
fn who_stops_while_more_is_read_ahead_goes_on_where_it_stopped() {
    let (stopped, straight) = (Project::tight(), Project::tight());
    for project in [&stopped, &straight] {
        project.write_lines("a.jsonl", &much());
        drop(Store::open(&project.state(), NOW).unwrap());
    }
    let mut stops = 0;
    while let Err(error) = stopped.round().ingest(&stopped.input(), &mut |done, total| {
        if done < total { Err(Error::Interrupted) } else { Ok(()) }
    }) {
        assert!(matches!(error, Error::Interrupted), "{error}");
        stops += 1;
    }
    straight.ingest();
    assert!(stops > 2, "{stops}");
    assert!(whole(&stopped) == whole(&straight));
}

// ── a model at work ──────────────────────────────────────────────────────────────────────────────────

fn commit(round: &mut Round, group: &str) -> Result<Committed> {
    let nothing = json!({"no_task_reason": "x", "tasks": [], "receipts": []});
    let groups = vec![(group.to_owned(), serde_json::from_value(nothing).unwrap())];
    round.commit(groups, &json!({}), NOW)?.remove(0)
}

/// Plans, shows the model all, takes a page in, and commits.
fn with_a_page(project: &Project, options: &Options, page: &[Delivery]) -> (Planned, Vec<Result<Committed>>) {
    let mut round = project.round();
    let plan = Planned::by(&mut round, options);
    for batch in &plan.batches {
        round.document(batch).unwrap();
    }
    let mut source = source(&project.state(), "me");
    let run = source.begin();
    source.page(run, &lines(page), 1).unwrap();
    source.record(run, json!({}), NOW);
    let before = dump(&project.state(), &[]);
    let committed: Vec<_> = plan.groups.iter().map(|group| commit(&mut round, &group.id)).collect();
    if committed.iter().all(Result::is_err) {
        assert_eq!(dump(&project.state(), &[]), before);
    }
    (plan, committed)
}

fn is_conflict(committed: &[Result<Committed>]) -> bool {
    committed.iter().all(|one| matches!(one, Err(Error::TaskConflict(_))))
}

fn pending(project: &Project, options: &Options) -> Vec<Vec<String>> {
    let plan = project.plan(options).0;
    plan.groups.iter().flat_map(|group| &group.segments).map(|segment| segment.messages.clone()).collect()
}

fn of(told: &Delivery, revision: u64, state: &'static str, text: &str) -> Delivery {
    let event_id = format!("revision {revision} of {}", told.event_id);
    Delivery { event_id, revision, state, text: text.to_owned(), ..told.clone() }
}

#[test]
fn messages_that_a_page_changed_under_the_model_stay_pending_as_they_are_now() {
    let chat = chain(&["a", "b"]);
    let renamed = Delivery {
        event_id: "collected again".to_owned(),
        sender_name: Some("new name".to_owned()),
        collected_at: 9_000,
        ..chat[1].clone()
    };
    let moved = Delivery { conversation: "elsewhere".to_owned(), ..of(&chat[0], 1, "edited", "moved") };
    let pages = [of(&chat[0], 1, "edited", "other words"), of(&chat[1], 1, "recalled", ""), renamed, moved];
    for page in pages {
        let project = Project::new();
        project.write_lines("a.jsonl", &lines(&chat));
        project.ingest();
        let options = Options::default();
        let (_, committed) = with_a_page(&project, &options, &[page]);
        assert!(is_conflict(&committed), "{committed:?}");
        let (plan, committed) = with_a_page(&project, &options, &[]);
        assert!(!plan.groups.is_empty() && committed.iter().all(Result::is_ok), "{committed:?}");
        assert!(pending(&project, &options).is_empty());
    }
}

#[test]
fn a_message_that_a_page_adds_costs_no_commit_and_is_pending_by_itself() {
    let project = Project::new();
    let chat = chain(&["a", "b", "c"]);
    project.write_lines("a.jsonl", &lines(&chat[..2]));
    project.ingest();
    let options = Options::default();
    let again = Delivery { event_id: "again".to_owned(), collected_at: 9_000, ..chat[0].clone() };
    let (_, committed) = with_a_page(&project, &options, &[chat[2].clone(), delivery("alone", 99), again]);
    assert!(committed.iter().all(Result::is_ok), "{committed:?}");
    assert_eq!(pending(&project, &options), [vec!["a", "b", "c"], vec!["alone"]]);
    let (_, committed) = with_a_page(&project, &options, &[]);
    assert!(committed.iter().all(Result::is_ok), "{committed:?}");
    assert!(pending(&project, &options).is_empty());
}

#[test]
fn what_was_carried_over_a_silence_must_be_the_same_too() {
    let options = Options { grouping: Grouping::Session, gap_minutes: 1.0, ..Options::default() };
    let mut chat = chain(&["a", "b", "c"]);
    chat[2].sent_at += 3_600_000;
    let project = Project::new();
    project.write_lines("a.jsonl", &lines(&chat[..2]));
    project.ingest();
    let (_, committed) = with_a_page(&project, &options, &[chat[2].clone()]);
    assert!(committed.iter().all(Result::is_ok));
    let (plan, committed) = with_a_page(&project, &options, &[of(&chat[0], 1, "edited", "other words")]);
    assert_eq!(plan.groups[0].segments[0].carried, ["a", "b"]);
    assert!(is_conflict(&committed), "{committed:?}");
}

// ── everything at once ───────────────────────────────────────────────────────────────────────────────

/// A task in a room of its own, which the user then closes and opens again, over and over.
fn with_a_task(project: &Project, round: &mut Round, options: &Options) -> String {
    let told = Delivery { conversation: "room of the task".to_owned(), ..delivery("task", 0) };
    project.write_lines("task.jsonl", &lines(&[told]));
    round.ingest(&project.input(), &mut |_, _| Ok(())).unwrap();
    let plan = Planned::by(round, &Options { start_at: 0.0, ..options.clone() });
    let task = json!({"task_id": null, "seen_revision": null, "title": "t", "event": "e", "priority": "P2",
        "priority_reason": "r", "status": "open", "time": {"start": null, "due": null, "original": ""},
        "people": [], "location": "", "action_steps": [], "notes": "", "sources": ["task"], "evidence": [], "quotes": []});
    let outcome = json!({"no_task_reason": null, "tasks": [task], "receipts": []});
    let outcome = serde_json::from_value(outcome).unwrap();
    let own = plan.groups.iter().find(|group| group.segments[0].messages == ["task"]).unwrap();
    let committed = round.commit(vec![(own.id.clone(), outcome)], &json!({}), NOW).unwrap().remove(0);
    committed.unwrap().tasks.remove(0).task_id
}

fn close_and_open(project: &Project, task_id: &str) {
    let mut store = Store::open(&project.state(), NOW).unwrap();
    let zone = Zone::named("Asia/Shanghai").unwrap();
    for number in 0..WISHES {
        let (value, request_id) = (["completed", "open"][number % 2], format!("request {number}"));
        let request = Request {
            task_id,
            value,
            request_id: &request_id,
            actor: "me",
            expected_revision: None,
            note: None,
        };
        update_status(store.conn_mut(), &request, NOW, &zone).unwrap();
    }
}

/// What a user asks for while rounds and pages are written; odd, so that the task ends as completed.
const WISHES: usize = 31;

/// Plans and commits whatever is pending; true when nothing was.
fn work(round: &mut Round, options: &Options) -> bool {
    let plan = round.plan(options.clone(), settings()).unwrap();
    for batch in &plan.batches {
        round.document(batch).unwrap();
    }
    for group in &plan.groups {
        match commit(round, &group.id) {
            Ok(_) | Err(Error::TaskConflict(_)) => {}
            Err(error) => unreachable!("{error}"),
        }
    }
    plan.groups.is_empty()
}

fn documents(project: &Project, options: &Options) -> Vec<String> {
    let another = Settings { model: "another".to_owned(), ..settings() };
    let mut round = project.round();
    let plan = round.plan(options.clone(), another).unwrap();
    plan.batches.iter().map(|batch| round.document(batch).unwrap().document).collect()
}

fn outcomes(status: &Value) -> i64 {
    status["outcomes"].as_object().unwrap().values().map(|count| count.as_i64().unwrap()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rounds_and_pages_at_once_end_where_one_after_the_other_ends(
        deliveries in world::world(40), options in world::options(),
    ) {
        let options = Options { max_groups_per_round: 1000, max_related_chars: 0, ..options };
        let project = Project::new();
        let parts: Vec<&[Delivery]> = deliveries.chunks(deliveries.len().div_ceil(16)).collect();
        for (number, part) in parts.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
            project.write_lines(&format!("{number}.jsonl"), &lines(part));
        }
        let mut round = project.round();
        let task_id = with_a_task(&project, &mut round, &options);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let task_id = &task_id;
            let (project, parts, done, options) = (&project, &parts, &done, &options);
            scope.spawn(move || {
                // In two connections, each of which meets the other's events again.
                let mut sources: [Source; 2] = ["one", "other"].map(|id| source(&project.state(), id));
                let runs = sources.each_mut().map(Source::begin);
                for (part, place) in parts.iter().skip(1).step_by(2).zip(1..) {
                    for (source, run) in sources.iter_mut().zip(runs) {
                        for delivery in *part {
                            source.page(run, &[delivery.line()], place).unwrap();
                        }
                    }
                }
                done.store(true, Ordering::SeqCst);
            });
            scope.spawn(move || close_and_open(project, task_id));
            scope.spawn(move || {
                let mut finished = false;
                while !finished {
                    finished = done.load(Ordering::SeqCst);
                    round.ingest(&project.input(), &mut |_, _| Ok(())).unwrap();
                    finished &= work(&mut round, options);
                }
            });
        });
        let status = project.status();
        prop_assert_eq!(&status["events"], &json!(deliveries.len() + 1));
        let store = Store::read(&project.state()).unwrap().unwrap();
        let task = task(store.conn(), &task_id, &Zone::named("Asia/Shanghai").unwrap()).unwrap();
        prop_assert_eq!(task.status, Status::Completed);
        prop_assert_eq!(task.revision, i64::try_from(WISHES).unwrap() + 1);
        prop_assert_eq!(&status["pending_segments"], &json!(0));
        prop_assert_eq!(outcomes(&status), status["messages"].as_i64().unwrap());
        let told = Delivery { conversation: "room of the task".to_owned(), ..delivery("task", 0) };
        let all = [lines(&deliveries), lines(&[told])].concat();
        let intake = intake_of(all.iter().map(Vec::as_slice));
        let wanted = batches_of(&intake, &agenda_of(&intake, &options), &options);
        let wanted: Vec<String> = wanted.into_iter().map(|batch| batch.document).collect();
        prop_assert_eq!(documents(&project, &options), wanted);
    }
}
