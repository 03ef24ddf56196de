//! Days of the lunar calendar as Chinese says them: 农历八月十五, 腊月廿三, 大年初一, 闰六月.

use super::cursor::{any, at, before, lit, one_of, pick, skip, space};
use super::months_zh::year;
use super::numerals::{han, is_numeral, number, small};
use super::said::{Day, Period};

/// 农历八月十五, 腊月廿三, 闰六月, 大年初一.
pub(super) fn lunar(t: &[char], i: usize) -> Option<(Day, usize)> {
    const MARKS: &[&str] = &["农历", "阴历", "旧历", "古历", "夏历"];
    if !(is_numeral(at(t, i)) || one_of(t, i, "农阴旧古夏大前年闰正冬腊去上今本明来次下后民"))
    {
        return None;
    }
    let marked = any(t, i, MARKS);
    let begin = space(t, marked.unwrap_or(i));
    let (year, begin) = match year(t, begin) {
        Some((year, end)) => (Some(year), space(t, skip(t, end, &["的"]))),
        None => (None, begin),
    };
    let (marked, begin) = match any(t, begin, MARKS) {
        Some(end) => (true, space(t, end)),
        None => (marked.is_some(), begin),
    };
    if let Some((day, end)) = any(t, begin, &["大年", "年"])
        .filter(|_| year.is_none() || at(t, begin) == '大')
        .filter(|_| !before(t, begin).is_ascii_digit())
        .and_then(|end| lit(t, end, "初"))
        .and_then(|end| han(t, end))
    {
        let day = u8::try_from(day).ok().filter(|day| *day <= 10)?;
        return Some((Day::Lunar { year, month: 1, leap: false, day }, end));
    }
    let leap = lit(t, begin, "闰");
    let begin = leap.unwrap_or(begin);
    let named = pick(t, begin, &[("正月", 1), ("冬月", 11), ("腊月", 12)]);
    let (month, own, end) = if let Some((month, end)) = named {
        (month, true, end)
    } else {
        let (month, end) = small(t, begin).filter(|(month, _)| (1..=12).contains(month))?;
        (month, false, lit(t, end, "月")?)
    };
    let sure = marked || own || leap.is_some();
    let leap = leap.is_some();
    let next = skip(t, space(t, end), &["的"]);
    if let Some((day, last)) = lunar_day(t, next, sure) {
        return Some((Day::Lunar { year, month, leap, day }, last));
    }
    if !sure {
        return None;
    }
    let period = Period::LunarMonth(year, month, leap);
    Some(any(t, end, &["底", "末"]).map_or((Day::Period(period), end), |end| (Day::EndOf(period), end)))
}

/// 初五, 廿三; where the month is surely lunar also 十五, 二十三, 15.
fn lunar_day(t: &[char], i: usize, sure: bool) -> Option<(u8, usize)> {
    let (day, end) = if let Some(end) = lit(t, i, "初") {
        number(t, end).filter(|(day, _)| *day <= 10)?
    } else {
        // "十一月廿六" is lunar, "十一月廿六日" is said of any month.
        let (day, end) = number(t, i)?;
        let lunar = sure || (matches!(at(t, i), '廿' | '卅') && any(t, end, &["日", "号"]).is_none());
        lunar.then_some((day, end))?
    };
    let day = u8::try_from(day).ok().filter(|day| (1..=30).contains(day))?;
    Some((day, skip(t, end, &["日", "号"])))
}
