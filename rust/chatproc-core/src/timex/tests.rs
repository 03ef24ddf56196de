//! The resolver's promises: its table of cases, and what holds for any text.

use proptest::prelude::*;

use super::cursor::STEPS;
use super::said::Said;
use super::text::Text;
use super::{Check, Lang, Reading, Resolved, Verdict, check, phrase, resolve};
use crate::zone::{Edge, Zone};

fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap()
}

fn at(instant: &str) -> i64 {
    zone("UTC").instant(instant, Edge::Start).unwrap()
}

/// A Wednesday morning in Shanghai.
const SENT: &str = "2026-07-01T10:00:00+08:00";

fn said(text: &str) -> Resolved {
    resolve(text, at(SENT), &zone("Asia/Shanghai"), None)
}

fn told(reading: &Reading) -> String {
    let end = |name: &str, time: &Option<String>| time.as_ref().map(|time| format!("{name} {time}"));
    [end("start", &reading.start), end("due", &reading.due)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn meaning(resolved: &Resolved) -> String {
    match resolved.check {
        Check::Computed => told(&Reading { start: resolved.start.clone(), due: resolved.due.clone() }),
        Check::Ambiguous => resolved.readings.iter().map(told).collect::<Vec<_>>().join(" or "),
        Check::Unresolved if resolved.negated => "denied".to_owned(),
        Check::Unresolved => "unresolved".to_owned(),
    }
}

#[test]
fn each_case_of_the_table_means_what_a_calendar_says() {
    let cases = include_str!("../../tests/timex/cases.txt");
    let (mut sent, mut place, mut lang) = (0, zone("UTC"), None);
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("sent ") {
            let [instant, name, tag] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (sent, place) = (at(instant), zone(name));
            lang = (tag != "-").then(|| Lang::tagged(tag).unwrap());
            continue;
        }
        let (text, expected) = line.split_once(" | ").unwrap();
        let found = meaning(&resolve(text, sent, &place, lang));
        count += 1;
        if found != expected {
            wrong.push(format!("{text}\n    expected {expected}\n    found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 400);
}

#[test]
fn the_wording_is_the_texts_own() {
    for (text, original) in [
        ("请於　週五　１７：００　前交", Some("週五　１７：００")),
        ("报名7月1日开始，7月10日截止", Some("7月1日开始，7月10日")),
        ("Let's meet tomorrow at 3 PM.", Some("tomorrow at 3 PM")),
        ("收到", None),
    ] {
        assert_eq!(said(text).original.as_deref(), original, "{text}");
    }
}

#[test]
fn the_language_decides_what_3_4_is() {
    let due = |tag: &str| meaning(&resolve("3/4", at(SENT), &zone("UTC"), Some(Lang::tagged(tag).unwrap())));
    assert_eq!(due("zh-Hant"), "due 2027-03-04");
    assert_eq!(due("en-US"), "due 2027-03-04");
    assert_eq!(due("en_GB"), "due 2027-04-03");
    assert_eq!(due("EN"), "due 2027-03-04 or due 2027-04-03");
    assert!(Lang::tagged("fr").is_err());
}

#[test]
fn a_models_times_are_held_against_the_wording() {
    let reading = |start: Option<&str>, due: Option<&str>| Reading {
        start: start.map(str::to_owned),
        due: due.map(str::to_owned),
    };
    let place = zone("Asia/Shanghai");
    let verdict = |original: &str, given: Reading| check(original, at(SENT), &place, None, &given);
    let five = "2026-07-03T17:00:00+08:00";
    let none = reading(None, None);
    assert_eq!(verdict("周五17:00前", reading(None, Some(five))), Verdict::Agrees);
    assert_eq!(verdict("周五17:00前", reading(None, Some("2026-07-03T09:00:00Z"))), Verdict::Agrees);
    assert_eq!(verdict("周五17:00开会", reading(Some(five), None)), Verdict::Agrees);
    assert_eq!(verdict("周五17:00", reading(Some(five), Some(five))), Verdict::Agrees);
    assert_eq!(verdict("周五前", reading(None, Some("2026-07-03"))), Verdict::Agrees);
    assert_eq!(verdict("周三到周五", reading(Some("2026-07-01"), Some("2026-07-03"))), Verdict::Agrees);
    assert_eq!(verdict("周五17:00前", none.clone()), Verdict::Computed(reading(None, Some(five))));
    assert_eq!(verdict("尽快", reading(None, Some("2026-07-02"))), Verdict::Unresolved);
    assert_eq!(verdict("不是周五截止", reading(None, Some("2026-07-03"))), Verdict::Negated);
    assert_eq!(verdict("不是周五截止", none), Verdict::Negated);
    for given in [
        reading(None, Some("2026-07-03T18:00:00+08:00")),
        reading(None, Some("2026-07-03")),
        reading(Some("2026-07-01"), Some(five)),
    ] {
        let computed = reading(None, Some(five));
        assert_eq!(verdict("周五17:00前", given.clone()), Verdict::Contradicts { computed, given });
    }
    // A date without a clock time stays a date.
    assert!(matches!(
        verdict("周五前", reading(None, Some("2026-07-03T23:59:59+08:00"))),
        Verdict::Contradicts { .. }
    ));
    for (given, agrees) in [("2026-07-02T15:00:00+08:00", true), ("2026-07-02T16:00:00+08:00", false)] {
        match verdict("明天3点", reading(None, Some(given))) {
            Verdict::Ambiguous { readings, fits } => assert_eq!((readings.len(), fits), (2, agrees)),
            other => panic!("{other:?}"),
        }
    }
}

fn steps(text: &str) -> u64 {
    let before = STEPS.get();
    let _ = said(text);
    STEPS.get() - before
}

#[test]
fn the_words_that_open_are_in_order() {
    assert!(super::words::OPENING_WORDS.is_sorted());
}

#[test]
fn hostile_texts_cost_as_much_as_their_length() {
    for pattern in [
        "周",
        "一",
        "1",
        "3-",
        "3/",
        "7.",
        "：",
        "下",
        "下周",
        "农历",
        "周五周",
        "12:",
        "半",
        "个",
        "不是",
        "不是周五",
        "一二三",
        "the ",
        "in ",
        "by friday ",
        "3点",
        "1点-",
        "next ",
        "the day after ",
        "两个半",
        "初",
        "(",
        "周五(",
        "a",
        "from ",
        "月",
        "年",
        "2026-",
        "至",
        "-",
        " ",
        "差五分",
        "每",
        "第一周",
        "between 3 and ",
        "闰",
        "UTC+",
        "http://",
        "、",
        "三、",
        "改到",
        "周五、",
    ] {
        let (half, whole) = (steps(&pattern.repeat(300)), steps(&pattern.repeat(600)));
        let letters = 600 * u64::try_from(pattern.chars().count()).unwrap();
        assert!(whole <= half * 2 + half / 5 + 1000, "{pattern:?}: {half} steps, then {whole}");
        assert!(whole <= letters * 1500, "{pattern:?}: {whole} steps for {letters} letters");
    }
}

#[test]
fn a_long_text_of_anything_is_answered() {
    for pattern in ["周", "一", "3-3-3-", "明天下午3点", "12:30", "next friday "] {
        let _ = said(&pattern.repeat(30_000 / pattern.len()));
    }
}

/// Pieces of which chats make times, and some of which they do not.
const PIECES: &[&str] = &[
    "今天",
    "明天",
    "后天",
    "周五",
    "下周三",
    "星期天",
    "7月3日",
    "3号",
    "农历",
    "八月十五",
    "初五",
    "上午",
    "下午",
    "晚上",
    "凌晨",
    "3点",
    "十二点",
    "半",
    "一刻",
    "20:00",
    "8:30",
    "前",
    "之前",
    "后",
    "内",
    "到",
    "至",
    "-",
    "不是",
    "不用",
    "改到",
    "截止",
    "开会",
    "交",
    "，",
    "。",
    " ",
    "的",
    "3天",
    "两小时",
    "个月",
    "月底",
    "年底",
    "周末",
    "国庆",
    "北京时间",
    "每",
    "尽快",
    "（",
    "）",
    "friday",
    "next ",
    "tomorrow",
    " at ",
    "5pm",
    "by ",
    "not ",
    "july 3",
    "3/4",
    "2026",
    "in 3 days",
    "noon",
    "midnight",
    "from ",
    " to ",
    "UTC+8",
    "EST",
    "\u{0}",
    "🙂",
    "e\u{301}",
    "\n",
    "99999999",
    "0",
    "零",
    "万",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..8).prop_map(|pieces| pieces.concat())
}

fn widened(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '!'..='~' => char::from_u32(u32::from(letter) + 0xfee0).unwrap(),
            ' ' => '\u{3000}',
            _ => letter,
        })
        .collect()
}

fn traditional(text: &str) -> String {
    const PAIRS: &[(char, char)] = &[
        ('周', '週'),
        ('点', '點'),
        ('后', '後'),
        ('内', '內'),
        ('个', '個'),
        ('两', '兩'),
        ('号', '號'),
        ('农', '農'),
        ('历', '曆'),
        ('开', '開'),
        ('会', '會'),
        ('国', '國'),
        ('庆', '慶'),
        ('时', '時'),
        ('间', '間'),
        ('尽', '盡'),
    ];
    text.chars()
        .map(|letter| PAIRS.iter().find(|pair| pair.0 == letter).map_or(letter, |pair| pair.1))
        .collect()
}

#[test]
fn no_wording_begins_where_none_is_tried() {
    let cases = include_str!("../../tests/timex/cases.txt");
    for line in cases.lines().chain(PIECES.iter().copied()) {
        let text = Text::new(line);
        for i in 0..text.letters().len() {
            let begins =
                matches!(phrase::phrase(&text, i, Lang::Chinese), Some((said, _)) if said != Said::Nothing);
            assert!(!begins || phrase::opens(text.letters(), i), "{i} in {line}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_gives_times_that_are_well_formed(
        text in prop_oneof![pieces(), "\\PC{0,40}"],
        sent in -62_135_596_800_000i64..253_402_300_799_999,
        name in prop::sample::select(vec!["Asia/Shanghai", "America/New_York", "Pacific/Apia", "UTC"]),
    ) {
        let place = zone(name);
        let resolved = resolve(&text, sent, &place, None);
        let only = Reading { start: resolved.start.clone(), due: resolved.due.clone() };
        for time in resolved.readings.iter().chain([&only]).flat_map(|reading| [&reading.start, &reading.due]).flatten() {
            prop_assert!(place.instant(time, Edge::Start).is_ok(), "{}", time);
        }
        prop_assert_eq!(resolved.check == Check::Computed, only != Reading::default());
        prop_assert_eq!(resolved.check == Check::Ambiguous, resolved.readings.len() > 1);
        prop_assert!(!resolved.negated || resolved.check == Check::Unresolved);
        if let Some(original) = &resolved.original {
            prop_assert!(text.contains(original.as_str()));
        }
        if resolved.check != Check::Unresolved {
            prop_assert!(resolved.original.is_some());
        }
    }

    #[test]
    fn width_script_and_white_space_change_nothing(text in pieces()) {
        let plain = meaning(&said(&text));
        prop_assert_eq!(&meaning(&resolve(&widened(&text), at(SENT), &zone("Asia/Shanghai"), Some(Lang::of(&text)))), &plain, "full width");
        prop_assert_eq!(&meaning(&said(&traditional(&text))), &plain, "traditional");
        let spaced = text.replace(' ', " \u{a0}\t ");
        prop_assert_eq!(&meaning(&said(&spaced)), &plain, "white space");
    }

    #[test]
    fn the_same_instant_means_the_same_however_it_is_told(text in pieces(), minutes in 0i64..2_000_000) {
        let place = zone("Asia/Shanghai");
        let sent = at(SENT) + minutes * 60_000;
        prop_assert_eq!(resolve(&text, sent, &place, None), resolve(&text, sent, &place, Some(Lang::of(&text))));
    }
}
