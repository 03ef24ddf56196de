//! One line of JSON, read strictly into a tree, and a tree's canonical bytes.
//! Knows nothing of events. Must never panic, recurse without bound or take more than n·log n time,
//! whatever the bytes are.
//!
//! Stricter than most readers in that duplicate keys, depth and number bounds are checked everywhere;
//! more lenient in that it reads on after these, and after `NaN`, `Infinity` and lone surrogates, so
//! that the caller can say the first fault *in the contract's order* and not the first in the line.

use std::borrow::Cow;

/// How many levels a line may have, the outermost object being the first.
const MAX_DEPTH: usize = 64;
/// Up to this many digits a whole number is written out in canonical form; beyond, with an exponent.
const PLAIN_DIGITS: usize = 21;
/// Longer exponents would not fit the arithmetic below; no number that means anything has one.
const MAX_EXPONENT_DIGITS: usize = 18;

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
    let mut reader = Reader { text, at: 0, faults: Vec::new() };
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

/// The reader's place in a line. An error is what was wanted there: the line is not JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    faults: Vec<Fault>,
}

type Read<T> = Result<T, &'static str>;

impl<'a> Reader<'a> {
    fn whole(&mut self) -> Read<Value<'a>> {
        self.space();
        let root = self.value(0)?;
        self.space();
        if self.at < self.text.len() { Err("nothing more") } else { Ok(root) }
    }

    fn value(&mut self, levels: usize) -> Read<Value<'a>> {
        match self.byte() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{' | b'[') if levels == MAX_DEPTH => {
                self.fault(FaultKind::TooDeep, || format!("is deeper than {MAX_DEPTH} levels"));
                self.skip().map(|()| Value::Null)
            }
            Some(b'{') => self.object(levels + 1),
            Some(b'[') => self.array(levels + 1),
            _ => self.word(),
        }
    }

    fn object(&mut self, levels: usize) -> Read<Value<'a>> {
        let mut members = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        // An event has about twenty fields, what is in it about three.
        members.reserve(if levels == 1 { 24 } else { 5 });
        loop {
            let faults = self.faults.len();
            let key = self.key()?;
            let value = self.value(levels)?;
            self.locate(faults, || format!(".{}", shorten(&key, 40)));
            members.push(Member { head: head(&key), key, value });
            self.space();
            if self.take(b'}') {
                break;
            }
            self.expect(b',', "`,` or `}`")?;
            self.space();
        }
        self.sort(&mut members);
        Ok(Value::Object(members))
    }

    fn array(&mut self, levels: usize) -> Read<Value<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            let faults = self.faults.len();
            items.push(self.value(levels)?);
            self.locate(faults, || format!("[{}]", items.len() - 1));
            self.space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            self.expect(b',', "`,` or `]`")?;
            self.space();
        }
    }

    /// Reads a key, its colon and the space after it.
    fn key(&mut self) -> Read<Cow<'a, str>> {
        if self.byte() != Some(b'"') {
            return Err("a key");
        }
        let key = self.string()?;
        self.space();
        self.expect(b':', "`:`")?;
        self.space();
        Ok(key)
    }

    /// Sorts an object's members, which also brings equal keys together.
    fn sort(&mut self, members: &mut [Member<'a>]) {
        members.sort_unstable_by(|left, right| {
            left.head.cmp(&right.head).then_with(|| left.key.cmp(&right.key))
        });
        for pair in members.windows(2) {
            if let [left, right] = pair
                && left.head == right.head
                && left.key == right.key
            {
                self.fault(FaultKind::DuplicateKey, || format!("has the key {} twice", quote(&left.key)));
            }
        }
    }

    /// Reads past a value of any depth and keeps nothing of it: no recursion, one byte a level.
    fn skip(&mut self) -> Read<()> {
        let mut closers = Vec::new();
        loop {
            match self.byte() {
                Some(open @ (b'{' | b'[')) => {
                    let closer = if open == b'{' { b'}' } else { b']' };
                    self.at += 1;
                    self.space();
                    if !self.take(closer) {
                        closers.push(closer);
                        if closer == b'}' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => drop(self.string()?),
                _ => drop(self.word()?),
            }
            loop {
                let Some(&closer) = closers.last() else { return Ok(()) };
                self.space();
                if self.take(closer) {
                    closers.pop();
                    continue;
                }
                self.expect(b',', "`,` or the end of what is open")?;
                self.space();
                if closer == b'}' {
                    self.key()?;
                }
                break;
            }
        }
    }

    /// Reads what is neither string, object nor array.
    fn word(&mut self) -> Read<Value<'a>> {
        match self.byte() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::True),
            Some(b'f') => self.literal("false", Value::False),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'N') => self.no_number("NaN"),
            Some(b'I') => self.no_number("Infinity"),
            _ => Err("a value"),
        }
    }

    fn literal(&mut self, name: &'static str, value: Value<'a>) -> Read<Value<'a>> {
        if !self.text.as_bytes()[self.at..].starts_with(name.as_bytes()) {
            return Err("a value");
        }
        self.at += name.len();
        Ok(value)
    }

    /// Reads a number that some writers emit and JSON does not have.
    fn no_number(&mut self, name: &'static str) -> Read<Value<'a>> {
        let value = self.literal(name, Value::Null)?;
        self.fault(FaultKind::BadValue, || format!("is {name}, wanted a number or null"));
        Ok(value)
    }

    fn number(&mut self) -> Read<Value<'a>> {
        let start = self.at;
        if self.take(b'-') && self.byte() == Some(b'I') {
            self.at = start;
            return self.no_number("-Infinity");
        }
        if !self.take(b'0') {
            self.digits()?;
        }
        let whole = self.at;
        if self.take(b'.') {
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        // No whole number of 300 digits is beyond a float.
        if (self.at > whole || text.len() > 300) && !in_bounds(text) {
            self.fault(FaultKind::BadValue, || {
                format!("is {}, which is beyond a 64-bit float", shorten(text, 40))
            });
        }
        Ok(Value::Number(text))
    }

    fn digits(&mut self) -> Read<()> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err("a digit") } else { Ok(()) }
    }

    fn string(&mut self) -> Read<Cow<'a, str>> {
        self.at += 1;
        let start = self.at;
        self.at += plain_run(&self.text.as_bytes()[start..]);
        if self.take(b'"') {
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        self.at = start;
        self.escaped().map(Cow::Owned)
    }

    /// Reads a string that has escapes, from behind its opening quote.
    fn escaped(&mut self) -> Read<String> {
        let mut string = String::new();
        loop {
            let run = plain_run(&self.text.as_bytes()[self.at..]);
            string.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => self.escape(&mut string)?,
                Some(_) => return Err("control characters as escapes"),
                None => return Err("the end of the string"),
            }
        }
    }

    fn escape(&mut self, string: &mut String) -> Read<()> {
        self.at += 1;
        let escaped = self.byte().ok_or("an escape")?;
        string.push(match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(string),
            _ => return Err("an escape that JSON knows"),
        });
        self.at += 1;
        Ok(())
    }

    /// Reads an escape from its `u` on, with the second one that a first half of a pair needs.
    fn unicode_escape(&mut self, string: &mut String) -> Read<()> {
        let unit = self.unit()?;
        let mut scalar = char::from_u32(unit);
        if (0xd800..0xdc00).contains(&unit) && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 1;
            let low = self.unit()?;
            if (0xdc00..0xe000).contains(&low) {
                scalar = char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            } else {
                self.at = before;
            }
        }
        if let Some(scalar) = scalar {
            string.push(scalar);
        } else {
            self.fault(FaultKind::BadValue, || format!("has the lone surrogate \\u{unit:04x}"));
            // Different halves stay different, so that keys made of them are not taken for one.
            string.push('\u{fffd}');
            string.extend(format!("{unit:04x}").chars());
        }
        Ok(())
    }

    /// Reads `u` and four hexadecimal digits.
    fn unit(&mut self) -> Read<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            self.at += 1;
            let digit = self.byte().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or("four hexadecimal digits")?;
        }
        self.at += 1;
        Ok(unit)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.byte() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, byte: u8, wanted: &'static str) -> Read<()> {
        if self.take(byte) { Ok(()) } else { Err(wanted) }
    }

    fn space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn fault(&mut self, kind: FaultKind, what: impl FnOnce() -> String) {
        if self.faults.iter().all(|fault| fault.kind != kind) {
            self.faults.push(Fault { kind, what: what(), steps: Vec::new() });
        }
    }

    /// Adds a step to the place of each fault found since there were `known`.
    fn locate(&mut self, known: usize, step: impl Fn() -> String) {
        for fault in &mut self.faults[known..] {
            fault.steps.push(step());
        }
    }

    fn complain(&self, wanted: &str) -> String {
        // A place within an escape may be within a character: nothing is shown of it then.
        let found = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let found = found.map_or_else(|| "the end".to_owned(), |found| quote(found.encode_utf8(&mut [0; 4])));
        format!("at byte {} is {found}, wanted {wanted}", self.at)
    }
}

