//! Batch files as collectors leave them: growing, rewritten, cut short, vanished, compressed, unfinished.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

mod common;

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use chatproc_core::fingerprint::sha256;
use chatproc_core::inbox::{Line, Lines};
use chatproc_core::store::intake::Ingested;
use chatproc_core::store::quarantine;
use common::world::{Delivery, delivery};
use common::{NOW, Project};
use proptest::prelude::*;

fn line(key: &str) -> Vec<u8> {
    delivery(key, 0).line()
}

/// Lines, accepted, repeats, quarantined.
fn counts(report: &Ingested) -> [u64; 4] {
    let counts = report.counts;
    assert_eq!(counts.lines, counts.accepted + counts.repeats + counts.quarantined);
    [counts.lines, counts.accepted, counts.repeats, counts.quarantined]
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn gz(parts: &[&[u8]]) -> Vec<u8> {
    let member = |part: &&[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    parts.iter().flat_map(member).collect()
}

fn zst(parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| zstd::encode_all(*part, 3).unwrap()).collect()
}

/// Makes a file as old as a time in milliseconds says.
fn touch(project: &Project, name: &str, at: i64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(at.unsigned_abs());
    let file = fs_err::OpenOptions::new().append(true).open(project.path(name)).unwrap();
    file.file().set_modified(time).unwrap();
}

#[test]
fn an_unchanged_file_is_not_read_again_and_a_grown_one_from_where_it_ended() {
    let project = Project::new();
    let mut bytes = joined(&[&line("a"), b"\n\n", &line("b"), b"\n"]);
    project.write("1.jsonl", &bytes);
    assert_eq!(counts(&project.ingest()), [2, 2, 0, 0]);
    let again = project.ingest();
    assert_eq!((counts(&again), again.files), ([0; 4], 0));
    let offset = bytes.len() as u64;
    bytes.extend(joined(&[b"not json\n", &line("c"), b"\n"]));
    project.write("1.jsonl", &bytes);
    assert_eq!(counts(&project.ingest()), [2, 1, 0, 1]);
    let held = ("1.jsonl".to_owned(), 4, offset, 8, "not-json".to_owned(), Some(b"not json".to_vec()));
    assert_eq!(project.quarantine(), [held]);
}

#[test]
fn a_rewritten_or_truncated_file_is_read_whole_and_changes_nothing_accepted() {
    let project = Project::new();
    project.write("1.jsonl", &joined(&[&line("a"), b"\n", &line("b"), b"\n"]));
    project.ingest();
    project.write("1.jsonl", &joined(&[&line("c"), b"\n", &line("a"), b"\n", &line("b"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [3, 1, 2, 0]);
    project.write("1.jsonl", &joined(&[&line("c"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [1, 0, 1, 0]);
    project.write("1.jsonl", b"");
    assert_eq!(counts(&project.ingest()), [0; 4]);
    project.write("1.jsonl", &joined(&[&line("c"), b"\n", &line("d"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 1, 1, 0]);
    assert_eq!(project.status()["messages"], 4);
}

#[test]
fn a_file_rewritten_to_the_same_length_is_read_again() {
    let project = Project::new();
    project.write("1.jsonl", &joined(&[&line("a"), b"\n"]));
    touch(&project, "1.jsonl", NOW - 100_000);
    project.ingest();
    project.write("1.jsonl", &joined(&[&line("b"), b"\n"]));
    touch(&project, "1.jsonl", NOW - 99_000);
    assert_eq!(counts(&project.ingest()), [1, 1, 0, 0]);
}

#[test]
fn a_file_that_vanishes_is_no_error_and_one_that_comes_back_changes_nothing() {
    let project = Project::new();
    let bytes = joined(&[&line("a"), b"\n"]);
    project.write("1.jsonl", &bytes);
    project.ingest();
    fs_err::remove_file(project.path("1.jsonl")).unwrap();
    let gone = project.ingest();
    assert_eq!((counts(&gone), gone.files, gone.unreadable.len()), ([0; 4], 0, 0));
    project.write("1.jsonl", &joined(&[&bytes, &line("b"), b"\n"]));
    assert_eq!(project.ingest().counts.accepted, 1);
    assert_eq!(project.status()["messages"], 2);
}

#[test]
fn a_file_that_vanishes_while_another_is_read_is_no_error() {
    let project = Project::new();
    project.write("1.jsonl", &joined(&[&line("a"), b"\n"]));
    project.write("2.jsonl", &joined(&[&line("b"), b"\n"]));
    let second = project.path("2.jsonl");
    let report = project
        .round()
        .ingest(&project.input(), &mut |_, _| {
            let _ = fs_err::remove_file(&second);
            Ok(())
        })
        .unwrap();
    assert_eq!((counts(&report), report.unreadable), ([1, 1, 0, 0], Vec::new()));
}

#[test]
fn a_last_line_without_newline_waits_until_it_is_settled_and_parses() {
    let mut project = Project::new();
    let open = joined(&[&line("a"), b"\n", &line("b")]);
    project.write("1.jsonl", &open);
    touch(&project, "1.jsonl", NOW - 4_999);
    let young = project.ingest();
    assert_eq!((counts(&young), young.waiting), ([1, 1, 0, 0], 1));
    project.now = NOW + 1;
    let settled = project.ingest();
    assert_eq!((counts(&settled), settled.waiting), ([1, 1, 0, 0], 0));
    assert_eq!(project.ingest().files, 0);
    // Its newline comes: the same line once more. Then the file goes on.
    project.write("1.jsonl", &joined(&[&open, b"\n", &line("c"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 1, 1, 0]);
}

#[test]
fn more_text_on_a_line_that_was_read_unfinished_is_refused_where_it_stands() {
    let project = Project::new();
    let open = joined(&[&line("a"), b"\n", &line("b")]);
    project.write("1.jsonl", &open);
    assert_eq!(counts(&project.ingest()), [2, 2, 0, 0]);
    project.write("1.jsonl", &joined(&[&open, b" and more\n", &line("c"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 1, 0, 1]);
    let held = project.quarantine();
    assert_eq!((held[0].1, held[0].2), (2, line("a").len() as u64 + 1));
    assert_eq!(held[0].5, Some(joined(&[&line("b"), b" and more"])));
}

#[test]
fn a_settled_last_line_that_does_not_parse_waits_and_is_read_when_it_is_whole() {
    let project = Project::new();
    let (half, rest) = (&line("b")[..30], &line("b")[30..]);
    let open = joined(&[&line("a"), b"\n", half]);
    project.write("1.jsonl", &open);
    let report = project.ingest();
    assert_eq!((counts(&report), report.waiting), ([1, 1, 0, 0], 1));
    let report = project.ingest();
    assert_eq!((counts(&report), report.waiting), ([0; 4], 1));
    assert_eq!(project.quarantine(), []);
    project.write("1.jsonl", &joined(&[&open, rest]));
    assert_eq!(counts(&project.ingest()), [1, 1, 0, 0]);
}

#[test]
fn a_last_line_that_is_blank_does_not_wait() {
    let project = Project::new();
    project.write("1.jsonl", &joined(&[&line("a"), b"\r\n \t"]));
    let report = project.ingest();
    assert_eq!((counts(&report), report.waiting), ([1, 1, 0, 0], 0));
}

#[test]
fn a_byte_order_mark_crlf_and_blank_lines_are_accepted_and_counted_in_places() {
    let project = Project::new();
    let first = joined(&[b"\xef\xbb\xbf", &line("a"), b"\r\n\r\n  \n"]);
    project.write("1.jsonl", &joined(&[&first, b"oops\r\n", &line("b"), b"\r\n"]));
    assert_eq!(counts(&project.ingest()), [3, 2, 0, 1]);
    let held =
        ("1.jsonl".to_owned(), 4, first.len() as u64, 4, "not-json".to_owned(), Some(b"oops".to_vec()));
    assert_eq!(project.quarantine(), [held]);
    // A mark anywhere else is no mark.
    project.write("2.jsonl", &joined(&[&line("a"), b"\n\xef\xbb\xbf", &line("c"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 0, 1, 1]);
}

#[test]
fn a_grown_file_has_a_byte_order_mark_only_at_its_start() {
    let project = Project::new();
    let bytes = joined(&[b"\xef\xbb\xbf", &line("a"), b"\n"]);
    project.write("1.jsonl", &bytes);
    project.ingest();
    project.write("1.jsonl", &joined(&[&bytes, b"\xef\xbb\xbf", &line("b"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [1, 0, 0, 1]);
}

#[test]
fn a_line_of_the_limit_is_read_and_one_byte_more_is_too_long() {
    let whole = line("a");
    let length = whole.len() as u64;
    for (before, end) in [("", "\n"), ("", "\r\n"), ("\u{feff}", "\n"), ("\u{feff}", "\r\n")] {
        let bytes = joined(&[before.as_bytes(), &whole, end.as_bytes(), &line("b"), b"\n"]);
        let mut project = Project::new();
        project.write("1.jsonl", &bytes);
        project.max_line_bytes = length;
        assert_eq!(counts(&project.ingest()), [2, 2, 0, 0], "{before:?} {end:?}");
        for limit in [length - 1, length - 2, length - 3, length - 5, length / 2, 3, 1] {
            let mut project = Project::new();
            project.write("1.jsonl", &bytes);
            project.max_line_bytes = limit;
            assert_eq!(counts(&project.ingest()), [2, 0, 0, 2], "{before:?} {end:?} {limit}");
            let offset = (before.len() + whole.len() + end.len()) as u64;
            let held =
                |line, offset| ("1.jsonl".to_owned(), line, offset, length, "too-long".to_owned(), None);
            assert_eq!(project.quarantine(), [held(1, 0), held(2, offset)], "{before:?} {end:?} {limit}");
        }
    }
}

#[test]
fn what_comes_after_a_line_that_is_too_long_is_read_and_the_line_is_listed_once() {
    let mut project = Project::new();
    project.max_line_bytes = 1_000;
    let long = Delivery { text: "x".repeat(600_000), ..delivery("long", 0) }.line();
    let bytes = joined(&[&line("a"), b"\n", &long, b"\n", &line("b"), b"\n"]);
    project.write("1.jsonl", &bytes);
    assert_eq!(counts(&project.ingest()), [3, 2, 0, 1]);
    project.write("1.jsonl", &joined(&[b"\n", &bytes]));
    project.write("1.jsonl", &bytes);
    touch(&project, "1.jsonl", NOW - 1);
    project.ingest();
    assert_eq!(project.quarantine().len(), 1);
    fs_err::remove_file(project.path("1.jsonl")).unwrap();
    project.write("1.jsonl", &joined(&[&bytes[..9], b"\n"]));
    project.ingest();
    project.write("1.jsonl", &bytes);
    assert_eq!(counts(&project.ingest()), [3, 0, 3, 0]);
}

#[test]
fn a_last_line_that_is_too_long_is_listed_only_once_it_ended() {
    let mut project = Project::new();
    project.max_line_bytes = 1_000;
    let long = Delivery { text: "x".repeat(5_000), ..delivery("long", 0) }.line();
    let start = joined(&[&line("a"), b"\n"]);
    for part in [2_000, 3_000] {
        project.write("1.jsonl", &joined(&[&start, &long[..part]]));
        let report = project.ingest();
        assert_eq!((report.counts.quarantined, report.waiting), (0, 1), "the collector may still be writing");
    }
    project.write("1.jsonl", &joined(&[&start, &long, b"\n"]));
    assert_eq!(counts(&project.ingest()), [1, 0, 0, 1]);
    let held = &project.quarantine()[0];
    assert_eq!((held.1, held.2, held.3), (2, start.len() as u64, long.len() as u64));
}

/// Retries the only line of the quarantine.
fn retry(project: &Project, max_line_bytes: u64) -> &'static str {
    let store = chatproc_core::store::Store::read(&project.state()).unwrap().unwrap();
    let id = quarantine::list(store.conn()).unwrap()[0].id;
    drop(store);
    project.round().retry(id, max_line_bytes).unwrap().outcome
}

#[test]
fn a_too_long_line_is_read_again_from_its_file_when_the_limit_allows() {
    let long = Delivery { text: "x".repeat(5_000), ..delivery("long", 0) }.line();
    let length = long.len() as u64;
    for end in ["\n", "\r\n"] {
        let bytes = joined(&[&line("a"), b"\n", &long, end.as_bytes(), &line("b"), b"\n"]);
        for (name, bytes) in
            [("1.jsonl", bytes.clone()), ("1.jsonl.gz", gz(&[&bytes])), ("1.jsonl.zst", zst(&[&bytes]))]
        {
            let mut project = Project::new();
            project.max_line_bytes = 1_000;
            project.write(name, &bytes);
            assert_eq!(counts(&project.ingest()), [3, 2, 0, 1]);
            assert_eq!(retry(&project, length - 1), "refused", "{name}");
            assert_eq!(project.quarantine()[0].4, "too-long", "{name}");
            assert_eq!(retry(&project, length), "accepted", "{name}");
            assert_eq!(project.quarantine(), []);
            assert_eq!(project.status()["messages"], 3);
        }
    }
}

#[test]
fn a_too_long_line_whose_file_changed_is_not_mistaken_for_another() {
    let long = Delivery { text: "x".repeat(5_000), ..delivery("long", 0) }.line();
    let changed = [
        joined(&[&line("a"), b"\n", &line("b"), b"\n"]),
        joined(&[&line("a"), b" ", &long, b"\n"]),
        joined(&[&line("a"), b"\n", &long, &long, b"\n"]),
        joined(&[&line("a"), b"\n", &long]),
        line("a"),
    ];
    for bytes in changed {
        let mut project = Project::new();
        project.max_line_bytes = 1_000;
        project.write("1.jsonl", &joined(&[&line("a"), b"\n", &long, b"\n"]));
        project.ingest();
        project.write("1.jsonl", &bytes);
        let store = chatproc_core::store::Store::read(&project.state()).unwrap().unwrap();
        let id = quarantine::list(store.conn()).unwrap()[0].id;
        drop(store);
        assert!(project.round().retry(id, 1 << 20).is_err());
        assert_eq!(project.quarantine()[0].4, "too-long");
    }
}

#[test]
fn compressed_batches_are_read_as_they_are_member_by_member() {
    let (a, b) = (joined(&[&line("a"), b"\n", &line("b")[..20]]), joined(&[&line("b")[20..], b"\noops\n"]));
    for (name, bytes) in [("1.jsonl.gz", gz(&[&a, &b])), ("1.jsonl.zst", zst(&[&a, &b]))] {
        let project = Project::new();
        project.write(name, &bytes);
        assert_eq!(counts(&project.ingest()), [3, 2, 0, 1], "{name}");
        let offset = (line("a").len() + line("b").len() + 2) as u64;
        let held = (name.to_owned(), 3, offset, 4, "not-json".to_owned(), Some(b"oops".to_vec()));
        assert_eq!(project.quarantine(), [held]);
        assert_eq!(project.ingest().files, 0);
        let more = joined(&[&line("c"), b"\n"]);
        let grown = if name.ends_with("gz") { gz(&[&a, &b, &more]) } else { zst(&[&a, &b, &more]) };
        project.write(name, &grown);
        assert_eq!(counts(&project.ingest()), [4, 1, 3, 0], "{name}");
    }
}

#[test]
fn a_compressed_batch_that_is_cut_short_waits_and_then_is_unreadable_with_what_it_had() {
    let lines: Vec<u8> = (0..2_000).flat_map(|at| joined(&[&line(&format!("k{at}")), b"\n"])).collect();
    for (name, bytes) in [("1.jsonl.gz", gz(&[&lines])), ("1.jsonl.zst", zst(&[&lines]))] {
        let mut project = Project::new();
        project.write(name, &bytes[..bytes.len() - 5]);
        touch(&project, name, NOW - 1_000);
        let young = project.ingest();
        assert_eq!((young.waiting, young.unreadable.len()), (1, 0), "{name}");
        assert_eq!(young.counts.quarantined, 0);
        project.now = NOW + 10_000;
        let settled = project.ingest();
        assert_eq!((settled.waiting, settled.unreadable.len()), (0, 1), "{name}");
        project.write(name, &bytes);
        let whole = project.ingest();
        assert_eq!((whole.counts.lines, whole.unreadable.len()), (2_000, 0), "{name}");
        assert_eq!(project.status()["messages"], 2_000);
        assert_eq!(project.quarantine(), []);
    }
}

#[test]
fn files_are_read_by_name_and_temporary_ones_not_at_all() {
    let project = Project::new();
    let told =
        |text: &str| Delivery { text: text.to_owned(), event_id: text.to_owned(), ..delivery("k", 0) }.line();
    project.write("b.jsonl", &joined(&[&told("second"), b"\n"]));
    project.write("a.jsonl", &joined(&[&told("first"), b"\n"]));
    project.write(".hidden.jsonl", &joined(&[&told("hidden"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 1, 0, 1]);
    let held = project.quarantine();
    assert_eq!((held[0].0.as_str(), held[0].4.as_str()), ("b.jsonl", "revision-conflict"));
    let mut input = project.input();
    input.paths = vec![project.path("*.jsonl*").to_string_lossy().into_owned()];
    project.write("c.jsonl.tmp", &joined(&[&told("temporary"), b"\n"]));
    project.round().ingest(&input, &mut |_, _| Ok(())).unwrap();
    assert_eq!(project.quarantine(), held);
}

#[test]
fn a_refused_line_that_comes_again_is_a_repeat_even_when_it_was_discarded() {
    let project = Project::new();
    let place = joined(&[&line("a"), b"\n", b"oops\n"]);
    let bad = Delivery { platform: "NO", ..delivery("bad", 0) }.line();
    project.write("1.jsonl", &joined(&[&place, &bad, b"\n"]));
    assert_eq!(counts(&project.ingest()), [3, 1, 0, 2]);
    let ids = || {
        let store = chatproc_core::store::Store::read(&project.state()).unwrap().unwrap();
        let held = quarantine::list(store.conn()).unwrap();
        held.into_iter().map(|held| held.id).collect::<Vec<_>>()
    };
    let held = ids();
    for &id in &held {
        assert_eq!(project.round().retry(id, 1 << 20).unwrap().outcome, "refused");
    }
    assert_eq!(ids(), held);
    // The event is known wherever it comes, a line without an event by its place.
    project.write("2.jsonl", &joined(&[&bad, b"\n", &bad, b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 0, 2, 0]);
    project.write("1.jsonl", &joined(&[&place, b"\n", &bad, b"\n"]));
    assert_eq!(counts(&project.ingest()), [3, 0, 3, 0]);
    for &id in &held {
        project.round().discard(id).unwrap();
        assert!(project.round().discard(id).is_err());
        assert!(project.round().retry(id, 1 << 20).is_err());
    }
    assert_eq!(project.quarantine(), []);
    project.write("1.jsonl", &joined(&[&place, b"\n\n", &bad, b"\n"]));
    assert_eq!(counts(&project.ingest()), [3, 0, 3, 0]);
}

#[test]
fn a_refused_revision_keeps_its_event_id_and_a_retry_still_finds_the_conflict() {
    let project = Project::new();
    let liar = |text: &str| {
        Delivery { text: text.to_owned(), event_id: "liar".to_owned(), ..delivery("k", 0) }.line()
    };
    project.write("1.jsonl", &joined(&[&line("k"), b"\n", &liar("one"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 1, 0, 1]);
    assert_eq!(project.quarantine()[0].4, "revision-conflict");
    assert_eq!(retry(&project, 1 << 20), "refused");
    project.write("2.jsonl", &joined(&[&liar("two"), b"\n", &liar("one"), b"\n"]));
    assert_eq!(counts(&project.ingest()), [2, 0, 1, 1]);
    assert_eq!(project.quarantine()[1].4, "event-conflict");
}

#[test]
fn any_cut_of_a_file_into_growth_steps_reads_the_same_lines() {
    let bad = b"\xff\xfe bad\n\n{}\r\n".as_slice();
    let bytes = joined(&[b"\xef\xbb\xbf", &line("a"), b"\r\n", bad, &line("b"), b"\n", &line("a"), b"\n"]);
    let whole = Project::new();
    whole.write("1.jsonl", &bytes);
    whole.ingest();
    for cut in (0..bytes.len()).step_by(23) {
        let project = Project::new();
        for end in [cut, usize::midpoint(cut, bytes.len()), bytes.len()] {
            project.write("1.jsonl", &bytes[..end]);
            touch(&project, "1.jsonl", NOW - 1 - i64::try_from(bytes.len() - end).unwrap());
            project.ingest();
        }
        assert_eq!(project.quarantine(), whole.quarantine(), "cut at {cut}");
        assert_eq!(project.status()["messages"], 2, "cut at {cut}");
    }
}

#[test]
fn links_that_lead_back_and_names_that_are_no_text_stop_nothing() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let batch = folder.path().join("a.jsonl");
    fs_err::write(&batch, b"").unwrap();
    for name in ["one", "two"] {
        fs_err::os::unix::fs::symlink(".", folder.path().join(name)).unwrap();
    }
    fs_err::os::unix::fs::symlink("nowhere", folder.path().join("gone.jsonl")).unwrap();
    fs_err::write(folder.path().join(".hidden.jsonl"), b"").unwrap();
    fs_err::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.jsonl")), b"").unwrap();
    let found = chatproc_core::inbox::find(&[format!("{}/**/*.jsonl", folder.path().display())]).unwrap();
    assert_eq!(found.files, [batch]);
    assert_eq!(found.unreadable.len(), 1, "{:?}", found.unreadable);
    assert!(found.unreadable[0].error.contains("UTF-8"));
}

#[test]
fn files_of_the_store_and_exported_files_are_no_batches() {
    let project = Project::new();
    let mut input = project.input();
    input.paths = vec![format!("{}/**/*", project.path("").display())];
    fs_err::create_dir(project.path("todos")).unwrap();
    project.write("todos/todos-000000000001-000000000001.jsonl", b"{}\n");
    project.write("state.db-1.jsonl", b"");
    drop(chatproc_core::store::Store::open(&project.state(), NOW).unwrap());
    let (report, _) = chatproc_core::store::intake::look(None, &input, &mut |_, _| Ok(())).unwrap();
    assert_eq!((report.files, report.counts.lines), (1, 0), "{report:?}");
}

/// What a line is by the book: its bytes, or how long it is when that is more than allowed.
fn expected(line: &[u8], first: bool, limit: usize) -> Result<Vec<u8>, u64> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    if line.len() <= limit { Ok(line.to_vec()) } else { Err(line.len() as u64) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn lines_are_what_stands_between_newlines_wherever_what_is_read_at_once_ends(
        lines in prop::collection::vec((prop_oneof![4 => 0..300_usize, 2 => 0..300_000_usize, 1 => 262_100..262_200_usize], any::<bool>()), 1..12),
        limit in prop::sample::select(vec![1, 100, 262_144, 262_149, 1_000_000]),
        (mark, open, compressed) in any::<(bool, bool, bool)>(),
        left_at in 0..12_usize,
    ) {
        let mut bytes = if mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        for (number, (length, carriage)) in lines.iter().enumerate() {
            bytes.resize(bytes.len() + length, b'a' + u8::try_from(number).unwrap());
            bytes.extend_from_slice(if *carriage { b"\r\n" } else { b"\n" });
        }
        if open {
            bytes.pop();
        }
        let project = Project::new();
        let name = if compressed { "1.jsonl.gz" } else { "1.jsonl" };
        project.write(name, &if compressed { gz(&[&bytes]) } else { bytes.clone() });
        let path = project.path(name);
        let mut read = Lines::open(&path, None, limit as u64).unwrap();
        let whole = bytes.split(|byte| *byte == b'\n').count() - 1;
        let mut consumed = 0;
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let progress = read.progress(false);
            prop_assert_eq!((progress.consumed, progress.lines), (consumed as u64, number as u64));
            prop_assert_eq!(progress.digest, sha256(&[&bytes[..consumed]]));
            if number == left_at {
                read = Lines::again(&path, &progress, limit as u64).unwrap();
            }
            let wanted = expected(line, number == 0, limit);
            match read.next_line().unwrap() {
                Some(Line::Whole(line)) => prop_assert_eq!((Ok(line.to_vec()), number < whole), (wanted, true)),
                Some(Line::TooLong(length)) => prop_assert_eq!((Err(length), number < whole), (wanted, true)),
                Some(Line::Open(line)) => prop_assert_eq!((line.map(<[u8]>::to_vec), number), (wanted.ok(), whole)),
                None => prop_assert_eq!((consumed, number), (bytes.len(), whole)),
            }
            consumed += line.len() + 1;
        }
    }
}
