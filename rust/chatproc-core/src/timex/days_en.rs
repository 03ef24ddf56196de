//! Days in English: tomorrow, next Friday, July 3rd, a week from Monday; and any other day by its kind.

use jiff::civil::Weekday;

use super::cursor::{at, before, begins_word, pick_word, skip_word, space, word};
use super::numerals::{digits, english, ordinal, small};
use super::said::{Anchor, Day, Month, Period, Said, Week, Year};
use super::text::Text;
use super::{elapsed, festivals, stretches_en};

use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};

pub(super) const WEEKDAYS: &[(&str, Weekday)] = &[
    ("monday", Monday),
    ("mondays", Monday),
    ("mon", Monday),
    ("tuesday", Tuesday),
    ("tues", Tuesday),
    ("tue", Tuesday),
    ("wednesday", Wednesday),
    ("weds", Wednesday),
    ("wed", Wednesday),
    ("thursday", Thursday),
    ("thurs", Thursday),
    ("thur", Thursday),
    ("thu", Thursday),
    ("friday", Friday),
    ("fri", Friday),
    ("saturday", Saturday),
    ("sat", Saturday),
    ("sunday", Sunday),
    ("sun", Sunday),
];

pub(super) const MONTHS: &[(&str, u8)] = &[
    ("january", 1),
    ("jan", 1),
    ("february", 2),
    ("feb", 2),
    ("march", 3),
    ("mar", 3),
    ("april", 4),
    ("apr", 4),
    ("may", 5),
    ("june", 6),
    ("jun", 6),
    ("july", 7),
    ("jul", 7),
    ("august", 8),
    ("aug", 8),
    ("september", 9),
    ("sept", 9),
    ("sep", 9),
    ("october", 10),
    ("oct", 10),
    ("november", 11),
    ("nov", 11),
    ("december", 12),
    ("dec", 12),
];

/// Reads a day or a stretch of days.
pub(super) fn day(text: &Text, i: usize) -> Option<(Day, usize)> {
    let t = text.letters();
    if !begins_word(t, i) || !(at(t, i).is_ascii_alphanumeric()) {
        return None;
    }
    shifted(text, i)
        .or_else(|| after(t, i))
        .or_else(|| relative(t, i))
        .or_else(|| stretches_en::end_of(text, i))
        .or_else(|| stretches_en::nth(t, i))
        .or_else(|| weekday(text, i))
        .or_else(|| dated(text, i))
        .or_else(|| festivals::english(t, i))
        .or_else(|| stretches_en::stretch(t, i))
}

/// "in 3 days" as a day that a clock time can follow.
fn after(t: &[char], i: usize) -> Option<(Day, usize)> {
    match elapsed::latin(t, i)? {
        (Said::After(amount), end) if !amount.exact => {
            Some((Day::After { months: amount.months, days: amount.days }, end))
        }
        _ => None,
    }
}

/// "a week from Friday", "two weeks from tomorrow".
fn shifted(text: &Text, i: usize) -> Option<(Day, usize)> {
    let t = text.letters();
    let (count, end) = match pick_word(t, i, &[("a", 1), ("one", 1)]) {
        Some(one) => one,
        None => english(t, i)?,
    };
    let (size, end) = pick_word(
        t,
        space(t, end),
        &[("weeks", 7), ("week", 7), ("days", 1), ("day", 1), ("fortnight", 14)],
    )?;
    let (sign, end) = pick_word(t, space(t, end), &[("from", 1), ("after", 1), ("before", -1)])?;
    let days = i64::from(count) * size * sign;
    let begin = space(t, end);
    let anchor = match relative(t, begin)
        .or_else(|| weekday(text, skip_word(t, begin, &["the"])))
        .or_else(|| dated(text, begin))
        .or_else(|| festivals::english(t, begin))?
    {
        (Day::Offset(offset), end) => (Anchor::Day(offset), end),
        (Day::Weekday(week, weekday), end) => (Anchor::Weekday(week, weekday), end),
        (Day::Date { year, month: Month::Of(month), day }, end) => (Anchor::Date(year, month, day), end),
        (Day::Festival(year, festival), end) => (Anchor::Festival(year, festival), end),
        _ => return None,
    };
    Some((Day::Shifted(days, anchor.0), anchor.1))
}

