//! A store with conversations, messages and segments, and submissions for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chatproc_core::error::Result;
use chatproc_core::fingerprint::content_fp;
use chatproc_core::store::commit::{
    CommitSettings, Committed, GroupCommit, GroupRef, GroupSegment, commit_groups,
};
use chatproc_core::store::make_tables;
use chatproc_core::store::search::{Page, Query, search};
use chatproc_core::store::tasks::{Request, TaskRow, related, task};
use chatproc_core::zone::Zone;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub const NOW: i64 = 1_783_000_000_000;
pub const SENT: i64 = 1_782_871_200_000; // 2026-07-01T10:00:00+08:00

/// A store under test.
pub struct World {
    pub conn: Connection,
    pub zone: Zone,
    pub settings_fp: [u8; 32],
}

pub fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Commits one group by itself.
pub fn commit_group(conn: &mut Connection, commit: &GroupCommit) -> Result<Committed> {
    commit_groups(conn, &mut [commit.clone()])?.remove(0)
}

impl World {
    pub fn new() -> Self {
        Self::over(Connection::open_in_memory().unwrap())
    }

    /// A new store in that database.
    pub fn over(conn: Connection) -> Self {
        make_tables(&conn).unwrap();
        Self::again(conn)
    }

    /// The store that is in that database.
    pub fn again(conn: Connection) -> Self {
        conn.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        Self { conn, zone: Zone::named("Asia/Shanghai").unwrap(), settings_fp: digest("settings") }
    }

    pub fn conversation(&self, platform: &str, id: &str) -> i64 {
        let sql = "INSERT INTO conversations(platform, account_id, id, name, type, named_at, named_by, dirty, forks)
                   VALUES (?1, '10000', ?2, ?2 || '群', 'group', 0, '', 0, 0)";
        self.conn.execute(sql, [platform, id]).unwrap();
        self.conn.last_insert_rowid()
    }

