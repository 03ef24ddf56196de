//! One run of a connection at a time; what it delivers is stored with its cursor or not at all; its budget
//! and its outcome outlive it.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::sync::Barrier;

use chatproc_core::connections::{self, Connections};
use chatproc_core::error::{Error, Result};
use chatproc_core::lock::RoundLock;
use chatproc_core::round::Round;
use chatproc_core::store::Store;
use chatproc_core::store::connections::{Claim, Name, Run};
use common::sync::{DAY, LENGTH, MAX_LINE_BYTES, Source, dump, outcome, source};
use common::world::{Delivery, chain, delivery};
use common::{NOW, Project};
use serde_json::{Value, json};

fn lines(deliveries: &[Delivery]) -> Vec<Vec<u8>> {
    deliveries.iter().map(Delivery::line).collect()
}

fn lost<T: std::fmt::Debug>(result: &Result<T>) {
    assert!(matches!(result, Err(Error::LeaseLost(_))), "{result:?}");
}

// ── the lease ────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn only_one_holds_a_lease_whoever_asks() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let mut other = one.beside(&project.state(), "another process");
    let run = one.begin();
    assert!(other.lease_at(NOW).is_none());
    assert!(one.lease_at(NOW + LENGTH - 1).is_none(), "not even for the same holder");
    assert_eq!(other.writer.lease_of(&other.name).unwrap().unwrap().holder, "process of me");
    assert!(one.record(run, json!({}), NOW + 1));
    assert_eq!(other.writer.lease_of(&other.name).unwrap(), None);
    assert!(other.lease_at(NOW + 2).is_some_and(|leased| leased.run > run));
}

#[test]
fn a_lease_that_ended_is_lost_only_once_another_took_it() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let mut other = one.beside(&project.state(), "another process");
    let run = one.begin();
    // Late, and alone: nothing is in the way.
    one.page(run, &lines(&[delivery("m1", 1)]), 1).unwrap();
    assert!(one.renew(run, NOW + 3 * LENGTH / 2));
    assert!(other.lease_at(NOW + LENGTH).is_none(), "it was renewed");
    let taken = other.lease_at(NOW + 2 * LENGTH).unwrap();
    let before = dump(&project.state(), &[]);
    assert!(!one.renew(run, NOW + 9 * LENGTH));
    lost(&one.page(run, &lines(&[delivery("m2", 2)]), 2));
    lost(&one.reserve(run, DAY, 10));
    assert!(!one.record(run, json!({"next_due_at": 5}), NOW + 2 * LENGTH));
    assert_eq!(dump(&project.state(), &[]), before);
    other.page(taken.run, &lines(&[delivery("m2", 2)]), 2).unwrap();
    assert_eq!(other.state().cursor["place"], 2);
}

#[test]
fn a_later_run_of_the_same_holder_is_not_the_earlier_one() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let first = one.begin();
    let second = one.lease_at(NOW + LENGTH).unwrap().run;
    assert!(!one.renew(first, NOW + 9 * LENGTH));
    lost(&one.page(first, &[], 1));
    assert!(!one.record(first, json!({}), NOW + LENGTH));
    assert!(one.record(second, json!({}), NOW + LENGTH));
}

#[test]
fn a_decision_that_another_run_overtook_begins_none() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let mut lease = |seen| {
        let claim = Claim {
            holder: "me",
            trigger: "tick",
            now: NOW,
            until: NOW + LENGTH,
            gone: None,
            seen: Some(seen),
        };
        let leased = one.writer.lease(&one.name, &claim).unwrap();
        leased.map(|leased| {
            let run = Run { name: &one.name, number: leased.run, holder: "me" };
            one.writer.record(&run, &outcome(json!({})), NOW).unwrap()
        })
    };
    assert_eq!([lease(0), lease(0), lease(1), lease(1)], [Some(true), None, Some(true), None]);
    assert_eq!(one.state().runs, 2);
}

#[test]
fn a_lease_must_have_a_length() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    one.begin();
    let claim = Claim { holder: "another", trigger: "tick", now: NOW, until: NOW, gone: None, seen: None };
    assert!(matches!(one.writer.lease(&one.name, &claim), Err(Error::Invalid(_))));
}

