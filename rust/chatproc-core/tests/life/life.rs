//! One life: its steps, and what is looked at after each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use chatproc_core::document::Batch;
use chatproc_core::error::Error;
use chatproc_core::plan::{Batching, Options};
use chatproc_core::round::{Round, RoundPlan, Settings};
use chatproc_core::segment::Grouping;
use chatproc_core::store::Store;
use chatproc_core::store::commit::{Committed, CommittedTask};
use chatproc_core::store::tasks::{Request, update_priority, update_status};
use chatproc_core::store::verify::verify;
use chatproc_core::zone::Zone;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::chance::Chance;
use super::collector::{Line, Source};
use super::common::oracle::{self, Planned, Segment};
use super::common::sync::{DAY, source};
use super::common::{NOW, Project, settings};
use super::crash::{POINTS, crashing};
use super::model::{Answer, answer};
use super::truth::{Books, Content, Said, Truth};

/// The most rounds that a life's end may need.
const LAST_ROUNDS: usize = 200;
/// Of so many lives one begins without a store; the others with one that is empty, which is quicker to make.
const FROM_NOTHING: u64 = 4;
/// After one of so many steps everything is looked at, and after each crash: what is broken stays so to the
/// end, and a life that breaks is told again with a look after each step.
const LOOKED_AT: u64 = 3;

thread_local! {
    static EMPTY: Store = Store::empty().unwrap();
}

/// What may or may not have happened when a crash came.
enum Doubt {
    Nothing,
    /// The books after each file that is read in turn.
    Files(Vec<Books>),
    /// The books after the page with that cursor.
    Page(i64, Box<Books>),
    Commit {
        contents: Vec<Content>,
        said: Vec<Said>,
        sound: bool,
        row: i64,
    },
}

struct File {
    name: String,
    lines: Vec<Line>,
    /// Whether its last line is only half written.
    torn: bool,
    /// How often it was written anew: so many blank lines end it, that its size tells.
    turns: usize,
}

/// A request of a user, and what it was answered.
struct Asked {
    id: String,
    task: String,
    value: String,
    answer: Value,
}

pub struct Life {
    seed: u64,
    told: bool,
    honest: bool,
    project: Project,
    truth: Truth,
    source: Source,
    files: Vec<File>,
    unread: BTreeSet<usize>,
    pages: i64,
    now: i64,
    options: Options,
    rules: u8,
    asked: Vec<Asked>,
    doubt: Doubt,
    published: BTreeMap<String, Vec<u8>>,
}

impl Life {
    pub fn new(seed: u64, told: bool) -> Self {
        let project = Project::in_memory();
        if !seed.is_multiple_of(FROM_NOTHING) {
            fs_err::write(project.state(), empty_store()).unwrap();
        }
        Self {
            seed,
            told,
            honest: false,
            project,
            truth: Truth::default(),
            source: Source::default(),
            files: Vec::new(),
            unread: BTreeSet::new(),
            pages: 0,
            now: NOW,
            options: Options { max_related_chars: 1_000_000, ..Options::default() },
            rules: 0,
            asked: Vec::new(),
            doubt: Doubt::Nothing,
            published: BTreeMap::new(),
        }
    }

    fn say(&self, what: &str) {
        if self.told {
            eprintln!("{what}");
        }
    }

    /// One step, and after some a look at everything.
    pub fn step(&mut self, number: u64) {
        let chance = &mut Chance::new(self.seed, number);
        self.now += 1 + i64::try_from(chance.below(90_000)).unwrap();
        let crash = chance.one_in(3).then(|| (chance.of(&POINTS), 1 + chance.below(4)));
        let choice = chance.below(12);
        self.say(&format!("step {number}: {choice}, crash {crash:?}"));
        let folder = self.project.path("");
        let mut work = || match choice {
            0..=2 => self.batch(chance),
            3 | 4 => self.page(chance),
            5..=8 => self.round(chance),
            9 => self.user(chance),
            10 => self.export(),
            _ => self.change(chance),
        };
        let survived = if let Some((point, hit)) = crash {
            crashing(&folder, point, hit, work).is_some()
        } else {
            work();
            true
        };
        if !survived {
            self.say("  crashed");
            self.resolve();
        }
        if self.told || !survived || Chance::new(self.seed, 1_000 + number).one_in(LOOKED_AT) {
            self.look();
        }
    }

