//! Finding tasks: filters, pages that stay stable, and how many there are.
//!
//! A page costs no more in a store of a million tasks: of what is asked for, that which finds few is looked at
//! whole, and where nothing does, tasks are walked through in the wanted order until the page is full. So all
//! that match are counted up to a bound only, unless `task_counts` tells. Must never let a query's syntax
//! reach SQL: a caller's words are bound, or are words of the contract.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, Statement, params_from_iter};
use serde::{Deserialize, Serialize};

use super::counts::SPAN_BITS;
use super::grams::Wanted;
pub use super::grams::index;
pub(super) use super::grams::naming;
use super::order::{Order, Place};
use super::tasks::{ROW_COLUMNS, TaskRow};
use crate::error::{Error, Result};
use crate::task::{Priority, Status};
use crate::zone::{Edge, Zone};

/// The most tasks of a page.
const MAX_LIMIT: i64 = 1000;
/// The longest query or name, in characters.
const MAX_QUERY: usize = 1000;

/// How many tasks a search looks at.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What finds no more than so many is looked at whole; of what finds more, `total` is a lower bound.
    pub counted: usize,
    /// So many texts are read before an index is asked that has to gather first.
    pub tried: usize,
    /// So many texts are read in the wanted order before all that the index finds is looked at.
    pub walked: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { counted: 4_000, tried: 1_500, walked: 20_000 }
    }
}

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
    /// Whether there may be more than `total`: counting ended there.
    pub at_least: bool,
    /// The page.
    pub tasks: Vec<TaskRow>,
    /// Where the next page begins; null on the last.
    pub cursor: Option<String>,
}

/// Finds tasks. A value that cannot be understood is [`Error::Invalid`].
pub fn search(conn: &Connection, query: &Query, zone: &Zone) -> Result<Page> {
    search_within(conn, query, zone, Bounds::default())
}

/// Finds tasks within other bounds: the same tasks, and a `total` that is exact up to them.
pub fn search_within(conn: &Connection, query: &Query, zone: &Zone, bounds: Bounds) -> Result<Page> {
    if !(1..=MAX_LIMIT).contains(&query.limit) || query.offset < 0 {
        return Err(Error::Invalid(format!("limit is 1 to {MAX_LIMIT} and offset not negative")));
    }
    let order = Order::named(&query.sort)?;
    let after = query.cursor.as_ref().map(|cursor| order.read_cursor(cursor)).transpose()?;
    let (limit, offset) = (length(query.limit), length(query.offset));
    let filter = Filter::new(query, zone)?;
    let wanted = offset.saturating_add(limit).saturating_add(1);
    let found = Search { conn, filter: &filter, order, after, wanted, bounds }.found()?;
    let page: Vec<&Place> = found.places.iter().skip(offset).take(limit).collect();
    let more = found.places.len() == wanted;
    let mut row = conn.prepare_cached(&format!("SELECT {ROW_COLUMNS} FROM tasks WHERE task = ?1"))?;
    let tasks = page.iter().map(|place| row.query_row([place.task()], |row| Ok(TaskRow::read(row, zone)))?);
    Ok(Page {
        total: i64::try_from(found.total).unwrap_or(i64::MAX),
        at_least: found.is_least,
        tasks: tasks.collect::<Result<_>>()?,
        cursor: page.last().filter(|_| more).map(|place| order.cursor(place)).transpose()?,
    })
}

