//! Each event is in one file with the same bytes, wherever an export was cut off.

use std::collections::BTreeMap;
use std::path::Path;

use chatproc_core::export::{Exported, export};
use chatproc_core::store::outbox::{next_file, pending};
use chatproc_core::store::tasks::update_status;
use tempfile::TempDir;

use crate::world::{NOW, World, request};

fn world_with_events(count: i64) -> World {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    for number in 1..count {
        let request_id = number.to_string();
        update_status(&mut world.conn, &request(&id, "open", &request_id), NOW, &world.zone).unwrap();
    }
    world
}

pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|it| (it.file_name().into_string().unwrap(), fs_err::read(it.path()).unwrap())).collect()
}

fn export_to(world: &mut World, folder: &Path) -> Exported {
    export(&mut world.conn, folder, |_| ()).unwrap()
}

#[test]
fn every_event_is_exported_once_in_order_and_for_the_owner_alone() {
    let mut world = world_with_events(3);
    let home = TempDir::new().unwrap();
    let folder = home.path().join("data/todos");
    assert_eq!(pending(&world.conn).unwrap(), 3);
    assert_eq!(export_to(&mut world, &folder), Exported { files: 1, events: 3 });
    assert_eq!(export_to(&mut world, &folder), Exported { files: 0, events: 0 });
    let files = files(&folder);
    let bytes = &files["todos-000000000001-000000000003.jsonl"];
    let lines: Vec<serde_json::Value> = bytes
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let revisions: Vec<_> = lines.iter().map(|line| line["revision"].as_i64().unwrap()).collect();
    assert_eq!((revisions, bytes.last()), (vec![1, 2, 3], Some(&b'\n')));
    assert_eq!((files.len(), pending(&world.conn).unwrap()), (1, 0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.join("todos-000000000001-000000000003.jsonl")), 0o600);
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    }
}

#[test]
fn a_file_holds_ten_thousand_events_at_most() {
    let mut world = world_with_events(1);
    let sql = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20001)
               INSERT INTO outbox(event_id, task, revision, at, actor, why, line)
               SELECT i, 1, i, 0, '', '', CAST(i || char(10) AS BLOB) FROM n";
    world.conn.execute(sql, []).unwrap();
    let folder = TempDir::new().unwrap();
    let mut told = Vec::new();
    export(&mut world.conn, folder.path(), |done| told.push(done.events)).unwrap();
    assert_eq!(told, [10_000, 20_000, 20_001]);
    let all: Vec<u8> = files(folder.path()).into_values().flatten().collect();
    assert_eq!(String::from_utf8(all).unwrap().lines().count(), 20_001);
}

#[test]
fn a_file_that_holds_enough_bytes_takes_no_further_event() {
    let mut world = world_with_events(1);
    let sql = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 6)
               INSERT INTO outbox(event_id, task, revision, at, actor, why, line)
               SELECT i, 1, i, 0, '', '', zeroblob(15 << 20) FROM n";
    world.conn.execute(sql, []).unwrap();
    let folder = TempDir::new().unwrap();
    let mut told = Vec::new();
    export(&mut world.conn, folder.path(), |done| told.push(done.events)).unwrap();
    assert_eq!(told, [4, 6]);
    let names: Vec<_> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["todos-000000000001-000000000004.jsonl", "todos-000000000005-000000000006.jsonl"]);
}

#[test]
fn an_export_that_was_cut_off_anywhere_ends_in_the_same_files() {
    let undisturbed = TempDir::new().unwrap();
    export_to(&mut world_with_events(4), undisturbed.path());
    let wanted = files(undisturbed.path());
    let name = wanted.keys().next().unwrap().clone();

    // What stands in the folder after the crash, and whether it comes under the temporary name.
    let bytes = &wanted[&name];
    let left: [(&str, Option<&[u8]>); 5] = [
        ("assigned", None),
        (".tmp", Some(b"")),
        (".tmp", Some(&bytes[..bytes.len() / 2])),
        (".tmp", Some(bytes)),
        ("", Some(bytes)),
    ];
    for (suffix, content) in left {
        let mut world = world_with_events(4);
        let folder = TempDir::new().unwrap();
        let assigned = next_file(&mut world.conn, None, &mut Vec::new()).unwrap().unwrap();
        assert_eq!(assigned.file, name);
        if let Some(content) = content {
            fs_err::write(folder.path().join(format!("{name}{suffix}")), content).unwrap();
        }
        // More events do not change a file that is already assigned.
        let id = world.search(serde_json::json!({})).tasks.remove(0).task_id;
        update_status(&mut world.conn, &request(&id, "open", "later"), NOW, &world.zone).unwrap();
        assert_eq!(pending(&world.conn).unwrap(), 5);
        assert_eq!(export_to(&mut world, folder.path()), Exported { files: 2, events: 5 });
        let mut found = files(folder.path());
        assert!(found.remove("todos-000000000005-000000000005.jsonl").is_some());
        assert_eq!(found, wanted, "{suffix}");
    }
}

