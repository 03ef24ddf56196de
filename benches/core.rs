//! The core's stages over generated batches, each by itself: `cargo bench -p chatproc-core`.
//!
//! Reads the first batch in the folder `CHATPROC_BENCH_DATA`, or in `benches/data/100000`, where
//! `benches/rounds.py` puts it.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::hint::black_box;
use std::path::PathBuf;

use chatproc_core::agenda::plan_lines;
use chatproc_core::event::read_event;
use chatproc_core::plan::Options;
use chatproc_core::store::Store;
use chatproc_core::store::intake::{Input, ingest};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const LINES: usize = 20_000;

fn batch() -> (PathBuf, Vec<u8>) {
    let folder = std::env::var_os("CHATPROC_BENCH_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/data/100000")),
        PathBuf::from,
    );
    let mut files: Vec<PathBuf> = fs_err::read_dir(&folder)
        .expect("no data: run benches/rounds.py first")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "jsonl"))
        .collect();
    files.sort();
    let text = fs_err::read(&files[0]).unwrap();
    let end = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(LINES - 1).unwrap().0 + 1;
    (folder, text[..end].to_vec())
}

fn stages(criterion: &mut Criterion) {
    let (_, text) = batch();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let mut group = criterion.benchmark_group("core");
    group.sample_size(10).throughput(Throughput::Elements(lines.len() as u64));
    group.bench_function("read_event", |bencher| {
        bencher.iter(|| lines.iter().filter(|line| read_event(black_box(line)).is_ok()).count());
    });
    let options = Options::default();
    group.bench_function("plan_lines", |bencher| {
        bencher.iter(|| plan_lines(lines.iter().copied(), &options).unwrap());
    });
    group.bench_function("ingest", |bencher| {
        let place = || {
            let folder = tempfile::tempdir().unwrap();
            fs_err::write(folder.path().join("a.jsonl"), &text).unwrap();
            folder
        };
        bencher.iter_batched(
            place,
            |folder| {
                let input = Input {
                    paths: vec![format!("{}/*.jsonl", folder.path().display())],
                    max_line_bytes: 1 << 24,
                    settle: 0,
                    now: 0,
                    state: folder.path().join("state.db"),
                    output: folder.path().join("todos"),
                };
                let mut store = Store::open(&folder.path().join("state.db"), 0).unwrap();
                ingest(&mut store, &input, &mut |_, _| Ok(())).unwrap();
                folder
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