    /// All is read, done and exported; then nothing is left to do.
    pub fn end(&mut self) {
        self.honest = true;
        let chance = &mut Chance::new(self.seed, u64::MAX);
        for place in 0..self.files.len() {
            self.files[place].torn = false;
            self.write(place);
        }
        for _ in 0..LAST_ROUNDS {
            self.now += 1;
            self.round(chance);
            if self.truth.plan(&self.options, &self.settings_name()).groups.is_empty() {
                break;
            }
        }
        self.export();
        self.look();
        let planned = self.truth.plan(&self.options, &self.settings_name());
        assert!(planned.groups.is_empty(), "a life ends with nothing to do");
        let told: usize =
            self.published.values().map(|bytes| bytes.split(|byte| *byte == b'\n').count() - 1).sum();
        assert_eq!(told, self.truth.events.len(), "every revision is exported once");
    }

    // ── what happens ───────────────────────────────────────────────────────────────────────────────

    /// The collector writes a file, adds to one or writes one anew.
    fn batch(&mut self, chance: &mut Chance) {
        let lines = self.source.collect(chance);
        let place = match chance.below(4) {
            _ if self.files.is_empty() => self.files.len(),
            0 => {
                let place = chance.place(self.files.len());
                self.files[place].lines.extend(lines.clone());
                place
            }
            1 => {
                let place = chance.place(self.files.len());
                let file = &mut self.files[place];
                file.turns += 1;
                chance.shuffle(&mut file.lines);
                file.lines.extend(lines.clone());
                place
            }
            _ => self.files.len(),
        };
        if place == self.files.len() {
            self.files.push(File { name: format!("f{place:03}.jsonl"), lines, torn: false, turns: 0 });
        }
        self.files[place].torn = chance.one_in(5);
        self.write(place);
        if chance.one_in(2) {
            let mut round = self.project.round();
            self.ingest(&mut round);
        }
    }

    fn write(&mut self, place: usize) {
        let file = &self.files[place];
        let mut bytes: Vec<u8> = Vec::new();
        for (at, line) in file.lines.iter().enumerate() {
            let line = line.bytes();
            if file.torn && at + 1 == file.lines.len() {
                bytes.extend(&line[..line.len() / 2]);
            } else {
                bytes.extend(line);
                bytes.push(b'\n');
            }
        }
        if !file.torn {
            bytes.extend(vec![b'\n'; file.turns]);
        }
        self.project.write(&file.name, &bytes);
        self.unread.insert(place);
    }

    /// Reads the files; in turn, as each is a transaction.
    fn ingest(&mut self, round: &mut Round) {
        let mut after = vec![self.truth.books.clone()];
        for &place in &self.unread {
            let mut books = after.last().unwrap().clone();
            let file = &self.files[place];
            let path = self.project.path(&file.name);
            let whole = file.lines.len() - usize::from(file.torn);
            for (at, line) in file.lines[..whole].iter().enumerate() {
                books.take(line, &format!("{}:{at}", path.display()));
            }
            after.push(books);
        }
        let last = after.last().unwrap().clone();
        self.doubt = Doubt::Files(after);
        round.ingest(&self.project.input(), &mut |_, _| Ok(())).unwrap();
        self.doubt = Doubt::Nothing;
        self.truth.books = last;
        self.unread.clear();
    }

