//! Days in English: tomorrow, next Friday, July 3rd, the end of the month, a week from Monday.

use jiff::civil::Weekday;

use super::cursor::{at, before, begins_word, lit, pick_word, skip_word, space, word};
use super::elapsed;
use super::numerals::{digits, english, ordinal, small};
use super::said::{Anchor, Day, Festival, Month, Period, Said, Week, Year};
use super::text::Text;

use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};

const WEEKDAYS: &[(&str, Weekday)] = &[
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

const MONTHS: &[(&str, u8)] = &[
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
    shifted(t, i)
        .or_else(|| after(t, i))
        .or_else(|| relative(t, i))
        .or_else(|| end_of(text, i))
        .or_else(|| nth(t, i))
        .or_else(|| weekday(text, i))
        .or_else(|| dated(text, i))
        .or_else(|| festival(t, i))
        .or_else(|| stretch(t, i))
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
fn shifted(t: &[char], i: usize) -> Option<(Day, usize)> {
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
    let begin = skip_word(t, space(t, end), &["this", "the"]);
    if let Some((day, end)) = pick_word(t, begin, &[("tomorrow", 1), ("today", 0), ("yesterday", -1)]) {
        return Some((Day::Shifted(days, Anchor::Day(day)), end));
    }
    let (weekday, end) = pick_word(t, begin, WEEKDAYS)?;
    Some((Day::Shifted(days, Anchor::Weekday(weekday)), end))
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
            let begin = skip_word(t, space(t, skip_comma(t, end)), &["on"]);
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
    let begin = skip_word(t, space(t, end), &["of"]);
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
        return Some((Day::Shifted(7, Anchor::Weekday(weekday)), end));
    }
    if word(t, begin, "week").is_some() && word(t, begin, "weekend").is_none() {
        return Some((Day::Shifted(7, Anchor::Weekday(weekday)), begin + 4));
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
    let gap = if at(t, end) == '-' { end + 1 } else { skip_word(t, space(t, end), &["day of", "of"]) };
    if let Some((month, end)) = pick_word(t, gap, MONTHS) {
        let end = if at(t, end) == '.' { end + 1 } else { end };
        let (year, end) = trailing_year(t, if at(t, end) == '-' { end + 1 } else { end });
        return Some((Day::Date { year, month: Month::Of(month), day }, end));
    }
    for (words, months) in [("next month", 1), ("this month", 0), ("the month", 0), ("the next month", 1)] {
        if sure && let Some(end) = word(t, gap, words) {
            return Some((Day::Date { year: None, month: Month::From(months), day }, end));
        }
    }
    // "the first", "third": a day only in digits.
    let named = begin > i
        || ["on", "by", "before", "until", "due", "to", "and", "through", "between"]
            .iter()
            .any(|prompt| prompted(t, i, prompt));
    let stands = at(t, begin).is_ascii_digit() && named && !followed_by_noun(t, end);
    (sure && stands).then_some((Day::OfMonth(day), end))
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

/// "first Monday of August", "the last Friday of the month".
fn nth(t: &[char], i: usize) -> Option<(Day, usize)> {
    let begin = skip_word(t, i, &["the"]);
    let (nth, end) = if let Some(end) = word(t, begin, "last") {
        (-1, end)
    } else {
        let (nth, end) = ordinal(t, begin).filter(|(nth, _)| *nth <= 5)?;
        (i8::try_from(nth).ok()?, end)
    };
    let (weekday, end) = pick_word(t, space(t, end), WEEKDAYS)?;
    let end = ["of", "in"].iter().find_map(|of| word(t, space(t, end), of))?;
    let (year, month, end) = month_or_rest(t, space(t, end))?;
    Some((Day::Nth { year, month, nth, weekday }, end))
}

fn month_or_rest(t: &[char], i: usize) -> Option<(Option<Year>, Month, usize)> {
    if let Some((months, end)) = pick_word(
        t,
        i,
        &[("this month", 0), ("the month", 0), ("next month", 1), ("month", 0), ("last month", -1)],
    ) {
        return Some((None, Month::From(months), end));
    }
    let (month, end) = pick_word(t, i, MONTHS)?;
    let (year, end) = trailing_year(t, end);
    Some((year, Month::Of(month), end))
}

/// The last day of a stretch; "end of day" is a part of a day.
fn end_of(text: &Text, i: usize) -> Option<(Day, usize)> {
    const SHORT: &[(&str, Period)] = &[
        ("eow", Period::EndOfWeek(0)),
        ("eom", Period::Month(None, Month::From(0))),
        ("eoq", Period::QuarterFrom(0)),
        ("eoy", Period::Year(Year::From(0))),
    ];
    const LONG: &[(&str, Period)] = &[
        ("the week", Period::EndOfWeek(0)),
        ("this week", Period::EndOfWeek(0)),
        ("week", Period::EndOfWeek(0)),
        ("next week", Period::EndOfWeek(1)),
        ("the quarter", Period::QuarterFrom(0)),
        ("this quarter", Period::QuarterFrom(0)),
        ("quarter", Period::QuarterFrom(0)),
        ("next quarter", Period::QuarterFrom(1)),
        ("the year", Period::Year(Year::From(0))),
        ("this year", Period::Year(Year::From(0))),
        ("year", Period::Year(Year::From(0))),
        ("next year", Period::Year(Year::From(1))),
    ];
    let t = text.letters();
    let whole = |period: Period| {
        if let Period::EndOfWeek(_) = period { Day::Period(period) } else { Day::EndOf(period) }
    };
    if let Some((period, end)) = pick_word(t, i, SHORT) {
        return Some((whole(period), end));
    }
    let begin = skip_word(t, i, &["the"]);
    let end =
        ["end of", "the last day of", "last day of"].iter().find_map(|end_of| word(t, begin, end_of))?;
    let begin = space(t, end);
    if let Some((period, end)) = pick_word(t, begin, LONG) {
        return Some((whole(period), end));
    }
    let (year, month, end) = month_or_rest(t, begin)?;
    Some((Day::EndOf(Period::Month(year, month)), end))
}

fn stretch(t: &[char], i: usize) -> Option<(Day, usize)> {
    const WORDS: &[(&str, Period)] = &[
        ("the week after next", Period::Week(2)),
        ("this week", Period::Week(0)),
        ("the following week", Period::Week(1)),
        ("next week", Period::Week(1)),
        ("last week", Period::Week(-1)),
        ("this weekend", Period::Weekend(Week::Nearest)),
        ("the weekend", Period::Weekend(Week::Nearest)),
        ("next weekend", Period::Weekend(Week::Next)),
        ("last weekend", Period::Weekend(Week::Last)),
        ("weekend", Period::Weekend(Week::Nearest)),
        ("this month", Period::Month(None, Month::From(0))),
        ("next month", Period::Month(None, Month::From(1))),
        ("last month", Period::Month(None, Month::From(-1))),
        ("this quarter", Period::QuarterFrom(0)),
        ("next quarter", Period::QuarterFrom(1)),
        ("last quarter", Period::QuarterFrom(-1)),
        ("current week", Period::Week(0)),
        ("current month", Period::Month(None, Month::From(0))),
        ("current quarter", Period::QuarterFrom(0)),
        ("current year", Period::Year(Year::From(0))),
        ("this year", Period::Year(Year::From(0))),
        ("next year", Period::Year(Year::From(1))),
        ("last year", Period::Year(Year::From(-1))),
    ];
    if let Some((period, end)) = pick_word(t, i, WORDS) {
        return Some((Day::Period(period), end));
    }
    let (year, begin) = match digits(t, i) {
        Some((year, end))
            if end - i == 4 && (1900..=2199).contains(&year) && matches!(at(t, end), ' ' | '-') =>
        {
            (Some(Year::Of(i16::try_from(year).ok()?)), end + 1)
        }
        _ => (None, i),
    };
    let (quarter, end) = small(t, lit(t, begin, "q")?).filter(|(quarter, _)| (1..=4).contains(quarter))?;
    if at(t, end).is_ascii_alphanumeric() {
        return None;
    }
    let (trailing, last) = trailing_year(t, if at(t, end) == '-' { end + 1 } else { end });
    let end = if trailing.is_some() { last } else { end };
    Some((Day::Period(Period::Quarter(year.or(trailing), quarter)), end))
}

fn festival(t: &[char], i: usize) -> Option<(Day, usize)> {
    use Festival::{Lunar, Nth, Solar};
    const NAMES: &[(&str, Festival)] = &[
        ("new year's day", Solar(1, 1)),
        ("new years day", Solar(1, 1)),
        ("new year's eve", Solar(12, 31)),
        ("new years eve", Solar(12, 31)),
        ("chinese new year", Lunar(1, 1)),
        ("lunar new year", Lunar(1, 1)),
        ("spring festival", Lunar(1, 1)),
        ("mid autumn festival", Lunar(8, 15)),
        ("dragon boat festival", Lunar(5, 5)),
        ("valentine's day", Solar(2, 14)),
        ("valentines day", Solar(2, 14)),
        ("independence day", Solar(7, 4)),
        ("mother's day", Nth(5, 2, Sunday)),
        ("mothers day", Nth(5, 2, Sunday)),
        ("father's day", Nth(6, 3, Sunday)),
        ("fathers day", Nth(6, 3, Sunday)),
        ("halloween", Solar(10, 31)),
        ("thanksgiving day", Nth(11, 4, Thursday)),
        ("thanksgiving", Nth(11, 4, Thursday)),
        ("christmas eve", Solar(12, 24)),
        ("christmas day", Solar(12, 25)),
        ("christmas", Solar(12, 25)),
        ("xmas", Solar(12, 25)),
        ("boxing day", Solar(12, 26)),
    ];
    let (festival, end) = pick_word(t, i, NAMES)?;
    let (year, end) = trailing_year(t, end);
    Some((Day::Festival(year, festival), end))
}

/// A month by its name.
pub(super) fn month_name(t: &[char], i: usize) -> Option<(u8, usize)> {
    pick_word(t, i, MONTHS)
}

/// Behind the name of a stretch: "July", "next month", "the year".
pub(super) fn stretch_name(t: &[char], i: usize) -> Option<usize> {
    let named =
        pick_word(t, i, MONTHS).map(|(_, end)| end).or_else(|| month_or_rest(t, i).map(|(_, _, end)| end));
    named
        .or_else(|| stretch(t, i).map(|(_, end)| end))
        .or_else(|| ["the week", "the year"].iter().find_map(|words| word(t, i, words)))
}