#[test]
fn a_run_that_never_came_back_is_closed_by_the_one_after_it() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    one.lease_at(NOW + LENGTH).unwrap();
    let store = Store::read(&project.state()).unwrap().unwrap();
    let row: (i64, String, i64) = store
        .conn()
        .query_row("SELECT ended, outcome, (SELECT count(*) FROM sync_runs WHERE ended IS NULL) FROM sync_runs WHERE run = ?1",
            [run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    assert_eq!(row, (NOW + LENGTH, "stopped".to_owned(), 1));
    assert_eq!(one.state().runs, 2);
}

#[test]
fn a_holder_known_to_be_gone_holds_nothing_and_only_that_one() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let mut other = one.beside(&project.state(), "another process");
    let mut third = one.beside(&project.state(), "a third process");
    one.begin();
    assert!(other.lease_knowing(NOW, Some("nobody")).is_none());
    assert!(other.lease_knowing(NOW, Some("process of me")).is_some());
    assert!(third.lease_knowing(NOW, Some("process of me")).is_none(), "another was there first");
}

#[test]
fn a_clock_that_is_set_back_holds_no_lease_for_long() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let mut other = one.beside(&project.state(), "another process");
    one.lease_at(NOW).unwrap();
    // Clocks of two callers are read at other moments than the store is asked.
    assert!(other.lease_at(NOW - LENGTH).is_none());
    assert!(other.lease_at(NOW - LENGTH - 1).is_some());
}

#[test]
fn of_those_who_race_for_a_lease_exactly_one_wins() {
    const RACERS: usize = 4;
    let project = Project::new();
    drop(source(&project.state(), "me"));
    let barrier = Barrier::new(RACERS);
    let won: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let race = |racer: usize| {
            let mut own = source(&project.state(), "me");
            own.holder = format!("racer {racer}");
            let barrier = &barrier;
            move || -> Vec<i64> {
                let mut won = Vec::new();
                for lap in 0..25 {
                    barrier.wait();
                    // Each lap the winner of the last one is late.
                    won.extend(own.lease_at(NOW + lap * LENGTH).map(|_| lap));
                    barrier.wait();
                }
                won
            }
        };
        let racers: Vec<_> = (0..RACERS).map(|racer| scope.spawn(race(racer))).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let mut laps = won.concat();
    laps.sort_unstable();
    assert_eq!(laps, (0..25).collect::<Vec<_>>());
}

// ── the budget ───────────────────────────────────────────────────────────────────────────────────────

#[test]
fn no_day_gives_more_requests_than_it_has() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    let mut granted = |day: &str, most: u64| (0..9).filter(|_| one.reserve(run, day, most).unwrap()).count();
    assert_eq!(granted(DAY, 3), 3);
    assert_eq!(granted(DAY, 5), 2);
    assert_eq!(granted("2026-06-30", 5), 0, "a clock set back gives none a second time");
    assert_eq!(granted(DAY, 5), 5, "a day later all are there again");
    assert_eq!(granted("2026-07-02", 0), 0);
    assert_eq!(one.state().last_run.unwrap().requests, 10);
}

#[test]
fn a_reservation_is_there_for_whoever_comes_next() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    assert!(one.reserve(run, DAY, 1).unwrap());
    drop(one);
    let mut later = source(&project.state(), "me");
    let run = later.lease_at(NOW + LENGTH).unwrap().run;
    assert!(!later.reserve(run, DAY, 1).unwrap());
    assert_eq!(later.state().requests_used, 1);
}

#[test]
fn items_are_counted_by_day() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    assert_eq!(one.page(run, &lines(&chain(&["a", "b", "c"])), 1).unwrap().items_used, 3);
    assert_eq!(one.page(run, &lines(&chain(&["a", "b"])), 2).unwrap().items_used, 5);
    assert!(one.reserve(run, "2026-07-02", 1).unwrap());
    assert_eq!(one.state().items_used, 0);
}