    /// A connection brings a page.
    fn page(&mut self, chance: &mut Chance) {
        let lines = self.source.collect(chance);
        self.pages += 1;
        let mut books = self.truth.books.clone();
        for line in &lines {
            books.take(line, "page");
        }
        let mut connection = source(&self.project.state(), "me");
        let holder = connection.holder.clone();
        let run = connection.lease_knowing(self.now, Some(&holder)).unwrap().run;
        assert!(connection.reserve(run, DAY, 10_000).unwrap());
        self.doubt = Doubt::Page(self.pages, Box::new(books.clone()));
        let bytes: Vec<Vec<u8>> = lines.iter().map(Line::bytes).collect();
        connection.page(run, &bytes, self.pages).unwrap();
        self.doubt = Doubt::Nothing;
        self.truth.books = books;
        connection.record(run, json!({}), self.now);
    }

    /// A user sets a status or a priority, asks again, or asks for what is no longer so.
    fn user(&mut self, chance: &mut Chance) {
        if let Some(asked) = self.asked.get(chance.place(self.asked.len() + 2)) {
            let again = self.ask(&asked.id, &asked.task, &asked.value, None).unwrap();
            assert_eq!(again, asked.answer, "the same request has the same answer");
            let other = self.ask(&asked.id, &asked.task, &asked.value, Some(1_000));
            assert!(matches!(other, Err(Error::TaskConflict(_))), "{other:?}");
        }
        let ids: Vec<String> = self.truth.tasks.keys().cloned().collect();
        if ids.is_empty() {
            return;
        }
        let id = chance.of(&ids);
        let value = chance.of(&["completed", "completed", "cancelled", "open", "P0", "P3"]).to_owned();
        let expected = match chance.below(3) {
            0 => Some(self.truth.tasks[&id].revision),
            1 => Some(self.truth.tasks[&id].revision + chance.of(&[-1, 1])),
            _ => None,
        };
        let request = format!("request {}", chance.next());
        let answer = self.ask(&request, &id, &value, expected);
        let task = self.truth.tasks.get_mut(&id).unwrap();
        if task.status == "superseded" || expected.is_some_and(|expected| expected != task.revision) {
            assert!(matches!(answer, Err(Error::TaskConflict(_))), "{answer:?}");
            return;
        }
        let answer = answer.unwrap();
        if value.starts_with('P') {
            (task.priority, task.priority_by_user) = (value.clone(), true);
        } else {
            (task.status, task.status_by_user) = (value.clone(), true);
        }
        self.truth.revised(&id, answer["revision"].as_i64().unwrap());
        if expected.is_none() {
            self.asked.push(Asked { id: request, task: id, value, answer });
        }
    }

    fn ask(&self, id: &str, task: &str, value: &str, expected: Option<i64>) -> Result<Value, Error> {
        let request = Request {
            task_id: task,
            value,
            request_id: id,
            actor: "li",
            expected_revision: expected,
            note: None,
        };
        let mut store = Store::open(&self.project.state(), self.now)?;
        let zone = Zone::named("Asia/Shanghai")?;
        let wish = if value.starts_with('P') { update_priority } else { update_status };
        Ok(serde_json::to_value(wish(store.conn_mut(), &request, self.now, &zone)?)?)
    }

    fn export(&mut self) {
        self.project.round().export(&self.project.path("todos"), |_| {}).unwrap();
    }

    /// The rules are edited, the settings, or the clock is set.
    fn change(&mut self, chance: &mut Chance) {
        match chance.below(4) {
            0 => self.rules = u8::try_from(chance.below(3)).unwrap(),
            1 => {
                const YEARS: i64 = 50_000_000_000;
                self.now = (self.now + chance.of(&[-YEARS, -3_600_000, 3_600_000, YEARS])).max(0);
                self.project.now = self.now;
            }
            _ => {
                self.options.grouping = chance.of(&[Grouping::Sql, Grouping::Time, Grouping::Session]);
                self.options.batching = chance.of(&[Batching::Auto, Batching::SingleConversation]);
                self.options.max_conversation_chars = chance.of(&[20_000, 900, 2_000]);
                self.options.max_messages = chance.of(&[80, 2, 5]);
                self.options.max_groups_per_round = chance.of(&[10, 2, 3]);
                self.options.start_at = chance.of(&[0.0, 0.0, 1_782_838_800.0]);
            }
        }
    }

