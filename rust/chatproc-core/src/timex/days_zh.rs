//! Days in Chinese: 后天, 下周五, 7月3日, 月底, 农历八月十五, 国庆节.

use jiff::civil::Weekday;

use super::cursor::{any, at, before, lit, one_of, pick, skip, space};
use super::elapsed;
use super::numerals::{digits, han, han_digits, is_numeral, number, small};
use super::said::{Day, Festival, Month, Period, Said, Week, Year};

use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};

/// Reads a day or a stretch of days.
pub(super) fn day(t: &[char], i: usize) -> Option<(Day, usize)> {
    after(t, i)
        .or_else(|| relative(t, i))
        .or_else(|| weekday(t, i))
        .or_else(|| lunar(t, i))
        .or_else(|| dated(t, i))
        .or_else(|| festival(t, i))
        .or_else(|| stretch(t, i, None))
        .or_else(|| of_month(t, i))
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
    const DAYS: &[(&str, i64)] = &[
        ("大后天", 3),
        ("大后日", 3),
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
        ("今儿", 0),
        ("昨天", -1),
        ("昨日", -1),
        ("昨儿", -1),
        ("前天", -2),
        ("前日", -2),
    ];
    if !(one_of(t, i, "大今明后昨前听翌即")) {
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
    if let Some((days, end)) = pick(t, i, DAYS)
        && lit(t, end, "头条").is_none()
        && !matches!((at(t, i), at(t, i + 1), at(t, i + 2)), ('后' | '前' | '明', '天', '天'))
    {
        return Some((Day::Offset(days), skip(t, end, &["个"])));
    }
    // 今晚, 明早, 昨夜: the part of the day is read next.
    let days = match at(t, i) {
        '今' => 0,
        '明' => 1,
        '昨' => -1,
        '后' => 2,
        _ => return None,
    };
    matches!(at(t, i + 1), '早' | '晚' | '晨' | '夜' | '午').then_some((Day::Offset(days), i + 1))
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
    if !(one_of(t, i, "下上这本星礼周")) {
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
        let end = lit(t, space(t, end), "年")?;
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
        ("这月", 0),
        ("本月", 0),
        ("当月", 0),
    ];
    if !(is_numeral(at(t, i)) || one_of(t, i, "下次上这本当元")) {
        return None;
    }
    if let Some((months, end)) = pick(t, i, MONTHS) {
        return Some((Month::From(months), end));
    }
    let (number, end) = match lit(t, i, "元") {
        Some(end) => (1, end),
        None => small(t, i)?,
    };
    let end = lit(t, space(t, end), "月")?;
    ((1..=12).contains(&number) && before(t, i) != '.').then_some((Month::Of(number), skip(t, end, &["份"])))
}

/// What begins with a year or a month.
fn dated(t: &[char], i: usize) -> Option<(Day, usize)> {
    let (year, begin) = match year(t, i) {
        Some((year, end)) => (Some(year), space(t, skip(t, end, &["度", "的"]))),
        None => (None, i),
    };
    let Some((month, end)) = month(t, begin) else {
        let year = year?;
        return festival_in(t, begin, Some(year)).or_else(|| stretch(t, begin, Some(year))).or_else(|| {
            let end = skip(t, begin, &["的"]);
            Some((Day::Period(Period::Year(year)), if t[begin - 1] == '的' { begin - 1 } else { end }))
        });
    };
    let begin = space(t, skip(t, end, &["的"]));
    if let Some(end) = any(t, begin, &["底", "末", "最后一天"]) {
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
fn stretch(t: &[char], i: usize, year: Option<Year>) -> Option<(Day, usize)> {
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
fn of_month(t: &[char], i: usize) -> Option<(Day, usize)> {
    if "第.-/#分之月".contains(before(t, i)) || before(t, i).is_ascii_alphanumeric() {
        return None;
    }
    let (day, end) = small(t, i).filter(|(day, _)| (1..=31).contains(day))?;
    let end = any(t, space(t, end), &["号", "日"])?;
    let thing = if before(t, end) == '号' {
        any(t, end, &["教师节", "文件截"]).is_none()
            && (THINGS.contains(at(t, end)) || any(t, end, THINGS_LONG).is_some())
    } else {
        LENGTHS.contains(at(t, end))
    };
    (!thing).then_some((Day::OfMonth(day), end))
}

/// 农历八月十五, 腊月廿三, 闰六月, 大年初一.
fn lunar(t: &[char], i: usize) -> Option<(Day, usize)> {
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
    } else if sure || matches!(at(t, i), '廿' | '卅') {
        number(t, i)?
    } else {
        return None;
    };
    let day = u8::try_from(day).ok().filter(|day| (1..=30).contains(day))?;
    Some((day, skip(t, end, &["日", "号"])))
}

fn festival(t: &[char], i: usize) -> Option<(Day, usize)> {
    festival_in(t, i, None)
}

fn festival_in(t: &[char], i: usize, year: Option<Year>) -> Option<(Day, usize)> {
    use Festival::{KitchenGod, Lunar, NewYearsEve, Nth, Qingming, Solar};
    const NAMES: &[(&str, Festival)] = &[
        ("元旦节", Solar(1, 1)),
        ("元旦", Solar(1, 1)),
        ("情人节", Solar(2, 14)),
        ("三八妇女节", Solar(3, 8)),
        ("妇女节", Solar(3, 8)),
        ("植树节", Solar(3, 12)),
        ("愚人节", Solar(4, 1)),
        ("清明节", Qingming),
        ("清明", Qingming),
        ("五一劳动节", Solar(5, 1)),
        ("劳动节", Solar(5, 1)),
        ("五四青年节", Solar(5, 4)),
        ("青年节", Solar(5, 4)),
        ("母亲节", Nth(5, 2, Sunday)),
        ("六一儿童节", Solar(6, 1)),
        ("儿童节", Solar(6, 1)),
        ("父亲节", Nth(6, 3, Sunday)),
        ("建党节", Solar(7, 1)),
        ("八一建军节", Solar(8, 1)),
        ("建军节", Solar(8, 1)),
        ("教师节", Solar(9, 10)),
        ("国庆节", Solar(10, 1)),
        ("国庆", Solar(10, 1)),
        ("感恩节", Nth(11, 4, Thursday)),
        ("双十一", Solar(11, 11)),
        ("双11", Solar(11, 11)),
        ("双十二", Solar(12, 12)),
        ("双12", Solar(12, 12)),
        ("女生节", Solar(3, 7)),
        ("万圣夜", Solar(10, 31)),
        ("万圣节", Solar(10, 31)),
        ("光棍节", Solar(11, 11)),
        ("平安夜", Solar(12, 24)),
        ("圣诞节", Solar(12, 25)),
        ("圣诞", Solar(12, 25)),
        ("农历新年", Lunar(1, 1)),
        ("春节", Lunar(1, 1)),
        ("元宵节", Lunar(1, 15)),
        ("元宵", Lunar(1, 15)),
        ("端午节", Lunar(5, 5)),
        ("端午", Lunar(5, 5)),
        ("七夕节", Lunar(7, 7)),
        ("七夕", Lunar(7, 7)),
        ("中元节", Lunar(7, 15)),
        ("中秋节", Lunar(8, 15)),
        ("中秋", Lunar(8, 15)),
        ("重阳节", Lunar(9, 9)),
        ("重阳", Lunar(9, 9)),
        ("腊八节", Lunar(12, 8)),
        ("腊八", Lunar(12, 8)),
        ("小年夜", KitchenGod),
        ("小年", KitchenGod),
        ("大年三十", NewYearsEve),
        ("年三十", NewYearsEve),
        ("大年夜", NewYearsEve),
        ("除夕夜", NewYearsEve),
        ("除夕", NewYearsEve),
    ];
    // "五一" and "十一" are also numbers: only with words that make them holidays.
    const SHORT: &[(&str, Festival)] =
        &[("五一", Solar(5, 1)), ("六一", Solar(6, 1)), ("十一", Solar(10, 1))];
    if !(one_of(t, i, "七万三中五儿元光八六农劳双国圣大女妇小平年建情愚感教春植母清父端腊重除青十"))
    {
        return None;
    }
    if let Some((festival, end)) = pick(t, i, NAMES) {
        return (at(t, i) != '小' || at(t, end) != '轻').then_some((Day::Festival(year, festival), end));
    }
    let (festival, end) = pick(t, i, SHORT)?;
    let holiday = any(
        t,
        end,
        &["之前", "以前", "前", "节", "假", "长假", "放假", "黄金周", "当天", "之后", "期间", "回"],
    );
    ((holiday.is_some() || (i == 0 && end == t.len()))
        && !before(t, i).is_ascii_digit()
        && !"一二三四五六七八九十百".contains(before(t, i)))
    .then_some((Day::Festival(year, festival), end))
}
