//! Lengths of time and what counts from the moment of saying: 3天后, 两小时内, in 3 days, within 48 hours.

use super::cursor::{
    any, at, before, begins_word, lit, one_of, pick, pick_word, skip, skip_word, space, word,
};
use super::numerals::{digits, english, is_numeral, number};
use super::said::{Amount, Said};

#[derive(Clone, Copy)]
enum Unit {
    Months(i32),
    Days(i64),
    Seconds(i64),
}

use Unit::{Days, Months, Seconds};

const HAN_UNITS: &[(&str, Unit)] = &[
    ("个小时", Seconds(3600)),
    ("小时", Seconds(3600)),
    ("个钟头", Seconds(3600)),
    ("钟头", Seconds(3600)),
    ("个钟", Seconds(3600)),
    ("刻钟", Seconds(900)),
    ("分钟", Seconds(60)),
    ("秒钟", Seconds(1)),
    ("秒", Seconds(1)),
    ("个月", Months(1)),
    ("个星期", Days(7)),
    ("个礼拜", Days(7)),
    ("个周", Days(7)),
    ("星期", Days(7)),
    ("礼拜", Days(7)),
    ("周", Days(7)),
    ("天", Days(1)),
    ("日", Days(1)),
    ("个季度", Months(3)),
    ("年", Months(12)),
    ("h", Seconds(3600)),
    ("min", Seconds(60)),
];

const LATIN_UNITS: &[(&str, Unit)] = &[
    ("seconds", Seconds(1)),
    ("second", Seconds(1)),
    ("secs", Seconds(1)),
    ("sec", Seconds(1)),
    ("minutes", Seconds(60)),
    ("minute", Seconds(60)),
    ("mins", Seconds(60)),
    ("min", Seconds(60)),
    ("hours", Seconds(3600)),
    ("hour", Seconds(3600)),
    ("hrs", Seconds(3600)),
    ("hr", Seconds(3600)),
    ("h", Seconds(3600)),
    ("days", Days(1)),
    ("day", Days(1)),
    ("weeks", Days(7)),
    ("week", Days(7)),
    ("wks", Days(7)),
    ("fortnights", Days(14)),
    ("fortnight", Days(14)),
    ("months", Months(1)),
    ("month", Months(1)),
    ("quarters of an hour", Seconds(900)),
    ("quarter of an hour", Seconds(900)),
    ("quarters", Months(3)),
    ("years", Months(12)),
    ("year", Months(12)),
];

impl Amount {
    fn add(&mut self, unit: Unit, count: u32, tenths: u32) -> Option<()> {
        let scaled = |size: i64| Some(size.checked_mul(i64::from(count) * 10 + i64::from(tenths))? / 10);
        let first = *self == Self::default();
        match unit {
            Months(size) => {
                self.months = self.months.checked_add(i32::try_from(scaled(size.into())?).ok()?)?;
                self.weeks = false;
            }
            Days(size) => {
                let days = scaled(size)?;
                if tenths > 0 && days * 10 != size * (i64::from(count) * 10 + i64::from(tenths)) {
                    return None;
                }
                self.days = self.days.checked_add(days)?;
                self.weeks = first && size == 7 && tenths == 0;
            }
            Seconds(size) => {
                self.seconds = self.seconds.checked_add(scaled(size)?)?;
                self.exact = true;
                self.weeks = false;
            }
        }
        Some(())
    }

    fn back(self) -> Self {
        Self { months: -self.months, days: -self.days, seconds: -self.seconds, ..self }
    }
}

/// A Chinese amount: 3天, 一个半小时, 半年, 1小时30分钟.
fn han_amount(t: &[char], i: usize) -> Option<(Amount, usize)> {
    let mut amount = Amount::default();
    let mut end = i;
    for _ in 0..4 {
        let Some(next) = han_part(t, space_after(t, i, end), &mut amount) else { break };
        end = skip(t, next, &["又", "零"]);
    }
    (end > i).then_some((amount, end))
}

fn space_after(t: &[char], begin: usize, end: usize) -> usize {
    if end > begin { space(t, end) } else { end }
}