    // ── rounds ─────────────────────────────────────────────────────────────────────────────────────

    fn settings(&self) -> Settings {
        Settings { rules_sha256: format!("{:064}", self.rules), ..settings() }
    }

    fn settings_name(&self) -> String {
        format!("{} {}", self.rules, self.options.grouping_parameters())
    }

    fn round(&mut self, chance: &mut Chance) {
        let mut round = self.project.round();
        round.export(&self.project.path("todos"), |_| {}).unwrap();
        self.ingest(&mut round);
        round.begin(self.now).unwrap();
        let plan = round.plan(self.options.clone(), self.settings()).unwrap();
        let wanted = self.truth.plan(&self.options, &self.settings_name());
        self.compare(&round, &plan, &wanted);
        let contents: Vec<Vec<Content>> =
            wanted.groups.iter().map(|group| self.truth.contents(&group.segments, &self.options)).collect();
        let mut sound = true;
        let mut place = 0;
        for groups in &plan.batches {
            let batch = round.document(groups).unwrap();
            for (at, conversation) in batch.conversations.iter().enumerate() {
                if sound {
                    self.offers(&batch, &conversation.reference, &wanted.groups[place + at].segments);
                }
            }
            if !self.honest && chance.one_in(4) {
                if chance.one_in(2) {
                    self.user(chance);
                } else {
                    self.page(chance);
                    sound = false;
                }
            }
            for conversation in &batch.conversations {
                let answer = answer(chance, &batch, conversation, self.honest);
                self.answer(&mut round, &conversation.group, &contents[place], answer, sound);
                place += 1;
            }
        }
        round.finish(self.now, &json!({"groups": plan.groups.len()})).unwrap();
        if chance.one_in(2) {
            round.export(&self.project.path("todos"), |_| {}).unwrap();
        }
    }

    fn answer(&mut self, round: &mut Round, group: &str, contents: &[Content], answer: Answer, sound: bool) {
        let (tasks, said, lies) = match answer {
            Answer::Away => return round.fail(group, "the model is away", self.now, true).unwrap(),
            Answer::Good { tasks, said } => (tasks, said, false),
            Answer::Lie(tasks) => (tasks, Vec::new(), true),
        };
        let reason = if tasks.is_empty() { json!("only talk") } else { Value::Null };
        let outcome = json!({"no_task_reason": reason, "tasks": tasks, "receipts": []});
        // Rows have no gaps.
        let row = i64::try_from(self.truth.events.len()).unwrap();
        self.doubt = Doubt::Commit { contents: contents.to_vec(), said: said.clone(), sound, row };
        let usage = json!({"requests": 1});
        let outcome = serde_json::from_value(outcome).unwrap();
        let committed = round.commit(vec![(group.to_owned(), outcome)], &usage, self.now);
        let committed = committed.unwrap().remove(0);
        self.doubt = Doubt::Nothing;
        let passed_over = said.iter().any(|said| {
            let revision = said.task.as_ref().map(|id| self.truth.tasks[id].revision);
            revision != said.seen
        });
        match committed {
            Ok(committed) => {
                assert!(!lies, "a lie was stored: {tasks:?}");
                assert!(!passed_over, "a change that the model never saw was passed over");
                self.truth.commit(contents, &self.options, &self.settings_name(), &said, &committed, sound);
            }
            Err(error) => {
                let conflict = matches!(error, Error::TaskConflict(_)) && (passed_over || !sound);
                assert!(lies || conflict, "what is so was refused: {error}");
                round.fail(group, &error.to_string(), self.now, true).unwrap();
            }
        }
    }