fn length(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

// ── filters ────────────────────────────────────────────────────────────────────────────────────────

/// What tasks must be.
struct Filter {
    statuses: Vec<Status>,
    priorities: Vec<Priority>,
    /// From and to, both of them meant.
    due: Option<(i64, i64)>,
    updated_from: Option<i64>,
    text: Option<Wanted>,
    sets: Vec<Set>,
    /// What the sets' parameters stand for.
    values: Vec<Sql>,
}

/// Tasks that one thing asked for finds.
#[derive(Clone)]
struct Set {
    /// SQL of their numbers.
    numbers: String,
    /// SQL that tells whether a row of `tasks` is one, where a row tells.
    test: Option<String>,
    /// Whether they are those whose texts hold what is looked for, and no others.
    is_of_text: bool,
}

impl Filter {
    fn new(query: &Query, zone: &Zone) -> Result<Self> {
        let mut filter = Self {
            statuses: named(&query.status, "status", Status::named)?,
            priorities: named(&query.priority, "priority", Priority::named)?,
            due: due(query, zone)?,
            updated_from: query
                .updated_from
                .as_ref()
                .map(|from| zone.instant(from, Edge::Start))
                .transpose()?,
            text: text(query)?,
            sets: Vec::new(),
            values: Vec::new(),
        };
        if filter.statuses.is_empty() {
            filter.statuses.extend(Status::ALL);
        }
        if let Some((expression, is_of_text)) = filter.text.as_ref().map(Wanted::expression) {
            let value = filter.value(expression);
            let numbers = format!("SELECT rowid AS task FROM task_search WHERE task_search MATCH {value}");
            filter.sets.push(Set { numbers, test: None, is_of_text });
        }
        for (column, wanted) in [("platform", &query.platform), ("id", &query.conversation)] {
            if let Some(wanted) = wanted {
                let value = filter.value(wanted.clone());
                let of = format!(
                    "c CROSS JOIN task_conversations s USING (conversation) WHERE c.{column} = {value}"
                );
                filter.sets.push(Set {
                    numbers: format!("SELECT DISTINCT s.task FROM conversations {of}"),
                    test: Some(format!(
                        "EXISTS(SELECT 1 FROM task_conversations s CROSS JOIN conversations c USING (conversation)
                                WHERE s.task = tasks.task AND c.{column} = {value})"
                    )),
                    is_of_text: false,
                });
            }
        }
        if let Some(from) = filter.updated_from {
            let statuses = words(&filter.statuses, Status::as_str);
            filter.sets.push(Set {
                numbers: format!(
                    "SELECT task FROM tasks INDEXED BY tasks_updated
                     WHERE status IN ({statuses}) AND updated_at >= {from}"
                ),
                // Rows are wide.
                test: Some(format!(
                    "(SELECT t.updated_at FROM tasks t INDEXED BY tasks_places WHERE t.task = tasks.task) >= {from}"
                )),
                is_of_text: false,
            });
        }
        Ok(filter)
    }

    /// Notes a caller's word and gives its parameter.
    fn value(&mut self, value: String) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// Conditions of status, priority and due time, which every index by them answers.
    fn columns(&self) -> String {
        let mut conditions = vec![format!("status IN ({})", words(&self.statuses, Status::as_str))];
        if !self.priorities.is_empty() {
            conditions.push(format!("priority IN ({})", words(&self.priorities, Priority::as_str)));
        }
        conditions.extend(self.due_between());
        conditions.join(" AND ")
    }

    fn due_between(&self) -> Option<String> {
        self.due.map(|(from, to)| format!("due_at BETWEEN {from} AND {to}"))
    }

    fn all_priorities(&self) -> &[Priority] {
        if self.priorities.is_empty() { &Priority::ALL } else { &self.priorities }
    }

    /// What its sets ask of a row beyond its columns, but for the text.
    fn tests(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().filter_map(|set| set.test.as_deref())
    }

    /// Tasks by status, priority and due time.
    fn by_columns(&self) -> Set {
        let by = format!("INDEXED BY tasks_priority WHERE {}", self.by_priority());
        Set { numbers: format!("SELECT task FROM tasks {by}"), test: None, is_of_text: false }
    }

    /// The conditions as the index by priority takes them.
    fn by_priority(&self) -> String {
        let priorities = words(self.all_priorities(), Priority::as_str);
        let statuses = words(&self.statuses, Status::as_str);
        let due = self.due_between().map(|due| format!(" AND {due}")).unwrap_or_default();
        format!("status IN ({statuses}) AND priority IN ({priorities}){due}")
    }

    /// How many tasks there are of its status, priority and due time: whole spans are counted already.
    fn counted(&self, conn: &Connection) -> Result<usize> {
        let statuses = words(&self.statuses, Status::as_str);
        let priorities = words(self.all_priorities(), Priority::as_str);
        let of = format!("status IN ({statuses}) AND priority IN ({priorities})");
        let count = |sql: String| -> Result<usize> {
            Ok(length(conn.prepare_cached(&sql)?.query_row([], |row| row.get(0))?))
        };
        let spans =
            |which: &str| count(format!("SELECT coalesce(sum(tasks), 0) FROM task_counts WHERE {of}{which}"));
        let Some((from, to)) = self.due else { return spans("") };
        let edge = |from: i64, to: i64| {
            let sql = format!(
                "SELECT count(*) FROM tasks INDEXED BY tasks_priority WHERE {of} AND due_at BETWEEN {from} AND {to}"
            );
            count(sql)
        };
        let (first, last) = (from >> SPAN_BITS, to >> SPAN_BITS);
        let begins = edge(from, to.min(first << SPAN_BITS | ((1 << SPAN_BITS) - 1)))?;
        let ends = if last > first { edge(last << SPAN_BITS, to)? } else { 0 };
        Ok(begins + ends + spans(&format!(" AND span > {first} AND span < {last}"))?)
    }
}

