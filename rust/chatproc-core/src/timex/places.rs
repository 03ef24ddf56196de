//! Zones that a wording names: 北京时间, UTC+8, 3pm PST, Tokyo time.

use super::cursor::{at, begins_word, lit, one_of, pick, pick_word, space};
use super::numerals::digits;
use super::said::Place;
use super::text::Text;

use Place::{Fixed, Named, Several};

const HOUR: i32 = 3600;

/// A zone in front of what is meant in it.
pub(super) fn before_clock(text: &Text, i: usize) -> Option<(Place, usize)> {
    const CITIES: &[(&str, Place)] = &[
        ("北京时间", Named("Asia/Shanghai")),
        ("中国时间", Named("Asia/Shanghai")),
        ("国内时间", Named("Asia/Shanghai")),
        ("东八区时间", Named("Asia/Shanghai")),
        ("东八区", Named("Asia/Shanghai")),
        ("上海时间", Named("Asia/Shanghai")),
        ("香港时间", Named("Asia/Hong_Kong")),
        ("台北时间", Named("Asia/Taipei")),
        ("台湾时间", Named("Asia/Taipei")),
        ("新加坡时间", Named("Asia/Singapore")),
        ("东京时间", Named("Asia/Tokyo")),
        ("日本时间", Named("Asia/Tokyo")),
        ("首尔时间", Named("Asia/Seoul")),
        ("韩国时间", Named("Asia/Seoul")),
        ("伦敦时间", Named("Europe/London")),
        ("英国时间", Named("Europe/London")),
        ("巴黎时间", Named("Europe/Paris")),
        ("柏林时间", Named("Europe/Berlin")),
        ("德国时间", Named("Europe/Berlin")),
        ("莫斯科时间", Named("Europe/Moscow")),
        ("悉尼时间", Named("Australia/Sydney")),
        ("纽约时间", Named("America/New_York")),
        ("美东时间", Named("America/New_York")),
        ("美国东部时间", Named("America/New_York")),
        ("东部时间", Named("America/New_York")),
        ("美西时间", Named("America/Los_Angeles")),
        ("太平洋时间", Named("America/Los_Angeles")),
        ("洛杉矶时间", Named("America/Los_Angeles")),
        ("格林威治时间", Fixed(0)),
        ("格林尼治时间", Fixed(0)),
        ("世界标准时间", Fixed(0)),
        ("世界时", Fixed(0)),
        ("协调世界时", Fixed(0)),
    ];
    let t = text.letters();
    if !(one_of(t, i, "ug上世东中伦北协台国太巴德悉新日柏格洛纽美英莫韩首香")) {
        return None;
    }
    pick(t, i, CITIES)
        .or_else(|| offset(t, i))
        .map(|(place, end)| (place, if at(t, end) == '的' { end + 1 } else { end }))
}

