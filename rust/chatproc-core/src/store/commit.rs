//! A group's accepted submission → ledger, task revisions, receipts, superseded tasks: all or nothing.
//!
//! The groups of one session share a transaction, each behind a savepoint of its own. Checks again what the
//! session checked, because nothing wrong may be stored whatever a session says; must never be open while a
//! model is called.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ledger;
use super::messages;
use super::proof;
use super::search;
use super::sources::{self, Citable};
use super::stretch::Changes;
use super::tasks::{self, Author, Stored};
use crate::claim;
use crate::error::{Error, Result};
use crate::event::Kind;
use crate::failpoint;
use crate::fingerprint;
use crate::task::{
    AttachmentEvidence, Basis, CitedUnit, Context, Draft, Processing, Record, Source, Status, merge,
    without_evidence,
};
use crate::timex;
use crate::zone::Zone;

/// A group as it was planned.
#[derive(Clone, Debug)]
pub struct GroupRef {
    /// `g_…`.
    pub id: String,
    /// SHA-256 of its segments' `content_fp`.
    pub group_fp: [u8; 32],
    /// The conversation's number.
    pub conversation: i64,
    /// Its segments in order.
    pub segments: Vec<GroupSegment>,
}

/// A segment as the model was shown it.
#[derive(Clone, Debug)]
pub struct GroupSegment {
    /// Its number when it was planned.
    pub segment: i64,
    /// Its fingerprint then.
    pub content_fp: [u8; 32],
    /// Rows of its messages, in order, system notices among them.
    pub members: Vec<i64>,
    /// Rows of the carried messages, with their part of a fingerprint then.
    pub carried: Vec<(i64, [u8; 32])>,
    /// The contract's word.
    pub continuity: String,
}

/// What a session accepted for one conversation.
#[derive(Clone, Debug, Deserialize)]
pub struct Accepted {
    /// Why there is no task.
    #[serde(default)]
    pub no_task_reason: Option<String>,
    /// The tasks in the model's order.
    #[serde(default)]
    pub tasks: Vec<Draft>,
    /// Every unit that was sent to the model.
    #[serde(default)]
    pub receipts: Vec<Receipt>,
}

/// What of an attachment was sent to the model.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Receipt {
    pub message_key: String,
    pub attachment_id: String,
    pub unit: String,
    pub attachment_sha256: String,
    pub content_sha256: String,
    pub length: i64,
}

/// What the group was processed with.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct CommitSettings {
    pub settings_fp: [u8; 32],
    pub model: String,
    pub rules_file: String,
    pub rules_sha256: String,
    pub timezone: String,
}

/// All that a commit writes.
#[derive(Clone, Debug)]
pub struct GroupCommit {
    /// The group.
    pub group: GroupRef,
    /// What its session accepted.
    pub outcome: Accepted,
    /// What it was processed with.
    pub settings: CommitSettings,
    /// The batch's token usage, as reported.
    pub usage: Value,
    /// The present, milliseconds.
    pub now_ms: i64,
    /// The round's number.
    pub round: i64,
    /// Revisions that earlier groups of the same session made, by task id: no one else's change.
    pub session: BTreeMap<String, i64>,
    /// Milliseconds since 1970; messages sent before are history.
    pub start_at: i64,
}

/// What a commit did to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommittedTask {
    /// The task.
    pub task_id: String,
    /// Its revision now.
    pub revision: i64,
    /// Whether this commit made that revision.
    pub changed: bool,
}

/// What a commit did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Committed {
    /// Its number.
    pub commit: i64,
    /// Each submitted task, in the model's order.
    pub tasks: Vec<CommittedTask>,
    /// Tasks that their sources no longer hold.
    pub superseded: Vec<CommittedTask>,
    /// Tasks of that kind whose status a user set: they stay, with a note.
    pub noted: Vec<CommittedTask>,
}