/// One number with its unit, added to an amount.
fn han_part(t: &[char], i: usize, amount: &mut Amount) -> Option<usize> {
    if let Some(end) = lit(t, i, "半") {
        if let Some(end) = any(t, end, &["年", "个年头"]) {
            amount.add(Months(6), 1, 0)?;
            return Some(end);
        }
        let bare = lit(t, end, "月").filter(|&end| one_of(t, end, "后内之以"));
        if let Some(end) = lit(t, end, "个月").or(bare) {
            amount.add(Days(15), 1, 0)?;
            return Some(end);
        }
        let (unit, end) = pick(t, end, HAN_UNITS)?;
        return match unit {
            Seconds(_) => {
                amount.add(unit, 0, 5)?;
                Some(end)
            }
            _ => None,
        };
    }
    let (count, mut end) = number(t, i)?;
    let mut tenths = 0;
    if let Some(tenth) = lit(t, end, ".").and_then(|end| digits(t, end)).filter(|&(tenth, _)| tenth < 10) {
        (tenths, end) = tenth;
    }
    end = space(t, end);
    if let Some(next) = lit(t, end, "个半") {
        let (unit, next) =
            pick(t, space(t, next), &[("小时", Seconds(3600)), ("钟头", Seconds(3600)), ("月", Months(1))])?;
        if let Months(_) = unit {
            amount.add(Days(15), 1, 0)?;
            amount.add(unit, count, 0)?;
        } else {
            amount.add(unit, count, 5)?;
        }
        return Some(next);
    }
    let (unit, next) = pick(t, end, HAN_UNITS)?;
    if at(t, next).is_ascii_alphanumeric() && t[end].is_ascii_alphabetic() && !at(t, next).is_ascii_digit() {
        return None;
    }
    amount.add(unit, count, tenths)?;
    if let Some(next) = lit(t, next, "半") {
        match unit {
            Months(12) => amount.add(Months(6), 1, 0)?,
            Seconds(3600) => amount.add(Seconds(1800), 1, 0)?,
            _ => return None,
        }
        return Some(next);
    }
    Some(next)
}

/// An uncertain Chinese amount: 几天, 两三天, 数日, 若干小时, N个工作日.
fn han_vague(t: &[char], i: usize) -> Option<usize> {
    const FEW: &[&str] = &[
        "好几", "几十", "十几", "几", "数十", "数", "若干", "一两", "两三", "三四", "四五", "五六", "六七",
        "七八", "八九", "三五", "一二", "二三", "多少",
    ];
    let unit = |end| pick(t, skip(t, end, &["多", "来"]), HAN_UNITS).map(|(_, end)| end);
    if let Some(end) = any(t, i, FEW) {
        return unit(end);
    }
    let (_, end) = number(t, i)?;
    let end = space(t, end);
    let many =
        any(t, end, &["多", "来", "几", "余"]).and_then(|end| pick(t, end, HAN_UNITS)).map(|(_, end)| end);
    many.or_else(|| any(t, end, &["个工作日", "工作日", "个交易日", "个自然月", "节课"]))
        .or_else(|| lit(t, end, "个半天"))
}

