//! A process that is killed at a fail point of commit or export leaves nothing that the next run does not
//! finish with the same bytes.

use std::path::Path;
use std::process::Command;

use chatproc_core::export::export;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::export::files;
use crate::world::{World, draft};

const POINTS: [&str; 7] = [
    "commit.before",
    "commit.after",
    "export.assigned",
    "export.written",
    "export.synced",
    "export.renamed",
    "export.folder-synced",
];
/// Where the process to be killed works.
const FOLDER: &str = "CHATPROC_TEST_FOLDER";

fn open(folder: &Path) -> Connection {
    let conn = Connection::open(folder.join("state.db")).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").unwrap();
    conn
}

/// Commits one group if that is still to be done, then exports.
fn finish(folder: &Path) {
    let mut world = World::again(open(folder));
    if world.number("SELECT count(*) FROM commits WHERE ?1 = ''", "") == 0 {
        let segment = world.segment(&["m1"]);
        world.commit(&[segment], &[draft(&["m1"])]).unwrap();
    }
    export(&mut world.conn, &folder.join("todos"), |_| ()).unwrap();
}

fn prepared() -> TempDir {
    let folder = TempDir::new().unwrap();
    let world = World::over(open(folder.path()));
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "a");
    folder
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn the_process_to_be_killed() {
    finish(Path::new(&std::env::var(FOLDER).unwrap()));
}

#[test]
fn a_kill_at_any_fail_point_of_commit_and_export_changes_no_byte() {
    let undisturbed = prepared();
    finish(undisturbed.path());
    let wanted = files(&undisturbed.path().join("todos"));
    assert_eq!(wanted.len(), 1);
    for point in POINTS {
        let folder = prepared();
        let killed = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::the_process_to_be_killed", "--ignored"])
            .env("CHATPROC_FAILPOINT", point)
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None, "{point} was not hit: {killed:?}");
        finish(folder.path());
        assert_eq!(files(&folder.path().join("todos")), wanted, "{point}");
    }
}