/// Commits the groups of one session in one transaction.
///
/// A group is refused with [`Error::Evidence`], its submission rests on what is not there, or with
/// [`Error::TaskConflict`], a task or a message was changed since it was shown: it writes nothing and takes
/// no other with it. What breaks the transaction may be one group's fault too: then each is committed by
/// itself, and an error leaves those before it committed.
pub fn commit_groups(conn: &mut Connection, commits: &mut [GroupCommit]) -> Result<Vec<Result<Committed>>> {
    let mut made = BTreeMap::new();
    match commit_together(conn, commits, &mut made) {
        Err(_) if commits.len() > 1 => {
            made.clear();
            let mut ended = Vec::new();
            for commit in commits {
                ended.extend(commit_together(conn, std::slice::from_mut(commit), &mut made)?);
            }
            Ok(ended)
        }
        ended => ended,
    }
}

/// `made`: the revisions that groups of the session made, by task id.
fn commit_together(
    conn: &mut Connection,
    commits: &mut [GroupCommit],
    made: &mut BTreeMap<String, i64>,
) -> Result<Vec<Result<Committed>>> {
    let mut tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut ended = Vec::new();
    for commit in commits {
        commit.session.extend(made.clone());
        let savepoint = tx.savepoint()?;
        match write(&savepoint, commit) {
            Ok(committed) => {
                savepoint.commit()?;
                let tasks = committed.tasks.iter().chain(&committed.superseded).chain(&committed.noted);
                made.extend(tasks.map(|task| (task.task_id.clone(), task.revision)));
                ended.push(Ok(committed));
            }
            Err(refusal @ (Error::Evidence(_) | Error::TaskConflict(_))) => {
                savepoint.finish()?;
                ended.push(Err(refusal));
            }
            Err(error) => return Err(error),
        }
    }
    failpoint::hit("commit.before");
    tx.commit()?;
    failpoint::hit("commit.after");
    Ok(ended)
}

/// Writes all of a group's commit.
fn write(tx: &Connection, commit: &GroupCommit) -> Result<Committed> {
    let zone = Zone::named(&commit.settings.timezone)?;
    let shown = shown(tx, commit)?;
    let number = add_commit(tx, commit)?;
    let writing = Writing { tx, commit, shown, zone: &zone, number };
    writing.check_drafts()?;
    let moved = writing.finish_segments()?;
    writing.add_receipts()?;
    let mut written = BTreeSet::new();
    let tasks = writing.submit_all(&mut written)?;
    let (superseded, noted) = writing.supersede_stale(&mut written)?;
    recount_cited(tx, &written)?;
    writing.prove(&moved)?;
    Ok(Committed { commit: number, tasks, superseded, noted })
}

fn add_commit(tx: &Connection, commit: &GroupCommit) -> Result<i64> {
    let sql =
        "INSERT INTO commits(round, conversation, group_id, settings_fp, at, model, rules_sha256, usage,
                 no_task_reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    tx.prepare_cached(sql)?.execute(params![
        commit.round,
        commit.group.conversation,
        commit.group.id,
        commit.settings.settings_fp,
        commit.now_ms,
        commit.settings.model,
        commit.settings.rules_sha256,
        serde_json::to_string(&commit.usage)?,
        commit.outcome.no_task_reason
    ])?;
    Ok(tx.last_insert_rowid())
}

/// What the model was shown of each segment. Nothing is read where nobody cites it and no message changed.
fn shown(tx: &Connection, commit: &GroupCommit) -> Result<Vec<Shown>> {
    let Accepted { tasks, receipts, .. } = &commit.outcome;
    if tasks.is_empty() && receipts.is_empty() && !Changes::are_there(tx)? {
        return Ok(Vec::new());
    }
    commit.group.segments.iter().map(|segment| Shown::read(tx, commit, segment)).collect()
}

/// Keys of a segment's messages as the model was shown them.
#[derive(Default)]
struct Shown {
    subject: Vec<String>,
    /// Carried messages among them.
    history: Vec<String>,
}

