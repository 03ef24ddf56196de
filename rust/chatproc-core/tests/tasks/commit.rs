//! A group commits whole or not at all, and says of a task exactly what its sources and drafts say.

use chatproc_core::error::Error;
use chatproc_core::fingerprint::task_event_id as event_id;
use chatproc_core::fingerprint::task_id;
use chatproc_core::store::commit::{Committed, GroupCommit, commit_groups};
use chatproc_core::store::ledger;
use chatproc_core::store::tasks::{history, update_priority, update_status};
use serde_json::{Value, json};

use crate::world::{NOW, World, commit_group, digest, draft, request, update, with};

#[test]
fn ids_are_what_the_contract_computes() {
    // Values by Python's hashlib and base64.
    assert_eq!(task_id(&[0; 32], 0, None), "t_nixkc7fitghoxeaznokmp67zqo");
    assert_eq!(task_id(&digest("a"), 12, None), "t_kax7pfcfvd2stqpxz4fwvroww2");
    assert_eq!(task_id(&digest("a"), 12, Some(7)), "t_6cldzhvuanvorkfxncd3wszwsq");
    assert_eq!(
        event_id("t_nixkc7fitghoxeaznokmp67zqo", 3),
        "9841e79dfb98030dd220781efd3b897e4103844bf3735f509182177a87be7305"
    );
}

#[test]
fn a_new_task_is_a_record_an_event_and_a_done_segment() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "999000");
    world.message(conversation, "m1", "请大家周五　17：00 前交");
    world.message(conversation, "m2", "收到");
    let segment = world.segment(&["m1", "m2"]);
    let quotes = json!([{"message_key": "m1", "text": "周五 17:00 前", "check": "repaired"}]);
    let receipt = json!({"message_key": "m1", "attachment_id": "a1", "unit": "b3", "attachment_sha256": "cd",
                         "content_sha256": "ef", "length": 5});
    let evidence = json!([{"message_key": "m1", "attachment_id": "a1", "unit": "b3"}]);
    let time = json!({"due": "2026-07-03T17:00:00+08:00", "original": "周五 17:00 前"});
    let mut submission = world.submission(
        &[segment.clone()],
        &[with(draft(&["m1"]), json!({"quotes": quotes, "evidence": evidence, "time": time}))],
    );
    submission.outcome.receipts = serde_json::from_value(json!([receipt])).unwrap();
    let id = task_id(&submission.group.group_fp, 0, None);

    let committed = commit_group(&mut world.conn, &submission).unwrap();

    assert_eq!(
        serde_json::to_value(&committed).unwrap(),
        json!({"commit": 1, "tasks": [{"task_id": id, "revision": 1, "changed": true}], "superseded": [], "noted": []})
    );
    let source = json!({
        "platform": "qq", "account_id": "10000", "conversation": {"id": "999000", "name": "999000群", "type": "group"},
        "message_key": "m1", "message_id": "id-m1", "sender": {"id": "10001", "name": "王老师"},
        "sent_at": 1_782_871_200, "sent_at_local": "2026-07-01T10:00:00+08:00", "collected_at": 1_782_871_260,
        "text": "请大家周五　17：00 前交",
        "attachments": [{"id": "a1", "name": "模板.docx", "mime": null, "size": 20480, "sha256": null,
                         "path": "2026/模板.docx", "state": "present"}],
        "quotes": [{"text": "周五　17：00 前", "check": "repaired", "attachment_id": null, "unit": null}],
        "selection": {"rules": ["one"], "window": [1, 2]}, "source": {"local_id": 4412, "score": 0.1},
    });
    let record = json!({
        "title": "交报告", "event": "课程报告", "priority": "P2", "priority_reason": "有截止时间", "status": "open",
        "status_by": "model", "priority_by": "model",
        "time": {"start": null, "due": "2026-07-03T17:00:00+08:00", "timezone": "Asia/Shanghai",
                 "original": "周五　17：00 前", "check": "agrees"},
        "people": [{"name": "王老师", "role": null}], "location": "302", "action_steps": ["写", "交"], "notes": "",
        "needs_review": false, "review_reasons": [], "source_message_keys": ["m1"], "sources": [source],
        "attachment_evidence": [{"attachment_id": "a1", "name": "模板.docx", "sha256": "cd", "unit": "b3",
                                 "message_key": "m1", "path": "2026/模板.docx"}],
        "owner": {"platform": "qq", "account_id": "10000",
                  "conversation": {"id": "999000", "name": "999000群", "type": "group"}},
        "context": {"group_id": "g_1", "subject": ["m1", "m2"], "history": [], "continuity": ["proven"]},
        "processing": {"rules_file": "default.md", "rules_sha256": "ab".repeat(32), "model": "m-1",
                       "settings_fp": data_encoding::HEXLOWER.encode(&world.settings_fp),
                       "content_fp": [data_encoding::HEXLOWER.encode(&segment.content_fp)],
                       "time": "2026-07-02T21:46:40+08:00", "times_version": 1, "usage": {"requests": 1, "input_tokens": null}},
    });
    assert_eq!(serde_json::to_value(world.task(&id).record).unwrap(), record);
    let line: Vec<u8> = world.conn.query_row("SELECT line FROM outbox", [], |row| row.get(0)).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&line).unwrap(),
        json!({"schema": "chatproc.task-event/1", "operation": "upsert", "event_id": event_id(&id, 1), "task_id": id,
               "revision": 1, "emitted_at": "2026-07-02T21:46:40+08:00", "task": record})
    );
    assert_eq!(world.cited(&segment), 1);
    let status: String = world.conn.query_row("SELECT status FROM segments", [], |row| row.get(0)).unwrap();
    assert_eq!(status, "done");
    assert_eq!(world.number("SELECT length FROM receipts WHERE unit = ?1", "b3"), 5);
}

