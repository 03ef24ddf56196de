//! Where each connection stands: its place in the source, its budget, its lease, its runs.
//!
//! One run of a connection at a time, whatever started it: a lease is taken, held and lost here, in the
//! transactions that write under it. Times are given; nothing here waits or decides when to sync.

use std::fmt;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::failpoint;
use crate::revision::Counts;
use crate::store::Store;

/// Runs of a connection that are remembered.
const RUNS_KEPT: i64 = 200;

/// A connection's name: toolkits are told apart in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    toolkit: String,
    id: String,
}

impl Name {
    /// The connection of that toolkit with that id.
    #[must_use]
    pub fn new(toolkit: &str, id: &str) -> Self {
        Self { toolkit: toolkit.to_lowercase(), id: id.to_owned() }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.toolkit, self.id)
    }
}

/// A connection as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // see the columns in migrations/0002-connections.sql
pub struct State {
    pub toolkit: String,
    pub id: String,
    pub cursor: Map<String, Value>,
    pub last_attempt_at: Option<i64>,
    pub last_success_at: Option<i64>,
    pub next_due_at: Option<i64>,
    pub budget_day: String,
    pub requests_used: i64,
    pub items_used: i64,
    pub failures_in_row: i64,
    pub breaker: String,
    pub page_limit: Option<i64>,
    pub stopped_by: Option<String>,
    pub error_class: Option<String>,
    pub error_text: Option<String>,
    pub error_at: Option<i64>,
    pub more_pending: bool,
    pub runs: i64,
    pub written: i64,
    pub repeats: i64,
    pub quarantined: i64,
    pub lease: Option<Lease>,
    pub last_run: Option<RunRow>,
}

/// Who is at work on a connection, and until when others wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Lease {
    pub holder: String,
    pub until: i64,
}

/// One run of a connection; no outcome while it is at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct RunRow {
    pub run: i64,
    pub trigger: String,
    pub started: i64,
    pub ended: Option<i64>,
    pub read: i64,
    pub written: i64,
    pub repeats: i64,
    pub quarantined: i64,
    pub requests: i64,
    pub more_pending: bool,
    pub outcome: Option<String>,
    pub error_class: Option<String>,
    pub error_text: Option<String>,
}

/// A lease that was taken: the run it is for, and the connection as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leased {
    /// The run's number.
    pub run: i64,
    /// The connection.
    #[serde(flatten)]
    pub state: State,
}

/// What a caller wants a lease for.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Who will hold it, as others are told.
    pub holder: &'a str,
    /// `tick`, `watch`, `sync` or `nudge`.
    pub trigger: &'a str,
    /// The present.
    pub now: i64,
    /// When it ends unless it is renewed. Every caller asks for the same length.
    pub until: i64,
    /// A holder that the caller knows to be gone: its lease is free.
    pub gone: Option<&'a str>,
    /// How many runs the connection had when the caller decided on one more; none: whatever ran since.
    pub seen: Option<i64>,
}

/// A run that holds its lease, as long as no other took it.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Its connection.
    pub name: &'a Name,
    /// Its number.
    pub number: i64,
    /// Who holds the lease.
    pub holder: &'a str,
}

/// How a run ended, and what follows from it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// `done`, `paused`, `failed` or `stopped`.
    pub outcome: String,
    /// When it is due again; none: not by itself.
    pub next_due_at: Option<i64>,
    /// Failures since the last success.
    pub failures_in_row: i64,
    /// `closed`, `open` or `half-open`.
    pub breaker: String,
    /// The largest page that the source gives.
    pub page_limit: Option<i64>,
    /// Mark of what the source refused.
    pub stopped_by: Option<String>,
    /// Why it failed.
    pub error: Option<Fault>,
    /// Whether the source was read to where this run meant to go.
    pub last_success: bool,
    /// Whether the source has more; none: as its last page said.
    #[serde(default)]
    pub more_pending: Option<bool>,
}

/// Why a run failed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Fault {
    pub class: String,
    pub text: String,
}

/// All connections that ever ran.
pub fn states(conn: &Connection) -> Result<Vec<State>> {
    let mut query = conn.prepare_cached("SELECT * FROM connections ORDER BY toolkit, id")?;
    let mut rows = query.query([])?;
    let mut states = Vec::new();
    while let Some(row) = rows.next()? {
        states.push(state_of(conn, row)?);
    }
    Ok(states)
}

fn state(conn: &Connection, name: &Name) -> Result<Option<State>> {
    let mut query = conn.prepare_cached("SELECT * FROM connections WHERE toolkit = ?1 AND id = ?2")?;
    let mut rows = query.query([&name.toolkit, &name.id])?;
    rows.next()?.map(|row| state_of(conn, row)).transpose()
}