    /// The store's plan is the contract's.
    fn compare(&self, round: &Round, plan: &RoundPlan, wanted: &Planned) {
        assert_eq!((plan.pending, plan.oversized.len()), (wanted.groups.len(), wanted.oversized.len()));
        let limit = usize::try_from(self.options.max_groups_per_round).unwrap().min(wanted.groups.len());
        let batches = oracle::batches(&wanted.groups[..limit], &self.options);
        assert_eq!(
            plan.batches.iter().map(Vec::len).collect::<Vec<_>>(),
            batches.iter().map(Vec::len).collect::<Vec<_>>()
        );
        for (made, place) in plan.groups.iter().zip(batches.concat()) {
            let wanted = &wanted.groups[place];
            let shape = |segment: &Segment| {
                (
                    segment.members.clone(),
                    segment.carried.clone(),
                    segment.continuity.to_owned(),
                    segment.chars,
                )
            };
            let wanted: Vec<_> = wanted.segments.iter().map(shape).collect();
            let made = round.group(&made.id).unwrap().segments.into_iter();
            let made = made.map(|segment| {
                (segment.messages, segment.carried, segment.continuity.to_owned(), segment.chars)
            });
            assert_eq!(made.collect::<Vec<_>>(), wanted);
        }
    }

    /// Every living task of a conversation's segments is offered.
    fn offers(&self, batch: &Batch, reference: &str, segments: &[Segment]) {
        let shown = batch.tasks.values().filter(|task| task.conversations.iter().any(|one| one == reference));
        let shown: BTreeSet<String> = shown.map(|task| task.task_id.clone()).collect();
        let wanted = self.truth.offered(segments);
        assert!(wanted.is_subset(&shown), "{wanted:?} are not all among {shown:?}");
    }

    // ── after a crash ──────────────────────────────────────────────────────────────────────────────

    /// Finds out what had happened: all of it, or nothing.
    fn resolve(&mut self) {
        match std::mem::replace(&mut self.doubt, Doubt::Nothing) {
            Doubt::Nothing => {}
            Doubt::Files(after) => {
                let stored = self.with_store(counts);
                let found = after.into_iter().rev().find(|books| books.counts() == stored);
                self.truth.books =
                    found.unwrap_or_else(|| panic!("{stored:?} is neither before nor after a file"));
            }
            Doubt::Page(place, books) => {
                let cursor =
                    format!("SELECT count(*) FROM connections WHERE cursor = '{{\"place\":{place}}}'");
                if self.number(&cursor) == 1 {
                    self.truth.books = *books;
                }
            }
            Doubt::Commit { contents, said, sound, row } => {
                if let Some(committed) = self.committed(&said, row) {
                    let settings = self.settings_name();
                    self.truth.commit(&contents, &self.options, &settings, &said, &committed, sound);
                }
            }
        }
    }

    /// The commit that was made, if it was, with what it answered when nobody heard it.
    fn committed(&self, said: &[Said], row: i64) -> Option<Committed> {
        let commit = self.number("SELECT coalesce(max(\"commit\"), 0) FROM commits");
        if commit <= self.truth.last_commit {
            return None;
        }
        let list = |sql: &str| -> Vec<(String, i64, String)> {
            self.with_store(|conn| {
                let mut query = conn.prepare(sql).unwrap();
                let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
                rows.map(Result::unwrap).collect()
            })
        };
        let submitted = list(&format!(
            "SELECT task_id, revision, status FROM submissions JOIN tasks USING(task) WHERE \"commit\" = {commit} ORDER BY task"
        ));
        let mut new = submitted.iter().filter(|(id, ..)| !self.truth.tasks.contains_key(id));
        let task = |said: &Said| {
            let known = said.task.as_ref().and_then(|id| submitted.iter().find(|(task, ..)| task == id));
            let (id, revision, _) = known.unwrap_or_else(|| new.next().unwrap());
            let before = self.truth.tasks.get(id).map_or(0, |task| task.revision);
            CommittedTask { task_id: id.clone(), revision: *revision, changed: before != *revision }
        };
        let tasks = said.iter().map(task).collect();
        let gone = list(&format!(
            "SELECT t.task_id, o.revision, t.status FROM outbox o JOIN tasks t USING(task)
             WHERE \"row\" > {row} AND actor = 'program' ORDER BY \"row\""
        ));
        let (superseded, noted): (Vec<_>, Vec<_>) =
            gone.into_iter().partition(|(_, _, status)| status == "superseded");
        let told = |(task_id, revision, _)| CommittedTask { task_id, revision, changed: true };
        Some(Committed {
            commit,
            tasks,
            superseded: superseded.into_iter().map(told).collect(),
            noted: noted.into_iter().map(told).collect(),
        })
    }