fn head(key: &str) -> u64 {
    let bytes = key.as_bytes();
    u64::from_be_bytes(bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut head = [0; 8];
        head[..bytes.len()].copy_from_slice(bytes);
        head
    }))
}

/// How many bytes from here on are neither quote, backslash nor control character.
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    // The highest bit of each byte that is zero; above the first such byte it may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let mut rest = bytes;
    while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let controls = word.wrapping_sub(ONES * 0x20) & !word & (ONES << 7);
        let stops = controls | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c));
        if stops != 0 {
            return bytes.len() - rest.len() + (stops.trailing_zeros() / 8) as usize;
        }
        rest = behind;
    }
    let tail = rest.iter().take_while(|byte| !matches!(**byte, b'"' | b'\\' | 0..0x20)).count();
    bytes.len() - rest.len() + tail
}

/// Whether a 64-bit float can hold a number roughly. One that is merely too near to zero is in bounds
/// and keeps its exact value, unless its exponent is absurd.
fn in_bounds(text: &str) -> bool {
    let exponent = text.split_once(['e', 'E']).map_or("", |(_, exponent)| exponent);
    let exponent = exponent.trim_start_matches(['+', '-']).trim_start_matches('0');
    let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
    finite && (exponent.len() <= MAX_EXPONENT_DIGITS || Decimal::new(text).digits.is_empty())
}