#[test]
fn the_same_group_after_a_rollback_gives_the_same_id_and_a_new_commit_of_it_another() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "a");
    let segment = world.segment(&["m1"]);
    let drafts = [draft(&["m1"]), with(draft(&["m1"]), json!({"title": ""}))];
    assert!(matches!(world.commit(&[segment.clone()], &drafts), Err(Error::Evidence(_))));
    let first = world.commit(&[segment.clone()], &drafts[..1]).unwrap();
    let group_fp = world.submission(&[segment.clone()], &[]).group.group_fp;
    assert_eq!(first.tasks[0].task_id, task_id(&group_fp, 0, None));

    world.settings_fp = digest("other rules");
    let second = world.commit(&[segment], &drafts[..1]).unwrap();
    assert_eq!(second.tasks[0].task_id, task_id(&group_fp, 0, Some(second.commit)));
    assert_eq!(second.superseded[0].task_id, first.tasks[0].task_id);
}

#[test]
fn an_update_that_says_nothing_new_makes_no_revision_but_counts_as_submitted() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let segment = world.segment(&["m1"]);
    let mut again = world.submission(&[segment.clone()], &[update(draft(&["m1"]), &id, 1)]);
    again.settings.model = "m-2".to_owned();
    again.group.id = "g_2".to_owned();
    again.now_ms += 1;
    let committed = commit_group(&mut world.conn, &again).unwrap();
    assert!(!committed.tasks[0].changed && committed.tasks[0].revision == 1);
    assert!(committed.superseded.is_empty());
    assert_eq!(world.number("SELECT count(*) FROM outbox WHERE ?1 = ''", ""), 1);
    assert_eq!(world.number("SELECT last_commit FROM tasks WHERE task_id = ?1", &id), committed.commit);

    world.edit("m1", "b");
    let segment = world.segment(&["m1"]);
    let committed = world.commit(&[segment], &[update(draft(&["m1"]), &id, 1)]).unwrap();
    assert!(committed.tasks[0].changed, "a changed source text is a change");
    assert_eq!(world.task(&id).record.sources[0].text, "b");
}

#[test]
fn an_update_keeps_old_sources_evidence_and_the_quotes_that_still_hold() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "周五交。带上报告");
    world.message(conversation, "m2", "改到周六");
    let segment = world.segment(&["m1", "m2"]);
    let quotes = json!([{"message_key": "m1", "text": "周五交", "check": "exact"},
                        {"message_key": "m1", "text": "带上报告", "check": "exact"}]);
    let first = world.commit(&[segment], &[with(draft(&["m1"]), json!({"quotes": quotes}))]).unwrap();
    let id = &first.tasks[0].task_id;

    world.edit("m1", "周日交。带上报告");
    let segment = world.segment(&["m1", "m2"]);
    let quotes = json!([{"message_key": "m2", "text": "周六", "check": "exact"}]);
    let change =
        with(update(draft(&["m2"]), id, 1), json!({"quotes": quotes, "title": "交", "status": "cancelled"}));
    world.commit(&[segment.clone()], &[change]).unwrap();

    let record = world.task(id).record;
    assert_eq!(record.source_message_keys, ["m1", "m2"]);
    let quotes: Vec<Vec<&str>> = record
        .sources
        .iter()
        .map(|source| source.quotes.iter().map(|quote| quote.text.as_str()).collect())
        .collect();
    assert_eq!(quotes, [vec!["带上报告"], vec!["周六"]]);
    assert_eq!((record.title.as_str(), record.status.as_str()), ("交", "cancelled"));
    assert_eq!(world.cited(&segment), 2);
    let revisions = history(&world.conn, id).unwrap();
    let told: Vec<_> =
        revisions.iter().map(|it| (it.revision, it.actor.as_str(), it.task.title.as_str())).collect();
    assert_eq!(told, [(1, "model:m-1", "交报告"), (2, "model:m-1", "交")]);
}

