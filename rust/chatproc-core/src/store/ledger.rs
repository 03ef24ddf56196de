//! Segments in the store, and which of them are done under which settings.
//!
//! Only what changed of conversations is segmented again. What a reader sees in a preview is made by the
//! same code over messages that are only in memory.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::error::{Error, Result};
use crate::plan::{Failed, Options};
use crate::revision::{Intake, Place, Touched};
use crate::segment::{Continuity, Grouping, Row, View, alone_fits, segment};
use crate::store::messages::find_conversation;
use crate::store::resegment::resegment;
use crate::store::slim::{Slim, slim_rows};
use crate::store::stretch::{Changes, Stretch};
use crate::store::{meta, set_meta};

/// A message of a segment: in the store, or only in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Member {
    /// Its row.
    Stored(i64),
    /// Its key.
    Fresh(Arc<str>),
}

/// A segment's messages, in order.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Its own, system notices among them.
    pub own: Vec<Member>,
    /// Those shown before them as history.
    pub carried: Vec<Member>,
}

/// Where a segment's messages are told.
#[derive(Clone, Debug)]
pub enum Listed {
    /// In its row: there are many segments, and few of them are asked for next.
    Stored(i64),
    /// Here, because it is only in memory.
    Fresh(Box<Members>),
}

/// A segment that is not done under the settings.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its messages.
    pub listed: Listed,
    /// Its conversation.
    pub place: Arc<Place>,
    /// Why its messages belong together.
    pub continuity: Continuity,
    /// The fingerprint of what is sent.
    pub content_fp: [u8; 32],
    /// Characters, its own share included.
    pub chars: u64,
    /// Messages sent.
    pub sent: u64,
    /// Attachments sent.
    pub files: u64,
    /// When its first subject message was sent.
    pub subject_at: i64,
    /// When its newest message was sent.
    pub newest_at: i64,
    /// How it failed under these settings.
    pub failed: Option<Failed>,
    /// Messages shown before its own as history.
    pub carried: u64,
    order: (i64, Option<i64>, Arc<str>),
}

impl Candidate {
    /// Messages that take a number in a document, the carried ones among them.
    #[must_use]
    pub fn refs(&self) -> u64 {
        self.sent + self.carried
    }

    /// Its row; none while it is only in memory.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self.listed {
            Listed::Stored(number) => Some(number),
            Listed::Fresh(_) => None,
        }
    }

    /// Its messages, as they were when it was planned.
    pub fn members(&self, conn: Option<&Connection>) -> Result<Cow<'_, Members>> {
        let (number, conn) = match (&self.listed, conn) {
            (Listed::Fresh(members), _) => return Ok(Cow::Borrowed(members)),
            (Listed::Stored(number), Some(conn)) => (number, conn),
            (Listed::Stored(_), None) => return Err(gone()),
        };
        let sql = "SELECT members, carried FROM segments WHERE segment = ?1 AND content_fp = ?2";
        let mut query = conn.prepare_cached(sql)?;
        let found = query.query_row(params![number, self.content_fp], |row| Ok((row.get(0)?, row.get(1)?)));
        let (own, carried): (String, String) = found.optional()?.ok_or_else(gone)?;
        let members = |list: &str| -> Result<Vec<Member>> {
            let numbers: Vec<i64> = serde_json::from_str(list)?;
            Ok(numbers.into_iter().map(Member::Stored).collect())
        };
        Ok(Cow::Owned(Members { own: members(&own)?, carried: members(&carried)? }))
    }
}

fn gone() -> Error {
    Error::NotFound("a planned segment is gone".to_owned())
}

/// The view as the store remembers it. The limit decides segments only where a session is cut by it.
fn remembered(view: &View) -> Result<String> {
    let limit = if view.grouping == Grouping::Session { view.limit } else { 0 };
    let carry = if view.grouping == Grouping::Session { view.carry } else { 0 };
    let gap = if view.grouping == Grouping::Sql { 0 } else { view.gap };
    Ok(serde_json::to_string(&View { gap, carry, limit, ..*view })?)
}

