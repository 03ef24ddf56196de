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
use std::num::NonZero;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, InterruptHandle};
use serde::Serialize;

use super::Store;
use crate::error::{Error, Result};

/// The most breaks that are told one by one.
const MAX_BREAKS: usize = 1000;
/// Rows after which a part says how far it is.
const STEP: u64 = 4096;
/// Between two calls of whoever watches.
const PAUSE: Duration = Duration::from_millis(50);

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

impl AddAssign for Checked {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.revisions += other.revisions;
        self.deliveries += other.deliveries;
        self.conversations += other.conversations;
        self.segments += other.segments;
        self.commits += other.commits;
        self.receipts += other.receipts;
        self.tasks += other.tasks;
        self.quotes += other.quotes;
        self.events += other.events;
        self.requests += other.requests;
        self.files += other.files;
    }
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

/// A part of the work: what it looks at, and how.
type Part = (&'static str, fn(&Connection, &Place<'_>, &mut Findings<'_>) -> Result<()>);

/// Parts that stand by themselves, those that take long first.
const PARTS: &[Part] = &[
    ("outbox", |conn, _, findings| outbox::outbox(conn, findings)),
    ("the file", pages),
    ("the text index", index::index),
    ("messages", |conn, _, findings| messages::messages(conn, findings)),
    ("conversations", |conn, _, findings| messages::conversations(conn, findings)),
    ("revisions", |conn, _, findings| messages::revisions(conn, findings)),
    ("deliveries", |conn, _, findings| messages::deliveries(conn, findings)),
    ("segments", |conn, _, findings| coverage::segments(conn, findings)),
    ("coverage", |conn, _, findings| coverage::sums(conn, findings)),
    ("commits", |conn, _, findings| commits::commits(conn, findings)),
    ("connections", |conn, _, findings| commits::connections(conn, findings)),
    ("counts of tasks", |conn, _, findings| tasks::counts(conn, findings)),
    ("requests", |conn, _, findings| outbox::requests(conn, findings)),
    ("exports", exports::exports),
];

/// Where the store and its exported files are.
struct Place<'p> {
    state: &'p Path,
    output: &'p Path,
}

/// Looks at everything. Without a store there is nothing to look at, and nothing is broken.
///
/// Each core takes one part after the other, over a connection of its own; this thread tells how far they are.
pub fn verify(state: &Path, output: &Path, watch: Watch<'_>) -> Result<Verdict> {
    let place = Place { state, output };
    let readers = readers(state)?;
    let Some(first) = readers.first() else { return Ok(Verdict { ok: true, ..Verdict::default() }) };
    let total = rows_of(first.conn());
    watch(0, total)?;
    let interrupts: Vec<InterruptHandle> =
        readers.iter().map(|reader| reader.conn().get_interrupt_handle()).collect();
    let work = Work::default();
    let findings: Result<Vec<_>> = std::thread::scope(|scope| {
        let (at_work, ended) = mpsc::channel();
        let looking: Vec<_> = readers
            .into_iter()
            .map(|reader| {
                let (at_work, work, place) = (at_work.clone(), &work, &place);
                scope.spawn(move || {
                    let _at_work: mpsc::Sender<()> = at_work;
                    let findings = look(reader.conn(), place, work)?;
                    reader.undisturbed()?;
                    Ok(findings)
                })
            })
            .collect();
        drop(at_work);
        let watched = work.watched(&ended, total, watch);
        if watched.is_err() {
            interrupts.iter().for_each(InterruptHandle::interrupt);
        }
        let looked: Vec<_> = looking.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        watched?;
        looked.into_iter().map(|looked| looked.unwrap_or_else(|_| Ok(Findings::broke_off(&work)))).collect()
    });
    Ok(Verdict::of(findings?))
}

/// As many connections as there are cores to use them; none without a store.
fn readers(state: &Path) -> Result<Vec<Store>> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(PARTS.len());
    let mut readers = Vec::new();
    for _ in 0..cores {
        let Some(reader) = Store::read(state)? else { break };
        reader.expect_much()?;
        readers.push(reader);
    }
    Ok(readers)
}

/// Rows of those that take long.
fn rows_of(conn: &Connection) -> u64 {
    let rows = "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM outbox)";
    conn.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap_or_default().unsigned_abs()
}

