//! Days in Chinese that count from the day of saying: 后天, 下周五, 3天后; and any other day by its kind.

use jiff::civil::Weekday;

use super::cursor::{any, at, before, lit, one_of, pick, skip};
use super::numerals::is_numeral;
use super::said::{Day, Period, Said, Week};
use super::{elapsed, festivals, lunar_zh, months_zh};

use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};

/// Reads a day or a stretch of days.
pub(super) fn day(t: &[char], i: usize) -> Option<(Day, usize)> {
    after(t, i)
        .or_else(|| relative(t, i))
        .or_else(|| weekday(t, i))
        .or_else(|| lunar_zh::lunar(t, i))
        .or_else(|| months_zh::dated(t, i))
        .or_else(|| festivals::chinese(t, i, None))
        .or_else(|| months_zh::stretch(t, i, None))
        .or_else(|| months_zh::of_month(t, i))
}

/// 3天后, 两周后 as a day that a clock time can follow.
fn after(t: &[char], i: usize) -> Option<(Day, usize)> {
    match elapsed::chinese(t, i)? {
        (Said::After(amount), end) if !amount.exact => {
            let end = skip(t, end, &["的"]);
            Some((Day::After { months: amount.months, days: amount.days }, end))
        }
        _ => None,
    }
}

fn relative(t: &[char], i: usize) -> Option<(Day, usize)> {
    const PAIRS: &[(&str, (i64, i64))] =
        &[("今明两", (0, 1)), ("明后两", (1, 2)), ("今明", (0, 1)), ("明后", (1, 2)), ("昨今两", (-1, 0))];
    const LETTERS: &[(&str, i64)] =
        &[("今", 0), ("明", 1), ("昨", -1), ("大后", 3), ("后", 2), ("大前", -3), ("前", -2), ("听", 1)];
    const DAYS: &[(&str, i64)] = &[
        ("大大后天", 4),
        ("大后天", 3),
        ("大后日", 3),
        ("大大前天", -4),
        ("大前天", -3),
        ("后天", 2),
        ("后日", 2),
        ("明天", 1),
        ("明日", 1),
        ("明儿", 1),
        ("听日", 1),
        ("翌日", 1),
        ("即日", 0),
        ("今天", 0),
        ("今日", 0),
        ("本日", 0),
        ("今儿", 0),
        ("昨天", -1),
        ("昨日", -1),
        ("寻日", -1),
        ("昨儿", -1),
        ("前天", -2),
        ("前日", -2),
    ];
    if !(one_of(t, i, "大今明后昨前听寻翌即本")) {
        return None;
    }
    if let Some(((first, last), end)) = pick(t, i, PAIRS)
        && let Some(end) = any(t, end, &["天", "日"])
    {
        return Some((Day::Period(Period::Days(first, last)), end));
    }
    // "以后天天", "此前天气", "今日头条" name no day.
    if matches!(at(t, i), '后' | '前') && "以之然最此往先今事".contains(before(t, i)) {
        return None;
    }
    // "日本日报"
    if at(t, i) == '本' && before(t, i) == '日' {
        return None;
    }
    if let Some((days, end)) = pick(t, i, DAYS)
        && lit(t, end, "头条").is_none()
        && !matches!((at(t, i), at(t, i + 1), at(t, i + 2)), ('后' | '前' | '明', '天', '天'))
    {
        return Some((Day::Offset(days), skip(t, end, &["个"])));
    }
    // 今晚, 明早, 昨夜: the part of the day is read next.
    let (days, end) = pick(t, i, LETTERS)?;
    // "听晚会", "前晚辈", "明朝": these stand for a day only before an hour.
    let told = is_numeral(at(t, end + 1));
    let part = match at(t, end) {
        '早' | '晚' => told || !matches!(at(t, i), '听' | '前'),
        '晨' | '夜' | '午' => !matches!(at(t, i), '听' | '前'),
        '朝' => told && matches!(at(t, i), '今' | '听'),
        _ => false,
    };
    part.then_some((Day::Offset(days), end))
}