// ── pages ────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_page_brings_its_events_its_cursor_and_its_counts() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    let mut page = lines(&chain(&["a", "b"]));
    page.push(b"no json".to_vec());
    page.push(Vec::new());
    let taken = one.page(run, &page, 7).unwrap();
    assert_eq!(
        json!(taken),
        json!({"read": 4, "written": 2, "repeats": 0, "quarantined": 2, "conversations": 1, "items_used": 4})
    );
    let state = one.state();
    assert_eq!(json!(state.cursor), json!({"place": 7}));
    assert_eq!((state.written, state.repeats, state.quarantined, state.items_used), (2, 0, 2, 4));
    assert_eq!(
        (project.status()["events"].as_i64(), project.status()["messages"].as_i64()),
        (Some(2), Some(2))
    );
    let store = Store::read(&project.state()).unwrap().unwrap();
    let of_files: i64 = store
        .conn()
        .query_row("SELECT count(*) FROM events WHERE file IS NOT NULL OR line NOT IN (1, 2)", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(of_files, 0);
    let held = chatproc_core::store::quarantine::list(store.conn()).unwrap();
    let places: Vec<_> = held.iter().map(|held| (held.file.as_str(), held.line)).collect();
    assert_eq!(places, [("imap/me", 3), ("imap/me", 4)]);
}

#[test]
fn a_page_that_comes_again_changes_nothing_and_lists_nothing_twice() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    let mut liar = delivery("a", 9);
    liar.event_id = "a liar".to_owned();
    let mut page = lines(&chain(&["a", "b"]));
    page.extend([liar.line(), b"no json".to_vec(), b"{\"schema\":\"chatproc.event/1\"}".to_vec()]);
    assert_eq!(one.page(run, &page, 1).unwrap().quarantined, 3);
    let counters = ["connections", "sync_runs"];
    let before = dump(&project.state(), &counters);
    assert_eq!(one.page(run, &page, 1).unwrap().repeats, 5);
    // In another run, in another order, each line has another number.
    let later = one.lease_at(NOW + LENGTH).unwrap().run;
    page.reverse();
    assert_eq!(one.page(later, &page, 1).unwrap().repeats, 5);
    assert_eq!(dump(&project.state(), &counters), before);
    // And when it was tried again in vain.
    for held in project.quarantine().iter().zip(1..) {
        assert_eq!(project.round().retry(held.1, 1 << 20).unwrap().outcome, "refused");
    }
    assert_eq!(one.page(later, &page, 1).unwrap().repeats, 5);
    assert_eq!(project.quarantine().len(), 3);
}

#[test]
fn a_line_of_a_page_that_is_too_long_is_set_aside_whole_and_taken_in_once_it_may_be() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    let (mut long, mut other) = (delivery("long", 1), delivery("other", 2));
    long.text = "l".repeat(5000);
    other.text = "o".repeat(long.line().len() - other.line().len() - 1 + other.text.len());
    let page = [long.line(), other.line(), delivery("a", 3).line()];
    let taken = one.page(run, &page, 7).unwrap();
    assert_eq!((taken.written, taken.quarantined, taken.items_used), (1, 2, 3));
    let state = one.writer.states().unwrap().remove(0);
    assert_eq!(state.cursor["place"], json!(7), "it stops nothing but itself");
    assert_eq!(one.page(run, &page, 7).unwrap().repeats, 3);
    let held = project.quarantine();
    assert_eq!(held.iter().map(|line| line.4.as_str()).collect::<Vec<_>>(), ["too-long"; 2]);
    assert_eq!(held[0].5, Some(page[0].clone()), "nobody could read it again");
    let limit = MAX_LINE_BYTES;
    assert_eq!(project.round().retry(1, limit).unwrap().outcome, "refused");
    assert_eq!(project.round().retry(1, 1 << 20).unwrap().outcome, "accepted");
    assert_eq!(project.status()["messages"], 2);
}

#[test]
fn two_connections_that_deliver_the_same_bytes_are_each_told_of() {
    let project = Project::new();
    for id in ["one", "other"] {
        let mut own = source(&project.state(), id);
        let run = own.begin();
        assert_eq!(own.page(run, &[b"no json".to_vec()], 1).unwrap().quarantined, 1);
    }
}

