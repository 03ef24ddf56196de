//! Batch files → slices of lines that are read and hashed, one file after the other; one slice ahead of who takes
//! them, in a thread of its own, where there is much to read. What is known, and the store, are not asked here.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::intake::{Batch, Input};
use crate::delivery::{Raw, Reader, Reading};
use crate::error::Result;
use crate::inbox::{Line, Lines, Progress};
use crate::json;

/// Lines of one slice.
const MOST_LINES: u64 = 50_000;
/// Bytes from which on a thread pays.
const MUCH: u64 = 2 << 20;

/// Lines of one file that are stored together.
pub(super) struct Slice {
    /// The lines, but for blank ones.
    pub(super) lines: Vec<Placed>,
    /// How far the file was read.
    pub(super) progress: Progress,
    /// Bytes of the file that were read by now.
    pub(super) read: u64,
    /// Why it ends. After an error what was read before it counts, but not how far.
    pub(super) end: Result<End>,
}

/// A line that was read, and where it stands.
pub(super) struct Placed {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Bytes before it.
    pub(super) offset: u64,
    /// What it holds.
    pub(super) reading: Reading,
}

/// Why a slice ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The slice is full.
    Full,
    /// The file has no further whole line; a last one may wait for its end.
    Open { waiting: bool },
}

/// A slice, or why its file could not be opened; with the place of the file.
type Next = (usize, Result<Slice>);

/// Gives `work` the slices of all files, each of about so many bytes at most.
pub(super) fn read_ahead<T>(
    batches: &[Batch],
    input: &Input,
    most: u64,
    work: impl FnOnce(&mut dyn Iterator<Item = Next>) -> T,
) -> T {
    let slices = || Slices { batches, input, most, at: 0, open: None, reader: Reader::default() };
    if batches.iter().map(Batch::remaining).sum::<u64>() < MUCH {
        return work(&mut slices());
    }
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(0);
        // Who takes them may end early: what is read then has no taker.
        let ahead = move || slices().all(|slice| sender.send(slice).is_ok());
        match thread::Builder::new().spawn_scoped(scope, ahead) {
            Ok(_) => work(&mut receiver.into_iter()),
            Err(_) => work(&mut slices()),
        }
    })
}

/// The slices of files.
struct Slices<'b> {
    batches: &'b [Batch],
    input: &'b Input,
    most: u64,
    /// The place of the file that is read.
    at: usize,
    /// That file, and where reading it began.
    open: Option<(Lines, u64)>,
    reader: Reader,
}

impl Iterator for Slices<'_> {
    type Item = Next;

    fn next(&mut self) -> Option<Next> {
        let batch = self.batches.get(self.at)?;
        let (at, slice) = (self.at, self.slice(batch));
        if !slice.as_ref().is_ok_and(|slice| matches!(slice.end, Ok(End::Full))) {
            self.open = None;
            self.at += 1;
        }
        Some((at, slice))
    }
}

impl Slices<'_> {
    fn slice(&mut self, batch: &Batch) -> Result<Slice> {
        let (mut file, begin) = if let Some(open) = self.open.take() {
            open
        } else {
            let file = Lines::open(&batch.path, batch.before(), self.input.max_line_bytes)?;
            let begin = file.offset;
            (file, begin)
        };
        let room = self.most.min(batch.remaining());
        let mut text =
            Text { bytes: Vec::with_capacity(usize::try_from(room).unwrap_or_default()), lines: Vec::new() };
        let end = self.fill(&mut text, &mut file, batch);
        let lines = self.read(text);
        let progress = file.progress(end.as_ref().is_ok_and(|end| *end == End::Open { waiting: true }));
        let read = file.offset.saturating_sub(begin);
        self.open = Some((file, begin));
        Ok(Slice { lines, progress, read, end })
    }

    /// Copies a slice's lines together.
    fn fill(&self, text: &mut Text, file: &mut Lines, batch: &Batch) -> Result<End> {
        let (first_line, first_byte) = (file.number, file.offset);
        loop {
            let (offset, number) = (file.offset, file.number + 1);
            match file.next_line()? {
                None => return Ok(End::Open { waiting: false }),
                Some(Line::Whole(line)) => {
                    if !line.trim_ascii().is_empty() {
                        text.push(number, offset, line);
                    }
                }
                Some(Line::TooLong(length)) => text.lines.push((number, offset, Found::TooLong(length))),
                // Too long to hold: it may still grow, and is listed once it ended.
                Some(Line::Open(None)) => return Ok(End::Open { waiting: true }),
                Some(Line::Open(Some(line))) => {
                    if line.trim_ascii().is_empty() {
                        return Ok(End::Open { waiting: false });
                    }
                    // It is read once the collector let go of it, and it is a record; its end may still
                    // come, so the file goes on from this line's start.
                    let finished = batch.settled(self.input) && json::read(line).is_ok();
                    if finished {
                        text.push(number, offset, line);
                    }
                    return Ok(End::Open { waiting: !finished });
                }
            }
            if file.number - first_line >= MOST_LINES || file.offset - first_byte >= self.most {
                return Ok(End::Full);
            }
        }
    }

    fn read(&mut self, text: Text) -> Vec<Placed> {
        let bytes = Arc::new(text.bytes);
        let read = |(number, offset, found)| {
            let reading = match found {
                Found::Line(range) => self.reader.read(Raw::of(&bytes, range)),
                Found::TooLong(length) => Reader::too_long(length, self.input.max_line_bytes),
            };
            Placed { number, offset, reading }
        };
        text.lines.into_iter().map(read).collect()
    }
}

/// A slice's lines as they came: number, place, and what stands there.
struct Text {
    bytes: Vec<u8>,
    lines: Vec<(u64, u64, Found)>,
}

enum Found {
    /// A line, by where its bytes are.
    Line(Range<usize>),
    /// A line of that many bytes, which was skipped.
    TooLong(u64),
}

impl Text {
    fn push(&mut self, number: u64, offset: u64, line: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(line);
        self.lines.push((number, offset, Found::Line(begin..self.bytes.len())));
    }
}
