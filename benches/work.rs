//! Three workloads of the core over made-up lines, each run once: what `benches/instructions.py` counts.
//!
//! `work read|plan|ingest LINES`; the lines are the same on every machine.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::hint::black_box;

use chatproc_core::agenda::plan_lines;
use chatproc_core::event::read_event;
use chatproc_core::plan::Options;
use chatproc_core::store::Store;
use chatproc_core::store::intake::{Input, ingest};

/// Conversations that the lines are dealt to, one after the other.
const CONVERSATIONS: usize = 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    // `cargo bench` gives no workload, and then there is nothing to do.
    let Some(work) = arguments.next().filter(|work| !work.starts_with("--")) else { return };
    let lines = arguments.next().expect("a number of lines");
    let text = batch(lines.parse().expect("a number of lines"));
    match work.as_str() {
        "read" => assert!(text.lines().all(|line| read_event(black_box(line.as_bytes())).is_ok())),
        "plan" => drop(plan_lines(text.lines().map(str::as_bytes), &Options::default()).unwrap()),
        "ingest" => take_in(&text),
        other => panic!("no workload is called {other}"),
    }
}

fn take_in(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("a.jsonl"), text).unwrap();
    let state = folder.path().join("state.db");
    let input = Input {
        paths: vec![format!("{}/*.jsonl", folder.path().display())],
        max_line_bytes: 1 << 24,
        max_memory: 1 << 29,
        settle: 0,
        now: 0,
        state: state.clone(),
        output: folder.path().join("todos"),
    };
    let taken = ingest(&mut Store::open(&state, 0).unwrap(), &input, &mut |_, _| Ok(())).unwrap();
    assert_eq!(taken.counts.accepted, taken.counts.lines);
}

/// Lines of chains, with a break now and then, some with a file and a mention.
fn batch(lines: usize) -> String {
    let mut text = String::new();
    for number in 0..lines {
        let (room, at) = (number % CONVERSATIONS, number / CONVERSATIONS);
        let before = if at % 25 == 0 { "null".to_owned() } else { format!("\"qq:1:{room}:{}\"", at - 1) };
        let file = if number % 11 == 0 {
            format!(r#"{{"id":"f{number}","name":"plan {number}.docx","size":{number}}}"#)
        } else {
            String::new()
        };
        let words =
            "Please send the figures for the second quarter before Friday noon. ".repeat(1 + number % 9);
        writeln!(
            text,
            r#"{{"schema":"chatproc.event/1","event_id":"e{number}","message_key":"qq:1:{room}:{at}","revision":0,"platform":"qq","account_id":"1","conversation":{{"id":"{room}","name":"Room {room}","type":"group"}},"message_id":"{number}","sent_at":{},"sender":{{"id":"u{}","name":"Member {}","role":"user"}},"text":"{words}\n{number}","mentions":[{{"id":"1","name":"me"}}],"attachments":[{file}],"sequence":{{"index":{at},"predecessor":{before}}},"selection":{{"rules":["all"]}},"collected_at":1782900000}}"#,
            1_782_871_200 + number * 7,
            number % 13,
            number % 13,
        )
        .unwrap();
    }
    text
}
