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
use crate::inbox::{self, Line, Lines, Progress, Stat, Unreadable};
use crate::json;
use crate::revision::{Counts, Intake, Known, Spot, Verdict};
use crate::store::Store;
use crate::store::bulk::Bulk;
use crate::store::messages::{Stored, write_slice};
use crate::store::quarantine;

/// Lines of one transaction.
const SLICE_LINES: u64 = 50_000;
/// Bytes of one transaction, roughly; of a store in the making, in which one costs next to nothing, fewer.
const SLICE_BYTES: u64 = 16 << 20;
const BULK_SLICE_BYTES: u64 = 4 << 20;

/// What to read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Globs of batch files.
    pub paths: Vec<String>,
    /// Bytes of the longest line that is held.
    pub max_line_bytes: u64,
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
    number: i64,
    stat: Stat,
    progress: Progress,
}

/// A batch file that has to be looked at.
struct Batch {
    path: PathBuf,
    name: Arc<str>,
    stat: Stat,
    row: Option<FileRow>,
}

/// Reads all that is new into the store.
pub fn ingest(store: &mut Store, input: &Input, watch: Watch<'_>) -> Result<Ingested> {
    ingest_beside(store, input, &mut |_, _| Ok(()), watch)
}

/// Reads all that is new into the store; `beside` writes what belongs to each slice in its transaction.
pub(crate) fn ingest_beside(
    store: &mut Store,
    input: &Input,
    beside: Beside<'_>,
    watch: Watch<'_>,
) -> Result<Ingested> {
    let (batches, unreadable) = changed(Some(store.conn()), input)?;
    let mut intake = Intake::default();
    let mut bulk = store.lend();
    let report = read_all(&batches, input, watch, |batch, watch| {
        read_into_store(store, batch, input, &mut intake, bulk.as_mut(), beside, watch)
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
    let mut report = read_all(&batches, input, watch, |batch, watch| {
        read_into_memory(conn, batch, input, &mut intake, watch)
    })?;
    report.counts = intake.counts;
    report.unreadable.extend(unreadable);
    Ok((report, intake))
}

/// Reads one file after the other.
fn read_all(
    batches: &[Batch],
    input: &Input,
    watch: Watch<'_>,
    mut read: impl FnMut(&Batch, &mut dyn FnMut(u64) -> Result<()>) -> Result<bool>,
) -> Result<Ingested> {
    let total = batches.iter().map(Batch::remaining).sum();
    let mut report = Ingested::default();
    let mut done = 0;
    for batch in batches {
        let read = read(batch, &mut |bytes| watch(done + bytes, total));
        done += batch.remaining();
        note(&mut report, batch, input, read)?;
    }
    Ok(report)
}

/// Counts a file; what the system refused about it stops nothing but itself.
fn note(report: &mut Ingested, batch: &Batch, input: &Input, read: Result<bool>) -> Result<()> {
    match read {
        Ok(waiting) => {
            report.files += 1;
            report.waiting += u64::from(waiting);
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
    fn remaining(&self) -> u64 {
        self.stat.size.saturating_sub(self.row.as_ref().map_or(0, |row| row.progress.consumed))
    }

    fn settled(&self, input: &Input) -> bool {
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

/// Reads a file slice by slice; true when its last line waits for its end.
///
/// A slice is read over a snapshot, so that others can write meanwhile. If they delivered something, what
/// was read rests on what is no longer so: it is read again, now with the store to itself.
fn read_into_store(
    store: &mut Store,
    batch: &Batch,
    input: &Input,
    intake: &mut Intake,
    mut bulk: Option<&mut Bulk>,
    beside: Beside<'_>,
    watch: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<bool> {
    let before = batch.row.as_ref().map(|row| &row.progress);
    let mut lines = Lines::open(&batch.path, before, input.max_line_bytes)?;
    let most = if bulk.is_some() { BULK_SLICE_BYTES } else { SLICE_BYTES };
    let mut file = batch.row.as_ref().map(|row| row.number);
    let start = lines.offset;
    loop {
        let (begin, before) = (lines.progress(false), intake.counts);
        let snapshot = store.conn().unchecked_transaction()?;
        let seen = super::deliveries(&snapshot)?;
        let known = Stored::over(&snapshot)?.with(bulk.as_deref());
        let mut slice = read_slice(&known, &mut lines, most, batch, input, intake);
        snapshot.finish()?;
        crate::failpoint::hit("ingest.slice");
        file = Some(store.write(|transaction| {
            if super::deliveries(transaction)? != seen {
                intake.rewind(before);
                lines = Lines::again(&batch.path, &begin, input.max_line_bytes)?;
                slice = read_slice(&Stored::over(transaction)?, &mut lines, most, batch, input, intake);
            }
            let (stat, progress) = standing(batch, &lines, &slice);
            let number = write_file(transaction, file, &batch.name, stat, &progress)?;
            write_slice(transaction, intake, Some(number), bulk.as_deref_mut())?;
            beside(transaction, &intake.counts.since(&before))?;
            crate::failpoint::hit("ingest.commit");
            Ok(number)
        })?);
        crate::failpoint::hit("ingest.committed");
        let end = slice?;
        watch(lines.offset.saturating_sub(start))?;
        if let End::Open { waiting } = end {
            return Ok(waiting);
        }
    }
}

/// How a file is remembered after a slice. What was read before a fault counts, but not how far: like a file
/// that goes on, it is looked at again.
fn standing(batch: &Batch, lines: &Lines, slice: &Result<End>) -> (Stat, Progress) {
    let (stat, waiting) = match slice {
        Ok(End::Open { waiting }) => (batch.stat, *waiting),
        Ok(End::Full) | Err(_) => (Stat { size: 0, mtime_ns: -1 }, false),
    };
    (stat, lines.progress(waiting))
}

fn read_into_memory(
    conn: Option<&Connection>,
    batch: &Batch,
    input: &Input,
    intake: &mut Intake,
    watch: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<bool> {
    let before = batch.row.as_ref().map(|row| &row.progress);
    let mut lines = Lines::open(&batch.path, before, input.max_line_bytes)?;
    let stored = conn.map(Stored::over).transpose()?;
    let known: &dyn Known = match &stored {
        Some(stored) => stored,
        None => &crate::revision::Nothing,
    };
    let start = lines.offset;
    loop {
        let end = read_slice(known, &mut lines, SLICE_BYTES, batch, input, intake)?;
        watch(lines.offset.saturating_sub(start))?;
        if let End::Open { waiting } = end {
            return Ok(waiting);
        }
    }
}

/// Why reading stopped.
enum End {
    /// The slice is full.
    Full,
    /// The file has no further whole line; a last one may wait for its end.
    Open { waiting: bool },
}

fn read_slice(
    known: &dyn Known,
    lines: &mut Lines,
    most: u64,
    batch: &Batch,
    input: &Input,
    intake: &mut Intake,
) -> Result<End> {
    let (first_line, first_byte) = (lines.number, lines.offset);
    loop {
        let (offset, number) = (lines.offset, lines.number + 1);
        let spot = || Spot::in_file(batch.name.clone(), number, offset);
        match lines.next_line()? {
            None => return Ok(End::Open { waiting: false }),
            Some(Line::Whole(line)) => {
                if !line.trim_ascii().is_empty() {
                    intake.line(known, line, spot())?;
                }
            }
            Some(Line::TooLong(length)) => {
                intake.too_long(known, spot(), length, input.max_line_bytes)?;
            }
            // Too long to hold: it may still grow, and is listed once it ended.
            Some(Line::Open(None)) => return Ok(End::Open { waiting: true }),
            Some(Line::Open(Some(line))) => {
                if line.trim_ascii().is_empty() {
                    return Ok(End::Open { waiting: false });
                }
                // It is read once the collector let go of it, and it is a record; its end may still
                // come, so the file goes on from this line's start.
                let finished = batch.settled(input) && json::read(line).is_ok();
                if finished {
                    intake.line(known, line, spot())?;
                }
                return Ok(End::Open { waiting: !finished });
            }
        }
        if lines.number - first_line >= SLICE_LINES || lines.offset - first_byte >= most {
            return Ok(End::Full);
        }
    }
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
        super::delivered(transaction)?;
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
    let sql = "SELECT path, file, size, mtime_ns, consumed, lines, digest, waiting FROM files";
    let mut query = conn.prepare_cached(sql)?;
    let rows = query.query_map([], |row| {
        let unsigned = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let stat = Stat { size: unsigned(2)?, mtime_ns: row.get(3)? };
        let progress = Progress {
            consumed: unsigned(4)?,
            lines: unsigned(5)?,
            digest: row.get(6)?,
            waiting: row.get(7)?,
        };
        Ok((row.get(0)?, FileRow { number: row.get(1)?, stat, progress }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn write_file(
    transaction: &Transaction<'_>,
    number: Option<i64>,
    path: &str,
    stat: Stat,
    progress: &Progress,
) -> Result<i64> {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let sql = "INSERT INTO files VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT(path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,
                 consumed = excluded.consumed, lines = excluded.lines, digest = excluded.digest,
                 waiting = excluded.waiting
               RETURNING file";
    let row = params![
        number,
        path,
        signed(stat.size),
        stat.mtime_ns,
        signed(progress.consumed),
        signed(progress.lines),
        progress.digest,
        progress.waiting,
    ];
    Ok(transaction.prepare_cached(sql)?.query_row(row, |row| row.get(0))?)
}
