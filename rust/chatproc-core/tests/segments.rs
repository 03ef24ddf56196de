//! Segments are what is proven contiguous and nothing else: checked against a slow oracle over every kind
//! of broken sequence, and against the contract's sentences one by one.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::collections::BTreeSet;

use chatproc_core::event::{Kind, State};
use chatproc_core::segment::{Continuity, Grouping, Row, Segments, View, segment};
use common::oracle::{self, Note, Rule};
use common::world::Link;
use proptest::prelude::*;

/// Rows whose links are as wrong as they come: few keys, so that all of them collide.
fn notes() -> impl Strategy<Value = Vec<Note>> {
    let wait =
        prop_oneof![4 => 0..3i64, 1 => Just(10i64), 1 => Just(11i64), 1 => 12..40i64, 1 => Just(-2i64)];
    let predecessor = prop_oneof![5 => Just(usize::MAX), 2 => 0..11usize, 1 => 90..92usize];
    let link =
        prop::option::weighted(0.85, (prop::option::weighted(0.8, predecessor), prop::option::of(0..3i64)));
    let note = (wait, link, prop::bool::weighted(0.15), 60..400u64);
    prop::collection::vec(note, 0..11).prop_map(|notes| {
        let mut clock = 100;
        let mut made: Vec<Note> = Vec::new();
        for (number, (wait, link, system, cost)) in notes.into_iter().enumerate() {
            clock += wait;
            let predecessor = |at: usize| match at {
                usize::MAX => number.checked_sub(1).map(|before| format!("key {before}")),
                at => Some(format!("key {at}")),
            };
            let link = link.map(|(at, index)| Link { index, predecessor: at.and_then(predecessor) });
            let cost = if system { 0 } else { cost };
            made.push(Note { key: format!("key {number}"), sent_at: clock, link, system, cost });
        }
        made
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let grouping =
        prop::sample::select(vec![Grouping::Sql, Grouping::Time, Grouping::Session, Grouping::Session]);
    let start_at = prop_oneof![Just(0i64), 100..140i64];
    (grouping, 0..5usize, 300..2_000u64, start_at).prop_map(|(grouping, carry, limit, start_at)| Rule {
        grouping,
        gap: 10,
        carry,
        limit,
        start_at,
    })
}

fn row(note: &Note) -> Row<'_> {
    let Note { key, sent_at, link, system, cost } = note;
    Row {
        key,
        sent_at: *sent_at,
        sequenced: link.is_some(),
        index: link.as_ref().and_then(|link| link.index),
        predecessor: link.as_ref().and_then(|link| link.predecessor.as_deref()),
        kind: if *system { Kind::System } else { Kind::Message },
        state: State::Normal,
        cost: u32::try_from(*cost).unwrap(),
        files: 0,
        digest: [key.as_bytes()[key.len() - 1]; 32],
    }
}

fn rows(notes: &[Note]) -> Vec<Row<'_>> {
    notes.iter().map(row).collect()
}

fn view(rule: &Rule) -> View {
    let Rule { grouping, gap, carry, limit, start_at } = *rule;
    View { grouping, gap, carry, limit, start_at }
}

