//! chatproc's core: one datum walks one straight line.
//!
//! 1. [`inbox`]: batch files → lines, read and checked by [`event`].
//! 2. [`delivery`] and [`revision`]: a line, read and hashed; what one more delivery changes about a message.
//! 3. [`segment`]: messages → what is proven contiguous.
//! 4. [`budget`] and [`plan`]: exact costs; segments → groups → batches; [`fingerprint`]: what is known
//!    again.
//! 5. [`agenda`] and [`document`]: what a round would do now, and the one document a model is sent.
//! 6. [`task`], [`evidence`], [`claim`] and [`timex`]: what comes back, checked and merged; what its times
//!    mean; [`likeness`]: what may be the same.
//! 7. [`store`] and [`export`]: the state file, the outbox, the files that consumers read.
//!
//! [`round`] holds the store for this line; [`connections`] deliver into it beside.
//!
//! Pure modules (`json event delivery revision met segment budget plan fingerprint document zone task evidence claim
//! likeness timex`) know no file and no clock: time is an argument everywhere. The others do the effects
//! and no thinking.

pub mod agenda;
pub mod budget;
pub mod claim;
pub mod connections;
pub mod delivery;
pub mod document;
pub mod error;
pub mod event;
pub mod evidence;
pub mod export;
pub mod failpoint;
pub mod fingerprint;
pub mod inbox;
mod json;
pub mod likeness;
pub mod lock;
pub mod met;
pub mod plan;
pub mod revision;
pub mod round;
pub mod segment;
pub mod store;
pub mod task;
pub mod timex;
pub mod zone;
