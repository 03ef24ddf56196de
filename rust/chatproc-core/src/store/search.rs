//! Finding tasks: an index of pairs of neighbouring characters, filters, and pages that stay stable.
//!
//! A field's every character begins exactly one pair, the last one with [`END`]. So one character is a
//! prefix of words, two are a word and more are a phrase, and the index answers for any length without
//! false finds. Must never let a query's syntax reach SQL or FTS: terms travel as hexadecimal words.

use std::fmt::Write as _;

use icu_casemap::CaseMapper;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params, params_from_iter};
use serde::{Deserialize, Serialize};

use super::tasks::{ROW_COLUMNS, TaskRow};
use crate::error::{Error, Result};
use crate::task::{Priority, Record, Status};
use crate::zone::{Edge, Zone};

/// What stands for a field's end: one more than the last code point.
const END: u32 = 0x11_0000;
/// The most tasks of a page.
const MAX_LIMIT: i64 = 1000;
/// The longest query or name, in characters.
const MAX_QUERY: usize = 1000;

/// What to look for. Fields that are empty or null filter nothing; several values of one field are
/// alternatives.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// Terms, parted by white space, that must all occur in title, event, people, location, notes or
    /// source texts; upper and lower case are the same.
    pub query: Option<String>,
    /// Parts of names of people.
    pub people: Vec<String>,
    /// Statuses.
    pub status: Vec<String>,
    /// Priorities.
    pub priority: Vec<String>,
    /// The platform of any source.
    pub platform: Option<String>,
    /// The conversation id of any source.
    pub conversation: Option<String>,
    /// RFC 3339, or a date as its start.
    pub due_from: Option<String>,
    /// RFC 3339, or a date as its end.
    pub due_to: Option<String>,
    /// RFC 3339, or a date as its start.
    pub updated_from: Option<String>,
    /// `due`, `priority`, `updated` (newest first) or `created` (newest first).
    pub sort: String,
    /// 1 to 1000.
    pub limit: i64,
    /// How many tasks to pass over.
    pub offset: i64,
    /// Where an earlier page ended.
    pub cursor: Option<String>,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            query: None,
            people: Vec::new(),
            status: Vec::new(),
            priority: Vec::new(),
            platform: None,
            conversation: None,
            due_from: None,
            due_to: None,
            updated_from: None,
            sort: "due".to_owned(),
            limit: 20,
            offset: 0,
            cursor: None,
        }
    }
}

/// A page of what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// How many tasks the filters match, on all pages.
    pub total: i64,
    /// The page.
    pub tasks: Vec<TaskRow>,
    /// Where the next page begins; null on the last.
    pub cursor: Option<String>,
}

/// Finds tasks. A value that cannot be understood is [`Error::Invalid`].
pub fn search(conn: &Connection, query: &Query, zone: &Zone) -> Result<Page> {
    if !(1..=MAX_LIMIT).contains(&query.limit) || query.offset < 0 {
        return Err(Error::Invalid(format!("limit is 1 to {MAX_LIMIT} and offset not negative")));
    }
    let order = Order::named(&query.sort)?;
    let mut filter = Filter::new(query, zone)?;
    let total = filter.count(conn)?;
    if let Some(cursor) = &query.cursor {
        filter.start_after(order, &order.read_cursor(cursor)?);
    }
    let (mut tasks, mut cursors) = (Vec::new(), Vec::new());
    filter.for_each(conn, order, query.limit + 1, query.offset, |row| {
        tasks.push(TaskRow::read(row, zone)?);
        cursors.push(order.cursor(row)?);
        Ok(())
    })?;
    let cursor = if tasks.len() > page_length(query.limit) {
        tasks.pop();
        cursors.pop();
        cursors.pop()
    } else {
        None
    };
    Ok(Page { total, tasks, cursor })
}

