//! Rows into a table, several with each statement: what SQLite does once for a statement, it does once for them all.

use rusqlite::{Connection, Statement, ToSql};

use crate::error::Result;

/// Rows of one statement.
const TOGETHER: usize = 16;

/// The values of a statement, one after the other.
pub(super) struct Values<'s, 'c> {
    statement: &'s mut Statement<'c>,
    given: usize,
}

impl<'s, 'c> Values<'s, 'c> {
    /// The values of that statement, none given yet.
    pub(super) fn of(statement: &'s mut Statement<'c>) -> Self {
        Self { statement, given: 0 }
    }

    /// Gives the next value.
    pub(super) fn give(&mut self, value: impl ToSql) -> Result<()> {
        self.given += 1;
        Ok(self.statement.raw_bind_parameter(self.given, value)?)
    }

    /// Runs the statement, which has all its values.
    pub(super) fn run(self) -> Result<()> {
        self.statement.raw_execute()?;
        Ok(())
    }
}

/// Inserts rows in their order; `give` gives the values of one, as many as there are columns.
pub(super) fn insert<T>(
    conn: &Connection,
    into: &str,
    columns: usize,
    rows: &[T],
    mut give: impl FnMut(&T, &mut Values<'_, '_>) -> Result<()>,
) -> Result<()> {
    let (whole, rest) = rows.split_at(rows.len() / TOGETHER * TOGETHER);
    for (rows, together) in [(whole, TOGETHER), (rest, 1)] {
        if rows.is_empty() {
            continue;
        }
        let row = format!("({})", vec!["?"; columns].join(", "));
        let sql = format!("INSERT INTO {into} VALUES {}", vec![row; together].join(", "));
        let mut statement = conn.prepare_cached(&sql)?;
        for rows in rows.chunks(together) {
            let mut values = Values::of(&mut statement);
            for row in rows {
                give(row, &mut values)?;
            }
            values.run()?;
        }
    }
    Ok(())
}
