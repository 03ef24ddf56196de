//! Points, ranges and other wordings of time, found one after another in a text.
//!
//! A scan from left to right. What is tried at one place looks a bounded number of letters ahead, and what
//! was read is not read again, so its cost grows with the length of the text alone.

use super::cursor::{any, at, before, begins_word, lit, skip, skip_word, space, word};
use super::numerals::small;
use super::said::{Day, Month, Part, Period, Point, Said, Week};
use super::text::Text;
use super::{Lang, clocks, dates, days_en, days_zh, elapsed, places};

/// A wording and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase {
    pub said: Said,
    pub from: usize,
    pub to: usize,
}

/// All wordings of time in a text, in order.
pub(super) fn scan(text: &Text, lang: Lang) -> Vec<Phrase> {
    let t = text.letters();
    let mut phrases = Vec::new();
    let mut i = 0;
    while i < t.len() {
        if let Some(end) = address(t, i) {
            i = end;
            continue;
        }
        match phrase(text, i, lang) {
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

fn phrase(text: &Text, i: usize, lang: Lang) -> Option<(Said, usize)> {
    let t = text.letters();
    let letter = at(t, i);
    if !(letter.is_ascii_alphanumeric() || letter > '\u{2e80}')
        || (letter.is_ascii_alphabetic() && !begins_word(t, i))
    {
        return None;
    }
    if let Some(found) = recurring(text, i, lang) {
        return Some(found);
    }
    if let Some(end) = vague(t, i) {
        return Some((Said::Vague, end));
    }
    let counted = elapsed::chinese(t, i).or_else(|| elapsed::latin(t, i));
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

/// Words for a time that is not certain.
fn vague(t: &[char], i: usize) -> Option<usize> {
    const WORDS: &[&str] = &[
        "尽快",
        "尽早",
        "近期",
        "最近",
        "这两天",
        "这几天",
        "这两日",
        "过两天",
        "过几天",
        "改天",
        "改日",
        "回头",
        "有空",
        "抽空",
        "稍后",
        "待会",
        "等会",
        "一会儿",
        "晚些时候",
        "晚点",
        "到时候",
        "届时",
        "月初",
        "月中",
        "年初",
        "年中",
        "周中",
        "过阵子",
        "这阵子",
        "不久",
        "择日",
        "近日",
        "早日",
        "年前",
        "年后",
        "节前",
        "节后",
        "下次",
        "这段时间",
    ];
    const LATIN: &[&str] = &[
        "asap",
        "as soon as possible",
        "soon",
        "shortly",
        "later today",
        "later this week",
        "some time",
        "sometime",
        "some day",
        "someday",
        "one day",
        "these days",
        "early next week",
        "mid next week",
        "late next week",
        "early this week",
        "later",
        "eventually",
        "recently",
    ];
    let counted = before(t, i).is_ascii_digit() || "零一二两三四五六七八九十百千半个".contains(before(t, i));
    if let Some(end) = any(t, i, WORDS).filter(|_| !(counted && matches!(at(t, i), '年' | '月'))) {
        return Some(end);
    }
    if let Some(end) = term_week(t, i) {
        return Some(end);
    }
    if !begins_word(t, i) {
        return None;
    }
    if let Some(end) = LATIN.iter().find_map(|words| word(t, i, words)) {
        return Some(end);
    }
    let begin = [
        "early",
        "mid",
        "late",
        "beginning of",
        "the beginning of",
        "the middle of",
        "middle of",
        "start of",
        "the start of",
    ]
    .iter()
    .find_map(|words| word(t, i, words))?;
    let begin = if at(t, begin) == '-' { begin + 1 } else { space(t, begin) };
    days_en::stretch_name(t, begin)
}

/// 第8周周五, 单周周三: a week that only the term's calendar knows.
fn term_week(t: &[char], i: usize) -> Option<usize> {
    let end = match any(t, i, &["单周", "双周", "隔周"]) {
        Some(end) => end,
        None => lit(t, small(t, lit(t, i, "第")?)?.1, "周")?,
    };
    let end = skip(t, end, &["的"]);
    let end = any(t, end, &["周", "星期", "礼拜"]).unwrap_or(end);
    Some(if days_zh::weekday_letter(t, end).is_some() { end + 1 } else { end })
}

/// Behind a word or a sign between the ends of a range.
pub(super) fn connector(t: &[char], i: usize) -> Option<usize> {
    any(t, i, &["到", "至", "-", "~", "直到"])
        .or_else(|| ["to", "until", "till", "through", "thru"].iter().find_map(|words| word(t, i, words)))
}

/// "between A and B".
fn between(text: &Text, i: usize, lang: Lang) -> Option<(Said, usize)> {
    let t = text.letters();
    if let Some(begin) = word(t, i, "between").filter(|_| begins_word(t, i)) {
        let (from, end) = point(text, space(t, begin), lang)?;
        let (to, end) = point(text, space(t, word(t, space(t, end), "and")?), lang)?;
        return Some((Said::Range(from, to), end));
    }
    None
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
        return Some((uncertain(t, i, from, end), end_of_uncertain(t, from, end)));
    };
    let next = skip(t, space(t, next), &["于"]);
    let Some((to, last)) = range_end(text, next, lang, &from) else {
        return Some((uncertain(t, i, from, end), end_of_uncertain(t, from, end)));
    };
    let from =
        if from.day.is_none() && to.day_last { Point { day: to.day, also: to.also, ..from } } else { from };
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
    if let Some(found) = point(text, i, lang) {
        return Some(found);
    }
    // "July 3-5", "7月3-5"
    let dated = matches!(from.day, Some(Day::Date { .. } | Day::OfMonth(_) | Day::Lunar { .. }))
        && from.clock.is_none();
    let (day, end) = small(t, i).filter(|(day, _)| dated && (1..=31).contains(day))?;
    let end = ["th", "st", "nd", "rd"].iter().find_map(|suffix| word(t, end, suffix)).unwrap_or(end);
    let end = skip(t, end, &["日", "号"]);
    (!at(t, end).is_ascii_alphanumeric() && !matches!(at(t, end), '点' | '时' | ':' | '个' | '人' | '/'))
        .then_some((Point { day: Some(Day::OfMonth(day)), ..Point::default() }, end))
}

/// A day that is only about right is no certain time: 月底左右, 7月初, 大概周五.
fn uncertain(t: &[char], i: usize, point: Point, end: usize) -> Said {
    let next = space(t, end);
    let about = any(t, next, &["左右", "前后", "上下", "附近", "或者"]).is_some()
        || lit(t, next, "或").is_some_and(|end| !matches!(at(t, end), '之' | '以'))
        || beyond(t, next, point)
        || (0..i).rev().take(6).any(|from| {
            any(
                t,
                from,
                &[
                    "大概在",
                    "大约在",
                    "大概",
                    "大约",
                    "约",
                    "估计",
                    "差不多",
                    "可能",
                    "maybe ",
                    "around ",
                    "about ",
                    "probably ",
                ],
            )
            .is_some_and(|end| end == i)
        });
    if point.clock.is_none() && (about || end_of_uncertain(t, point, end) > end) {
        Said::Vague
    } else {
        Said::Point(point)
    }
}

/// Whether a month or a year is narrowed down by words that are not understood: 2026年的第二周, 今年夏天.
fn beyond(t: &[char], i: usize, point: Point) -> bool {
    let whole = matches!(point.day, Some(Day::Period(Period::Month(..) | Period::Year(_) | Period::Week(_))));
    let i = skip(t, i, &["的"]);
    const WORDS: &[&str] =
        &["第", "最后", "头", "春", "夏", "秋", "冬", "暑", "寒", "前几", "后几", "这时", "同期", "某", "哪"];
    let counted = any(t, i, &["前", "后"]).is_some_and(|end| small(t, end).is_some());
    whole && (counted || any(t, i, WORDS).is_some())
}

/// Behind 初 or 中 of a month or a year.
fn end_of_uncertain(t: &[char], point: Point, end: usize) -> usize {
    let whole =
        matches!(point.day, Some(Day::Period(Period::Month(..) | Period::Year(_) | Period::LunarMonth(..))));
    let next = match at(t, end) {
        '初' | '中' => at(t, end + 1),
        _ => return end,
    };
    if whole && point.clock.is_none() && !matches!(next, '午' | '旬' | '国' | '秋') {
        end + 1
    } else {
        end
    }
}

/// Reads one point: day, part of the day, clock time and zone in any order that the languages have.
fn point(text: &Text, i: usize, lang: Lang) -> Option<(Point, usize)> {
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
    let told = point.day.is_some() || point.clock.is_some() || point.part.is_some();
    told.then_some((point, end))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
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
                if t[end] == 'i' || t[end] == 'b' {
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

fn day_piece(text: &Text, i: usize, point: &mut Point, lang: Lang, joint: Joint) -> Option<usize> {
    let t = text.letters();
    if point.also.is_some() || (point.clock.is_some() && joint == Joint::Comma && point.day.is_some()) {
        return None;
    }
    let (day, end) = first_day_of_span(t, i)
        .or_else(|| dates::day(t, i, lang == Lang::Chinese))
        .or_else(|| days_zh::day(t, i))
        .or_else(|| days_en::day(text, i))?;
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

/// 3-5号: the first day of a span whose last one says 号.
fn first_day_of_span(t: &[char], i: usize) -> Option<(Day, usize)> {
    if before(t, i).is_ascii_alphanumeric() || matches!(before(t, i), '第' | '.' | '-' | '/' | ':') {
        return None;
    }
    let (day, end) = small(t, i).filter(|(day, _)| (1..=31).contains(day))?;
    let next = connector(t, space(t, end))?;
    let (last, close) = small(t, space(t, next)).filter(|(last, _)| (1..=31).contains(last))?;
    let close = any(t, space(t, close), &["号", "日"])?;
    let thing =
        matches!(at(t, close), '楼' | '线' | '机' | '门' | '内' | '后' | '馆' | '房' | '教' | '桌' | '位');
    (last > day && !thing).then_some((Day::OfMonth(day), end))
}

/// A stretch and a day in it that are told one after the other: 下周 周五, 下个月 5号, 明年 3月5日.
fn joined(known: Day, day: Day) -> Option<Day> {
    match (known, day) {
        (Day::Period(Period::Week(weeks)), Day::Weekday(Week::Nearest, weekday)) => {
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
    let (part, end) = clocks::part_zh(t, i, joined && joint == Joint::Direct)
        .filter(|_| point.clock.is_none())
        .or_else(|| clocks::part_en(t, i, timed))?;
    match point.part {
        None => point.part = Some(part),
        Some(Part::Evening | Part::Night) if part == Part::Dawn || part == Part::Night => {
            point.eve = true;
            point.part = Some(part);
        }
        // "早上上午", "今晚晚上": said twice.
        Some(known) if known == part => {}
        Some(Part::DayEnd) => point.part = Some(part),
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
    let (clock, end) = clocks::first_of_span(t, i).or_else(|| clocks::chinese(t, i, alone))?;
    point.clock = Some(clock);
    if let Some((part, end)) = clocks::meridiem(t, end) {
        point.part = Some(part);
        return Some(end);
    }
    Some(end)
}
