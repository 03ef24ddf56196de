//! One pass over a line: each value as it comes, and where its canonical bytes stand.
//! Nothing is explained here: what is not as it usually is ends the pass.

use std::borrow::Cow;

use super::canonical::{Shape, write_value};
use super::keys::Keys;
use crate::json::{self, Reader, Value};

/// Where the canonical bytes of a value stand.
#[derive(Clone, Copy)]
pub enum Form {
    /// Nowhere: the value says no more than leaving the field out does.
    Default,
    /// In the line, as they were written.
    Plain,
    /// From here to there in what was built.
    Built(usize, usize),
}

/// Where the canonical bytes of a member of an object, or of an item of a list, stand.
#[derive(Clone, Copy)]
enum Part {
    Missing,
    Default,
    /// In the line, a member with its key.
    Whole(usize, usize),
    /// In the line, without the key.
    Value(usize, usize),
    /// In what was built, without the key.
    Built(usize, usize),
}

/// How far a line was read, and the canonical bytes that do not stand in it.
pub struct Pass<'a> {
    json: Reader<'a>,
    /// Where the value begins that is the line.
    begin: usize,
    /// That of the value that was read last.
    form: Form,
    built: Vec<u8>,
}

impl<'a> Pass<'a> {
    pub fn over(text: &'a str) -> Self {
        let mut json = Reader::new(text);
        json.space();
        Self { begin: json.at, json, form: Form::Default, built: Vec::with_capacity(text.len() + 64) }
    }

    /// The canonical bytes of what was read, if the line ends with it and nothing in it is wrong.
    pub fn end(&mut self) -> Option<&[u8]> {
        let end = self.json.at;
        self.json.space();
        let sound = self.json.at == self.json.text.len() && self.json.faults.is_empty();
        sound.then(|| match self.form {
            Form::Built(from, to) => &self.built[from..to],
            Form::Plain | Form::Default => &self.json.text.as_bytes()[self.begin..end],
        })
    }

    /// Room to write to, when nothing more is asked of the line.
    pub fn room(mut self) -> Vec<u8> {
        self.built.clear();
        self.built
    }

    /// Says that the value that was read last is the field's default.
    pub fn is_default(&mut self) {
        self.form = Form::Default;
    }

    /// Reads an object that has some of the keys and no others.
    pub fn object<K: Copy, const N: usize>(
        &mut self,
        keys: &Keys<K, N>,
        mut read: impl FnMut(&mut Self, K) -> Option<()>,
    ) -> Option<()> {
        let begin = self.json.at;
        let (mut parts, mut next) = ([Part::Missing; N], 0);
        let mut more = self.open(b'{', b'}')?;
        while more {
            let start = self.json.at;
            let place = keys.find(&self.json.text.as_bytes()[start..], next)?;
            let key = &keys.usual[place];
            let after = start + key.written.len();
            self.json.at = after;
            self.json.space();
            let from = self.json.at;
            read(self, key.which)?;
            if !matches!(parts[place], Part::Missing) {
                return None;
            }
            parts[place] = match self.form {
                Form::Default => Part::Default,
                Form::Plain if from == after => Part::Whole(start, self.json.at),
                Form::Plain => Part::Value(from, self.json.at),
                Form::Built(from, to) => Part::Built(from, to),
            };
            next = place + 1;
            more = self.more(b'}')?;
        }
        self.join(begin, keys.sorted.iter().map(|&place| (keys.usual[place].written, parts[place])));
        Some(())
    }

