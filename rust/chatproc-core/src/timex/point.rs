//! One point: day, part of the day, clock time and zone in any order that the languages have.

use super::cursor::{any, at, before, pick, skip, skip_word, space};
use super::numerals::{ordinal, small};
use super::phrase::connector;
use super::said::{Day, Month, Part, Period, Point, Week};
use super::text::Text;
use super::{Lang, clocks, dates, days_en, days_zh, parts, places};

/// Reads one point: day, part of the day, clock time and zone in any order that the languages have.
pub(super) fn point(text: &Text, i: usize, lang: Lang) -> Option<(Point, usize)> {
    let t = text.letters();
    let mut point = Point::default();
    let mut end = piece(text, i, &mut point, lang, Joint::First)?;
    for _ in 0..6 {
        let direct = piece(text, end, &mut point, lang, Joint::Direct);
        let next = direct.or_else(|| {
            let (place, comma) = glue(t, end);
            (place > end)
                .then(|| piece(text, place, &mut point, lang, if comma { Joint::Comma } else { Joint::Gap }))
                .flatten()
        });
        let Some(next) = next else { break };
        end = if at(t, next) == ')' && t[i..next].contains(&'(') { next + 1 } else { next };
    }
    if point.clock.is_none()
        && (point.day.is_some() || point.part.is_some())
        && let Some(next) = clocks::about(t, end)
    {
        // 明天下午七八点: the day is sure, the hour is not.
        end = next;
    }
    let single = !matches!(point.day, None | Some(Day::Period(_)));
    if let Some((days, next)) = shift(t, end).filter(|_| single && point.clock.is_none()) {
        point.shift = days;
        end = next;
    }
    let told = point.day.is_some() || point.clock.is_some() || point.part.is_some();
    told.then_some((point, end))
}

/// 前一天, 后两天, 第二天 behind a day.
fn shift(t: &[char], i: usize) -> Option<(i64, usize)> {
    let i = skip(t, i, &["的"]);
    if let Some(end) = any(t, i, &["第二天", "次日", "翌日"]) {
        return Some((1, end));
    }
    let (sign, begin) = pick(t, i, &[("前", -1), ("后", 1)])?;
    let (days, end) = small(t, begin)?;
    Some((sign * i64::from(days), any(t, end, &["天", "日"])?))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    First,
    Direct,
    Gap,
    Comma,
}

/// What may stand between two pieces of one point, and whether a comma was among it.
fn glue(t: &[char], i: usize) -> (usize, bool) {
    let (mut end, mut comma) = (i, false);
    for _ in 0..4 {
        let next = match at(t, end) {
            ' ' | '(' | '的' | '@' | ')' => end + 1,
            ',' | '、' if !comma => {
                comma = true;
                end + 1
            }
            _ => {
                let next = skip_word(t, end, &["at", "on", "by", "around", "in"]);
                if next == end {
                    break;
                }
                // "in the morning" is a part of the day of its own.
                if t[end] == 'i' {
                    break;
                }
                next
            }
        };
        end = next;
    }
    (end, comma)
}

fn piece(text: &Text, i: usize, point: &mut Point, lang: Lang, joint: Joint) -> Option<usize> {
    let t = text.letters();
    let iso = joint == Joint::Direct && at(t, i) == 't' && point.day.is_some();
    if iso && let Some((clock, _, end)) = clocks::latin(t, i + 1).filter(|_| point.clock.is_none()) {
        point.clock = Some(clock);
        if let Some((place, end)) = places::after_clock(text, end, true) {
            point.place = Some(place);
            return Some(end);
        }
        return Some(end);
    }
    if point.place.is_none() {
        let named = if point.clock.is_some() {
            places::after_clock(text, i, false)
        } else {
            places::before_clock(text, i)
        };
        if let Some((place, end)) = named {
            point.place = Some(place);
            return Some(end);
        }
    }
    day_piece(text, i, point, lang, joint)
        .or_else(|| part_piece(t, i, point, joint))
        .or_else(|| clock_piece(t, i, point, joint))
}

pub(super) fn day_piece(text: &Text, i: usize, point: &mut Point, lang: Lang, joint: Joint) -> Option<usize> {
    let t = text.letters();
    if point.also.is_some() || (point.clock.is_some() && joint == Joint::Comma && point.day.is_some()) {
        return None;
    }
    let (latin, han) = (at(t, i).is_ascii_alphabetic(), !at(t, i).is_ascii());
    let (day, end) = first_day_of_span(t, i)
        .or_else(|| dates::day(t, i, lang == Lang::Chinese))
        .or_else(|| if latin { None } else { days_zh::day(t, i) })
        .or_else(|| if han { None } else { days_en::day(text, i) })
        .or_else(|| bracketed_weekday(t, i))?;
    match point.day {
        None => {
            point.day = Some(day);
            point.day_last = point.clock.is_some();
        }
        Some(known) => {
            if let Some(joined) = joined(known, day) {
                point.day = Some(joined);
            } else if complementary(known, day) {
                point.also = Some(day);
            } else {
                return None;
            }
        }
    }
    Some(end)
}

