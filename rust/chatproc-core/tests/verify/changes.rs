//! Every changed byte that matters is found: of each column of each table, of the state file, of the exports.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use chatproc_core::plan::Options;
use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use crate::chat::{Answer, Chat, verdict};
use crate::common::world::{Delivery, File, Link, chain, delivery};

/// What by design cannot be seen, as docs/verify.md lists it: where and when something was read, counts that
/// only delay work, what a refused line was, and what the store tells once and rests nothing on.
const UNSEEN: [(&str, &[&str]); 12] = [
    ("files", &["*"]),
    ("events", &["file", "line"]),
    ("quarantine", &["*"]),
    ("failures", &["*"]),
    ("rounds", &["*"]),
    ("sync_runs", &["*"]),
    ("connections", &["*"]),
    ("conversations", &["named_at", "named_by", "conversation", "dirty"]),
    ("changed", &["*"]),
    ("segments", &["segment"]),
    ("exports", &["done"]),
    ("meta", &["*"]),
];

/// Of the deliveries of a message the store keeps the newest one's line alone: no other hash can be made again.
const NEWEST: &str = "WHERE EXISTS(SELECT 1 FROM messages m WHERE m.message = events.message
                        AND m.revision = events.revision AND (m.merged IS NULL))";

/// A store in which everything occurs, closed, and its exported files.
fn everything() -> Chat {
    let mut chat = Chat::new(Options { max_conversation_chars: 900, ..Options::default() });
    let mut room = chain(&["m1", "m2", "m3", "m4"]);
    room[0].files = vec![File { size: None, ..File::of(0) }];
    room[1].kind = "system";
    for message in &mut room {
        message.conversation_name = Some("实验室".to_owned());
        message.sender_name = Some("王老师".to_owned());
        message.rules = vec!["one".to_owned()];
    }
    let other = |key: &str, second| Delivery {
        conversation: "other".to_owned(),
        sequence: Some(Link { index: None, predecessor: Some("never seen".to_owned()) }),
        ..delivery(key, second)
    };
    chat.deliver(&room);
    chat.deliver(&[other("o1", 1), other("o2", 2), delivery("alone", 9_000)]);
    chat.round(&[Answer::Task]);
    chat.user(1);
    chat.user(5);
    chat.export();
    // Collected again: another rule, a size that became known, no position; edits; a recall.
    let mut again =
        Delivery { event_id: "again".to_owned(), sequence: None, collected_at: 7_000, ..room[0].clone() };
    again.files[0].size = Some(12);
    again.rules = vec!["two".to_owned()];
    let edited = Delivery {
        event_id: "edit".to_owned(),
        revision: 1,
        state: "edited",
        text: "edited text of m4".to_owned(),
        ..room[3].clone()
    };
    let recalled = Delivery {
        event_id: "recall".to_owned(),
        revision: 1,
        state: "recalled",
        ..delivery("alone", 9_000)
    };
    chat.deliver(&[again, edited, recalled]);
    chat.round(&[Answer::Update, Answer::Nothing]);
    chat.page(&[Delivery { conversation: "third".to_owned(), ..delivery("late", 10_000) }]);
    chat.round(&[Answer::Failure]);
    let found = chat.verdict();
    assert!(found.ok, "{:#?}", found.breaks);
    chat
}

/// A connection that changes what no trigger and no check may mend.
fn writer(state: &Path) -> Connection {
    let conn = Connection::open(state).unwrap();
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    conn.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    conn
}

/// The value with a byte changed, in several ways.
fn changed(value: ValueRef<'_>) -> Vec<Value> {
    let places = |length: usize| -> BTreeSet<usize> {
        if length == 0 { BTreeSet::new() } else { [0, length / 2, length - 1].into() }
    };
    match value {
        ValueRef::Null | ValueRef::Real(_) => Vec::new(),
        ValueRef::Integer(number) => vec![Value::Integer(number ^ 1), Value::Integer(number ^ 0x80)],
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).unwrap();
            let letters: Vec<char> = text.chars().collect();
            let other = |&at: &usize| {
                let mut letters = letters.clone();
                letters[at] = if letters[at] == 'x' { 'y' } else { 'x' };
                Value::Text(letters.into_iter().collect())
            };
            places(letters.len()).iter().map(other).collect()
        }
        ValueRef::Blob(bytes) => {
            let other = |&at: &usize| {
                let mut bytes = bytes.to_vec();
                bytes[at] ^= 1;
                Value::Blob(bytes)
            };
            places(bytes.len()).iter().map(other).collect()
        }
    }
}

