//! What must be so: deliveries, ledger, tasks and events as the contract tells them, slowly.

use std::collections::{BTreeMap, BTreeSet};

use chatproc_core::plan::Options;
use chatproc_core::store::commit::Committed;
use serde_json::{Value, json};

use super::collector::Line;
use super::common::oracle::{self, Held, Planned, Segment};
use super::common::world::Delivery;

/// What was accepted and refused.
#[derive(Clone, Default)]
pub struct Books {
    pub accepted: Vec<Delivery>,
    events: BTreeMap<String, Vec<u8>>,
    owned: BTreeMap<String, Vec<u8>>,
    refused: BTreeSet<(String, Vec<u8>)>,
    revisions: BTreeMap<(String, u64), Vec<Delivery>>,
}

/// What one says of a message's revision that no other delivery of it may contradict.
fn content(told: &Delivery) -> Value {
    let files: Vec<Value> = told.files.iter().map(|file| json!([file.id, file.named])).collect();
    json!([
        told.kind,
        told.state,
        told.sent_at,
        told.sender_id,
        told.text,
        told.mentions,
        told.reply_to,
        files
    ])
}

impl Books {
    /// Takes a line in that stands at that place.
    pub fn take(&mut self, line: &Line, place: &str) {
        let bytes = line.bytes();
        let Line::Told(told) = line else {
            self.refused.insert((place.to_owned(), bytes));
            return;
        };
        let id = &told.event_id;
        if self.events.get(id) == Some(&bytes) {
            return;
        }
        if self.events.contains_key(id) || self.owned.get(id).is_some_and(|owner| *owner != bytes) {
            self.refused.insert((String::new(), bytes));
            return;
        }
        let same = self.revisions.entry((told.key.clone(), told.revision)).or_default();
        let sizes = |known: &Delivery| {
            known
                .files
                .iter()
                .zip(&told.files)
                .any(|(one, other)| one.size.is_some() && other.size.is_some() && one.size != other.size)
        };
        if same.iter().any(|known| content(known) != content(told) || sizes(known)) {
            self.owned.insert(id.clone(), bytes.clone());
            self.refused.insert((String::new(), bytes));
            return;
        }
        same.push((**told).clone());
        self.events.insert(id.clone(), bytes);
        self.accepted.push((**told).clone());
    }

    /// Deliveries accepted and lines refused.
    pub fn counts(&self) -> (usize, usize) {
        (self.accepted.len(), self.refused.len())
    }
}

/// A task as it must be.
#[derive(Clone, Debug)]
pub struct Task {
    pub revision: i64,
    pub status: String,
    pub priority: String,
    pub status_by_user: bool,
    pub priority_by_user: bool,
    noted: bool,
    sources: BTreeSet<String>,
    last_commit: i64,
}

/// What a draft says, for the truth.
#[derive(Clone, Debug)]
pub struct Said {
    pub status: String,
    pub priority: String,
    pub sources: BTreeSet<String>,
    /// The task that it updates.
    pub task: Option<String>,
    /// The revision of it that the model was shown.
    pub seen: Option<i64>,
}

/// A segment's content as it is known again.
pub type Content = String;

fn content_of(held: &BTreeMap<&str, Held<'_>>, segment: &Segment, options: &Options) -> Content {
    let message = |key: &String| {
        let told = held[key.as_str()].told;
        #[allow(clippy::cast_possible_truncation)] // whole seconds of tests
        let subject = told.sent_at >= (options.start_at * 1000.0) as i64;
        json!([told.key, told.revision, content(told), told.sender_name, subject])
    };
    let messages: Vec<Value> = segment.members.iter().map(message).collect();
    json!([segment.continuity, messages]).to_string()
}

#[derive(Default)]
pub struct Truth {
    pub books: Books,
    pub tasks: BTreeMap<String, Task>,
    /// Status and priority of every revision.
    pub events: BTreeMap<(String, i64), (String, String)>,
    ledger: BTreeMap<(Content, String), i64>,
    submissions: BTreeSet<(i64, String)>,
    pub last_commit: i64,
}

impl Truth {
    /// What is to be done under these settings.
    pub fn plan(&self, options: &Options, settings: &str) -> Planned {
        let held = oracle::held(&self.books.accepted);
        oracle::plan_where(&held, options, &|segment| {
            !self.ledger.contains_key(&(content_of(&held, segment, options), settings.to_owned()))
        })
    }

    /// What a group's segments are, to be remembered while its model thinks.
    pub fn contents(&self, segments: &[Segment], options: &Options) -> Vec<Content> {
        let held = oracle::held(&self.books.accepted);
        segments.iter().map(|segment| content_of(&held, segment, options)).collect()
    }