#[test]
fn pages_and_a_file_of_the_same_events_store_them_once() {
    let project = Project::new();
    let all = chain(&["a", "b", "c", "d"]);
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    one.page(run, &lines(&all[..3]), 1).unwrap();
    project.write_lines("a.jsonl", &lines(&all[1..]));
    let counts = project.ingest().counts;
    assert_eq!((counts.accepted, counts.repeats), (1, 2));
    assert_eq!(one.page(run, &lines(&all), 2).unwrap().repeats, 4);
}

#[test]
fn a_run_reads_batch_files_as_a_round_does_and_counts_them() {
    let (project, wanted) = (Project::new(), Project::new());
    let mut batch = lines(&chain(&["a", "b"]));
    batch.push(b"no json".to_vec());
    for project in [&project, &wanted] {
        project.write_lines("a.jsonl", &batch);
    }
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    let number = Run { name: &one.name, number: run, holder: &one.holder };
    let report = one.writer.ingest(&number, &project.input(), &mut |_, _| Ok(())).unwrap();
    assert_eq!(json!(report), json!(wanted.ingest()));
    let last = one.state().last_run.unwrap();
    assert_eq!((last.read, last.written, last.quarantined), (3, 2, 1));
    assert_eq!(project.quarantine()[0].1, wanted.quarantine()[0].1);
    // Without its lease it reads nothing more.
    one.lease_at(NOW + LENGTH).unwrap();
    project.write_lines("b.jsonl", &lines(&[delivery("c", 3)]));
    let before = dump(&project.state(), &[]);
    let number = Run { name: &one.name, number: run, holder: &one.holder };
    lost(&one.writer.ingest(&number, &project.input(), &mut |_, _| Ok(())));
    assert_eq!(dump(&project.state(), &[]), before);
}

// ── outcomes, and what readers see ───────────────────────────────────────────────────────────────────

#[test]
fn an_outcome_is_what_the_next_decision_rests_on() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    let failed = json!({"outcome": "failed", "next_due_at": 77, "failures_in_row": 5, "breaker": "open", "page_limit": 9,
        "stopped_by": "0a1b2c3d", "error": {"class": "auth", "text": "refused"}, "last_success": false});
    assert!(one.record(run, failed, NOW + 5));
    assert!(!one.record(run, json!({}), NOW + 6), "a run ends once");
    let state = json!(one.state());
    let wanted = json!({"next_due_at": 77, "failures_in_row": 5, "breaker": "open", "page_limit": 9,
        "stopped_by": "0a1b2c3d", "error_class": "auth", "error_text": "refused", "error_at": NOW + 5,
        "last_attempt_at": NOW, "last_success_at": null, "lease": null});
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&state[key], value, "{key}");
    }
    let run = one.lease_at(NOW + 10).unwrap().run;
    assert!(one.record(run, json!({"outcome": "paused"}), NOW + 20));
    let state = one.state();
    assert_eq!(
        (state.last_success_at, state.breaker.as_str(), state.stopped_by),
        (Some(NOW + 20), "closed", None)
    );
    assert_eq!(state.error_class.as_deref(), Some("auth"), "the last error is still to be seen");
    let last = state.last_run.unwrap();
    assert_eq!((last.outcome.as_deref(), last.error_class), (Some("paused"), None));
}

#[test]
fn a_run_says_at_its_end_whether_its_source_has_more() {
    let project = Project::new();
    let mut one = source(&project.state(), "me");
    for (told, wanted) in
        [(json!(true), true), (Value::Null, true), (json!(false), false), (Value::Null, false)]
    {
        let run = one.begin();
        one.record(run, json!({"more_pending": told}), NOW);
        assert_eq!((one.state().more_pending, one.state().last_run.unwrap().more_pending), (wanted, wanted));
    }
}