fn names(conn: &Connection, sql: &str) -> Vec<String> {
    let mut query = conn.prepare(sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

fn tables(conn: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'task_search%'
                 AND name NOT LIKE 'sqlite_%' ORDER BY name";
    names(conn, sql)
}

fn is_unseen(table: &str, column: &str) -> bool {
    UNSEEN.iter().any(|(name, columns)| *name == table && (columns == &["*"] || columns.contains(&column)))
}

/// Changes each column of some rows of a table, one value at a time; what is not found.
fn unfound_in(chat: &Chat, table: &str) -> Vec<String> {
    let state = chat.project.state();
    let conn = writer(&state);
    let columns = names(&conn, &format!("SELECT name FROM pragma_table_info('{table}')"));
    let keys =
        names(&conn, &format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk"));
    let rows: Vec<Vec<Value>> = {
        let which = if table == "events" { NEWEST } else { "" };
        let mut query = conn.prepare(&format!("SELECT * FROM \"{table}\" {which}")).unwrap();
        let all = query.query_map([], |row| (0..columns.len()).map(|at| row.get(at)).collect()).unwrap();
        all.collect::<rusqlite::Result<_>>().unwrap()
    };
    assert!(!rows.is_empty(), "nothing occurs in {table}");
    let place = |column: &String| columns.iter().position(|name| name == column).unwrap();
    let mut unfound = Vec::new();
    // The first, the last and one between; rows with more than their line tells stand anywhere.
    let chosen: BTreeSet<usize> = [0, rows.len() / 2, rows.len() - 1].into();
    for row in chosen.into_iter().map(|at| &rows[at]) {
        let key: Vec<Value> = keys.iter().map(|key| row[place(key)].clone()).collect();
        let condition: Vec<String> =
            (2..).zip(&keys).map(|(number, key)| format!("\"{key}\" = ?{number}")).collect();
        for (at, column) in columns.iter().enumerate().filter(|(_, column)| !is_unseen(table, column)) {
            for value in changed((&row[at]).into()) {
                let sql =
                    format!("UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE {}", condition.join(" AND "));
                let arguments = |value: &Value, key: &[Value]| [std::slice::from_ref(value), key].concat();
                match conn.execute(&sql, params_from_iter(arguments(&value, &key))) {
                    Ok(1) => {}
                    _ => continue, // another row has that value: no byte changes like that
                }
                if verdict(&state, &chat.output()).is_ok_and(|verdict| verdict.ok) {
                    unfound.push(format!("{table}.{column} of {key:?}: {:?} became {value:?}", row[at]));
                }
                let mut there = key.clone();
                if let Some(part) = keys.iter().position(|name| name == column) {
                    there[part] = value;
                }
                conn.execute(&sql, params_from_iter(arguments(&row[at], &there))).unwrap();
            }
        }
    }
    assert!(chat.verdict().ok, "{table} was put back");
    unfound
}

fn nothing_is_unfound_in(tables: &[&str]) {
    let chat = everything();
    let unfound: Vec<String> = tables.iter().flat_map(|table| unfound_in(&chat, table)).collect();
    assert!(unfound.is_empty(), "{unfound:#?}");
}

const MESSAGES: [&str; 7] =
    ["messages", "lines", "revisions", "conversations", "segments", "members", "coverage"];
const COMMITS: [&str; 5] = ["commits", "ledger", "receipts", "submissions", "events"];
const TASKS: [&str; 7] =
    ["tasks", "task_counts", "task_sources", "task_conversations", "outbox", "exports", "requests"];

#[test]
fn a_changed_message_is_found_and_a_changed_segment() {
    nothing_is_unfound_in(&MESSAGES);
}

#[test]
fn a_changed_commit_is_found_with_its_receipts() {
    nothing_is_unfound_in(&COMMITS);
}

#[test]
fn a_changed_task_is_found_and_a_changed_event() {
    nothing_is_unfound_in(&TASKS);
}

#[test]
fn every_table_is_looked_at_or_named_as_one_that_is_not() {
    let chat = everything();
    let tables = tables(&writer(&chat.project.state()));
    let looked_at = [&MESSAGES[..], &COMMITS, &TASKS].concat();
    for table in &tables {
        let whole = UNSEEN.iter().any(|(name, columns)| name == table && columns == &["*"]);
        assert!(whole != looked_at.contains(&table.as_str()), "{table}");
    }
}

/// Everything that matters in a state file, or that it cannot be read.
fn dump(state: &Path) -> rusqlite::Result<String> {
    let conn = Connection::open(state)?;
    let mut dump = String::new();
    for table in [&MESSAGES[..], &COMMITS, &TASKS].concat() {
        let which = if table == "events" { NEWEST } else { "" };
        let mut query =
            conn.prepare(&format!("SELECT * FROM \"{table}\" NOT INDEXED {which} ORDER BY 1, 2"))?;
        let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            for (at, column) in columns.iter().enumerate().filter(|(_, column)| !is_unseen(table, column)) {
                // A proof that is gone proves nothing of a row that is as it was.
                if column != "proof" {
                    let _ = write!(dump, "{:?}|", row.get_ref(at)?);
                }
            }
            dump.push('\n');
        }
    }
    Ok(dump)
}

/// A number that looks drawn by chance and is the same in every run.
fn drawn(turn: u64) -> usize {
    let mixed = (turn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33).unwrap()
}

#[test]
fn a_changed_byte_of_the_state_file_is_found_or_changes_nothing_that_matters() {
    let chat = everything();
    writer(&chat.project.state()).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let bytes = fs_err::read(chat.project.state()).unwrap();
    let sound = dump(&chat.project.state()).unwrap();
    let state = chat.project.path("changed.db");
    // Pages are half empty; what was never written tells nothing.
    let written: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
    let (mut found, mut harmless) = (0, 0);
    for turn in 0..160 {
        let mut changed = bytes.clone();
        let at = written[drawn(turn) % written.len()];
        changed[at] ^= 1 << (drawn(turn + 1_000) % 8);
        for suffix in ["-wal", "-shm"] {
            let _ = fs_err::remove_file(PathBuf::from(format!("{}{suffix}", state.display())));
        }
        fs_err::write(&state, &changed).unwrap();
        if verdict(&state, &chat.output()).is_ok_and(|verdict| verdict.ok) {
            harmless += 1;
            assert_eq!(dump(&state).as_deref(), Ok(sound.as_str()), "byte {at}");
        } else {
            found += 1;
        }
    }
    assert!(found > 50 && harmless > 0, "{found} found, {harmless} harmless");
}

#[test]
fn a_text_index_that_lacks_a_task_or_holds_another_text_is_found() {
    let chat = everything();
    let state = chat.project.state();
    let conn = writer(&state);
    for (change, back) in [
        ("DELETE FROM task_search WHERE rowid = 1", None),
        ("INSERT INTO task_search(rowid, texts, people) VALUES(900, '002p002q', '')", Some(900)),
    ] {
        conn.execute(change, []).unwrap();
        let found = chat.verdict();
        assert_eq!(found.breaks.iter().map(|found| found.kind).collect::<Vec<_>>(), ["search"], "{change}");
        if let Some(row) = back {
            conn.execute("DELETE FROM task_search WHERE rowid = ?1", [row]).unwrap();
        }
    }
}

#[test]
fn rows_that_were_written_before_there_were_proofs_are_sound() {
    let chat = everything();
    let conn = writer(&chat.project.state());
    for table in ["messages", "revisions", "commits", "outbox", "requests"] {
        assert!(conn.execute(&format!("UPDATE {table} SET proof = NULL"), []).unwrap() > 0);
    }
    let found = chat.verdict();
    assert!(found.ok, "{:#?}", found.breaks);
}

#[test]
fn a_changed_byte_of_an_exported_file_is_found_and_a_file_too_many_or_too_few() {
    let chat = everything();
    let names = fs_err::read_dir(chat.output()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = names.collect();
    assert!(!files.is_empty());
    for file in &files {
        let bytes = fs_err::read(file).unwrap();
        let with = |changed: &[u8]| {
            fs_err::write(file, changed).unwrap();
            let verdict = chat.verdict();
            verdict.breaks.iter().any(|found| found.kind == "export")
        };
        for at in (0..bytes.len()).step_by(bytes.len() / 20) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(with(&changed), "byte {at}");
        }
        assert!(with(&bytes[..bytes.len() - 1]) && with(&[&bytes[..], b"\n"].concat()) && with(b""));
        fs_err::remove_file(file).unwrap();
        assert!(!chat.verdict().ok, "it is gone");
        assert!(!with(&bytes), "it is as it was");
    }
    let stranger = chat.output().join("todos-000000000900-000000000901.jsonl");
    fs_err::write(&stranger, b"{}\n").unwrap();
    assert_eq!(chat.verdict().breaks[0].kind, "export");
    fs_err::rename(&stranger, chat.output().join("todos-1.jsonl.tmp")).unwrap();
    assert!(chat.verdict().ok, "what a crash left is no export");
}