/// Who holds a connection's lease, expired or not.
pub fn lease_of(conn: &Connection, name: &Name) -> Result<Option<Lease>> {
    Ok(state(conn, name)?.and_then(|state| state.lease))
}

/// Takes the lease for a new run if it is free; none while another run holds it, or came first.
///
/// It is free when nobody has it, when its time is over, when its holder is known to be gone, and when
/// it ends so late that the clock must have been set back since.
pub fn lease(store: &mut Store, name: &Name, claim: &Claim<'_>) -> Result<Option<Leased>> {
    if claim.until <= claim.now {
        return Err(Error::Invalid(format!(
            "a lease of {name} until {} is over at {}",
            claim.until, claim.now
        )));
    }
    let leased = store.write(|transaction| {
        let sql = "INSERT INTO connections(toolkit, id) VALUES(?1, ?2) ON CONFLICT DO NOTHING";
        transaction.prepare_cached(sql)?.execute([&name.toolkit, &name.id])?;
        if lease_of(transaction, name)?.is_some_and(|held| held.binds(claim))
            || ran_since(transaction, name, claim)?
        {
            return Ok(None);
        }
        close_lost_run(transaction, name, claim.now)?;
        let run = begin_run(transaction, name, claim)?;
        Ok(state(transaction, name)?.map(|state| Leased { run, state }))
    })?;
    failpoint::hit("lease.committed");
    Ok(leased)
}

/// Whether another run came first, so that the decision for this one no longer holds.
fn ran_since(transaction: &Transaction<'_>, name: &Name, claim: &Claim<'_>) -> Result<bool> {
    let sql = "SELECT 1 FROM connections WHERE toolkit = ?1 AND id = ?2 AND runs <> ?3";
    let row = params![name.toolkit, name.id, claim.seen];
    Ok(transaction.prepare_cached(sql)?.exists(row)?)
}

impl Lease {
    fn binds(&self, claim: &Claim<'_>) -> bool {
        let length = claim.until.saturating_sub(claim.now);
        let left = self.until.saturating_sub(claim.now);
        claim.gone != Some(self.holder.as_str()) && left > 0 && left <= length.saturating_mul(2)
    }
}

/// Ends the run of a holder that never came back.
fn close_lost_run(transaction: &Transaction<'_>, name: &Name, now: i64) -> Result<()> {
    let sql = "UPDATE sync_runs SET ended = ?3, outcome = 'stopped', error_text = 'it did not come back'
               WHERE run = (SELECT lease_run FROM connections WHERE toolkit = ?1 AND id = ?2)";
    transaction.prepare_cached(sql)?.execute(params![name.toolkit, name.id, now])?;
    Ok(())
}

fn begin_run(transaction: &Transaction<'_>, name: &Name, claim: &Claim<'_>) -> Result<i64> {
    let sql = "INSERT INTO sync_runs(toolkit, id, \"trigger\", started, more_pending)
               SELECT toolkit, id, ?3, ?4, more_pending FROM connections WHERE toolkit = ?1 AND id = ?2";
    let row = params![name.toolkit, name.id, claim.trigger, claim.now];
    transaction.prepare_cached(sql)?.execute(row)?;
    let run = transaction.last_insert_rowid();
    let sql = "UPDATE connections SET lease_run = ?3, lease_holder = ?4, lease_until = ?5,
                 last_attempt_at = ?6, runs = runs + 1 WHERE toolkit = ?1 AND id = ?2";
    let row = params![name.toolkit, name.id, run, claim.holder, claim.until, claim.now];
    transaction.prepare_cached(sql)?.execute(row)?;
    Ok(run)
}

/// Holds the lease for longer; false when another run took it.
pub fn renew(store: &mut Store, run: &Run<'_>, until: i64) -> Result<bool> {
    store.write(|transaction| {
        let sql = "UPDATE connections SET lease_until = ?5
                   WHERE toolkit = ?1 AND id = ?2 AND lease_run = ?3 AND lease_holder = ?4";
        let row = params![run.name.toolkit, run.name.id, run.number, run.holder, until];
        Ok(transaction.prepare_cached(sql)?.execute(row)? == 1)
    })
}

/// Refuses to write for a run that lost its lease. One that ended and was not taken is still held.
pub(crate) fn check_lease(transaction: &Transaction<'_>, run: &Run<'_>) -> Result<()> {
    let sql = "SELECT 1 FROM connections
               WHERE toolkit = ?1 AND id = ?2 AND lease_run = ?3 AND lease_holder = ?4";
    let row = params![run.name.toolkit, run.name.id, run.number, run.holder];
    if transaction.prepare_cached(sql)?.exists(row)? {
        return Ok(());
    }
    let now = match lease_of(transaction, run.name)? {
        Some(lease) => format!("it is held by {}", lease.holder),
        None => "its run is over".to_owned(),
    };
    Err(Error::LeaseLost(format!("run {} of {} lost its lease: {now}", run.number, run.name)))
}

