//! What a round would do now: pending segments planned into groups and batches, and their documents.
//!
//! Reads messages wherever they are, in the store or only in memory; writes nothing.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{self, Batch, GroupText, Related, SegmentText, Sent};
use crate::error::{Error, Result};
use crate::event::FileFacts;
use crate::event::{Event, Kind};
use crate::fingerprint;
use crate::plan::{self, Options, Pending, Waiting};
use crate::revision::{Intake, Nothing, Place, Spot};
use crate::segment::alone_fits;
use crate::store::ledger::{Candidate, Member};
use crate::store::messages::{line, slim, stored_event, stored_facts};
use crate::zone::Zone;

/// Everything pending, planned.
#[derive(Debug, Default)]
pub struct Agenda {
    /// Groups in the order in which rounds take them.
    pub groups: Vec<GroupPlan>,
    /// Segments too long for any group.
    pub oversized: Vec<Candidate>,
    /// Segments that are still talked in: pending, and left to a later round.
    pub waiting: usize,
    /// Segments that failed and are tried again later: pending, and left to a later round.
    pub put_off: usize,
    /// When the first of these is tried again, milliseconds since 1970.
    pub retry_at: Option<i64>,
    /// Where each group stands, by its id.
    places: HashMap<String, usize>,
}

/// A group of the agenda.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Its id, the same for the same content.
    pub id: String,
    /// Its fingerprint.
    pub group_fp: [u8; 32],
    /// Its conversation.
    pub place: Arc<Place>,
    /// Its segments, in order.
    pub segments: Vec<Candidate>,
    /// Characters, its own share included.
    pub chars: u64,
    /// Messages sent.
    pub sent: u64,
    /// The plan's record of it.
    plan: plan::Group,
}

/// A group as a round's plan tells it; what it holds is read when it is asked for.
#[derive(Clone, Debug, Serialize)]
pub struct GroupBrief {
    /// Its id.
    pub id: String,
    /// Its conversation.
    pub conversation: Value,
    /// How many segments it has.
    pub segments: usize,
    /// Messages sent.
    pub messages: u64,
    /// Characters.
    pub chars: u64,
}

/// A group as `preview` and `plan_events` show it.
#[derive(Clone, Debug, Serialize)]
pub struct GroupView {
    /// Its id.
    pub id: String,
    /// Its fingerprint, hexadecimal.
    pub fingerprint: String,
    /// Its conversation.
    pub conversation: Value,
    /// Its segments with the keys of the messages that are sent.
    pub segments: Vec<SegmentView>,
    /// Messages sent.
    pub messages: u64,
    /// Characters.
    pub chars: u64,
}

/// A segment as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentView {
    /// Why its messages belong together.
    pub continuity: &'static str,
    /// Its fingerprint, hexadecimal.
    pub fingerprint: String,
    /// Characters, its own share included.
    pub chars: u64,
    /// Keys of the messages that are sent, in order.
    pub messages: Vec<String>,
    /// Keys of the messages shown before them as history.
    pub carried: Vec<String>,
}

/// Plans what is pending. Candidates are in the order of conversations and segments.
#[must_use]
pub fn agenda(mut candidates: Vec<Candidate>, options: &Options) -> Agenda {
    let pending = candidates.len();
    candidates.retain(|candidate| !options.is_lively(candidate.newest_at));
    let lively = pending - candidates.len();
    let until = |candidate: &Candidate| options.put_off_until(candidate.failed);
    let retry_at = candidates.iter().filter_map(until).min();
    let put_off = candidates.iter().filter_map(until).count();
    candidates.retain(|candidate| until(candidate).is_none());
    let mut waiting: Vec<Waiting> = Vec::new();
    for (number, candidate) in candidates.iter().enumerate() {
        if waiting.last().is_none_or(|last| last.place != *candidate.place) {
            waiting.push(Waiting { place: Place::clone(&candidate.place), segments: Vec::new() });
        }
        let pending = Pending {
            segment: number,
            chars: candidate.chars,
            sent: candidate.sent,
            refs: candidate.refs(),
            files: candidate.files,
            subject_at: candidate.subject_at,
        };
        if let Some(last) = waiting.last_mut() {
            last.segments.push(pending);
        }
    }
    let planned = plan::plan(&waiting, options);
    let mut candidates: Vec<Option<Candidate>> = candidates.into_iter().map(Some).collect();
    let mut take = |number: usize| candidates.get_mut(number).and_then(Option::take);
    let groups: Vec<GroupPlan> = planned
        .groups
        .into_iter()
        .map(|group| {
            let segments: Vec<Candidate> = group.segments.iter().filter_map(|&number| take(number)).collect();
            let group_fp = fingerprint::group_fp(segments.iter().map(|segment| &segment.content_fp));
            GroupPlan {
                id: fingerprint::group_id(&group_fp),
                group_fp,
                place: segments.first().map(|segment| segment.place.clone()).unwrap_or_default(),
                segments,
                chars: group.chars,
                sent: group.sent,
                plan: group,
            }
        })
        .collect();
    let oversized = planned.oversized.iter().filter_map(|&(_, number)| take(number)).collect();
    // Of equal ids the first.
    let places = groups.iter().enumerate().rev().map(|(place, group)| (group.id.clone(), place)).collect();
    Agenda { groups, oversized, waiting: lively, put_off, retry_at, places }
}

