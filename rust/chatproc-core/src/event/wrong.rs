//! What is wrong with a line, in words for a person.

use super::Reason;
use crate::json::{self, Value};

/// The first thing wrong with a line that is a sound object.
pub struct Wrong {
    pub reason: Reason,
    pub field: String,
    pub what: String,
}

pub type Checked<T> = Result<T, Wrong>;

impl Wrong {
    pub fn missing(field: &str) -> Self {
        Self { reason: Reason::MissingField, field: field.to_owned(), what: "is missing".to_owned() }
    }

    pub fn bad(field: &str, value: &Value<'_>, wanted: &str) -> Self {
        let what = format!("is {}, wanted {wanted}", show(value));
        Self { reason: Reason::BadField, field: field.to_owned(), what }
    }

    /// The same, seen from the field that holds the one it names.
    pub fn within(mut self, outer: &str) -> Self {
        self.field = if self.field.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.field) };
        self
    }

    pub fn explanation(&self) -> String {
        format!("`{}` {}", self.field, self.what)
    }
}

/// What was found, for an explanation.
pub fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::True => "true".to_owned(),
        Value::False => "false".to_owned(),
        Value::Number(text) => json::shorten(text, 40),
        Value::String(text) => json::quote(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