#[test]
fn the_last_runs_are_remembered_and_older_ones_go() {
    let project = Project::new();
    let (mut one, mut other) = (source(&project.state(), "me"), source(&project.state(), "other"));
    let first = other.begin();
    let mut last = 0;
    for _ in 0..203 {
        last = one.begin();
        one.record(last, json!({}), NOW);
    }
    other.record(first, json!({}), NOW);
    let store = Store::read(&project.state()).unwrap().unwrap();
    let kept = "SELECT count(*), min(run), max(run) FROM sync_runs WHERE id = 'me'";
    let kept: (i64, i64, i64) =
        store.conn().query_row(kept, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(kept, (200, last - 199, last));
    assert_eq!(other.state().last_run.unwrap().run, first);
    assert_eq!(one.state().runs, 203);
}

#[test]
fn toolkits_are_told_apart_in_lower_case() {
    let project = Project::new();
    let mut one = source(&project.state(), "Me");
    let mut same = one.beside(&project.state(), "another process");
    same.name = Name::new("IMAP", "Me");
    one.begin();
    assert!(same.lease_at(NOW).is_none());
    same.name = Name::new("imap", "me");
    assert!(same.lease_at(NOW).is_some(), "ids are what they are");
}

#[test]
fn a_reader_sees_connections_without_making_anything() {
    let project = Project::new();
    assert!(connections::states(&project.path("none/state.db")).unwrap().is_empty());
    assert!(!project.path("none").exists());
    assert_eq!(project.status()["connections"], json!([]));
    let (mut other, mut one) = (source(&project.state(), "other"), source(&project.state(), "me"));
    other.begin();
    let run = one.begin();
    one.page(run, &lines(&[delivery("a", 1)]), 3).unwrap();
    let mut states = json!(connections::states(&project.state()).unwrap());
    let ids: Vec<&Value> = states.as_array().unwrap().iter().map(|state| &state["id"]).collect();
    assert_eq!(ids, ["me", "other"]);
    assert_eq!(states[0]["cursor"], json!({"place": 3}));
    for state in states.as_array_mut().unwrap() {
        state.as_object_mut().unwrap().remove("cursor");
    }
    assert_eq!(project.status()["connections"], states, "what a source's place holds is not shown");
}

// ── the store in the making ──────────────────────────────────────────────────────────────────────────

#[test]
fn a_store_that_many_make_at_once_is_one_store() {
    const MAKERS: usize = 6;
    for _ in 0..5 {
        let project = Project::new();
        let barrier = Barrier::new(MAKERS);
        std::thread::scope(|scope| {
            for maker in 0..MAKERS {
                let (project, barrier) = (&project, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let mut own: Source = source(&project.state(), &maker.to_string());
                    let run = own.begin();
                    own.page(run, &lines(&[delivery(&format!("m{maker}"), 1)]), 1).unwrap();
                });
            }
        });
        assert_eq!(project.status()["connections"].as_array().unwrap().len(), MAKERS);
        assert_eq!(project.status()["messages"], json!(MAKERS));
    }
}

/// A store as the first version of the program made it, with a message.
fn older(project: &Project) {
    let conn = rusqlite::Connection::open(project.state()).unwrap();
    conn.execute_batch(include_str!("../src/store/schema.sql")).unwrap();
    conn.execute_batch(
        "INSERT INTO conversations VALUES(NULL, 'qq', 'me', 'lab', NULL, 'group', 0, '', 0, 0);
         INSERT INTO meta VALUES('messages', 0);
         PRAGMA application_id = 1667785076; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;",
    )
    .unwrap();
}

#[test]
fn an_older_store_is_migrated_alone_with_a_backup_and_then_written() {
    let project = Project::new();
    older(&project);
    assert!(matches!(connections::states(&project.state()), Err(Error::StoreVersion { found: 1, .. })));
    let lock = RoundLock::take(&project.state(), "a round of the older version").unwrap();
    assert!(matches!(Connections::open(&project.state(), 7), Err(Error::Locked { .. })));
    assert!(!project.path("state.v1-7.bak").exists());
    drop(lock);
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    one.page(run, &lines(&[delivery("a", 1)]), 1).unwrap();
    assert!(project.path(&format!("state.v1-{NOW}.bak")).exists());
    assert_eq!(project.status()["conversations"], 2);
}

#[test]
fn connections_are_written_beside_whoever_holds_the_rounds() {
    let project = Project::new();
    let round: Round = project.round();
    let mut one = source(&project.state(), "me");
    let run = one.begin();
    one.page(run, &lines(&[delivery("a", 1)]), 1).unwrap();
    drop(round);
    assert_eq!(project.status()["messages"], 1);
}
