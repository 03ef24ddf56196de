//! The place in a line of JSON, and what is read from there on.

use std::borrow::Cow;

use super::number::Number;
use super::text::{plain_run, quote, shorten};
use super::{Fault, FaultKind, Member, Value};

/// How many levels a line may have, the outermost object being the first.
const MAX_DEPTH: usize = 64;

/// The reader's place in a line. An error is what was wanted there: the line is not JSON.
pub struct Reader<'a> {
    pub text: &'a str,
    pub at: usize,
    pub faults: Vec<Fault>,
}

type Read<T> = Result<T, &'static str>;

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, faults: Vec::new() }
    }

    /// Reads all there is.
    pub fn whole(&mut self) -> Read<Value<'a>> {
        self.space();
        let root = self.value(0)?;
        self.space();
        if self.at < self.text.len() { Err("nothing more") } else { Ok(root) }
    }

    pub fn value(&mut self, levels: usize) -> Read<Value<'a>> {
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
    pub fn key(&mut self) -> Read<Cow<'a, str>> {
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
    pub fn word(&mut self) -> Read<Value<'a>> {
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
        if self.text.as_bytes()[self.at..].starts_with(b"-I") {
            return self.no_number("-Infinity");
        }
        self.number_text().map(|number| Value::Number(number.text))
    }

    pub fn number_text(&mut self) -> Read<Number<'a>> {
        let start = self.at;
        self.take(b'-');
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
        let number = Number { text: &self.text[start..self.at], whole: self.at == whole };
        if !number.is_in_bounds() {
            self.fault(FaultKind::BadValue, || {
                format!("is {}, which is beyond a 64-bit float", shorten(number.text, 40))
            });
        }
        Ok(number)
    }

    fn digits(&mut self) -> Read<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { Err("a digit") } else { Ok(()) }
    }

    pub fn string(&mut self) -> Read<Cow<'a, str>> {
        let start = self.at + 1;
        let run = plain_run(&self.text.as_bytes()[start..]);
        self.at = start + run;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(&self.text[start..start + run]));
        }
        self.escaped(start).map(Cow::Owned)
    }

    /// Reads on in a string that began at `start` and has escapes, of which the first is here.
    fn escaped(&mut self, start: usize) -> Read<String> {
        let mut string = String::with_capacity(2 * (self.at - start) + 16);
        string.push_str(&self.text[start..self.at]);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => self.escape(&mut string)?,
                Some(_) => return Err("control characters as escapes"),
                None => return Err("the end of the string"),
            }
            let run = plain_run(&self.text.as_bytes()[self.at..]);
            string.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
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

    pub fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn take(&mut self, byte: u8) -> bool {
        let taken = self.byte() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, byte: u8, wanted: &'static str) -> Read<()> {
        if self.take(byte) { Ok(()) } else { Err(wanted) }
    }

    pub fn space(&mut self) {
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

    pub fn complain(&self, wanted: &str) -> String {
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
