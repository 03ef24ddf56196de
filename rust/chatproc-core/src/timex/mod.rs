//! What a wording of time means: `周五下午5点前`, `in 3 days`, `农历八月十五`, counted from when it was sent.
//!
//! Pure: no clock, no file, no state. Chinese first, then English; traditional characters, full-width
//! letters and 中文数字 are read as what they are. Where a careful reader would see several readings they are
//! all listed and none is taken; where he would see no certain time there is none. A date without a clock
//! time stays a date. The cost grows with the length of the text, whatever it holds.
//!
//! | wording | meaning |
//! |---|---|
//! | 今天 明天 后天 大后天 昨天 前天, today, tomorrow, the day after tomorrow | the date |
//! | 周五 星期五 礼拜五, Friday | the nearest one from that day on, that day included |
//! | 本周五 下周五 下下周五 上周五 | of that week; a week is Monday to Sunday |
//! | this Friday; next Friday; last Friday | this week's or the coming one; the coming one or next week's: both where they differ |
//! | 7月3日 7.3 7-3 2026-07-03 20260703, July 3rd, 3 July 2026 | the date; without a year the coming one, and beside it one that is past by 30 days or less |
//! | 3/4 in English | 4 March and 3 April; `en-US` and `en-GB` know which |
//! | 5号 十五号, the 15th | of this month or, when it is past, of the next one that has it |
//! | 月底 年底 季度末, end of the month | the last day |
//! | 下周 下个月 周末 上旬 第三季度, next week | its first and last day |
//! | 农历八月十五 腊月廿三 初五 闰六月 除夕 中秋 | the lunar date, the coming one (1900 to 2099) |
//! | 国庆 元旦 清明 冬至 母亲节, Christmas, Good Friday | the coming one |
//! | 3天后 两周后, in 3 days, a week from Friday | a date |
//! | 两小时后 半小时内, within 48 hours | an instant, counted from the message's own |
//! | 下午3点半 20:00 差五分八点 晚上12点, half past three, 5pm, noon | a clock time; 晚上12点, 24:00 and what follows are of the next day |
//! | 3点, at 5 | 1 to 7 without a part of the day: morning and evening, as far as they are not past; 8 to 11: the morning; 12: noon, for a deadline also midnight |
//! | 北京时间8点, 3pm PST, UTC+8 | in that zone, written in the rules' own |
//! | 周三到周五 下午2点-4点 3-5号, Mon-Wed 9-11am, between 2 and 4pm | start and due |
//! | 前 截止 之内, by, due | due; without any of these an event (开会, exam) or 起 is a start, anything else due |
//! | 不是周五 周五不用交, not Friday | no time; `negated` |
//! | 不是周五，是周四; 周四改到周五, moved from Thursday to Friday | the second one |
//! | 尽快 过几天 月初 这两天 月底左右 三个工作日内, soon, in a few days, every Friday | `unresolved` |
//!
//! `docs/times.md` has the whole table.

mod calendar;
mod choose;
mod clocks;
mod cursor;
mod dates;
mod days_en;
mod days_zh;
mod elapsed;
mod festivals;
mod hours;
mod lunar;
mod lunar_zh;
mod marks;
mod months_zh;
mod numerals;
mod parts;
mod phrase;
mod places;
mod point;
mod ranges;
mod resolve;
mod said;
mod stretches_en;
mod sun;
#[cfg(test)]
mod tests;
mod text;
mod vague;
mod verdict;
mod words;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::zone::Zone;

pub use verdict::{Verdict, check};

/// Counted up when a wording comes to mean something else, or when it is sought in a message in another way:
/// a stored time is held against its wording only by the version that computed it.
pub const VERSION: u32 = 1;

/// More readings than this are not listed.
const MOST_READINGS: usize = 8;

/// The language whose order and hours are meant; what is read is always both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// Month before day.
    Chinese,
    /// The order of 3/4 is open.
    English,
    /// 3/4 is 4 March.
    American,
    /// 3/4 is 3 April.
    British,
}

