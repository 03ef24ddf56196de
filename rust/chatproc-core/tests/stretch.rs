//! A conversation that is planned again and again, a few messages at a time, has at each moment the segments
//! that all its messages make, which `verify` makes anew; and of a long one only what is touched is read.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use chatproc_core::plan::Options;
use chatproc_core::round::Round;
use chatproc_core::segment::Grouping;
use chatproc_core::store::verify::verify;
use common::world::{self, Delivery, Link, delivery};
use common::{Project, settings};
use proptest::prelude::*;
use rusqlite::Connection;

/// Reads the deliveries as one more batch and plans.
fn deliver(project: &Project, round: &mut Round, number: usize, batch: &[Delivery], options: &Options) {
    let lines: Vec<Vec<u8>> = batch.iter().map(Delivery::line).collect();
    project.write_lines(&format!("batch-{number:04}.jsonl"), &lines);
    round.ingest(&project.input(), &mut |_, _| Ok(())).unwrap();
    round.plan(options.clone(), settings()).unwrap();
}

fn breaks(project: &Project) -> Vec<String> {
    let verdict = verify(&project.state(), &project.path("todos"), &mut |_, _| Ok(())).unwrap();
    verdict.breaks.iter().map(|found| format!("{found:?}")).collect()
}

/// Deliveries nearly in the collector's order: a few come late.
fn nearly_in_order() -> impl Strategy<Value = Vec<Delivery>> {
    let late = |deliveries: Vec<Delivery>| {
        let late = prop_oneof![9 => Just(0usize), 1 => 1..60usize];
        let late = prop::collection::vec(late, deliveries.len());
        (Just(deliveries), late)
    };
    world::world(40).prop_flat_map(late).prop_map(|(deliveries, late)| {
        let mut order: Vec<usize> = (0..deliveries.len()).collect();
        order.sort_by_key(|&at| at + late[at]);
        order.into_iter().map(|at| deliveries[at].clone()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_that_grows_has_the_segments_of_all_its_messages(
        deliveries in nearly_in_order(), options in world::options(), size in 1..8usize,
    ) {
        let project = Project::in_memory();
        let mut round = project.round();
        for (number, batch) in deliveries.chunks(size).enumerate() {
            deliver(&project, &mut round, number, batch, &options);
            prop_assert_eq!(breaks(&project), Vec::<String>::new(), "after batch {} of {}", number, size);
        }
    }
}

/// Talks of twenty messages, a minute apart, with three hours between them; each talk is a chain of its own,
/// or all are one.
fn talks(messages: std::ops::Range<i64>, is_one: bool) -> Vec<Delivery> {
    let message = |number: i64| {
        let talk = number / 20;
        let follows = number > 0 && (is_one || number % 20 > 0);
        let predecessor = follows.then(|| format!("m{}", number - 1));
        let sequence = Some(Link { index: Some(number), predecessor });
        Delivery { sequence, ..delivery(&format!("m{number}"), talk * 14_400 + number % 20 * 60) }
    };
    messages.map(message).collect()
}

#[test]
fn of_a_long_conversation_planning_reads_what_new_messages_and_edits_touch() {
    for grouping in [Grouping::Sql, Grouping::Session, Grouping::Time] {
        let options = Options { grouping, ..Options::default() };
        let project = Project::in_memory();
        let mut round = project.round();
        let mut told = talks(0..410, grouping == Grouping::Session);
        if grouping == Grouping::Time {
            for message in &mut told {
                message.sequence = None;
            }
        }
        deliver(&project, &mut round, 0, &told[..400], &options);
        drop(round);
        // Whoever read one of these could not go on.
        let conn = Connection::open(project.state()).unwrap();
        let unreadable = "UPDATE segments SET members = 'unreadable', status = 'done'
                          WHERE first_key NOT IN ('m60', 'm80', 'm100', 'm120', 'm360', 'm380')";
        assert_eq!(conn.execute(unreadable, []).unwrap(), 14);
        drop(conn);
        let edited = Delivery {
            event_id: "edit".to_owned(),
            revision: 1,
            state: "edited",
            text: "edited".to_owned(),
            ..told[85].clone()
        };
        let mut round = project.round();
        deliver(&project, &mut round, 1, &[&told[400..], &[edited]].concat(), &options);
        let conn = Connection::open(project.state()).unwrap();
        let members = |first: &str| -> String {
            let sql = "SELECT members FROM segments WHERE first_key = ?1";
            conn.query_row(sql, [first], |row| row.get(0)).unwrap()
        };
        assert_eq!(members("m400").split(',').count(), 10);
        assert_eq!(members("m80").split(',').count(), 20);
    }
}
