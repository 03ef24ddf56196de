//! Segments → groups → batches: what is sent together, in which order, within exact budgets.
//!
//! Pure and deterministic. A group is the unit of extraction, retry and commit; a batch is one model
//! session. Next-fit throughout, so that a plan's beginning never depends on its end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use serde::{Deserialize, Serialize};

use crate::budget;
use crate::error::{Error, Result};
use crate::revision::Place;
use crate::segment::{Grouping, View, alone_fits};

/// How groups share a model session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batching {
    /// Groups of different conversations together, while they fit.
    #[default]
    Auto,
    /// One group a session.
    SingleConversation,
}

/// The settings of segmenting and planning: the keys of `[context]`, `[processing]` and `start_at`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// `sql`, `time` or `session`.
    pub grouping: Grouping,
    /// Minutes; the longest silence inside a segment.
    pub gap_minutes: f64,
    /// Messages shown as history before a piece that follows a silence.
    pub carry_messages: u64,
    /// Characters of a group.
    pub max_conversation_chars: u64,
    /// Messages after which a group is closed.
    pub max_messages: u64,
    /// Characters of related tasks in a document.
    pub max_related_chars: u64,
    /// Characters of a batch.
    pub max_input_chars: u64,
    /// Groups of a round.
    pub max_groups_per_round: u64,
    /// Unix seconds; messages sent before are history.
    pub start_at: f64,
    /// How groups share a session.
    pub batching: Batching,
    /// The rules' time zone, an IANA name.
    pub timezone: String,
    /// Milliseconds since 1970; a segment with a message sent later waits until it is quiet.
    pub quiet_before: Option<i64>,
    /// The present, beside `quiet_before`: what is dated as far beyond it as that lies back does not wait.
    pub now: Option<i64>,
    /// Whether, beside `now`, a segment that failed again and again waits longer and longer: [`retry_at`].
    pub back_off: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            grouping: Grouping::Sql,
            gap_minutes: 30.0,
            carry_messages: 5,
            max_conversation_chars: 20_000,
            max_messages: 80,
            max_related_chars: 6_000,
            max_input_chars: 60_000,
            max_groups_per_round: 10,
            start_at: 0.0,
            batching: Batching::Auto,
            timezone: "Asia/Shanghai".to_owned(),
            quiet_before: None,
            now: None,
            back_off: false,
        }
    }
}

impl Options {
    /// Checks what the types do not.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("max_conversation_chars", self.max_conversation_chars),
            ("max_messages", self.max_messages),
            ("max_input_chars", self.max_input_chars),
            ("max_groups_per_round", self.max_groups_per_round),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == 0) {
            return Err(Error::Config(format!("{name} is 0, it must be at least 1")));
        }
        let seconds = [("gap_minutes", self.gap_minutes), ("start_at", self.start_at)];
        match seconds.iter().find(|(_, value)| !(0.0..=1e12).contains(value)) {
            Some((name, value)) => Err(Error::Config(format!("{name} is {value}, it must be at least 0"))),
            None => Ok(()),
        }
    }

    /// Characters that a group may have: never more than a document has room for.
    #[must_use]
    pub fn group_limit(&self) -> u64 {
        self.max_conversation_chars.min(self.max_input_chars.saturating_sub(budget::DOCUMENT))
    }

    /// Whether a segment whose newest message was sent at that time is still talked in.
    #[must_use]
    pub fn is_lively(&self, newest_at: i64) -> bool {
        let Some(quiet_before) = self.quiet_before else { return false };
        let ahead = self.now.map_or(i64::MAX, |now| now.saturating_add(now.saturating_sub(quiet_before)));
        quiet_before < newest_at && newest_at <= ahead
    }

    /// Until when a segment with these failures is put off; none when it is tried now.
    #[must_use]
    pub fn put_off_until(&self, failed: Option<Failed>) -> Option<i64> {
        let now = self.now.filter(|_| self.back_off)?;
        // A stamp of the future is of a clock that was wrong: nothing waits for it.
        let at = retry_at(failed.filter(|failed| failed.at <= now)?);
        (at > now).then_some(at)
    }

    /// What decides the segments.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // `check` bounds both
    pub fn view(&self) -> View {
        View {
            grouping: self.grouping,
            gap: (self.gap_minutes * 60_000.0).round() as i64,
            carry: usize::try_from(self.carry_messages).unwrap_or(usize::MAX),
            limit: self.group_limit(),
            start_at: (self.start_at * 1000.0).round() as i64,
        }
    }

    /// The grouping and its parameters, as they enter the settings' fingerprint.
    #[must_use]
    pub fn grouping_parameters(&self) -> serde_json::Value {
        match self.grouping {
            Grouping::Sql => serde_json::json!({"grouping": "sql"}),
            Grouping::Time => serde_json::json!({"grouping": "time", "gap_minutes": self.gap_minutes}),
            Grouping::Session => serde_json::json!({
                "grouping": "session", "gap_minutes": self.gap_minutes, "carry_messages": self.carry_messages,
            }),
        }
    }
}

/// How often in a row a segment was tried in vain, and when last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Attempts.
    pub attempts: i64,
    /// Milliseconds since 1970.
    pub at: i64,
}