/// The due times that are meant; a task without one is never due, although it sorts last.
fn due(query: &Query, zone: &Zone) -> Result<Option<(i64, i64)>> {
    let instant =
        |time: &Option<String>, edge| time.as_ref().map(|time| zone.instant(time, edge)).transpose();
    Ok(match (instant(&query.due_from, Edge::Start)?, instant(&query.due_to, Edge::End)?) {
        (None, None) => None,
        (from, to) => Some((from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX - 1))),
    })
}

fn text(query: &Query) -> Result<Option<Wanted>> {
    let terms = query.query.as_deref().unwrap_or_default();
    let names = query.people.iter().map(|name| name.trim().chars().count()).sum::<usize>();
    if terms.chars().count() > MAX_QUERY || names > MAX_QUERY {
        return Err(Error::Invalid(format!("a query has at most {MAX_QUERY} characters")));
    }
    Ok(Wanted::of(terms, &query.people))
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

// ── what is looked at ──────────────────────────────────────────────────────────────────────────────

/// A search for a page.
struct Search<'s> {
    conn: &'s Connection,
    filter: &'s Filter,
    order: Order,
    after: Option<Place>,
    /// So many places are enough: those that are passed over, those of the page, and one more.
    wanted: usize,
    bounds: Bounds,
}

struct Found {
    total: usize,
    is_least: bool,
    /// In order, after the cursor.
    places: Vec<Place>,
}

/// Tasks of a set.
struct Members {
    /// How many there are, or one more than was asked for.
    number: usize,
    /// Those that pass every test but that of the text.
    passing: Vec<Place>,
}

/// What a walk came to.
struct Walk {
    places: Vec<Place>,
    /// Every task was seen.
    is_whole: bool,
}