fn relative(t: &[char], i: usize) -> Option<(Day, usize)> {
    const DAYS: &[(&str, i64)] = &[
        ("the day after tomorrow", 2),
        ("day after tomorrow", 2),
        ("the day before yesterday", -2),
        ("day before yesterday", -2),
        ("today", 0),
        ("tomorrow", 1),
        ("tmrw", 1),
        ("tmr", 1),
        ("tmw", 1),
        ("tomorow", 1),
        ("tommorow", 1),
        ("tommorrow", 1),
        ("yesterday", -1),
        ("this day", 0),
        ("the next day", 1),
    ];
    // The part of the day is read next.
    if let Some(end) = word(t, i, "tonight").or_else(|| word(t, i, "tonite")) {
        return Some((Day::Offset(0), if at(t, end - 1) == 't' { end - 5 } else { end }));
    }
    if let Some(end) = word(t, i, "last night") {
        return Some((Day::Offset(-1), end - 5));
    }
    if let Some(end) = word(t, i, "this")
        && ["morning", "afternoon", "evening", "noon"]
            .iter()
            .any(|part| word(t, space(t, end), part).is_some())
    {
        return Some((Day::Offset(0), end));
    }
    pick_word(t, i, DAYS).map(|(days, end)| (Day::Offset(days), possessive(t, end)))
}

/// Behind "'s": "Friday's", "tomorrow's".
fn possessive(t: &[char], i: usize) -> usize {
    word(t, i, "'s").unwrap_or(i)
}

const MODIFIERS: &[(&str, Week)] = &[
    ("this coming", Week::Nearest),
    ("the coming", Week::Nearest),
    ("the following", Week::Next),
    ("the next", Week::Next),
    ("coming", Week::Nearest),
    ("following", Week::Next),
    ("next", Week::Next),
    ("nxt", Week::Next),
    ("this", Week::This),
    ("the last", Week::Last),
    ("last", Week::Last),
    ("past", Week::Last),
    ("previous", Week::Last),
    ("upcoming", Week::Nearest),
];

fn weekday(text: &Text, i: usize) -> Option<(Day, usize)> {
    let t = text.letters();
    let modified = pick_word(t, i, MODIFIERS).map(|(week, end)| (week, space(t, end)));
    if let Some((week, begin)) = modified
        && let Some((weekday, end)) = pick_word(t, begin, WEEKDAYS)
    {
        return Some((Day::Weekday(week, weekday), possessive(t, end)));
    }
    // "next week Friday", "next week on Friday"
    for (words, weeks) in [("next week", 1), ("this week", 0), ("last week", -1), ("the week after next", 2)]
    {
        if let Some(end) = word(t, i, words) {
            let begin = skip_word(t, space(t, skip_comma(t, possessive(t, end))), &["on"]);
            if let Some((weekday, end)) = pick_word(t, begin, WEEKDAYS) {
                return Some((Day::Weekday(Week::From(weeks), weekday), end));
            }
        }
    }
    let (weekday, end) = pick_word(t, i, WEEKDAYS)?;
    if end - i <= 4 && !is_name(text, i, end) {
        return None;
    }
    let end =
        if end - i <= 5 && at(t, end) == '.' && at(t, end + 1) == ' ' { end + 1 } else { possessive(t, end) };
    let begin = skip_word(t, space(t, end), &["of", "in", "from"]);
    for (words, weeks) in [
        ("next week", 1),
        ("this week", 0),
        ("last week", -1),
        ("the week after next", 2),
        ("the following week", 1),
        ("week after next", 2),
    ] {
        if let Some(end) = word(t, begin, words) {
            return Some((Day::Weekday(Week::From(weeks), weekday), end));
        }
    }
    if let Some(end) = word(t, begin, "after next") {
        return Some((Day::Shifted(7, Anchor::Weekday(Week::Nearest, weekday)), end));
    }
    if word(t, begin, "week").is_some() && word(t, begin, "weekend").is_none() {
        return Some((Day::Shifted(7, Anchor::Weekday(Week::Nearest, weekday)), begin + 4));
    }
    Some((Day::Weekday(Week::Nearest, weekday), end))
}

