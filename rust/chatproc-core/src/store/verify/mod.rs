//! Whether the store and the exported files still say what was written: everything that is told twice is
//! compared, everything that can be computed again is.
//!
//! Reads only, and works beside a round. Must find nothing on a sound store at any moment, and name every
//! break by where it is. What by design it cannot see is listed in docs/verify.md.

mod commits;
mod coverage;
mod exports;
mod index;
mod messages;
mod outbox;
mod tasks;

use std::fmt::Display;
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use super::Store;
use crate::error::{Error, Result};

/// The most breaks that are told one by one.
const MAX_BREAKS: usize = 1000;
/// Rows between two calls of whoever watches.
const STEP: u64 = 4096;

/// Told how many rows were looked at, of how many; an error ends the work.
pub type Watch<'w> = &'w mut dyn FnMut(u64, u64) -> Result<()>;

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// What sort of thing it is: `database message revision delivery conversation segment coverage ledger
    /// commit receipt task event request export search connection`.
    pub kind: &'static str,
    /// Which one.
    pub r#where: String,
    /// What was found, and what should be.
    pub explanation: String,
}

/// How many of each were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Checked {
    pub messages: u64,
    pub revisions: u64,
    pub deliveries: u64,
    pub conversations: u64,
    pub segments: u64,
    pub commits: u64,
    pub receipts: u64,
    pub tasks: u64,
    pub quotes: u64,
    pub events: u64,
    pub requests: u64,
    pub files: u64,
}

/// What was looked at and what was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Whether nothing was found.
    pub ok: bool,
    /// What was looked at.
    pub checked: Checked,
    /// How many breaks there are.
    pub found: u64,
    /// The first thousand of them.
    pub breaks: Vec<Break>,
}

/// Looks at everything. Without a store there is nothing to look at, and nothing is broken.
pub fn verify(state: &Path, output: &Path, watch: Watch<'_>) -> Result<Verdict> {
    let Some(store) = Store::read(state)? else { return Ok(Verdict { ok: true, ..Verdict::default() }) };
    let beside = Connected::open(state)?;
    let interrupt = beside.0.conn().get_interrupt_handle();
    let mut findings = Findings::new(store.conn(), watch)?;
    let (looked, aside) = std::thread::scope(|scope| {
        // Two parts that stand by themselves, on a core of their own: nearly half of the work.
        let aside = scope.spawn(move || (pages(&beside), index::index(beside.0.conn())));
        let looked = contents(store.conn(), state, output, &mut findings);
        if looked.is_err() {
            interrupt.interrupt();
        }
        (looked, aside.join())
    });
    looked?;
    let broke_off = || (vec!["SQLite's own check broke off".to_owned()], Ok(None));
    let (pages, index) = aside.unwrap_or_else(|_| broke_off());
    for explanation in pages {
        findings.broken("database", state.display(), explanation);
    }
    findings.row("search", "the text index", index.map(|found| found.into_iter().collect()))?;
    Ok(findings.verdict())
}

/// A connection on its way to another thread.
struct Connected(Store);

impl Connected {
    fn open(state: &Path) -> Result<Self> {
        Ok(Self(Store::read(state)?.map_or_else(Store::empty, Ok)?))
    }
}

/// What SQLite finds wrong in its file, and rows that name others that are not there.
fn pages(store: &Connected) -> Vec<String> {
    let conn = store.0.conn();
    let look = || -> Result<Vec<String>> {
        let mut query = conn.prepare("PRAGMA integrity_check")?;
        let said =
            query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut query = conn.prepare("PRAGMA foreign_key_check")?;
        let orphans = query.query_map([], |row| {
            let (table, row, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let place = row.map_or(String::new(), |row| format!("row {row} of "));
            Ok(format!("{place}table {table} names a row of {parent} that is not there"))
        })?;
        let said = said.into_iter().filter(|line| line != "ok").map(Ok);
        Ok(said.chain(orphans).collect::<rusqlite::Result<_>>()?)
    };
    look().unwrap_or_else(|error| vec![error.to_string()])
}

/// Looks at what the rows say, one part after the other; a part that cannot be read is a break itself.
fn contents(conn: &Connection, state: &Path, output: &Path, findings: &mut Findings<'_>) -> Result<()> {
    findings.part("messages", |findings| messages::messages(conn, findings))?;
    findings.part("conversations", |findings| messages::conversations(conn, findings))?;
    findings.part("revisions", |findings| messages::revisions(conn, findings))?;
    findings.part("deliveries", |findings| messages::deliveries(conn, findings))?;
    findings.part("segments", |findings| coverage::segments(conn, findings))?;
    findings.part("coverage", |findings| coverage::sums(conn, findings))?;
    findings.part("commits", |findings| commits::commits(conn, findings))?;
    findings.part("connections", |findings| commits::connections(conn, findings))?;
    findings.part("outbox", |findings| outbox::outbox(conn, findings))?;
    findings.part("requests", |findings| outbox::requests(conn, findings))?;
    findings.part("exports", |findings| exports::exports(conn, state, output, findings))
}

/// What was found so far.
struct Findings<'w> {
    checked: Checked,
    breaks: Vec<Break>,
    found: u64,
    watch: Watch<'w>,
    done: u64,
    total: u64,
}

impl<'w> Findings<'w> {
    fn new(conn: &Connection, watch: Watch<'w>) -> Result<Self> {
        let rows = "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM outbox)";
        let total = conn.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap_or_default().unsigned_abs();
        watch(0, total)?;
        Ok(Self { checked: Checked::default(), breaks: Vec::new(), found: 0, watch, done: 0, total })
    }

    fn broken(&mut self, kind: &'static str, place: impl Display, explanation: impl Into<String>) {
        self.found += 1;
        if self.breaks.len() < MAX_BREAKS {
            self.breaks.push(Break { kind, r#where: place.to_string(), explanation: explanation.into() });
        }
    }

    /// Counts a row of those that take long.
    fn step(&mut self) -> Result<()> {
        self.done += 1;
        if self.done.is_multiple_of(STEP) {
            (self.watch)(self.done.min(self.total), self.total)?;
        }
        Ok(())
    }

    /// What one row has to say; one that cannot be read is a break and keeps none from the others.
    fn row(&mut self, kind: &'static str, place: impl Display, found: Result<Vec<String>>) -> Result<()> {
        match found {
            Ok(explanations) => {
                for explanation in explanations {
                    self.broken(kind, &place, explanation);
                }
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => self.broken(kind, place, error.to_string()),
        }
        Ok(())
    }

    fn part(&mut self, name: &'static str, look: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let looked = look(self);
        match looked {
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => {
                self.broken("database", name, format!("cannot be read: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn verdict(self) -> Verdict {
        Verdict { ok: self.found == 0, checked: self.checked, found: self.found, breaks: self.breaks }
    }
}

/// The names whose values differ, as one explanation.
fn differing(what: &str, compared: &[(&str, bool)]) -> Vec<String> {
    let names: Vec<&str> = compared.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    if names.is_empty() { Vec::new() } else { vec![format!("{} {what}", names.join(", "))] }
}
