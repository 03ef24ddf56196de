//! Years, months and the days and stretches in them, in Chinese: 7月3日, 下个月5号, 2-4月, 月底, 第三季度.

use jiff::civil::Weekday;

use super::cursor::{any, at, before, lit, one_of, pick, skip, space};
use super::days_zh::weekday_letter;
use super::festivals;
use super::numerals::{digits, han_digits, is_numeral, number, small};
use super::phrase::connector;
use super::said::{Day, Month, Period, Year};

/// A year before a month or a festival.
pub(super) fn year(t: &[char], i: usize) -> Option<(Year, usize)> {
    const YEARS: &[(&str, i16)] = &[
        ("大前年", -3),
        ("前年", -2),
        ("去年", -1),
        ("上一年", -1),
        ("今年", 0),
        ("本年", 0),
        ("明年", 1),
        ("来年", 1),
        ("次年", 1),
        ("下一年", 1),
        ("大后年", 3),
        ("后年", 2),
    ];
    if !(is_numeral(at(t, i)) || one_of(t, i, "大前去上今本明来次下后民")) {
        return None;
    }
    let found = if let Some((years, end)) = pick(t, i, YEARS) {
        (Year::From(years), end)
    } else if let Some(end) = lit(t, i, "民国") {
        let (years, end) = number(t, end)?;
        (Year::Of(i16::try_from(years).ok()?.checked_add(1911)?), lit(t, end, "年")?)
    } else {
        let (number, end) = if at(t, i).is_ascii_digit() {
            if before(t, i).is_ascii_digit() {
                return None;
            }
            let (number, end) = digits(t, i)?;
            (matches!(end - i, 2 | 4)).then_some((number, end))?
        } else {
            if "零一二三四五六七八九".contains(before(t, i)) {
                return None;
            }
            han_digits(t, i).filter(|&(_, end)| matches!(end - i, 2 | 4))?
        };
        let year = match end - i {
            4 => number,
            _ if number < 70 => 2000 + number,
            _ => 1900 + number,
        };
        let four = |t: &[char], i: usize| digits(t, i).filter(|&(_, end)| end - i == 4);
        let end = match lit(t, space(t, end), "年") {
            Some(end) => end,
            None if end - i == 4 => first_of_span(t, end, four, "年").map(|()| end)?,
            None => return None,
        };
        (Year::Of(i16::try_from(year).ok()?), end)
    };
    (at(t, found.1) != '级' && at(t, found.1) != '代').then_some(found)
}

fn month(t: &[char], i: usize) -> Option<(Month, usize)> {
    const MONTHS: &[(&str, i32)] = &[
        ("下下个月", 2),
        ("下下月", 2),
        ("下一个月", 1),
        ("下个月", 1),
        ("下月", 1),
        ("次月", 1),
        ("上上个月", -2),
        ("上上月", -2),
        ("上一个月", -1),
        ("上个月", -1),
        ("上月", -1),
        ("这一个月", 0),
        ("这个月", 0),
        ("今个月", 0),
        ("这月", 0),
        ("本月", 0),
        ("当月", 0),
    ];
    if !(is_numeral(at(t, i)) || one_of(t, i, "下次上这今本当元")) {
        return None;
    }
    if let Some((months, end)) = pick(t, i, MONTHS) {
        return Some((Month::From(months), end));
    }
    let (number, end) = match lit(t, i, "元") {
        Some(end) => (1, end),
        None => small(t, i)?,
    };
    // "近三月" and "前三月" count months.
    if !(1..=12).contains(&number) || matches!(before(t, i), '.' | '近' | '前') {
        return None;
    }
    match lit(t, space(t, end), "月") {
        Some(end) => Some((Month::Of(number), skip(t, end, &["份"]))),
        None => first_of_span(t, end, |t, i| small(t, i).filter(|(month, _)| (1..=12).contains(month)), "月")
            .map(|()| (Month::Of(number), end)),
    }
}