/// A number by its exact value: `digits` × 10^`exponent`, without zeros at either end; zero has none.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn new(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole.trim_start_matches('-'), fraction].concat();
        let digits = all.trim_end_matches('0');
        let shift = i64::try_from(all.len() - digits.len()).unwrap_or_default()
            - i64::try_from(fraction.len()).unwrap_or_default();
        Self {
            negative: text.starts_with('-'),
            digits: digits.trim_start_matches('0').to_owned(),
            // Only zero has an exponent that does not fit, see `in_bounds`.
            exponent: exponent.parse::<i64>().unwrap_or_default().saturating_add(shift),
        }
    }
}

/// The number times 10^`scale` if that is a whole number of a size that occurs.
pub fn scaled(text: &str, scale: u32) -> Option<i128> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(i128::from(whole) * 10_i128.pow(scale));
    }
    let number = Decimal::new(text);
    if number.digits.is_empty() {
        return Some(0);
    }
    let zeros = u32::try_from(number.exponent.saturating_add(i64::from(scale))).ok()?;
    if number.digits.len().saturating_add(zeros as usize) > 30 {
        return None;
    }
    let whole = number.digits.parse::<i128>().ok()? * 10_i128.pow(zeros);
    Some(if number.negative { -whole } else { whole })
}

/// Writes a number so that equal values are equal bytes, in room bounded by the number's text.
pub fn write_number(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    if bytes.len() < PLAIN_DIGITS
        && text != "-0"
        && !bytes.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    {
        out.extend_from_slice(bytes);
        return;
    }
    let Decimal { negative, digits, exponent } = Decimal::new(text);
    if digits.is_empty() {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(digits.as_bytes());
    match usize::try_from(exponent) {
        Ok(zeros) if digits.len().saturating_add(zeros) <= PLAIN_DIGITS => {
            out.resize(out.len() + zeros, b'0');
        }
        _ => out.extend_from_slice(format!("e{exponent}").as_bytes()),
    }
}

/// Writes a string of a tree; one that was read without escapes needs no look.
#[allow(clippy::ptr_arg, reason = "whether it is borrowed is the point")]
pub fn write_text(out: &mut Vec<u8>, text: &Cow<'_, str>) {
    match text {
        Cow::Borrowed(plain) => {
            out.push(b'"');
            out.extend_from_slice(plain.as_bytes());
            out.push(b'"');
        }
        Cow::Owned(any) => write_string(out, any),
    }
}

/// Writes any string with no escape beyond those that JSON demands.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    out.push(b'"');
    loop {
        let (plain, behind) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((&stop, behind)) = behind.split_first() else { break };
        match stop {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', stop]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x8 => out.extend_from_slice(b"\\b"),
            0xc => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(format!("\\u{stop:04x}").as_bytes()),
        }
        rest = behind;
    }
    out.push(b'"');
}

/// Text for an explanation: on one line, nothing in it that a terminal would obey, at most `longest`
/// characters before escaping.
pub fn shorten(text: &str, longest: usize) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(longest).flat_map(visible).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Text for an explanation, in quotation marks.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text, 40))
}

fn visible(character: char) -> impl Iterator<Item = char> {
    // The standard escapes quotes too, which are harmless here and would only be harder to read.
    let harmless = matches!(character, '"' | '\'' | '\\');
    let escaped = (!harmless).then(|| character.escape_debug());
    escaped.into_iter().flatten().chain(harmless.then_some(character))
}
