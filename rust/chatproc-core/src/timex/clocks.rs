//! Clock times and parts of the day: 下午3点半, 20:00, 差五分八点, half past three, 5pm, noon.

use super::cursor::{any, at, before, begins_word, lit, one_of, pick, pick_word, skip, space, word};
use super::numerals::{digits, english, han_digits, small};
use super::said::{Clock, Face, Part};

fn clock(hour: u8, minute: u8, second: u8, face: Face) -> Option<Clock> {
    let fits = hour < 24 || (hour == 24 && minute == 0 && second == 0);
    (fits && minute < 60 && second < 60).then_some(Clock { hour, minute, second, face })
}

/// Which face an hour without more is read on.
fn face(hour: u8) -> Face {
    if (1..=12).contains(&hour) { Face::Open } else { Face::Full }
}

/// 8:30, 20:00:15. A zero in front, seconds or 12 and more mean the clock of 24 hours.
fn colon(t: &[char], i: usize) -> Option<(Clock, usize)> {
    if before(t, i).is_ascii_digit() || matches!(before(t, i), ':' | '.' | '/') {
        return None;
    }
    let two = |i: usize| {
        digits(t, i)
            .filter(|&(_, end)| end - i == 2)
            .and_then(|(value, end)| Some((u8::try_from(value).ok()?, end)))
    };
    let (hour, end) = small(t, i).filter(|_| at(t, i).is_ascii_digit())?;
    let (minute, mut last) = two(space(t, lit(t, space(t, end), ":")?))?;
    let mut second = 0;
    let mut seconds = false;
    if let Some(found) = lit(t, last, ":").and_then(two) {
        (second, last) = found;
        seconds = true;
        if at(t, last) == '.' && at(t, last + 1).is_ascii_digit() {
            last = digits(t, last + 1)?.1;
        }
    }
    if at(t, last).is_ascii_digit() || (at(t, last) == ':' && at(t, last + 1).is_ascii_digit()) {
        return None;
    }
    // "11:00时"
    last = lit(t, last, "时").filter(|&end| !one_of(t, end, "候间刻期代常段差长")).unwrap_or(last);
    let open = (1..12).contains(&hour) && at(t, i) != '0' && !seconds;
    Some((clock(hour, minute, second, if open { Face::Open } else { Face::Full })?, last))
}

/// An hour between two: 七八点, 6、7点, 十一二点.
pub(super) fn about(t: &[char], i: usize) -> Option<usize> {
    const ONES: &str = "零一二三四五六七八九";
    let written = at(t, i).is_ascii_digit();
    let one = |i: usize| {
        let place = ONES.chars().position(|one| one == at(t, i)).or((at(t, i) == '两').then_some(2))?;
        Some((u32::try_from(place).ok()?, i + 1))
    };
    let (first, end) =
        if written { small(t, i).map(|(hour, end)| (hour.into(), end))? } else { one(skip(t, i, &["十"]))? };
    let next = if written { lit(t, end, "、")? } else { end };
    let (second, end) = if written { digits(t, next)? } else { one(next)? };
    any(t, end, &["点钟", "点"]).filter(|_| second == first + 1)
}

/// Reads a Chinese clock time. `alone`: nothing before it says that it is one.
pub(super) fn chinese(t: &[char], i: usize, alone: bool) -> Option<(Clock, usize)> {
    if let Some(found) = colon(t, i) {
        return Some(found);
    }
    if let Some(end) = lit(t, i, "正午") {
        return Some((clock(12, 0, 0, Face::Full)?, end));
    }
    if let Some(found) = minus(t, i) {
        return Some(found);
    }
    if before(t, i).is_ascii_digit() || before(t, i) == '第' || before(t, i) == '.' {
        return None;
    }
    let (hour, end) = small(t, i).filter(|(hour, _)| *hour <= 24)?;
    let end = space(t, end);
    let (mark, end) =
        pick(t, end, &[("点钟", '点'), ("点整", '点'), ("点", '点'), ("时整", '时'), ("时", '时')])?;
    if mark == '时' && matches!(at(t, end), '候' | '间' | '刻' | '期' | '代' | '常' | '段' | '差' | '长')
    {
        return None;
    }
    let minutes = minutes(t, end);
    if alone && mark == '点' && minutes.is_none() && is_count(t, i, end) {
        return None;
    }
    let ((minute, second), end) = minutes.unwrap_or(((0, 0), end));
    let full = at(t, i) == '0' && hour > 0 && at(t, i + 1).is_ascii_digit();
    Some((clock(hour, minute, second, if full { Face::Full } else { face(hour) })?, end))
}

