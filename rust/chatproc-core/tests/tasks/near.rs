//! What may be the same task is offered: open tasks, few of them, the likeliest first.

use chatproc_core::claim;
use chatproc_core::store::near::{NewTask, near};
use chatproc_core::store::tasks::update_status;
use chatproc_core::task::TimeCheck;
use serde_json::{Value, json};

use crate::world::{NOW, World, draft, request, update, with};

fn offered(world: &World, new: Value) -> Vec<(String, bool)> {
    let plain = json!({"sources": [], "title": "交报告", "event": "课程报告", "people": [], "start": null,
                       "due": "2026-07-03", "except": []});
    let new: NewTask = serde_json::from_value(with(plain, new)).unwrap();
    let found = near(&world.conn, &new, &world.zone).unwrap();
    found.into_iter().map(|task| (task.task_id, task.shares_source)).collect()
}

#[test]
fn a_task_on_the_same_message_or_like_it_in_the_same_conversation_is_offered() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    for key in ["m1", "m2", "m3"] {
        world.message(conversation, key, "x");
    }
    let segment = world.segment(&["m1", "m2", "m3"]);
    let other = json!({"title": "还书", "event": "图书馆"});
    let drafts = [draft(&["m1"]), with(draft(&["m2"]), other)];
    let ids: Vec<String> =
        world.commit(&[segment], &drafts).unwrap().tasks.into_iter().map(|task| task.task_id).collect();
    let [report, book] = [&ids[0], &ids[1]];
    assert_eq!(offered(&world, json!({"sources": ["m3"]})), [(report.clone(), false)]);
    assert_eq!(
        offered(&world, json!({"sources": ["m2", "m3"]})),
        [(book.clone(), true), (report.clone(), false)]
    );
    assert_eq!(offered(&world, json!({"sources": ["m3"], "except": [report]})), []);
    assert_eq!(offered(&world, json!({"sources": ["m3"], "due": "2026-08-03"})), []);
    assert_eq!(offered(&world, json!({"sources": ["nowhere"]})), []);
    update_status(&mut world.conn, &request(report, "completed", "r1"), NOW, &world.zone).unwrap();
    assert_eq!(offered(&world, json!({"sources": ["m1", "m3"]})), []);
}

#[test]
fn a_task_of_the_same_people_elsewhere_is_offered_and_no_names_syntax_reaches_the_index() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "x");
    let conversation = world.conversation("qq", "elsewhere");
    world.message(conversation, "n1", "x");
    assert_eq!(offered(&world, json!({"sources": ["n1"], "people": ["王老师"]})), [(id, false)]);
    let hostile = ["\" OR *", "people : (x", "长".repeat(5000).as_str(), "", " "].map(str::to_owned);
    assert_eq!(offered(&world, json!({"sources": ["n1"], "people": hostile})), []);
}

#[test]
fn three_are_offered_at_most() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "x");
    let segment = world.segment(&["m1"]);
    let drafts: Vec<Value> =
        (0..6).map(|number| with(draft(&["m1"]), json!({"event": format!("{number}")}))).collect();
    world.commit(&[segment], &drafts).unwrap();
    assert_eq!(offered(&world, json!({"sources": ["m1"]})).len(), 3);
}

#[test]
fn a_stored_time_holds_until_it_or_its_source_is_another() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "周五 17:00 前交");
    world.message(conversation, "m2", "改到周六");
    let segment = world.segment(&["m1", "m2"]);
    let wrong = json!({"time": {"due": "2026-07-10", "original": "周五 17:00 前"}});
    let task = world.commit(&[segment.clone()], &[with(draft(&["m1"]), wrong)]).unwrap().tasks.remove(0);
    let record = world.task(&task.task_id).record;
    assert_eq!(record.time.due.as_deref(), Some("2026-07-03T17:00:00+08:00"));
    assert_eq!(claim::doubt(&record).unwrap(), None);
    let mut flipped = record.clone();
    flipped.time.due = Some("2026-07-03T18:00:00+08:00".to_owned());
    assert!(claim::doubt(&flipped).unwrap().is_some_and(|words| words.contains("17:00")));
    let mut edited = record.clone();
    edited.sources[0].text = "下周交".to_owned();
    assert!(claim::doubt(&edited).unwrap().is_some());
    // A time that another version computed is not held against this version's reading.
    let mut older = edited;
    for version in [None, Some(chatproc_core::timex::VERSION + 1)] {
        older.processing.times_version = version;
        assert_eq!(claim::doubt(&older).unwrap(), None);
    }
    // The wording of an earlier source still counts when an update cites only a newer one.
    let kept = json!({"time": {"due": "2026-07-03T17:00:00+08:00", "original": "周五 17:00 前"}});
    let next = update(with(draft(&["m2"]), kept), &task.task_id, 1);
    world.commit(&[segment], &[next]).unwrap();
    let record = world.task(&task.task_id).record;
    assert_eq!((record.time.check, record.notes.as_str()), (Some(TimeCheck::Agrees), ""));
    assert_eq!(claim::doubt(&record).unwrap(), None);
}