#[test]
fn a_file_that_was_published_with_other_bytes_is_never_published_anew() {
    let mut world = world_with_events(2);
    let folder = TempDir::new().unwrap();
    let name = next_file(&mut world.conn, None, &mut Vec::new()).unwrap().unwrap().file;
    fs_err::write(folder.path().join(&name), "of a store that was put back from a copy").unwrap();
    let error = export(&mut world.conn, folder.path(), |_| ()).unwrap_err();
    assert!(error.to_string().contains(&name), "{error}");
    assert_eq!(pending(&world.conn).unwrap(), 2);
    fs_err::rename(folder.path().join(&name), folder.path().join("aside")).unwrap();
    assert_eq!(export_to(&mut world, folder.path()), Exported { files: 1, events: 2 });
}

#[test]
fn while_another_file_holds_one_of_its_rows_a_file_is_not_published() {
    let mut world = world_with_events(3);
    for (first, last) in [(3, 9), (0, 1), (2, 2), (1, 2), (0, 9)] {
        let folder = TempDir::new().unwrap();
        let other = folder.path().join(format!("todos-{first:012}-{last:012}.jsonl"));
        fs_err::write(&other, "of a store that was put back from a copy").unwrap();
        let error = export(&mut world.conn, folder.path(), |_| ()).unwrap_err();
        assert!(error.to_string().contains(&*other.to_string_lossy()), "{error}");
        assert_eq!(files(folder.path()).len(), 1);
    }
    let folder = TempDir::new().unwrap();
    for (first, last) in [(0, 0), (4, 9)] {
        let beside = format!("todos-{first:012}-{last:012}.jsonl");
        fs_err::write(folder.path().join(beside), "other rows").unwrap();
    }
    assert_eq!(export_to(&mut world, folder.path()), Exported { files: 1, events: 3 });
}

#[test]
fn a_file_of_an_export_that_was_not_marked_is_marked_and_not_written_again() {
    let mut world = world_with_events(2);
    let folder = TempDir::new().unwrap();
    export_to(&mut world, folder.path());
    let path = folder.path().join("todos-000000000001-000000000002.jsonl");
    let before = fs_err::metadata(&path).unwrap().modified().unwrap();
    world.conn.execute("UPDATE exports SET done = 0", []).unwrap();
    assert_eq!(export_to(&mut world, folder.path()), Exported { files: 1, events: 2 });
    assert_eq!(fs_err::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(pending(&world.conn).unwrap(), 0);
}

#[test]
fn bytes_that_are_not_those_assigned_are_never_published() {
    let mut world = world_with_events(2);
    let folder = TempDir::new().unwrap();
    next_file(&mut world.conn, None, &mut Vec::new()).unwrap();
    world.conn.execute("UPDATE outbox SET line = x'00' WHERE \"row\" = 1", []).unwrap();
    assert!(export(&mut world.conn, folder.path(), |_| ()).is_err());
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_output_that_cannot_be_written_leaves_all_waiting_for_the_next_run() {
    let mut world = world_with_events(2);
    let home = TempDir::new().unwrap();
    let folder = home.path().join("todos");
    fs_err::write(&folder, "no folder").unwrap();
    let error = export(&mut world.conn, &folder, |_| ()).unwrap_err();
    assert!(error.to_string().contains("todos"), "{error}");
    assert_eq!(pending(&world.conn).unwrap(), 2);
    fs_err::remove_file(&folder).unwrap();
    assert_eq!(export_to(&mut world, &folder), Exported { files: 1, events: 2 });
}
