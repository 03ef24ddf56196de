//! Batch files → lines: finding them, opening what is compressed, and never holding a line that is too
//! long. Nothing is written here, and nothing of a line is understood.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use glob::{MatchOptions, Pattern};
use serde::Serialize;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use crate::error::{Error, Result};

/// The byte order mark that a file may start with.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// How much is read at once.
const BLOCK: usize = 1 << 18;
/// How much is digested at once: little enough to be in the processor's nearest memory still.
const DIGESTED: usize = 1 << 14;

/// What one `stat` tells of a batch file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// How far a file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are done with; of a compressed file, of what it holds.
    pub consumed: u64,
    /// Lines that are done with, blank ones included.
    pub lines: u64,
    /// SHA-256 of the bytes that are done with.
    pub digest: [u8; 32],
    /// Whether a last line without its newline was left unread.
    pub waiting: bool,
}

/// A file or folder that could not be read, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Its path.
    pub file: String,
    /// What the system said.
    pub error: String,
}

/// What patterns name.
#[derive(Debug, Default)]
pub struct Found {
    /// Files, each once, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// What could not be looked into.
    pub unreadable: Vec<Unreadable>,
}

/// The files that the patterns name.
///
/// A pattern without a match, and a file that vanished, are no error; temporary and hidden files are no
/// batches; a link that leads back to a folder above it is not followed.
pub fn find(patterns: &[String]) -> Result<Found> {
    let mut found = Found::default();
    for text in patterns {
        // As paths are compared: without empty parts and dots.
        let plain: PathBuf = Path::new(text).components().collect();
        let pattern = Pattern::new(&plain.to_string_lossy())
            .map_err(|error| Error::Config(format!("input.paths: {text:?} is no pattern: {error}")))?;
        let (base, depth) = walk_of(text);
        for entry in WalkDir::new(base).follow_links(true).max_depth(depth) {
            match entry {
                Ok(entry) if entry.file_type().is_file() => found.note(entry.into_path(), &pattern),
                Ok(_) => {}
                Err(error) => found.refuse(&error),
            }
        }
    }
    found.files.sort_by_cached_key(|path| order(path));
    found.files.dedup_by(|one, other| one.as_os_str() == other.as_os_str());
    found.unreadable.sort_by(|a, b| a.file.cmp(&b.file));
    found.unreadable.dedup();
    Ok(found)
}

/// Orders paths name by name, as `Path` does, but takes each apart once and not at each comparison.
fn order(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|&byte| if byte == b'/' { 0 } else { byte }).collect()
}

/// Where the walk for a pattern begins, and how deep it goes.
fn walk_of(pattern: &str) -> (PathBuf, usize) {
    let parts: Vec<_> = Path::new(pattern).components().collect();
    let plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let fixed = parts.iter().take_while(|part| plain(part)).count();
    let depth = if pattern.contains("**") { usize::MAX } else { parts.len() - fixed };
    (parts[..fixed].iter().collect(), depth)
}

impl Found {
    fn note(&mut self, path: PathBuf, pattern: &Pattern) {
        let options = MatchOptions {
            require_literal_separator: true,
            require_literal_leading_dot: true,
            ..MatchOptions::new()
        };
        let temporary = path.extension().is_some_and(|suffix| suffix == "tmp");
        let Some(name) = path.to_str() else {
            // A glob is text: what it is compared with, and what the store keeps, has to be text too.
            if pattern.matches_with(&path.to_string_lossy(), options) {
                let error = "its name is not UTF-8: rename it".to_owned();
                self.unreadable.push(Unreadable { file: path.to_string_lossy().into_owned(), error });
            }
            return;
        };
        if !temporary && pattern.matches_with(name, options) {
            self.files.push(path);
        }
    }

    fn refuse(&mut self, error: &walkdir::Error) {
        let vanished = error.io_error().is_none_or(|error| error.kind() == io::ErrorKind::NotFound);
        // Without an I/O error it is a link that leads back: all below it is found elsewhere.
        if let (false, Some(path), Some(io)) = (vanished, error.path(), error.io_error()) {
            let file = path.to_string_lossy().into_owned();
            self.unreadable.push(Unreadable { file, error: io.to_string() });
        }
    }
}