/// Counts one request against the day's budget before it is made; false when none is left.
pub fn reserve(store: &mut Store, run: &Run<'_>, day: &str, daily_requests: u64) -> Result<bool> {
    let reserved = store.write(|transaction| {
        check_lease(transaction, run)?;
        turn_to_day(transaction, run.name, day)?;
        let sql = "UPDATE connections SET requests_used = requests_used + 1
                   WHERE toolkit = ?1 AND id = ?2 AND requests_used < ?3";
        let most = i64::try_from(daily_requests).unwrap_or(i64::MAX);
        let row = params![run.name.toolkit, run.name.id, most];
        let reserved = transaction.prepare_cached(sql)?.execute(row)? == 1;
        if reserved {
            let sql = "UPDATE sync_runs SET requests = requests + 1 WHERE run = ?1";
            transaction.prepare_cached(sql)?.execute([run.number])?;
        }
        Ok(reserved)
    })?;
    failpoint::hit("reserve.committed");
    Ok(reserved)
}

/// A later day has its whole budget; a clock that is set back gives none a second time.
pub(crate) fn turn_to_day(transaction: &Transaction<'_>, name: &Name, day: &str) -> Result<()> {
    let sql = "UPDATE connections SET requests_used = iif(?3 > budget_day, 0, requests_used),
                 items_used = iif(?3 > budget_day, 0, items_used), budget_day = ?3
               WHERE toolkit = ?1 AND id = ?2 AND budget_day <> ?3";
    transaction.prepare_cached(sql)?.execute([&name.toolkit, &name.id, day])?;
    Ok(())
}

