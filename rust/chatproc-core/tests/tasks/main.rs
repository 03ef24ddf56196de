//! Tasks from commit to file, over a real store.

// A test's own functions fail as a test does; `&[segment.clone()]` reads as the list that it stands for.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cloned_ref_to_slice_refs)]

mod commit;
#[cfg(feature = "failpoints")]
mod crash;
mod export;
mod near;
mod record;
mod requests;
mod search;
mod stale;
mod world;