impl Shown {
    /// The messages must still be those that were planned: a connection's page may have edited, recalled or
    /// moved one. Further messages are no change of these, whatever they extend.
    fn read(tx: &Connection, commit: &GroupCommit, segment: &GroupSegment) -> Result<Self> {
        let present = |message: i64| match messages::present(tx, message)? {
            now if now.conversation == commit.group.conversation => Ok(now),
            _ => Err(changed_meanwhile()),
        };
        let mut shown = Self::default();
        for &(message, digest) in &segment.carried {
            let now = present(message)?;
            if now.digest != digest {
                return Err(changed_meanwhile());
            }
            shown.history.extend((now.kind == Kind::Message).then_some(now.key));
        }
        let mut sent = Vec::new();
        for &message in &segment.members {
            let now = present(message)?;
            if now.kind == Kind::Message {
                let is_subject = now.sent_at >= commit.start_at;
                sent.push((now.digest, is_subject));
                let keys = if is_subject { &mut shown.subject } else { &mut shown.history };
                keys.push(now.key);
            }
        }
        let marks = sent.iter().map(|(digest, is_subject)| (digest, *is_subject));
        if fingerprint::content_fp(&segment.continuity, marks) != segment.content_fp {
            return Err(changed_meanwhile());
        }
        Ok(shown)
    }
}

fn changed_meanwhile() -> Error {
    Error::TaskConflict("messages changed while the model read them".to_owned())
}

/// A commit that is being written.
struct Writing<'a> {
    tx: &'a Connection,
    commit: &'a GroupCommit,
    /// For each segment.
    shown: Vec<Shown>,
    zone: &'a Zone,
    number: i64,
}