/// A segment as members, carried ones, continuity, characters and fingerprint.
type Shape = (Vec<String>, Vec<String>, &'static str, u64, [u8; 32]);

/// Segments as keys, so that they can be compared whatever the order of the rows.
fn by_key(notes: &[Note], made: &Segments) -> Vec<Shape> {
    let keys = |places: &[usize]| places.iter().map(|&at| notes[at].key.clone()).collect::<Vec<_>>();
    let segments = made.segments.iter();
    segments
        .map(|made| {
            let continuity = made.continuity.as_str();
            (keys(&made.members), keys(&made.carried), continuity, made.chars, made.content_fp)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn segments_are_those_of_the_slow_oracle(notes in notes(), rule in rule()) {
        let made = segment(&rows(&notes), &view(&rule));
        let wanted = oracle::segments(&notes, &rule);
        prop_assert_eq!(made.forks, oracle::forks(&notes));
        prop_assert_eq!(made.segments.len(), wanted.len());
        for (made, wanted) in made.segments.iter().zip(wanted) {
            prop_assert_eq!(&made.members, &wanted.members);
            prop_assert_eq!(&made.carried, &wanted.carried);
            prop_assert_eq!(made.continuity.as_str(), wanted.continuity);
            prop_assert_eq!(made.chars, wanted.chars);
            let sent: Vec<&Note> = made.members.iter().map(|&at| &notes[at]).filter(|note| !note.system).collect();
            prop_assert_eq!(made.sent, sent.len() as u64);
            let subject = sent.iter().find(|note| note.sent_at >= rule.start_at).map(|note| note.sent_at);
            prop_assert_eq!(made.subject_at, subject);
            let newest = made.members.iter().map(|&at| notes[at].sent_at).max();
            prop_assert_eq!(Some(made.newest_at), newest);
            let tally = made.tally;
            let all = tally.system + tally.recalled + tally.history + tally.live;
            prop_assert_eq!(all, made.members.len() as u64);
        }
    }

    #[test]
    fn every_message_is_in_exactly_one_segment(notes in notes(), rule in rule()) {
        let made = segment(&rows(&notes), &view(&rule));
        let mut members: Vec<usize> = made.segments.iter().flat_map(|made| made.members.clone()).collect();
        members.sort_unstable();
        prop_assert_eq!(members, (0..notes.len()).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_of_rows_changes_nothing(
        (notes, shuffled) in notes().prop_flat_map(|notes| (Just(notes.clone()), Just(notes).prop_shuffle())),
        rule in rule(),
    ) {
        let one = segment(&rows(&notes), &view(&rule));
        let other = segment(&rows(&shuffled), &view(&rule));
        prop_assert_eq!(by_key(&notes, &one), by_key(&shuffled, &other));
        prop_assert_eq!(one.forks, other.forks);
    }

    #[test]
    fn no_piece_of_a_session_is_too_long_but_a_single_message(notes in notes(), rule in rule()) {
        let rule = Rule { grouping: Grouping::Session, ..rule };
        for made in segment(&rows(&notes), &view(&rule)).segments {
            prop_assert!(made.members.len() == 1 || made.chars + 160 <= rule.limit);
            prop_assert!(made.carried.len() <= rule.carry);
            prop_assert!(made.carried.is_empty() || made.continuity == Continuity::CutAtSilence);
            let members: BTreeSet<usize> = made.members.iter().copied().collect();
            prop_assert!(made.carried.iter().all(|at| !members.contains(at)));
        }
    }
}

/// A sequenced message of 100 characters.
fn note(key: &str, sent_at: i64, predecessor: Option<&str>) -> Note {
    let link = Some(Link { index: None, predecessor: predecessor.map(str::to_owned) });
    Note { key: key.to_owned(), sent_at, link, system: false, cost: 100 }
}

const SQL: Rule = Rule { grouping: Grouping::Sql, gap: 10, carry: 2, limit: 10_000, start_at: 0 };

/// Keys of each segment, with its continuity and what it carries.
fn shape(notes: &[Note], rule: Rule) -> Vec<String> {
    let made = segment(&rows(notes), &view(&rule));
    by_key(notes, &made)
        .into_iter()
        .map(|(members, carried, continuity, ..)| {
            let carried =
                if carried.is_empty() { String::new() } else { format!("({}) ", carried.join(" ")) };
            format!("{carried}{}: {continuity}", members.join(" "))
        })
        .collect()
}

#[test]
fn a_chain_of_stored_predecessors_is_one_segment() {
    let notes = [note("a", 0, None), note("b", 1_000_000, Some("a")), note("c", 5, Some("b"))];
    assert_eq!(shape(&notes, SQL), ["a b c: proven"]);
}

#[test]
fn a_predecessor_that_was_never_selected_ends_the_chain() {
    let notes = [note("a", 0, None), note("c", 1, Some("b")), note("d", 2, Some("c"))];
    assert_eq!(shape(&notes, SQL), ["a: single", "c d: proven"]);
}

#[test]
fn a_message_without_sequence_follows_none_and_none_follows_it() {
    let alone = Note { link: None, ..note("b", 1, None) };
    let notes = [note("a", 0, None), alone, note("c", 2, Some("b"))];
    assert_eq!(shape(&notes, SQL), ["a: single", "b: single", "c: single"]);
    assert_eq!(segment(&rows(&notes), &view(&SQL)).forks, 0);
}

#[test]
fn two_claims_on_one_predecessor_prove_nothing_stored_or_not() {
    let notes =
        [note("a", 0, None), note("b", 1, Some("a")), note("c", 2, Some("a")), note("d", 3, Some("c"))];
    assert_eq!(shape(&notes, SQL), ["a: single", "b: single", "c d: proven"]);
    assert_eq!(segment(&rows(&notes), &view(&SQL)).forks, 1);
    let unstored = [note("b", 1, Some("gone")), note("c", 2, Some("gone"))];
    assert_eq!(shape(&unstored, SQL), ["b: single", "c: single"]);
    assert_eq!(segment(&rows(&unstored), &view(&SQL)).forks, 1);
}

#[test]
fn two_first_messages_are_no_fork() {
    let notes = [note("a", 0, None), note("b", 1, None)];
    assert_eq!(segment(&rows(&notes), &view(&SQL)).forks, 0);
}

#[test]
fn a_cycle_proves_nothing() {
    let notes =
        [note("a", 0, Some("c")), note("b", 1, Some("a")), note("c", 2, Some("b")), note("d", 3, None)];
    assert_eq!(shape(&notes, SQL), ["a: single", "b: single", "c: single", "d: single"]);
    assert_eq!(shape(&[note("self", 0, Some("self"))], SQL), ["self: single"]);
}

#[test]
fn segments_stand_by_first_time_then_index_null_first_then_key() {
    let with =
        |index, key: &str| Note { link: Some(Link { index, predecessor: None }), ..note(key, 5, None) };
    let notes =
        [with(Some(2), "a"), with(None, "z"), with(Some(1), "c"), with(Some(1), "b"), note("y", 4, None)];
    let keys: Vec<String> = shape(&notes, SQL).iter().map(|shape| shape[..1].to_owned()).collect();
    assert_eq!(keys, ["y", "z", "b", "c", "a"]);
}

#[test]
fn a_system_notice_links_and_is_neither_sent_nor_counted() {
    let notice = Note { system: true, cost: 0, ..note("b", 1, Some("a")) };
    let notes = [note("a", 0, None), notice.clone(), note("c", 2, Some("b"))];
    assert_eq!(shape(&notes, SQL), ["a b c: proven"]);
    let made = segment(&rows(&notes), &view(&SQL));
    assert_eq!((made.segments[0].sent, made.segments[0].chars, made.segments[0].tally.system), (2, 264, 1));
    let alone = segment(&rows(&[note("a", 0, None), notice]), &view(&SQL));
    assert_eq!((alone.segments[0].continuity, alone.segments[0].sent), (Continuity::Single, 1));
}

#[test]
fn notices_alone_and_history_alone_have_no_subject() {
    let notice = Note { system: true, cost: 0, ..note("a", 9, None) };
    assert_eq!(segment(&rows(&[notice]), &view(&SQL)).segments[0].subject_at, None);
    let rule = Rule { start_at: 9, ..SQL };
    assert_eq!(segment(&rows(&[note("a", 8, None)]), &view(&rule)).segments[0].subject_at, None);
    assert_eq!(segment(&rows(&[note("a", 9, None)]), &view(&rule)).segments[0].subject_at, Some(9));
}

#[test]
fn by_time_a_silence_of_the_gap_holds_and_a_longer_one_cuts() {
    let rule = Rule { grouping: Grouping::Time, ..SQL };
    let notes = [note("b", 10, None), note("a", 0, Some("x")), note("c", 21, Some("b"))];
    assert_eq!(shape(&notes, rule), ["a b: by-time", "c: single"]);
}

#[test]
fn a_session_is_cut_at_silences_and_carries_what_was_said_before() {
    let rule = Rule { grouping: Grouping::Session, ..SQL };
    let notes = [
        note("a", 0, None),
        note("b", 10, Some("a")),
        Note { system: true, cost: 0, ..note("n", 11, Some("b")) },
        note("c", 22, Some("n")),
        note("d", 40, Some("c")),
    ];
    assert_eq!(shape(&notes, rule), ["a b n: proven", "(a b) c: cut-at-silence", "(b c) d: cut-at-silence"]);
    assert_eq!(shape(&notes, Rule { carry: 0, ..rule })[1], "c: cut-at-silence");
}

#[test]
fn a_piece_too_long_is_cut_at_its_longest_silence_the_later_of_equal_ones() {
    let rule = Rule { grouping: Grouping::Session, gap: 100, limit: 64 + 160 + 300, ..SQL };
    let notes = [
        note("a", 0, None),
        note("b", 9, Some("a")),
        note("c", 10, Some("b")),
        note("d", 19, Some("c")),
        note("e", 20, Some("d")),
    ];
    assert_eq!(shape(&notes, rule), ["a b c: proven", "d e: cut-at-budget"]);
    let tight = Rule { limit: 64 + 160 + 299, ..rule };
    assert_eq!(shape(&notes, tight), ["a: single", "b c: cut-at-budget", "d e: cut-at-budget"]);
}

#[test]
fn a_talk_at_an_even_pace_is_cut_in_time_that_grows_with_its_length_alone() {
    let key = |at: u32| format!("k{at}");
    let notes: Vec<Note> =
        (0..60_000).map(|at| note(&key(at), i64::from(at), at.checked_sub(1).map(key).as_deref())).collect();
    let rows = rows(&notes);
    let began = std::time::Instant::now();
    let found = segment(&rows, &view(&Rule { grouping: Grouping::Session, limit: 2_000, ..SQL }));
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    assert_eq!(found.segments.iter().map(|piece| piece.members.len()).sum::<usize>(), 60_000);
}

#[test]
fn a_piece_after_a_silence_that_is_cut_further_carries_nothing() {
    let rule = Rule { grouping: Grouping::Session, limit: 64 + 160 + 200, ..SQL };
    let notes =
        [note("a", 0, None), note("b", 50, Some("a")), note("c", 52, Some("b")), note("d", 53, Some("c"))];
    assert_eq!(shape(&notes, rule), ["a: single", "b: cut-at-silence", "c d: cut-at-budget"]);
}

#[test]
fn carried_messages_are_as_many_as_fit_the_latest_first() {
    let fits = |count: u64| 64 + 160 + 100 + count * 115;
    let notes =
        [note("a", 0, None), note("b", 1, Some("a")), note("c", 2, Some("b")), note("d", 50, Some("c"))];
    for (limit, wanted) in [
        (fits(2), "(b c) d: cut-at-silence"),
        (fits(2) - 1, "(c) d: cut-at-silence"),
        (fits(1) - 1, "d: cut-at-silence"),
    ] {
        let rule = Rule { grouping: Grouping::Session, carry: 2, limit, ..SQL };
        assert_eq!(shape(&notes, rule).last().unwrap(), wanted, "limit {limit}");
    }
}

#[test]
fn a_single_message_that_is_too_long_alone_stays_whole() {
    let rule = Rule { grouping: Grouping::Session, limit: 300, ..SQL };
    let long = Note { cost: 1_000, ..note("b", 1, Some("a")) };
    let notes = [note("a", 0, None), long, note("c", 2, Some("b"))];
    assert_eq!(shape(&notes, rule), ["a: single", "b: cut-at-budget", "c: cut-at-budget"]);
}

#[test]
fn what_a_document_cannot_number_is_cut_and_not_carried_into() {
    let many = |count: usize, kind: fn(usize) -> bool| -> Vec<Note> {
        let key = |at: usize| format!("k{at}");
        let note = |at: usize| {
            let before = at.checked_sub(1).map(key);
            let late = if at >= 3 { 50 } else { 0 };
            Note { system: kind(at), cost: u64::from(!kind(at)), ..note(&key(at), late, before.as_deref()) }
        };
        (0..count).map(note).collect()
    };
    let rule = Rule { grouping: Grouping::Session, carry: 2, limit: 1_000_000, ..SQL };
    let lengths = |notes: &[Note]| -> Vec<(usize, usize)> {
        let made = segment(&rows(notes), &view(&rule)).segments;
        made.iter().map(|made| (made.carried.len(), made.members.len())).collect()
    };
    assert_eq!(lengths(&many(3 + 9_998, |_| false)), [(0, 3), (1, 9_998)]);
    assert_eq!(lengths(&many(3 + 9_999, |_| false)), [(0, 3), (0, 9_999)]);
    assert_eq!(lengths(&many(3 + 20_000, |at| at >= 100)), [(0, 3), (2, 20_000)]);
}
