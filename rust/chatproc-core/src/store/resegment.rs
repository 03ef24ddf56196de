//! One conversation's segments made anew and written down, each message in the one it belongs to.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, Transaction, params};

use super::ledger::{is_any_cited, recount_cited, standing};
use super::slim::{Slim, stored_number};
use super::stretch::Stretch;
use crate::error::Result;
use crate::segment::{Row, Segment, View, alone_fits, segment};

/// Segments a stretch of a conversation again. Segments that did not change keep their rows.
pub(super) fn resegment(
    transaction: &Transaction<'_>,
    conversation: i64,
    stretch: &Stretch,
    view: &View,
    settings_fp: &[u8; 32],
    limit: u64,
) -> Result<()> {
    let slim = &stretch.rows;
    let may_be_cited = is_any_cited(transaction)?;
    let rows: Vec<Row<'_>> = slim.iter().map(Slim::row).collect();
    let made = segment(&rows, view);
    let mut kept = kept_rows(transaction, conversation, stretch.segments.as_ref())?;
    let mut fresh = Vec::new();
    for segment in made.segments {
        let first = segment.members.first().map(|&at| &slim[at]);
        if first
            .and_then(|first| stored_number(&first.member))
            .is_some_and(|first| stretch.seen.contains(&first))
        {
            continue;
        }
        let numbers = |places: &[usize]| -> Vec<i64> {
            places.iter().filter_map(|&at| stored_number(&slim[at].member)).collect()
        };
        let members = serde_json::to_string(&numbers(&segment.members))?;
        let carried = serde_json::to_string(&numbers(&segment.carried))?;
        let (first_at, index) = first.map(|first| (first.sent_at, first.index)).unwrap_or_default();
        let same = Same {
            content_fp: segment.content_fp,
            chars: segment.chars,
            first: (first_at, index, segment.newest_at),
            predecessor: first.and_then(|first| first.predecessor.clone()),
            members: members.clone(),
            carried: carried.clone(),
        };
        if kept.remove(&same).is_none() {
            fresh.push((segment, members, carried));
        }
    }
    // One that grew or was edited keeps its row, so that its other messages need no look.
    let mut stale = by_first_member(kept)?;
    let fresh: Vec<_> = fresh
        .into_iter()
        .map(|made| {
            let first = made.0.members.first().and_then(|&at| stored_number(&slim[at].member));
            (first.and_then(|first| stale.remove(&first)), made)
        })
        .collect();
    for number in stale.into_values() {
        transaction.prepare_cached("DELETE FROM segments WHERE segment = ?1")?.execute([number])?;
    }
    let mut join = transaction.prepare_cached("INSERT OR REPLACE INTO members VALUES(?1, ?2)")?;
    for (number, (segment, members, carried)) in fresh {
        let fits = alone_fits(segment.chars, segment.refs(), segment.files, limit);
        let subject = segment.subject_at.is_some();
        let (status, failure) = standing(transaction, &segment.content_fp, settings_fp, subject, fits)?;
        let first = segment.members.first().map(|&at| &slim[at]);
        let number = write(
            transaction,
            number,
            conversation,
            &segment,
            first,
            status,
            failure.as_deref(),
            &members,
            &carried,
        )?;
        for &at in &segment.members {
            if slim[at].segment != Some(number)
                && let Some(message) = stored_number(&slim[at].member)
            {
                join.execute([message, number])?;
            }
        }
        if may_be_cited {
            recount_cited(transaction, number)?;
        }
    }
    let sql = "UPDATE conversations SET dirty = 0, forks = ?2 WHERE conversation = ?1";
    transaction
        .prepare_cached(sql)?
        .execute([conversation, stretch.forks + i64::try_from(made.forks).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Segments by the row of their first message, which stands in no other.
fn by_first_member(segments: HashMap<Same, i64>) -> Result<HashMap<i64, i64>> {
    let first = |(same, number): (Same, i64)| {
        let members: Vec<i64> = serde_json::from_str(&same.members)?;
        Ok((members.first().copied().unwrap_or_default(), number))
    };
    segments.into_iter().map(first).collect()
}

/// What a stored segment must have in common with one made now to keep its row.
#[derive(PartialEq, Eq, Hash)]
struct Same {
    content_fp: [u8; 32],
    chars: u64,
    first: (i64, Option<i64>, i64),
    predecessor: Option<String>,
    members: String,
    carried: String,
}

/// The stored segments of that stretch, or all of the conversation.
fn kept_rows(
    conn: &Connection,
    conversation: i64,
    stretch: Option<&BTreeSet<i64>>,
) -> Result<HashMap<Same, i64>> {
    let mut kept = HashMap::new();
    let mut read = |which: &str, number: i64| -> Result<()> {
        let mut query = conn.prepare_cached(&format!("SELECT * FROM segments WHERE {which} = ?1"))?;
        let mut rows = query.query([number])?;
        while let Some(row) = rows.next()? {
            let same = Same {
                content_fp: row.get("content_fp")?,
                chars: row.get::<_, i64>("chars")?.unsigned_abs(),
                first: (row.get("first_at")?, row.get("first_position")?, row.get("newest_at")?),
                predecessor: row.get("predecessor")?,
                members: row.get("members")?,
                carried: row.get("carried")?,
            };
            kept.insert(same, row.get("segment")?);
        }
        Ok(())
    };
    match stretch {
        Some(segments) => segments.iter().try_for_each(|&segment| read("segment", segment))?,
        None => read("conversation", conversation)?,
    }
    Ok(kept)
}

#[allow(clippy::too_many_arguments)] // one for each column that is not the segment's own
fn write(
    transaction: &Transaction<'_>,
    number: Option<i64>,
    conversation: i64,
    segment: &Segment,
    first: Option<&Slim>,
    status: &str,
    failure: Option<&str>,
    members: &str,
    carried: &str,
) -> Result<i64> {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let sql = "INSERT INTO segments(segment, conversation, first_at, first_position, first_key, continuity,
                 content_fp, chars, sent, files, subject_at, newest_at, status, failure, system, recalled,
                 history, live, cited, carried, members, predecessor)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 0, ?19, ?20, ?21)
               ON CONFLICT(segment) DO UPDATE SET first_at = excluded.first_at,
                 first_position = excluded.first_position, first_key = excluded.first_key,
                 continuity = excluded.continuity, content_fp = excluded.content_fp, chars = excluded.chars,
                 sent = excluded.sent, files = excluded.files, subject_at = excluded.subject_at,
                 newest_at = excluded.newest_at, status = excluded.status, failure = excluded.failure,
                 system = excluded.system, recalled = excluded.recalled, history = excluded.history,
                 live = excluded.live, carried = excluded.carried, members = excluded.members,
                 predecessor = excluded.predecessor";
    transaction.prepare_cached(sql)?.execute(params![
        number,
        conversation,
        first.map_or(0, |row| row.sent_at),
        first.and_then(|row| row.index),
        first.map_or("", |row| &*row.key),
        segment.continuity.as_str(),
        segment.content_fp,
        signed(segment.chars),
        signed(segment.sent),
        signed(segment.files),
        segment.subject_at,
        segment.newest_at,
        status,
        failure,
        signed(segment.tally.system),
        signed(segment.tally.recalled),
        signed(segment.tally.history),
        signed(segment.tally.live),
        carried,
        members,
        first.and_then(|row| row.predecessor.as_deref()),
    ])?;
    Ok(number.unwrap_or_else(|| transaction.last_insert_rowid()))
}