/// Counts what a run took in, for the run and for ever.
pub(crate) fn count(transaction: &Transaction<'_>, run: &Run<'_>, counts: &Counts) -> Result<()> {
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let (written, repeats) = (signed(counts.accepted), signed(counts.repeats));
    let quarantined = signed(counts.quarantined);
    let sql = "UPDATE sync_runs SET read = read + ?2, written = written + ?3, repeats = repeats + ?4,
                 quarantined = quarantined + ?5 WHERE run = ?1";
    let row = params![run.number, signed(counts.lines), written, repeats, quarantined];
    transaction.prepare_cached(sql)?.execute(row)?;
    let sql = "UPDATE connections SET written = written + ?3, repeats = repeats + ?4,
                 quarantined = quarantined + ?5 WHERE toolkit = ?1 AND id = ?2";
    let row = params![run.name.toolkit, run.name.id, written, repeats, quarantined];
    transaction.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// How many lines a run has read so far.
pub(crate) fn lines_read(conn: &Connection, run: &Run<'_>) -> Result<u64> {
    let mut query = conn.prepare_cached("SELECT read FROM sync_runs WHERE run = ?1")?;
    Ok(query.query_row([run.number], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Moves a connection to where its page ends; returns the day's items.
pub(crate) fn advance(
    transaction: &Transaction<'_>,
    run: &Run<'_>,
    cursor: &Map<String, Value>,
    more: bool,
    items: u64,
) -> Result<i64> {
    let sql = "UPDATE sync_runs SET more_pending = ?2 WHERE run = ?1";
    transaction.prepare_cached(sql)?.execute(params![run.number, more])?;
    let sql = "UPDATE connections SET cursor = ?3, more_pending = ?4, items_used = items_used + ?5
               WHERE toolkit = ?1 AND id = ?2 RETURNING items_used";
    let cursor = serde_json::to_string(cursor)?;
    let items = i64::try_from(items).unwrap_or(i64::MAX);
    let row = params![run.name.toolkit, run.name.id, cursor, more, items];
    Ok(transaction.prepare_cached(sql)?.query_row(row, |row| row.get(0))?)
}

/// Ends a run: the one place where every trigger's outcome is written, with the lease set free.
///
/// False when another run took the lease meanwhile: nothing of this one counts then.
pub fn record(store: &mut Store, run: &Run<'_>, outcome: &Outcome, now: i64) -> Result<bool> {
    failpoint::hit("record.before");
    let recorded = store.write(|transaction| {
        match check_lease(transaction, run) {
            Err(Error::LeaseLost(_)) => return Ok(false),
            held => held?,
        }
        end_run(transaction, run, outcome, now)?;
        settle(transaction, run.name, outcome, now)?;
        forget_old_runs(transaction, run.name)?;
        Ok(true)
    })?;
    failpoint::hit("record.committed");
    Ok(recorded)
}

fn end_run(transaction: &Transaction<'_>, run: &Run<'_>, outcome: &Outcome, now: i64) -> Result<()> {
    let (class, text) = outcome.fault();
    let sql = "UPDATE sync_runs SET ended = ?2, outcome = ?3, error_class = ?4, error_text = ?5,
           more_pending = coalesce(?6, more_pending) WHERE run = ?1";
    let row = params![run.number, now, outcome.outcome, class, text, outcome.more_pending];
    transaction.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// What the outcome makes of the connection. Its last error stays to be seen until the next one.
fn settle(transaction: &Transaction<'_>, name: &Name, outcome: &Outcome, now: i64) -> Result<()> {
    let (class, text) = outcome.fault();
    let sql = "UPDATE connections SET next_due_at = ?3, failures_in_row = ?4, breaker = ?5, page_limit = ?6,
                 stopped_by = ?7, last_success_at = iif(?8, ?9, last_success_at),
                 error_at = iif(?10 IS NULL, error_at, ?9), error_text = iif(?10 IS NULL, error_text, ?11),
                 error_class = iif(?10 IS NULL, error_class, ?10),
                 more_pending = coalesce(?12, more_pending),
                 lease_run = NULL, lease_holder = NULL, lease_until = NULL
               WHERE toolkit = ?1 AND id = ?2";
    transaction.prepare_cached(sql)?.execute(params![
        name.toolkit,
        name.id,
        outcome.next_due_at,
        outcome.failures_in_row,
        outcome.breaker,
        outcome.page_limit,
        outcome.stopped_by,
        outcome.last_success,
        now,
        class,
        text,
        outcome.more_pending,
    ])?;
    Ok(())
}

fn forget_old_runs(transaction: &Transaction<'_>, name: &Name) -> Result<()> {
    let sql = "DELETE FROM sync_runs WHERE toolkit = ?1 AND id = ?2 AND run <= (
                 SELECT run FROM sync_runs WHERE toolkit = ?1 AND id = ?2
                 ORDER BY run DESC LIMIT 1 OFFSET ?3)";
    transaction.prepare_cached(sql)?.execute(params![name.toolkit, name.id, RUNS_KEPT])?;
    Ok(())
}

impl Outcome {
    fn fault(&self) -> (Option<&str>, Option<&str>) {
        let fault = self.error.as_ref();
        (fault.map(|fault| fault.class.as_str()), fault.map(|fault| fault.text.as_str()))
    }
}

fn state_of(conn: &Connection, row: &Row<'_>) -> Result<State> {
    let name = Name { toolkit: row.get("toolkit")?, id: row.get("id")? };
    let held = (row.get("lease_holder")?, row.get("lease_until")?);
    Ok(State {
        cursor: serde_json::from_str(&row.get::<_, String>("cursor")?)?,
        last_attempt_at: row.get("last_attempt_at")?,
        last_success_at: row.get("last_success_at")?,
        next_due_at: row.get("next_due_at")?,
        budget_day: row.get("budget_day")?,
        requests_used: row.get("requests_used")?,
        items_used: row.get("items_used")?,
        failures_in_row: row.get("failures_in_row")?,
        breaker: row.get("breaker")?,
        page_limit: row.get("page_limit")?,
        stopped_by: row.get("stopped_by")?,
        error_class: row.get("error_class")?,
        error_text: row.get("error_text")?,
        error_at: row.get("error_at")?,
        more_pending: row.get("more_pending")?,
        runs: row.get("runs")?,
        written: row.get("written")?,
        repeats: row.get("repeats")?,
        quarantined: row.get("quarantined")?,
        lease: if let (Some(holder), Some(until)) = held { Some(Lease { holder, until }) } else { None },
        last_run: last_run(conn, &name)?,
        toolkit: name.toolkit,
        id: name.id,
    })
}

fn last_run(conn: &Connection, name: &Name) -> Result<Option<RunRow>> {
    let sql = "SELECT * FROM sync_runs WHERE toolkit = ?1 AND id = ?2 ORDER BY run DESC LIMIT 1";
    let run = conn.prepare_cached(sql)?.query_row([&name.toolkit, &name.id], |row| {
        Ok(RunRow {
            run: row.get("run")?,
            trigger: row.get("trigger")?,
            started: row.get("started")?,
            ended: row.get("ended")?,
            read: row.get("read")?,
            written: row.get("written")?,
            repeats: row.get("repeats")?,
            quarantined: row.get("quarantined")?,
            requests: row.get("requests")?,
            more_pending: row.get("more_pending")?,
            outcome: row.get("outcome")?,
            error_class: row.get("error_class")?,
            error_text: row.get("error_text")?,
        })
    });
    Ok(run.optional()?)
}