    // ── after a step ───────────────────────────────────────────────────────────────────────────

    fn with_store<T>(&self, look: impl FnOnce(&Connection) -> T) -> T {
        match Store::read(&self.project.state()).unwrap() {
            Some(store) => look(store.conn()),
            None => EMPTY.with(|store| look(store.conn())),
        }
    }

    fn number(&self, sql: &str) -> i64 {
        self.with_store(|conn| conn.query_row(sql, [], |row| row.get(0)).unwrap())
    }

    fn look(&mut self) {
        let verdict = verify(&self.project.state(), &self.project.path("todos"), &mut |_, _| Ok(())).unwrap();
        assert!(verdict.ok, "{:#?}", verdict.breaks);
        let (stored, tasks, rows) = self.with_store(|conn| {
            let mut query = conn.prepare("SELECT task_id, revision, status, priority FROM tasks").unwrap();
            let rows = query
                .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))))
                .unwrap();
            let tasks: BTreeMap<String, (i64, String, String)> = rows.map(Result::unwrap).collect();
            (counts(conn), tasks, count(conn, "outbox"))
        });
        assert_eq!(stored, self.truth.books.counts(), "deliveries accepted and lines refused");
        let task = |(id, task): (&String, &super::truth::Task)| {
            (id.clone(), (task.revision, task.status.clone(), task.priority.clone()))
        };
        assert_eq!(tasks, self.truth.tasks.iter().map(task).collect(), "tasks");
        assert_eq!(rows, self.truth.events.len(), "a row of the outbox for every revision");
        self.look_at_files();
    }

    /// A file that was published stays as it is, and no event is published twice.
    fn look_at_files(&mut self) {
        let Ok(folder) = fs_err::read_dir(self.project.path("todos")) else { return };
        let mut found = BTreeMap::new();
        for entry in folder {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|suffix| suffix == "jsonl") {
                found.insert(
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    fs_err::read(&path).unwrap(),
                );
            }
        }
        for (name, bytes) in &self.published {
            assert_eq!(found.get(name), Some(bytes), "{name} changed after it was published");
        }
        let mut met = BTreeSet::new();
        for line in found.values().flat_map(|bytes| bytes.split_inclusive(|byte| *byte == b'\n')) {
            let event: Value = serde_json::from_slice(line).unwrap();
            let (id, revision) =
                (event["task_id"].as_str().unwrap().to_owned(), event["revision"].as_i64().unwrap());
            let digest = Sha256::digest(format!("{id}:{revision}"));
            let hex = digest.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
            assert_eq!(event["event_id"].as_str(), Some(hex.as_str()));
            let said = |key: &str| event["task"][key].as_str().unwrap().to_owned();
            let told = self.truth.events.get(&(id.clone(), revision));
            assert_eq!(told, Some(&(said("status"), said("priority"))), "revision {revision} of {id}");
            assert!(met.insert((id, revision)), "an event was exported twice");
        }
        self.published = found;
    }
}

/// A store that nothing was ever written to.
fn empty_store() -> &'static [u8] {
    static EMPTY: OnceLock<Vec<u8>> = OnceLock::new();
    EMPTY.get_or_init(|| {
        let project = Project::in_memory();
        drop(Store::open(&project.state(), NOW).unwrap());
        fs_err::read(project.state()).unwrap()
    })
}

fn count(conn: &Connection, table: &str) -> usize {
    let count = conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
    usize::try_from(count.unwrap()).unwrap()
}

/// Deliveries accepted and lines refused, as stored.
fn counts(conn: &Connection) -> (usize, usize) {
    (count(conn, "events"), count(conn, "quarantine"))
}