#[test]
fn what_a_user_set_stays_set_while_a_model_adds_details() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    update_status(&mut world.conn, &request(&id, "open", "r1"), NOW, &world.zone).unwrap();
    update_priority(&mut world.conn, &request(&id, "P0", "r2"), NOW, &world.zone).unwrap();
    let segment = world.segment(&["m1"]);
    let change =
        with(update(draft(&["m1"]), &id, 3), json!({"status": "cancelled", "priority": "P4", "notes": "新"}));
    world.commit(&[segment], &[change]).unwrap();
    let record = world.task(&id).record;
    assert_eq!((record.status.as_str(), record.status_by.as_str()), ("open", "user"));
    assert_eq!((record.priority.as_str(), record.priority_by.as_str()), ("P0", "user"));
    assert_eq!(record.notes, "新");
}

#[test]
fn a_task_of_another_conversation_keeps_its_owner_and_all_sources() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let other = world.conversation("mail", "box");
    world.message(other, "n1", "b");
    let segment = world.segment(&["n1"]);
    world.commit(&[segment.clone()], &[update(draft(&["n1"]), &id, 1)]).unwrap();
    let row = world.task(&id);
    assert_eq!(row.record.source_message_keys, ["m1", "n1"]);
    assert_eq!(row.record.owner.conversation.id, "m1");
    assert_eq!(world.cited(&segment), 1);
    assert_eq!(world.related(&[&["n1"], &["m1", "n1"], &[]]), [(id.clone(), vec![0, 1])]);
    for filter in [json!({"platform": "mail"}), json!({"conversation": "box"}), json!({"conversation": "m1"})]
    {
        assert_eq!(world.search(filter).total, 1);
    }
    assert_eq!(world.search(json!({"platform": "wechat"})).total, 0);
}

#[test]
fn two_conversations_of_one_session_may_update_one_task_and_no_one_else_between() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let mut segments = Vec::new();
    for key in ["n1", "o1"] {
        let conversation = world.conversation("qq", key);
        world.message(conversation, key, "b");
        segments.push(world.segment(&[key]));
    }
    let first = world.commit(&segments[..1], &[update(draft(&["n1"]), &id, 1)]).unwrap();
    let mut second = world.submission(&segments[1..], &[update(draft(&["o1"]), &id, 1)]);
    assert!(matches!(commit_group(&mut world.conn, &second), Err(Error::TaskConflict(_))));
    second.session = first.tasks.iter().map(|task| (task.task_id.clone(), task.revision)).collect();
    update_status(&mut world.conn, &request(&id, "completed", "r1"), NOW, &world.zone).unwrap();
    assert!(matches!(commit_group(&mut world.conn, &second), Err(Error::TaskConflict(_))));
    second.session.insert(id.clone(), 3);
    commit_group(&mut world.conn, &second).unwrap();
    assert_eq!(world.task(&id).record.source_message_keys, ["m1", "n1", "o1"]);
}

/// Three groups of one session, each of a conversation with one message; the second has this draft.
fn session(world: &mut World, second: Value) -> (String, Vec<GroupCommit>) {
    let id = world.with_a_task("m1", "a");
    let drafts = [update(draft(&["n1"]), &id, 1), second, update(draft(&["n3"]), &id, 1)];
    let mut commits = Vec::new();
    for (key, draft) in ["n1", "n2", "n3"].into_iter().zip(drafts) {
        let conversation = world.conversation("qq", key);
        world.message(conversation, key, key);
        let segment = world.segment(&[key]);
        let mut commit = world.submission(&[segment], &[draft]);
        commit.group.id = format!("g_{key}");
        commits.push(commit);
    }
    (id, commits)
}