impl Lang {
    /// The language of a tag such as `zh`, `zh-Hant`, `en` or `en-GB`; any other is [`Error::Config`].
    pub fn tagged(tag: &str) -> Result<Self> {
        let lower = tag.to_ascii_lowercase().replace('_', "-");
        match lower.split('-').next() {
            Some("zh") => Ok(Self::Chinese),
            Some("en") if lower == "en-us" => Ok(Self::American),
            Some("en") if ["en-gb", "en-au", "en-ie", "en-in", "en-nz"].contains(&lower.as_str()) => {
                Ok(Self::British)
            }
            Some("en") => Ok(Self::English),
            _ => Err(Error::Config(format!("{tag:?} is no language of times: zh, en, en-US or en-GB"))),
        }
    }

    /// English where a text has Latin letters and no Chinese ones, else Chinese.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let chinese = |letter: char| matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        let latin = text.chars().any(|letter| letter.is_ascii_alphabetic());
        if latin && !text.chars().any(chinese) { Self::English } else { Self::Chinese }
    }
}

/// How sure a resolved time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// One reading.
    Computed,
    /// No certain time, or none that is understood.
    Unresolved,
    /// Several readings.
    Ambiguous,
}

/// One reading; each end is RFC 3339 with an offset, or `YYYY-MM-DD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// When it begins.
    pub start: Option<String>,
    /// By when it is due.
    pub due: Option<String>,
}

/// What a text says of times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// When it begins; only where `check` is `computed`.
    pub start: Option<String>,
    /// By when it is due; only where `check` is `computed`.
    pub due: Option<String>,
    /// The zone that dates, clock times and offsets are of.
    pub timezone: String,
    /// The text's own words that were read; from the first to the last of them where they are several.
    pub original: Option<String>,
    /// How sure it is.
    pub check: Check,
    /// All readings where there are several, the likeliest first; else none.
    pub readings: Vec<Reading>,
    /// Whether the text names a time only to deny it.
    pub negated: bool,
}

/// Resolves the times of a text that was sent at `sent_at` (milliseconds since 1970), in `zone`.
///
/// ```
/// use chatproc_core::{timex, zone::Zone};
/// let zone = Zone::named("Asia/Shanghai").unwrap();
/// let sent_at = zone.instant("2026-07-01T10:00:00+08:00", chatproc_core::zone::Edge::Start).unwrap();
/// let time = timex::resolve("请周五下午5点前提交", sent_at, &zone, None);
/// assert_eq!(time.due.as_deref(), Some("2026-07-03T17:00:00+08:00"));
/// assert_eq!(time.original.as_deref(), Some("周五下午5点"));
/// ```
#[must_use]
pub fn resolve(text: &str, sent_at: i64, zone: &Zone, lang: Option<Lang>) -> Resolved {
    let folded = text::Text::new(text);
    let moment = resolve::Moment { sent: sent_at, zone, lang: lang.unwrap_or_else(|| Lang::of(text)) };
    let choice = choose::choose(&folded, &moment);
    let written = |meaning: &resolve::Meaning| {
        let end = |when: Option<resolve::When>| match when {
            Some(when) => verdict::written(when, zone).map(Some),
            None => Some(None),
        };
        Some(Reading { start: end(meaning.start)?, due: end(meaning.due)? })
    };
    let mut readings: Vec<Reading> = choice.meanings.iter().filter_map(written).collect();
    let check = match readings.len() {
        0 => Check::Unresolved,
        1 => Check::Computed,
        _ => Check::Ambiguous,
    };
    let only = if check == Check::Computed { readings.pop().unwrap_or_default() } else { Reading::default() };
    Resolved {
        start: only.start,
        due: only.due,
        timezone: zone.name().to_owned(),
        original: (choice.to > choice.from).then(|| folded.wording(choice.from, choice.to).to_owned()),
        check,
        readings,
        negated: choice.negated,
    }
}
