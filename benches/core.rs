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
use chatproc_core::timex;
use chatproc_core::zone::Zone;
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
                    max_memory: 1 << 29,
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

/// Messages as groups send them, most of them without any time.
const MESSAGES: &[&str] = &[
    "收到",
    "好的谢谢老师",
    "[图片]",
    "请于本周五（7月3日）下午17:00前将作业提交至学习通",
    "哈哈哈哈哈哈",
    "明天上午9:00-11:30在A101召开班会，请准时参加",
    "有人知道图书馆几点关门吗",
    "下午三点操场集合，记得带水，不要迟到",
    "这道题怎么做啊，我算出来和答案不一样，谁能讲一下",
    "报名链接 https://example.com/2026/07/03/form?id=12345 填一下",
    "Please send the report by noon on July 3rd, thanks!",
    "ok",
    "@全体成员 国庆放假安排：10月1日至10月7日放假调休，共7天。10月8日正常上课。请各班班长统计离校人数。",
    "周四的会改到下周二下午三点",
    "我这周有点忙，可能要晚一点才能看",
    "两天后交初稿，月底前交终稿",
];

fn times(criterion: &mut Criterion) {
    let zone = Zone::named("Asia/Shanghai").unwrap();
    let mut group = criterion.benchmark_group("timex");
    group.throughput(Throughput::Elements(MESSAGES.len() as u64));
    group.bench_function("resolve", |bencher| {
        bencher.iter(|| {
            let resolved = |text: &&str| timex::resolve(black_box(text), 1_782_871_200_000, &zone, None);
            MESSAGES.iter().map(resolved).filter(|time| time.original.is_some()).count()
        });
    });
    group.finish();
}

criterion_group!(benches, times, stages);
criterion_main!(benches);
