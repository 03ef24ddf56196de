//! What of a changed conversation is segmented again: the segments that new and changed messages touch, and
//! what has to be seen beside them, however long the conversation is.
//!
//! Reads only. Whatever is not plain makes it the whole conversation, which is always right: messages that
//! moved, cycles, and in a session whatever links two pieces anew.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::slim::{Slim, add_rows, slim_rows, stored_number, unplanned_rows};
use crate::error::Result;
use crate::segment::{Continuity, Grouping, View};

/// Rows of a conversation to segment, and what is done with the segments that are made.
pub(super) struct Stretch {
    pub(super) rows: Vec<Slim>,
    /// The stored segments whose place is taken; none: all of the conversation.
    pub(super) segments: Option<BTreeSet<i64>>,
    /// Rows that are only seen: their segments stay.
    pub(super) seen: HashSet<i64>,
    /// Forks that the rows do not show.
    pub(super) forks: i64,
}

/// What came since the last plan, by conversation.
pub(super) struct Changes(HashMap<i64, Changed>);

#[derive(Default)]
struct Changed {
    /// Rows of new messages.
    new: Vec<i64>,
    /// Segments of the messages that changed in their places.
    segments: BTreeSet<i64>,
    /// Whether one may have another place.
    moved: bool,
}

impl Changes {
    pub(super) fn read(conn: &Connection) -> Result<Self> {
        let mut conversations: HashMap<i64, Changed> = HashMap::new();
        let newest = "SELECT max(message) FROM members";
        let planned: Option<i64> = conn.query_row(newest, [], |row| row.get(0))?;
        // Where nothing is planned, all is new.
        if let Some(planned) = planned {
            let sql = "SELECT message, conversation FROM messages WHERE message > ?1";
            let mut query = conn.prepare_cached(sql)?;
            let mut rows = query.query([planned])?;
            while let Some(row) = rows.next()? {
                conversations.entry(row.get(1)?).or_default().new.push(row.get(0)?);
            }
        }
        let sql = "SELECT m.conversation, g.conversation, segment, moved FROM changed
                   JOIN messages m USING (message) JOIN members USING (message) JOIN segments g USING (segment)";
        let mut query = conn.prepare_cached(sql)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let moved: bool = row.get(3)?;
            for conversation in [row.get(0)?, row.get(1)?] {
                let changed = conversations.entry(conversation).or_default();
                changed.moved |= moved;
                changed.segments.insert(row.get(2)?);
            }
        }
        Ok(Self(conversations))
    }

    /// Whether a message that is planned changed since.
    pub(super) fn are_there(conn: &Connection) -> Result<bool> {
        Ok(conn.prepare_cached("SELECT 1 FROM changed")?.exists([])?)
    }

    /// Forgets them: they are planned.
    pub(super) fn clear(conn: &Connection) -> Result<()> {
        conn.execute("DELETE FROM changed", [])?;
        Ok(())
    }
}

impl Stretch {
    /// All of a conversation.
    pub(super) fn whole(conn: &Connection, conversation: i64) -> Result<Self> {
        let rows = if is_planned(conn, conversation)? {
            slim_rows(conn, conversation)?
        } else {
            unplanned_rows(conn, conversation)?
        };
        Ok(Self { rows, segments: None, seen: HashSet::new(), forks: 0 })
    }

    /// What of a conversation the changes touch.
    pub(super) fn touched(
        conn: &Connection,
        conversation: i64,
        view: &View,
        changes: &Changes,
    ) -> Result<Self> {
        let none = Changed::default();
        let changed = changes.0.get(&conversation).unwrap_or(&none);
        if !changed.moved && is_planned(conn, conversation)? {
            let mut new = Vec::new();
            add_rows(conn, &changed.new, &mut new)?;
            let again = changed.segments.clone();
            let (seen, pieces) = (BTreeSet::new(), HashMap::new());
            let search = Search { conn, conversation, view, again, seen, pieces };
            let found = match view.grouping {
                Grouping::Time => search.by_time(new)?,
                Grouping::Sql | Grouping::Session => search.by_links(new)?,
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Self::whole(conn, conversation)
    }
}

/// Whether a conversation has segments.
fn is_planned(conn: &Connection, conversation: i64) -> Result<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM segments WHERE conversation = ?1")?.exists([conversation])?)
}

/// A stored segment, as far as its neighbours are found by it.
struct Piece {
    number: i64,
    members: Vec<i64>,
    predecessor: Option<String>,
    continuity: String,
    sent: u64,
}

impl Piece {
    /// Whether its first message follows the last one of another segment.
    fn goes_on(&self) -> bool {
        self.is_cut_at_budget() || self.continuity == Continuity::CutAtSilence.as_str()
    }