fn page_length(limit: i64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

// ── the index ──────────────────────────────────────────────────────────────────────────────────────

/// Puts a task's present texts into the index.
pub(super) fn index(conn: &Connection, task: i64, record: &Record) -> Result<()> {
    let (mut pairs, mut people) = (String::new(), String::new());
    each_pair(record, |of_people, pair| {
        let words = if of_people { &mut people } else { &mut pairs };
        let _ = write!(words, "{pair:012x} ");
    });
    conn.prepare_cached("INSERT OR REPLACE INTO task_search(rowid, pairs, people) VALUES (?1, ?2, ?3)")?
        .execute(params![task, pairs, people])?;
    Ok(())
}

/// Gives every pair of a task's texts, and whether it is of the names of people.
pub(super) fn each_pair(record: &Record, mut take: impl FnMut(bool, u64)) {
    let texts = [&record.title, &record.event, &record.notes].into_iter().chain(&record.location);
    let sources = record.sources.iter().map(|source| &source.text);
    for text in texts.chain(sources) {
        pairs(text, |pair| take(false, pair));
    }
    for person in &record.people {
        pairs(&person.name, |pair| take(true, pair));
    }
}

fn folded(text: &str) -> Vec<u32> {
    CaseMapper::new().fold_string(text).chars().map(u32::from).collect()
}

/// Each character of a field with the next one, as one number of twelve hexadecimal digits.
fn pairs(field: &str, mut take: impl FnMut(u64)) {
    let letters = folded(field);
    let nexts = letters.iter().skip(1).chain([&END]);
    for (letter, next) in letters.iter().zip(nexts) {
        take(u64::from(*letter) << 24 | u64::from(*next));
    }
}

/// The FTS expression for a term's occurrence as it stands.
fn occurrence(term: &str) -> String {
    let letters = folded(term);
    if let [letter] = letters[..] {
        return format!("\"{letter:06x}\"*");
    }
    let words: Vec<String> =
        letters.windows(2).map(|pair| format!("{:06x}{:06x}", pair[0], pair[1])).collect();
    format!("\"{}\"", words.join(" "))
}

/// The FTS expression for all terms of the query and one of the people, or nothing where none is given.
fn expression(query: &Query) -> Result<Option<String>> {
    let text = query.query.as_deref().unwrap_or_default();
    let names = query.people.iter().map(|name| name.trim().chars().count()).sum::<usize>();
    if text.chars().count() > MAX_QUERY || names > MAX_QUERY {
        return Err(Error::Invalid(format!("a query has at most {MAX_QUERY} characters")));
    }
    let mut wanted: Vec<String> = text.split_whitespace().map(occurrence).collect();
    wanted.extend(naming(&query.people));
    Ok((!wanted.is_empty()).then(|| wanted.join(" AND ")))
}

/// The FTS expression for one of the people, or nothing where none is named.
pub(super) fn naming(people: &[String]) -> Option<String> {
    let names = people.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(occurrence).collect();
    (!names.is_empty()).then(|| format!("people : ({})", names.join(" OR ")))
}

// ── order ──────────────────────────────────────────────────────────────────────────────────────────

/// An order of tasks: no two have the same place in it.
#[derive(Clone, Copy)]
struct Order {
    name: &'static str,
    columns: &'static [&'static str],
    descending: bool,
}

const ORDERS: [Order; 4] = [
    Order { name: "due", columns: &["due_at", "task"], descending: false },
    Order { name: "priority", columns: &["priority", "due_at", "task"], descending: false },
    Order { name: "updated", columns: &["updated_at", "task"], descending: true },
    // Numbers are given in the order of creation, whatever the clock did.
    Order { name: "created", columns: &["task"], descending: true },
];

impl Order {
    fn named(name: &str) -> Result<Self> {
        ORDERS
            .into_iter()
            .find(|order| order.name == name)
            .ok_or_else(|| Error::Invalid(format!("{name:?} is no order: due, priority, updated, created")))
    }

    fn clause(self) -> String {
        let direction = if self.descending { " DESC" } else { "" };
        self.columns.iter().map(|column| format!("{column}{direction}")).collect::<Vec<_>>().join(", ")
    }

    /// The place of a row in this order, opaque to its reader.
    fn cursor(self, row: &Row<'_>) -> Result<String> {
        let mut place = vec![serde_json::Value::from(self.name)];
        for &column in self.columns {
            place.push(match row.get(column)? {
                Sql::Integer(number) => number.into(),
                Sql::Text(text) => text.into(),
                other => return Err(Error::Invalid(format!("{column} holds {:?}", other.data_type()))),
            });
        }
        Ok(data_encoding::BASE64URL_NOPAD.encode(&serde_json::to_vec(&place)?))
    }

