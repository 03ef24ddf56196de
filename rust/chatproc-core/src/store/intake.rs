//! Batch files → store: each slice of a file and how far the file was read, in one transaction.
//!
//! The same reading serves a preview, which keeps everything in memory and writes nothing. A refused line
//! is taken in again here too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Transaction, params};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::inbox::{self, Progress, Stat, Unreadable};
use crate::revision::{Counts, Intake, Known, Spot, Verdict};
use crate::store::Store;
use crate::store::messages::{Stored, write_slice};
use crate::store::quarantine;
use crate::store::slices::{End, Placed, Slice, read_ahead};

/// Bytes of one transaction, roughly; of a store in the making, in which one costs next to nothing, fewer.
const SLICE_BYTES: u64 = 16 << 20;
const BULK_SLICE_BYTES: u64 = 4 << 20;
/// Of the memory that reading may take, the part that one slice may have, and what it has at least.
const SLICE_SHARE: u64 = 16;
const LEAST_SLICE_BYTES: u64 = 1 << 20;

/// What to read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Globs of batch files.
    pub paths: Vec<String>,
    /// Bytes of the longest line that is held.
    pub max_line_bytes: u64,
    /// Bytes that reading takes at most, but for lines that are longer than a few of them.
    pub max_memory: u64,
    /// Milliseconds after which a last line without newline is taken as finished.
    pub settle: i64,
    /// Milliseconds since 1970.
    pub now: i64,
    /// The state file: neither it nor what SQLite keeps beside it is a batch, whatever the globs say.
    pub state: PathBuf,
    /// The folder of the exported files, which are no batches either.
    pub output: PathBuf,
}

impl Input {
    /// Whether a path is a file of the program's own. Opening the state file, and closing it, would take
    /// away the locks that this process holds on it.
    fn is_own(&self, path: &Path) -> bool {
        let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return false };
        let state = self.state.file_name().unwrap_or_default().as_encoded_bytes();
        let suffix = name.as_encoded_bytes().strip_prefix(state).filter(|_| !state.is_empty());
        let of_store = suffix.is_some_and(|suffix| {
            STORE_SUFFIXES.contains(&suffix) || MAKING_SUFFIXES.iter().any(|begin| suffix.starts_with(begin))
        });
        let exported = name.as_encoded_bytes().starts_with(b"todos-");
        (of_store && same_folder(Some(folder), self.state.parent()))
            || (exported && same_folder(Some(folder), Some(&self.output)))
    }
}

/// What SQLite and the lock are called beside the state file.
const STORE_SUFFIXES: [&[u8]; 5] = [b"", b"-wal", b"-shm", b"-journal", b".lock"];
/// How the names of one in the making begin behind it.
const MAKING_SUFFIXES: [&[u8]; 2] = [b".new", b".build"];