/// Reads what counts from the moment of saying in Chinese, or an amount that does not.
pub(super) fn chinese(t: &[char], i: usize) -> Option<(Said, usize)> {
    if !(is_numeral(at(t, i)) || one_of(t, i, "之今再剩延往接推提未每过近还几数好若多")) {
        return None;
    }
    let (ahead, begin) = match pick(
        t,
        i,
        &[
            ("接下来的", 'w'),
            ("接下来", 'w'),
            ("未来的", 'w'),
            ("未来", 'w'),
            ("今后", 'w'),
            ("往后", 'w'),
            ("再过", 'a'),
            ("过", 'a'),
            ("还有", 'a'),
            ("还剩下", 'a'),
            ("还剩", 'a'),
            ("剩下", 'a'),
            ("之后", 'a'),
            ("提前", 'n'),
            ("推迟", 'n'),
            ("过去", 'n'),
            ("近", 'n'),
            ("延后", 'n'),
            ("延期", 'n'),
            ("每隔", 'r'),
            ("每", 'r'),
        ],
    ) {
        Some((kind, end)) => (kind, space(t, end)),
        None => (' ', i),
    };
    if ahead == 'a' && lit(t, begin, "两天").is_some() && lit(t, i, "过").is_some() {
        return Some((Said::Vague, begin + 2));
    }
    if let Some(end) = han_vague(t, begin) {
        let after = any(t, end, &["之后", "以后", "后", "之内", "以内", "内", "之前", "以前", "前"]);
        return match (after, ahead) {
            (Some(end), _) => Some((Said::Vague, end)),
            (None, ' ' | 'n' | 'r') => Some((Said::Nothing, end)),
            (None, _) => Some((Said::Vague, end)),
        };
    }
    let (amount, end) = han_amount(t, begin)?;
    if ahead == 'n' {
        return Some((Said::Nothing, end));
    }
    if ahead == 'r' {
        return Some((Said::Recurring, end));
    }
    // "12日" and "2026年" are dates unless something says that they are lengths.
    let suffix = pick(
        t,
        space(t, end),
        &[
            ("的时间内", 'w'),
            ("时间内", 'w'),
            ("之内", 'w'),
            ("以内", 'w'),
            ("内", 'w'),
            ("之后", 'a'),
            ("以后", 'a'),
            ("过后", 'a'),
            ("后", 'a'),
            ("之前", 'b'),
            ("以前", 'b'),
            ("前", 'b'),
        ],
    );
    let length = t[end - 2..end] == ['半', '年'] || t[end - 2..end] == ['两', '日'];
    let dated = matches!(before(t, end), '日' | '年') && !length;
    // "2026年后" and "07年后" count from that year, not from today.
    if dated && (amount.months > 12 * 100 || at(t, begin) == '0') {
        return None;
    }
    let small_day = before(t, end) == '日' && at(t, begin) != '两';
    match suffix {
        Some(('w', end)) => Some((Said::Within(amount), end)),
        Some(('a', end)) if any(t, end, &["天", "勤", "台", "端", "面"]).is_none() => {
            Some((Said::After(amount), end))
        }
        Some(('b', _)) if small_day => None,
        Some(('b', end)) if any(t, end, &["往", "台", "端"]).is_none() => {
            Some((Said::After(amount.back()), end))
        }
        _ => match ahead {
            'w' => Some((Said::Within(amount), end)),
            'a' if !dated || small_day => Some((Said::After(amount), end)),
            _ if dated => None,
            _ => Some((Said::Nothing, end)),
        },
    }
}

/// An English amount: 3 days, an hour and a half, half an hour, 1h30m.
fn latin_amount(t: &[char], i: usize) -> Option<(Amount, usize)> {
    let mut amount = Amount::default();
    let mut end = i;
    for _ in 0..4 {
        let from = if end > i { skip_word(t, space(t, end), &["and"]) } else { i };
        let Some(next) = latin_part(t, from, &mut amount) else { break };
        end = next;
    }
    (end > i).then_some((amount, end))
}

fn latin_part(t: &[char], i: usize, amount: &mut Amount) -> Option<usize> {
    if let Some(end) = ["half an hour", "half hour", "a half hour"].iter().find_map(|half| word(t, i, half)) {
        amount.add(Seconds(1800), 1, 0)?;
        return Some(end);
    }
    if amount.exact
        && let Some(end) = word(t, i, "a half")
    {
        amount.add(Seconds(1800), 1, 0)?;
        return Some(end);
    }
    if let Some((seconds, end)) = part_of_hour(t, i) {
        amount.add(Seconds(seconds), 1, 0)?;
        return Some(end);
    }
    let (count, mut end) = match pick_word(t, i, &[("an", 1), ("a", 1), ("another", 1)]) {
        Some(one) => one,
        None => english(t, i)?,
    };
    let mut tenths = 0;
    if let Some(tenth) = lit(t, end, ".").and_then(|end| digits(t, end)).filter(|&(tenth, _)| tenth < 10) {
        (tenths, end) = tenth;
    }
    if let Some(next) = word(t, space(t, end), "and a half") {
        (tenths, end) = (5, next);
    }
    let gap = if at(t, end) == '-' { end + 1 } else { space(t, end) };
    let (unit, next) = match pick_word(t, gap, LATIN_UNITS) {
        Some(found) => found,
        // "1h30m", "90m"
        None => compact(t, end)?,
    };
    amount.add(unit, count, tenths)?;
    Some(next)
}