    fn read_cursor(self, cursor: &str) -> Result<Vec<Sql>> {
        self.place(cursor)
            .ok_or_else(|| Error::Invalid(format!("{cursor:?} is no cursor of the order {:?}", self.name)))
    }

    fn place(self, cursor: &str) -> Option<Vec<Sql>> {
        let bytes = data_encoding::BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?;
        let place: Vec<serde_json::Value> = serde_json::from_slice(&bytes).ok()?;
        let (name, values) = place.split_first()?;
        if name.as_str() != Some(self.name) || values.len() != self.columns.len() {
            return None;
        }
        let read = |(value, &column): (&serde_json::Value, &&str)| match column {
            "priority" => {
                value.as_str().and_then(Priority::named).map(|it| Sql::from(it.as_str().to_owned()))
            }
            _ => value.as_i64().map(Sql::from),
        };
        values.iter().zip(self.columns).map(read).collect()
    }
}

// ── filters ────────────────────────────────────────────────────────────────────────────────────────

/// Conditions in SQL with their values; the statuses stand apart because every index begins with them.
struct Filter {
    statuses: Vec<Status>,
    conditions: Vec<String>,
    values: Vec<Sql>,
    by_text: bool,
}

impl Filter {
    fn new(query: &Query, zone: &Zone) -> Result<Self> {
        let statuses = named(&query.status, "status", Status::named)?;
        let priorities = named(&query.priority, "priority", Priority::named)?;
        let mut filter = Self {
            statuses: if statuses.is_empty() { Status::ALL.to_vec() } else { statuses },
            conditions: Vec::new(),
            values: Vec::new(),
            by_text: false,
        };
        if let Some(expression) = expression(query)? {
            filter.add("task IN (SELECT rowid FROM task_search WHERE task_search MATCH ?)", expression);
            filter.by_text = true;
        }
        if !priorities.is_empty() {
            filter.conditions.push(format!("priority IN ({})", words(&priorities, Priority::as_str)));
        }
        for (column, wanted) in [("platform", &query.platform), ("id", &query.conversation)] {
            if let Some(wanted) = wanted {
                let sql = format!(
                    "task IN (SELECT s.task FROM conversations c JOIN task_conversations s USING(conversation)
                              WHERE c.{column} = ?)"
                );
                filter.add(&sql, wanted.clone());
            }
        }
        filter.add_times(query, zone)?;
        Ok(filter)
    }

    fn add_times(&mut self, query: &Query, zone: &Zone) -> Result<()> {
        if let Some(from) = &query.due_from {
            // A task without a due time is never due, although it sorts last.
            self.conditions.push(format!("due_at < {}", i64::MAX));
            self.add("due_at >= ?", zone.instant(from, Edge::Start)?);
        }
        if let Some(to) = &query.due_to {
            self.add("due_at <= ?", zone.instant(to, Edge::End)?);
        }
        if let Some(from) = &query.updated_from {
            self.add("updated_at >= ?", zone.instant(from, Edge::Start)?);
        }
        Ok(())
    }

    /// Adds a condition; its `?` gets a number, because the same values serve several parts of a query.
    fn add(&mut self, condition: &str, value: impl Into<Sql>) {
        self.values.push(value.into());
        self.conditions.push(condition.replace('?', &format!("?{}", self.values.len())));
    }

    fn start_after(&mut self, order: Order, place: &[Sql]) {
        let first = self.values.len() + 1;
        let numbers: Vec<String> = (first..first + place.len()).map(|number| format!("?{number}")).collect();
        let comparison = if order.descending { "<" } else { ">" };
        self.conditions.push(format!("({}) {comparison} ({})", order.columns.join(", "), numbers.join(", ")));
        self.values.extend_from_slice(place);
    }

    fn count(&self, conn: &Connection) -> Result<i64> {
        let sql = format!("SELECT count(*) FROM tasks WHERE {}", self.of_statuses(&self.statuses));
        Ok(conn.prepare_cached(&sql)?.query_row(params_from_iter(&self.values), |row| row.get(0))?)
    }

    fn for_each(
        &self,
        conn: &Connection,
        order: Order,
        limit: i64,
        offset: i64,
        mut take: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let (places, clause) = (self.places(order), order.clause());
        let sql = format!(
            "SELECT task, priority, due_at, {ROW_COLUMNS} FROM tasks
             WHERE task IN (SELECT task FROM ({places} LIMIT {limit} OFFSET {offset})) ORDER BY {clause}"
        );
        let mut query = conn.prepare_cached(&sql)?;
        let mut rows = query.query(params_from_iter(&self.values))?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    /// The places of all that matches, in order; records are read for one page of them only.
    ///
    /// Every index begins with the status, so each status is read in order by itself and the parts are
    /// merged: a page costs a page. What the text index found is sorted at once; the indexes tell its places,
    /// because rows are wide and a common word finds many.
    fn places(&self, order: Order) -> String {
        let parts: Vec<&[Status]> =
            if self.by_text { vec![&self.statuses] } else { self.statuses.chunks(1).collect() };
        let part = |statuses: &&[Status]| {
            let conditions = self.of_statuses(statuses);
            format!("SELECT {} FROM tasks WHERE {conditions}", order.columns.join(", "))
        };
        let parts: Vec<String> = parts.iter().map(part).collect();
        format!("{} ORDER BY {}", parts.join(" UNION ALL "), order.clause())
    }

    fn of_statuses(&self, statuses: &[Status]) -> String {
        let mut conditions = vec![format!("status IN ({})", words(statuses, Status::as_str))];
        conditions.extend_from_slice(&self.conditions);
        conditions.join(" AND ")
    }
}