/// What stands behind 点: 半, 一刻, 零五分, 45, 过十分, 30分20秒.
fn minutes(t: &[char], i: usize) -> Option<((u8, u8), usize)> {
    let i = space(t, i);
    if let Some(end) = lit(t, i, "半").filter(|&end| !matches!(at(t, end), '个' | '小' | '天')) {
        return Some(((30, 0), end));
    }
    let quarters = [("一刻", 15), ("1刻", 15), ("三刻", 45), ("3刻", 45), ("两刻", 30)];
    if let Some((minute, end)) = pick(t, i, &quarters) {
        return Some(((minute, 0), end));
    }
    let i = skip(t, i, &["过"]);
    let (minute, end) = if at(t, i) == '零' {
        let (minute, end) = han_digits(t, i)?;
        (u8::try_from(minute).ok()?, end)
    } else {
        small(t, i)?
    };
    let sure = at(t, i) == '零' || end - i >= 2;
    let Some(last) = lit(t, end, "分").filter(|&last| at(t, last) != '钟' || at(t, i - 1) == '过') else {
        // "3点30" is a time, "3点3个人" and "3点2" are not.
        let counts = "个人份张点号月日天楼分题-小节%次位名".contains(at(t, end));
        return (minute < 60 && sure && !counts).then_some(((minute, 0), end));
    };
    let (second, last) =
        small(t, last).and_then(|(second, end)| Some((second, lit(t, end, "秒")?))).unwrap_or((0, last));
    (minute < 60).then_some(((minute, second), last))
}

/// 差五分八点, 差一刻九点.
fn minus(t: &[char], i: usize) -> Option<(Clock, usize)> {
    let begin = lit(t, i, "差")?;
    let (minus, end) = if let Some(end) = lit(t, begin, "一刻") {
        (15, skip(t, end, &["钟"]))
    } else {
        let (minutes, end) = small(t, begin)?;
        (minutes, any(t, end, &["分钟", "分"])?)
    };
    let (hour, end) = small(t, end)?;
    let end = any(t, end, &["点钟", "点"])?;
    let hour = if hour == 0 { 24 } else { hour };
    Some((clock(hour.checked_sub(1)?, 60u8.checked_sub(minus)?, 0, face(hour))?, end))
}

/// Whether "三点" counts points instead of telling the time.
fn is_count(t: &[char], i: usize, end: usize) -> bool {
    const THINGS: &[&str] = &[
        "建议", "要求", "意见", "注意", "说明", "原因", "内容", "理由", "问题", "想法", "感受", "经验",
        "心得", "结论", "需要", "疑问", "好处", "不足", "提示", "规则", "规定", "希望", "改进", "思考",
        "体会", "启示", "不同", "区别", "共识", "事", "都", "也", "儿", "点", "数据", "信息", "了解", "东西",
        "时间", "血", "钱", "进步",
    ];
    let counted = "这那几第述有快早晚慢多少大小高低好差差点".contains(before(t, i)) && before(t, i) != '\0';
    let after_one = at(t, i) == '一'
        && end == i + 2
        && any(
            t,
            end,
            &[
                "前", "之前", "到", "至", "开", "集", "见", "左右", ",", "。", "-", "~", "的", "交", "上",
                "下", "考", "出",
            ],
        )
        .is_none()
        && i + 2 < t.len();
    counted || after_one || any(t, end, THINGS).is_some()
}

