//! One round's hold on the store: lock, ingest, plan, commit, export, in the order in which its owner
//! calls them. The model is called between them, never inside one.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agenda::{Agenda, GroupBrief, GroupPlan, GroupView, Shelf, agenda};
use crate::document::{Batch, seconds};
use crate::error::{Error, Result};
use crate::export::{self, Exported};
use crate::fingerprint;
use crate::lock::RoundLock;
use crate::plan::Options;
use crate::store::commit::{self, Accepted, CommitSettings, Committed, GroupCommit, GroupRef, GroupSegment};
use crate::store::intake::{self, Ingested, Input, Retried, Watch};
use crate::store::ledger::{self, Candidate, Member};
use crate::store::messages::{find_conversation, present};
use crate::store::quarantine;
use crate::store::{Store, rounds, status};
use crate::zone::Zone;

/// What decides, beside the content, whether a segment is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Version of the protocol text.
    pub protocol: i64,
    /// The rules' file.
    pub rules_file: String,
    /// SHA-256 of the rules, hexadecimal.
    pub rules_sha256: String,
    /// The endpoint.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// Whether the model sees pictures.
    pub vision: bool,
}

impl Settings {
    /// The fingerprint over everything that makes a segment's result another one. Budgets and limits
    /// are not in it.
    #[must_use]
    pub fn fingerprint(&self, options: &Options) -> [u8; 32] {
        fingerprint::settings_fp(&json!({
            "protocol": self.protocol,
            "rules_sha256": self.rules_sha256,
            "base_url": self.base_url,
            "model": self.model,
            "vision": self.vision,
            "timezone": options.timezone,
            "grouping": options.grouping_parameters(),
        }))
    }
}

/// What a plan holds for the next round.
#[derive(Clone, Debug, Serialize)]
pub struct RoundPlan {
    /// The round's groups, in order.
    pub groups: Vec<GroupBrief>,
    /// Ids of the groups of each batch.
    pub batches: Vec<Vec<String>>,
    /// Groups that are pending, those of this round included.
    pub pending: usize,
    /// Segments too long for any group.
    pub oversized: Vec<Value>,
    /// Segments that are pending and still talked in; in no group.
    pub waiting: usize,
    /// Segments that failed and are tried again later; in no group.
    pub put_off: usize,
    /// When the first of these is tried again, Unix seconds.
    pub retry_at: Option<f64>,
}

/// A writer of rounds. Only one exists at a time for a store.
pub struct Round {
    store: Store,
    _lock: RoundLock,
    planned: Option<Planned>,
    number: i64,
    /// When this round began, as it was noted.
    began: Option<i64>,
}

struct Planned {
    options: Options,
    settings: Settings,
    settings_fp: [u8; 32],
    agenda: Agenda,
    /// What was planned of the messages that are carried over a silence, by row.
    carried: HashMap<i64, [u8; 32]>,
}

impl Round {
    /// Takes the lock and opens the store; a missing one is built and in its place once input was read, or
    /// anything but a round's beginning was written.
    ///
    /// `holder` is what others are told of who holds it; `now` in milliseconds.
    pub fn open(state: &Path, holder: &str, now: i64) -> Result<Self> {
        if let Some(folder) = state.parent() {
            crate::store::private_folder(folder)?;
        }
        let lock = RoundLock::take(state, holder)?;
        let store = Store::open_or_build(state, now)?;
        Ok(Self { store, _lock: lock, planned: None, number: 0, began: None })
    }

    /// Reads all that is new.
    pub fn ingest(&mut self, input: &Input, watch: Watch<'_>) -> Result<Ingested> {
        if self.store.is_overtaken()? {
            self.settle()?;
        }
        self.store.expect_much()?;
        let taken = intake::ingest(&mut self.store, input, watch);
        if self.settle()? { taken } else { taken.and_then(|_| intake::ingest(&mut self.store, input, watch)) }
    }

    /// Puts a store that was built into its place; false when another one is there, and the round noted in it.
    fn settle(&mut self) -> Result<bool> {
        if self.store.publish()? {
            return Ok(true);
        }
        if let Some(began) = self.began {
            self.begin(began)?;
        }
        Ok(false)
    }

    /// Publishes what waits in the outbox.
    pub fn export(&mut self, folder: &Path, progress: impl FnMut(Exported)) -> Result<Exported> {
        self.store.expect_little()?;
        let path = self.store.path().to_owned();
        export::export(self.store.conn_mut(), folder, progress).map_err(|error| error.at(&path))
    }