/// The values of those names, each once.
fn named<T: Copy + PartialEq>(names: &[String], field: &str, find: fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for name in names {
        let value = find(name).ok_or_else(|| Error::Invalid(format!("{name:?} is no {field}")))?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// The contract's words as an SQL list; they are the program's own, never a caller's.
fn words<T: Copy>(values: &[T], word: fn(T) -> &'static str) -> String {
    values.iter().map(|&value| format!("'{}'", word(value))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(filter: &Filter, order: Order) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("schema.sql")).unwrap();
        let mut query = conn.prepare(&format!("EXPLAIN QUERY PLAN {}", filter.places(order))).unwrap();
        let steps = query.query_map(params_from_iter(&filter.values), |row| row.get("detail")).unwrap();
        steps.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn filter(query: &Query) -> Filter {
        Filter::new(query, &Zone::named("UTC").unwrap()).unwrap()
    }

    #[test]
    fn a_page_in_any_order_is_read_from_an_index_and_never_sorted() {
        for order in ORDERS {
            for status in [vec![], vec!["open".to_owned()]] {
                let mut filter = filter(&Query { status, ..Query::default() });
                let place = order.columns.iter().map(|_| Sql::from(1)).collect::<Vec<_>>();
                filter.start_after(order, &place);
                let plan = plan(&filter, order);
                let index = format!("USING COVERING INDEX tasks_{}", order.name);
                let reads: Vec<_> = plan.iter().filter(|step| step.contains(" tasks")).collect();
                assert!(!reads.is_empty() && reads.iter().all(|step| step.contains(&index)), "{plan:#?}");
                assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
            }
        }
    }

    #[test]
    fn a_text_is_looked_up_in_its_index_and_no_record_is_read_for_its_place() {
        let filter = filter(&Query { query: Some("报告".to_owned()), ..Query::default() });
        // The order of creation is that of the rows themselves: a page reads what it shows and stops.
        for order in ORDERS.into_iter().filter(|order| order.name != "created") {
            let plan = plan(&filter, order);
            let reads = |step: &&String| step.contains(" tasks");
            assert_eq!(plan.iter().filter(reads).count(), 1, "{plan:#?}");
            assert!(plan.iter().find(reads).is_some_and(|step| step.contains("COVERING INDEX")), "{plan:#?}");
            let looked_up = |step: &String| step.starts_with("SCAN task_search VIRTUAL TABLE INDEX 0:M");
            assert!(plan.iter().any(looked_up), "{plan:#?}");
        }
    }
}