const AFTER_NUMBER: &[(&str, Part)] = &[
    ("a.m.", Part::Am),
    ("p.m.", Part::Pm),
    ("a.m", Part::Am),
    ("p.m", Part::Pm),
    ("am", Part::Am),
    ("pm", Part::Pm),
    ("a m", Part::Am),
    ("p m", Part::Pm),
];

/// am or pm behind a clock time.
pub(super) fn meridiem(t: &[char], i: usize) -> Option<(Part, usize)> {
    let (part, end) = pick(t, space(t, i), AFTER_NUMBER)?;
    (!at(t, end).is_ascii_alphanumeric()).then_some((part, end))
}

/// Reads an English clock time with its am or pm. `alone`: no day or part of a day stands before it.
pub(super) fn latin(t: &[char], i: usize) -> Option<(Clock, Option<Part>, usize)> {
    if let Some((time, end)) = colon(t, i) {
        let (part, end) = meridiem(t, end).map_or((None, end), |(part, end)| (Some(part), end));
        return Some((time, part, end));
    }
    if !begins_word(t, i) {
        return None;
    }
    if let Some((time, end)) =
        named(t, i).or_else(|| past_or_to(t, i)).or_else(|| spelled(t, i)).or_else(|| pointed(t, i))
    {
        let (part, end) = meridiem(t, end).map_or((None, end), |(part, end)| (Some(part), end));
        return Some((time, part, end));
    }
    let (hour, end) = english(t, i)?;
    let hour = u8::try_from(hour).ok().filter(|hour| *hour <= 24)?;
    if let Some((part, end)) =
        meridiem(t, end).filter(|_| (1..=12).contains(&hour) && !matches!(before(t, i), '.' | ':'))
    {
        return Some((clock(hour, 0, 0, Face::Open)?, Some(part), end));
    }
    if let Some(end) =
        ["o'clock", "oclock", "o clock", "clock"].iter().find_map(|words| word(t, space(t, end), words))
    {
        let (part, end) = meridiem(t, end).map_or((None, end), |(part, end)| (Some(part), end));
        return Some((clock(hour, 0, 0, face(hour))?, part, end));
    }
    if let Some(end) = ["h", "hrs", "hours"]
        .iter()
        .find_map(|words| word(t, end, words))
        .filter(|_| prompts(t, i) == Some(Prompt::At))
    {
        return Some((clock(hour, 0, 0, Face::Full)?, None, end));
    }
    let parted = (1..=12).contains(&hour) && !".:-/$".contains(before(t, i)) && {
        let next = space(t, end);
        ["in the morning", "in the early morning", "in the afternoon", "in the evening", "at night"]
            .iter()
            .any(|part| word(t, next, part).is_some_and(|end| !at(t, space(t, end)).is_ascii_alphabetic()))
    };
    (parted || bare(t, i, end)).then(|| clock(hour, 0, 0, face(hour))).flatten().map(|time| (time, None, end))
}

fn named(t: &[char], i: usize) -> Option<(Clock, usize)> {
    const NAMES: &[(&str, (u8, Face))] = &[
        ("12 noon", (12, Face::Full)),
        ("noon", (12, Face::Full)),
        ("midday", (12, Face::Full)),
        ("12 midnight", (0, Face::Midnight)),
        ("midnight", (0, Face::Midnight)),
    ];
    let ((hour, face), end) = pick_word(t, i, NAMES)?;
    Some((clock(hour, 0, 0, face)?, end))
}

