//! Points, ranges and other wordings of time, found one after another in a text.
//!
//! A scan from left to right. What is tried at one place looks a bounded number of letters ahead, and what
//! was read is not read again, so its cost grows with the length of the text alone.

use std::sync::LazyLock;

use super::cursor::{any, at, before, begins_word, lit, skip, skip_word, space, word};
use super::numerals::{ordinal, small};
use super::point::{Joint, day_piece, point};
use super::said::{Day, Point, Said, Week};
use super::text::Text;
use super::vague::{judged, vague};
use super::words::{OPENING_LETTERS, OPENING_WORDS};
use super::{Lang, clocks, days_en, days_zh, elapsed};
/// A wording and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase {
    pub said: Said,
    pub from: usize,
    pub to: usize,
}

/// More wordings of one text are not looked at: with so many none of them is the one that is meant.
const MOST_PHRASES: usize = 200;

/// All wordings of time in a text, in order.
pub(super) fn scan(text: &Text, lang: Lang) -> Vec<Phrase> {
    let t = text.letters();
    let mut phrases = Vec::new();
    let mut i = 0;
    while i < t.len() && phrases.len() < MOST_PHRASES {
        if let Some(end) = address(t, i) {
            i = end;
            continue;
        }
        match opens(t, i).then(|| phrase(text, i, lang)).flatten() {
            Some((said, end)) if end > i => {
                if said != Said::Nothing {
                    phrases.push(Phrase { said, from: i, to: end });
                }
                i = end;
            }
            _ => i += 1,
        }
    }
    phrases
}

/// Behind a web or mail address, whose digits are no dates.
fn address(t: &[char], i: usize) -> Option<usize> {
    if !begins_word(t, i) {
        return None;
    }
    let begin = any(t, i, &["http://", "https://", "www.", "ftp://", "file://"])?;
    let length = t[begin..].iter().take_while(|letter| letter.is_ascii_graphic()).count();
    Some(begin + length)
}

/// Whether a wording of time can begin here; what cannot be one is passed over without a trial.
pub(super) fn opens(t: &[char], i: usize) -> bool {
    static TABLE: LazyLock<Vec<bool>> = LazyLock::new(|| {
        let mut table = vec![false; 0xa000];
        for letter in OPENING_LETTERS.chars() {
            if let Some(place) = table.get_mut(letter as usize) {
                *place = true;
            }
        }
        table
    });
    match at(t, i) {
        letter if letter.is_ascii_digit() => !before(t, i).is_ascii_digit(),
        letter if letter.is_ascii_alphabetic() => begins_word(t, i) && opens_word(t, i),
        letter => TABLE.get(letter as usize).is_some_and(|opens| *opens),
    }
}

fn opens_word(t: &[char], i: usize) -> bool {
    let mut word = [0; 12];
    let mut length = 0;
    for place in &mut word {
        match u8::try_from(at(t, i + length)) {
            Ok(letter) if letter.is_ascii_alphabetic() => *place = letter,
            _ => break,
        }
        length += 1;
    }
    let quarter = length == 1 && word[0] == b'q';
    quarter || OPENING_WORDS.binary_search_by(|known| known.as_bytes().cmp(&word[..length])).is_ok()
}

/// Reads the wording that begins here.
pub(super) fn phrase(text: &Text, i: usize, lang: Lang) -> Option<(Said, usize)> {
    let t = text.letters();
    let (latin, han) = (at(t, i).is_ascii_alphabetic(), !at(t, i).is_ascii());
    if latin && !begins_word(t, i) {
        return None;
    }
    if let Some(found) = recurring(text, i, lang) {
        return Some(found);
    }
    if let Some(end) = vague(t, i) {
        return Some((Said::Vague, end));
    }
    let counted = match if latin { None } else { elapsed::chinese(t, i) } {
        found @ (None | Some((Said::Nothing, _))) if !han => elapsed::latin(t, i).or(found),
        found => found,
    };
    if let Some((Said::Within(_) | Said::Vague | Said::Recurring, _)) = counted {
        return counted;
    }
    if let Some((Said::After(amount), end)) = counted
        && amount.exact
    {
        return Some((Said::After(amount), end));
    }
    between(text, i, lang).or_else(|| ranged(text, i, lang)).or(counted)
}

