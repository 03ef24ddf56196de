//! What a run of a connection delivers → store: a page with the cursor that passes it, or batch files.
//!
//! A page is one transaction, read and written under one lock: nothing it rests on can change meanwhile,
//! and a crash leaves either both, its events and its cursor, or neither.

use std::sync::Arc;

use rusqlite::Transaction;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::failpoint;
use crate::revision::{Counts, Intake, Spot};
use crate::store::Store;
use crate::store::connections::{self, Run};
use crate::store::intake::{self, Ingested, Input, Watch};
use crate::store::messages::{Stored, write_slice};

/// One step through a source.
#[derive(Debug)]
pub struct Page<'a> {
    /// Lines of `chatproc.event/1`, or what could not be made one.
    pub lines: &'a [Vec<u8>],
    /// The place behind this page.
    pub cursor: &'a Map<String, Value>,
    /// Whether the source has more for now.
    pub more: bool,
    /// The day whose budget it counts for, `2026-07-01`.
    pub day: &'a str,
    /// Bytes that a line may have.
    pub max_line_bytes: u64,
}

/// What a page was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Lines.
    pub read: u64,
    /// Deliveries accepted.
    pub written: u64,
    /// Deliveries, or refused lines, that came again.
    pub repeats: u64,
    /// Lines refused for the first time.
    pub quarantined: u64,
    /// Conversations that deliveries were accepted for.
    pub conversations: usize,
    /// Lines that the connection took in on that day.
    pub items_used: i64,
}

/// Takes a page in. [`crate::error::Error::LeaseLost`]: another run is at work; nothing is written.
pub fn page(store: &mut Store, run: &Run<'_>, page: &Page<'_>) -> Result<Taken> {
    failpoint::hit("page.before");
    let taken = store.write(|transaction| {
        connections::check_lease(transaction, run)?;
        connections::turn_to_day(transaction, run.name, page.day)?;
        let mut intake = take_in(transaction, run, page)?;
        let conversations = intake.names.len();
        write_slice(transaction, &mut intake, None, None)?;
        let Counts { lines, accepted, repeats, quarantined } = intake.counts;
        connections::count(transaction, run, &intake.counts)?;
        let items_used = connections::advance(transaction, run, page.cursor, page.more, lines)?;
        failpoint::hit("page.commit");
        Ok(Taken { read: lines, written: accepted, repeats, quarantined, conversations, items_used })
    })?;
    failpoint::hit("page.committed");
    Ok(taken)
}

fn take_in(transaction: &Transaction<'_>, run: &Run<'_>, page: &Page<'_>) -> Result<Intake> {
    let mut intake = Intake::default();
    let source: Arc<str> = run.name.to_string().into();
    let known = Stored::over(transaction)?;
    for (line, raw) in (connections::lines_read(transaction, run)? + 1..).zip(page.lines) {
        let spot = Spot::in_page(source.clone(), line);
        intake.line_within(&known, raw, spot, page.max_line_bytes)?;
    }
    Ok(intake)
}

/// Reads all that is new in batch files, for a run; each slice is written only while its lease is held.
pub fn ingest(store: &mut Store, run: &Run<'_>, input: &Input, watch: Watch<'_>) -> Result<Ingested> {
    let mut beside = |transaction: &Transaction<'_>, counts: &Counts| {
        connections::check_lease(transaction, run)?;
        connections::count(transaction, run, counts)
    };
    intake::ingest_beside(store, input, &mut beside, watch)
}
