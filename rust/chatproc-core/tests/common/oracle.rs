//! The contract's pipeline without a single shortcut, from deliveries to documents.

use std::collections::{BTreeMap, BTreeSet};

use chatproc_core::plan::{Batching, Options};
use chatproc_core::segment::Grouping;
use serde_json::{Map, Value, json};

use super::world::{DAY, Delivery, FILES, Link};

/// What segmenting may know of a message.
#[derive(Clone, Debug)]
pub struct Note {
    pub key: String,
    pub sent_at: i64,
    pub link: Option<Link>,
    pub system: bool,
    /// Characters without the mark of history.
    pub cost: u64,
}

/// What decides segments.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub grouping: Grouping,
    pub gap: i64,
    pub carry: usize,
    pub limit: u64,
    pub start_at: i64,
}

/// A segment over places among the notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub members: Vec<usize>,
    pub carried: Vec<usize>,
    pub continuity: &'static str,
    pub chars: u64,
}

const HISTORY: u64 = 15;
const SEGMENT: u64 = 64;
const CONVERSATION: u64 = 160;
const DOCUMENT: u64 = 200;

fn claim(note: &Note) -> Option<&str> {
    note.link.as_ref()?.predecessor.as_deref()
}

/// The only claim on a stored message that takes part in the sequence.
fn undisputed(notes: &[Note], at: usize) -> Option<usize> {
    let wanted = claim(&notes[at])?;
    if notes.iter().filter(|note| claim(note) == Some(wanted)).count() > 1 {
        return None;
    }
    notes.iter().position(|note| note.key == wanted && note.link.is_some())
}

/// The message that this one is proven to follow.
fn proven(notes: &[Note], at: usize) -> Option<usize> {
    let before = undisputed(notes, at)?;
    let mut seen = before;
    for _ in notes {
        if seen == at {
            return None;
        }
        match undisputed(notes, seen) {
            Some(earlier) => seen = earlier,
            None => break,
        }
    }
    Some(before)
}

/// How many predecessors are claimed by more than one message.
pub fn forks(notes: &[Note]) -> u64 {
    let claims: Vec<&str> = notes.iter().filter_map(claim).collect();
    let disputed: BTreeSet<&str> = claims
        .iter()
        .copied()
        .filter(|one| claims.iter().filter(|other| *other == one).count() > 1)
        .collect();
    disputed.len() as u64
}

fn order(note: &Note) -> (i64, Option<i64>, &str) {
    (note.sent_at, note.link.as_ref().and_then(|link| link.index), &note.key)
}

/// Characters of a segment, its own share included.
fn measure(notes: &[Note], members: &[usize], carried: &[usize], rule: &Rule) -> u64 {
    let mut chars = SEGMENT;
    for &at in members {
        let note = &notes[at];
        if !note.system {
            chars += note.cost + if note.sent_at < rule.start_at { HISTORY } else { 0 };
        }
    }
    chars + carried.iter().map(|&at| notes[at].cost + HISTORY).sum::<u64>()
}

fn fits(notes: &[Note], members: &[usize], carried: &[usize], rule: &Rule) -> bool {
    measure(notes, members, carried, rule) + CONVERSATION <= rule.limit
}

/// Segments of one conversation, in order.
pub fn segments(notes: &[Note], rule: &Rule) -> Vec<Piece> {
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for start in (0..notes.len()).filter(|&at| proven(notes, at).is_none()) {
        let mut chain = vec![start];
        while let Some(next) = (0..notes.len()).find(|&at| proven(notes, at) == chain.last().copied()) {
            chain.push(next);
        }
        chains.push(chain);
    }
    let mut runs: Vec<(Vec<usize>, Vec<usize>, &'static str)> = match rule.grouping {
        Grouping::Sql => chains.into_iter().map(|chain| (chain, Vec::new(), "proven")).collect(),
        Grouping::Time => by_time(notes, rule),
        Grouping::Session => chains.iter().flat_map(|chain| by_silence(notes, chain, rule)).collect(),
    };
    for (members, _, continuity) in &mut runs {
        let sent = members.iter().filter(|&&at| !notes[at].system).count();
        if sent == 1 && !continuity.starts_with("cut") {
            *continuity = "single";
        }
    }
    runs.sort_by_key(|(members, _, _)| order(&notes[members[0]]));
    runs.into_iter()
        .map(|(members, carried, continuity)| {
            let chars = measure(notes, &members, &carried, rule);
            Piece { members, carried, continuity, chars }
        })
        .collect()
}