/// Whether a number that ends here is the first of two that share a unit: 2-4月, 2026至2027年.
fn first_of_span<N>(
    t: &[char],
    end: usize,
    last: impl Fn(&[char], usize) -> Option<(N, usize)>,
    unit: &str,
) -> Option<()> {
    let next = space(t, connector(t, space(t, end))?);
    let (_, close) = last(t, next)?;
    lit(t, close, unit).map(|_| ())
}

/// What begins with a year or a month.
pub(super) fn dated(t: &[char], i: usize) -> Option<(Day, usize)> {
    let (year, begin) = match year(t, i) {
        Some((year, end)) => (Some(year), space(t, skip(t, end, &["度", "的"]))),
        None => (None, i),
    };
    let Some((month, end)) = month(t, begin) else {
        let year = year?;
        return festivals::chinese(t, begin, Some(year)).or_else(|| stretch(t, begin, Some(year))).or_else(
            || {
                let end = skip(t, begin, &["的"]);
                Some((Day::Period(Period::Year(year)), if t[begin - 1] == '的' { begin - 1 } else { end }))
            },
        );
    };
    let begin = space(t, skip(t, end, &["的"]));
    if let Some(end) = any(t, begin, &["底", "末", "月底", "月末", "最后一天"]) {
        return Some((Day::EndOf(Period::Month(year, month)), end));
    }
    if let Some((third, end)) = pick(t, begin, THIRDS) {
        return Some((Day::Period(Period::Third(year, month, third)), end));
    }
    if let Some((nth, weekday, end)) = nth_weekday(t, begin) {
        return Some((Day::Nth { year, month, nth, weekday }, end));
    }
    if let Some((day, end)) = day_number(t, begin) {
        return Some((Day::Date { year, month, day }, end));
    }
    // "7月32日" is no month either.
    if number(t, begin).is_some_and(|(_, end)| any(t, end, &["日", "号"]).is_some()) {
        return None;
    }
    Some((Day::Period(Period::Month(year, month)), end))
}

const THIRDS: &[(&str, u8)] = &[("上旬", 1), ("中旬", 2), ("下旬", 3), ("上半月", 4), ("下半月", 5)];

/// The number of a day behind its month; 日 and 号 may be left out.
fn day_number(t: &[char], i: usize) -> Option<(u8, usize)> {
    let (day, end) = small(t, i).filter(|(day, _)| (1..=31).contains(day))?;
    if let Some(end) = any(t, space(t, end), &["日", "号"]) {
        return Some((day, end));
    }
    let follows = at(t, end);
    let counts = "个天周年月份小分时点:/%.点人次元块万千百岁名位号楼节课-";
    let range = follows == '-' && (at(t, end + 1).is_ascii_digit());
    (range || !counts.contains(follows)).then_some((day, end))
}

/// 第三个星期日, 最后一个周五.
fn nth_weekday(t: &[char], i: usize) -> Option<(i8, Weekday, usize)> {
    let (nth, end) = if let Some(end) = any(t, i, &["最后一个", "最后1个"]) {
        (-1, end)
    } else {
        let (nth, end) = small(t, lit(t, i, "第")?).filter(|(nth, _)| (1..=5).contains(nth))?;
        (i8::try_from(nth).ok()?, lit(t, end, "个")?)
    };
    let end = any(t, end, &["星期", "礼拜", "周"])?;
    Some((nth, weekday_letter(t, end)?, end + 1))
}