impl GroupPlan {
    /// The group as a document shows it.
    fn text<'a>(&'a self, segments: &'a [Vec<Opened<'a>>]) -> GroupText<'a> {
        let text = |(segment, messages): (&'a Candidate, &'a Vec<Opened<'a>>)| SegmentText {
            continuity: segment.continuity.as_str(),
            messages: messages.iter().map(Opened::sent).collect(),
        };
        GroupText {
            group: &self.id,
            platform: &self.place.platform,
            segments: self.segments.iter().zip(segments).map(text).collect(),
        }
    }
}

impl Agenda {
    /// The batches of the next round: places among the groups.
    #[must_use]
    pub fn round(&self, options: &Options) -> Vec<Vec<usize>> {
        let limit = usize::try_from(options.max_groups_per_round).unwrap_or(usize::MAX);
        self.batches(limit, options)
    }

    /// The batches that hold the groups at these places, as this round and the ones after it make them.
    #[must_use]
    pub fn batches_with(&self, wanted: &Range<usize>, options: &Options) -> Vec<Vec<usize>> {
        let size = usize::try_from(options.max_groups_per_round).unwrap_or(usize::MAX).max(1);
        let mut found: Vec<Vec<usize>> = Vec::new();
        for (round, groups) in self.groups.chunks(size).enumerate().take(wanted.end.div_ceil(size)) {
            let groups: Vec<plan::Group> = groups.iter().map(|group| group.plan.clone()).collect();
            let placed = |batch: Vec<usize>| batch.into_iter().map(|place| round * size + place).collect();
            found.extend(plan::batches(&groups, options).into_iter().map(placed));
        }
        found.retain(|batch| batch.iter().any(|place| wanted.contains(place)));
        found
    }

    /// The batches of the first `limit` groups.
    #[must_use]
    pub fn batches(&self, limit: usize, options: &Options) -> Vec<Vec<usize>> {
        let groups: Vec<plan::Group> =
            self.groups.iter().take(limit).map(|group| group.plan.clone()).collect();
        plan::batches(&groups, options)
    }

    /// Where the group with that id stands.
    pub fn place(&self, id: &str) -> Result<usize> {
        self.places
            .get(id)
            .copied()
            .ok_or_else(|| Error::NotFound(format!("no pending group has the id {id}")))
    }

    /// The group with that id.
    pub fn group(&self, id: &str) -> Result<&GroupPlan> {
        Ok(&self.groups[self.place(id)?])
    }
}

/// Where messages are read: the store, memory, or both.
#[derive(Clone, Copy, Default)]
pub struct Shelf<'a> {
    /// The store.
    pub conn: Option<&'a Connection>,
    /// What is only in memory.
    pub fresh: Option<&'a Intake>,
}

/// A message's line with what is known of its attachments.
struct Held {
    carried: bool,
    raw: Vec<u8>,
    facts: Option<Vec<FileFacts>>,
    merged: Option<String>,
}

