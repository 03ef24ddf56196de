//! Connections as tests use them, and everything that a store holds.

use std::fmt::Write as _;
use std::path::Path;

use chatproc_core::connections::Connections;
use chatproc_core::error::Result;
use chatproc_core::store::Store;
use chatproc_core::store::connections::{Claim, Leased, Name, Outcome, Run, State};
use chatproc_core::store::pages::{Page, Taken};
use serde_json::{Value, json};

use super::NOW;

/// How long every lease of these tests is.
pub const LENGTH: i64 = 60_000;
pub const DAY: &str = "2026-07-01";
/// Bytes that a line of a page may have.
pub const MAX_LINE_BYTES: u64 = 4096;

/// A connection, and who works on it.
pub struct Source {
    pub writer: Connections,
    pub name: Name,
    pub holder: String,
}

/// A connection of that id, for a process of its own.
pub fn source(state: &Path, id: &str) -> Source {
    let writer = Connections::open(state, NOW).unwrap();
    Source { writer, name: Name::new("imap", id), holder: format!("process of {id}") }
}

impl Source {
    /// The same connection in another process.
    pub fn beside(&self, state: &Path, holder: &str) -> Self {
        let writer = Connections::open(state, NOW).unwrap();
        Self { writer, name: self.name.clone(), holder: holder.to_owned() }
    }

    pub fn lease_at(&mut self, now: i64) -> Option<Leased> {
        self.lease_knowing(now, None)
    }

    pub fn lease_knowing(&mut self, now: i64, gone: Option<&str>) -> Option<Leased> {
        let claim =
            Claim { holder: &self.holder, trigger: "tick", now, until: now + LENGTH, gone, seen: None };
        self.writer.lease(&self.name, &claim).unwrap()
    }

    /// A run that was begun.
    pub fn begin(&mut self) -> i64 {
        self.lease_at(NOW).unwrap().run
    }

    pub fn page(&mut self, run: i64, lines: &[Vec<u8>], place: i64) -> Result<Taken> {
        let run = Run { name: &self.name, number: run, holder: &self.holder };
        let cursor = json!({"place": place}).as_object().unwrap().clone();
        self.writer.page(
            &run,
            &Page { lines, cursor: &cursor, more: false, day: DAY, max_line_bytes: MAX_LINE_BYTES },
        )
    }

    pub fn renew(&mut self, run: i64, until: i64) -> bool {
        let run = Run { name: &self.name, number: run, holder: &self.holder };
        self.writer.renew(&run, until).unwrap()
    }

    pub fn reserve(&mut self, run: i64, day: &str, most: u64) -> Result<bool> {
        let run = Run { name: &self.name, number: run, holder: &self.holder };
        self.writer.reserve(&run, day, most)
    }

    pub fn record(&mut self, run: i64, changes: Value, now: i64) -> bool {
        let run = Run { name: &self.name, number: run, holder: &self.holder };
        self.writer.record(&run, &outcome(changes), now).unwrap()
    }

    pub fn state(&self) -> State {
        let name = self.name.to_string();
        let mut states = self.writer.states().unwrap().into_iter();
        states.find(|state| format!("{}/{}", state.toolkit, state.id) == name).unwrap()
    }
}

/// A good end, with other values of some keys.
pub fn outcome(mut changes: Value) -> Outcome {
    let mut outcome = json!({"outcome": "done", "next_due_at": null, "failures_in_row": 0, "breaker": "closed",
        "page_limit": null, "stopped_by": null, "error": null, "last_success": true});
    outcome.as_object_mut().unwrap().append(changes.as_object_mut().unwrap());
    serde_json::from_value(outcome).unwrap()
}

/// Every row of every table but those named.
pub fn dump(state: &Path, but: &[&str]) -> String {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'task_search' ORDER BY name";
    let store = Store::read(state).unwrap().unwrap();
    let mut tables = store.conn().prepare(sql).unwrap();
    let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap().map(std::result::Result::unwrap);
    let names = names.filter(|name| !but.contains(&name.as_str()));
    let table = |name: String| {
        let rows = rows(state, &format!("SELECT * FROM \"{name}\""));
        [name, "\n".to_owned(), rows].concat()
    };
    names.map(table).collect()
}

/// What a query gives, a line for each row.
pub fn rows(state: &Path, sql: &str) -> String {
    let store = Store::read(state).unwrap().unwrap();
    let mut query = store.conn().prepare(sql).unwrap();
    let columns = query.column_count();
    let mut rows = query.query([]).unwrap();
    let mut text = String::new();
    while let Some(row) = rows.next().unwrap() {
        let cells: Vec<String> = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
        writeln!(text, "{}", cells.join("|")).unwrap();
    }
    text
}
