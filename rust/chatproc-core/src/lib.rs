//! chatproc's core: one datum walks one straight line.
pub mod error;
pub mod failpoint;
