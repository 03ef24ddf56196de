//! Messages of one conversation → segments: what is proven contiguous, and nothing else.
//!
//! Pure and deterministic: rows in any order give the same segments. Neighbours in time are never taken
//! for neighbours in the sequence unless the grouping says so, and then the segment says it too.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::budget;
use crate::event::{Kind, State};
use crate::fingerprint;

/// How messages are grouped into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// Proven chains of predecessors.
    Sql,
    /// Runs without a long silence, for messages without sequence.
    Time,
    /// Proven chains, cut at long silences.
    Session,
}

/// What decides the segments and their marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The grouping.
    pub grouping: Grouping,
    /// The longest silence inside a segment, in milliseconds.
    pub gap: i64,
    /// Messages shown as history before a piece that follows a silence.
    pub carry: usize,
    /// Characters that a group may have: pieces of a session are cut until they fit.
    pub limit: u64,
    /// Messages sent before are history; milliseconds since 1970.
    pub start_at: i64,
}

/// What segmenting needs of a message: no text.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The message's key.
    pub key: &'a str,
    /// Milliseconds since 1970.
    pub sent_at: i64,
    /// Whether it carries a proof of position.
    pub sequenced: bool,
    /// Its order in the source's sequence.
    pub index: Option<i64>,
    /// The key of the message just before it there.
    pub predecessor: Option<&'a str>,
    /// Message or system notice.
    pub kind: Kind,
    /// Normal, edited or recalled.
    pub state: State,
    /// Characters as sent, without the mark of history.
    pub cost: u32,
    /// Attachments as sent.
    pub files: u32,
    /// Its part of a fingerprint.
    pub digest: [u8; 32],
}

/// Why the messages of a segment are taken to belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// Every link is proven by the source.
    Proven,
    /// One sent message.
    Single,
    /// Nothing but the clock.
    ByTime,
    /// Proven, and begins after a silence.
    CutAtSilence,
    /// Proven, and begins where the budget forced a cut.
    CutAtBudget,
}

impl Continuity {
    /// The contract's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Single => "single",
            Self::ByTime => "by-time",
            Self::CutAtSilence => "cut-at-silence",
            Self::CutAtBudget => "cut-at-budget",
        }
    }

    /// The one with that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Proven, Self::Single, Self::ByTime, Self::CutAtSilence, Self::CutAtBudget];
        all.into_iter().find(|continuity| continuity.as_str() == word)
    }
}

/// A segment over the rows it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Places of its messages among the rows, in order.
    pub members: Vec<usize>,
    /// Places of the messages shown before them as history.
    pub carried: Vec<usize>,
    /// Why they belong together.
    pub continuity: Continuity,
    /// The fingerprint of what is sent.
    pub content_fp: [u8; 32],
    /// Characters, its own share included.
    pub chars: u64,
    /// Attachments as sent.
    pub files: u64,
    /// Messages sent, without the carried ones.
    pub sent: u64,
    /// When its first subject message was sent; none: it can never be pending.
    pub subject_at: Option<i64>,
    /// When its newest message was sent.
    pub newest_at: i64,
    /// How many of its members are what.
    pub tally: Tally,
}

impl Segment {
    /// Messages that take a number in a document, the carried ones among them.
    #[must_use]
    pub fn refs(&self) -> u64 {
        self.sent + self.carried.len() as u64
    }
}

/// Members of a segment by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// System notices.
    pub system: u64,
    /// Recalled messages.
    pub recalled: u64,
    /// Messages from before the start.
    pub history: u64,
    /// All others.
    pub live: u64,
}

/// Segments of a conversation in order, and how many predecessors are claimed more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// In the order of the conversation.
    pub segments: Vec<Segment>,
    /// Predecessors that more than one message claims.
    pub forks: u64,
}

/// A run of rows on its way to become a segment.
struct Run {
    members: Vec<usize>,
    carried: Vec<usize>,
    continuity: Continuity,
}

/// Segments of one conversation.
#[must_use]
pub fn segment(rows: &[Row<'_>], view: &View) -> Segments {
    let (chains, forks) = chains(rows);
    let runs = match view.grouping {
        Grouping::Sql => chains.into_iter().map(|members| Run::whole(members, Continuity::Proven)).collect(),
        Grouping::Time => runs_by_time(rows, view.gap),
        Grouping::Session => chains.into_iter().flat_map(|chain| pieces(rows, chain, view)).collect(),
    };
    let mut segments: Vec<Segment> = runs.into_iter().map(|run| finish(rows, run, view)).collect();
    segments.sort_by_key(|segment| first_of(rows, segment));
    Segments { segments, forks }
}

/// The order of segments in a conversation: by their first message.
fn first_of<'a>(rows: &[Row<'a>], segment: &Segment) -> (i64, Option<i64>, &'a str) {
    segment.members.first().map_or((0, None, ""), |&first| order_of(&rows[first]))
}

