//! The index of tasks' texts: grams, of which each begins at one character of a field.
//!
//! A gram has two characters, and more while its last one is of a small alphabet, four at most: the pairs of a
//! few letters or digits stand in most tasks and would find nothing quickly. What a gram takes in is told by
//! its own characters, so a query of any length is a phrase of grams, its last one perhaps cut short, and the
//! index answers without false finds. Must never let a query's syntax reach FTS: grams travel as words of
//! letters and digits.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

use icu_casemap::CaseMapper;
use memchr::memmem;
use rusqlite::{Connection, params};
use serde::Deserialize;

use crate::error::Result;
use crate::task::Record;

/// What stands for a field's end: one more than the last code point.
const END: u32 = 0x11_0000;
/// Code points from here on are of large alphabets: Chinese and its like, and [`END`].
const LARGE: u32 = 0x2e80;
/// The most characters of a gram.
const LONGEST: usize = 4;
/// Of a word of the index so many digits stand for a character.
const WIDTH: usize = 4;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A gram's characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gram {
    letters: [u32; LONGEST],
    length: u8,
}

impl Gram {
    fn of(letters: &[u32]) -> Self {
        let mut gram = Self::default();
        for &letter in letters.iter().take(LONGEST) {
            gram.letters[usize::from(gram.length)] = letter;
            gram.length += 1;
        }
        gram
    }

    /// The gram that a word of the index stands for.
    pub(super) fn read(word: &[u8]) -> Option<Self> {
        let (letters, rest) = word.as_chunks::<WIDTH>();
        if !rest.is_empty() || letters.len() > LONGEST {
            return None;
        }
        let number = |word: &[u8; WIDTH]| {
            word.iter().try_fold(0, |number, digit| {
                let value = DIGITS.iter().position(|it| it == digit)?;
                Some(number * 36 + u32::try_from(value).ok()?)
            })
        };
        let letters: Option<Vec<u32>> = letters.iter().map(number).collect();
        Some(Self::of(&letters?))
    }
}

/// The word of the index.
impl Display for Gram {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &letter in &self.letters[..usize::from(self.length)] {
            for place in [36 * 36 * 36, 36 * 36, 36, 1] {
                to.write_char(char::from(DIGITS[(letter / place % 36) as usize]))?;
            }
        }
        Ok(())
    }
}

/// Where the gram ends that begins at `start`; none where the letters do not tell.
fn end_of(letters: &[u32], start: usize) -> Option<usize> {
    for end in start + 2..start + LONGEST {
        if *letters.get(end - 1)? >= LARGE {
            return Some(end);
        }
    }
    letters.get(start + LONGEST - 1).map(|_| start + LONGEST)
}

fn fold(text: &str) -> Cow<'_, str> {
    CaseMapper::new().fold_string(text)
}

fn each_gram_of(field: &str, mut take: impl FnMut(Gram)) {
    let letters: Vec<u32> = fold(field).chars().map(u32::from).chain([END]).collect();
    for start in 0..letters.len() - 1 {
        if let Some(end) = end_of(&letters, start) {
            take(Gram::of(&letters[start..end]));
        }
    }
}

/// Gives every gram of a task's texts, and whether it is of the names of people.
pub(super) fn each_gram(record: &Record, mut take: impl FnMut(bool, Gram)) {
    let texts = [&record.title, &record.event, &record.notes].into_iter().chain(&record.location);
    let sources = record.sources.iter().map(|source| &source.text);
    for text in texts.chain(sources) {
        each_gram_of(text, |gram| take(false, gram));
    }
    for person in &record.people {
        each_gram_of(&person.name, |gram| take(true, gram));
    }
}

/// Puts a task's present texts into the index.
pub fn index(conn: &Connection, task: i64, record: &Record) -> Result<()> {
    let (mut texts, mut people) = (String::new(), String::new());
    each_gram(record, |of_people, gram| {
        let words = if of_people { &mut people } else { &mut texts };
        let _ = write!(words, "{gram} ");
    });
    conn.prepare_cached("INSERT OR REPLACE INTO task_search(rowid, texts, people) VALUES (?1, ?2, ?3)")?
        .execute(params![task, texts, people])?;
    Ok(())
}

/// Makes the index anew from all tasks, in an index that is empty.
pub(super) fn index_all(conn: &Connection) -> Result<()> {
    let mut query = conn.prepare("SELECT task, record FROM tasks")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let record = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        index(conn, row.get(0)?, &serde_json::from_str(record)?)?;
    }
    Ok(())
}

// ── what is looked for ─────────────────────────────────────────────────────────────────────────────

/// Terms that must all occur in a task's texts, and names of which one must occur in its people's.
pub(super) struct Wanted {
    terms: Vec<String>,
    names: Vec<String>,
}

/// A task's texts, of its record.
#[derive(Deserialize)]
struct Texts<'r> {
    #[serde(borrow)]
    title: Cow<'r, str>,
    #[serde(borrow)]
    event: Cow<'r, str>,
    #[serde(borrow)]
    notes: Cow<'r, str>,
    #[serde(borrow)]
    location: Option<Cow<'r, str>>,
    #[serde(borrow)]
    people: Vec<Named<'r>>,
    #[serde(borrow)]
    sources: Vec<Said<'r>>,
}

#[derive(Deserialize)]
struct Named<'r> {
    #[serde(borrow)]
    name: Cow<'r, str>,
}

#[derive(Deserialize)]
struct Said<'r> {
    #[serde(borrow)]
    text: Cow<'r, str>,
}