    /// Segments what changed and plans what is pending.
    pub fn plan(&mut self, options: Options, settings: Settings) -> Result<RoundPlan> {
        options.check()?;
        Zone::named(&options.timezone)?;
        let settings_fp = settings.fingerprint(&options);
        // What has changed since it is known no more.
        self.planned = None;
        self.settle()?;
        // In one: pages may come at any moment, and a plan is of segments that are stored.
        let (agenda, carried) = self.store.write(|transaction| {
            ledger::refresh(transaction, &options, &settings_fp)?;
            let candidates = ledger::pending(Some(transaction), None, &options, &settings_fp)?;
            let agenda = agenda(candidates, &options);
            let carried = carried(transaction, &agenda, &options)?;
            Ok((agenda, carried))
        })?;
        let snapshot = self.store.conn().unchecked_transaction()?;
        let shelf = Shelf { conn: Some(&snapshot), fresh: None };
        let batches = agenda.round(&options);
        let places = || batches.iter().flatten();
        let plan = RoundPlan {
            groups: places().map(|&place| shelf.brief(&agenda.groups[place])).collect::<Result<_>>()?,
            batches: batches
                .iter()
                .map(|batch| batch.iter().map(|&place| agenda.groups[place].id.clone()).collect())
                .collect(),
            pending: agenda.groups.len(),
            oversized: shelf.all_oversized(&agenda, &options)?,
            waiting: agenda.waiting,
            put_off: agenda.put_off,
            retry_at: agenda.retry_at.map(seconds),
        };
        snapshot.finish()?;
        self.store.expect_little()?;
        self.planned = Some(Planned { options, settings, settings_fp, agenda, carried });
        Ok(plan)
    }

    /// Shows a group of the plan with the keys of its messages.
    pub fn group(&self, id: &str) -> Result<GroupView> {
        let group = self.planned()?.agenda.group(id)?;
        Shelf { conn: Some(self.store.conn()), fresh: None }.view(group)
    }

    /// Builds the document of a batch as things stand now.
    pub fn document(&self, groups: &[String]) -> Result<Batch> {
        let Planned { options, agenda, .. } = self.planned()?;
        let groups = groups.iter().map(|id| agenda.group(id)).collect::<Result<Vec<_>>>()?;
        let snapshot = self.store.conn().unchecked_transaction()?;
        Shelf { conn: Some(&snapshot), fresh: None }.document(&groups, options)
    }

    /// Commits what a session accepted for its groups, in one transaction; what became of each, in order.
    pub fn commit(
        &mut self,
        groups: Vec<(String, Accepted)>,
        usage: &Value,
        now: i64,
    ) -> Result<Vec<Result<Committed>>> {
        let planned = self.planned()?;
        let commit = |(group, outcome): (String, Accepted)| {
            Ok(GroupCommit {
                group: group_ref(self.store.conn(), planned.agenda.group(&group)?, planned)?,
                outcome,
                settings: planned.commit_settings(),
                usage: usage.clone(),
                now_ms: now,
                round: self.number,
                session: BTreeMap::new(),
                start_at: planned.options.view().start_at,
            })
        };
        let mut commits = groups.into_iter().map(commit).collect::<Result<Vec<_>>>()?;
        let path = self.store.path().to_owned();
        commit::commit_groups(self.store.conn_mut(), &mut commits).map_err(|error| error.at(&path))
    }

    /// Notes why a group could not be done; it stays pending.
    ///
    /// `counts`: whether that may be its own fault, so that it waits longer before each further try.
    pub fn fail(&mut self, group: &str, reason: &str, now: i64, counts: bool) -> Result<()> {
        let Planned { settings_fp, agenda, .. } = self.planned()?;
        let settings_fp = *settings_fp;
        let segments: Vec<(i64, [u8; 32])> = agenda
            .group(group)?
            .segments
            .iter()
            .filter_map(|segment| Some((segment.number()?, segment.content_fp)))
            .collect();
        self.store
            .write(|transaction| ledger::fail(transaction, &segments, &settings_fp, now, reason, counts))
    }

    /// Notes that a round begins.
    pub fn begin(&mut self, now: i64) -> Result<()> {
        self.number = self.store.write(|transaction| rounds::begin(transaction, now))?;
        self.began = Some(now);
        Ok(())
    }

    /// Notes how the round ended.
    pub fn finish(&mut self, now: i64, report: &Value) -> Result<()> {
        self.settle()?;
        let number = self.number;
        self.store.write(|transaction| rounds::finish(transaction, number, now, report))
    }

    /// Takes a quarantined line in again.
    pub fn retry(&mut self, id: i64, max_line_bytes: u64) -> Result<Retried> {
        self.settle()?;
        intake::retry(&mut self.store, id, max_line_bytes)
    }

    /// Takes a quarantined line off the list.
    pub fn discard(&mut self, id: i64) -> Result<()> {
        self.settle()?;
        quarantine::discard(&mut self.store, id)
    }

    fn planned(&self) -> Result<&Planned> {
        self.planned.as_ref().ok_or_else(|| Error::Invalid("the round has no plan yet".to_owned()))
    }
}

impl Planned {
    fn commit_settings(&self) -> CommitSettings {
        let Self { options, settings, settings_fp, .. } = self;
        CommitSettings {
            settings_fp: *settings_fp,
            model: settings.model.clone(),
            rules_file: settings.rules_file.clone(),
            rules_sha256: settings.rules_sha256.clone(),
            timezone: options.timezone.clone(),
        }
    }
}

