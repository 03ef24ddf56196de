//! Stretches of days in English and the days that they bound: next week, the third quarter, the end of the
//! month, the last Friday of August.

use super::cursor::{at, lit, pick_word, skip_word, space, word};
use super::days_en::{MONTHS, WEEKDAYS, trailing_year};
use super::numerals::{digits, ordinal, small};
use super::said::{Day, Month, Period, Week, Year};
use super::text::Text;

/// "first Monday of August", "the last Friday of the month".
pub(super) fn nth(t: &[char], i: usize) -> Option<(Day, usize)> {
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
pub(super) fn end_of(text: &Text, i: usize) -> Option<(Day, usize)> {
    const SHORT: &[(&str, Period)] = &[
        ("eow", Period::EndOfWeek(0)),
        ("eom", Period::Month(None, Month::From(0))),
        ("eoq", Period::QuarterFrom(0)),
        ("eoy", Period::Year(Year::From(0))),
    ];
    const LONG: &[(&str, Period)] = &[
        ("the week", Period::EndOfWeek(0)),
        ("this week", Period::EndOfWeek(0)),
        ("current week", Period::EndOfWeek(0)),
        ("the current week", Period::EndOfWeek(0)),
        ("week", Period::EndOfWeek(0)),
        ("next week", Period::EndOfWeek(1)),
        ("the next week", Period::EndOfWeek(1)),
        ("the following week", Period::EndOfWeek(1)),
        ("last week", Period::EndOfWeek(-1)),
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
    let end = ["end of", "last day of", "last day in"].iter().find_map(|end_of| word(t, begin, end_of))?;
    let begin = space(t, end);
    if let Some((period, end)) = pick_word(t, begin, LONG) {
        return Some((whole(period), end));
    }
    if let Some((year, end)) =
        digits(t, begin).filter(|&(year, end)| end - begin == 4 && (1900..=2199).contains(&year))
    {
        let year = Year::Of(i16::try_from(year).ok()?);
        return (!at(t, end).is_ascii_alphanumeric()).then_some((Day::EndOf(Period::Year(year)), end));
    }
    let (year, month, end) = month_or_rest(t, begin)?;
    Some((Day::EndOf(Period::Month(year, month)), end))
}

pub(super) fn stretch(t: &[char], i: usize) -> Option<(Day, usize)> {
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
        ("this past weekend", Period::Weekend(Week::Last)),
        ("the past weekend", Period::Weekend(Week::Last)),
        ("past weekend", Period::Weekend(Week::Last)),
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
            if end - i == 4 && (1900..=2199).contains(&year) && matches!(at(t, end), ' ' | '-' | 'q') =>
        {
            (Some(Year::Of(i16::try_from(year).ok()?)), if at(t, end) == 'q' { end } else { end + 1 })
        }
        _ => (None, i),
    };
    let (quarter, end) = match lit(t, begin, "q") {
        Some(end) => small(t, end)?,
        None => spelled_quarter(t, begin)?,
    };
    if !(1..=4).contains(&quarter) {
        return None;
    }
    if at(t, end).is_ascii_alphanumeric() {
        return None;
    }
    let (trailing, last) = trailing_year(t, if at(t, end) == '-' { end + 1 } else { end });
    let end = if trailing.is_some() { last } else { end };
    Some((Day::Period(Period::Quarter(year.or(trailing), quarter)), end))
}

/// "the third quarter", "4th quarter".
fn spelled_quarter(t: &[char], i: usize) -> Option<(u8, usize)> {
    let (quarter, end) = ordinal(t, skip_word(t, i, &["the"]))?;
    ["quarter", "qtr"].iter().find_map(|unit| Some((quarter, word(t, space(t, end), unit)?)))
}

/// Behind the name of a stretch: "July", "next month", "the year".
pub(super) fn stretch_name(t: &[char], i: usize) -> Option<usize> {
    let named =
        pick_word(t, i, MONTHS).map(|(_, end)| end).or_else(|| month_or_rest(t, i).map(|(_, _, end)| end));
    named
        .or_else(|| stretch(t, i).map(|(_, end)| end))
        .or_else(|| ["the week", "the year"].iter().find_map(|words| word(t, i, words)))
}