/// Whether two folders are one, whatever links lead there.
fn same_folder(one: Option<&Path>, other: Option<&Path>) -> bool {
    let real = |folder: Option<&Path>| folder.and_then(|folder| fs_err::canonicalize(folder).ok());
    real(one).is_some_and(|one| Some(one) == real(other))
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// Lines and what became of them.
    #[serde(flatten)]
    pub counts: Counts,
    /// Files that had something new.
    pub files: u64,
    /// Files whose last line is still being written.
    pub waiting: u64,
    /// Files that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// Told after each slice how many bytes were read, and of how many; an error stops the reading there.
pub type Watch<'w> = &'w mut dyn FnMut(u64, u64) -> Result<()>;

/// Told in the transaction of each slice what it counts.
pub(crate) type Beside<'b> = &'b mut dyn FnMut(&Transaction<'_>, &Counts) -> Result<()>;

/// A file as the store remembers it.
struct FileRow {
    stat: Stat,
    progress: Progress,
}

/// A batch file that has to be looked at.
pub(super) struct Batch {
    pub(super) path: PathBuf,
    name: Arc<str>,
    stat: Stat,
    row: Option<FileRow>,
}

/// Reads all that is new into the store.
pub fn ingest(store: &mut Store, input: &Input, watch: Watch<'_>) -> Result<Ingested> {
    ingest_beside(store, input, &mut |_, _| Ok(()), watch)
}

/// Reads all that is new into the store; `beside` writes what belongs to each slice in its transaction.
///
/// A slice is taken in over what others stored until its own transaction began, which holds the store for that.
pub(crate) fn ingest_beside(
    store: &mut Store,
    input: &Input,
    beside: Beside<'_>,
    watch: Watch<'_>,
) -> Result<Ingested> {
    let (batches, unreadable) = changed(Some(store.conn()), input)?;
    let mut intake = Intake::default();
    let mut bulk = store.lend();
    let most = if bulk.is_some() { BULK_SLICE_BYTES } else { SLICE_BYTES };
    let report = take_all(&batches, input, most, watch, |batch, slice| {
        crate::failpoint::hit("ingest.slice");
        store.write(|transaction| {
            let before = intake.counts;
            take_in(&mut intake, &Stored::over(transaction)?.with(bulk.as_ref()), batch, slice)?;
            let file = write_file(transaction, batch, slice)?;
            write_slice(transaction, &mut intake, Some(file), bulk.as_mut())?;
            beside(transaction, &intake.counts.since(&before))?;
            crate::failpoint::hit("ingest.commit");
            Ok(())
        })?;
        crate::failpoint::hit("ingest.committed");
        match bulk.take_if(|bulk| bulk.exceeds(input.max_memory)) {
            Some(bulk) => store.outgrow(bulk, input.max_memory),
            None => Ok(()),
        }
    });
    store.give_back(bulk);
    let mut report = report?;
    report.counts = intake.counts;
    report.unreadable.extend(unreadable);
    Ok(report)
}

/// Reads all that is new into memory, over what a store knows.
pub fn look(conn: Option<&Connection>, input: &Input, watch: Watch<'_>) -> Result<(Ingested, Intake)> {
    let (batches, unreadable) = changed(conn, input)?;
    let mut intake = Intake::default();
    let stored = conn.map(Stored::over).transpose()?;
    let known: &dyn Known = match &stored {
        Some(stored) => stored,
        None => &crate::revision::Nothing,
    };
    let mut report = take_all(&batches, input, SLICE_BYTES, watch, |batch, slice| {
        take_in(&mut intake, known, batch, slice)
    })?;
    report.counts = intake.counts;
    report.unreadable.extend(unreadable);
    Ok((report, intake))
}

/// Reads one file after the other, and gives each slice to who takes it in.
fn take_all(
    batches: &[Batch],
    input: &Input,
    most: u64,
    watch: Watch<'_>,
    mut take: impl FnMut(&Batch, &mut Slice) -> Result<()>,
) -> Result<Ingested> {
    let most = most.min((input.max_memory / SLICE_SHARE).max(LEAST_SLICE_BYTES));
    let total = batches.iter().map(Batch::remaining).sum();
    let mut report = Ingested::default();
    let mut done = 0;
    read_ahead(batches, input, most, |slices| {
        for (at, slice) in slices {
            let batch = &batches[at];
            let end = match slice {
                Ok(mut slice) => {
                    take(batch, &mut slice)?;
                    if slice.end.is_ok() {
                        watch(done + slice.read, total)?;
                    }
                    slice.end
                }
                Err(error) => Err(error),
            };
            if !matches!(end, Ok(End::Full)) {
                note(&mut report, batch, input, end)?;
                done += batch.remaining();
            }
        }
        Ok(report)
    })
}

/// Takes a slice's lines in over what is known.
fn take_in(intake: &mut Intake, known: &dyn Known, batch: &Batch, slice: &mut Slice) -> Result<()> {
    intake.expect(slice.lines.len());
    for Placed { number, offset, reading } in slice.lines.drain(..) {
        intake.receive(known, reading, Spot::in_file(batch.name.clone(), number, offset))?;
    }
    Ok(())
}

/// Counts a file; what the system refused about it stops nothing but itself.
fn note(report: &mut Ingested, batch: &Batch, input: &Input, end: Result<End>) -> Result<()> {
    match end {
        Ok(end) => {
            report.files += 1;
            report.waiting += u64::from(end == End::Open { waiting: true });
        }
        // It vanished since it was found.
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
        // The collector may still be writing a compressed batch.
        Err(Error::Io(error))
            if error.kind() == std::io::ErrorKind::UnexpectedEof && !batch.settled(input) =>
        {
            report.waiting += 1;
        }
        Err(Error::Io(error)) => {
            report.unreadable.push(Unreadable { file: batch.name.to_string(), error: error.to_string() });
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

impl Batch {
    /// How far it was read before.
    pub(super) fn before(&self) -> Option<&Progress> {
        self.row.as_ref().map(|row| &row.progress)
    }

    /// Bytes that are new, by what was found.
    pub(super) fn remaining(&self) -> u64 {
        self.stat.size.saturating_sub(self.before().map_or(0, |before| before.consumed))
    }

    /// Whether nobody has written it for a while.
    pub(super) fn settled(&self, input: &Input) -> bool {
        input.now.saturating_sub(self.stat.mtime_ns / 1_000_000) >= input.settle
    }
}

/// The files that differ from what the store remembers, by one `stat` each.
fn changed(conn: Option<&Connection>, input: &Input) -> Result<(Vec<Batch>, Vec<Unreadable>)> {
    let mut rows = match conn {
        Some(conn) => file_rows(conn)?,
        None => HashMap::new(),
    };
    let mut batches = Vec::new();
    let found = inbox::find(&input.paths)?;
    for path in found.files.into_iter().filter(|path| !input.is_own(path)) {
        let Some(stat) = inbox::stat(&path)? else { continue };
        let name = path.to_string_lossy();
        let row = rows.remove(&*name);
        if row.as_ref().is_none_or(|row| row.stat != stat || row.progress.waiting) {
            batches.push(Batch { name: name.into(), path, stat, row });
        }
    }
    Ok((batches, found.unreadable))
}

/// What a retry did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retried {
    /// The line's number.
    pub id: i64,
    /// `accepted`, `repeat` or `refused`.
    pub outcome: &'static str,
    /// Why it is still refused.
    pub reason: Option<String>,
    /// The same in words.
    pub explanation: Option<String>,
}

/// Takes a held line in again: the rules, or what is known, may have changed since.
pub fn retry(store: &mut Store, id: i64, max_line_bytes: u64) -> Result<Retried> {
    let line = quarantine::show(store.conn(), id)?;
    let raw = match line.raw {
        Some(raw) => raw,
        None if line.length <= max_line_bytes => {
            let again = inbox::read_again(Path::new(&line.file), line.offset, line.length)?;
            again.ok_or_else(|| {
                let gone =
                    format!("no line of {} bytes stands at byte {} any more", line.length, line.offset);
                Error::Invalid(format!("{}: {gone}", line.file))
            })?
        }
        None => {
            let explanation =
                format!("the line has {} bytes, input.max_line_bytes allows {max_line_bytes}", line.length);
            let reason = Some(line.reason);
            return Ok(Retried { id, outcome: "refused", reason, explanation: Some(explanation) });
        }
    };
    store.write(|transaction| {
        let sql = "SELECT identity FROM quarantine WHERE id = ?1";
        let identity: [u8; 32] = transaction.query_row(sql, [id], |row| row.get(0))?;
        // Set aside first, so that the line does not meet itself as one that was refused.
        transaction
            .execute("UPDATE quarantine SET identity = zeroblob(32), event = NULL WHERE id = ?1", [id])?;
        let mut intake = Intake::default();
        let spot = Spot::in_file(line.file, line.line, line.offset);
        let verdict = intake.line_within(&Stored::over(transaction)?, &raw, spot, max_line_bytes)?;
        if verdict == Verdict::Refused {
            let refused = intake.refused.remove(0);
            let sql =
                "UPDATE quarantine SET identity = ?2, event = ?3, reason = ?4, explanation = ?5, raw = ?6
                       WHERE id = ?1";
            let reason = refused.reason.as_str().to_owned();
            // What is no event stays known by where it stood.
            let identity = if refused.of_event { refused.identity } else { identity };
            let row = params![id, identity, refused.event, reason, refused.explanation, refused.raw];
            transaction.execute(sql, row)?;
            let explanation = Some(refused.explanation);
            return Ok(Retried { id, outcome: "refused", reason: Some(reason), explanation });
        }
        // An accepted line is known by its event from now on: the row keeps only its history.
        let sql = "UPDATE quarantine SET identity = randomblob(32), state = 'accepted' WHERE id = ?1";
        transaction.execute(sql, [id])?;
        write_slice(transaction, &mut intake, None, None)?;
        let outcome = if verdict == Verdict::Repeat { "repeat" } else { "accepted" };
        Ok(Retried { id, outcome, reason: None, explanation: None })
    })
}

fn file_rows(conn: &Connection) -> Result<HashMap<String, FileRow>> {
    let sql = "SELECT path, size, mtime_ns, consumed, lines, digest, waiting FROM files";
    let mut query = conn.prepare_cached(sql)?;
    let rows = query.query_map([], |row| {
        let unsigned = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let stat = Stat { size: unsigned(1)?, mtime_ns: row.get(2)? };
        let progress = Progress {
            consumed: unsigned(3)?,
            lines: unsigned(4)?,
            digest: row.get(5)?,
            waiting: row.get(6)?,
        };
        Ok((row.get(0)?, FileRow { stat, progress }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Remembers how far a file was read; its row. One that goes on, or that could not be read to its end, is
/// looked at again.
fn write_file(transaction: &Transaction<'_>, batch: &Batch, slice: &Slice) -> Result<i64> {
    let stat = match slice.end {
        Ok(End::Open { .. }) => batch.stat,
        Ok(End::Full) | Err(_) => Stat { size: 0, mtime_ns: -1 },
    };
    let progress = &slice.progress;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let sql = "INSERT INTO files VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)
               ON CONFLICT(path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,
                 consumed = excluded.consumed, lines = excluded.lines, digest = excluded.digest,
                 waiting = excluded.waiting
               RETURNING file";
    let row = params![
        batch.name,
        signed(stat.size),
        stat.mtime_ns,
        signed(progress.consumed),
        signed(progress.lines),
        progress.digest,
        progress.waiting,
    ];
    Ok(transaction.prepare_cached(sql)?.query_row(row, |row| row.get(0))?)
}