fn groups_committed(world: &World) -> Vec<String> {
    let mut query = world.conn.prepare("SELECT group_id FROM commits ORDER BY \"commit\"").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

#[test]
fn a_group_that_is_refused_takes_no_other_of_its_session_with_it() {
    // Its draft cites a message of another group, or its own message was edited meanwhile.
    for (cited, edited) in [("n1", false), ("n2", true)] {
        let prepared = || {
            let mut world = World::new();
            let (id, commits) = session(&mut world, draft(&[cited]));
            if edited {
                world.edit("n2", "edited");
            }
            (world, id, commits)
        };
        let (mut alone, _, mut commits) = prepared();
        let first = commit_group(&mut alone.conn, &commits[0]).unwrap();
        let third = &mut commits[2];
        third.session = first.tasks.into_iter().map(|task| (task.task_id, task.revision)).collect();
        commit_group(&mut alone.conn, third).unwrap();

        let (mut world, id, mut commits) = prepared();
        let ended = commit_groups(&mut world.conn, &mut commits).unwrap();
        let refused = matches!(ended[1], Err(Error::Evidence(_) | Error::TaskConflict(_)));
        assert!(ended[0].is_ok() && refused && ended[2].is_ok(), "{ended:?}");
        assert_eq!(groups_committed(&world), ["g_1", "g_n1", "g_n3"]);
        assert_eq!(world.task(&id).record.source_message_keys, ["m1", "n1", "n3"]);
        assert_eq!(world.dump(), alone.dump(), "as if each had been committed by itself");
    }
}

#[test]
fn a_group_that_breaks_the_transaction_costs_no_other_its_answer() {
    for (broken, committed) in [("g_n1", vec!["g_1"]), ("g_n3", vec!["g_1", "g_n1", "g_n2"])] {
        let mut world = World::new();
        let (_, mut commits) = session(&mut world, draft(&["n2"]));
        let breaks = format!(
            "CREATE TRIGGER breaks BEFORE INSERT ON commits WHEN new.group_id = '{broken}'
             BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END"
        );
        world.conn.execute(&breaks, []).unwrap();
        let error = commit_groups(&mut world.conn, &mut commits).unwrap_err();
        assert!(error.to_string().contains("disk is full"), "{error}");
        assert_eq!(groups_committed(&world), committed);
    }
}

#[test]
fn a_refused_submission_writes_nothing_at_all() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    let foreign = world.conversation("qq", "2");
    world.message(foreign, "x1", "x");
    let conversation = world.conversation("qq", "3");
    world.message(conversation, "n2", "old");
    world.message(conversation, "n1", "hello");
    let subject_from = "INSERT INTO meta SELECT 'start_at', sent_at FROM messages WHERE key = 'n1'";
    world.conn.execute(subject_from, []).unwrap();
    let segment = world.segment(&["n1", "n2"]);
    let good = || draft(&["n1"]);
    let unread = json!([{"message_key": "n1", "attachment_id": "a1", "unit": "b1"}]);
    let quote = |text: &str| json!([{"message_key": "n1", "text": text, "check": "exact"}]);
    let faults = [
        (with(good(), json!({"title": " "})), "title"),
        (with(good(), json!({"title": "长".repeat(201)})), "title"),
        (with(good(), json!({"priority": "P5"})), "priority"),
        (with(good(), json!({"status": "completed"})), "status"),
        (with(good(), json!({"status": "superseded"})), "status"),
        (with(good(), json!({"sources": []})), "source"),
        (draft(&["x1"]), "x1"),
        (draft(&["n1", "m1"]), "m1"),
        (draft(&["nowhere"]), "nowhere"),
        (draft(&["n2"]), "subject"),
        (with(good(), json!({"evidence": unread})), "not read"),
        (with(good(), json!({"quotes": quote("bye")})), "bye"),
        (with(good(), json!({"quotes": quote(" ")})), "quote"),
        (with(good(), json!({"time": {"due": "2026-07-03"  , "start": "2026-07-04"}})), "later"),
        (with(good(), json!({"time": {"due": "2026-07-03T17:00"}})), "due"),
        (update(good(), "t_none", 1), "t_none"),
    ];
    let before = world.dump();
    for (fault, named) in faults {
        let error = world.commit(&[segment.clone()], &[good(), fault.clone()]).unwrap_err();
        assert!(matches!(error, Error::Evidence(_)), "{fault}: {error:?}");
        assert!(error.to_string().contains(named), "{error} does not name {named}");
    }
    for seen in [json!(null), json!(0), json!(2)] {
        let stale = with(update(good(), &id, 1), json!({"seen_revision": seen}));
        assert!(matches!(world.commit(&[segment.clone()], &[good(), stale]), Err(Error::TaskConflict(_))));
    }
    let twice = [update(good(), &id, 1), update(good(), &id, 1)];
    assert!(matches!(world.commit(&[segment.clone()], &twice), Err(Error::Evidence(_))));
    assert_eq!(world.dump(), before);
    world.commit(&[segment], &[draft(&["n1", "n2"])]).unwrap();
    assert_ne!(world.dump(), before, "the dump is blind");
}

