//! What the fuzzers found worth keeping still holds, and what is near it.
//!
//!     CHATPROC_FUZZ_SECONDS=60 cargo test … --test corpus     # a minute of damage for each target
//!
//! Damage here is blind and needs no other toolchain; `fuzz/run` is guided by coverage.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test that cannot go on stops here

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest input that damage makes.
const LONGEST: usize = 4096;

fn inputs(name: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs_err::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs_err::read(path).unwrap()).collect()
}

fn assert_holds(name: &str, target: fuzz::Target, bytes: &[u8]) {
    let held = catch_unwind(AssertUnwindSafe(|| target(bytes)));
    assert!(held.is_ok(), "{name} breaks on b\"{}\"", bytes.escape_ascii());
}

#[test]
fn every_kept_input_holds() {
    for (name, target) in fuzz::TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for bytes in inputs {
            assert_holds(name, target, &bytes);
        }
    }
}

#[test]
fn damaged_inputs_hold() {
    let seconds = std::env::var("CHATPROC_FUZZ_SECONDS").map_or(0.3, |text| text.parse().unwrap());
    let seed = std::env::var("CHATPROC_FUZZ_SEED").map_or(8, |text| text.parse().unwrap());
    for (name, target) in fuzz::TARGETS {
        let inputs = inputs(name);
        let mut damage = Damage(seed);
        let (begin, mut done) = (Instant::now(), 0_u64);
        while begin.elapsed() < Duration::from_secs_f64(seconds) {
            assert_holds(name, target, &damage.of(&inputs));
            done += 1;
        }
        eprintln!("{name}: {done} inputs");
    }
}

/// Chooses by `SplitMix64`.
struct Damage(u64);

impl Damage {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap()
    }

    fn part<'i>(&mut self, input: &'i [u8]) -> &'i [u8] {
        let begin = self.below(input.len() + 1);
        &input[begin..begin + self.below(input.len() - begin + 1)]
    }

    /// One of the inputs with one to eight faults, some of them parts of another.
    fn of(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut made = inputs[self.below(inputs.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(made.len() + 1);
            match self.below(5) {
                0 if at < made.len() => made[at] = u8::try_from(self.below(256)).unwrap(),
                1 if at < made.len() => made[at] ^= 1 << self.below(8),
                2 => {
                    let end = (at + self.below(12)).min(made.len());
                    made.drain(at..end);
                }
                3 => {
                    let own = self.part(&made.clone()).to_vec();
                    made.splice(at..at, own);
                }
                _ => {
                    let other = inputs[self.below(inputs.len())].clone();
                    let part = self.part(&other).to_vec();
                    made.splice(at..at, part);
                }
            }
        }
        made.truncate(LONGEST);
        made
    }
}
