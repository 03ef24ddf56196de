//! Dates in digits: 2026-07-03, 2026.7.3, 20260703, 7/3, 07/04/2026, 7.3.

use super::cursor::{any, at, before, lit, space, word};
use super::numerals::digits;
use super::said::{Day, Month, Year};

/// Reads a date in digits. `chinese`: the month stands first, and 7.3 and 7-3 are dates too.
pub(super) fn day(t: &[char], i: usize, chinese: bool) -> Option<(Day, usize)> {
    let previous = before(t, i);
    if !at(t, i).is_ascii_digit() || previous.is_ascii_alphanumeric() || "./_:#$￥¥+=*".contains(previous) {
        return None;
    }
    let (first, end) = digits(t, i)?;
    // Behind a hyphen: the end of a range, else a part of a longer number.
    let ranged = matches!(at(t, end), '/' | '.' | '年') || (end - i == 4 && at(t, end + 3) == '-');
    if previous == '-' && !(ranged && i > 1 && (t[i - 2].is_ascii_digit() || t[i - 2] == ' ')) {
        return None;
    }
    match end - i {
        8 => solid(t, first, end),
        4 => year_first(t, first, end),
        1 | 2 => month_first(t, i, u8::try_from(first).ok()?, end, chinese),
        _ => None,
    }
}

fn date(year: u32, month: u32, day: u32) -> Option<Day> {
    let month = u8::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    let day = u8::try_from(day).ok().filter(|day| (1..=31).contains(day))?;
    Some(Day::Date { year: Some(Year::Of(i16::try_from(year).ok()?)), month: Month::Of(month), day })
}

fn solid(t: &[char], number: u32, end: usize) -> Option<(Day, usize)> {
    let year = number / 10_000;
    if !(1990..=2199).contains(&year) || !ends(t, end) {
        return None;
    }
    Some((date(year, number / 100 % 100, number % 100)?, end))
}

fn year_first(t: &[char], year: u32, end: usize) -> Option<(Day, usize)> {
    let stroke = at(t, end);
    if !matches!(stroke, '-' | '/' | '.') || !(1900..=2199).contains(&year) {
        return None;
    }
    let (month, end) = pair(t, space(t, end + 1))?;
    if at(t, end) != stroke {
        return None;
    }
    let (day, end) = pair(t, space(t, end + 1))?;
    let end = any(t, end, &["日", "号"]).unwrap_or(end);
    (ends(t, end) || at(t, end) == 't' || (at(t, end) == '-' && at(t, end + 1).is_ascii_digit()))
        .then(|| Some((date(year, month, day)?, end)))?
}

fn pair(t: &[char], i: usize) -> Option<(u32, usize)> {
    digits(t, i).filter(|&(_, end)| end - i <= 2)
}

/// Whether a date may end here: no letter, no percent, no further figure joined to it.
fn ends(t: &[char], end: usize) -> bool {
    let next = at(t, end);
    let joined = matches!(next, '.' | '/' | '-' | ':') && at(t, end + 1).is_ascii_digit();
    let latin = next.is_ascii_alphanumeric();
    !latin && !matches!(next, '%' | '_' | '@') && (!joined || next == '-')
}

fn month_first(t: &[char], i: usize, first: u8, end: usize, chinese: bool) -> Option<(Day, usize)> {
    let stroke = at(t, end);
    if !matches!(stroke, '-' | '/' | '.') {
        return None;
    }
    let (second, end) = pair(t, end + 1)?;
    let second = u8::try_from(second).ok()?;
    let plausible = |a: u8, b: u8| (1..=12).contains(&a) && (1..=31).contains(&b);
    if at(t, end) == stroke
        && let Some((year, last)) = digits(t, end + 1)
    {
        let year = match last - end - 1 {
            4 if (1900..=2199).contains(&year) => year,
            2 if stroke == '/' && !chinese => 2000 + year,
            _ => return None,
        };
        let year = Some(Year::Of(i16::try_from(year).ok()?));
        let fits = plausible(first, second) || plausible(second, first);
        return (fits && ends(t, last)).then_some((Day::Stroke { year, first, second }, last));
    }
    let suffix = any(t, end, &["日", "号"]);
    let last = suffix.unwrap_or(end);
    if !ends(t, last) || denied(t, last) {
        return None;
    }
    if chinese {
        let sure = suffix.is_some() || evident(t, i, last, stroke);
        return (sure && plausible(first, second))
            .then_some((Day::Date { year: None, month: Month::Of(first), day: second }, last));
    }
    let always = first == 24 && second == 7;
    (stroke == '/' && !always && (plausible(first, second) || plausible(second, first)))
        .then_some((Day::Stroke { year: None, first, second }, last))
}

/// Words behind two numbers that make them something else than a date.
fn denied(t: &[char], end: usize) -> bool {
    const UNITS: &str =
        "元块分米人个题页章楼栋班室周天小岁次度折倍公斤克吨万亿千百级节比×点寸英课票组队票秒杯";
    let next = space(t, end);
    UNITS.contains(at(t, next))
        || ["of", "hour", "cup", "inch", "mile", "page", "pages"]
            .iter()
            .any(|noun| word(t, next, noun).is_some())
}

/// Whether what stands around two numbers makes them a date: 7.3 前, 于 7-3, 7/3 alone.
fn evident(t: &[char], i: usize, end: usize, stroke: char) -> bool {
    const BEHIND: &[&str] = &[
        "前", "之前", "以前", "截", "交", "周", "星期", "礼拜", "上午", "下午", "晚", "早", "中午", "凌晨",
        "开", "到", "至", "~", "起", "止", "之后", "以后", "后", "出发", "放假", "考试", "上课", "集合",
        "考", "(周", "(星期",
    ];
    let next = space(t, end);
    let begins = i == 0 || matches!(before(t, i), ' ' | '\n' | '(' | ',' | '。' | '、' | ':' | ';');
    let stops = matches!(at(t, end), '\0' | '\n' | ',' | '。' | ';' | ')' | '!' | '?' | '、');
    let alone = begins && stops && (stroke == '/' || (i == 0 && end == t.len()));
    // "6-3 春游", but no score
    let titled = (i == 0 || before(t, i) == '\n')
        && next > end
        && !at(t, next).is_ascii()
        && !"领赢胜负平输落险击大战完".contains(at(t, next));
    let clocked =
        digits(t, next).is_some_and(|(_, end)| matches!(at(t, end), ':' | '点' | '时')) && next > end;
    let prompted = "于在至到-~".contains(before(t, i));
    let ranged = matches!(at(t, end), '-' | '~') && at(t, end + 1).is_ascii_digit();
    let bracketed = at(t, next) == '(' && at(t, next + 2) == ')';
    alone
        || titled
        || bracketed
        || clocked
        || prompted
        || ranged
        || any(t, next, BEHIND).is_some()
        || lit(t, next, "due").is_some()
}
