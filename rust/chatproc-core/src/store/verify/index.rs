//! The text index against the tasks: every gram in as many tasks, and as often, as they have it.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{Findings, Place};
use crate::error::Result;
use crate::store::grams::{Gram, each_gram};
use crate::task::Record;

/// In how many tasks a word stands, and how often in all.
type Count = (i64, i64);

/// The index's own list of words against the one that the tasks' texts make.
pub(super) fn index(conn: &Connection, _: &Place<'_>, findings: &mut Findings<'_>) -> Result<()> {
    let mut expected = expected(conn)?;
    conn.execute_batch(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, task_search, col)",
    )?;
    let mut query = conn.prepare("SELECT col, term, doc, cnt FROM temp.words")?;
    let mut rows = query.query([])?;
    let mut wrong = 0_u64;
    while let Some(row) = rows.next()? {
        let column = row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?;
        let term = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        let count: Count = (row.get(2)?, row.get(3)?);
        let word = Gram::read(term).map(|word| (column == b"people", word));
        wrong += u64::from(word.and_then(|word| expected.remove(&word)) != Some(count));
    }
    wrong += expected.len() as u64;
    if wrong > 0 {
        let explanation = format!("{wrong} of its words are not those of the tasks: searches may miss tasks");
        findings.broken("search", "the text index", explanation);
    }
    Ok(())
}

fn expected(conn: &Connection) -> Result<HashMap<(bool, Gram), Count>> {
    let mut expected: HashMap<(bool, Gram), (Count, i64)> = HashMap::new();
    let mut query = conn.prepare("SELECT task, record FROM tasks")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let task: i64 = row.get(0)?;
        let record: Record = serde_json::from_str(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
        each_gram(&record, |people, gram| {
            let ((tasks, times), last) = expected.entry((people, gram)).or_insert(((0, 0), 0));
            *tasks += i64::from(*last != task);
            *times += 1;
            *last = task;
        });
    }
    Ok(expected.into_iter().map(|(word, (count, _))| (word, count)).collect())
}