const FIRST_WAIT: i64 = 20 * 60 * 1000;
const LONGEST_WAIT: i64 = 6 * 60 * 60 * 1000;

/// When a segment that failed is worth another try: the first time at once, then after twenty minutes, and
/// twice as long after each further failure, up to six hours.
#[must_use]
pub fn retry_at(failed: Failed) -> i64 {
    let doublings = u32::try_from(failed.attempts - 2);
    let wait = doublings.map_or(0, |doublings| FIRST_WAIT << doublings.min(16)).min(LONGEST_WAIT);
    failed.at.saturating_add(wait)
}

/// What planning needs of a pending segment.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The owner's number of the segment.
    pub segment: usize,
    /// Characters, its own share included.
    pub chars: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages and attachments that take a number in the document, carried ones included.
    pub refs: u64,
    /// Attachments that take a number.
    pub files: u64,
    /// When its first subject message was sent.
    pub subject_at: i64,
}

/// Pending segments of one conversation, in order.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The conversation.
    pub place: Place,
    /// Its pending segments.
    pub segments: Vec<Pending>,
}

/// A unit of extraction, retry and commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Place of its conversation among those planned.
    pub conversation: usize,
    /// The owner's numbers of its segments, in order.
    pub segments: Vec<usize>,
    /// Characters, its own share included.
    pub chars: u64,
    /// Messages sent.
    pub sent: u64,
    refs: u64,
    files: u64,
    subject_at: i64,
}

/// Groups in round order, and the segments that fit none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which rounds take them.
    pub groups: Vec<Group>,
    /// (conversation, segment) of each oversized segment.
    pub oversized: Vec<(usize, usize)>,
}

/// Plans all that is pending.
#[must_use]
pub fn plan(waiting: &[Waiting], options: &Options) -> Plan {
    let mut plan = Plan::default();
    let mut queues = Vec::with_capacity(waiting.len());
    for (conversation, pending) in waiting.iter().enumerate() {
        let groups = groups_of(conversation, &pending.segments, options, &mut plan.oversized);
        queues.push(groups.into_iter().peekable());
    }
    // A conversation's groups in order; between conversations the one whose next group is the oldest.
    let due =
        |group: &Group| Reverse((group.subject_at, &waiting[group.conversation].place, group.conversation));
    let mut next: BinaryHeap<_> = queues.iter_mut().filter_map(|queue| queue.peek().map(due)).collect();
    while let Some(Reverse((_, _, conversation))) = next.pop() {
        let queue = &mut queues[conversation];
        plan.groups.extend(queue.next());
        next.extend(queue.peek().map(due));
    }
    plan
}

fn groups_of(
    conversation: usize,
    segments: &[Pending],
    options: &Options,
    oversized: &mut Vec<(usize, usize)>,
) -> Vec<Group> {
    let limit = options.group_limit();
    let mut groups: Vec<Group> = Vec::new();
    for segment in segments {
        if !alone_fits(segment.chars, segment.refs, segment.files, limit) {
            oversized.push((conversation, segment.segment));
            continue;
        }
        let open = groups.last_mut().filter(|group| group.takes(segment, limit, options.max_messages));
        match open {
            Some(group) => group.take(segment),
            None => groups.push(Group::of(conversation, segment)),
        }
    }
    groups
}

impl Group {
    fn of(conversation: usize, segment: &Pending) -> Self {
        Self {
            conversation,
            segments: vec![segment.segment],
            chars: budget::CONVERSATION + segment.chars,
            sent: segment.sent,
            refs: segment.refs,
            files: segment.files,
            subject_at: segment.subject_at,
        }
    }

    fn takes(&self, segment: &Pending, limit: u64, max_messages: u64) -> bool {
        let refs = budget::MAX_REFS as u64;
        self.sent < max_messages
            && self.chars + segment.chars <= limit
            && self.refs + segment.refs <= refs
            && self.files + segment.files <= refs
    }

    fn take(&mut self, segment: &Pending) {
        self.segments.push(segment.segment);
        self.chars += segment.chars;
        self.sent += segment.sent;
        self.refs += segment.refs;
        self.files += segment.files;
    }
}

/// Groups of a round → batches: lists of places among the groups, in order.
#[must_use]
pub fn batches(groups: &[Group], options: &Options) -> Vec<Vec<usize>> {
    let refs = budget::MAX_REFS as u64;
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let (mut chars, mut messages, mut files) = (0, 0, 0);
    let mut conversations = HashSet::new();
    for (place, group) in groups.iter().enumerate() {
        let open = options.batching == Batching::Auto
            && !conversations.contains(&group.conversation)
            && chars + group.chars <= options.max_input_chars
            && messages + group.refs <= refs
            && files + group.files <= refs;
        if !open || batches.is_empty() {
            batches.push(Vec::new());
            (chars, messages, files) = (budget::DOCUMENT, 0, 0);
            conversations.clear();
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(place);
        }
        chars += group.chars;
        messages += group.refs;
        files += group.files;
        conversations.insert(group.conversation);
    }
    batches
}