/// 每周五, every Friday, daily.
fn recurring(text: &Text, i: usize, lang: Lang) -> Option<(Said, usize)> {
    let t = text.letters();
    if !matches!(at(t, i), '每' | 'd' | 'w' | 'm' | 'y' | 'b' | 'e') {
        return None;
    }
    let (begin, latin) = if let Some(end) = any(t, i, &["每逢", "每个", "每"]) {
        (end, false)
    } else {
        if let Some(end) =
            ["daily", "weekly", "monthly", "yearly", "biweekly", "everyday", "every day", "every other day"]
                .iter()
                .find_map(|words| word(t, i, words))
        {
            return begins_word(t, i).then_some((Said::Recurring, end));
        }
        let end = ["every other", "every", "each"].iter().find_map(|words| word(t, i, words))?;
        (space(t, end), true)
    };
    if let Some((Said::Point(_) | Said::Range(..), end)) = ranged(text, begin, lang) {
        return Some((Said::Recurring, end));
    }
    let end = if latin {
        [
            "day",
            "week",
            "month",
            "year",
            "morning",
            "afternoon",
            "evening",
            "night",
            "hour",
            "weekday",
            "weekend",
            "two weeks",
        ]
        .iter()
        .find_map(|unit| word(t, begin, unit))?
    } else {
        any(t, begin, &["天", "日", "周", "星期", "礼拜", "月", "年", "晚", "早", "小时", "季度", "学期"])?
    };
    let next = space(t, skip(t, end, &["的"]));
    let end = match ranged(text, next, lang) {
        Some((Said::Point(_) | Said::Range(..), last)) => last,
        _ => end,
    };
    Some((Said::Recurring, end))
}

/// Behind a word or a sign between the ends of a range.
pub(super) fn connector(t: &[char], i: usize) -> Option<usize> {
    any(t, i, &["到", "至", "-", "~", "直到"])
        .or_else(|| ["to", "until", "till", "through", "thru"].iter().find_map(|words| word(t, i, words)))
}

/// "between A and B".
fn between(text: &Text, i: usize, lang: Lang) -> Option<(Said, usize)> {
    let t = text.letters();
    let begin = space(t, word(t, i, "between").filter(|_| begins_word(t, i))?);
    let hour = |i: usize| {
        clocks::plain_hour(t, i).map(|(clock, end)| (Point { clock: Some(clock), ..Point::default() }, end))
    };
    let (from, end) = point(text, begin, lang).or_else(|| hour(begin))?;
    let next = space(t, end);
    let next = space(t, word(t, next, "and").or_else(|| lit(t, next, "-"))?);
    let (to, end) = point(text, next, lang).or_else(|| {
        let (mut to, end) = hour(next)?;
        let place = skip_word(t, space(t, end), &["on"]);
        let last = day_piece(text, place, &mut to, lang, Joint::Gap).unwrap_or(end);
        Some((to, last))
    })?;
    Some((Said::Range(shared_day(from, to), to), end))
}

/// A beginning with the day of its end where that was told last.
fn shared_day(from: Point, to: Point) -> Point {
    if from.day.is_none() && to.day_last { Point { day: to.day, also: to.also, ..from } } else { from }
}

