//! How alike two short texts are, and how close two times: whether two tasks may be one matter.
//!
//! Pure. It only finds what is worth a question; must never be taken for a proof that two tasks are one.

use std::collections::HashMap;

use icu_casemap::CaseMapper;
use unicode_normalization::UnicodeNormalization;

use crate::timex::Reading;
use crate::zone::{Edge, Zone};

/// Tasks whose times lie further apart are two matters, whatever they are called.
const CLOSE: u64 = 7 * 86_400_000;
/// From here on two texts are alike.
const ALIKE: f64 = 0.55;

/// What two tasks are compared by.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Face<'a> {
    pub title: &'a str,
    pub event: &'a str,
    pub time: &'a Reading,
}

/// How alike two tasks are, 0 to 1, by title or by title and event together.
#[must_use]
pub fn likeness(one: Face<'_>, other: Face<'_>) -> f64 {
    let whole = |face: Face<'_>| format!("{} {}", face.title, face.event);
    alike(one.title, other.title).max(alike(&whole(one), &whole(other)))
}

/// Whether two tasks may be one: texts that are alike and times that are close, or unknown.
#[must_use]
pub fn resembles(one: Face<'_>, other: Face<'_>, zone: &Zone) -> bool {
    are_close(one.time, other.time, zone) && likeness(one, other) >= ALIKE
}

fn are_close(one: &Reading, other: &Reading, zone: &Zone) -> bool {
    let at = |reading: &Reading| {
        let time = reading.due.as_ref().or(reading.start.as_ref())?;
        zone.instant(time, Edge::End).ok()
    };
    at(one).zip(at(other)).is_none_or(|(one, other)| one.abs_diff(other) <= CLOSE)
}

/// The share of pairs of neighbouring letters that two texts have in common: twice the common ones by all.
fn alike(one: &str, other: &str) -> f64 {
    let (one, other) = (letters(one), letters(other));
    if one == other {
        return if one.is_empty() { 0.0 } else { 1.0 };
    }
    let mut counts: HashMap<(char, char), usize> = HashMap::new();
    for pair in one.windows(2) {
        *counts.entry((pair[0], pair[1])).or_default() += 1;
    }
    let mut common = 0_u32;
    for pair in other.windows(2) {
        if let Some(count) = counts.get_mut(&(pair[0], pair[1])).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    let all = one.len().saturating_sub(1) + other.len().saturating_sub(1);
    if all == 0 { 0.0 } else { f64::from(2 * common) / f64::from(u32::try_from(all).unwrap_or(u32::MAX)) }
}

/// Letters and digits alone, width and case folded.
fn letters(text: &str) -> Vec<char> {
    let folded: String = text.nfkc().collect();
    CaseMapper::new().fold_string(&folded).chars().filter(|letter| letter.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn near_titles_are_alike_and_others_are_not() {
        for (one, other) in [
            ("交实验报告", "提交实验报告"),
            ("Submit lab report", "submit the lab report"),
            ("ＡＢＣ会议", "abc 会议"),
        ] {
            assert!(alike(one, other) >= ALIKE, "{one} {other} {}", alike(one, other));
        }
        for (one, other) in [("交实验报告", "参加班会"), ("", ""), ("x", "y"), ("交作业", "还书")]
        {
            assert!(alike(one, other) < ALIKE, "{one} {other}");
        }
    }

    #[test]
    fn tasks_far_apart_in_time_do_not_resemble_each_other() {
        let zone = Zone::named("Asia/Shanghai").unwrap();
        let due = |text: &str| Reading { start: None, due: Some(text.to_owned()) };
        let (first, near, far) = (due("2026-07-03"), due("2026-07-05T10:00:00+08:00"), due("2026-07-20"));
        let face = |time| Face { title: "交周报", event: "", time };
        assert!(resembles(face(&first), face(&near), &zone));
        assert!(!resembles(face(&first), face(&far), &zone));
        assert!(resembles(face(&first), face(&Reading::default()), &zone));
    }

    proptest! {
        #[test]
        fn likeness_is_symmetric_and_within_bounds(one in ".{0,20}", other in ".{0,20}") {
            let value = alike(&one, &other);
            prop_assert!((0.0..=1.0).contains(&value));
            prop_assert!((value - alike(&other, &one)).abs() < 1e-12);
        }
    }
}
