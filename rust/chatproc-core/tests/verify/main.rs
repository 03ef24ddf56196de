//! `verify` finds nothing on a sound store, whatever happened to it, and every changed byte that matters.
#![allow(clippy::unwrap_used, clippy::panic)] // a test that cannot go on stops here

#[path = "../common/mod.rs"]
mod common;

mod changes;
mod chat;
mod covered;
mod sound;
mod way;
