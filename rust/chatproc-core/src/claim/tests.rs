//! What is stored of a time, whatever a model and its wording say.

use super::*;
use crate::timex::Reading;
use proptest::prelude::*;

/// Wednesday, 2026-07-01T10:00:00+08:00.
const SENT: i64 = 1_782_871_200_000;
const FRIDAY: &str = "2026-07-03T17:00:00+08:00";

fn told(texts: &[&str]) -> Vec<Told> {
    let told = |(at, text): (usize, &&str)| Told {
        text: (*text).to_owned(),
        sent_at: SENT + 60_000 * i64::try_from(at).unwrap(),
        unit: false,
    };
    texts.iter().enumerate().map(told).collect()
}

fn due(text: &str) -> Reading {
    Reading { start: None, due: Some(text.to_owned()) }
}

fn judged(wording: &str, texts: &[&str], given: &Reading) -> Judged {
    judge(Some(wording), &told(texts), given, &Zone::named("Asia/Shanghai").unwrap())
}

#[test]
fn a_wording_is_read_with_the_words_around_it() {
    for wording in ["17:00 前", "周五", "17:00", "周五 17:00 前", "请周五　17：00 前交"] {
        let judged = judged(wording, &["请周五 17:00 前交到 302"], &due(FRIDAY));
        assert_eq!(judged.finding, Finding::Agrees, "{wording}");
    }
    let judged = judged("17:00", &["请周五 17:00 前交到 302"], &due("2026-07-01T17:00:00+08:00"));
    assert_eq!((judged.finding, judged.time), (Finding::Contradicts, due(FRIDAY)));
}

#[test]
fn a_clock_time_whose_day_stands_beside_it_is_of_that_day_though_its_half_is_open() {
    for text in ["周五5点前交", "报告周五交，5点前", "due Friday at 5"] {
        let wording = if text.starts_with("due") { "at 5" } else { "5点前" };
        let judged_as = |given: &Reading| {
            let judged = judged(wording, &[text], given);
            (judged.finding, judged.time)
        };
        assert_eq!(judged_as(&due(FRIDAY)), (Finding::Ambiguous, due(FRIDAY)), "{text}");
        assert_eq!(judged_as(&Reading::default()), (Finding::Ambiguous, Reading::default()), "{text}");
        let today = due("2026-07-01T17:00:00+08:00");
        assert_eq!(judged_as(&today), (Finding::Misfit, Reading::default()), "{text}");
    }
}

#[test]
fn what_the_wording_means_is_stored_and_what_is_open_is_said() {
    let saturday = Reading { start: Some("2026-07-04T09:00:00+08:00".to_owned()), due: None };
    let none = Reading::default();
    let cases = [
        ("周五", "周五交", &due("2026-07-10"), Finding::Contradicts, due("2026-07-03")),
        ("周五", "周五交", &none, Finding::Computed, due("2026-07-03")),
        ("周五", "周五17:00前交", &due("2026-07-03"), Finding::Computed, due(FRIDAY)),
        ("周五17:00", "周五17:00交", &saturday, Finding::Contradicts, placed(due(FRIDAY), &saturday)),
        ("周五", "不是周五截止", &due("2026-07-03"), Finding::Negated, none.clone()),
        ("周五", "不是周五，是周四", &due("2026-07-03"), Finding::Negated, none.clone()),
        ("周四", "不是周五，是周四", &due("2026-07-02"), Finding::Agrees, due("2026-07-02")),
        ("3/4", "due 3/4", &due("2027-04-03"), Finding::Ambiguous, due("2027-04-03")),
        ("3/4", "due 3/4", &due("2026-07-03"), Finding::Misfit, none.clone()),
        ("尽快", "尽快交", &due("2026-07-03"), Finding::Unresolved, due("2026-07-03")),
        ("周六", "周五交", &due("2026-07-04"), Finding::NotFound, due("2026-07-04")),
    ];
    for (wording, text, given, finding, time) in cases {
        let judged = judged(wording, &[text], given);
        assert_eq!((judged.finding, &judged.time), (finding, &time), "{wording} {text}");
        let silent = matches!(finding, Finding::Agrees | Finding::Computed | Finding::Unresolved);
        assert_eq!(judged.note.is_none(), silent, "{wording} {text}");
    }
}