fn order_of<'a>(row: &Row<'a>) -> (i64, Option<i64>, &'a str) {
    (row.sent_at, row.index, row.key)
}

/// Maximal chains in which each message is the only one that claims the one before it.
fn chains(rows: &[Row<'_>]) -> (Vec<Vec<usize>>, u64) {
    let places: HashMap<&str, usize> = rows.iter().enumerate().map(|(at, row)| (row.key, at)).collect();
    let mut claims: HashMap<&str, (usize, u32)> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(predecessor) = row.predecessor.filter(|_| row.sequenced) {
            claims.entry(predecessor).or_insert((at, 0)).1 += 1;
        }
    }
    let forks = claims.values().filter(|(_, count)| *count > 1).count() as u64;
    let mut follower: Vec<Option<usize>> = vec![None; rows.len()];
    let mut follows = vec![false; rows.len()];
    for (predecessor, (claimant, count)) in claims {
        if let Some(&before) = places.get(predecessor)
            && count == 1
            && rows[before].sequenced
        {
            follower[before] = Some(claimant);
            follows[claimant] = true;
        }
    }
    let mut reached = vec![false; rows.len()];
    let mut chains = Vec::new();
    for head in (0..rows.len()).filter(|&at| !follows[at]) {
        let mut chain = vec![head];
        reached[head] = true;
        let mut at = head;
        while let Some(next) = follower[at] {
            chain.push(next);
            reached[next] = true;
            at = next;
        }
        chains.push(chain);
    }
    // What no head reaches lies on a cycle, and a cycle proves nothing.
    chains.extend((0..rows.len()).filter(|&at| !reached[at]).map(|at| vec![at]));
    (chains, forks)
}