impl Writing<'_> {
    fn check_drafts(&self) -> Result<()> {
        let mut updated = HashSet::new();
        for (position, draft) in self.commit.outcome.tasks.iter().enumerate() {
            self.check_draft(draft)
                .map_err(|error| Error::Evidence(format!("tasks[{position}]: {error}")))?;
            if draft.task_id.as_ref().is_some_and(|id| !updated.insert(id)) {
                return Err(Error::Evidence(format!("tasks[{position}]: the same task is submitted twice")));
            }
        }
        Ok(())
    }

    fn check_draft(&self, draft: &Draft) -> Result<()> {
        draft.validate(self.zone)?;
        if let Some(key) = draft.sources.iter().find(|key| !self.was_shown(key)) {
            return Err(Error::Evidence(format!("{key} was not shown with this conversation")));
        }
        if !draft.sources.iter().any(|key| self.is_subject(key)) {
            return Err(Error::Evidence("none of its sources is a subject message".to_owned()));
        }
        match draft.evidence.iter().find(|unit| self.receipt(unit).is_none()) {
            Some(unit) => Err(Error::Evidence(format!("{} of {} was not read", unit.unit, unit.message_key))),
            None => Ok(()),
        }
    }

    fn is_subject(&self, key: &String) -> bool {
        self.shown.iter().any(|shown| shown.subject.contains(key))
    }

    fn was_shown(&self, key: &String) -> bool {
        self.is_subject(key) || self.shown.iter().any(|shown| shown.history.contains(key))
    }

    fn receipt(&self, unit: &CitedUnit) -> Option<&Receipt> {
        self.commit.outcome.receipts.iter().find(|receipt| {
            (&receipt.message_key, &receipt.attachment_id, &receipt.unit)
                == (&unit.message_key, &unit.attachment_id, &unit.unit)
        })
    }

    /// Enters the contents into the ledger; gives the commits that finished one of them before. A segment that
    /// has changed since it was planned stays pending.
    fn finish_segments(&self) -> Result<BTreeSet<i64>> {
        let settings = self.commit.settings.settings_fp;
        let sql = "INSERT INTO ledger(content_fp, settings_fp, \"commit\") VALUES (?1, ?2, ?3)
                   ON CONFLICT DO NOTHING";
        let mut enter = self.tx.prepare_cached(sql)?;
        let sql = "UPDATE ledger SET \"commit\" = ?3 WHERE content_fp = ?1 AND settings_fp = ?2";
        let mut take_over = self.tx.prepare_cached(sql)?;
        let sql = "DELETE FROM failures WHERE content_fp = ?1 AND settings_fp = ?2";
        let mut forgive = self.tx.prepare_cached(sql)?;
        let sql =
            "UPDATE segments SET status = 'done', failure = NULL WHERE segment = ?1 AND content_fp = ?2";
        let mut finish = self.tx.prepare_cached(sql)?;
        let mut moved = BTreeSet::new();
        for GroupSegment { segment, content_fp, .. } in &self.commit.group.segments {
            if enter.execute(params![content_fp, settings, self.number])? == 0 {
                moved.extend(ledger::finished_by(self.tx, content_fp, &settings)?);
                take_over.execute(params![content_fp, settings, self.number])?;
            }
            forgive.execute(params![content_fp, settings])?;
            finish.execute(params![segment, content_fp])?;
        }
        Ok(moved)
    }

    /// Stores the proof of this commit, and anew that of those whose contents it took over.
    fn prove(&self, moved: &BTreeSet<i64>) -> Result<()> {
        for &number in moved.iter().chain([&self.number]) {
            let contents = if number == self.number {
                let contents: BTreeSet<[u8; 32]> =
                    self.commit.group.segments.iter().map(|segment| segment.content_fp).collect();
                contents.into_iter().collect()
            } else {
                ledger::contents_of(self.tx, number)?
            };
            let sql = "UPDATE commits SET proof = ?2 WHERE \"commit\" = ?1";
            let proof = proof::commit(self.tx, number, contents)?;
            self.tx.prepare_cached(sql)?.execute(params![number, proof])?;
        }
        Ok(())
    }

    fn add_receipts(&self) -> Result<()> {
        for receipt in &self.commit.outcome.receipts {
            let message = self.citable(&receipt.message_key)?.message;
            self.tx.execute(
                "INSERT OR REPLACE INTO receipts(\"commit\", message, attachment_id, unit, attachment_sha256,
                   content_sha256, length) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    self.number,
                    message,
                    receipt.attachment_id,
                    receipt.unit,
                    receipt.attachment_sha256,
                    receipt.content_sha256,
                    receipt.length
                ],
            )?;
        }
        Ok(())
    }

    /// The message of that key, which the session may cite only if it was shown with this conversation.
    fn citable(&self, key: &String) -> Result<Citable> {
        sources::citable(self.tx, key, self.zone)?
            .filter(|citable| citable.conversation == self.commit.group.conversation && self.was_shown(key))
            .ok_or_else(|| Error::Evidence(format!("{key} is no message of this conversation")))
    }

    // ── tasks ──────────────────────────────────────────────────────────────────────────────────────

    fn submit_all(&self, written: &mut BTreeSet<i64>) -> Result<Vec<CommittedTask>> {
        let mut submitted = Vec::new();
        for (position, draft) in self.commit.outcome.tasks.iter().enumerate() {
            let cited = self.cited(draft)?;
            let (task, changed) = match &draft.task_id {
                None => (self.create(position, draft, &cited)?, true),
                Some(id) => self.update(id, draft, &cited)?,
            };
            self.tx.execute(
                "INSERT INTO submissions(\"commit\", task) VALUES (?1, ?2)",
                params![self.number, task.task],
            )?;
            if changed {
                self.add_sources(task.task, &cited)?;
                search::index(self.tx, task.task, &task.record)?;
                written.insert(task.task);
            }
            submitted.push(CommittedTask { task_id: task.task_id, revision: task.revision, changed });
        }
        Ok(submitted)
    }

    fn cited(&self, draft: &Draft) -> Result<Vec<Citable>> {
        let keys: BTreeSet<&String> = draft.sources.iter().collect();
        keys.into_iter().map(|key| self.citable(key)).collect()
    }

    fn create(&self, position: usize, draft: &Draft, cited: &[Citable]) -> Result<Stored> {
        let mut record = self.record(draft, cited, &[])?;
        claim::settle(&mut record)?;
        let GroupRef { group_fp, conversation, .. } = &self.commit.group;
        let mut id = fingerprint::task_id(group_fp, position, None);
        if tasks::stored(self.tx, &id)?.is_some() {
            id = fingerprint::task_id(group_fp, position, Some(self.number));
        }
        let mut task =
            tasks::add(self.tx, id, record.clone(), *conversation, self.number, self.commit.now_ms)?;
        self.revise(&mut task, record, "created")?;
        Ok(task)
    }

    fn update(&self, id: &str, draft: &Draft, cited: &[Citable]) -> Result<(Stored, bool)> {
        let mut task = tasks::stored(self.tx, id)?
            .ok_or_else(|| Error::Evidence(format!("there is no task {id} to update")))?;
        self.check_seen(&task, draft)?;
        let mut record = merge(&task.record, self.record(draft, cited, &task.record.source_message_keys)?);
        claim::settle(&mut record)?;
        self.tx
            .execute("UPDATE tasks SET last_commit = ?2 WHERE task = ?1", params![task.task, self.number])?;
        let changed = !record.says_the_same_as(&task.record);
        if changed {
            self.revise(&mut task, record, "updated")?;
        }
        Ok((task, changed))
    }

    fn check_seen(&self, task: &Stored, draft: &Draft) -> Result<()> {
        let own = self.commit.session.get(&task.task_id);
        if draft.seen_revision == Some(task.revision) || own == Some(&task.revision) {
            return Ok(());
        }
        Err(Error::TaskConflict(format!(
            "task {} has revision {}, not the one that the model was shown: it is tried again next round",
            task.task_id, task.revision
        )))
    }

    fn revise(&self, task: &mut Stored, record: Record, verb: &str) -> Result<i64> {
        let actor = format!("model:{}", self.commit.settings.model);
        let why = format!("{verb} from group {} in round {}", self.commit.group.id, self.commit.round);
        let author = Author { at: self.commit.now_ms, actor: &actor, why: &why };
        tasks::revise(self.tx, task, record, &author, self.zone)
    }

    /// The draft's record as if the task were new, with the `earlier` sources as they are now.
    fn record(&self, draft: &Draft, cited: &[Citable], earlier: &[String]) -> Result<Record> {
        let mut told: Vec<Source> = cited.iter().map(|citable| citable.source.clone()).collect();
        for key in earlier.iter().filter(|key| !draft.sources.contains(key)) {
            told.extend(sources::citable(self.tx, key, self.zone)?.map(|citable| citable.source));
        }
        let evidence = draft.evidence.iter().map(|unit| self.evidence(unit, cited)).collect::<Result<_>>()?;
        let basis = Basis {
            sources: told,
            evidence,
            owner: sources::owner(self.tx, self.commit.group.conversation)?,
            context: self.context(),
            processing: self.processing()?,
        };
        Record::new(draft, basis, self.zone)
    }

    fn evidence(&self, unit: &CitedUnit, cited: &[Citable]) -> Result<AttachmentEvidence> {
        let source =
            cited.iter().map(|citable| &citable.source).find(|it| it.message_key == unit.message_key);
        let attachment =
            source.and_then(|source| source.attachments.iter().find(|it| it.id == unit.attachment_id));
        let (Some(attachment), Some(receipt)) = (attachment, self.receipt(unit)) else {
            return Err(Error::Evidence(format!(
                "{} has no attachment {:?} that was read",
                unit.message_key, unit.attachment_id
            )));
        };
        Ok(AttachmentEvidence {
            attachment_id: unit.attachment_id.clone(),
            name: attachment.name.clone(),
            sha256: receipt.attachment_sha256.clone(),
            unit: unit.unit.clone(),
            message_key: unit.message_key.clone(),
            path: attachment.path.clone(),
        })
    }

    fn context(&self) -> Context {
        let GroupRef { id, segments, .. } = &self.commit.group;
        let subject: Vec<String> = self.shown.iter().flat_map(|shown| &shown.subject).cloned().collect();
        // A message that is carried over a silence may stand in the group itself, or be carried twice.
        let mut met: HashSet<&String> = subject.iter().collect();
        let carried = self.shown.iter().flat_map(|shown| &shown.history);
        let history = carried.filter(|key| met.insert(key)).cloned().collect();
        Context {
            group_id: id.clone(),
            history,
            continuity: segments.iter().map(|segment| segment.continuity.clone()).collect(),
            subject,
        }
    }

    fn processing(&self) -> Result<Processing> {
        let settings = &self.commit.settings;
        Ok(Processing {
            rules_file: settings.rules_file.clone(),
            rules_sha256: settings.rules_sha256.clone(),
            model: settings.model.clone(),
            settings_fp: fingerprint::hex(&settings.settings_fp),
            content_fp: self
                .commit
                .group
                .segments
                .iter()
                .map(|segment| fingerprint::hex(&segment.content_fp))
                .collect(),
            time: self.zone.rfc3339(self.commit.now_ms)?,
            times_version: Some(timex::VERSION),
            usage: self.commit.usage.clone(),
        })
    }

    fn add_sources(&self, task: i64, cited: &[Citable]) -> Result<()> {
        for Citable { message, conversation, .. } in cited {
            self.tx.execute(
                "INSERT OR IGNORE INTO task_sources(task, message) VALUES (?1, ?2)",
                params![task, message],
            )?;
            self.tx.execute(
                "INSERT OR IGNORE INTO task_conversations(task, conversation) VALUES (?1, ?2)",
                params![task, conversation],
            )?;
        }
        Ok(())
    }

    // ── the stale rule ─────────────────────────────────────────────────────────────────────────────

    /// Supersedes the tasks that all their segments, read again, no longer hold, or notes it where a user set
    /// the status. Only tasks with a source in this group can have become stale through this commit.
    fn supersede_stale(
        &self,
        written: &mut BTreeSet<i64>,
    ) -> Result<(Vec<CommittedTask>, Vec<CommittedTask>)> {
        let (mut superseded, mut noted) = (Vec::new(), Vec::new());
        let why =
            format!("all its sources were read again, last in group {}: none holds it", self.commit.group.id);
        for number in self.candidates()? {
            if !self.is_stale(number)? {
                continue;
            }
            let mut task = tasks::numbered(self.tx, number)?;
            let Some(record) = without_evidence(&task.record) else { continue };
            let author = Author { at: self.commit.now_ms, actor: "program", why: &why };
            tasks::revise(self.tx, &mut task, record, &author, self.zone)?;
            search::index(self.tx, number, &task.record)?;
            written.insert(number);
            let list = if task.record.status == Status::Superseded { &mut superseded } else { &mut noted };
            list.push(CommittedTask { task_id: task.task_id, revision: task.revision, changed: true });
        }
        Ok((superseded, noted))
    }

    fn candidates(&self) -> Result<Vec<i64>> {
        if !ledger::is_any_cited(self.tx)? {
            return Ok(Vec::new());
        }
        let segments: Vec<i64> = self.commit.group.segments.iter().map(|segment| segment.segment).collect();
        let mut query = self.tx.prepare_cached(
            "SELECT task FROM tasks WHERE status <> 'superseded' AND task IN (
               SELECT s.task FROM segments g, json_each(g.members) m JOIN task_sources s ON s.message = m.value
               WHERE g.segment IN (SELECT value FROM json_each(?1)))
             ORDER BY task",
        )?;
        let tasks = query.query_map([serde_json::to_string(&segments)?], |row| row.get(0))?;
        Ok(tasks.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether each segment that holds a source is done under its current fingerprint, one of these
    /// commits is later than the task's last submission, and none of them submitted it.
    fn is_stale(&self, task: i64) -> Result<bool> {
        let mut query = self.tx.prepare_cached(
            "SELECT count(*) = count(l.\"commit\") AND coalesce(max(l.\"commit\"), 0) > t.last_commit
               AND count(u.task) = 0
             FROM tasks t, (SELECT DISTINCT m.segment FROM task_sources s LEFT JOIN members m USING(message)
                            WHERE s.task = ?1) held
             LEFT JOIN segments g ON g.segment = held.segment
             LEFT JOIN ledger l ON l.content_fp = g.content_fp AND l.settings_fp = ?2
             LEFT JOIN submissions u ON u.\"commit\" = l.\"commit\" AND u.task = ?1
             WHERE t.task = ?1",
        )?;
        Ok(query.query_row(params![task, self.commit.settings.settings_fp], |row| row.get(0))?)
    }
}

/// Counts anew what is cited in every segment that holds a source of one of the tasks.
fn recount_cited(tx: &Connection, tasks: &BTreeSet<i64>) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let mut query = tx.prepare_cached(
        "SELECT DISTINCT m.segment FROM task_sources s JOIN members m USING(message)
         WHERE s.task IN (SELECT value FROM json_each(?1))",
    )?;
    let segments = query.query_map([serde_json::to_string(tasks)?], |row| row.get(0))?;
    for segment in segments.collect::<rusqlite::Result<Vec<i64>>>()? {
        ledger::recount_cited(tx, segment)?;
    }
    Ok(())
}