    /// A commit that the store has made. `sound`: nothing was delivered since the plan, so that what becomes
    /// stale is known beforehand.
    pub fn commit(
        &mut self,
        contents: &[Content],
        options: &Options,
        settings: &str,
        said: &[Said],
        committed: &Committed,
        sound: bool,
    ) {
        assert!(committed.commit > self.last_commit, "commits are counted up");
        self.last_commit = committed.commit;
        let conversation_keys: BTreeSet<String> = self.members(contents, options);
        for content in contents {
            self.ledger.insert((content.clone(), settings.to_owned()), committed.commit);
        }
        assert_eq!(committed.tasks.len(), said.len());
        let mut written = BTreeSet::new();
        for (made, said) in committed.tasks.iter().zip(said) {
            self.submitted(&made.task_id, made.revision, made.changed, said, committed.commit);
            written.insert(made.task_id.clone());
        }
        if sound {
            let stale = self.stale(&conversation_keys, options, settings);
            let told: BTreeSet<String> = committed
                .superseded
                .iter()
                .chain(&committed.noted)
                .map(|task| task.task_id.clone())
                .collect();
            assert_eq!(told, stale, "stale tasks of commit {}", committed.commit);
        }
        for gone in committed.superseded.iter().chain(&committed.noted) {
            let noted = committed.noted.contains(gone);
            let task = self.tasks.get_mut(&gone.task_id).unwrap();
            assert_eq!(noted, task.status_by_user, "a user's status stays, a model's goes: {}", gone.task_id);
            task.noted = noted;
            if !noted {
                "superseded".clone_into(&mut task.status);
            }
            self.revised(&gone.task_id, gone.revision);
        }
    }

    fn submitted(&mut self, id: &str, revision: i64, changed: bool, said: &Said, commit: i64) {
        self.submissions.insert((commit, id.to_owned()));
        let task = self.tasks.entry(id.to_owned()).or_insert_with(|| Task {
            revision: 0,
            status: String::new(),
            priority: String::new(),
            status_by_user: false,
            priority_by_user: false,
            noted: false,
            sources: BTreeSet::new(),
            last_commit: 0,
        });
        task.last_commit = commit;
        if !changed {
            assert_eq!(task.revision, revision);
            return;
        }
        task.noted = false;
        task.sources.extend(said.sources.iter().cloned());
        if !task.status_by_user {
            task.status.clone_from(&said.status);
        }
        if !task.priority_by_user {
            task.priority.clone_from(&said.priority);
        }
        self.revised(id, revision);
    }

    /// A revision that follows the one before.
    pub fn revised(&mut self, id: &str, revision: i64) {
        let task = self.tasks.get_mut(id).unwrap();
        assert_eq!(task.revision + 1, revision, "revisions of {id} are counted up one by one");
        task.revision = revision;
        let told = (task.status.clone(), task.priority.clone());
        self.events.insert((id.to_owned(), revision), told);
    }

    /// Keys of the segments with these contents.
    fn members(&self, contents: &[Content], options: &Options) -> BTreeSet<String> {
        let held = oracle::held(&self.books.accepted);
        let all = oracle::all_segments(&held, options).into_iter();
        all.filter(|(_, segment)| contents.contains(&content_of(&held, segment, options)))
            .flat_map(|(keys, _)| keys)
            .collect()
    }

    /// Tasks with a source among these keys that all their segments, read again, no longer hold.
    fn stale(&self, keys: &BTreeSet<String>, options: &Options, settings: &str) -> BTreeSet<String> {
        let held = oracle::held(&self.books.accepted);
        let all = oracle::all_segments(&held, options);
        let touched = self.tasks.iter().filter(|(_, task)| {
            task.status != "superseded" && !task.noted && !task.sources.is_disjoint(keys)
        });
        let is_stale = |(id, task): &(&String, &Task)| {
            let mut commits = Vec::new();
            for key in &task.sources {
                // A source whose segment has no subject message is in no segment that is ever done.
                let Some((_, segment)) = all.iter().find(|(keys, _)| keys.contains(key)) else {
                    return false;
                };
                let content = content_of(&held, segment, options);
                let Some(commit) = self.ledger.get(&(content, settings.to_owned())) else { return false };
                commits.push(*commit);
            }
            commits.iter().any(|commit| *commit > task.last_commit)
                && commits.iter().all(|commit| !self.submissions.contains(&(*commit, (*id).clone())))
        };
        touched.filter(is_stale).map(|(id, _)| id.clone()).collect()
    }

    /// Tasks that must be offered with a group of these segments.
    pub fn offered(&self, segments: &[Segment]) -> BTreeSet<String> {
        let keys: BTreeSet<&String> = segments.iter().flat_map(|segment| &segment.members).collect();
        let live = self.tasks.iter().filter(|(_, task)| task.status != "superseded");
        live.filter(|(_, task)| task.sources.iter().any(|key| keys.contains(key)))
            .map(|(id, _)| id.clone())
            .collect()
    }
}