/// 7/3(五)
fn bracketed_weekday(t: &[char], i: usize) -> Option<(Day, usize)> {
    let weekday = days_zh::weekday_letter(t, i)?;
    (before(t, i) == '(' && at(t, i + 1) == ')').then_some((Day::Weekday(Week::Nearest, weekday), i + 1))
}

/// 3-5号: the first day of a span whose last one says 号.
fn first_day_of_span(t: &[char], i: usize) -> Option<(Day, usize)> {
    if before(t, i).is_ascii_alphanumeric() || matches!(before(t, i), '第' | '.' | '-' | '/' | ':') {
        return None;
    }
    let (day, end) = ordinal(t, i).or_else(|| small(t, i)).filter(|(day, _)| (1..=31).contains(day))?;
    let next = connector(t, space(t, end))?;
    let begin = space(t, next);
    let (last, close) =
        ordinal(t, begin).or_else(|| small(t, begin)).filter(|(last, _)| (1..=31).contains(last))?;
    if days_en::month_name(t, skip_word(t, space(t, close), &["of"])).is_some() {
        return Some((Day::OfMonth(day), end));
    }
    let close = any(t, space(t, close), &["号", "日"])?;
    let thing =
        matches!(at(t, close), '楼' | '线' | '机' | '门' | '内' | '后' | '馆' | '房' | '教' | '桌' | '位');
    (last > day && !thing).then_some((Day::OfMonth(day), end))
}

/// A stretch and a day in it that are told one after the other: 下周 周五, 下个月 5号, 明年 3月5日.
fn joined(known: Day, day: Day) -> Option<Day> {
    match (known, day) {
        (Day::Period(Period::Week(weeks)), Day::Weekday(Week::Nearest, weekday))
        | (Day::Weekday(Week::Nearest, weekday), Day::Period(Period::Week(weeks))) => {
            Some(Day::Weekday(Week::From(weeks), weekday))
        }
        (Day::Period(Period::Month(year, month)), Day::OfMonth(day)) => Some(Day::Date { year, month, day }),
        (Day::OfMonth(day), Day::Period(Period::Month(year, month @ Month::Of(_)))) => {
            Some(Day::Date { year, month, day })
        }
        (Day::Period(Period::Year(year)), Day::Date { year: None, month, day }) => {
            Some(Day::Date { year: Some(year), month, day })
        }
        _ => None,
    }
}

/// Whether two wordings can name the same day: a weekday and a date.
fn complementary(known: Day, day: Day) -> bool {
    let weekday = |day: Day| matches!(day, Day::Weekday(..));
    let dated = |day: Day| {
        matches!(
            day,
            Day::Date { .. }
                | Day::OfMonth(_)
                | Day::Stroke { .. }
                | Day::Lunar { .. }
                | Day::Offset(_)
                | Day::After { .. }
                | Day::Festival(..)
        )
    };
    let relative = |day: Day| matches!(day, Day::Offset(_));
    (weekday(known) && dated(day))
        || (dated(known) && weekday(day))
        || (relative(known) && dated(day) && !relative(day))
        || (dated(known) && relative(day) && !relative(known))
}

fn part_piece(t: &[char], i: usize, point: &mut Point, joint: Joint) -> Option<usize> {
    let joined = (joint == Joint::Direct || joint == Joint::Gap) && point.day.is_some();
    let timed = joined || point.clock.is_some();
    let (part, end) = parts::part_zh(t, i, joined && joint == Joint::Direct)
        .filter(|_| point.clock.is_none())
        .or_else(|| parts::part_en(t, i, timed))?;
    match point.part {
        None | Some(Part::DayEnd) => point.part = Some(part),
        Some(Part::Evening | Part::Night) if part == Part::Dawn || part == Part::Night => {
            point.eve = true;
            point.part = Some(part);
        }
        // "早上上午", "今晚晚上": said twice.
        Some(known) if known == part => {}
        _ => return None,
    }
    Some(end)
}

fn clock_piece(t: &[char], i: usize, point: &mut Point, joint: Joint) -> Option<usize> {
    if point.clock.is_some() {
        return None;
    }
    let alone = joint == Joint::First || (point.day.is_none() && point.part.is_none());
    if let Some((clock, part, end)) = clocks::latin(t, i) {
        if let Some(part) = part {
            point.part = Some(part);
        }
        point.clock = Some(clock);
        return Some(end);
    }
    let (clock, end) = clocks::first_of_span(t, i, !alone).or_else(|| clocks::chinese(t, i, alone))?;
    point.clock = Some(clock);
    if let Some((part, end)) = clocks::meridiem(t, end) {
        point.part = Some(part);
        return Some(end);
    }
    Some(end)
}
