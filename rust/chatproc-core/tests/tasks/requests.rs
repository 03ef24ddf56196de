//! What users say of a task: once, idempotent, and never on top of something unseen.

use chatproc_core::error::Error;
use chatproc_core::store::tasks::{Request, history, update_priority, update_status};
use serde_json::{Value, json};

use crate::world::{NOW, World, request};

#[test]
fn the_same_request_gets_the_first_answer_and_changes_nothing() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let request = request(&id, "completed", "r1");
    let first = update_status(&mut world.conn, &request, NOW, &world.zone).unwrap();
    assert_eq!((first.revision, first.task.status_by.as_str()), (2, "user"));
    update_status(
        &mut world.conn,
        &Request { request_id: "r2", value: "open", ..request.clone() },
        NOW,
        &world.zone,
    )
    .unwrap();
    let before = world.dump();
    let again = update_status(&mut world.conn, &request, NOW + 5, &world.zone).unwrap();
    assert_eq!(again, first);
    let others = [
        Request { value: "open", ..request.clone() },
        Request { actor: "zhao", ..request.clone() },
        Request { expected_revision: Some(1), ..request.clone() },
        Request { note: Some("n"), ..request.clone() },
        Request { task_id: "t_other", ..request.clone() },
    ];
    for other in others {
        let refused = update_status(&mut world.conn, &other, NOW, &world.zone);
        assert!(matches!(refused, Err(Error::TaskConflict(ref what)) if what.contains("r1")), "{other:?}");
    }
    let priority = Request { value: "P0", ..request };
    assert!(matches!(
        update_priority(&mut world.conn, &priority, NOW, &world.zone),
        Err(Error::TaskConflict(_))
    ));
    assert_eq!(world.dump(), before);
}

#[test]
fn a_status_that_is_set_as_it_already_is_becomes_the_users() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let event = update_status(&mut world.conn, &request(&id, "open", "r1"), NOW, &world.zone).unwrap();
    assert_eq!((event.revision, event.task.status_by.as_str()), (2, "user"));
    assert_eq!(world.task(&id).revision, 2);
}

#[test]
fn a_request_that_cannot_be_granted_changes_nothing() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let gone = world.with_a_task("m22", "b");
    world.edit("m22", "c");
    let segment = world.segment(&["m22"]);
    assert_eq!(world.commit(&[segment], &[]).unwrap().superseded.len(), 1);
    let before = world.dump();
    let World { conn, zone, .. } = &mut world;
    for value in ["superseded", "done", "", "Open"] {
        assert!(matches!(update_status(conn, &request(&id, value, "r"), NOW, zone), Err(Error::Invalid(_))));
    }
    for value in ["P5", "p1", ""] {
        assert!(matches!(
            update_priority(conn, &request(&id, value, "r"), NOW, zone),
            Err(Error::Invalid(_))
        ));
    }
    for bad in [
        Request { request_id: "", ..request(&id, "open", "r") },
        Request { actor: "", ..request(&id, "open", "r") },
    ] {
        assert!(matches!(update_status(conn, &bad, NOW, zone), Err(Error::Invalid(_))));
    }
    assert!(matches!(update_status(conn, &request("t_no", "open", "r"), NOW, zone), Err(Error::NotFound(_))));
    assert!(matches!(
        update_status(conn, &request(&gone, "open", "r"), NOW, zone),
        Err(Error::TaskConflict(_))
    ));
    let stale = Request { expected_revision: Some(2), ..request(&id, "open", "r") };
    assert!(matches!(update_status(conn, &stale, NOW, zone), Err(Error::TaskConflict(_))));
    assert_eq!(world.dump(), before);
    assert!(matches!(history(&world.conn, "t_no"), Err(Error::NotFound(_))));
}

#[test]
fn the_history_tells_every_revision_with_who_and_why() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let World { conn, zone, .. } = &mut world;
    let done =
        Request { note: Some("交了"), expected_revision: Some(1), ..request(&id, "completed", "r1") };
    update_status(conn, &done, NOW + 1000, zone).unwrap();
    let event = update_priority(conn, &request(&id, "P0", "r2"), NOW + 2000, zone).unwrap();
    assert_eq!((event.task.priority_by.as_str(), event.task.priority_reason.as_str()), ("user", ""));
    let told: Vec<Value> = history(conn, &id)
        .unwrap()
        .iter()
        .map(|it| json!([it.revision, it.at, it.actor, it.why, it.task.status, it.task.priority]))
        .collect();
    assert_eq!(
        told,
        [
            json!([
                1,
                "2026-07-02T21:46:40+08:00",
                "model:m-1",
                "created from group g_1 in round 1",
                "open",
                "P2"
            ]),
            json!([2, "2026-07-02T21:46:41+08:00", "user:li", "交了", "completed", "P2"]),
            json!([3, "2026-07-02T21:46:42+08:00", "user:li", "", "completed", "P0"]),
        ]
    );
}
