//! Open tasks that a new one may be: those that rest on a message it cites, and those that resemble it.
//!
//! Reads only, a bounded number of tasks. What it finds is offered to a model; nothing is merged by it.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::search;
use super::tasks::{self, ROW_COLUMNS, TaskRow};
use crate::document::TaskView;
use crate::error::Result;
use crate::likeness::{Face, likeness, resembles};
use crate::timex::Reading;
use crate::zone::Zone;

/// The most tasks that are offered for one.
const MOST: usize = 3;
/// So many tasks of a conversation, and of people, are compared, the most recently updated first.
const LOOKED_AT: i64 = 200;
/// Of the people so many are looked for, with names of so many characters.
const MOST_NAMES: usize = 10;
const LONGEST_NAME: usize = 64;

/// A new task that may exist already.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct NewTask {
    /// Keys of the messages that it cites.
    pub sources: Vec<String>,
    pub title: String,
    pub event: String,
    pub people: Vec<String>,
    pub start: Option<String>,
    pub due: Option<String>,
    /// Ids of tasks that are not meant.
    pub except: Vec<String>,
}

/// A stored task that may be the same.
#[derive(Clone, Debug, Serialize)]
pub struct NearTask {
    /// `t_…`.
    pub task_id: String,
    /// Its revision now.
    pub revision: i64,
    /// What a model may see of it.
    pub view: TaskView,
    /// Whether it rests on a message that the new one cites.
    pub shares_source: bool,
}

/// The tasks that `new` may be, the likeliest first, three at most.
pub fn near(conn: &Connection, new: &NewTask, zone: &Zone) -> Result<Vec<NearTask>> {
    let time = Reading { start: new.start.clone(), due: new.due.clone() };
    let face = Face { title: &new.title, event: &new.event, time: &time };
    let mut found: Vec<(bool, f64, TaskRow)> = Vec::new();
    for (task, shares) in looked_at(conn, new)? {
        let task = row(conn, task, zone)?;
        if new.except.contains(&task.task_id) {
            continue;
        }
        let time = Reading { start: task.time.start.clone(), due: task.time.due.clone() };
        let other = Face { title: &task.title, event: &task.event, time: &time };
        if shares || resembles(face, other, zone) {
            found.push((shares, likeness(face, other), task));
        }
    }
    found.sort_by(|one, other| {
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1)).then_with(|| one.2.task_id.cmp(&other.2.task_id))
    });
    found.truncate(MOST);
    let near = found.into_iter().map(|(shares_source, _, task)| {
        Ok(NearTask {
            view: tasks::view(&task)?,
            task_id: task.task_id,
            revision: task.revision,
            shares_source,
        })
    });
    near.collect()
}

/// Numbers of open tasks worth a comparison, and whether each shares a source.
fn looked_at(conn: &Connection, new: &NewTask) -> Result<BTreeMap<i64, bool>> {
    let keys = serde_json::to_string(&new.sources)?;
    let mut tasks = BTreeMap::new();
    let mut add = |sql: &str, value: &str, shares: bool| -> Result<()> {
        let mut query = conn.prepare_cached(sql)?;
        for task in query.query_map(params![value, LOOKED_AT], |row| row.get(0))? {
            *tasks.entry(task?).or_default() |= shares;
        }
        Ok(())
    };
    add(
        "SELECT task FROM tasks WHERE status = 'open' AND task IN (
           SELECT task FROM task_sources JOIN messages USING(message)
           WHERE key IN (SELECT value FROM json_each(?1)))
         ORDER BY updated_at DESC, task DESC LIMIT ?2",
        &keys,
        true,
    )?;
    add(
        "SELECT task FROM tasks WHERE status = 'open' AND task IN (
           SELECT s.task FROM messages m JOIN task_conversations s USING(conversation)
           WHERE m.key IN (SELECT value FROM json_each(?1)))
         ORDER BY updated_at DESC, task DESC LIMIT ?2",
        &keys,
        false,
    )?;
    let names = new.people.iter().filter(|name| name.chars().count() <= LONGEST_NAME).take(MOST_NAMES);
    if let Some(names) = search::naming(&names.cloned().collect::<Vec<_>>()) {
        add(
            "SELECT task FROM (SELECT rowid AS task FROM task_search WHERE task_search MATCH ?1)
               CROSS JOIN tasks INDEXED BY tasks_places USING (task)
             WHERE status = 'open' ORDER BY updated_at DESC, task DESC LIMIT ?2",
            &names,
            false,
        )?;
    }
    Ok(tasks)
}

fn row(conn: &Connection, task: i64, zone: &Zone) -> Result<TaskRow> {
    let sql = format!("SELECT {ROW_COLUMNS} FROM tasks WHERE task = ?1");
    conn.prepare_cached(&sql)?.query_row([task], |row| Ok(TaskRow::read(row, zone)))?
}
