//! Whole lives of a store, made by seeds: collectors that repeat, reorder, revise, recall and contradict
//! themselves; models that answer, lie, repeat themselves and fail; users who click; rules and clocks that
//! change; crashes at fail points. After each crash, one step of three and the end `verify` finds nothing, and
//! the store is what a slow model of the contract (`truth.rs`) says.
//!
//!     CHATPROC_LIFE_SEEDS=10000 cargo test --profile lives …    # so many lives; 60 without it
//!     CHATPROC_LIFE_SEED=17 cargo test …        # this one alone, told step by step
//!
//! A life that breaks is shortened to the steps that it needs, and its failure says the command.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)] // a test that cannot go on stops here

#[path = "../common/mod.rs"]
mod common;

mod chance;
mod collector;
mod crash;
mod life;
mod model;
mod truth;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use life::Life;

/// Steps of a life, before its end.
const STEPS: u64 = 14;

/// Lives one without the steps to skip; what broke, if anything did.
fn live(seed: u64, skip: &BTreeSet<u64>, told: bool) -> Result<(), String> {
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let mut life = Life::new(seed, told);
        for step in (0..STEPS).filter(|step| !skip.contains(step)) {
            life.step(step);
        }
        life.end();
    }));
    lived.map_err(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// The steps that a life can do without and still break.
fn shortened(seed: u64) -> BTreeSet<u64> {
    let mut skip = BTreeSet::new();
    for step in (0..STEPS).rev() {
        skip.insert(step);
        if live(seed, &skip, false).is_ok() {
            skip.remove(&step);
        }
    }
    skip
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_life_keeps_every_promise() {
    if let Some(seed) = number("CHATPROC_LIFE_SEED") {
        let skip = std::env::var("CHATPROC_LIFE_SKIP").unwrap_or_default();
        let skip = skip.split(',').filter_map(|step| step.parse().ok()).collect();
        live(seed, &skip, true).unwrap();
        return;
    }
    let first = number("CHATPROC_LIFE_FIRST").unwrap_or(0);
    let seeds = number("CHATPROC_LIFE_SEEDS").unwrap_or(60);
    let next = AtomicU64::new(first);
    let broken = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds || broken.lock().unwrap().len() >= 3 {
                        break;
                    }
                    if let Err(what) = live(seed, &BTreeSet::new(), false) {
                        broken.lock().unwrap().push((seed, what));
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    if let Some((seed, what)) = broken.first() {
        let skip: Vec<String> = shortened(*seed).iter().map(u64::to_string).collect();
        let command = format!(
            "CHATPROC_LIFE_SEED={seed} CHATPROC_LIFE_SKIP={} cargo test -p chatproc-core --features failpoints \
             --test life -- --nocapture",
            skip.join(",")
        );
        panic!("life {seed} breaks: {what}\nagain: {command}");
    }
}