impl Search<'_> {
    fn found(&self) -> Result<Found> {
        let (filter, bound) = (self.filter, self.bounds.counted);
        let of_columns = filter.counted(self.conn)?;
        if filter.sets.is_empty() && of_columns > bound {
            let walk = self.walk(usize::MAX)?.map_or_else(Vec::new, |walk| walk.places);
            return Ok(Found { total: of_columns, is_least: false, places: walk });
        }
        if of_columns > bound
            && filter.text.as_ref().is_some_and(Wanted::is_gathered)
            && let Some(walk) = self.walk(self.bounds.tried)?
        {
            return Ok(self.walked(walk, 0));
        }
        let mut sets = filter.sets.clone();
        if of_columns <= bound {
            sets.push(filter.by_columns());
        }
        let mut least = 0;
        for set in &sets {
            let members = self.members(set, bound.saturating_add(1))?;
            if members.number <= bound {
                return self.all(set, members);
            }
            if set.is_of_text || filter.text.is_none() {
                least = least.max(members.passing.len());
            }
        }
        match self.walk(self.bounds.walked)? {
            Some(walk) => Ok(self.walked(walk, least)),
            None => self.all(&sets[0], self.members(&sets[0], usize::MAX)?),
        }
    }

    /// All that pass, of a set that was seen whole.
    fn all(&self, set: &Set, members: Members) -> Result<Found> {
        let mut places = members.passing;
        if !set.is_of_text && self.filter.text.is_some() {
            let mut text = self.texts()?;
            let mut held = Vec::new();
            for place in places {
                if self.holds(&mut text, &place)? {
                    held.push(place);
                }
            }
            places = held;
        }
        let total = places.len();
        if let Some(after) = &self.after {
            places.retain(|place| self.order.is_after(place, after));
        }
        self.order.sort(&mut places);
        places.truncate(self.wanted);
        Ok(Found { total, is_least: false, places })
    }

    fn walked(&self, walk: Walk, least: usize) -> Found {
        let is_least = !walk.is_whole || self.after.is_some();
        let total = if is_least { least.max(walk.places.len()) } else { walk.places.len() };
        Found { total, is_least, places: walk.places }
    }

    /// The first tasks of a set, up to a number. Of each the index of places tells all that is asked, because
    /// rows are wide and a common word finds many.
    fn members(&self, set: &Set, most: usize) -> Result<Members> {
        let mut conditions = vec![self.filter.columns()];
        let others = self.filter.tests().filter(|&test| set.test.as_deref() != Some(test));
        conditions.extend(others.map(str::to_owned));
        let sql = format!(
            "SELECT {}, {} FROM ({} LIMIT {most}) CROSS JOIN tasks INDEXED BY tasks_places USING (task)",
            self.order.columns(),
            conditions.join(" AND "),
            set.numbers,
            most = i64::try_from(most).unwrap_or(i64::MAX),
        );
        let mut members = Members { number: 0, passing: Vec::new() };
        let mut query = self.conn.prepare_cached(&sql)?;
        let mut rows = self.asked(&mut query)?;
        while let Some(row) = rows.next()? {
            members.number += 1;
            if row.get(self.order.columns.len())? {
                members.passing.push(Place::read(row, self.order)?);
            }
        }
        Ok(members)
    }

    /// Tasks in order, until enough are found; nothing when so many texts were read in vain.
    fn walk(&self, most: usize) -> Result<Option<Walk>> {
        let mut query = self.conn.prepare_cached(&self.places())?;
        let mut rows = self.asked(&mut query)?;
        let mut text = self.texts()?;
        let mut walk = Walk { places: Vec::new(), is_whole: false };
        let mut read = 0;
        while let Some(row) = rows.next()? {
            let place = Place::read(row, self.order)?;
            if self.filter.text.is_some() {
                if read == most {
                    return Ok(None);
                }
                read += 1;
                if !self.holds(&mut text, &place)? {
                    continue;
                }
            }
            walk.places.push(place);
            if walk.places.len() == self.wanted {
                return Ok(Some(walk));
            }
        }
        walk.is_whole = true;
        Ok(Some(walk))
    }

    /// SQL of the places of all that passes every test but that of the text, in order.
    ///
    /// Every index begins with the status, so each status is read in order by itself and the parts are
    /// merged; and each priority too, where an index has it.
    fn places(&self) -> String {
        let filter = self.filter;
        let mut rest: Vec<String> = filter.due_between().into_iter().collect();
        rest.extend(filter.tests().map(str::to_owned));
        rest.extend(self.after.as_ref().map(|place| self.order.after(place)));
        let is_by_priority = !filter.priorities.is_empty() && self.order.columns.contains(&"due_at");
        let index = if is_by_priority { "priority" } else { self.order.name };
        let priorities: Vec<Option<&Priority>> =
            if is_by_priority { filter.priorities.iter().map(Some).collect() } else { vec![None] };
        if !is_by_priority && !filter.priorities.is_empty() {
            rest.push(format!("priority IN ({})", words(&filter.priorities, Priority::as_str)));
        }
        let mut parts = Vec::new();
        for status in &filter.statuses {
            for priority in &priorities {
                let mut conditions = vec![format!("status = '{}'", status.as_str())];
                conditions.extend(priority.map(|priority| format!("priority = '{}'", priority.as_str())));
                conditions.extend_from_slice(&rest);
                parts.push(format!(
                    "SELECT {} FROM tasks INDEXED BY tasks_{index} WHERE {}",
                    self.order.columns(),
                    conditions.join(" AND ")
                ));
            }
        }
        format!("{} ORDER BY {}", parts.join(" UNION ALL "), self.order.clause())
    }

    /// Runs a statement with as many of the callers' words as it has parameters.
    fn asked<'q>(&self, query: &'q mut Statement<'_>) -> Result<rusqlite::Rows<'q>> {
        let number = query.parameter_count();
        Ok(query.query(params_from_iter(self.filter.values.iter().take(number)))?)
    }

    fn texts(&self) -> Result<rusqlite::CachedStatement<'_>> {
        Ok(self.conn.prepare_cached("SELECT record FROM tasks WHERE task = ?1")?)
    }

    /// Whether the texts of a task hold what is looked for.
    fn holds(&self, record: &mut Statement<'_>, place: &Place) -> Result<bool> {
        let Some(wanted) = &self.filter.text else { return Ok(true) };
        let is_in = |row: &Row<'_>| {
            let record = row.get_ref(0)?.as_bytes()?;
            Ok(wanted.is_in(record))
        };
        record.query_row([place.task()], is_in)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::make_tables;
    use crate::store::order::ORDERS;

    fn plan(sql: &str) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        make_tables(&conn).unwrap();
        let mut query = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = query.raw_query().mapped(|row| row.get("detail"));
        steps.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn of(query: &Query) -> Filter {
        Filter::new(query, &Zone::named("UTC").unwrap()).unwrap()
    }

    fn walk(filter: &Filter, order: Order, cursor: Option<&str>) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        let after = cursor.map(|cursor| order.read_cursor(cursor).unwrap());
        let search = Search { conn: &conn, filter, order, after, wanted: 2, bounds: Bounds::default() };
        plan(&search.places())
    }

    #[test]
    fn a_page_in_any_order_is_read_from_an_index_and_never_sorted() {
        for order in ORDERS {
            for (status, priority) in
                [(vec![], vec![]), (vec!["open"], vec![]), (vec!["open"], vec!["P1", "P2"])]
            {
                let named = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
                let filter =
                    of(&Query { status: named(status), priority: named(priority), ..Query::default() });
                let values = order.columns.iter().map(|&column| match column {
                    "priority" => "P1".into(),
                    _ => serde_json::Value::from(1),
                });
                let place: Vec<_> = [order.name.into()].into_iter().chain(values).collect();
                let cursor = data_encoding::BASE64URL_NOPAD.encode(&serde_json::to_vec(&place).unwrap());
                let plan = walk(&filter, order, Some(&cursor));
                let reads: Vec<_> = plan.iter().filter(|step| step.contains(" tasks")).collect();
                let covering = filter.priorities.is_empty() || order.columns.contains(&"due_at");
                let index = if covering { "USING COVERING INDEX tasks_" } else { "USING INDEX tasks_" };
                assert!(!reads.is_empty() && reads.iter().all(|step| step.contains(index)), "{plan:#?}");
                assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
            }
        }
    }

    #[test]
    fn of_what_a_set_finds_no_record_is_read() {
        let query = Query {
            query: Some("报告".to_owned()),
            platform: Some("qq".to_owned()),
            conversation: Some("1".to_owned()),
            updated_from: Some("2026-07-01".to_owned()),
            ..Query::default()
        };
        let filter = of(&query);
        let conn = Connection::open_in_memory().unwrap();
        make_tables(&conn).unwrap();
        for order in ORDERS {
            let search = Search {
                conn: &conn,
                filter: &filter,
                order,
                after: None,
                wanted: 2,
                bounds: Bounds::default(),
            };
            for set in filter.sets.iter().chain([&filter.by_columns()]) {
                assert_eq!(search.members(set, 9).unwrap().number, 0);
            }
        }
        let [text, platform, conversation, updated] = &filter.sets[..] else { panic!("four sets") };
        for (set, step) in [
            (text, "SCAN task_search VIRTUAL TABLE INDEX 0:M"),
            (platform, "SEARCH c USING COVERING INDEX sqlite_autoindex_conversations_1 (platform=?)"),
            (conversation, "SEARCH c USING COVERING INDEX conversations_id (id=?)"),
            (updated, "SEARCH tasks USING COVERING INDEX tasks_updated (status=? AND updated_at>?)"),
            (
                &filter.by_columns(),
                "SEARCH tasks USING COVERING INDEX tasks_priority (status=? AND priority=?)",
            ),
        ] {
            let plan = plan(&set.numbers);
            assert!(plan.iter().any(|it| it.starts_with(step)), "{step}: {plan:#?}");
        }
    }
}