/// half past three, quarter to 5, ten past four, 20 minutes to six.
fn past_or_to(t: &[char], i: usize) -> Option<(Clock, usize)> {
    let named = pick_word(t, i, &[("a quarter", 15), ("quarter", 15), ("half", 30)]);
    let (minutes, end) = if let Some(found) = named {
        found
    } else {
        let (minutes, end) = english(t, i)?;
        (u8::try_from(minutes).ok().filter(|minutes| (1..60).contains(minutes))?, end)
    };
    let unit = ["minutes", "mins", "min"].iter().find_map(|unit| word(t, space(t, end), unit));
    let end = unit.unwrap_or(end);
    let (past, end) = pick_word(
        t,
        space(t, end),
        &[("past", true), ("after", true), ("to", false), ("before", false), ("till", false), ("of", false)],
    )?;
    let (hour, last) = match pick_word(t, space(t, end), &[("noon", 12), ("midnight", 24)]) {
        Some(named) => named,
        None => english(t, space(t, end)).filter(|(hour, _)| (1..=12).contains(hour))?,
    };
    let hour = u8::try_from(hour).ok()?;
    // "two to four people" is no time, nor is the second half of "two thirty to three".
    let usual = matches!(minutes, 5 | 10 | 15 | 20 | 25 | 30) && (!at(t, i).is_ascii_digit() || past);
    if !(usual || unit.is_some()) || after_number(t, i) || at(t, last) == ':' || at(t, last) == '%' {
        return None;
    }
    let (hour, minute) = match (past, hour) {
        (true, hour) => (hour, minutes),
        (false, 1) => (12, 60 - minutes),
        (false, hour) => (hour - 1, 60 - minutes),
    };
    let face = if at(t, last - 1).is_ascii_alphabetic() && matches!(hour, 11 | 12 | 23 | 24) {
        Face::Full
    } else {
        Face::Open
    };
    Some((clock(hour % 24, minute, 0, face)?, last))
}

/// Whether a number in words stands directly before: "two thirty".
fn after_number(t: &[char], i: usize) -> bool {
    let begin =
        (0..i.saturating_sub(1)).rev().take(8).find(|&k| !t[k].is_ascii_alphabetic()).map_or(0, |k| k + 1);
    i > 1
        && begin < i
        && !at(t, begin).is_ascii_digit()
        && english(t, begin).is_some_and(|(_, end)| end + 1 == i)
}

/// "two thirty", "seven fifteen" behind a word that asks for a time, or before am and pm.
fn spelled(t: &[char], i: usize) -> Option<(Clock, usize)> {
    if !at(t, i).is_ascii_alphabetic() {
        return None;
    }
    let (hour, end) = english(t, i).filter(|(hour, _)| (1..=12).contains(hour))?;
    let (minute, end) = english(t, if at(t, end) == '-' { end + 1 } else { space(t, end) })
        .filter(|&(minute, _)| (10..60).contains(&minute) && at(t, end + 1).is_ascii_alphabetic())?;
    if prompts(t, i).is_none() && meridiem(t, end).is_none() {
        return None;
    }
    Some((clock(u8::try_from(hour).ok()?, u8::try_from(minute).ok()?, 0, Face::Open)?, end))
}

/// 2.30pm: a point instead of a colon.
fn pointed(t: &[char], i: usize) -> Option<(Clock, usize)> {
    let (hour, end) = small(t, i).filter(|(hour, _)| at(t, i).is_ascii_digit() && (1..=12).contains(hour))?;
    let (minute, last) = digits(t, lit(t, end, ".")?).filter(|&(_, last)| last == end + 3)?;
    // "at 2.30" without am or pm
    let told = prompts(t, i) == Some(Prompt::At)
        && matches!(at(t, space(t, last)), '\0' | '\n' | ',' | '.' | '!' | '?' | ')')
        && !at(t, last + 1).is_ascii_digit();
    (told || meridiem(t, last).is_some())
        .then(|| Some((clock(hour, u8::try_from(minute).ok()?, 0, Face::Open)?, last)))?
}

#[derive(PartialEq)]
enum Prompt {
    At,
    By,
    From,
}