fn skip_comma(t: &[char], i: usize) -> usize {
    if at(t, i) == ',' { i + 1 } else { i }
}

/// Whether a short form ("sat", "sun", "may") is meant as a name: a capital, or a word before it that asks
/// for a day, or a sign that joins it to another.
fn is_name(text: &Text, i: usize, end: usize) -> bool {
    let t = text.letters();
    let prompts = [
        "on", "by", "until", "till", "before", "due", "this", "next", "every", "to", "and", "from", "not",
        "of", "in", "since", "after", "through",
    ];
    let last = (0..i).rev().take(12).find(|&at_| t[at_] == ' ' && at_ + 1 < i);
    let previous: String = t[last.map_or(i.saturating_sub(12), |at_| at_ + 1)..i].iter().collect();
    text.is_capital(i)
        || i == 0
        || prompts.contains(&previous.trim())
        || matches!(before(t, i), '-' | '/' | '(' | ':' | ',')
        || !before(t, i).is_ascii()
        || matches!(at(t, end), '-' | '/')
        || at(t, space(t, end)).is_ascii_digit()
        || word(t, space(t, end), "at").is_some()
}

/// What begins with a month, or with a day before it.
fn dated(text: &Text, i: usize) -> Option<(Day, usize)> {
    let t = text.letters();
    if let Some((month, end)) = word(t, i, "this").and_then(|end| pick_word(t, space(t, end), MONTHS)) {
        let sure = !matches!(month, 3 | 5) || text.is_capital(space(t, i + 4));
        return sure.then_some((Day::Period(Period::Month(Some(Year::From(0)), Month::Of(month))), end));
    }
    if let Some((month, end)) = pick_word(t, i, MONTHS) {
        let begin = space(t, if at(t, end) == '.' { end + 1 } else { end });
        let begin = skip_word(t, begin, &["the"]);
        // "March, 6th"
        let comma = space(t, skip_comma(t, end));
        let begin = if comma > begin && ordinal(t, comma).is_some() { comma } else { begin };
        if let Some((day, end)) = day_of_month(t, begin) {
            let (year, end) = trailing_year(t, end);
            return Some((Day::Date { year, month: Month::Of(month), day }, end));
        }
        let (year, last) =
            trailing_year(t, if at(t, end) == '.' && at(t, end + 1) == ' ' { end + 1 } else { end });
        if year.is_some() {
            return Some((Day::Period(Period::Month(year, Month::Of(month))), last));
        }
        let is_word = matches!(month, 3 | 5);
        return (!is_word || is_month(text, i))
            .then_some((Day::Period(Period::Month(None, Month::Of(month))), end));
    }
    let begin = skip_word(t, i, &["the"]);
    let (day, end, sure) = if let Some((day, end)) = ordinal(t, begin) {
        (day, end, true)
    } else {
        let (day, end) = small(t, begin)?;
        (day, end, false)
    };
    if !(1..=31).contains(&day) {
        return None;
    }
    let gap = if matches!(at(t, end), '-' | '/') {
        end + 1
    } else {
        skip_word(t, space(t, end), &["day of", "of"])
    };
    if let Some((month, end)) = pick_word(t, gap, MONTHS) {
        let end = if at(t, end) == '.' { end + 1 } else { end };
        let (year, end) = trailing_year(t, if matches!(at(t, end), '-' | '/') { end + 1 } else { end });
        return Some((Day::Date { year, month: Month::Of(month), day }, end));
    }
    for (words, months) in [
        ("next month", 1),
        ("this month", 0),
        ("the month", 0),
        ("the next month", 1),
        ("the current month", 0),
        ("the coming month", 1),
        ("last month", -1),
        ("the last month", -1),
        ("the previous month", -1),
    ] {
        if (sure || gap > end + 1)
            && let Some(end) = word(t, gap, words)
        {
            return Some((Day::Date { year: None, month: Month::From(months), day }, end));
        }
    }
    // "the first", "third": a day only in digits.
    let named = begin > i
        || behind_weekday(t, i)
        || ["on", "by", "before", "until", "due", "to", "and", "through", "between"]
            .iter()
            .any(|prompt| prompted(t, i, prompt));
    let stands =
        (at(t, begin).is_ascii_digit() || behind_weekday(t, i)) && named && !followed_by_noun(t, end);
    (sure && stands).then_some((Day::OfMonth(day), end))
}

