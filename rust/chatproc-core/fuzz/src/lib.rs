//! What must hold of the core for any bytes at all. Each function is a target of the fuzzer; the suite feeds
//! the kept corpus through the same ones (`tests/corpus.rs`).
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)] // a statement that does not hold ends the run

#[path = "../../tests/common/mod.rs"]
mod common;

mod claims;
mod events;
mod times;
mod worlds;

pub use claims::{claim, submission};
pub use events::{event, plan_events};
pub use times::times;
pub use worlds::{documents, segments};

/// What is done with the bytes.
pub type Target = fn(&[u8]);

/// Every target, by the name of its folder in `corpus/`.
pub const TARGETS: [(&str, Target); 7] = [
    ("claim", claim),
    ("documents", documents),
    ("event", event),
    ("plan_events", plan_events),
    ("segments", segments),
    ("submission", submission),
    ("times", times),
];

/// Values that the bytes choose, one after the other; zeros when they are used up.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    /// A moment of the years that the store knows, in milliseconds.
    fn moment(&mut self) -> i64 {
        i64::try_from(self.number() % 253_402_207_200_000).unwrap()
    }

    /// All that is left, as text.
    fn text(&self) -> std::borrow::Cow<'b, str> {
        String::from_utf8_lossy(self.0)
    }
}
