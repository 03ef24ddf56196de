//! Whether the times that a model gives are those that its wording means.

use super::resolve::When;
use super::{Check, Lang, Reading, Resolved, resolve};
use crate::zone::{Edge, Zone};

/// How far two instants may lie apart and be the same: models leave out the seconds.
const SAME: i64 = 60_000;

/// What the program says to the times of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are what the wording means.
    Agrees,
    /// The model gave none; this is what the wording means.
    Computed(Reading),
    /// The wording is not understood: the model's times stand.
    Unresolved,
    /// The wording has several readings; `fits`: the model's times are one of them.
    Ambiguous {
        /// All of them.
        readings: Vec<Reading>,
        /// Whether the model's times are among them.
        fits: bool,
    },
    /// The model's times are not what the wording means.
    Contradicts {
        /// What it means.
        computed: Reading,
        /// What the model gave.
        given: Reading,
    },
    /// The wording denies the time it names: it is no time of the task.
    Negated,
}

/// Compares a model's `given` times with what `original` means in a message that was sent at `sent_at`
/// (milliseconds since 1970) in `zone`.
///
/// Which of `start` and `due` a single time stands in is the model's to say; dates and instants never equal
/// each other, and instants are the same within a minute.
#[must_use]
pub fn check(original: &str, sent_at: i64, zone: &Zone, lang: Option<Lang>, given: &Reading) -> Verdict {
    judge(&resolve(original, sent_at, zone, lang), zone, given)
}

fn judge(resolved: &Resolved, zone: &Zone, given: &Reading) -> Verdict {
    if resolved.negated {
        return Verdict::Negated;
    }
    match resolved.check {
        Check::Unresolved => Verdict::Unresolved,
        Check::Ambiguous => Verdict::Ambiguous {
            fits: resolved.readings.iter().any(|reading| agree(reading, given, zone)),
            readings: resolved.readings.clone(),
        },
        Check::Computed => {
            let computed = Reading { start: resolved.start.clone(), due: resolved.due.clone() };
            if given.start.is_none() && given.due.is_none() {
                Verdict::Computed(computed)
            } else if agree(&computed, given, zone) {
                Verdict::Agrees
            } else {
                Verdict::Contradicts { computed, given: given.clone() }
            }
        }
    }
}

fn agree(computed: &Reading, given: &Reading, zone: &Zone) -> bool {
    let same = |one: Option<&String>, other: Option<&String>| match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => same_time(one, other, zone),
        _ => false,
    };
    if let (Some(_), Some(_)) = (&computed.start, &computed.due) {
        return same(computed.start.as_ref(), given.start.as_ref())
            && same(computed.due.as_ref(), given.due.as_ref());
    }
    let only = computed.due.as_ref().or(computed.start.as_ref());
    match (given.start.as_ref(), given.due.as_ref()) {
        (Some(start), Some(due)) => same(only, Some(start)) && same(only, Some(due)),
        (one, other) => same(only, one.or(other)),
    }
}

fn same_time(one: &str, other: &str, zone: &Zone) -> bool {
    let is_day = |text: &str| text.len() == 10;
    match (is_day(one), is_day(other)) {
        (true, true) => one == other,
        (false, false) => {
            let at = |text: &str| zone.instant(text, Edge::Start).ok();
            at(one).zip(at(other)).is_some_and(|(one, other)| (one - other).abs() < SAME)
        }
        _ => false,
    }
}

/// A meaning's time as it is written.
pub(super) fn written(when: When, zone: &Zone) -> Option<String> {
    match when {
        When::Day(day) => (1..=9999).contains(&day.year()).then(|| day.to_string()),
        When::At(at) => zone.rfc3339(at.div_euclid(1000) * 1000).ok(),
    }
}