impl Wanted {
    /// Terms are parted by white space; none where neither a term nor a name is given.
    pub(super) fn of(terms: &str, names: &[String]) -> Option<Self> {
        let terms: Vec<String> = terms.split_whitespace().map(|term| fold(term).into_owned()).collect();
        let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(|name| fold(name).into_owned()).collect();
        (!terms.is_empty() || !names.is_empty()).then_some(Self { terms, names })
    }

    /// As an FTS expression, and whether it finds those tasks alone.
    ///
    /// Of a word that is cut the index gathers the tasks of all its words before it gives the first: where
    /// another term finds enough by itself, it is left to whoever reads the texts.
    pub(super) fn expression(&self) -> (String, bool) {
        let parts = self.parts();
        let whole: Vec<&str> = parts.iter().filter(|part| !part.1).map(|part| part.0.as_str()).collect();
        if whole.is_empty() {
            (parts.iter().map(|part| part.0.as_str()).collect::<Vec<_>>().join(" AND "), true)
        } else {
            (whole.join(" AND "), whole.len() == parts.len())
        }
    }

    /// Whether the index has to gather the tasks of many words before it can give the first.
    pub(super) fn is_gathered(&self) -> bool {
        self.parts().iter().all(|part| part.1)
    }

    /// FTS expressions that must all hold, and whether a word of each is cut.
    fn parts(&self) -> Vec<(String, bool)> {
        let phrase = |term: &String| {
            let phrase = Phrase::of(term);
            (phrase.to_string(), phrase.is_cut)
        };
        let mut parts: Vec<(String, bool)> = self.terms.iter().map(phrase).collect();
        if !self.names.is_empty() {
            let (names, cut): (Vec<String>, Vec<bool>) = self.names.iter().map(phrase).unzip();
            parts.push((format!("people : ({})", names.join(" OR ")), cut.contains(&true)));
        }
        parts
    }

    /// Whether the task of that record is one of those that the expression finds.
    pub(super) fn is_in(&self, record: &[u8]) -> Result<bool> {
        let lacks = |term: &String| is_plain(term) && memmem::find(record, term.as_bytes()).is_none();
        if self.terms.iter().any(lacks) || (!self.names.is_empty() && self.names.iter().all(lacks)) {
            return Ok(false);
        }
        let texts: Texts<'_> = serde_json::from_slice(record)?;
        let people: Vec<Cow<'_, str>> = texts.people.iter().map(|person| fold(&person.name)).collect();
        let rest = [&texts.title, &texts.event, &texts.notes].into_iter().chain(&texts.location);
        let rest: Vec<Cow<'_, str>> =
            rest.chain(texts.sources.iter().map(|source| &source.text)).map(|text| fold(text)).collect();
        let is_named = |name: &String| people.iter().any(|person| person.contains(name.as_str()));
        let occurs = |term: &String| is_named(term) || rest.iter().any(|text| text.contains(term.as_str()));
        Ok(self.terms.iter().all(occurs) && (self.names.is_empty() || self.names.iter().any(is_named)))
    }
}

/// Whether a folded term stands in JSON as it stands in a text: nothing folds into it, nothing is escaped.
fn is_plain(term: &str) -> bool {
    term.chars().all(|letter| letter.is_ascii_digit() || ('\u{4e00}'..='\u{9fff}').contains(&letter))
}

/// A folded term as consecutive words of the index, the last one perhaps cut.
struct Phrase {
    words: Vec<Gram>,
    is_cut: bool,
}

impl Phrase {
    fn of(term: &str) -> Self {
        let letters: Vec<u32> = term.chars().map(u32::from).collect();
        let mut words = Vec::new();
        for start in 0..letters.len() {
            let Some(end) = end_of(&letters, start) else {
                words.push(Gram::of(&letters[start..]));
                return Self { words, is_cut: true };
            };
            words.push(Gram::of(&letters[start..end]));
            if end == letters.len() {
                break;
            }
        }
        Self { words, is_cut: false }
    }
}

impl Display for Phrase {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words.iter().map(Gram::to_string).collect();
        write!(to, "\"{}\"{}", words.join(" "), if self.is_cut { "*" } else { "" })
    }
}

/// The FTS expression for one of the people, or nothing where none is named.
pub(super) fn naming(people: &[String]) -> Option<String> {
    Some(Wanted::of("", people)?.expression().0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether the phrase stands in the grams of a field.
    fn stands(phrase: &Phrase, field: &str) -> bool {
        let mut words = Vec::new();
        each_gram_of(field, |gram| words.push(gram.to_string()));
        let wanted: Vec<String> = phrase.words.iter().map(Gram::to_string).collect();
        words.windows(wanted.len()).any(|here| {
            here.iter().zip(&wanted).enumerate().all(|(at, (word, wanted))| {
                let cut = phrase.is_cut && at + 1 == phrase.words.len();
                if cut { word.starts_with(wanted.as_str()) } else { word == wanted }
            })
        })
    }

    proptest! {
        #[test]
        fn a_phrase_stands_where_its_term_does(
            field in "[abAßﬁ12报告.\u{0}🎉\u{2e7f}\u{2e80}]{0,12}",
            term in "[abAßﬁ12报告.\u{0}🎉\u{2e7f}\u{2e80}]{1,6}",
        ) {
            let term = fold(&term).into_owned();
            prop_assert_eq!(stands(&Phrase::of(&term), &field), fold(&field).contains(&term));
        }

        #[test]
        fn a_word_is_read_as_the_gram_that_wrote_it(letters in prop::collection::vec(0..=END, 1..=LONGEST)) {
            let gram = Gram::of(&letters);
            prop_assert_eq!(Gram::read(gram.to_string().as_bytes()), Some(gram));
        }
    }
}
