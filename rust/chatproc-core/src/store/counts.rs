//! How many tasks there are by status, priority and due time, so that a list need not count them.
//!
//! Noted where a task is made or revised, in the same transaction; `verify` holds the counts to the tasks. By
//! hand and not by triggers: SQLite keeps a journal of each statement that fires one, which cost half as much
//! again as the whole commit.

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::task::Record;

/// `task_counts.span` is a due time without so many last bits: some eighteen hours.
pub(super) const SPAN_BITS: u32 = 26;

/// Where a task is counted.
#[derive(PartialEq, Eq)]
struct Cell {
    status: &'static str,
    priority: &'static str,
    span: i64,
}

impl Cell {
    fn of(record: &Record) -> Result<Self> {
        let span = record.due_at()? >> SPAN_BITS;
        Ok(Self { status: record.status.as_str(), priority: record.priority.as_str(), span })
    }

    fn add(&self, conn: &Connection) -> Result<()> {
        let here = params![self.status, self.priority, self.span];
        let more =
            "UPDATE task_counts SET tasks = tasks + 1 WHERE status = ?1 AND priority = ?2 AND span = ?3";
        if conn.prepare_cached(more)?.execute(here)? == 0 {
            conn.prepare_cached("INSERT INTO task_counts VALUES (?1, ?2, ?3, 1)")?.execute(here)?;
        }
        Ok(())
    }

    fn take(&self, conn: &Connection) -> Result<()> {
        for sql in [
            "UPDATE task_counts SET tasks = tasks - 1 WHERE status = ?1 AND priority = ?2 AND span = ?3",
            "DELETE FROM task_counts WHERE status = ?1 AND priority = ?2 AND span = ?3 AND tasks = 0",
        ] {
            conn.prepare_cached(sql)?.execute(params![self.status, self.priority, self.span])?;
        }
        Ok(())
    }
}

/// Counts a new task.
pub(super) fn added(conn: &Connection, record: &Record) -> Result<()> {
    Cell::of(record)?.add(conn)
}

/// Counts a task anew that says something else now.
pub(super) fn changed(conn: &Connection, old: &Record, new: &Record) -> Result<()> {
    let (old, new) = (Cell::of(old)?, Cell::of(new)?);
    if old != new {
        old.take(conn)?;
        new.add(conn)?;
    }
    Ok(())
}
