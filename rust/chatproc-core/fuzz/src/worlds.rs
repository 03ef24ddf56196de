//! Small worlds of chats, chosen by the bytes, against the slow oracle.

use chatproc_core::event::{Kind, State};
use chatproc_core::segment::{Grouping, Row, View, segment};

use super::Bytes;
use super::common::oracle::{self, Note, Rule};
use super::common::world::{self, Delivery, File, Link};
use super::common::{agenda_of, batches_of, intake_of};
use super::events::options;

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

/// Documents of a world, which the bytes choose, are the oracle's, byte for byte.
pub fn documents(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let options = options(&mut bytes);
    let deliveries = deliveries(&mut bytes);
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

/// Messages of two rooms, six bytes each; what is told twice agrees.
fn deliveries(bytes: &mut Bytes<'_>) -> Vec<Delivery> {
    let mut told: Vec<Delivery> = Vec::new();
    let mut second = 0;
    while !bytes.0.is_empty() && told.len() < 24 {
        let (shape, wait, link, who, files, length) =
            (bytes.byte(), bytes.byte(), bytes.byte(), bytes.byte(), bytes.byte(), bytes.byte());
        let number = told.len();
        if shape % 8 == 7 && number > 0 {
            let mut again = told[usize::from(link) % number].clone();
            again.event_id = format!("again {number}");
            again.collected_at += i64::from(wait % 3) * 1000;
            again.sender_name = world::NAMES[usize::from(who) % 8].map(str::to_owned);
            told.push(again);
            continue;
        }
        second += i64::from(wait) * i64::from(wait % 4 + 1) * 4;
        let key = format!("key {number}");
        let predecessor = match link % 16 {
            0 => None,
            1..=11 => number.checked_sub(1).map(|before| format!("key {before}")),
            place => Some(format!("key {}", place - 12)),
        };
        let sequence = (link & 64 == 0).then_some(Link { index: Some(i64::from(link)), predecessor });
        told.push(Delivery {
            state: bytes_word(shape, &["normal", "normal", "edited", "recalled"]),
            kind: if shape & 32 != 0 && shape & 16 != 0 { "system" } else { "message" },
            conversation: format!("room {}", shape >> 7),
            sender_id: (who & 8 != 0).then(|| format!("s{}", who >> 5)),
            sender_name: world::NAMES[usize::from(who) % 8].map(str::to_owned),
            role: if who & 16 != 0 { "self" } else { "user" },
            text: bytes_word(length, &["字", "a", "\"\u{1}", "😀"]).repeat(usize::from(length) * 2),
            reply_to: (link & 32 != 0).then(|| format!("key {}", link % 8)),
            files: (0..files % 3).map(|at| File::of(usize::from(files.wrapping_add(at)) % 9)).collect(),
            sequence,
            ..world::delivery(&key, second)
        });
    }
    told
}

fn bytes_word(byte: u8, words: &[&'static str; 4]) -> &'static str {
    words[usize::from(byte % 4)]
}