fn by_time(notes: &[Note], rule: &Rule) -> Vec<(Vec<usize>, Vec<usize>, &'static str)> {
    let mut all: Vec<usize> = (0..notes.len()).collect();
    all.sort_by_key(|&at| order(&notes[at]));
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for at in all {
        match runs.last_mut() {
            Some(run) if notes[at].sent_at - notes[run[run.len() - 1]].sent_at <= rule.gap => run.push(at),
            _ => runs.push(vec![at]),
        }
    }
    runs.into_iter().map(|run| (run, Vec::new(), "by-time")).collect()
}

fn by_silence(notes: &[Note], chain: &[usize], rule: &Rule) -> Vec<(Vec<usize>, Vec<usize>, &'static str)> {
    let mut pieces: Vec<(usize, usize)> = vec![(0, 1)];
    for at in 1..chain.len() {
        if notes[chain[at]].sent_at - notes[chain[at - 1]].sent_at > rule.gap {
            pieces.push((at, at + 1));
        } else if let Some(last) = pieces.last_mut() {
            last.1 = at + 1;
        }
    }
    let mut runs = Vec::new();
    for (start, end) in pieces {
        let members = &chain[start..end];
        let continuity = if start == 0 { "proven" } else { "cut-at-silence" };
        if !fits(notes, members, &[], rule) {
            split(notes, members, continuity, rule, &mut runs);
            continue;
        }
        let before: Vec<usize> = chain[..start].iter().copied().filter(|&at| !notes[at].system).collect();
        let most = rule.carry.min(before.len());
        let carried = (0..=most).rev().map(|count| &before[before.len() - count..]);
        let carried = carried.into_iter().find(|carried| fits(notes, members, carried, rule)).unwrap();
        runs.push((members.to_vec(), carried.to_vec(), continuity));
    }
    runs
}

fn split(
    notes: &[Note],
    members: &[usize],
    continuity: &'static str,
    rule: &Rule,
    runs: &mut Vec<(Vec<usize>, Vec<usize>, &'static str)>,
) {
    if members.len() == 1 || fits(notes, members, &[], rule) {
        runs.push((members.to_vec(), Vec::new(), continuity));
        return;
    }
    let silence = |at: usize| notes[members[at]].sent_at - notes[members[at - 1]].sent_at;
    let longest = (1..members.len()).map(silence).max().unwrap();
    let cut = (1..members.len()).rev().find(|&at| silence(at) == longest).unwrap();
    split(notes, &members[..cut], continuity, rule, runs);
    split(notes, &members[cut..], "cut-at-budget", rule, runs);
}

/// A message as all its deliveries together tell it.
#[derive(Clone, Debug)]
pub struct Held<'d> {
    pub told: &'d Delivery,
    pub link: Option<Link>,
    pub sizes: Vec<Option<u64>>,
    pub digests: Vec<Option<String>>,
    pub rules: BTreeSet<String>,
}

/// Messages by key.
pub fn held(deliveries: &[Delivery]) -> BTreeMap<&str, Held<'_>> {
    let mut messages = BTreeMap::new();
    for key in deliveries.iter().map(|delivery| delivery.key.as_str()).collect::<BTreeSet<_>>() {
        let all = || deliveries.iter().filter(move |delivery| delivery.key == key);
        let highest = all().map(|delivery| delivery.revision).max().unwrap();
        let same = || all().filter(move |delivery| delivery.revision == highest);
        let newest = |delivery: &&Delivery| (delivery.collected_at, delivery.event_id.clone());
        let told = same().max_by_key(newest).unwrap();
        let linked = all().filter(|delivery| delivery.sequence.is_some());
        let link = linked.max_by_key(|delivery| (delivery.revision, newest(delivery)));
        let link = link.and_then(|delivery| delivery.sequence.clone());
        let files = 0..told.files.len();
        let sizes = files.clone().map(|at| same().find_map(|delivery| delivery.files[at].size)).collect();
        let digests = files.map(|at| same().find_map(|delivery| delivery.files[at].sha256.clone())).collect();
        let rules = same().flat_map(|delivery| delivery.rules.iter().cloned()).collect();
        messages.insert(key, Held { told, link, sizes, digests, rules });
    }
    messages
}