/// Whether a weekday stands directly before: "Friday 10th", "Fri, 10th".
fn behind_weekday(t: &[char], i: usize) -> bool {
    let Some(last) = i.checked_sub(1).filter(|&last| t[last] == ' ') else { return false };
    let last = if before(t, last) == ',' { last - 1 } else { last };
    (0..last)
        .rev()
        .take(9)
        .any(|from| begins_word(t, from) && pick_word(t, from, WEEKDAYS).is_some_and(|(_, end)| end == last))
}

fn prompted(t: &[char], i: usize, prompt: &str) -> bool {
    let width = prompt.len() + 1;
    i >= width && word(t, i - width, prompt).is_some() && begins_word(t, i - width)
}

/// "the 3rd floor", "the 2nd time" are no days.
fn followed_by_noun(t: &[char], end: usize) -> bool {
    const FOLLOWING: &[&str] = &[
        "at", "by", "and", "or", "to", "for", "from", "is", "will", "before", "after", "please", "if", "so",
        "but", "in", "we", "i", "you", "the", "with", "noon", "works", "would", "until", "on", "of",
        "deadline", "then", "as", "when", "because", "though", "latest",
    ];
    let next = space(t, end);
    at(t, next).is_ascii_alphabetic() && !FOLLOWING.iter().any(|follows| word(t, next, follows).is_some())
}

/// Whether "may" or "march" is the month: a capital inside a sentence, or a word that asks for a month.
fn is_month(text: &Text, i: usize) -> bool {
    const PROMPTS: &[&str] = &["in", "by", "until", "since", "before", "of", "from", "after"];
    let t = text.letters();
    (text.is_capital(i) && i > 0) || PROMPTS.iter().any(|prompt| prompted(t, i, prompt))
}

/// The day behind a month's name, no year and no hour.
fn day_of_month(t: &[char], i: usize) -> Option<(u8, usize)> {
    let (day, end) = ordinal(t, i).or_else(|| {
        let (day, end) = small(t, i)?;
        (at(t, i).is_ascii_digit() && !matches!(at(t, end), ':' | '%') && !at(t, end).is_ascii_alphanumeric())
            .then_some((day, end))
    })?;
    (1..=31).contains(&day).then_some((day, end))
}

/// ", 2026", " 2026", " of 2026".
pub(super) fn trailing_year(t: &[char], i: usize) -> (Option<Year>, usize) {
    let begin = skip_word(t, space(t, skip_comma(t, i)), &["of", "in"]);
    match digits(t, begin) {
        Some((year, end)) if end - begin == 4 && (1900..=2199).contains(&year) && at(t, end) != ':' => {
            (i16::try_from(year).ok().map(Year::Of), end)
        }
        _ => (None, i),
    }
}

/// A month by its name.
pub(super) fn month_name(t: &[char], i: usize) -> Option<(u8, usize)> {
    pick_word(t, i, MONTHS)
}