#[test]
fn a_message_that_changed_during_the_session_is_a_conflict_and_writes_nothing() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    let elsewhere = world.conversation("qq", "2");
    world.message(conversation, "m1", "a");
    world.message(conversation, "m2", "b");
    let segment = world.segment(&["m1"]);
    let shown = world.submission(&[segment], &[draft(&["m1"])]);
    let conflict = |world: &mut World| {
        let before = world.dump();
        let refused = commit_group(&mut world.conn, &shown);
        assert!(matches!(refused, Err(Error::TaskConflict(_))), "{refused:?}");
        assert_eq!(world.dump(), before);
    };
    world.edit("m1", "b");
    conflict(&mut world);
    world.edit("m1", "a");
    world.conn.execute("UPDATE messages SET conversation = ?1 WHERE key = 'm1'", [elsewhere]).unwrap();
    conflict(&mut world);
    world.conn.execute("UPDATE messages SET conversation = ?1 WHERE key = 'm1'", [conversation]).unwrap();
    let sent_later = "UPDATE messages SET kind = 1 - kind WHERE key = 'm1'";
    world.conn.execute(sent_later, []).unwrap();
    conflict(&mut world);
    world.conn.execute(sent_later, []).unwrap();
    world.edit("m2", "changed beside it");
    commit_group(&mut world.conn, &shown).unwrap();
}

#[test]
fn a_recalled_source_has_neither_text_nor_attachments_nor_a_count() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    world.conn.execute("UPDATE messages SET state = 2", []).unwrap();
    let segment = world.segment(&["m1"]);
    world.commit(&[segment.clone()], &[update(draft(&["m1"]), &id, 1)]).unwrap();
    let source = &world.task(&id).record.sources[0];
    assert_eq!((source.text.as_str(), source.attachments.len()), ("", 0));
    assert_eq!(world.cited(&segment), 0);
}

#[test]
fn what_later_deliveries_made_known_goes_over_the_newest_line() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "a");
    let merged = json!({"rules": ["one", "two"], "files": [{"size": 7, "sha256": "ff"}]}).to_string();
    world.conn.execute("UPDATE messages SET merged = ?1", [merged]).unwrap();
    let segment = world.segment(&["m1"]);
    let Committed { tasks, .. } = world.commit(&[segment], &[draft(&["m1"])]).unwrap();
    let source = &world.task(&tasks[0].task_id).record.sources[0];
    assert_eq!(source.selection, Some(json!({"rules": ["one", "two"], "window": [1, 2]})));
    assert_eq!((source.attachments[0].size, source.attachments[0].sha256.as_deref()), (Some(7), Some("ff")));
}

#[test]
fn only_live_messages_since_the_start_count_as_cited() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    for key in ["m1", "m2", "m3", "m4"] {
        world.message(conversation, key, "a");
    }
    world.conn.execute("UPDATE messages SET kind = 1 WHERE key = 'm1'", []).unwrap();
    let second = world.number("SELECT sent_at FROM messages WHERE key = ?1", "m2");
    world.conn.execute("INSERT INTO meta(key, value) VALUES ('start_at', ?1)", [second + 1]).unwrap();
    let segment = world.segment(&["m1", "m2", "m3", "m4"]);
    world.commit(&[segment.clone()], &[draft(&["m2", "m3"]), draft(&["m3"])]).unwrap();
    assert_eq!(world.cited(&segment), 1);
}

#[test]
fn a_commit_forgives_the_failures_of_what_it_finished() {
    let mut world = World::new();
    let conversation = world.conversation("qq", "999000");
    world.message(conversation, "m1", "周五前交");
    let segment = world.segment(&["m1"]);
    let (failed, settings_fp) = ([(segment.segment, segment.content_fp)], world.settings_fp);
    let transaction = world.conn.transaction().unwrap();
    ledger::fail(&transaction, &failed, &settings_fp, NOW, "the model is away", true).unwrap();
    transaction.commit().unwrap();
    let failures = |world: &World| world.number("SELECT count(*) FROM failures WHERE reason <> ?1", "");
    assert_eq!(failures(&world), 1);
    world.commit(&[segment], &[]).unwrap();
    assert_eq!(failures(&world), 0);
}