/// What became of a group that a session answered, in the words of a round's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Ended {
    /// It is committed.
    Done(Committed),
    /// A task or a message was changed since it was shown; the next round asks again.
    Conflict {
        /// Which.
        reason: String,
    },
    /// The submission rests on what is not there.
    Failed {
        /// On what.
        reason: String,
    },
}

impl From<Result<Committed>> for Ended {
    fn from(ended: Result<Committed>) -> Self {
        match ended {
            Ok(committed) => Self::Done(committed),
            Err(Error::TaskConflict(reason)) => Self::Conflict { reason },
            Err(error) => Self::Failed { reason: error.to_string() },
        }
    }
}

fn group_ref(conn: &Connection, group: &GroupPlan, planned: &Planned) -> Result<GroupRef> {
    let conversation = find_conversation(conn, &group.place)?
        .ok_or_else(|| Error::NotFound(format!("the conversation of group {} is gone", group.id)))?;
    let segments = group.segments.iter().map(|segment| group_segment(conn, segment, planned));
    Ok(GroupRef {
        id: group.id.clone(),
        group_fp: group.group_fp,
        conversation,
        segments: segments.collect::<Result<_>>()?,
    })
}

fn group_segment(conn: &Connection, segment: &Candidate, planned: &Planned) -> Result<GroupSegment> {
    let digest = |number: i64| planned.carried.get(&number).map(|digest| (number, *digest));
    let members = segment.members(Some(conn))?;
    Ok(GroupSegment {
        segment: segment.number().unwrap_or_default(),
        content_fp: segment.content_fp,
        members: stored(&members.own),
        carried: stored(&members.carried).into_iter().filter_map(digest).collect(),
        continuity: segment.continuity.as_str().to_owned(),
    })
}

fn stored(members: &[Member]) -> Vec<i64> {
    let number = |member: &Member| match member {
        Member::Stored(number) => Some(*number),
        Member::Fresh(_) => None,
    };
    members.iter().filter_map(number).collect()
}

/// What the messages that the round's groups carry are known by.
fn carried(conn: &Connection, agenda: &Agenda, options: &Options) -> Result<HashMap<i64, [u8; 32]>> {
    let places = agenda.round(options).into_iter().flatten();
    let mut digests = HashMap::new();
    for segment in places.flat_map(|place| &agenda.groups[place].segments) {
        if segment.carried > 0 {
            for number in stored(&segment.members(Some(conn))?.carried) {
                digests.insert(number, present(conn, number)?.digest);
            }
        }
    }
    Ok(digests)
}

/// What a preview shows.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// What was read, in memory only.
    pub ingest: Ingested,
    /// The next groups.
    pub groups: Vec<GroupView>,
    /// Groups that are pending, beyond those shown too.
    pub pending: usize,
    /// Segments too long for any group.
    pub oversized: Vec<Value>,
    /// The documents of the batches that hold these groups.
    pub documents: Vec<String>,
    /// Characters of all groups in these documents.
    pub document_chars: u64,
}

/// Looks at what a round would send, without writing anything.
///
/// `limit` groups are shown, or the one with the id `group`.
pub fn preview(
    state: &Path,
    input: &Input,
    options: &Options,
    settings: &Settings,
    limit: usize,
    group: Option<&str>,
    watch: Watch<'_>,
) -> Result<Preview> {
    options.check()?;
    Zone::named(&options.timezone)?;
    let store = Store::read(state)?;
    let conn = store.as_ref().map(Store::conn);
    let mut look = || -> Result<Preview> {
        let (ingest, fresh) = intake::look(conn, input, watch)?;
        let candidates = ledger::pending(conn, Some(&fresh), options, &settings.fingerprint(options))?;
        let shelf = Shelf { conn, fresh: Some(&fresh) };
        let agenda = agenda(candidates, options);
        let wanted = match group {
            None => 0..limit.min(agenda.groups.len()),
            Some(id) => agenda.place(id).map(|place| place..place + 1)?,
        };
        // A request is shown whole, with what it holds beyond the wanted groups: that is what is sent.
        let batches = agenda.batches_with(&wanted, options);
        let groups = agenda.groups[wanted].iter().map(|group| shelf.view(group));
        let documents = batches.iter().map(|batch| {
            let groups: Vec<&GroupPlan> = batch.iter().map(|&place| &agenda.groups[place]).collect();
            Ok(shelf.document(&groups, options)?.document)
        });
        Ok(Preview {
            ingest,
            groups: groups.collect::<Result<_>>()?,
            pending: agenda.groups.len(),
            oversized: shelf.all_oversized(&agenda, options)?,
            documents: documents.collect::<Result<_>>()?,
            document_chars: batches.iter().flatten().map(|&place| agenda.groups[place].chars).sum(),
        })
    };
    let preview = look().map_err(|error| error.at(state))?;
    if let Some(store) = &store {
        store.undisturbed()?;
    }
    Ok(preview)
}

/// Counts of what the store holds; zeros where there is none.
pub fn status(state: &Path) -> Result<Value> {
    let store = Store::read(state)?.map_or_else(Store::empty, Ok)?;
    let status = status::status(store.conn()).map_err(|error| error.at(state))?;
    store.undisturbed()?;
    Ok(status)
}