/// The weekday of one character: 周一 … 周日, 周天, 周5.
pub(super) fn weekday_letter(t: &[char], i: usize) -> Option<Weekday> {
    let day = match at(t, i) {
        '一' | '1' => Monday,
        '二' | '2' => Tuesday,
        '三' | '3' => Wednesday,
        '四' | '4' => Thursday,
        '五' | '5' => Friday,
        '六' | '6' => Saturday,
        '日' | '天' | '7' => Sunday,
        _ => return None,
    };
    let alone = !(at(t, i).is_ascii_digit() && (at(t, i + 1).is_ascii_digit() || at(t, i + 1) == '个'));
    alone.then_some(day)
}

fn weekday(t: &[char], i: usize) -> Option<(Day, usize)> {
    const WEEKS: &[(&str, i64)] = &[
        ("下下下个", 3),
        ("下下下", 3),
        ("下下个", 2),
        ("下下", 2),
        ("下一个", 1),
        ("下个", 1),
        ("下一", 1),
        ("下", 1),
        ("上上个", -2),
        ("上上", -2),
        ("上一个", -1),
        ("上个", -1),
        ("上一", -1),
        ("上", -1),
        ("这一", 0),
        ("这个", 0),
        ("这", 0),
        ("本", 0),
    ];
    const NAMES: &[&str] = &["星期", "礼拜", "周"];
    // 圣周五, 黑色星期六 are days of a church year.
    if !(one_of(t, i, "下上这本星礼周")) || matches!(before(t, i), '圣' | '色') {
        return None;
    }
    let named = pick(t, i, WEEKS).filter(|&(_, end)| any(t, end, NAMES).is_some());
    let (week, begin) = named.map_or((Week::Nearest, i), |(weeks, end)| (Week::From(weeks), end));
    let end = any(t, begin, NAMES)?;
    if at(t, end) == '末' {
        return Some((Day::Period(Period::Weekend(week)), end + 1));
    }
    let again = any(t, skip(t, end, &["的"]), NAMES).filter(|_| named.is_some());
    let place = again.unwrap_or(end);
    if named.is_some() && again.is_some() && at(t, place) == '末' {
        return Some((Day::Period(Period::Weekend(week)), place + 1));
    }
    if is_weekday_list(t, place) {
        return None;
    }
    if let Some(day) = weekday_letter(t, place).filter(|_| !is_surname(t, place)) {
        if lit(t, place, "六日").is_some() && at(t, place + 2) != '期' {
            return Some((Day::Period(Period::Weekend(week)), place + 2));
        }
        return Some((Day::Weekday(week, day), place + 1));
    }
    match week {
        Week::From(weeks) if !matches!(at(t, end), '年' | '期' | '转') => {
            Some((Day::Period(Period::Week(weeks)), end))
        }
        Week::Nearest if lit(t, end, "内").is_some() && !before(t, i).is_ascii_digit() => {
            Some((Day::Period(Period::Week(0)), end))
        }
        _ => None,
    }
}

/// "周一鸣", "周三丰": a name; a weekday never has these behind it.
fn is_surname(t: &[char], place: usize) -> bool {
    matches!(
        (at(t, place), at(t, place + 1)),
        ('天' | '日', '生' | '常' | '期' | '刊' | '报') | (_, '鸣' | '丰')
    )
}

/// A list of weekdays such as 周一三五, which is no one day.
fn is_weekday_list(t: &[char], letter: usize) -> bool {
    let is_day = |i: usize| matches!(at(t, i), '一' | '二' | '三' | '四' | '五' | '六');
    is_day(letter)
        && is_day(letter + 1)
        && !matches!(at(t, letter + 2), '点' | '时' | ':' | '十' | '个' | '号' | '月' | '楼' | '班' | '节')
}
