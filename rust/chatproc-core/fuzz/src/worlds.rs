//! Small worlds of chats, chosen by the bytes, against the slow oracle.

use chatproc_core::event::{Kind, State};
use chatproc_core::segment::{Grouping, Row, View, segment};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::Bytes;
use super::common::oracle::{self, Note, Rule};
use super::common::world::{self, Delivery, Link};
use super::common::{agenda_of, batches_of, intake_of};

/// Segments of rows with any links are those of the oracle.
pub fn segments(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let rule = Rule {
        grouping: bytes.of(&[Grouping::Sql, Grouping::Time, Grouping::Session]),
        gap: 10,
        carry: usize::from(bytes.byte() % 5),
        limit: 300 + 8 * u64::from(bytes.byte()),
        start_at: bytes.of(&[0, 110, 140]),
    };
    let mut notes: Vec<Note> = Vec::new();
    let mut clock = 100;
    while !bytes.0.is_empty() && notes.len() < 24 {
        let (wait, link, cost) = (bytes.byte(), bytes.byte(), bytes.byte());
        clock += i64::from(wait % 32) - 2;
        let predecessor = match link % 32 {
            0 => None,
            1..=20 => notes.last().map(|note| note.key.clone()),
            place => Some(format!("key {}", place - 20)),
        };
        let index = (link & 64 != 0).then_some(i64::from(cost % 4));
        let system = wait & 128 != 0;
        notes.push(Note {
            key: format!("key {}", notes.len()),
            sent_at: clock,
            link: (link & 128 == 0).then_some(Link { index, predecessor }),
            system,
            cost: if system { 0 } else { 60 + u64::from(cost) },
        });
    }
    let rows: Vec<Row<'_>> = notes.iter().map(row).collect();
    let Rule { grouping, gap, carry, limit, start_at } = rule;
    let made = segment(&rows, &View { grouping, gap, carry, limit, start_at });
    assert_eq!(made.forks, oracle::forks(&notes));
    let wanted = oracle::segments(&notes, &rule);
    assert_eq!(made.segments.len(), wanted.len());
    for (made, wanted) in made.segments.iter().zip(wanted) {
        assert_eq!((&made.members, &made.carried), (&wanted.members, &wanted.carried));
        assert_eq!((made.continuity.as_str(), made.chars), (wanted.continuity, wanted.chars));
    }
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
        digest: [0; 32],
    }
}

/// Documents of a world, whose deliveries the bytes choose, are the oracle's, byte for byte.
pub fn documents(bytes: &[u8]) {
    let rng = TestRng::from_seed(RngAlgorithm::PassThrough, &endless(bytes));
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let Ok(world) = (world::world(14), world::options()).new_tree(&mut runner) else { return };
    let (deliveries, options) = world.current();
    let lines: Vec<Vec<u8>> = deliveries.iter().map(Delivery::line).collect();
    let intake = intake_of(lines.iter().map(Vec::as_slice));
    let built = batches_of(&intake, &agenda_of(&intake, &options), &options);
    let held = oracle::held(&deliveries);
    let planned = oracle::plan(&held, &options);
    assert_eq!(built.len(), planned.batches.len());
    for (built, batch) in built.iter().zip(&planned.batches) {
        let groups: Vec<_> = batch.iter().map(|&at| &planned.groups[at]).collect();
        assert_eq!(built.document, oracle::document(&held, &groups, &options));
        assert!(built.document.chars().count() as u64 <= options.max_input_chars);
    }
}

/// The bytes, and more after them than any world needs: whoever draws again until a number fits ends.
fn endless(bytes: &[u8]) -> Vec<u8> {
    let mut made = bytes.to_vec();
    let mut state =
        bytes.iter().fold(8_u64, |state, &byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
    while made.len() < bytes.len() + (1 << 17) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        made.extend((state >> 16).to_le_bytes());
    }
    made
}
