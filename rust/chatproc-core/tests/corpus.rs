//! What the fuzzers found worth keeping still holds.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[test]
fn every_kept_input_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, target) in fuzz::TARGETS {
        let inputs: Vec<_> =
            fs_err::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            let bytes = fs_err::read(&input).unwrap();
            let held = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
            assert!(held.is_ok(), "{name} breaks on {}", input.display());
        }
    }
}
