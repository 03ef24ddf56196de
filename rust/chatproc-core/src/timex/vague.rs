//! Times that are no certain ones: 尽快, 月初, 第8周周五, 月底左右, in a few days' time, the week of July 6.

use super::cursor::{any, at, before, begins_word, lit, one_of, skip, skip_word, space, word};
use super::numerals::{is_numeral, ordinal, small};
use super::said::{Day, Period, Point, Said};
use super::{clocks, days_zh, parts, stretches_en};

/// Words for a time that is not certain.
pub(super) fn vague(t: &[char], i: usize) -> Option<usize> {
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
        "现阶段",
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
    const PARTS: &[&str] = &[
        "early",
        "earlier",
        "later",
        "mid",
        "late",
        "beginning of",
        "the beginning of",
        "the middle of",
        "middle of",
        "start of",
        "the start of",
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
        "eventually",
        "recently",
    ];
    if !(at(t, i).is_ascii_alphabetic()
        || is_numeral(at(t, i))
        || one_of(t, i, "一下不到周回尽届年待抽择改早晚最月有稍等节过近这第单双隔"))
    {
        return None;
    }
    let counted = before(t, i).is_ascii_digit() || "零一二两三四五六七八九十百千半个".contains(before(t, i));
    if let Some(end) = any(t, i, WORDS).filter(|_| !(counted && matches!(at(t, i), '年' | '月'))) {
        return Some(end);
    }
    if let Some(end) = term_week(t, i).or_else(|| nth_day(t, i)).or_else(|| clocks::about(t, i)) {
        return Some(end);
    }
    if !(at(t, i).is_ascii_alphabetic() && begins_word(t, i)) {
        return None;
    }
    if let Some(end) = LATIN.iter().find_map(|words| word(t, i, words)) {
        return Some(end);
    }
    if let Some(end) = part_of_stretch(t, i) {
        return Some(end);
    }
    let begin = PARTS.iter().find_map(|words| word(t, i, words))?;
    let begin = if at(t, begin) == '-' { begin + 1 } else { space(t, begin) };
    stretches_en::stretch_name(t, begin).or_else(|| word(t, i, "later"))
}

/// "the first week of July", "the week of July 6": which days these are is told in several ways.
fn part_of_stretch(t: &[char], i: usize) -> Option<usize> {
    let begin = skip_word(t, i, &["the"]);
    let begin = match ordinal(t, begin) {
        Some((_, end)) => space(t, end),
        None => skip_word(t, begin, &["last", "final"]),
    };
    let end = [
        "week of",
        "weeks of",
        "weekend of",
        "weekend in",
        "half of",
        "week beginning",
        "week commencing",
        "week starting",
        "days of",
    ]
    .iter()
    .find_map(|words| word(t, begin, words))?;
    let begin = skip_word(t, skip_word(t, space(t, end), &["on"]), &["the"]);
    let begin = small(t, begin).map_or(begin, |(_, end)| space(t, end));
    let day = |end: usize| small(t, space(t, end)).map_or(end, |(_, last)| last);
    Some(stretches_en::stretch_name(t, begin).map_or(end, day))
}

/// 第三天上午: counted from something that is not told.
fn nth_day(t: &[char], i: usize) -> Option<usize> {
    let end = skip(t, small(t, lit(t, i, "第")?)?.1, &["个"]);
    let end = any(t, end, &["天", "日"])?;
    Some(parts::part_zh(t, end, true).map_or(end, |(_, end)| end))
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

/// A point and its end; a day that is only about right (月底左右, 7月初, 大概周五) is no certain time.
pub(super) fn judged(t: &[char], from: usize, point: Point, end: usize) -> (Said, usize) {
    let narrowed = if point.clock.is_none() { narrowed(t, point, end) } else { None };
    let about = point.clock.is_none() && (about_behind(t, end) || about_before(t, from));
    if about || narrowed.is_some() {
        (Said::Vague, narrowed.unwrap_or(end))
    } else {
        (Said::Point(point), end)
    }
}

fn about_behind(t: &[char], end: usize) -> bool {
    any(t, space(t, end), &["左右", "前后", "上下", "附近"]).is_some()
}

fn about_before(t: &[char], i: usize) -> bool {
    const WORDS: &[&str] = &[
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
    ];
    (0..i).rev().take(6).any(|from| any(t, from, WORDS).is_some_and(|end| end == i))
}

/// Behind the words that narrow a stretch down to a part that is not understood: 7月初, 明年年中, 今年夏天,
/// 2026年的第二周, 上月最后五天, 今年前三季度.
fn narrowed(t: &[char], point: Point, end: usize) -> Option<usize> {
    const WORDS: &[&str] = &[
        "第",
        "头",
        "首",
        "春",
        "夏",
        "秋",
        "冬",
        "暑",
        "寒",
        "前几",
        "后几",
        "最后几",
        "这时",
        "同期",
        "某",
        "哪",
        "伊始",
    ];
    let Some(Day::Period(period)) = point.day else { return None };
    let small_part =
        matches!(at(t, end), '初' | '中') && !matches!(at(t, end + 1), '午' | '旬' | '国' | '秋');
    if small_part && !matches!(period, Period::Week(_) | Period::Weekend(_) | Period::Days(..)) {
        return Some(end + 1);
    }
    if !matches!(period, Period::Month(..) | Period::Year(_) | Period::Week(_)) {
        return None;
    }
    let begin = skip(t, space(t, end), &["的"]);
    if let Some(end) = any(t, begin, &["年初", "年中", "月初", "月中"]) {
        return Some(end);
    }
    let counted = any(t, begin, &["最后", "前", "后"]).and_then(|end| {
        let unit = ["季度", "天", "日", "周", "星期", "礼拜", "月", "年"];
        any(t, skip(t, small(t, end)?.1, &["个"]), &unit)
    });
    counted.or_else(|| nth_day(t, begin)).or_else(|| term_week(t, begin)).or_else(|| any(t, begin, WORDS))
}
