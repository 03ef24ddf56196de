//! Festivals and solar terms by their names: 国庆节, 中秋, 冬至, Christmas, Good Friday.

use jiff::civil::Weekday::{Monday, Sunday, Thursday};

use super::cursor::{any, at, before, lit, one_of, pick, pick_word};
use super::days_en::trailing_year;
use super::said::{Day, Festival, Year};

/// Reads a Chinese festival or solar term; `year` stands before it.
pub(super) fn chinese(t: &[char], i: usize, year: Option<Year>) -> Option<(Day, usize)> {
    use Festival::{BlackFriday, Easter, KitchenGod, Lunar, NewYearsEve, Nth, Solar};
    const NAMES: &[(&str, Festival)] = &[
        ("元旦节", Solar(1, 1)),
        ("元旦", Solar(1, 1)),
        ("情人节", Solar(2, 14)),
        ("三八妇女节", Solar(3, 8)),
        ("妇女节", Solar(3, 8)),
        ("植树节", Solar(3, 12)),
        ("世界读书日", Solar(4, 23)),
        ("世界地球日", Solar(4, 22)),
        ("护士节", Solar(5, 12)),
        ("记者节", Solar(11, 8)),
        ("复活节", Easter(0)),
        ("黑色星期五", BlackFriday),
        ("黑五", BlackFriday),
        ("愚人节", Solar(4, 1)),
        ("清明节", Festival::Term(6)),
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
        &[("五一", Solar(5, 1)), ("六一", Solar(6, 1)), ("八一", Solar(8, 1)), ("十一", Solar(10, 1))];
    if !(one_of(
        t,
        i,
        "七万三中五儿元光八六农劳双国圣大女妇小平年建情愚感教春植母清父端腊重除青十世护记复黑立雨惊谷夏芒处白秋寒霜冬",
    )) {
        return None;
    }
    if let Some((festival, end)) = pick(t, i, NAMES) {
        let other = matches!((at(t, i), at(t, end)), ('小', '轻') | ('黑', '类'));
        return (!other).then_some((Day::Festival(year, festival), end));
    }
    if let Some(found) = term(t, i, year) {
        return Some(found);
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

/// The solar terms, in the order of [`sun::term`](super::sun::term).
const TERMS: [&str; 24] = [
    "小寒", "大寒", "立春", "雨水", "惊蛰", "春分", "清明", "谷雨", "立夏", "小满", "芒种", "夏至", "小暑",
    "大暑", "立秋", "处暑", "白露", "秋分", "寒露", "霜降", "立冬", "小雪", "大雪", "冬至",
];

/// 冬至, 今年春分, 大雪节气. Some are weather too: those only with a year or with 节气.
fn term(t: &[char], i: usize, year: Option<Year>) -> Option<(Day, usize)> {
    let (number, end) =
        TERMS.iter().enumerate().find_map(|(number, name)| Some((number, lit(t, i, name)?)))?;
    let marked = any(t, end, &["节气", "时节"]);
    let weather = "小大雨".contains(at(t, i)) || at(t, i) == '白';
    (!weather || year.is_some() || marked.is_some())
        .then_some((Day::Festival(year, Festival::Term(u8::try_from(number).ok()?)), marked.unwrap_or(end)))
}

/// Reads an English festival with the year behind it.
pub(super) fn english(t: &[char], i: usize) -> Option<(Day, usize)> {
    use Festival::{BlackFriday, Easter, Lunar, Nth, Solar};
    const NAMES: &[(&str, Festival)] = &[
        ("new year's day", Solar(1, 1)),
        ("new years day", Solar(1, 1)),
        ("new year's eve", Solar(12, 31)),
        ("new years eve", Solar(12, 31)),
        ("chinese new year", Lunar(1, 1)),
        ("lunar new year", Lunar(1, 1)),
        ("spring festival", Lunar(1, 1)),
        ("mid autumn festival", Lunar(8, 15)),
        ("dragon boat festival", Lunar(5, 5)),
        ("valentine's day", Solar(2, 14)),
        ("valentines day", Solar(2, 14)),
        ("independence day", Solar(7, 4)),
        ("st patrick's day", Solar(3, 17)),
        ("veterans day", Solar(11, 11)),
        ("memorial day", Nth(5, -1, Monday)),
        ("ash wednesday", Easter(-46)),
        ("palm sunday", Easter(-7)),
        ("maundy thursday", Easter(-3)),
        ("good friday", Easter(-2)),
        ("easter sunday", Easter(0)),
        ("easter monday", Easter(1)),
        ("easter", Easter(0)),
        ("whit monday", Easter(50)),
        ("black friday", BlackFriday),
        ("mother's day", Nth(5, 2, Sunday)),
        ("mothers day", Nth(5, 2, Sunday)),
        ("father's day", Nth(6, 3, Sunday)),
        ("fathers day", Nth(6, 3, Sunday)),
        ("halloween", Solar(10, 31)),
        ("thanksgiving day", Nth(11, 4, Thursday)),
        ("thanksgiving", Nth(11, 4, Thursday)),
        ("christmas eve", Solar(12, 24)),
        ("christmas day", Solar(12, 25)),
        ("christmas", Solar(12, 25)),
        ("xmas", Solar(12, 25)),
        ("boxing day", Solar(12, 26)),
    ];
    let (festival, end) = pick_word(t, i, NAMES)?;
    let (year, end) = trailing_year(t, end);
    Some((Day::Festival(year, festival), end))
}