/// Looks at a file; none when it vanished.
pub fn stat(path: &Path) -> Result<Option<Stat>> {
    let metadata = match fs_err::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mtime = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mtime_ns = i64::try_from(mtime.as_nanos()).unwrap_or(i64::MAX);
    Ok(Some(Stat { size: metadata.len(), mtime_ns }))
}

/// One line of a file.
#[derive(Debug)]
pub enum Line<'a> {
    /// A line without its newline.
    Whole(&'a [u8]),
    /// A line of that many bytes without its end, longer than allowed and skipped.
    TooLong(u64),
    /// The last line, which has no newline yet; none when it is longer than allowed already.
    Open(Option<&'a [u8]>),
}

/// Lines of one batch file, from where it was left.
pub struct Lines {
    source: Box<dyn BufRead>,
    /// What was read, up to `filled`; a line is handed out from where it stands here.
    block: Vec<u8>,
    filled: usize,
    /// Where the next line begins in the block.
    next: usize,
    /// Where in the block that begins which the digest lacks.
    undigested: usize,
    digest: Sha256,
    limit: usize,
    /// Bytes before the next line.
    pub offset: u64,
    /// Lines before the next line.
    pub number: u64,
}

impl Lines {
    /// Opens a file where `before` left it, or at its start when it does not begin with what was read.
    ///
    /// Compressed files (`.gz`, `.zst`) are always read whole: what was accepted before is a repeat.
    pub fn open(path: &Path, before: Option<&Progress>, max_line_bytes: u64) -> Result<Self> {
        match before {
            Some(before) if !is_compressed(path) => Self::again(path, before, max_line_bytes),
            _ => Ok(Self::at_start(source_of(path)?, max_line_bytes)),
        }
    }

    /// Opens any file where `before` left it, or at its start when it does not begin with what was read.
    pub fn again(path: &Path, before: &Progress, max_line_bytes: u64) -> Result<Self> {
        let mut source = source_of(path)?;
        if before.consumed == 0 {
            return Ok(Self::at_start(source, max_line_bytes));
        }
        let mut digest = Sha256::new();
        let read = io::copy(&mut (&mut source).take(before.consumed), &mut HashWriter(&mut digest))?;
        if read == before.consumed && digest.clone().finalize()[..] == before.digest {
            let (offset, number) = (before.consumed, before.lines);
            return Ok(Self { digest, offset, number, ..Self::at_start(source, max_line_bytes) });
        }
        Ok(Self::at_start(source_of(path)?, max_line_bytes))
    }

    fn at_start(source: Box<dyn BufRead>, max_line_bytes: u64) -> Self {
        let limit = usize::try_from(max_line_bytes).unwrap_or(usize::MAX);
        Self {
            source,
            block: Vec::new(),
            filled: 0,
            next: 0,
            undigested: 0,
            digest: Sha256::new(),
            limit,
            offset: 0,
            number: 0,
        }
    }

    /// The next line; none at the end. A whole line is done with once it was returned.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        // What is not counted, a byte order mark and a line end, must not hide that a line is too long.
        let room = self.limit.saturating_add(BOM.len() + 2);
        let mut searched = 0;
        let length = loop {
            let rest = &self.block[self.next..self.filled];
            if let Some(at) = memchr::memchr(b'\n', &rest[searched..]) {
                break searched + at + 1;
            }
            searched = rest.len();
            if searched > room {
                return self.skip_line().map(Some);
            }
            if !self.fill()? {
                let line = line_of(&self.block[self.next..self.filled], self.offset);
                let open = Line::Open((line.len() <= self.limit).then_some(line));
                return Ok((searched > 0).then_some(open));
            }
        };
        let (start, offset) = (self.next, self.offset);
        self.next += length;
        self.pass(length as u64);
        if self.next - self.undigested >= DIGESTED {
            self.digest();
        }
        let line = line_of(&self.block[start..start + length], offset);
        if line.len() <= self.limit {
            return Ok(Some(Line::Whole(line)));
        }
        Ok(Some(Line::TooLong(line.len() as u64)))
    }

    /// Reads past a line of which more was read than is allowed, without keeping it.
    fn skip_line(&mut self) -> Result<Line<'_>> {
        self.digest();
        let mark = self.offset == 0 && self.block[self.next..].starts_with(BOM);
        let (mut digest, mut length, mut last) = (self.digest.clone(), 0, 0);
        let ended = loop {
            let part = &self.block[self.next..self.filled];
            let newline = memchr::memchr(b'\n', part);
            let taken = newline.map_or(part.len(), |at| at + 1);
            last = part[..newline.unwrap_or(taken)].last().copied().unwrap_or(last);
            digest.update(&part[..taken]);
            length += taken as u64;
            self.next += taken;
            self.undigested = self.next;
            if newline.is_some() || !self.fill()? {
                break newline.is_some();
            }
        };
        if !ended {
            return Ok(Line::Open(None));
        }
        self.digest = digest;
        self.pass(length);
        let uncounted = 1 + usize::from(last == b'\r') + if mark { BOM.len() } else { 0 };
        Ok(Line::TooLong(length - uncounted as u64))
    }

    /// Counts a line as done with.
    fn pass(&mut self, length: u64) {
        self.offset += length;
        self.number += 1;
    }

    /// Brings the digest up to the next line.
    fn digest(&mut self) {
        self.digest.update(&self.block[self.undigested..self.next]);
        self.undigested = self.next;
    }

    /// Reads on behind what is left of the block; false at the end.
    fn fill(&mut self) -> Result<bool> {
        self.digest();
        self.block.copy_within(self.next..self.filled, 0);
        self.filled -= self.next;
        (self.next, self.undigested) = (0, 0);
        if self.block.len() < self.filled + BLOCK {
            self.block.resize(self.filled + BLOCK, 0);
        }
        let read = self.source.read(&mut self.block[self.filled..])?;
        self.filled += read;
        Ok(read > 0)
    }

    /// How far the file was read.
    #[must_use]
    pub fn progress(&self, waiting: bool) -> Progress {
        let digest = self.digest.clone().chain_update(&self.block[self.undigested..self.next]);
        Progress { consumed: self.offset, lines: self.number, digest: digest.finalize().into(), waiting }
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "gz" || suffix == "zst")
}

