//! Orders of tasks, places in them, and cursors: where a page ended, opaque to whoever holds one.

use rusqlite::Row;
use rusqlite::types::Value as Sql;

use crate::error::{Error, Result};
use crate::task::Priority;

/// An order of tasks: no two have the same place in it.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) is_descending: bool,
}

pub(super) const ORDERS: [Order; 4] = [
    Order { name: "due", columns: &["due_at", "task"], is_descending: false },
    Order { name: "priority", columns: &["priority", "due_at", "task"], is_descending: false },
    Order { name: "updated", columns: &["updated_at", "task"], is_descending: true },
    // Numbers are given in the order of creation, whatever the clock did.
    Order { name: "created", columns: &["task"], is_descending: true },
];

/// A task's values in the columns of its order; the last one is its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(Vec<Key>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i64),
    Word(String),
}

impl Place {
    /// Reads the order's columns, the row's first ones.
    pub(super) fn read(row: &Row<'_>, order: Order) -> Result<Self> {
        let key = |at: usize| match row.get(at)? {
            Sql::Integer(number) => Ok(Key::Number(number)),
            Sql::Text(text) => Ok(Key::Word(text)),
            other => Err(Error::Invalid(format!("{} holds {:?}", order.columns[at], other.data_type()))),
        };
        Ok(Self((0..order.columns.len()).map(key).collect::<Result<_>>()?))
    }

    /// The task's number.
    pub(super) fn task(&self) -> i64 {
        match self.0.last() {
            Some(Key::Number(task)) => *task,
            _ => 0,
        }
    }
}

impl Order {
    pub(super) fn named(name: &str) -> Result<Self> {
        ORDERS
            .into_iter()
            .find(|order| order.name == name)
            .ok_or_else(|| Error::Invalid(format!("{name:?} is no order: due, priority, updated, created")))
    }

    /// Its columns, for an SQL statement.
    pub(super) fn columns(self) -> String {
        self.columns.join(", ")
    }

    /// For `ORDER BY`.
    pub(super) fn clause(self) -> String {
        let direction = if self.is_descending { " DESC" } else { "" };
        self.columns.iter().map(|column| format!("{column}{direction}")).collect::<Vec<_>>().join(", ")
    }

    /// Whether one place comes after another.
    pub(super) fn is_after(self, place: &Place, other: &Place) -> bool {
        if self.is_descending { place < other } else { place > other }
    }

    /// The SQL condition for places after this one; its words are the program's own, never a caller's.
    pub(super) fn after(self, place: &Place) -> String {
        let values: Vec<String> = place
            .0
            .iter()
            .map(|key| match key {
                Key::Number(number) => number.to_string(),
                Key::Word(word) => format!("'{}'", Priority::named(word).map_or("", Priority::as_str)),
            })
            .collect();
        let comparison = if self.is_descending { "<" } else { ">" };
        format!("({}) {comparison} ({})", self.columns.join(", "), values.join(", "))
    }

    pub(super) fn sort(self, places: &mut [Place]) {
        places.sort_unstable();
        if self.is_descending {
            places.reverse();
        }
    }

    /// The place as a cursor.
    pub(super) fn cursor(self, place: &Place) -> Result<String> {
        let mut values = vec![serde_json::Value::from(self.name)];
        values.extend(place.0.iter().map(|key| match key {
            Key::Number(number) => (*number).into(),
            Key::Word(word) => word.as_str().into(),
        }));
        Ok(data_encoding::BASE64URL_NOPAD.encode(&serde_json::to_vec(&values)?))
    }

    /// The place that a cursor tells.
    pub(super) fn read_cursor(self, cursor: &str) -> Result<Place> {
        self.place(cursor)
            .ok_or_else(|| Error::Invalid(format!("{cursor:?} is no cursor of the order {:?}", self.name)))
    }

    fn place(self, cursor: &str) -> Option<Place> {
        let bytes = data_encoding::BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?;
        let place: Vec<serde_json::Value> = serde_json::from_slice(&bytes).ok()?;
        let (name, values) = place.split_first()?;
        if name.as_str() != Some(self.name) || values.len() != self.columns.len() {
            return None;
        }
        let read = |(value, &column): (&serde_json::Value, &&str)| match column {
            "priority" => {
                let priority = value.as_str().and_then(Priority::named)?;
                Some(Key::Word(priority.as_str().to_owned()))
            }
            _ => value.as_i64().map(Key::Number),
        };
        values.iter().zip(self.columns).map(read).collect::<Option<_>>().map(Place)
    }
}