fn runs_by_time(rows: &[Row<'_>], gap: i64) -> Vec<Run> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&at| order_of(&rows[at]));
    let runs = order.chunk_by(|&one, &next| rows[next].sent_at - rows[one].sent_at <= gap);
    runs.map(|members| Run::whole(members.to_vec(), Continuity::ByTime)).collect()
}

/// A chain cut at silences, and where a piece is still too long, at its longest one.
fn pieces(rows: &[Row<'_>], chain: Vec<usize>, view: &View) -> Vec<Run> {
    let silence = |one: usize, next: usize| rows[next].sent_at - rows[one].sent_at;
    let cuts: Vec<usize> =
        (1..chain.len()).filter(|&at| silence(chain[at - 1], chain[at]) > view.gap).collect();
    if cuts.is_empty() && fits(rows, &chain, &[], view) {
        return vec![Run::whole(chain, Continuity::Proven)];
    }
    let mut runs = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([chain.len()]) {
        let piece = &chain[start..end];
        let continuity = if start == 0 { Continuity::Proven } else { Continuity::CutAtSilence };
        if fits(rows, piece, &[], view) {
            let carried = carried(rows, &chain[..start], piece, view);
            runs.push(Run { members: piece.to_vec(), carried, continuity });
        } else {
            cut_to_fit(rows, piece, continuity, view, &mut runs);
        }
        start = end;
    }
    runs
}

/// The last messages before a cut, as many as fit.
fn carried(rows: &[Row<'_>], before: &[usize], piece: &[usize], view: &View) -> Vec<usize> {
    let sent = before.iter().rev().copied().filter(|&at| rows[at].kind == Kind::Message);
    let mut carried: Vec<usize> = sent.take(view.carry).collect();
    carried.reverse();
    while !carried.is_empty() && !fits(rows, piece, &carried, view) {
        carried.remove(0);
    }
    carried
}

fn cut_to_fit(rows: &[Row<'_>], piece: &[usize], continuity: Continuity, view: &View, runs: &mut Vec<Run>) {
    let sums = Sums::new(rows, piece, view);
    let cuts = Cuts::new(rows, piece);
    // Pieces still to be looked at, the next one last; each with the place of its longest silence.
    let mut waiting = vec![(0, piece.len(), cuts.first, continuity)];
    while let Some((begin, end, cut, continuity)) = waiting.pop() {
        if end - begin < 2 || sums.fit(begin, end, view.limit) {
            runs.push(Run::whole(piece[begin..end].to_vec(), continuity));
            continue;
        }
        waiting.push((cut, end, cuts.after[cut], Continuity::CutAtBudget));
        waiting.push((begin, cut, cuts.before[cut], continuity));
    }
}

/// Where a piece is cut first, and where what lies before and after each cut is cut next.
///
/// A cut at a place stands before the message there; 0 is no cut. Made in one pass: looking for the longest
/// silence of each piece anew takes the square of their number when silences are alike.
struct Cuts {
    first: usize,
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Cuts {
    fn new(rows: &[Row<'_>], piece: &[usize]) -> Self {
        let silence = |at: usize| rows[piece[at]].sent_at - rows[piece[at - 1]].sent_at;
        let mut before = vec![0];
        let mut after = vec![0; piece.len()];
        // Cuts with a longer silence than all that follow so far, each the next one of the one before it.
        let mut open: Vec<usize> = Vec::new();
        for at in 1..piece.len() {
            let mut shorter = 0;
            // Of equal silences the last comes first, as the contract wants.
            while let Some(last) = open.pop_if(|last| silence(*last) <= silence(at)) {
                shorter = last;
            }
            before.push(shorter);
            if let Some(&longer) = open.last() {
                after[longer] = at;
            }
            open.push(at);
        }
        Self { first: open.first().copied().unwrap_or(0), before, after }
    }
}

/// Sums over the beginnings of a piece, so that any part of it is measured in one step.
struct Sums(Vec<(u64, u64, u64)>);

impl Sums {
    fn new(rows: &[Row<'_>], piece: &[usize], view: &View) -> Self {
        let mut sums = vec![(0, 0, 0)];
        let (mut chars, mut files, mut sent) = (0, 0, 0);
        for &at in piece {
            if rows[at].kind == Kind::Message {
                chars += u64::from(rows[at].cost + mark(&rows[at], view));
                files += u64::from(rows[at].files);
                sent += 1;
            }
            sums.push((chars, files, sent));
        }
        Self(sums)
    }

    fn fit(&self, begin: usize, end: usize, limit: u64) -> bool {
        let (from, to) = (self.0[begin], self.0[end]);
        alone_fits(budget::SEGMENT + to.0 - from.0, to.2 - from.2, to.1 - from.1, limit)
    }
}

/// Characters that a message costs more where it is history.
fn mark(row: &Row<'_>, view: &View) -> u32 {
    if row.sent_at < view.start_at { budget::HISTORY } else { 0 }
}

fn fits(rows: &[Row<'_>], members: &[usize], carried: &[usize], view: &View) -> bool {
    let (chars, files) = measure(rows, members, carried, view);
    let sent = members.iter().filter(|&&at| rows[at].kind == Kind::Message).count() + carried.len();
    alone_fits(chars, sent as u64, files, view.limit)
}

/// Whether a segment fits a group of its own. `refs`: messages that take a number.
#[must_use]
pub fn alone_fits(chars: u64, refs: u64, files: u64, limit: u64) -> bool {
    let most = budget::MAX_REFS as u64;
    chars + budget::CONVERSATION <= limit && refs <= most && files <= most
}

/// Characters and attachments of a segment.
fn measure(rows: &[Row<'_>], members: &[usize], carried: &[usize], view: &View) -> (u64, u64) {
    let sent = |at: &&usize| rows[**at].kind == Kind::Message;
    let own = members.iter().filter(sent).map(|&at| u64::from(rows[at].cost + mark(&rows[at], view)));
    let lent = carried.iter().map(|&at| u64::from(rows[at].cost + budget::HISTORY));
    let files = members.iter().filter(sent).chain(carried).map(|&at| u64::from(rows[at].files)).sum();
    (budget::SEGMENT + own.sum::<u64>() + lent.sum::<u64>(), files)
}

impl Run {
    fn whole(members: Vec<usize>, continuity: Continuity) -> Self {
        Self { members, carried: Vec::new(), continuity }
    }
}

fn finish(rows: &[Row<'_>], run: Run, view: &View) -> Segment {
    let Run { members, carried, continuity } = run;
    let history = |row: &Row<'_>| row.sent_at < view.start_at;
    let sent: Vec<&Row<'_>> =
        members.iter().map(|&at| &rows[at]).filter(|row| row.kind == Kind::Message).collect();
    let uncut = matches!(continuity, Continuity::Proven | Continuity::ByTime);
    let continuity = if uncut && sent.len() == 1 { Continuity::Single } else { continuity };
    let mut tally = Tally::default();
    for row in members.iter().map(|&at| &rows[at]) {
        let count = match (row.kind, row.state) {
            (Kind::System, _) => &mut tally.system,
            (_, State::Recalled) => &mut tally.recalled,
            _ if history(row) => &mut tally.history,
            _ => &mut tally.live,
        };
        *count += 1;
    }
    let marks = sent.iter().map(|row| (&row.digest, !history(row)));
    let content_fp = fingerprint::content_fp(continuity.as_str(), marks);
    let (chars, files) = measure(rows, &members, &carried, view);
    Segment {
        continuity,
        content_fp,
        chars,
        files,
        sent: sent.len() as u64,
        subject_at: sent.iter().find(|row| !history(row)).map(|row| row.sent_at),
        newest_at: members.iter().map(|&at| rows[at].sent_at).max().unwrap_or_default(),
        tally,
        members,
        carried,
    }
}
