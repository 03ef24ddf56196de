//! The record's shape, and files to pass on.

use chatproc_core::task::{Attachment, Deliverable, Record, Seconds, deliverables, merge};
use proptest::prelude::*;
use serde_json::Value;

use crate::world::World;

fn record() -> Record {
    let mut world = World::new();
    let id = world.with_a_task("m1", "a");
    world.task(&id).record
}

#[test]
fn keys_stand_in_the_contracts_order() {
    let text = serde_json::to_string(&record()).unwrap();
    let keys = [
        "title",
        "event",
        "priority",
        "priority_reason",
        "status",
        "status_by",
        "priority_by",
        "time",
        "people",
        "location",
        "action_steps",
        "notes",
        "needs_review",
        "review_reasons",
        "source_message_keys",
        "sources",
        "attachment_evidence",
        "owner",
        "context",
        "processing",
    ];
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_object().unwrap().len(), keys.len());
    let mut rest = text.as_str();
    for key in keys {
        let at = rest
            .find(&format!("\"{key}\":"))
            .unwrap_or_else(|| panic!("{key} is missing or stands too early"));
        rest = &rest[at..];
    }
}

#[test]
fn merging_a_record_with_itself_says_nothing_new() {
    let record = record();
    assert!(merge(&record, record.clone()).says_the_same_as(&record));
    let read: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(read, record);
}

#[test]
fn an_update_keeps_the_sources_that_it_does_not_tell() {
    let old = with_files(&[&[], &[]]);
    let mut new = old.clone();
    new.sources.remove(0);
    let keys = |record: &Record| -> Vec<String> {
        record.sources.iter().map(|source| source.message_key.clone()).collect()
    };
    assert_eq!(keys(&new), ["m1"]);
    assert_eq!(keys(&merge(&old, new)), ["m0", "m1"]);
}

/// An attachment's id, name and digest.
type File = (&'static str, Option<&'static str>, Option<&'static str>);

fn with_files(files: &[&[File]]) -> Record {
    let mut record = record();
    let plain = record.sources.remove(0);
    for (number, files) in files.iter().enumerate() {
        let mut source = plain.clone();
        source.message_key = format!("m{number}");
        source.attachments = files
            .iter()
            .map(|&(id, name, sha256)| Attachment {
                id: id.to_owned(),
                name: name.map(str::to_owned),
                sha256: sha256.map(str::to_owned),
                mime: None,
                size: None,
                path: None,
                state: None,
            })
            .collect();
        record.sources.push(source);
    }
    record
}

#[test]
fn the_same_bytes_under_the_same_name_are_one_file_and_nothing_else_is() {
    let record = with_files(&[
        &[("a", Some("x.doc"), Some("11")), ("b", Some("x.doc"), Some("11")), ("c", Some("x.doc"), None)],
        &[
            ("a", Some("x.doc"), Some("11")),
            ("b", Some("X.doc"), Some("11")),
            ("c", Some("x.doc"), Some("22")),
        ],
        &[("a", Some("x.doc"), None), ("b", None, Some("11"))],
    ]);
    let told: Vec<_> = deliverables(&record)
        .into_iter()
        .map(|Deliverable { name, sha256, sources, .. }| {
            format!("{} {} {}", name.unwrap_or_default(), sha256.unwrap_or_default(), sources.join(","))
        })
        .collect();
    assert_eq!(told, ["x.doc 11 m0,m1", "x.doc  m0", "X.doc 11 m1", "x.doc 22 m1", "x.doc  m2", " 11 m2"]);
}

proptest! {
    /// Else a stored record would differ from the same message read again, and be published for nothing.
    #[test]
    fn a_number_of_a_sources_provenance_is_read_as_it_was_written(number in any::<f64>().prop_filter("finite", |it| it.is_finite())) {
        let read: Value = serde_json::from_str(&format!("{number:e}")).unwrap();
        let stored: Value = serde_json::from_str(&read.to_string()).unwrap();
        prop_assert_eq!(stored, read);
    }

    #[test]
    fn seconds_keep_their_milliseconds(at in 0i64..253_402_300_799_999) {
        let text = serde_json::to_string(&Seconds(at)).unwrap();
        prop_assert_eq!(text.contains('.'), at % 1000 != 0);
        prop_assert_eq!(serde_json::from_str::<Seconds>(&text).unwrap(), Seconds(at));
    }
}
