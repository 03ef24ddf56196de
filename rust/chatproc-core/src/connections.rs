//! Connections' hold on the store, beside whoever holds it for rounds: leases, pages, outcomes.
//!
//! Every call is one short transaction. What a round reads meanwhile is guarded where it is written, so no
//! lock of rounds is held here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lock::RoundLock;
use crate::store::connections::{self, Claim, Lease, Leased, Name, Outcome, Run, State};
use crate::store::intake::{Ingested, Input, Watch};
use crate::store::pages::{self, Page, Taken};
use crate::store::{Found, Store};

/// Times that a store in the making is looked at again, and the pause between.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A writer for connections. Any number may be at work on a store.
pub struct Connections {
    store: Store,
    state: PathBuf,
    now: i64,
}

impl Connections {
    /// Opens the store, made when missing, migrated when older; `now` in milliseconds.
    pub fn open(state: &Path, now: i64) -> Result<Self> {
        Ok(Self { store: open(state, now)?, state: state.to_owned(), now })
    }

    /// All connections that ever ran.
    pub fn states(&self) -> Result<Vec<State>> {
        connections::states(self.store.conn()).map_err(|error| error.at(&self.state))
    }

    /// Takes the lease for a new run; none while another run holds it.
    pub fn lease(&mut self, name: &Name, claim: &Claim<'_>) -> Result<Option<Leased>> {
        connections::lease(&mut self.store, name, claim)
    }

    /// Who holds the lease, expired or not.
    pub fn lease_of(&self, name: &Name) -> Result<Option<Lease>> {
        connections::lease_of(self.store.conn(), name).map_err(|error| error.at(&self.state))
    }

    /// Holds the lease for longer; false when another run took it.
    pub fn renew(&mut self, run: &Run<'_>, until: i64) -> Result<bool> {
        connections::renew(&mut self.store, run, until)
    }

    /// Counts one request before it is made; false when the day has none left.
    pub fn reserve(&mut self, run: &Run<'_>, day: &str, daily_requests: u64) -> Result<bool> {
        connections::reserve(&mut self.store, run, day, daily_requests)
    }

    /// Takes a page in, with the cursor that passes it.
    pub fn page(&mut self, run: &Run<'_>, page: &Page<'_>) -> Result<Taken> {
        pages::page(&mut self.store, run, page)
    }

    /// Ends a run; false when another run took its lease.
    pub fn record(&mut self, run: &Run<'_>, outcome: &Outcome, now: i64) -> Result<bool> {
        connections::record(&mut self.store, run, outcome, now)
    }

    /// A second writer on the same store, for work that takes long.
    pub fn again(&self) -> Result<Self> {
        Self::open(&self.state, self.now)
    }

    /// Reads all that is new in batch files, for a run.
    pub fn ingest(&mut self, run: &Run<'_>, input: &Input, watch: Watch<'_>) -> Result<Ingested> {
        pages::ingest(&mut self.store, run, input, watch)
    }
}

/// Opens a store that is there and current, or makes one. An older one is migrated alone, under the rounds'
/// lock; whoever holds it may just be doing so.
fn open(state: &Path, now: i64) -> Result<Store> {
    if let Some(folder) = state.parent() {
        crate::store::private_folder(folder)?;
    }
    for _ in 0..LOOKS {
        match Store::look(state)? {
            Found::Current | Found::Missing => return Store::open(state, now),
            Found::Older => {}
        }
        match RoundLock::take(state, "another chatproc that makes the store ready") {
            Ok(_lock) => return Store::open(state, now),
            Err(Error::Locked { .. }) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    RoundLock::take(state, "").and_then(|_lock| Store::open(state, now))
}

/// All connections as a reader sees them; none where there is no store.
pub fn states(state: &Path) -> Result<Vec<State>> {
    let Some(store) = Store::read(state)? else { return Ok(Vec::new()) };
    let states = connections::states(store.conn()).map_err(|error| error.at(state))?;
    store.undisturbed()?;
    Ok(states)
}