    /// Adds a message; later ones are sent later.
    pub fn message(&self, conversation: i64, key: &str, text: &str) -> i64 {
        let count: i64 = self.conn.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
        let line = json!({
            "schema": "chatproc.event/1", "event_id": key, "message_key": key, "revision": 0,
            "platform": "qq", "account_id": "10000", "conversation": {"id": "x"}, "message_id": format!("id-{key}"),
            "sent_at": 0, "sender": {"id": "10001", "name": "王老师"}, "text": text, "unknown": [1.5, null],
            "attachments": [{"id": "a1", "name": "模板.docx", "size": 20480.0, "path": "2026/模板.docx", "state": "present"}],
            "selection": {"rules": ["one"], "window": [1, 2]}, "source": {"local_id": 4412, "score": 0.1},
        });
        let sql = "INSERT INTO messages(key, conversation, revision, kind, state, sent_at, sequenced, cost,
                     files, digest, content, collected_at, event_id)
                   VALUES (?1, ?2, 0, 0, 0, ?3, 0, 10, 1, ?5, x'00', ?4, ?1)";
        let sent_at = SENT + count * 1000;
        let line = serde_json::to_vec(&line).unwrap();
        let content = digest(&format!("{key} {text}"));
        self.conn.execute(sql, params![key, conversation, sent_at, sent_at + 60_000, content]).unwrap();
        let message = self.conn.last_insert_rowid();
        self.conn.execute("INSERT INTO lines VALUES(?1, ?2)", params![message, line]).unwrap();
        message
    }

    /// Makes the messages of those keys a pending segment of what they say now.
    pub fn segment(&self, keys: &[&str]) -> GroupSegment {
        let key_list = serde_json::to_string(keys).unwrap();
        let found = "FROM messages WHERE key IN (SELECT value FROM json_each(?1))";
        let mut query = self
            .conn
            .prepare(&format!(
                "SELECT conversation, message, digest, sent_at >= ?2, kind {found} ORDER BY message"
            ))
            .unwrap();
        let rows: Vec<(i64, i64, [u8; 32], bool, i64)> = query
            .query_map(params![key_list, self.start_at()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        let conversation = rows[0].0;
        let numbers: Vec<i64> = rows.iter().map(|row| row.1).collect();
        let members = serde_json::to_string(&numbers).unwrap();
        let sent = rows.iter().filter(|row| row.4 == 0);
        let content_fp = content_fp("proven", sent.map(|row| (&row.2, row.3)));
        self.conn
            .execute(
                "DELETE FROM segments WHERE segment IN (SELECT segment FROM members JOIN messages USING (message) WHERE key IN (SELECT value FROM json_each(?1)))",
                [&key_list],
            )
            .unwrap();
        self.conn
            .execute(
                "INSERT INTO segments(conversation, first_at, first_key, continuity, content_fp, chars, sent, files, newest_at,
                   status, system, recalled, history, live, cited, carried, members)
                 VALUES (?1, 0, ?2, 'proven', ?3, 10, ?4, 0, 0, 'pending', 0, 0, 0, ?4, 0, '[]', ?5)",
                params![conversation, keys[0], content_fp, i64::try_from(keys.len()).unwrap(), members],
            )
            .unwrap();
        let segment = self.conn.last_insert_rowid();
        self.conn
            .execute(
                &format!("INSERT OR REPLACE INTO members SELECT message, ?2 {found}"),
                params![key_list, segment],
            )
            .unwrap();
        GroupSegment {
            segment,
            content_fp,
            members: numbers,
            carried: Vec::new(),
            continuity: "proven".to_owned(),
        }
    }

    /// A commit of those segments with those drafts.
    pub fn submission(&self, segments: &[GroupSegment], drafts: &[Value]) -> GroupCommit {
        let conversation = self.number(
            "SELECT conversation FROM messages WHERE message = ?1",
            &segments[0].members[0].to_string(),
        );
        let fps: Vec<u8> = segments.iter().flat_map(|segment| segment.content_fp).collect();
        GroupCommit {
            group: GroupRef {
                id: "g_1".to_owned(),
                group_fp: Sha256::digest(fps).into(),
                conversation,
                segments: segments.to_vec(),
            },
            outcome: serde_json::from_value(json!({"no_task_reason": null, "tasks": drafts, "receipts": []}))
                .unwrap(),
            settings: CommitSettings {
                settings_fp: self.settings_fp,
                model: "m-1".to_owned(),
                rules_file: "default.md".to_owned(),
                rules_sha256: "ab".repeat(32),
                timezone: "Asia/Shanghai".to_owned(),
            },
            usage: json!({"requests": 1, "input_tokens": null}),
            now_ms: NOW,
            round: 1,
            session: BTreeMap::new(),
            start_at: self.start_at(),
        }
    }

    pub fn commit(&mut self, segments: &[GroupSegment], drafts: &[Value]) -> Result<Committed> {
        let submission = self.submission(segments, drafts);
        commit_group(&mut self.conn, &submission)
    }

    /// One conversation, one message, one task: the task's id.
    pub fn with_a_task(&mut self, key: &str, text: &str) -> String {
        let platform = format!("p{}", key.len());
        let conversation = self.conversation(&platform, key);
        self.message(conversation, key, text);
        let segment = self.segment(&[key]);
        self.commit(&[segment], &[draft(&[key])]).unwrap().tasks.remove(0).task_id
    }

    /// Replaces a message's text, as an edit does.
    pub fn edit(&self, key: &str, text: &str) {
        let raw: Vec<u8> = self
            .conn
            .query_row("SELECT raw FROM messages JOIN lines USING (message) WHERE key = ?1", [key], |row| {
                row.get(0)
            })
            .unwrap();
        let mut line: Value = serde_json::from_slice(&raw).unwrap();
        line["text"] = text.into();
        let raw = serde_json::to_vec(&line).unwrap();
        let sql = "UPDATE lines SET raw = ?2 WHERE message = (SELECT message FROM messages WHERE key = ?1)";
        self.conn.execute(sql, params![key, raw]).unwrap();
        let sql = "UPDATE messages SET state = 1, digest = ?2 WHERE key = ?1";
        self.conn.execute(sql, params![key, digest(&format!("{key} {text}"))]).unwrap();
    }

    pub fn task(&self, task_id: &str) -> TaskRow {
        task(&self.conn, task_id, &self.zone).unwrap()
    }

    /// The related tasks of conversations with messages of those keys, and the places of those they rest on.
    pub fn related(&self, keys: &[&[&str]]) -> Vec<(String, Vec<usize>)> {
        let numbers = |keys: &&[&str]| {
            keys.iter().map(|key| self.number("SELECT message FROM messages WHERE key = ?1", key)).collect()
        };
        let messages: Vec<Vec<i64>> = keys.iter().map(numbers).collect();
        let related = related(&self.conn, &messages, &self.zone).unwrap();
        related.into_iter().map(|task| (task.task_id, task.conversations)).collect()
    }

    pub fn search(&self, query: Value) -> Page {
        let query: Query = serde_json::from_value(query).unwrap();
        search(&self.conn, &query, &self.zone).unwrap()
    }

    fn start_at(&self) -> i64 {
        self.number("SELECT coalesce(max(value), 0) FROM meta WHERE key = ?1", "start_at")
    }

    pub fn number(&self, sql: &str, argument: &str) -> i64 {
        self.conn.query_row(sql, [argument], |row| row.get(0)).unwrap()
    }

    pub fn cited(&self, segment: &GroupSegment) -> i64 {
        self.number("SELECT cited FROM segments WHERE segment = ?1", &segment.segment.to_string())
    }

    /// Every row of every table, the text index's own tables among them.
    pub fn dump(&self) -> String {
        let names =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'task_search' ORDER BY name";
        let mut dump = String::new();
        for name in self.conn.prepare(names).unwrap().query_map([], |row| row.get::<_, String>(0)).unwrap() {
            let mut table = self.conn.prepare(&format!("SELECT * FROM \"{}\"", name.unwrap())).unwrap();
            let columns = table.column_count();
            let mut rows = table.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                for column in 0..columns {
                    write!(dump, "{:?}|", row.get_ref(column).unwrap()).unwrap();
                }
                dump.push('\n');
            }
        }
        dump
    }
}

/// A draft that cites those messages.
pub fn draft(sources: &[&str]) -> Value {
    json!({
        "task_id": null, "seen_revision": null, "title": "交报告", "event": "课程报告", "priority": "P2",
        "priority_reason": "有截止时间", "status": "open",
        "time": {"start": null, "due": "2026-07-03T17:00:00+08:00", "original": null},
        "people": [{"name": "王老师", "role": null}], "location": "302", "action_steps": ["写", "交"], "notes": "",
        "sources": sources, "evidence": [], "quotes": [],
    })
}

/// The draft with other values of some keys.
pub fn with(mut draft: Value, mut changes: Value) -> Value {
    draft.as_object_mut().unwrap().append(changes.as_object_mut().unwrap());
    draft
}

/// The draft as an update of a task at that revision.
pub fn update(draft: Value, task_id: &str, seen: i64) -> Value {
    with(draft, json!({"task_id": task_id, "seen_revision": seen}))
}

pub fn request<'a>(task_id: &'a str, value: &'a str, request_id: &'a str) -> Request<'a> {
    Request { task_id, value, request_id, actor: "li", expected_revision: None, note: None }
}