    /// Whether it is cut from that one by its length alone.
    fn is_cut_at_budget(&self) -> bool {
        self.continuity == Continuity::CutAtBudget.as_str()
    }
}

/// The search for what is touched. Nothing found is no answer: the whole conversation is.
struct Search<'s> {
    conn: &'s Connection,
    conversation: i64,
    view: &'s View,
    again: BTreeSet<i64>,
    seen: BTreeSet<i64>,
    pieces: HashMap<i64, Rc<Piece>>,
}

/// What links tell of the segments that were found.
#[derive(Default)]
struct Claims {
    /// Forks that these segments are part of.
    forks: i64,
    /// Rows of messages that follow none of the others, whatever they claim.
    apart: HashSet<i64>,
}

impl Search<'_> {
    /// The segments that a new message's neighbours in time stand in.
    fn by_time(mut self, new: Vec<Slim>) -> Result<Option<Stretch>> {
        // Segments by time do not tell who claims whom, and a new claim may be a fork.
        if new.iter().any(|row| row.predecessor.is_some()) {
            return Ok(None);
        }
        let sql = "SELECT segment, newest_at FROM segments WHERE conversation = ?1 AND first_at <= ?2
                   ORDER BY first_at DESC";
        let mut query = self.conn.prepare_cached(sql)?;
        for row in &new {
            let until = row.sent_at.saturating_add(self.view.gap);
            let mut near = query.query([self.conversation, until])?;
            while let Some(segment) = near.next()? {
                if row.sent_at.saturating_sub(segment.get(1)?) > self.view.gap {
                    break;
                }
                self.again.insert(segment.get(0)?);
            }
        }
        drop(query);
        let mut stretch = self.stretch(new, 0)?;
        for row in &mut stretch.rows {
            row.apart = true;
        }
        Ok(Some(stretch))
    }

    /// The segments that a claim of or on a new message leads to.
    fn by_links(mut self, new: Vec<Slim>) -> Result<Option<Stretch>> {
        let Some(Claims { forks, apart }) = self.follow_claims(&new)? else { return Ok(None) };
        let mut stretch = self.stretch(new, forks)?;
        for row in &mut stretch.rows {
            row.apart = stored_number(&row.member).is_some_and(|number| apart.contains(&number));
        }
        Ok(Some(stretch))
    }

    fn follow_claims(&mut self, new: &[Slim]) -> Result<Option<Claims>> {
        let is_session = self.view.grouping == Grouping::Session;
        let own: HashSet<&str> = new.iter().map(|row| &*row.key).collect();
        let keys: HashSet<&str> =
            own.iter().copied().chain(new.iter().filter_map(|row| row.predecessor.as_deref())).collect();
        let mut claims = Claims::default();
        for &key in &keys {
            let heads = self.claimants(key)?;
            let holder = if own.contains(key) { None } else { self.holder(key)? };
            if is_session && !(heads.is_empty() && self.is_end(holder)?) {
                return Ok(None);
            }
            claims.forks += i64::from(heads.len() > 1);
            self.again.extend(heads);
            self.again.extend(holder.map(|(segment, _)| segment));
        }
        for number in self.again.clone() {
            if is_session && !self.look_around(number)? {
                return Ok(None);
            }
        }
        let found: Vec<i64> = self.again.union(&self.seen).copied().collect();
        for number in found {
            let piece = self.piece(number)?;
            let Some(claim) = piece.predecessor.as_deref().filter(|_| !piece.goes_on()) else { continue };
            if keys.contains(claim) {
                continue;
            }
            // It was known not to hold, and nothing that came since can make it hold, a cycle aside.
            if self.would_hold(claim)? {
                return Ok(None);
            }
            claims.apart.extend(piece.members.first());
        }
        Ok(Some(claims))
    }

    /// Finds what belongs to a piece of a chain: those between the same silences, those after them that may carry
    /// one of their messages, and those before that they may carry messages of. False: not all is there.
    fn look_around(&mut self, number: i64) -> Result<bool> {
        let carry = self.view.carry as u64;
        let mut piece = self.piece(number)?;
        let mut after = self.follower(&piece)?;
        let mut carried_by: Option<u64> = None;
        while let Some(next) = after {
            if !next.is_cut_at_budget() {
                let sent = carried_by.unwrap_or_default();
                if sent >= carry {
                    break;
                }
                carried_by = Some(sent);
            }
            carried_by = carried_by.map(|sent| sent + next.sent);
            self.again.insert(next.number);
            after = self.follower(&next)?;
        }
        while piece.is_cut_at_budget() {
            let Some(before) = self.before(&piece)? else { return Ok(false) };
            self.again.insert(before.number);
            piece = before;
        }
        let mut sent = 0;
        while piece.goes_on() && (sent < carry || sent == 0 || piece.is_cut_at_budget()) {
            let Some(before) = self.before(&piece)? else { return Ok(false) };
            self.seen.insert(before.number);
            sent += before.sent;
            piece = before;
        }
        Ok(true)
    }

    /// The piece that goes on after this one.
    fn follower(&mut self, piece: &Piece) -> Result<Option<Rc<Piece>>> {
        let Some(last) = piece.members.last() else { return Ok(None) };
        let key: String = self
            .conn
            .prepare_cached("SELECT key FROM messages WHERE message = ?1")?
            .query_row([last], |row| row.get(0))?;
        match self.claimants(&key)?[..] {
            [one] => Ok(Some(self.piece(one)?).filter(|next| next.goes_on())),
            _ => Ok(None),
        }
    }

    /// The piece that this one goes on after.
    fn before(&mut self, piece: &Piece) -> Result<Option<Rc<Piece>>> {
        let Some(predecessor) = &piece.predecessor else { return Ok(None) };
        self.holder(predecessor)?.map(|(segment, _)| self.piece(segment)).transpose()
    }

    /// Segments whose first message claims to follow that key.
    fn claimants(&self, key: &str) -> Result<Vec<i64>> {
        let sql = "SELECT segment FROM segments WHERE conversation = ?1 AND predecessor = ?2";
        let mut query = self.conn.prepare_cached(sql)?;
        let segments = query.query_map(params![self.conversation, key], |row| row.get(0))?;
        Ok(segments.collect::<rusqlite::Result<_>>()?)
    }

    /// The segment that holds the message of that key, and its row.
    fn holder(&self, key: &str) -> Result<Option<(i64, i64)>> {
        let sql = "SELECT segment, message FROM messages JOIN members USING (message)
                   WHERE key = ?1 AND conversation = ?2";
        let mut query = self.conn.prepare_cached(sql)?;
        let found = query.query_row(params![key, self.conversation], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(found.optional()?)
    }

    /// Whether a message is the last one of its segment.
    fn is_end(&mut self, holder: Option<(i64, i64)>) -> Result<bool> {
        match holder {
            Some((segment, message)) => Ok(self.piece(segment)?.members.last() == Some(&message)),
            None => Ok(true),
        }
    }

    /// Whether a claim by itself proves a link.
    fn would_hold(&self, claim: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM messages WHERE key = ?1 AND conversation = ?2 AND sequenced";
        let mut query = self.conn.prepare_cached(sql)?;
        Ok(query.exists(params![claim, self.conversation])? && self.claimants(claim)?.len() == 1)
    }

    fn piece(&mut self, number: i64) -> Result<Rc<Piece>> {
        if let Some(known) = self.pieces.get(&number) {
            return Ok(known.clone());
        }
        let sql = "SELECT members, predecessor, continuity, sent FROM segments WHERE segment = ?1";
        let mut query = self.conn.prepare_cached(sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)?.unsigned_abs()))
        };
        let (members, predecessor, continuity, sent) = query.query_row([number], read)?;
        let members = serde_json::from_str(&members)?;
        let piece = Rc::new(Piece { number, members, predecessor, continuity, sent });
        self.pieces.insert(number, piece.clone());
        Ok(piece)
    }

    /// The new rows and those of all segments found; so many forks are among them.
    fn stretch(&mut self, new: Vec<Slim>, forks: i64) -> Result<Stretch> {
        let sql = "SELECT forks FROM conversations WHERE conversation = ?1";
        let all: i64 = self.conn.prepare_cached(sql)?.query_row([self.conversation], |row| row.get(0))?;
        let mut rows = new;
        let mut seen = HashSet::new();
        for number in self.again.union(&self.seen).copied().collect::<Vec<_>>() {
            let piece = self.piece(number)?;
            add_rows(self.conn, &piece.members, &mut rows)?;
            if !self.again.contains(&number) {
                seen.extend(&piece.members);
            }
        }
        Ok(Stretch { rows, segments: Some(std::mem::take(&mut self.again)), seen, forks: all - forks })
    }
}