/// Segments every conversation that changed, and says of each segment what it waits for.
pub fn refresh(transaction: &Transaction<'_>, options: &Options, settings_fp: &[u8; 32]) -> Result<()> {
    let view = options.view();
    let seen = remembered(&view)?;
    let as_before = meta::<String>(transaction, "view")?.as_deref() == Some(&seen);
    if !as_before {
        transaction.execute("UPDATE conversations SET dirty = 1", [])?;
        set_meta(transaction, "view", &seen)?;
        set_meta(transaction, "start_at", view.start_at)?;
    }
    let limit = options.group_limit();
    let settings = (meta::<Vec<u8>>(transaction, "settings_fp")?, meta::<i64>(transaction, "limit")?);
    let now = (Some(settings_fp.to_vec()), Some(i64::try_from(limit).unwrap_or(i64::MAX)));
    if settings != now {
        set_meta(transaction, "settings_fp", settings_fp)?;
        set_meta(transaction, "limit", now.1)?;
        restate(transaction, settings_fp, limit)?;
    }
    let mut query = transaction.prepare("SELECT conversation FROM conversations WHERE dirty = 1")?;
    let dirty: Vec<i64> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let changes = Changes::read(transaction)?;
    for conversation in dirty {
        let stretch = if as_before {
            Stretch::touched(transaction, conversation, &view, &changes)?
        } else {
            Stretch::whole(transaction, conversation)?
        };
        resegment(transaction, conversation, &stretch, &view, settings_fp, limit)?;
    }
    Changes::clear(transaction)
}

/// Says of every segment anew what it waits for.
fn restate(transaction: &Transaction<'_>, settings_fp: &[u8; 32], limit: u64) -> Result<()> {
    let mut query = transaction
        .prepare("SELECT segment, content_fp, chars, sent + json_array_length(carried), files, subject_at IS NOT NULL FROM segments")?;
    let mut rows = query.query([])?;
    let sql = "UPDATE segments SET status = ?2, failure = ?3
               WHERE segment = ?1 AND (status, failure) IS NOT (?2, ?3)";
    let mut update = transaction.prepare(sql)?;
    while let Some(row) = rows.next()? {
        let unsigned = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let content_fp: [u8; 32] = row.get(1)?;
        let fits = alone_fits(unsigned(2)?, unsigned(3)?, unsigned(4)?, limit);
        let (status, failure) = standing(transaction, &content_fp, settings_fp, row.get(5)?, fits)?;
        update.execute(params![row.get::<_, i64>(0)?, status, failure])?;
    }
    Ok(())
}

/// What a segment waits for, and why its last attempt failed.
pub(super) fn standing(
    conn: &Connection,
    content_fp: &[u8; 32],
    settings_fp: &[u8; 32],
    subject: bool,
    fits: bool,
) -> Result<(&'static str, Option<String>)> {
    if !subject {
        return Ok(("idle", None));
    }
    if done(conn, content_fp, settings_fp)? {
        return Ok(("done", None));
    }
    if !fits {
        return Ok(("oversized", None));
    }
    let sql = "SELECT reason FROM failures WHERE content_fp = ?1 AND settings_fp = ?2";
    let mut query = conn.prepare_cached(sql)?;
    let failure: Option<String> = query.query_row([content_fp, settings_fp], |row| row.get(0)).optional()?;
    Ok((if failure.is_some() { "failed" } else { "pending" }, failure))
}

/// The commit that finished that content under those settings.
pub(super) fn finished_by(
    conn: &Connection,
    content_fp: &[u8; 32],
    settings_fp: &[u8; 32],
) -> Result<Option<i64>> {
    let sql = "SELECT \"commit\" FROM ledger WHERE content_fp = ?1 AND settings_fp = ?2";
    Ok(conn.prepare_cached(sql)?.query_row([content_fp, settings_fp], |row| row.get(0)).optional()?)
}