fn prompts(t: &[char], i: usize) -> Option<Prompt> {
    let stands = |literal: &str| {
        let width = literal.len() + 1;
        i >= width && word(t, i - width, literal).is_some() && begins_word(t, i - width)
    };
    if before(t, i) == '@' || ["at", "around", "@", "about"].iter().any(|prompt| stands(prompt)) {
        Some(Prompt::At)
    } else if ["by", "before", "until", "till", "to"].iter().any(|prompt| stands(prompt)) {
        Some(Prompt::By)
    } else {
        ["from", "between"].iter().any(|prompt| stands(prompt)).then_some(Prompt::From)
    }
}

/// Whether a number without am, pm or colon is an hour: "at 5", "by 5 tomorrow", "from 9 to 5".
fn bare(t: &[char], i: usize, end: usize) -> bool {
    if at(t, end).is_ascii_alphanumeric()
        || matches!(at(t, end), '%' | '/' | '$')
        || (at(t, end) == '.' && at(t, end + 1).is_ascii_digit())
    {
        return false;
    }
    let next = space(t, end);
    let stops = matches!(at(t, next), '\0' | '\n' | ',' | '.' | ';' | '!' | '?' | ')' | '。')
        || !at(t, next).is_ascii();
    let timed = [
        "on",
        "today",
        "tomorrow",
        "tonight",
        "this",
        "next",
        "in the",
        "at night",
        "sharp",
        "or",
        "and",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "please",
        "to",
        "until",
        "till",
        "for",
        "with",
        "if",
        "so",
        "but",
        "then",
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
    ]
    .iter()
    .any(|words| word(t, next, words).is_some());
    let ranged =
        ["to", "until", "till", "and"].iter().find_map(|to| word(t, next, to)).or_else(|| lit(t, next, "-"));
    let to_number = ranged.is_some_and(|end| english(t, space(t, end)).is_some());
    match prompts(t, i) {
        Some(Prompt::At) => stops || timed || to_number,
        Some(Prompt::By) => stops || (timed && !to_number),
        Some(Prompt::From) => to_number,
        None => false,
    }
}

/// An hour that only its place in "between 3 and 5" makes one.
pub(super) fn plain_hour(t: &[char], i: usize) -> Option<(Clock, usize)> {
    const FOLLOWING: &[&str] =
        &["and", "on", "yesterday", "today", "tomorrow", "tonight", "next", "this", "in the"];
    let (hour, end) = english(t, i).filter(|(hour, _)| (1..=24).contains(hour))?;
    let next = space(t, end);
    let noun =
        at(t, next).is_ascii_alphabetic() && !FOLLOWING.iter().any(|words| word(t, next, words).is_some());
    if noun || at(t, end).is_ascii_alphanumeric() || matches!(at(t, end), '%' | '/' | '.') {
        return None;
    }
    let hour = u8::try_from(hour).ok()?;
    Some((clock(hour, 0, 0, face(hour))?, end))
}

/// Whether the number here is the first hour of a span whose last hour is told as one: 2-4点, 9-11am;
/// behind a day (`joined`) also 10-11:30.
pub(super) fn first_of_span(t: &[char], i: usize, joined: bool) -> Option<(Clock, usize)> {
    if before(t, i).is_ascii_digit()
        || matches!(before(t, i), '.' | '/' | ':' | '-' | '第')
        || before(t, i).is_ascii_alphabetic()
    {
        return None;
    }
    let (hour, end) = small(t, i).filter(|(hour, _)| *hour <= 24)?;
    let next = super::phrase::connector(t, space(t, end))?;
    let next = space(t, next);
    let (last, close) = small(t, next).filter(|(last, _)| *last <= 24)?;
    let told = any(t, close, &["点", "时"]).is_some()
        || meridiem(t, close).is_some()
        || (at(t, close) == ':'
            && colon(t, next).is_some_and(|(_, end)| joined || meridiem(t, end).is_some()));
    let told = told
        || (joined && hour <= 12 && last <= 12 && matches!(at(t, close), '\0' | '\n' | ',' | '。' | ')'));
    (told && (last != hour)).then(|| Some((clock(hour, 0, 0, face(hour))?, end)))?
}
