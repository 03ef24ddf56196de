//! A digest beside a row that tells what nothing else in the store tells: whether a byte of it has changed.
//!
//! Made where the row is written, and again by `verify`; both take the values from here, in one order.
//! Must never change its form: a digest that is stored is compared for ever.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::error::Result;

/// SHA-256 over values, each with its type and length.
pub(super) type Proof = [u8; 32];

/// Values taken into a digest, one after the other.
#[derive(Default)]
struct Values(Sha256);

impl Values {
    fn take(mut self, values: &[ValueRef<'_>]) -> Self {
        for value in values {
            match *value {
                ValueRef::Null => self.0.update([0]),
                ValueRef::Integer(number) => self.part(1, &number.to_be_bytes()),
                ValueRef::Real(number) => self.part(2, &number.to_be_bytes()),
                ValueRef::Text(bytes) => self.part(3, bytes),
                ValueRef::Blob(bytes) => self.part(4, bytes),
            }
        }
        self
    }

    fn part(&mut self, kind: u8, bytes: &[u8]) {
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    /// Takes every row of a query, each with its number of values before it.
    fn take_rows(mut self, conn: &Connection, sql: &str, number: i64) -> Result<Self> {
        let mut query = conn.prepare_cached(sql)?;
        let columns = query.column_count();
        let mut rows = query.query(params![number])?;
        while let Some(row) = rows.next()? {
            let values =
                (0..columns).map(|column| row.get_ref(column)).collect::<rusqlite::Result<Vec<_>>>()?;
            self = self.take(&[integer(i64::try_from(columns).unwrap_or_default())]).take(&values);
        }
        Ok(self)
    }

    fn proof(self) -> Proof {
        self.0.finalize().into()
    }
}

fn integer(number: i64) -> ValueRef<'static> {
    ValueRef::Integer(number)
}

fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

fn optional(value: Option<&str>) -> ValueRef<'_> {
    value.map_or(ValueRef::Null, text)
}

/// What of a message other deliveries than its line told; nothing where the line tells all.
pub(super) fn message(
    key: &str,
    position: Option<i64>,
    predecessor: Option<&str>,
    link: Option<&str>,
    merged: Option<&str>,
) -> Option<Proof> {
    let position = position.map_or(ValueRef::Null, integer);
    let values = [text(key), position, optional(predecessor), optional(link), optional(merged)];
    (link.is_some() || merged.is_some()).then(|| Values::default().take(&values).proof())
}

/// A revision below a message's newest.
pub(super) fn revision(message: i64, revision: i64, content: &[u8], merged: Option<&str>) -> Proof {
    let values = [integer(message), integer(revision), ValueRef::Blob(content), optional(merged)];
    Values::default().take(&values).proof()
}

/// A commit with what was sent of attachments and the tasks it submitted, as they are stored, and with the
/// contents that the ledger says it finished.
pub(super) fn commit(conn: &Connection, number: i64, mut contents: Vec<[u8; 32]>) -> Result<Proof> {
    contents.sort_unstable();
    let own = "SELECT \"commit\", round, conversation, group_id, settings_fp, at, model, rules_sha256, usage,
                 no_task_reason FROM commits WHERE \"commit\" = ?1";
    let receipts = "SELECT message, attachment_id, unit, attachment_sha256, content_sha256, length
                    FROM receipts WHERE \"commit\" = ?1 ORDER BY message, attachment_id, unit";
    let submissions = "SELECT task FROM submissions WHERE \"commit\" = ?1 ORDER BY task";
    let contents: Vec<ValueRef<'_>> = contents.iter().map(|content| ValueRef::Blob(content)).collect();
    let values = Values::default().take(&contents).take_rows(conn, own, number)?;
    Ok(values.take_rows(conn, receipts, number)?.take_rows(conn, submissions, number)?.proof())
}

/// A published revision of a task.
pub(super) fn event(task: i64, revision: i64, at: i64, actor: &str, why: &str, line: &[u8]) -> Proof {
    let values =
        [integer(task), integer(revision), integer(at), text(actor), text(why), ValueRef::Blob(line)];
    Values::default().take(&values).proof()
}

/// A user's request.
pub(super) fn request(request_id: &str, content: &[u8], row: i64) -> Proof {
    Values::default().take(&[text(request_id), ValueRef::Blob(content), integer(row)]).proof()
}