    /// Reads each item of a list.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let begin = self.json.at;
        let (mut items, mut parts) = (Vec::new(), Vec::new());
        let mut more = self.open(b'[', b']')?;
        while more {
            let start = self.json.at;
            items.push(read(self)?);
            parts.push(match self.form {
                Form::Built(from, to) => Part::Built(from, to),
                Form::Plain | Form::Default => Part::Whole(start, self.json.at),
            });
            more = self.more(b']')?;
        }
        self.join(begin, parts.iter().map(|&part| ("", part)));
        Some(items)
    }

    /// Reads what opens an object or a list; whether anything is in it.
    fn open(&mut self, opener: u8, closer: u8) -> Option<bool> {
        if !self.json.take(opener) {
            return None;
        }
        self.json.space();
        Some(!self.json.take(closer))
    }

    /// Reads what follows a member or item; whether it is another one.
    fn more(&mut self, closer: u8) -> Option<bool> {
        self.json.space();
        if self.json.take(b',') {
            self.json.space();
            return Some(true);
        }
        self.json.take(closer).then_some(false)
    }

    /// Brings the parts of what was read since `begin`, an object or a list, into canonical order.
    fn join(&mut self, begin: usize, parts: impl Iterator<Item = (&'static str, Part)> + Clone) {
        let bytes = self.json.text.as_bytes();
        let mut end = begin + 1;
        let in_place = parts.clone().all(|(_, part)| match part {
            Part::Missing => true,
            Part::Whole(from, to) if from == end => {
                end = to + 1;
                true
            }
            _ => false,
        });
        if in_place && self.json.at == end.max(begin + 2) {
            self.form = Form::Plain;
            return;
        }
        let closer = bytes[self.json.at - 1];
        self.build(|built| {
            built.push(bytes[begin]);
            for (key, part) in parts {
                match part {
                    Part::Missing | Part::Default => continue,
                    Part::Whole(from, to) => built.extend_from_slice(&bytes[from..to]),
                    Part::Value(from, to) => {
                        built.extend_from_slice(key.as_bytes());
                        built.extend_from_slice(&bytes[from..to]);
                    }
                    Part::Built(from, to) => {
                        built.extend_from_slice(key.as_bytes());
                        built.extend_from_within(from..to);
                    }
                }
                built.push(b',');
            }
            built.pop_if(|last| *last == b',');
            built.push(closer);
        });
    }

    fn build(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.built.len();
        write(&mut self.built);
        self.form = Form::Built(start, self.built.len());
    }

    /// Reads `null`, which is the field's default, or a value.
    #[allow(clippy::option_option, reason = "none within is null, none at all the end of the pass")]
    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.json.byte() != Some(b'n') {
            return read(self).map(Some);
        }
        self.form = Form::Default;
        self.json.word().is_ok().then_some(None)
    }

    pub fn text(&mut self) -> Option<Cow<'a, str>> {
        if self.json.byte() != Some(b'"') {
            return None;
        }
        let text = self.json.string().ok()?;
        match &text {
            Cow::Borrowed(_) => self.form = Form::Plain,
            Cow::Owned(text) => self.build(|built| json::write_string(built, text)),
        }
        Some(text)
    }

    /// Reads a number that means something.
    pub fn number<T>(&mut self, meaning: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let number = self.json.number_text().ok()?;
        if number.is_canonical() {
            self.form = Form::Plain;
        } else {
            self.build(|built| json::write_number(built, number.text));
        }
        meaning(number.text)
    }

    pub fn flag(&mut self) -> Option<bool> {
        self.form = Form::Plain;
        match self.json.word().ok()? {
            Value::True => Some(true),
            Value::False => Some(false),
            _ => None,
        }
    }

    /// Reads any object, which stands within so many levels.
    pub fn free_object(&mut self, levels: usize) -> Option<()> {
        if self.json.byte() == Some(b'{') { self.free(levels) } else { None }
    }

    /// Reads any value, which stands within so many levels.
    pub fn free(&mut self, levels: usize) -> Option<()> {
        let begin = self.json.at;
        if self.flat().is_none() {
            self.json.at = begin;
            let value = self.json.value(levels).ok()?;
            self.build(|built| write_value(built, &value, Shape::Free));
        }
        Some(())
    }

    /// Reads a value with nothing in it but strings, numbers and words.
    fn flat(&mut self) -> Option<()> {
        match self.json.byte()? {
            b'{' => self.flat_object(),
            b'[' => self.list(Self::scalar).map(drop),
            _ => self.scalar(),
        }
    }

    /// Reads an object of which each member stands in the line as it is hashed.
    fn flat_object(&mut self) -> Option<()> {
        let text = self.json.text;
        let mut members = Vec::with_capacity(8);
        while matches!(self.json.byte()?, b'{' | b',') {
            self.json.at += 1;
            let start = self.json.at;
            if self.json.byte() != Some(b'"') {
                return None;
            }
            let Cow::Borrowed(key) = self.json.string().ok()? else { return None };
            if !self.json.take(b':') {
                return None;
            }
            self.scalar()?;
            if !matches!(self.form, Form::Plain) {
                return None;
            }
            members.push((key, &text[start..self.json.at]));
        }
        if !self.json.take(b'}') {
            return None;
        }
        if members.is_sorted_by(|one, other| one.0 < other.0) {
            return Some(());
        }
        members.sort_unstable_by_key(|&(key, _)| key);
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        self.build(|built| {
            let mut before = b'{';
            for (_, member) in members {
                built.push(before);
                built.extend_from_slice(member.as_bytes());
                before = b',';
            }
            built.push(b'}');
        });
        Some(())
    }

    /// Reads what is neither object nor list.
    fn scalar(&mut self) -> Option<()> {
        match self.json.byte()? {
            b'"' => self.text().map(drop),
            b'-' | b'0'..=b'9' => self.number(|_| Some(())),
            b't' | b'f' | b'n' => {
                self.form = Form::Plain;
                self.json.word().is_ok().then_some(())
            }
            _ => None,
        }
    }
}