impl Shelf<'_> {
    fn held(&self, member: &Member) -> Result<Held> {
        match (member, self.conn, self.fresh) {
            (Member::Stored(number), Some(conn), _) => {
                let line = line(conn, *number)?;
                Ok(Held { carried: false, raw: line.raw, facts: None, merged: line.merged })
            }
            (Member::Fresh(key), _, Some(fresh)) => {
                let message = &fresh.messages.get(key).ok_or_else(gone)?.message;
                let (raw, facts) = (message.raw.to_vec(), Some(message.facts.clone()));
                Ok(Held { carried: false, raw, facts, merged: None })
            }
            _ => Err(gone()),
        }
    }

    /// The store's rows of a group's messages, as far as they are stored.
    fn rows(&self, group: &GroupPlan) -> Result<Vec<i64>> {
        let number = |member: &Member| match member {
            Member::Stored(number) => Some(*number),
            Member::Fresh(key) => self.fresh?.messages.get(key)?.message.number,
        };
        let mut rows = Vec::new();
        for segment in &group.segments {
            rows.extend(segment.members(self.conn)?.own.iter().filter_map(number));
        }
        Ok(rows)
    }

    /// Tells of a group what a round's plan needs.
    pub fn brief(&self, group: &GroupPlan) -> Result<GroupBrief> {
        Ok(GroupBrief {
            id: group.id.clone(),
            conversation: self.conversation(&group.place)?,
            segments: group.segments.len(),
            messages: group.sent,
            chars: group.chars,
        })
    }

    /// Shows a group.
    pub fn view(&self, group: &GroupPlan) -> Result<GroupView> {
        let segments = group.segments.iter().map(|segment| self.segment_view(segment));
        Ok(GroupView {
            id: group.id.clone(),
            fingerprint: fingerprint::hex(&group.group_fp),
            conversation: self.conversation(&group.place)?,
            segments: segments.collect::<Result<_>>()?,
            messages: group.sent,
            chars: group.chars,
        })
    }

    /// Shows a segment.
    pub fn segment_view(&self, segment: &Candidate) -> Result<SegmentView> {
        let members = segment.members(self.conn)?;
        Ok(SegmentView {
            continuity: segment.continuity.as_str(),
            fingerprint: fingerprint::hex(&segment.content_fp),
            chars: segment.chars,
            messages: self.keys(&members.own)?,
            carried: self.keys(&members.carried)?,
        })
    }

    /// Keys of the messages among these that are sent.
    fn keys(&self, members: &[Member]) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        for member in members {
            let (key, kind) = match (member, self.conn, self.fresh) {
                (Member::Stored(number), Some(conn), _) => slim(conn, *number)?,
                (Member::Fresh(key), _, Some(fresh)) => {
                    (key.to_string(), fresh.messages.get(key).ok_or_else(gone)?.message.kind)
                }
                _ => return Err(gone()),
            };
            if kind == Kind::Message {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Names a conversation for a person.
    pub fn conversation(&self, place: &Place) -> Result<Value> {
        let told = self.fresh.and_then(|fresh| fresh.names.get(place));
        let told = told.map(|naming| (naming.name.clone(), &naming.told));
        let stored = match self.conn {
            Some(conn) => crate::store::status::conversation_name(conn, place)?,
            None => None,
        };
        let name = match (told, stored) {
            (Some((name, told)), Some((_, stored))) if *told > stored => name,
            (_, Some((name, _))) | (Some((name, _)), None) => name,
            (None, None) => None,
        };
        Ok(json!({
            "platform": place.platform, "account_id": place.account_id, "id": place.conversation_id, "name": name,
        }))
    }

    fn oversized(&self, segment: &Candidate, limit: u64) -> Result<Value> {
        Ok(json!({
            "conversation": self.conversation(&segment.place)?,
            "chars": segment.chars + crate::budget::CONVERSATION,
            "limit": limit,
            "messages": segment.sent,
            "first_message": self.keys(&segment.members(self.conn)?.own)?.first(),
            "first_sent_at": document::seconds(segment.subject_at),
        }))
    }

    /// Shows all oversized segments of an agenda.
    pub fn all_oversized(&self, agenda: &Agenda, options: &Options) -> Result<Vec<Value>> {
        agenda.oversized.iter().map(|segment| self.oversized(segment, options.group_limit())).collect()
    }

    /// Builds the document of a batch of groups.
    pub fn document(&self, groups: &[&GroupPlan], options: &Options) -> Result<Batch> {
        let start_at = options.view().start_at;
        let lines = groups.iter().map(|group| self.lines(group)).collect::<Result<Vec<_>>>()?;
        let opened = lines.iter().map(|lines| Opened::all(lines, start_at)).collect::<Result<Vec<_>>>()?;
        let texts: Vec<GroupText<'_>> =
            groups.iter().zip(&opened).map(|(group, opened)| group.text(opened)).collect();
        let related = self.related(groups, &Zone::named(&options.timezone)?)?;
        document::document(&texts, &related, &options.timezone, options.max_related_chars)
    }

    /// The lines of a group, segment by segment, the carried ones first.
    fn lines(&self, group: &GroupPlan) -> Result<Vec<Vec<Held>>> {
        let segment = |segment: &Candidate| {
            let members = segment.members(self.conn)?;
            let carried =
                members.carried.iter().map(|member| Ok(Held { carried: true, ..self.held(member)? }));
            carried.chain(members.own.iter().map(|member| self.held(member))).collect()
        };
        group.segments.iter().map(segment).collect()
    }

    /// Tasks that rest on messages of these groups, the most recently updated first.
    fn related(&self, groups: &[&GroupPlan], zone: &Zone) -> Result<Vec<Related>> {
        let Some(conn) = self.conn else { return Ok(Vec::new()) };
        let rows: Vec<Vec<i64>> = groups.iter().map(|group| self.rows(group)).collect::<Result<_>>()?;
        crate::store::tasks::related(conn, &rows, zone)
    }
}

fn gone() -> Error {
    Error::NotFound("a planned message is gone".to_owned())
}

/// A line read, with its marks.
struct Opened<'a> {
    event: Event<'a>,
    facts: Vec<FileFacts>,
    history: bool,
    carried: bool,
}

