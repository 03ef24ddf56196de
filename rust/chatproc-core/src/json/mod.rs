//! One line of JSON, read strictly into a tree, and a tree's canonical bytes.
//! Knows nothing of events. Must never panic, recurse without bound or take more than n·log n time,
//! whatever the bytes are.
//!
//! Stricter than most readers in that duplicate keys, depth and number bounds are checked everywhere;
//! more lenient in that it reads on after these, and after `NaN`, `Infinity` and lone surrogates, so
//! that the caller can say the first fault *in the contract's order* and not the first in the line.

mod number;
mod reader;
mod text;

use std::borrow::Cow;

pub use number::{scaled, write_number};
pub use reader::Reader;
pub use text::{quote, shorten, write_string, write_text};

/// A key and its value.
#[derive(Debug, PartialEq)]
pub struct Member<'a> {
    /// The key's first eight bytes as a number, by which almost all keys can be told apart.
    head: u64,
    pub key: Cow<'a, str>,
    pub value: Value<'a>,
}

/// A JSON value. Members of an object stand sorted by key.
///
/// A string is borrowed exactly when it was written without escapes: then its bytes are their own
/// canonical form. A number keeps the text it was written with. (With a `Bool(bool)` the tag would have a
/// neighbour of one byte, and every move of a value would cost two stalled loads.)
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    True,
    False,
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    Object(Vec<Member<'a>>),
}

/// A line that is JSON, with the faults that a reader of JSON can see in it.
pub struct Line<'a> {
    pub root: Value<'a>,
    pub faults: Vec<Fault>,
}

/// A line that is no JSON, and why.
#[derive(Debug)]
pub enum Unreadable {
    NotUtf8(String),
    NotJson(String),
}

/// What is wrong with a line although it is JSON; of each kind the first is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    TooDeep,
    DuplicateKey,
    BadValue,
}

/// One fault and where it is.
pub struct Fault {
    pub kind: FaultKind,
    /// What is wrong there, to be read after the name of the place.
    pub what: String,
    /// Steps to the place, the innermost first.
    steps: Vec<String>,
}

impl Fault {
    /// One line for a person: the place, then what is wrong there.
    pub fn explanation(&self) -> String {
        let path: String = self.steps.iter().rev().map(String::as_str).collect();
        let place = shorten(path.strip_prefix('.').unwrap_or(&path), 80);
        let place = if place.is_empty() { "the line".to_owned() } else { format!("`{place}`") };
        format!("{place} {}", self.what)
    }
}

/// Reads one line without its line end.
pub fn read(line: &[u8]) -> Result<Line<'_>, Unreadable> {
    let text = std::str::from_utf8(line).map_err(|error| not_utf8(line, &error))?;
    let mut reader = Reader::new(text);
    match reader.whole() {
        Ok(root) => Ok(Line { root, faults: reader.faults }),
        Err(_) if is_utf16(line) => Err(utf16()),
        Err(wanted) => Err(Unreadable::NotJson(reader.complain(wanted))),
    }
}

fn not_utf8(line: &[u8], error: &std::str::Utf8Error) -> Unreadable {
    if is_utf16(line) {
        return utf16();
    }
    let at = error.valid_up_to();
    let byte = line.get(at).copied().unwrap_or_default();
    Unreadable::NotUtf8(format!("byte {at} (0x{byte:02x}) is not UTF-8"))
}

fn utf16() -> Unreadable {
    Unreadable::NotUtf8("the line is UTF-16, wanted UTF-8".to_owned())
}

/// Asked only of a line that cannot be read. JSON begins with ASCII, of which UTF-16 makes a NUL and
/// another byte; two NULs are a hole that a crash left in a file.
fn is_utf16(line: &[u8]) -> bool {
    match line {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0] => true,
        [first, second, ..] => (*first == 0) != (*second == 0),
        _ => false,
    }
}
