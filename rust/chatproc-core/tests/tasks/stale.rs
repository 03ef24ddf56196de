//! A task is superseded exactly when all segments of its sources were read again and none holds it.

use chatproc_core::store::commit::GroupSegment;
use chatproc_core::store::tasks::{history, update_status};
use chatproc_core::task::{By, EVIDENCE_GONE};
use serde_json::json;

use crate::world::{NOW, World, digest, draft, request, update, with};

/// A task with sources in two segments, both read again after an edit: the world, its id, the segments.
fn two_segments() -> (World, String, [GroupSegment; 2]) {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "a");
    world.message(conversation, "m2", "b");
    let segments = [world.segment(&["m1"]), world.segment(&["m2"])];
    let id = world.commit(&segments, &[draft(&["m1", "m2"])]).unwrap().tasks.remove(0).task_id;
    world.edit("m1", "c");
    world.edit("m2", "d");
    let segments = [world.segment(&["m1"]), world.segment(&["m2"])];
    (world, id, segments)
}

fn status(world: &World, id: &str) -> &'static str {
    world.task(id).status.as_str()
}

#[test]
fn a_task_is_superseded_once_all_its_segments_are_done_and_none_submitted_it() {
    let (mut world, id, [first, second]) = two_segments();
    assert!(world.commit(&[first.clone()], &[]).unwrap().superseded.is_empty());
    assert_eq!(status(&world, &id), "open", "one of its segments is still pending");
    let committed = world.commit(&[second.clone()], &[]).unwrap();
    assert_eq!(
        (committed.superseded[0].task_id.as_str(), committed.superseded[0].revision),
        (id.as_str(), 2)
    );
    assert_eq!(status(&world, &id), "superseded");
    assert_eq!((world.cited(&first), world.cited(&second)), (0, 0));
    let last = history(&world.conn, &id).unwrap().pop().unwrap();
    assert_eq!((last.actor.as_str(), last.task.status_by.as_str()), ("program", "model"));
    assert!(world.related(&[&["m1", "m2"]]).is_empty());
}

#[test]
fn a_task_that_the_latest_commit_of_one_segment_submitted_stays() {
    let (mut world, id, [first, second]) = two_segments();
    world.commit(&[first], &[update(draft(&["m1"]), &id, 1)]).unwrap();
    assert!(world.commit(&[second], &[]).unwrap().superseded.is_empty());
    assert_eq!(status(&world, &id), "open");
}

#[test]
fn a_submission_that_changed_nothing_keeps_the_task_too() {
    let (mut world, id, _) = two_segments();
    world.edit("m1", "a");
    world.edit("m2", "b");
    let now = [world.segment(&["m1"]), world.segment(&["m2"])];
    let again = world.commit(&now, &[update(draft(&["m1", "m2"]), &id, 1)]).unwrap();
    assert!(!again.tasks[0].changed);
    assert_eq!(status(&world, &id), "open");
}

#[test]
fn content_that_returns_to_what_was_read_before_the_last_submission_supersedes_nothing() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "a");
    world.message(conversation, "m2", "x");
    let first = world.segment(&["m1"]);
    world.commit(&[first.clone()], &[]).unwrap();
    world.edit("m1", "b");
    let second = world.segment(&["m1"]);
    let id = world.commit(&[second.clone()], &[draft(&["m1"])]).unwrap().tasks.remove(0).task_id;
    // The edit is undone: the segment is done again, by the older commit, which submitted nothing.
    let undo = "UPDATE segments SET content_fp = ?2 WHERE segment = ?1";
    world.conn.execute(undo, rusqlite::params![second.segment, first.content_fp]).unwrap();
    // Another segment's commit looks at the task.
    let looking = GroupSegment { segment: second.segment, ..world.segment(&["m2"]) };
    assert!(world.commit(&[looking], &[]).unwrap().superseded.is_empty());
    assert_eq!(status(&world, &id), "open");
}