/// 1/2 hour, 3/4 of an hour.
fn part_of_hour(t: &[char], i: usize) -> Option<(i64, usize)> {
    let (seconds, end) = pick(t, i, &[("1/2", 1800), ("1/4", 900), ("3/4", 2700)])?;
    let end = skip_word(t, space(t, end), &["of an", "an"]);
    Some((seconds, ["hour", "hours", "hr", "h"].iter().find_map(|hour| word(t, end, hour))?))
}

fn compact(t: &[char], i: usize) -> Option<(Unit, usize)> {
    let unit = match at(t, i) {
        'h' => Seconds(3600),
        'm' => Seconds(60),
        'd' => Days(1),
        'w' => Days(7),
        _ => return None,
    };
    (!at(t, i + 1).is_ascii_alphabetic()).then_some((unit, i + 1))
}

const FEW: &[&str] =
    &["a couple of", "a couple", "couple of", "a few", "few", "several", "some", "a number of", "many"];

/// Reads what counts from the moment of saying in English, or an amount that does not.
pub(super) fn latin(t: &[char], i: usize) -> Option<(Said, usize)> {
    if !begins_word(t, i) {
        return None;
    }
    let (ahead, begin) = match pick_word(
        t,
        i,
        &[
            ("within the next", 'w'),
            ("in the next", 'w'),
            ("over the next", 'w'),
            ("for the next", 'n'),
            ("the next", 'w'),
            ("next", 'w'),
            ("within", 'w'),
            ("in under", 'w'),
            ("in less than", 'w'),
            ("no later than", 'w'),
            ("in about", 'a'),
            ("in", 'a'),
            ("after", 'a'),
            ("for", 'n'),
            ("every", 'r'),
            ("last", 'n'),
            ("past", 'n'),
        ],
    ) {
        Some((kind, end)) => (kind, space(t, end)),
        None => (' ', i),
    };
    if let Some(end) = FEW.iter().find_map(|few| word(t, begin, few)) {
        let (_, end) = pick_word(t, space(t, end), LATIN_UNITS)?;
        return match ahead {
            'w' | 'a' => Some((Said::Vague, end)),
            _ => {
                let later =
                    ["later", "from now", "ago"].iter().find_map(|words| word(t, space(t, end), words));
                Some(later.map_or((Said::Nothing, end), |end| (Said::Vague, end)))
            }
        };
    }
    if let Some(end) = working_days(t, begin) {
        return Some((if ahead == ' ' { Said::Nothing } else { Said::Vague }, end));
    }
    // "next week" is a week of the calendar, "after a day" is rare; "next 3 days" counts.
    let counted = english(t, begin).is_some();
    if lit(t, i, "next").is_some() && !counted {
        return None;
    }
    let (amount, end) = latin_amount(t, begin)?;
    let later = pick_word(
        t,
        space(t, end),
        &[
            ("from now", 'a'),
            ("from today", 'a'),
            ("later", 'a'),
            ("hence", 'a'),
            ("ago", 'b'),
            ("before", 'n'),
            ("after", 'n'),
        ],
    );
    match (ahead, later) {
        (_, Some(('a', end))) => Some((Said::After(amount), end)),
        (_, Some(('b', end))) => Some((Said::After(amount.back()), end)),
        ('w', _) => Some((Said::Within(amount), end)),
        ('a', None) => Some((Said::After(amount), end)),
        ('r', _) => Some((Said::Recurring, end)),
        _ => Some((Said::Nothing, end)),
    }
}

fn working_days(t: &[char], i: usize) -> Option<usize> {
    let (_, end) = english(t, i)?;
    ["business days", "business day", "working days", "working day", "school days", "weekdays"]
        .iter()
        .find_map(|days| word(t, space(t, end), days))
}