/// A point, or a range of two.
fn ranged(text: &Text, i: usize, lang: Lang) -> Option<(Said, usize)> {
    let t = text.letters();
    let (from, end) = point(text, i, lang)?;
    // A和B之间
    if let Some(next) = any(t, space(t, end), &["和", "与", "跟"])
        && let Some((to, end)) = point(text, space(t, next), lang)
        && let Some(end) = any(t, space(t, end), &["之间", "间"])
    {
        return Some((Said::Range(from, to), end));
    }
    let joint = skip(t, space(t, end), &["起", "开始"]);
    let Some(next) = connector(t, space(t, joint)) else {
        return Some(judged(t, i, from, end));
    };
    let next = skip(t, space(t, next), &["于"]);
    let Some((to, last)) = range_end(text, next, lang, &from) else {
        return Some(judged(t, i, from, end));
    };
    let from = shared_day(from, to);
    // "Mon-Wed 9-11am": the clock times belong to both days.
    if from.clock.is_none()
        && to.clock.is_some()
        && let Some(next) = connector(t, space(t, last))
        && let Some((close, last)) = point(text, space(t, next), lang)
        && close.day.is_none()
        && close.clock.is_some()
    {
        let part = to.part.or(from.part);
        let from = Point { clock: to.clock, part, ..from };
        let to = Point { clock: close.clock, part: close.part.or(part), ..to };
        return Some((Said::Range(from, to), last));
    }
    Some((Said::Range(from, to), skip(t, last, &["之间", "期间"])))
}

fn range_end(text: &Text, i: usize, lang: Lang, from: &Point) -> Option<(Point, usize)> {
    let t = text.letters();
    let chinese_week = matches!(from.day, Some(Day::Weekday(..))) && from.clock.is_none();
    if chinese_week
        && let Some(weekday) = days_zh::weekday_letter(t, i)
        && !at(t, i).is_ascii_digit()
        && !matches!(at(t, i + 1), '点' | '号' | '月' | '楼' | '十' | '个')
    {
        return Some((Point { day: Some(Day::Weekday(Week::Nearest, weekday)), ..Point::default() }, i + 1));
    }
    if let Some(begin) = any(t, i, &["次日", "翌日", "第二天", "隔天"])
        && from.clock.is_some()
    {
        let (to, end) = point(text, space(t, begin), lang).filter(|(to, _)| to.day.is_none())?;
        let day = from.day.unwrap_or(Day::Offset(0));
        return Some((Point { day: Some(day), also: from.also, shift: from.shift + 1, ..to }, end));
    }
    if let Some(found) = number_of_day(t, i, from) {
        return Some(found);
    }
    if let Some(found) = point(text, i, lang) {
        return Some(found);
    }
    // "tomorrow 2-4"
    if from.clock.is_some()
        && let Some((clock, end)) = clocks::plain_hour(t, i)
    {
        return Some((Point { clock: Some(clock), ..Point::default() }, end));
    }
    None
}

/// The last day of "July 3-5", "7月3-5", "July 3 to 5, 2026".
fn number_of_day(t: &[char], i: usize, from: &Point) -> Option<(Point, usize)> {
    let dated = matches!(from.day, Some(Day::Date { .. } | Day::OfMonth(_) | Day::Lunar { .. }))
        && from.clock.is_none();
    let (day, end) =
        ordinal(t, i).or_else(|| small(t, i)).filter(|(day, _)| dated && (1..=31).contains(day))?;
    let end = skip(t, end, &["日", "号"]);
    let next = space(t, end);
    let clock = clocks::meridiem(t, end).is_some() || word(t, next, "o'clock").is_some();
    let other = clock || days_en::month_name(t, skip_word(t, next, &["of"])).is_some();
    if other
        || at(t, end).is_ascii_alphanumeric()
        || matches!(at(t, end), '点' | '时' | ':' | '个' | '人' | '/' | '.' | '月' | '年' | '-')
    {
        return None;
    }
    // "July 3-5, 2026"
    let named = match (from.day, days_en::trailing_year(t, end)) {
        (Some(Day::Date { year: None, month, .. }), (Some(year), end)) => {
            Some((Day::Date { year: Some(year), month, day }, end))
        }
        _ => None,
    };
    let (day, end) = named.unwrap_or((Day::OfMonth(day), end));
    Some((Point { day: Some(day), ..Point::default() }, end))
}
