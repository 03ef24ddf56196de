//! What a model claims: its words held against the messages, and a submission's way to a record.

use chatproc_core::claim::{Finding, Told, doubt, judge, settle};
use chatproc_core::evidence::{Quote, check_quote};
use chatproc_core::task::{
    AttachmentEvidence, Basis, Context, Conversation, Draft, Owner, Processing, Record, Seconds, Sender,
    Source, Status, deliverables, merge, without_evidence,
};
use chatproc_core::timex::Reading;
use chatproc_core::zone::Zone;
use serde_json::{Value, json};

use super::Bytes;
use super::times::{ZONES, assert_is_time};

/// The times that a model gives are judged by the messages' own words, and its quotes are found or not.
///
/// Bytes: a zone, a moment, then wording, start, due and messages, each ended by `U+001F`.
pub fn claim(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let zone = Zone::named(bytes.of(&ZONES)).unwrap();
    let first = bytes.moment() / 2;
    let text = bytes.text();
    let mut parts = text.split('\u{1f}');
    let mut part = || parts.next().map(str::to_owned).filter(|part| !part.is_empty());
    let (wording, start, due) = (part(), part(), part());
    // As the checker hands them on: what is no time was refused before.
    let time =
        |text: Option<String>| text.filter(|text| zone.instant(text, chatproc_core::zone::Edge::End).is_ok());
    let given = Reading { start: time(start), due: time(due) };
    let told: Vec<Told> = (0..6)
        .map_while(|place| Some(Told { text: part()?, sent_at: first + place * 3_600_000, unit: place == 4 }))
        .collect();
    let judged = judge(wording.as_deref(), &told, &given, &zone);
    assert_eq!(
        judged.check.is_none(),
        matches!(judged.finding, Finding::Nothing)
            || (judged.time == Reading::default()
                && matches!(judged.finding, Finding::NotFound | Finding::NoWording)),
        "{judged:?}"
    );
    if judged.finding == Finding::Agrees {
        assert_eq!(judged.time, given);
    }
    if matches!(judged.finding, Finding::Computed | Finding::Contradicts) {
        assert_is_time(&judged.time, &zone);
    }
    let stands = |words: &str| told.iter().any(|told| told.unit || told.text.contains(words));
    assert!(judged.original.as_deref().is_none_or(stands), "{judged:?}");
    for worded in judged.suggestion.iter().chain(&judged.later) {
        assert!(told[worded.place].text.contains(&worded.original), "{worded:?}");
        assert_is_time(&worded.meaning, &zone);
    }
    for told in &told {
        quote_holds(wording.as_deref().unwrap_or_default(), &told.text);
    }
}

fn quote_holds(quote: &str, text: &str) {
    match check_quote(quote, text) {
        Quote::Exact => assert!(text.contains(quote)),
        Quote::Repaired(own) => {
            assert!(text.contains(own));
            // The repaired wording is found as it is.
            assert_eq!(check_quote(own, text), Quote::Exact);
        }
        Quote::Unverified => assert!(quote.trim().is_empty() || !text.contains(quote)),
    }
}

/// A submission of any shape is refused or becomes a record that can be stored, read, merged and settled;
/// no model completes a task or changes what a user has set.
///
/// Bytes: the JSON of a draft, `U+001F`, then the texts of the messages `k0`, `k1`….
pub fn submission(bytes: &[u8]) {
    let zone = Zone::named("Asia/Shanghai").unwrap();
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\u{1f}');
    let Ok(draft) = serde_json::from_str::<Draft>(parts.next().unwrap_or_default()) else { return };
    if draft.validate(&zone).is_err() {
        return;
    }
    let texts: Vec<&str> = parts.take(6).collect();
    let Ok(mut record) = Record::new(&draft, basis(&draft, &texts), &zone) else { return };
    assert!(matches!(record.status, Status::Open | Status::Cancelled));
    settle(&mut record).unwrap();
    let stored = serde_json::to_string(&record).unwrap();
    let read: Record = serde_json::from_str(&stored).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    record.due_at().unwrap();
    let _ = deliverables(&record);
    let found = doubt(&record).unwrap();
    assert!(record.time.check.is_none() || found.is_none(), "{found:?} of {:?}", record.time);
    let by_user: Record = {
        let mut value: Value = serde_json::to_value(&record).unwrap();
        value["status"] = json!("completed");
        value["status_by"] = json!("user");
        value["priority_by"] = json!("user");
        serde_json::from_value(value).unwrap()
    };
    let again = Record::new(&draft, basis(&draft, &texts), &zone).unwrap();
    let merged = merge(&by_user, again);
    assert_eq!((merged.status, merged.priority), (Status::Completed, by_user.priority));
    assert_eq!(merged.source_message_keys, record.source_message_keys);
    if let Some(gone) = without_evidence(&by_user) {
        assert_eq!(gone.status, Status::Completed);
        assert!(without_evidence(&gone).is_none());
    }
}

fn basis(draft: &Draft, texts: &[&str]) -> Basis {
    let conversation = Conversation { id: "c".to_owned(), name: None, kind: "group".to_owned() };
    let source = |(place, key): (usize, &String)| Source {
        platform: "qq".to_owned(),
        account_id: String::new(),
        conversation: conversation.clone(),
        message_key: key.clone(),
        message_id: None,
        sender: Sender::default(),
        sent_at: Seconds(1_782_871_200_000 + i64::try_from(place).unwrap() * 1000),
        sent_at_local: "2026-07-01T10:00:00+08:00".to_owned(),
        collected_at: None,
        text: (*texts.get(place).unwrap_or(&"")).to_owned(),
        attachments: Vec::new(),
        quotes: Vec::new(),
        selection: None,
        source: None,
    };
    let keys: std::collections::BTreeSet<&String> = draft.sources.iter().collect();
    let evidence = draft.evidence.iter().map(|unit| AttachmentEvidence {
        attachment_id: unit.attachment_id.clone(),
        name: None,
        sha256: "ab".repeat(32),
        unit: unit.unit.clone(),
        message_key: unit.message_key.clone(),
        path: None,
    });
    Basis {
        sources: keys.into_iter().enumerate().map(source).collect(),
        evidence: evidence.collect(),
        owner: Owner {
            platform: "qq".to_owned(),
            account_id: String::new(),
            conversation: conversation.clone(),
        },
        context: Context {
            group_id: "g".to_owned(),
            subject: Vec::new(),
            history: Vec::new(),
            continuity: Vec::new(),
        },
        processing: Processing {
            rules_file: "r".to_owned(),
            rules_sha256: String::new(),
            model: "m".to_owned(),
            settings_fp: String::new(),
            content_fp: Vec::new(),
            time: String::new(),
            usage: Value::Null,
            times_version: None,
        },
    }
}