#[test]
fn a_clock_time_may_have_its_day_from_another_message() {
    let at = |text: &str| Reading { start: Some(text.to_owned()), due: None };
    let texts = ["明天开会", "下午3点，A101"];
    let finding = |given: &Reading| judged("下午3点", &texts, given).finding;
    assert_eq!(finding(&at("2026-07-02T15:00:00+08:00")), Finding::Agrees);
    assert_eq!(finding(&at("2026-07-05T15:00:00+08:00")), Finding::Contradicts);
    let own_day = judged("今天下午3点", &["明天开会", "今天下午3点"], &at("2026-07-02T15:00:00+08:00"));
    assert_eq!(own_day.finding, Finding::Contradicts);
}

#[test]
fn the_message_sent_last_counts_and_later_ones_that_differ_are_told() {
    let judged = judged("明天", &["明天交", "明天交", "改到周六交"], &due("2026-07-02"));
    assert_eq!(judged.finding, Finding::Agrees);
    let later = &judged.later[0];
    assert_eq!((later.place, later.meaning.due.as_deref()), (2, Some("2026-07-04")));
    assert_eq!(judged.later.len(), 1);
}

#[test]
fn a_wording_that_only_a_unit_may_hold_counts_from_its_message() {
    let zone = Zone::named("Asia/Shanghai").unwrap();
    let mut told = told(&["见附件", "收到"]);
    told[0].unit = true;
    assert_eq!(judge(Some("周五"), &told, &due("2026-07-03"), &zone).finding, Finding::Agrees);
    assert_eq!(judge(Some("周五"), &told[1..], &due("2026-07-03"), &zone).finding, Finding::NotFound);
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "周五",
        "周四",
        "不是",
        "，",
        "。",
        "17:00",
        "下午3点",
        "3点",
        "前",
        "到",
        "交",
        "开会",
        "明天",
        "7月3日",
        "3/4",
        "due ",
        "by ",
        "改到",
        "尽快",
        "不用",
        " ",
        "５点",
        "today ",
        "农历八月十五",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn time() -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop::sample::select(vec![
        "2026-07-03".to_owned(),
        FRIDAY.to_owned(),
        "2026-07-01T15:00:00+08:00".to_owned(),
    ]))
}

proptest! {
    #[test]
    fn what_is_stored_holds_when_it_is_judged_again(
        texts in prop::collection::vec(pieces(), 1..4), wording in pieces(), start in time(), due in time()
    ) {
        let zone = Zone::named("Asia/Shanghai").unwrap();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let told = told(&texts);
        for wording in [wording.as_str(), texts[0]] {
            let first = judge(Some(wording), &told, &Reading { start: start.clone(), due: due.clone() }, &zone);
            let again = judge(first.original.as_deref(), &told, &first.time, &zone);
            prop_assert_eq!(&again.time, &first.time);
            prop_assert_eq!(&again.original, &first.original);
            let expected = match first.finding {
                Finding::Agrees | Finding::Computed | Finding::Contradicts => vec![Finding::Agrees],
                Finding::Ambiguous | Finding::Misfit => vec![Finding::Ambiguous],
                Finding::NotFound => vec![Finding::NoWording, Finding::Nothing],
                other => vec![other],
            };
            prop_assert!(expected.contains(&again.finding), "{:?} then {:?}", first.finding, again.finding);
        }
    }

    #[test]
    fn a_wording_that_has_one_meaning_alone_never_leaves_the_models_own_time(
        wording in pieces(), due in time()
    ) {
        let zone = Zone::named("Asia/Shanghai").unwrap();
        let resolved = timex::resolve(&wording, SENT, &zone, None);
        prop_assume!(resolved.check == Check::Computed && check_quote(&wording, &wording) == Quote::Exact);
        let given = Reading { start: None, due };
        let judged = judge(Some(&wording), &told(&[&wording]), &given, &zone);
        let stored = [&judged.time.start, &judged.time.due];
        let stored: Vec<&String> = stored.into_iter().flatten().collect();
        let meant = [&resolved.start, &resolved.due];
        prop_assert!(stored.iter().all(|time| meant.iter().any(|meant| meant.as_ref() == Some(*time)))
            || judged.finding == Finding::Negated || judged.finding == Finding::Agrees
            || judged.original.as_deref() != Some(wording.as_str()), "{:?} {:?}", judged, resolved);
    }
}