impl Held<'_> {
    fn recalled(&self) -> bool {
        self.told.state == "recalled"
    }

    fn sender(&self) -> Option<&str> {
        self.told.sender_name.as_deref().filter(|name| !name.is_empty())
    }

    fn mentions_me(&self) -> bool {
        let told = self.told;
        told.mentions.as_array().unwrap().iter().any(|mention| {
            mention["all"] == true || (!told.account.is_empty() && mention["id"] == told.account)
        })
    }

    /// The message as it is sent.
    fn shown(
        &self,
        id: &str,
        sender: Option<&str>,
        history: bool,
        reply_to: Option<&str>,
        files: &[String],
    ) -> Value {
        let told = self.told;
        let mut shown = Map::new();
        shown.insert("id".to_owned(), json!(id));
        shown.insert("time".to_owned(), json!(clock(told.sent_at)));
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                shown.insert(key.to_owned(), value);
            }
        };
        put("sender", sender.map(|sender| json!(sender)));
        put("self", (told.role == "self").then_some(json!(true)));
        put("history", history.then_some(json!(true)));
        put("edited", (told.state == "edited").then_some(json!(true)));
        put("recalled", self.recalled().then_some(json!(true)));
        put("mentions_me", self.mentions_me().then_some(json!(true)));
        put("reply_to", reply_to.map(|reply_to| json!(reply_to)));
        put("text", (!self.recalled() && !told.text.is_empty()).then(|| json!(told.text)));
        put("attachments", (!files.is_empty()).then(|| json!(files)));
        Value::Object(shown)
    }

    fn visible(&self) -> usize {
        if self.recalled() { 0 } else { self.told.files.len() }
    }

    fn file(&self, at: usize, reference: &str) -> Value {
        let file = &self.told.files[at];
        let (name, _, kind) = FILES[file.named];
        let mut shown = Map::new();
        shown.insert("ref".to_owned(), json!(reference));
        if let Some(name) = name {
            shown.insert("name".to_owned(), json!(name));
        }
        shown.insert("type".to_owned(), json!(kind));
        if let Some(size) = self.sizes[at] {
            shown.insert("size".to_owned(), json!(size));
        }
        let available = file.path.is_some() && matches!(file.state, None | Some("present"));
        shown.insert("available".to_owned(), json!(available));
        Value::Object(shown)
    }

    /// Characters as sent, without the mark of history.
    pub fn cost(&self) -> u64 {
        let files: Vec<String> = (0..self.visible()).map(|_| "f0000".to_owned()).collect();
        let reply = self.told.reply_to.as_ref().map(|_| "m0000");
        let message = chars(&self.shown("m0000", self.sender(), false, reply, &files)) + 1;
        let files: u64 = (0..self.visible()).map(|at| chars(&self.file(at, "f0000")) + 1).sum();
        let namesake = if self.sender().is_some() { 3 } else { 0 };
        message + files + namesake
    }

    pub fn note(&self) -> Note {
        Note {
            key: self.told.key.clone(),
            sent_at: self.told.sent_at,
            link: self.link.clone(),
            system: self.told.kind == "system",
            cost: self.cost(),
        }
    }
}

fn chars(value: &Value) -> u64 {
    value.to_string().chars().count() as u64
}

/// A time of July 2026 in Shanghai.
fn clock(sent_at: i64) -> String {
    let second = (sent_at - DAY).div_euclid(1000);
    let (day, second) = (second / 86_400 + 1, second % 86_400);
    assert!((1..=31).contains(&day), "tests stay in July");
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("2026-07-{day:02}T{hour:02}:{minute:02}:{:02}+08:00", second % 60)
}

/// A pending segment.
#[derive(Clone, Debug)]
pub struct Segment {
    pub place: [String; 3],
    pub members: Vec<String>,
    pub carried: Vec<String>,
    pub continuity: &'static str,
    pub chars: u64,
    pub sent: u64,
    pub subject_at: i64,
}

/// A group of pending segments.
#[derive(Clone, Debug)]
pub struct Group {
    pub segments: Vec<Segment>,
    pub chars: u64,
}

/// The whole plan of some deliveries.
pub struct Planned {
    pub segments: Vec<Segment>,
    pub oversized: Vec<Segment>,
    pub groups: Vec<Group>,
    pub batches: Vec<Vec<usize>>,
    pub forks: u64,
}

fn limit(options: &Options) -> u64 {
    options.max_conversation_chars.min(options.max_input_chars.saturating_sub(DOCUMENT))
}