/// A zone behind a clock time; +08:00 and Z only where the time is joined to its date by T (`joined`).
pub(super) fn after_clock(text: &Text, i: usize, joined: bool) -> Option<(Place, usize)> {
    const CITIES: &[(&str, Place)] = &[
        ("beijing time", Named("Asia/Shanghai")),
        ("china time", Named("Asia/Shanghai")),
        ("china standard time", Named("Asia/Shanghai")),
        ("hong kong time", Named("Asia/Hong_Kong")),
        ("singapore time", Named("Asia/Singapore")),
        ("tokyo time", Named("Asia/Tokyo")),
        ("london time", Named("Europe/London")),
        ("uk time", Named("Europe/London")),
        ("paris time", Named("Europe/Paris")),
        ("berlin time", Named("Europe/Berlin")),
        ("new york time", Named("America/New_York")),
        ("eastern standard time", Fixed(-5 * HOUR)),
        ("eastern daylight time", Fixed(-4 * HOUR)),
        ("eastern time", Named("America/New_York")),
        ("eastern", Named("America/New_York")),
        ("central time", Named("America/Chicago")),
        ("mountain time", Named("America/Denver")),
        ("pacific standard time", Fixed(-8 * HOUR)),
        ("pacific daylight time", Fixed(-7 * HOUR)),
        ("pacific time", Named("America/Los_Angeles")),
        ("pacific", Named("America/Los_Angeles")),
    ];
    const LETTERS: &[(&str, Place)] = &[
        ("est", Fixed(-5 * HOUR)),
        ("edt", Fixed(-4 * HOUR)),
        ("cdt", Fixed(-5 * HOUR)),
        ("mst", Fixed(-7 * HOUR)),
        ("mdt", Fixed(-6 * HOUR)),
        ("pst", Fixed(-8 * HOUR)),
        ("pdt", Fixed(-7 * HOUR)),
        ("et", Named("America/New_York")),
        ("ct", Named("America/Chicago")),
        ("mt", Named("America/Denver")),
        ("pt", Named("America/Los_Angeles")),
        ("cest", Fixed(2 * HOUR)),
        ("cet", Fixed(HOUR)),
        ("eest", Fixed(3 * HOUR)),
        ("eet", Fixed(2 * HOUR)),
        ("bst", Fixed(HOUR)),
        ("msk", Fixed(3 * HOUR)),
        ("hkt", Fixed(8 * HOUR)),
        ("sgt", Fixed(8 * HOUR)),
        ("jst", Fixed(9 * HOUR)),
        ("kst", Fixed(9 * HOUR)),
        ("aest", Fixed(10 * HOUR)),
        ("aedt", Fixed(11 * HOUR)),
        ("cst", Several(&["Asia/Shanghai", "America/Chicago"])),
        ("ist", Several(&["Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"])),
    ];
    let t = text.letters();
    let begin = space(t, i);
    let begin = if at(t, begin) == '(' { begin + 1 } else { begin };
    let found = pick_word(t, begin, CITIES)
        .or_else(|| {
            pick_word(t, begin, LETTERS)
                .filter(|&(_, end)| end - begin > 2 || text.is_capital(begin) || text.is_capital(begin + 1))
        })
        .or_else(|| offset(t, begin))
        .or_else(|| before_clock(text, begin))
        .or_else(|| joined.then(|| numeric(t, i)).flatten());
    found.map(|(place, end)| {
        (place, if at(t, begin.saturating_sub(1)) == '(' && at(t, end) == ')' { end + 1 } else { end })
    })
}

/// UTC, GMT+8, UTC-05:30.
fn offset(t: &[char], i: usize) -> Option<(Place, usize)> {
    if !begins_word(t, i) {
        return None;
    }
    let end = lit(t, i, "utc").or_else(|| lit(t, i, "gmt"))?;
    if let Some(found) = signed(t, space(t, end)) {
        return Some(found);
    }
    (!at(t, end).is_ascii_alphanumeric()).then_some((Fixed(0), end))
}

/// +08:00 or Z directly behind a time, as RFC 3339 writes them.
fn numeric(t: &[char], i: usize) -> Option<(Place, usize)> {
    if at(t, i) == 'z' && !at(t, i + 1).is_ascii_alphanumeric() {
        return Some((Fixed(0), i + 1));
    }
    let (place, end) = signed(t, i)?;
    (end - i >= 5).then_some((place, end))
}

fn signed(t: &[char], i: usize) -> Option<(Place, usize)> {
    let sign = match at(t, i) {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (number, end) = digits(t, i + 1)?;
    let number = i32::try_from(number).ok()?;
    let (hours, minutes, end) = match end - i - 1 {
        1 | 2 => match (at(t, end) == ':').then(|| digits(t, end + 1)).flatten() {
            Some((minutes, last)) if last - end == 3 => (number, i32::try_from(minutes).ok()?, last),
            _ => (number, 0, end),
        },
        4 => (number / 100, number % 100, end),
        _ => return None,
    };
    (hours <= 14 && minutes < 60).then_some((Fixed(sign * (hours * HOUR + minutes * 60)), end))
}