/// The contents that a commit finished, in no order.
pub(super) fn contents_of(conn: &Connection, commit: i64) -> Result<Vec<[u8; 32]>> {
    let mut query = conn.prepare_cached("SELECT content_fp FROM ledger WHERE \"commit\" = ?1")?;
    Ok(query.query_map([commit], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn done(conn: &Connection, content_fp: &[u8; 32], settings_fp: &[u8; 32]) -> Result<bool> {
    let sql = "SELECT 1 FROM ledger WHERE content_fp = ?1 AND settings_fp = ?2";
    Ok(conn.prepare_cached(sql)?.exists([content_fp, settings_fp])?)
}

/// Whether a message is a source of any task.
pub(super) fn is_any_cited(conn: &Connection) -> Result<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM task_sources")?.exists([])?)
}

/// Counts again how many live messages of a segment are sources of a task that is not superseded.
pub(crate) fn recount_cited(transaction: &Connection, segment: i64) -> Result<()> {
    let start_at: i64 = meta(transaction, "start_at")?.unwrap_or_default();
    let sql = "UPDATE segments SET cited = (
                 SELECT count(DISTINCT m.message) FROM json_each(segments.members) e
                 JOIN task_sources s ON s.message = e.value
                 JOIN tasks t ON t.task = s.task AND t.status <> 'superseded'
                 JOIN messages m ON m.message = e.value AND m.kind = 0 AND m.state <> 2 AND m.sent_at >= ?2)
               WHERE segment = ?1";
    transaction.prepare_cached(sql)?.execute([segment, start_at])?;
    Ok(())
}

/// Everything that is not done under the settings, in the order of conversations and segments.
///
/// `fresh` holds what is only in memory; its conversations are segmented here. Without it the answer is
/// read from the store, which [`refresh`] keeps up to date.
pub fn pending(
    conn: Option<&Connection>,
    fresh: Option<&Intake>,
    options: &Options,
    settings_fp: &[u8; 32],
) -> Result<Vec<Candidate>> {
    let view = options.view();
    let mut by_place: BTreeMap<Arc<Place>, Vec<Candidate>> = BTreeMap::new();
    let mut again: HashSet<Arc<Place>> = HashSet::new();
    if let Some(intake) = fresh {
        // Even what changes no segment may change what is sent.
        for touched in intake.messages.list.iter().filter(|touched| touched.changed) {
            again.insert(touched.message.place.clone());
            again.extend(touched.left.clone());
        }
    }
    if let Some(conn) = conn {
        let current = meta::<String>(conn, "view")?.as_deref() == Some(&remembered(&view)?);
        let sql = if current {
            "SELECT * FROM conversations WHERE dirty = 1"
        } else {
            "SELECT * FROM conversations"
        };
        let mut query = conn.prepare(sql)?;
        let stale = query.query_map([], place_of)?;
        for place in stale {
            again.insert(Arc::new(place?));
        }
        if current {
            for candidate in stored_candidates(conn, settings_fp)? {
                if !again.contains(&candidate.place) {
                    by_place.entry(candidate.place.clone()).or_default().push(candidate);
                }
            }
        }
    }
    let mut messages: HashMap<&Arc<Place>, Vec<&Touched>> = HashMap::new();
    for touched in fresh.iter().flat_map(|intake| &intake.messages.list) {
        messages.entry(&touched.message.place).or_default().push(touched);
    }
    for place in again {
        let touched = messages.get(&place).map(Vec::as_slice).unwrap_or_default();
        let slim = overlaid(conn, fresh, &place, touched)?;
        let candidates = fresh_candidates(conn, &place, &slim, &view, settings_fp)?;
        by_place.insert(place, candidates);
    }
    let mut candidates: Vec<Candidate> = by_place.into_values().flatten().collect();
    candidates.sort_by(|a, b| (&a.place, &a.order).cmp(&(&b.place, &b.order)));
    Ok(candidates)
}

fn place_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place {
        platform: row.get("platform")?,
        account_id: row.get("account_id")?,
        conversation_id: row.get("id")?,
    })
}

/// A conversation's rows: those of the store, with those in memory in their place.
fn overlaid(
    conn: Option<&Connection>,
    fresh: Option<&Intake>,
    place: &Place,
    touched: &[&Touched],
) -> Result<Vec<Slim>> {
    let mut slim = Vec::new();
    if let Some(conn) = conn
        && let Some(conversation) = find_conversation(conn, place)?
    {
        slim = slim_rows(conn, conversation)?;
        let known = |key: &str| fresh.is_some_and(|intake| intake.messages.place(key).is_some());
        slim.retain(|row| !known(&row.key));
    }
    slim.extend(touched.iter().map(|touched| Slim::fresh(&touched.message)));
    Ok(slim)
}