/// 月底, 年底, 上半年, 第三季度, 上旬: with the year that stands before them.
pub(super) fn stretch(t: &[char], i: usize, year: Option<Year>) -> Option<(Day, usize)> {
    if !(is_numeral(at(t, i)) || one_of(t, i, "年底末上前下后q第季这本月中")) {
        return None;
    }
    let this = year.unwrap_or(Year::From(0));
    if let Some(end) = any(
        t,
        i,
        if year.is_some() { &["年底", "年末", "底", "末"] } else { &["年底", "年末", "年终"] },
    ) {
        return Some((Day::EndOf(Period::Year(this)), end));
    }
    if let Some(end) =
        lit(t, i, "年内").filter(|_| year.is_none() && !(is_numeral(before(t, i)) || before(t, i) == '几'))
    {
        return Some((Day::EndOf(Period::Year(this)), end));
    }
    if let Some((half, end)) = pick(t, i, &[("上半年", 1), ("前半年", 1), ("下半年", 2), ("后半年", 2)])
    {
        return Some(end_of(t, Period::Half(year, half), end));
    }
    if let Some(end) = lit(t, i, "q") {
        let (quarter, end) = small(t, end).filter(|(quarter, _)| (1..=4).contains(quarter))?;
        return (!before(t, i).is_ascii_alphanumeric() && !at(t, end).is_ascii_alphanumeric())
            .then(|| end_of(t, Period::Quarter(year, quarter), end));
    }
    if let Some((quarter, end)) = quarter(t, i) {
        return Some(end_of(t, Period::Quarter(year, quarter), end));
    }
    if year.is_some() {
        return None;
    }
    let quarters = [
        ("下个季度", 1),
        ("下季度", 1),
        ("上个季度", -1),
        ("上季度", -1),
        ("这个季度", 0),
        ("本季度", 0),
        ("季度", 0),
        ("季", 0),
    ];
    if let Some((quarters, end)) = pick(t, i, &quarters) {
        let (day, next) = end_of(t, Period::QuarterFrom(quarters), end);
        return (next > end || at(t, i) != '季').then_some((day, next));
    }
    if let Some(end) = any(t, i, &["月底", "月末"])
        .filter(|_| !before(t, i).is_alphanumeric() || !"个几".contains(before(t, i)))
    {
        return Some((Day::EndOf(Period::Month(None, Month::From(0))), end));
    }
    pick(t, i, THIRDS).map(|(third, end)| (Day::Period(Period::Third(None, Month::From(0), third)), end))
}

fn quarter(t: &[char], i: usize) -> Option<(u8, usize)> {
    let begin = skip(t, i, &["第"]);
    let (quarter, end) = small(t, begin).filter(|(quarter, _)| (1..=4).contains(quarter))?;
    Some((quarter, lit(t, end, "季度")?))
}

fn end_of(t: &[char], period: Period, end: usize) -> (Day, usize) {
    match any(t, end, &["底", "末", "最后一天"]) {
        Some(end) => (Day::EndOf(period), end),
        None => (Day::Period(period), end),
    }
}

/// What is counted with 号 and is no day (3号楼, 2号线), save these: 3号开会, 5号出发.
const THINGS: &str =
    "楼线门机馆厅文教院选床柜桌球电位店库码房路窗食宿字车站台井厂坑卷题队员仓铺桥区墙梯岗桩令间";
const THINGS_LONG: &[&str] = &["会议室", "会场", "出口", "出站", "公告", "公寓", "公馆", "入口"];

/// What 日 counts: 5日游, 3日内.
const LENGTHS: &str = "游间志常程报刊后内";

/// 5号, 十五号, 3日: a day of a month that is not named.
pub(super) fn of_month(t: &[char], i: usize) -> Option<(Day, usize)> {
    let head = (0..i).rev().take(3).find(|&at_| !is_numeral(t[at_])).map_or('\0', |at_| t[at_]);
    let inside = matches!(head, '第' | '月') && is_numeral(before(t, i));
    if inside || "第.-/#分之月".contains(before(t, i)) || before(t, i).is_ascii_alphanumeric() {
        return None;
    }
    // "两日" is always a length.
    let (day, end) = small(t, i).filter(|(day, _)| (1..=31).contains(day) && at(t, i) != '两')?;
    let end = any(t, space(t, end), &["号", "日"])?;
    let thing = if before(t, end) == '号' {
        any(t, end, &["教师节", "文件截"]).is_none()
            && (THINGS.contains(at(t, end)) || any(t, end, THINGS_LONG).is_some())
    } else {
        LENGTHS.contains(at(t, end))
    };
    (!thing).then_some((Day::OfMonth(day), end))
}