/// Which part is next, and how far all are.
#[derive(Default)]
struct Work {
    next: AtomicUsize,
    done: AtomicU64,
    stopped: AtomicBool,
}

impl Work {
    fn take(&self) -> Option<(usize, &'static Part)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        PARTS.get(number).map(|part| (number, part))
    }

    /// Tells how far the work is until all have ended; an error of whoever watches stops it.
    fn watched(&self, ended: &mpsc::Receiver<()>, total: u64, watch: Watch<'_>) -> Result<()> {
        while ended.recv_timeout(PAUSE) == Err(mpsc::RecvTimeoutError::Timeout) {
            if let Err(error) = watch(self.done.load(Ordering::Relaxed).min(total), total) {
                self.stopped.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Takes parts until there is none left; one that cannot be read is a break itself.
fn look<'w>(conn: &Connection, place: &Place<'_>, work: &'w Work) -> Result<Findings<'w>> {
    let mut findings = Findings::new(work);
    while let Some((number, (name, look))) = work.take() {
        findings.part = number;
        match look(conn, place, &mut findings) {
            Err(_) if work.stopped.load(Ordering::Relaxed) => return Err(Error::Interrupted),
            Err(error) => findings.broken("database", name, format!("cannot be read: {error}")),
            Ok(()) => {}
        }
    }
    Ok(findings)
}

/// What SQLite finds wrong in its file, and rows that name others that are not there.
fn pages(conn: &Connection, place: &Place<'_>, findings: &mut Findings<'_>) -> Result<()> {
    let mut query = conn.prepare("PRAGMA integrity_check")?;
    let said = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut query = conn.prepare("PRAGMA foreign_key_check")?;
    let orphans = query.query_map([], |row| {
        let (table, row, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let place = row.map_or(String::new(), |row| format!("row {row} of "));
        Ok(format!("{place}table {table} names a row of {parent} that is not there"))
    })?;
    let orphans = orphans.collect::<rusqlite::Result<Vec<_>>>()?;
    for explanation in said.into_iter().filter(|line| line != "ok").chain(orphans) {
        findings.broken("database", place.state.display(), explanation);
    }
    Ok(())
}

/// What was found so far by one that looks.
struct Findings<'w> {
    checked: Checked,
    /// Each with the number of the part that found it.
    breaks: Vec<(usize, Break)>,
    found: u64,
    part: usize,
    steps: u64,
    work: &'w Work,
}

impl<'w> Findings<'w> {
    fn new(work: &'w Work) -> Self {
        Self { checked: Checked::default(), breaks: Vec::new(), found: 0, part: 0, steps: 0, work }
    }

    /// Where one that looked did not come to its end.
    fn broke_off(work: &'w Work) -> Self {
        let mut findings = Self::new(work);
        findings.broken("database", "the check", "broke off");
        findings
    }

    fn broken(&mut self, kind: &'static str, place: impl Display, explanation: impl Into<String>) {
        self.found += 1;
        if self.breaks.len() < MAX_BREAKS {
            let found = Break { kind, r#where: place.to_string(), explanation: explanation.into() };
            self.breaks.push((self.part, found));
        }
    }

    /// Counts a row of those that take long.
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEP) {
            self.work.done.fetch_add(STEP, Ordering::Relaxed);
            if self.work.stopped.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
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
}

impl Verdict {
    /// What all found together, part by part.
    fn of(findings: Vec<Findings<'_>>) -> Self {
        let mut verdict = Self::default();
        let mut breaks = Vec::new();
        for found in findings {
            verdict.checked += found.checked;
            verdict.found += found.found;
            breaks.extend(found.breaks);
        }
        breaks.sort_by_key(|(part, _)| *part);
        verdict.breaks = breaks.into_iter().map(|(_, found)| found).take(MAX_BREAKS).collect();
        verdict.ok = verdict.found == 0;
        verdict
    }
}

/// The names whose values differ, as one explanation.
fn differing(what: &str, compared: &[(&str, bool)]) -> Vec<String> {
    let names: Vec<&str> = compared.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    if names.is_empty() { Vec::new() } else { vec![format!("{} {what}", names.join(", "))] }
}