impl<'a> Opened<'a> {
    /// The messages of a group's lines that are sent.
    fn all(segments: &'a [Vec<Held>], start_at: i64) -> Result<Vec<Vec<Self>>> {
        let sent = |line: &Result<Self>| line.as_ref().map_or(true, |line| line.event.kind == Kind::Message);
        let segment =
            |lines: &'a Vec<Held>| lines.iter().map(|held| Self::read(held, start_at)).filter(sent).collect();
        segments.iter().map(segment).collect()
    }

    fn read(held: &'a Held, start_at: i64) -> Result<Self> {
        let event = stored_event(&held.raw)?;
        let facts = match &held.facts {
            Some(facts) => facts.clone(),
            None => stored_facts(&event, held.merged.as_deref())?,
        };
        let history = held.carried || event.sent_at < start_at;
        Ok(Self { event, facts, history, carried: held.carried })
    }

    fn sent(&self) -> Sent<'_> {
        Sent { event: &self.event, facts: &self.facts, history: self.history, carried: self.carried }
    }
}

/// Plans lines without any store: what `plan_events` returns.
pub fn plan_lines<'l>(lines: impl Iterator<Item = &'l [u8]>, options: &Options) -> Result<Value> {
    options.check()?;
    Zone::named(&options.timezone)?;
    let mut intake = Intake::default();
    for (number, line) in (1..).zip(lines) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if !line.trim_ascii().is_empty() {
            let spot = Spot::in_file("", number, 0);
            intake.line(&Nothing, line, spot)?;
        }
    }
    let candidates = crate::store::ledger::pending(None, Some(&intake), options, &[0; 32])?;
    let shelf = Shelf { conn: None, fresh: Some(&intake) };
    let segments = candidates.iter().map(|candidate| {
        let mut view = json!(shelf.segment_view(candidate)?);
        view["conversation"] = shelf.conversation(&candidate.place)?;
        view["oversized"] =
            json!(!alone_fits(candidate.chars, candidate.refs(), candidate.files, options.group_limit()));
        Ok(view)
    });
    let segments: Vec<Value> = segments.collect::<Result<_>>()?;
    let agenda = agenda(candidates, options);
    let batches = agenda.batches(usize::MAX, options);
    let name = |place: &usize| agenda.groups[*place].id.clone();
    let batches: Vec<Vec<String>> = batches.iter().map(|batch| batch.iter().map(name).collect()).collect();
    let groups = agenda.groups.iter().map(|group| shelf.view(group)).collect::<Result<Vec<_>>>()?;
    let quarantined: Vec<Value> = intake
        .refused
        .iter()
        .map(|refused| {
            json!({
                "line": refused.spot.line,
                "reason": refused.reason.as_str(),
                "explanation": refused.explanation,
                "raw": refused.raw.as_deref().map(String::from_utf8_lossy),
            })
        })
        .collect();
    Ok(json!({
        "counts": intake.counts,
        "messages": intake.messages.list.len(),
        "segments": segments,
        "groups": groups,
        "batches": batches,
        "oversized": shelf.all_oversized(&agenda, options)?,
        "quarantined": quarantined,
    }))
}
