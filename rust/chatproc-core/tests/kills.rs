//! A process that pulls is killed at each fail point; the one after it ends with the same store.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::path::Path;
use std::process::Command;

use chatproc_core::connections::Connections;
use chatproc_core::store::connections::{Claim, Name, Run};
use chatproc_core::store::intake::Input;
use chatproc_core::store::pages::Page;
use common::NOW;
use common::sync::{DAY, LENGTH, dump, outcome, rows};
use common::world::{Delivery, chain, delivery};
use serde_json::json;
use tempfile::TempDir;

const POINTS: [(&str, u64); 12] = [
    ("lease.committed", 1),
    ("lease.committed", 2),
    ("reserve.committed", 1),
    ("reserve.committed", 3),
    ("page.before", 2),
    ("page.commit", 1),
    ("page.commit", 3),
    ("page.committed", 2),
    ("ingest.slice", 1),
    ("ingest.commit", 2),
    ("record.before", 1),
    ("record.committed", 1),
];
/// Where the process to be killed works.
const FOLDER: &str = "CHATPROC_TEST_FOLDER";

/// What the source holds: an edit, a line that is none, and what a file holds too.
fn pages() -> Vec<Vec<Vec<u8>>> {
    let chat = chain(&["a", "b", "c", "d"]);
    let edited = Delivery { event_id: "edit".to_owned(), revision: 1, state: "edited", ..chat[0].clone() };
    let line = |delivery: &Delivery| delivery.line();
    vec![
        chat[..2].iter().map(line).collect(),
        vec![b"no json".to_vec(), edited.line(), chat[2].line()],
        vec![chat[3].line()],
    ]
}

fn write(path: &Path, deliveries: &[Delivery]) {
    let lines: Vec<Vec<u8>> = deliveries.iter().map(Delivery::line).collect();
    fs_err::write(path, [lines.join(&b'\n'), vec![b'\n']].concat()).unwrap();
}

fn prepared() -> TempDir {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("1.jsonl"), &chain(&["a", "b", "x"]));
    write(&folder.path().join("2.jsonl"), &[delivery("y", 5)]);
    folder
}

/// Leases a connection, from a holder that is gone if there is one, works, and records.
fn sync(writer: &mut Connections, name: &Name, work: impl FnOnce(&mut Connections, &Run<'_>, i64)) {
    let holder = std::process::id().to_string();
    let held = writer.lease_of(name).unwrap().map(|lease| lease.holder);
    let gone = held.as_deref();
    let claim = Claim { holder: &holder, trigger: "tick", now: NOW, until: NOW + LENGTH, gone, seen: None };
    let leased = writer.lease(name, &claim).unwrap().unwrap();
    let place = leased.state.cursor.get("place").and_then(serde_json::Value::as_i64).unwrap_or_default();
    let run = Run { name, number: leased.run, holder: &holder };
    work(writer, &run, place);
    assert!(writer.record(&run, &outcome(json!({"next_due_at": NOW + 1})), NOW).unwrap());
}

/// Pulls what the source still has, then reads the files.
fn finish(folder: &Path) {
    let mut writer = Connections::open(&folder.join("state.db"), NOW).unwrap();
    sync(&mut writer, &Name::new("imap", "me"), |writer, run, place| {
        for (page, place) in pages().iter().zip(1..).skip(usize::try_from(place).unwrap()) {
            assert!(writer.reserve(run, DAY, 100).unwrap());
            let asked = folder.join("requests");
            let before = fs_err::read(&asked).unwrap_or_default();
            fs_err::write(&asked, [before, b"x".to_vec()].concat()).unwrap();
            let cursor = json!({"place": place}).as_object().unwrap().clone();
            writer
                .page(
                    run,
                    &Page {
                        lines: page,
                        cursor: &cursor,
                        more: place < 3,
                        day: DAY,
                        max_line_bytes: u64::MAX,
                    },
                )
                .unwrap();
        }
    });
    let input = Input {
        paths: vec![folder.join("*.jsonl").to_string_lossy().into_owned()],
        max_line_bytes: 1 << 20,
        max_memory: 1 << 29,
        settle: 0,
        now: NOW,
        state: folder.join("state.db"),
        output: folder.join("todos"),
    };
    sync(&mut writer, &Name::new("jsonl", "files"), |writer, run, _| {
        writer.ingest(run, &input, &mut |_, _| Ok(())).unwrap();
    });
}

/// What must be the same however often the work was cut off. A line's number is one of its run.
fn outcome_of(folder: &Path) -> Vec<String> {
    let state = folder.join("state.db");
    let but = ["connections", "sync_runs", "events", "quarantine", "files"];
    vec![
        dump(&state, &but),
        rows(&state, "SELECT id, hash, message, revision, file FROM events"),
        rows(&state, "SELECT identity, reason, raw, state FROM quarantine"),
        rows(&state, "SELECT file, consumed, lines, digest, waiting FROM files"),
        rows(
            &state,
            "SELECT toolkit, id, cursor, more_pending, written, repeats, quarantined, items_used, next_due_at,
               last_success_at, failures_in_row, lease_run, lease_holder, lease_until FROM connections",
        ),
        rows(&state, "SELECT count(*) FROM sync_runs WHERE ended IS NULL"),
    ]
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn the_process_to_be_killed() {
    finish(Path::new(&std::env::var(FOLDER).unwrap()));
}

#[test]
fn a_kill_at_any_fail_point_of_a_sync_changes_nothing_in_the_end() {
    let undisturbed = prepared();
    finish(undisturbed.path());
    let wanted = outcome_of(undisturbed.path());
    for (point, hit) in POINTS {
        let folder = prepared();
        let killed = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_to_be_killed", "--ignored"])
            .env("CHATPROC_FAILPOINT", format!("{point}:{hit}"))
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None, "{point} was not hit: {killed:?}");
        finish(folder.path());
        assert_eq!(outcome_of(folder.path()), wanted, "{point}:{hit}");
        let made = fs_err::read(folder.path().join("requests")).unwrap().len();
        let state = folder.path().join("state.db");
        let reserved = rows(&state, "SELECT requests_used FROM connections WHERE toolkit = 'imap'");
        let lost = usize::from(point == "reserve.committed");
        assert_eq!(reserved, format!("Integer({})\n", made + lost), "{point}:{hit}");
    }
}

/// A store as the first version of the program made it.
fn older(state: &Path) {
    let conn = rusqlite::Connection::open(state).unwrap();
    conn.execute_batch(include_str!("../src/store/schema.sql")).unwrap();
    conn.execute_batch(
        "PRAGMA application_id = 1667785076; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;",
    )
    .unwrap();
}

#[test]
fn a_kill_while_a_store_is_migrated_leaves_it_to_be_migrated() {
    for point in ["migrate.step", "migrate.commit"] {
        let (folder, undisturbed) = (prepared(), prepared());
        older(&folder.path().join("state.db"));
        older(&undisturbed.path().join("state.db"));
        let killed = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_to_be_killed", "--ignored"])
            .env("CHATPROC_FAILPOINT", point)
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None, "{point} was not hit: {killed:?}");
        drop(Connections::open(&folder.path().join("state.db"), NOW + 1).unwrap());
        finish(folder.path());
        finish(undisturbed.path());
        assert_eq!(outcome_of(folder.path()), outcome_of(undisturbed.path()), "{point}");
    }
}