#[test]
fn a_segment_that_is_done_under_other_settings_only_is_not_done() {
    let (mut world, id, [first, second]) = two_segments();
    world.commit(&[first.clone()], &[]).unwrap();
    world.settings_fp = digest("other rules");
    assert!(world.commit(&[second], &[]).unwrap().superseded.is_empty());
    assert_eq!(status(&world, &id), "open");
    assert_eq!(world.commit(&[first], &[]).unwrap().superseded.len(), 1);
}

#[test]
fn a_source_in_no_segment_yet_keeps_the_task() {
    let (mut world, id, [first, _]) = two_segments();
    world
        .conn
        .execute("DELETE FROM members WHERE message = (SELECT message FROM messages WHERE key = 'm2')", [])
        .unwrap();
    assert!(world.commit(&[first], &[]).unwrap().superseded.is_empty());
    assert_eq!(status(&world, &id), "open");
}

#[test]
fn a_task_whose_status_a_user_set_is_never_superseded_but_says_once_that_its_evidence_is_gone() {
    for value in ["open", "completed", "cancelled"] {
        let (mut world, id, segments) = two_segments();
        update_status(&mut world.conn, &request(&id, value, "r"), NOW, &world.zone).unwrap();
        assert!(world.commit(&segments[..1], &[]).unwrap().noted.is_empty(), "one segment is still pending");
        let committed = world.commit(&segments[1..], &[]).unwrap();
        assert!(committed.superseded.is_empty());
        let noted = committed.noted.iter().map(|task| (task.task_id.as_str(), task.revision));
        assert_eq!(noted.collect::<Vec<_>>(), [(id.as_str(), 3)]);
        let task = world.task(&id);
        assert_eq!((task.status.as_str(), task.record.status_by), (value, By::User));
        assert_eq!(task.record.notes, EVIDENCE_GONE);
        assert_eq!(history(&world.conn, &id).unwrap().pop().unwrap().actor, "program");
        assert_eq!(world.search(json!({"query": "holds it any more"})).total, 1, "the index knows the note");

        world.settings_fp = digest("other rules");
        let again = world.commit(&segments, &[]).unwrap();
        assert!(again.noted.is_empty() && again.superseded.is_empty(), "it is said already");
        assert_eq!(world.task(&id).revision, 3);
    }
}

#[test]
fn a_note_that_the_evidence_is_gone_follows_what_the_notes_say_and_goes_with_new_evidence() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "a");
    let segment = world.segment(&["m1"]);
    let drafts = [with(draft(&["m1"]), json!({"notes": "只到五点"}))];
    let id = world.commit(&[segment], &drafts).unwrap().tasks.remove(0).task_id;
    update_status(&mut world.conn, &request(&id, "open", "r"), NOW, &world.zone).unwrap();
    world.edit("m1", "b");
    let segment = world.segment(&["m1"]);
    assert_eq!(world.commit(&[segment], &[]).unwrap().noted.len(), 1);
    assert_eq!(world.task(&id).record.notes, format!("只到五点\n{EVIDENCE_GONE}"));
    world.edit("m1", "c");
    let segment = world.segment(&["m1"]);
    world.commit(&[segment], &[update(draft(&["m1"]), &id, 3)]).unwrap();
    assert_eq!(world.task(&id).record.notes, "");
}

#[test]
fn a_superseded_task_that_is_submitted_again_takes_that_status() {
    let (mut world, id, segments) = two_segments();
    world.commit(&segments, &[]).unwrap();
    world.edit("m1", "e");
    let segment = world.segment(&["m1"]);
    let again = with(update(draft(&["m1"]), &id, 2), json!({"status": "cancelled"}));
    world.commit(&[segment.clone()], &[again]).unwrap();
    assert_eq!(status(&world, &id), "cancelled");
    assert_eq!(world.cited(&segment), 1);
}