/// What a file holds, unpacked.
fn source_of(path: &Path) -> Result<Box<dyn BufRead>> {
    let file = fs_err::File::open(path)?;
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    Ok(match suffix {
        "gz" => Box::new(buffered(flate2::bufread::MultiGzDecoder::new(buffered(file)))),
        "zst" => Box::new(buffered(zstd::Decoder::new(file)?)),
        _ => Box::new(buffered(file)),
    })
}

/// A line without its line end, and at the file's start without a byte order mark.
fn line_of(buffer: &[u8], offset: u64) -> &[u8] {
    let line = buffer.strip_suffix(b"\n").unwrap_or(buffer);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if offset == 0 { line.strip_prefix(BOM).unwrap_or(line) } else { line }
}

/// Reads one line of a file again; none when no line of that length stands there any more.
pub fn read_again(path: &Path, offset: u64, length: u64) -> Result<Option<Vec<u8>>> {
    let mut lines = Lines::open(path, None, length)?;
    let mut before = Vec::new();
    io::copy(&mut (&mut lines.source).take(offset.saturating_sub(1)), &mut io::sink())?;
    (&mut lines.source).take(offset.min(1)).read_to_end(&mut before)?;
    lines.offset = offset;
    match lines.next_line()? {
        Some(Line::Whole(line)) if line.len() as u64 == length && (offset == 0 || before == b"\n") => {
            Ok(Some(line.to_vec()))
        }
        _ => Ok(None),
    }
}

fn buffered<R: Read>(source: R) -> BufReader<R> {
    BufReader::with_capacity(BLOCK, source)
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
