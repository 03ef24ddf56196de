//! Events as tests make them, and the contract told a second time: slowly, and with other words.
//!
//! Nothing here calls the core to learn what is right.
#![allow(dead_code)] // each test crate uses its own part

pub mod oracle;
pub mod sync;
pub mod world;

use std::path::PathBuf;

use chatproc_core::agenda::{Agenda, GroupBrief, GroupView, Shelf, agenda};
use chatproc_core::document::Batch;
use chatproc_core::plan::Options;
use chatproc_core::revision::{Intake, Nothing, Spot};
use chatproc_core::round::{Preview, Round, RoundPlan, Settings, preview};
use chatproc_core::store::intake::{Ingested, Input};
use chatproc_core::store::ledger;
use serde_json::Value;

/// A moment at which every file is settled.
pub const NOW: i64 = 4_000_000_000_000;

/// Settings that no test cares about.
pub fn settings() -> Settings {
    Settings {
        protocol: 1,
        rules_file: "rules.md".to_owned(),
        rules_sha256: "00".repeat(32),
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        model: "small".to_owned(),
        vision: false,
    }
}

/// Takes lines into memory, as one file would bring them.
pub fn intake_of<'l>(lines: impl IntoIterator<Item = &'l [u8]>) -> Intake {
    let mut intake = Intake::default();
    for (line, raw) in (1..).zip(lines) {
        intake.line(&Nothing, raw, Spot::in_file("memory".to_owned(), line, 0)).unwrap();
    }
    intake
}

/// Plans what is in memory.
pub fn agenda_of(intake: &Intake, options: &Options) -> Agenda {
    agenda(ledger::pending(None, Some(intake), options, &[0; 32]).unwrap(), options)
}

/// Everything that a model would be sent of what is in memory, batch by batch.
pub fn batches_of(intake: &Intake, agenda: &Agenda, options: &Options) -> Vec<Batch> {
    let shelf = Shelf { conn: None, fresh: Some(intake) };
    let batch = |places: &Vec<usize>| {
        let groups: Vec<_> = places.iter().map(|&place| &agenda.groups[place]).collect();
        shelf.document(&groups, options).unwrap()
    };
    agenda.batches(usize::MAX, options).iter().map(batch).collect()
}

/// A round's plan with all that its groups hold.
pub struct Planned {
    pub groups: Vec<GroupView>,
    pub batches: Vec<Vec<String>>,
    pub pending: usize,
    pub oversized: Vec<Value>,
    pub waiting: usize,
}

impl Planned {
    pub fn by(round: &mut Round, options: &Options) -> Self {
        let RoundPlan { groups, batches, pending, oversized, waiting, .. } =
            round.plan(options.clone(), settings()).unwrap();
        let shown = |brief: GroupBrief| {
            let group = round.group(&brief.id).unwrap();
            assert_eq!(
                (&group.conversation, group.segments.len(), group.messages, group.chars),
                (&brief.conversation, brief.segments, brief.messages, brief.chars)
            );
            group
        };
        Self { groups: groups.into_iter().map(shown).collect(), batches, pending, oversized, waiting }
    }
}

/// A refused line: the file's name, line, offset, length, reason, raw bytes.
pub type Refused = (String, u64, u64, u64, String, Option<Vec<u8>>);

/// A project on disk: batch files, a store, and a round at a time over it.
pub struct Project {
    folder: tempfile::TempDir,
    pub now: i64,
    pub max_line_bytes: u64,
    pub max_memory: u64,
}

impl Project {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), now: NOW, max_line_bytes: 1 << 20, max_memory: 1 << 29 }
    }

    /// One whose reading holds as little as it can.
    pub fn tight() -> Self {
        Self { max_memory: 0, ..Self::new() }
    }

    /// One in memory where the system has a place for that: faster, and no test of disks.
    pub fn in_memory() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { folder: folder.unwrap(), now: NOW, max_line_bytes: 1 << 20, max_memory: 1 << 29 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state.db")
    }

    /// What is read: every file whose name says that it is a batch.
    pub fn input(&self) -> Input {
        let pattern = |suffix: &str| self.path(&format!("*{suffix}")).to_string_lossy().into_owned();
        Input {
            paths: [".jsonl", ".jsonl.gz", ".jsonl.zst"].into_iter().map(pattern).collect(),
            max_line_bytes: self.max_line_bytes,
            max_memory: self.max_memory,
            settle: 5_000,
            now: self.now,
            state: self.state(),
            output: self.path("todos"),
        }
    }

    /// Writes a batch file.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs_err::write(self.path(name), bytes).unwrap();
    }

    /// Writes a batch file of whole lines.
    pub fn write_lines(&self, name: &str, lines: &[Vec<u8>]) {
        let mut bytes = lines.join(&b'\n');
        bytes.push(b'\n');
        self.write(name, &bytes);
    }

    pub fn round(&self) -> Round {
        Round::open(&self.state(), "test", NOW).unwrap()
    }

    /// Reads all that is new, in a round of its own.
    pub fn ingest(&self) -> Ingested {
        self.round().ingest(&self.input(), &mut |_, _| Ok(())).unwrap()
    }

    /// Plans with all groups in one round; gives the plan and its documents.
    pub fn plan(&self, options: &Options) -> (Planned, Vec<String>) {
        let mut round = self.round();
        let plan = Planned::by(&mut round, options);
        let document = |batch: &Vec<String>| round.document(batch).unwrap().document;
        let documents = plan.batches.iter().map(document).collect();
        (plan, documents)
    }

    pub fn preview(&self, options: &Options) -> Preview {
        let limit = usize::try_from(options.max_groups_per_round).unwrap();
        let watch: &mut dyn FnMut(u64, u64) -> chatproc_core::error::Result<()> = &mut |_, _| Ok(());
        preview(&self.state(), &self.input(), options, &settings(), limit, None, watch).unwrap()
    }

    pub fn status(&self) -> Value {
        chatproc_core::round::status(&self.state()).unwrap()
    }

    /// Lines in the quarantine.
    pub fn quarantine(&self) -> Vec<Refused> {
        let Some(store) = chatproc_core::store::Store::read(&self.state()).unwrap() else {
            return Vec::new();
        };
        let held = chatproc_core::store::quarantine::list(store.conn()).unwrap();
        held.into_iter()
            .map(|held| {
                let name =
                    std::path::Path::new(&held.file).file_name().unwrap().to_string_lossy().into_owned();
                (name, held.line, held.offset, held.length, held.reason, held.raw)
            })
            .collect()
    }
}
