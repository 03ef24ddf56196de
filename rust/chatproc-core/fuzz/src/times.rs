//! The time resolver.

use chatproc_core::timex::{Check, Lang, Reading, Resolved, Verdict, check, resolve};
use chatproc_core::zone::{Edge, Zone};

use super::Bytes;

pub const ZONES: [&str; 7] = [
    "Asia/Shanghai",
    "UTC",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "Europe/London",
];
const LANGS: [Option<Lang>; 5] =
    [None, Some(Lang::Chinese), Some(Lang::English), Some(Lang::American), Some(Lang::British)];

/// What is read stands in the text, is a time, comes again the same, and agrees with itself.
pub fn times(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let zone = Zone::named(bytes.of(&ZONES)).unwrap();
    let lang = bytes.of(&LANGS);
    let sent_at = bytes.moment();
    let text = bytes.text();
    let resolved = resolve(&text, sent_at, &zone, lang);
    assert_eq!(resolved, resolve(&text, sent_at, &zone, lang));
    let Resolved { start, due, original, check: sure, readings, negated, .. } = &resolved;
    assert!(
        original.as_deref().is_none_or(|words| !words.is_empty() && text.contains(words)),
        "{resolved:?}"
    );
    let reading = Reading { start: start.clone(), due: due.clone() };
    match sure {
        Check::Computed => {
            assert!(reading != Reading::default() && readings.is_empty() && !negated, "{resolved:?}");
            assert!(original.is_some());
        }
        Check::Ambiguous => assert!(reading == Reading::default() && (2..=8).contains(&readings.len())),
        Check::Unresolved => assert!(reading == Reading::default() && readings.is_empty()),
    }
    for reading in readings.iter().chain([&reading]) {
        assert_is_time(reading, &zone);
    }
    let agrees = check(&text, sent_at, &zone, lang, &reading);
    assert!(*sure != Check::Computed || agrees == Verdict::Agrees, "{resolved:?}: {agrees:?}");
}

/// Each end is a time of that zone, and the first is not after the last.
pub fn assert_is_time(reading: &Reading, zone: &Zone) {
    let at = |end: &Option<String>, edge| end.as_deref().map(|text| zone.instant(text, edge).unwrap());
    if let (Some(start), Some(due)) = (at(&reading.start, Edge::Start), at(&reading.due, Edge::End)) {
        assert!(start <= due, "{reading:?}");
    }
}