#[allow(clippy::cast_possible_truncation)] // small numbers of tests
fn rule(options: &Options) -> Rule {
    Rule {
        grouping: options.grouping,
        gap: (options.gap_minutes * 60_000.0) as i64,
        carry: usize::try_from(options.carry_messages).unwrap(),
        limit: limit(options),
        start_at: start(options),
    }
}

#[allow(clippy::cast_possible_truncation)]
fn start(options: &Options) -> i64 {
    (options.start_at * 1000.0).round() as i64
}

/// Plans deliveries of which none is done.
pub fn plan(messages: &BTreeMap<&str, Held<'_>>, options: &Options) -> Planned {
    plan_where(messages, options, &|_| true)
}

/// Every segment, done or not, as the keys of its messages, system notices among them, and as it is sent.
pub fn all_segments(
    messages: &BTreeMap<&str, Held<'_>>,
    options: &Options,
) -> Vec<(BTreeSet<String>, Segment)> {
    let rule = rule(options);
    let mut places: BTreeMap<[String; 3], Vec<Note>> = BTreeMap::new();
    for held in messages.values() {
        let told = held.told;
        let place = [told.platform.to_owned(), told.account.to_owned(), told.conversation.clone()];
        places.entry(place).or_default().push(held.note());
    }
    let mut all = Vec::new();
    for (place, notes) in &places {
        for piece in segments(notes, &rule) {
            let keys = piece.members.iter().map(|&at| notes[at].key.clone()).collect();
            all.extend(pending(place, notes, &piece, &rule).map(|segment| (keys, segment)));
        }
    }
    all
}

/// Plans those segments of deliveries that are still to be done.
pub fn plan_where(
    messages: &BTreeMap<&str, Held<'_>>,
    options: &Options,
    is_open: &dyn Fn(&Segment) -> bool,
) -> Planned {
    let rule = rule(options);
    let mut places: BTreeMap<[String; 3], Vec<Note>> = BTreeMap::new();
    for held in messages.values() {
        let told = held.told;
        let place = [told.platform.to_owned(), told.account.to_owned(), told.conversation.clone()];
        places.entry(place).or_default().push(held.note());
    }
    let mut planned = Planned {
        segments: Vec::new(),
        oversized: Vec::new(),
        groups: Vec::new(),
        batches: Vec::new(),
        forks: 0,
    };
    let mut queues: Vec<Vec<Group>> = Vec::new();
    for (place, notes) in &places {
        planned.forks += forks(notes);
        let mut queue: Vec<Group> = Vec::new();
        let pieces = segments(notes, &rule);
        let pending = pieces.iter().filter_map(|piece| pending(place, notes, piece, &rule));
        for segment in pending.filter(is_open) {
            planned.segments.push(segment.clone());
            if segment.chars + CONVERSATION > rule.limit {
                planned.oversized.push(segment);
                continue;
            }
            match queue.last_mut() {
                Some(group) if group.takes(&segment, options) => group.take(segment),
                _ => queue.push(Group { chars: CONVERSATION + segment.chars, segments: vec![segment] }),
            }
        }
        queue.reverse();
        queues.push(queue);
    }
    loop {
        let due = |queue: &Vec<Group>| {
            queue.last().map(|group| (group.segments[0].subject_at, group.segments[0].place.clone()))
        };
        let next = (0..queues.len()).filter(|&at| !queues[at].is_empty()).min_by_key(|&at| due(&queues[at]));
        let Some(next) = next else { break };
        planned.groups.extend(queues[next].pop());
    }
    planned.batches = batches(&planned.groups, options);
    planned
}

fn pending(place: &[String; 3], notes: &[Note], piece: &Piece, rule: &Rule) -> Option<Segment> {
    let sent: Vec<&Note> = piece.members.iter().map(|&at| &notes[at]).filter(|note| !note.system).collect();
    let subject_at = sent.iter().find(|note| note.sent_at >= rule.start_at)?.sent_at;
    let keys = |places: &[usize]| places.iter().map(|&at| notes[at].key.clone()).collect();
    Some(Segment {
        place: place.clone(),
        members: sent.iter().map(|note| note.key.clone()).collect(),
        carried: keys(&piece.carried),
        continuity: piece.continuity,
        chars: piece.chars,
        sent: sent.len() as u64,
        subject_at,
    })
}