fn fresh_candidates(
    conn: Option<&Connection>,
    place: &Arc<Place>,
    slim: &[Slim],
    view: &View,
    settings_fp: &[u8; 32],
) -> Result<Vec<Candidate>> {
    let rows: Vec<Row<'_>> = slim.iter().map(Slim::row).collect();
    let mut candidates = Vec::new();
    for segment in segment(&rows, view).segments {
        let Some(subject_at) = segment.subject_at else { continue };
        if let Some(conn) = conn
            && done(conn, &segment.content_fp, settings_fp)?
        {
            continue;
        }
        let members =
            |places: &[usize]| -> Vec<Member> { places.iter().map(|&at| slim[at].member.clone()).collect() };
        let listed = Members { own: members(&segment.members), carried: members(&segment.carried) };
        let Some(first) = segment.members.first().map(|&at| &slim[at]) else { continue };
        candidates.push(Candidate {
            carried: listed.carried.len() as u64,
            listed: Listed::Fresh(Box::new(listed)),
            place: place.clone(),
            continuity: segment.continuity,
            content_fp: segment.content_fp,
            chars: segment.chars,
            sent: segment.sent,
            files: segment.files,
            subject_at,
            newest_at: segment.newest_at,
            failed: None,
            order: (first.sent_at, first.index, first.key.clone()),
        });
    }
    Ok(candidates)
}

fn stored_candidates(conn: &Connection, settings_fp: &[u8; 32]) -> Result<Vec<Candidate>> {
    let current = meta::<Vec<u8>>(conn, "settings_fp")?.as_deref() == Some(settings_fp);
    let open = if current {
        "s.status IN ('pending', 'failed', 'oversized')"
    } else {
        "s.subject_at IS NOT NULL AND NOT EXISTS(
           SELECT 1 FROM ledger l WHERE l.content_fp = s.content_fp AND l.settings_fp = ?1)"
    };
    let sql = format!(
        "SELECT segment, conversation, continuity, s.content_fp, chars, sent, files, subject_at, newest_at,
           CASE carried WHEN '[]' THEN 0 ELSE json_array_length(carried) END, first_at, first_position,
           first_key, f.attempts, f.at
         FROM segments s LEFT JOIN failures f ON f.content_fp = s.content_fp AND f.settings_fp = ?1
         WHERE {open} AND s.subject_at IS NOT NULL"
    );
    let mut query = conn.prepare(&sql)?;
    let mut rows = query.query([settings_fp])?;
    let mut candidates = Vec::new();
    let mut places: HashMap<i64, Arc<Place>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let place = match places.entry(row.get(1)?) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let place = place_numbered(conn, *new.key())?;
                new.insert(Arc::new(place))
            }
        };
        let continuity = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let unsigned = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let failed = match (row.get(13)?, row.get(14)?) {
            (Some(attempts), Some(at)) => Some(Failed { attempts, at }),
            _ => None,
        };
        candidates.push(Candidate {
            listed: Listed::Stored(row.get(0)?),
            place: place.clone(),
            continuity: Continuity::named(continuity)
                .ok_or_else(|| Error::Invalid(format!("a segment's continuity is {continuity:?}")))?,
            content_fp: row.get(3)?,
            chars: unsigned(4)?,
            sent: unsigned(5)?,
            files: unsigned(6)?,
            subject_at: row.get(7)?,
            newest_at: row.get(8)?,
            carried: unsigned(9)?,
            failed,
            order: (row.get(10)?, row.get(11)?, row.get(12)?),
        });
    }
    Ok(candidates)
}

fn place_numbered(conn: &Connection, conversation: i64) -> Result<Place> {
    let mut query = conn.prepare_cached("SELECT * FROM conversations WHERE conversation = ?1")?;
    Ok(query.query_row([conversation], place_of)?)
}

/// Notes why a group's segments could not be done. They stay pending. What does not count is no further attempt.
pub fn fail(
    transaction: &Transaction<'_>,
    segments: &[(i64, [u8; 32])],
    settings_fp: &[u8; 32],
    now: i64,
    reason: &str,
    counts: bool,
) -> Result<()> {
    for (segment, content_fp) in segments {
        let sql = "INSERT INTO failures VALUES(?1, ?2, 1, ?3, ?4)
                   ON CONFLICT DO UPDATE SET attempts = attempts + ?5, at = excluded.at, reason = excluded.reason";
        transaction.prepare_cached(sql)?.execute(params![content_fp, settings_fp, now, reason, counts])?;
        let sql = "UPDATE segments SET status = 'failed', failure = ?3
                   WHERE segment = ?1 AND content_fp = ?2 AND status IN ('pending', 'failed')";
        transaction.prepare_cached(sql)?.execute(params![segment, content_fp, reason])?;
    }
    Ok(())
}