impl Group {
    fn takes(&self, segment: &Segment, options: &Options) -> bool {
        self.messages() < options.max_messages && self.chars + segment.chars <= limit(options)
    }

    fn take(&mut self, segment: Segment) {
        self.chars += segment.chars;
        self.segments.push(segment);
    }

    /// Messages sent, without the carried ones.
    pub fn messages(&self) -> u64 {
        self.segments.iter().map(|segment| segment.sent).sum()
    }
}

/// Next-fit.
pub fn batches(groups: &[Group], options: &Options) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let open = batches.last_mut().filter(|batch| {
            let sum: u64 = batch.iter().map(|&at| groups[at].chars).sum();
            options.batching == Batching::Auto
                && batch.iter().all(|&at| groups[at].segments[0].place != group.segments[0].place)
                && DOCUMENT + sum + group.chars <= options.max_input_chars
        });
        match open {
            Some(batch) => batch.push(at),
            None => batches.push(vec![at]),
        }
    }
    batches
}

/// A batch's document, without tasks.
pub fn document(messages: &BTreeMap<&str, Held<'_>>, groups: &[&Group], options: &Options) -> String {
    let (mut number, mut files, mut conversations) = (0, Vec::new(), Vec::new());
    for (at, group) in groups.iter().enumerate() {
        let names = names(messages, group);
        let places = places(group, number);
        let mut segments = Vec::new();
        for segment in &group.segments {
            let mut shown = Vec::new();
            for (key, carried) in both(segment) {
                number += 1;
                let held = &messages[key];
                let mut listed = Vec::new();
                for file in 0..held.visible() {
                    let reference = format!("f{}", files.len() + 1);
                    files.push(held.file(file, &reference));
                    listed.push(reference);
                }
                let sender =
                    held.sender().map(|name| names[&(held.told.sender_id.as_deref(), name)].as_str());
                let target = held.told.reply_to.as_deref();
                let target = target.and_then(|key| places.get(key));
                let history = carried || held.told.sent_at < start(options);
                shown.push(held.shown(
                    &format!("m{number}"),
                    sender,
                    history,
                    target.map(String::as_str),
                    &listed,
                ));
            }
            segments.push(json!({"continuity": segment.continuity, "messages": shown}));
        }
        conversations.push(json!({
            "id": format!("c{}", at + 1), "platform": group.segments[0].place[0], "segments": segments,
            "related_tasks": [],
        }));
    }
    let document = json!({"timezone": "Asia/Shanghai", "conversations": conversations, "attachments": files, "tasks": []});
    document.to_string()
}

/// Keys of a segment's messages as sent, with whether each is carried.
fn both(segment: &Segment) -> impl Iterator<Item = (&str, bool)> {
    let carried = segment.carried.iter().map(|key| (key.as_str(), true));
    carried.chain(segment.members.iter().map(|key| (key.as_str(), false)))
}

/// Each message's own place; of one that is only carried, its first copy.
fn places(group: &Group, before: usize) -> BTreeMap<&str, String> {
    let all = || (before + 1..).zip(group.segments.iter().flat_map(both));
    let own = all().filter(|(_, (_, carried))| !carried);
    let mut places: BTreeMap<&str, String> =
        own.map(|(number, (key, _))| (key, format!("m{number}"))).collect();
    for (number, (key, _)) in all() {
        places.entry(key).or_insert(format!("m{number}"));
    }
    places
}

fn names<'m>(
    messages: &'m BTreeMap<&str, Held<'_>>,
    group: &Group,
) -> BTreeMap<(Option<&'m str>, &'m str), String> {
    let mut senders: Vec<(Option<&str>, &str)> = Vec::new();
    for (key, _) in group.segments.iter().flat_map(both) {
        let held = &messages[key];
        if let Some(name) = held.sender()
            && !senders.contains(&(held.told.sender_id.as_deref(), name))
        {
            senders.push((held.told.sender_id.as_deref(), name));
        }
    }
    let mut shown: BTreeMap<_, String> = BTreeMap::new();
    for sender in &senders {
        let free = |name: &String| {
            senders.iter().all(|(_, other)| other != name) && shown.values().all(|other| other != name)
        };
        let own = sender.1.to_owned();
        let name = if shown.values().all(|other| *other != own) {
            own
        } else {
            (2..senders.len() + 2).map(|number| format!("{own}#{number}")).find(free).unwrap()
        };
        shown.insert(*sender, name);
    }
    shown
}
