//! A store of many tasks for `benches/searches.py`: `searches STATE TASKS`.
//!
//! Rows are written straight into the tables, because a million tasks through real rounds take minutes and
//! gigabytes that no search reads: records have the shape and the length of real ones, but no message and no
//! event stands behind them.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use chatproc_core::store::Store;
use chatproc_core::store::search::index;
use chatproc_core::task::Record;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

const DOINGS: [&str; 14] =
    ["交", "写", "改", "查", "送", "取", "订", "讨论", "整理", "准备", "提交", "打印", "通知", "安排"];
const THINGS: [&str; 10] =
    ["实验报告", "论文初稿", "采购清单", "会议纪要", "课程作业", "开题材料", "发票", "合同", "样品", "数据"];
const VERBS: [&str; 8] = ["Send", "Review", "Book", "Prepare", "Collect", "Print", "Translate", "Order"];
const NOUNS: [&str; 10] = [
    "the lab report",
    "a meeting room",
    "the invoice",
    "slides for Monday",
    "the contract",
    "sample boxes",
    "train tickets",
    "the survey",
    "reference letters",
    "the budget sheet",
];
const FAMILIES: &str =
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡";
const GIVEN: &str = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超霞平刚桂英华玉萍红玲建国志文";
const PLACES: [&str; 6] = ["302", "教学楼", "图书馆", "实验室", "会议室", "线上"];
/// Of a hundred tasks so many have the status.
const STATUSES: [(&str, usize); 4] = [("open", 40), ("completed", 40), ("cancelled", 15), ("superseded", 5)];
const PLATFORMS: [(&str, usize); 3] = [("qq", 70), ("wechat", 29), ("matrix", 1)];
const TASKS_OF_A_CHAT: i64 = 40;
/// 2026-07-01T10:00:00+08:00, in milliseconds.
const START: i64 = 1_782_871_200_000;
const DAY: i64 = 86_400_000;
const TASKS_OF_A_TRANSACTION: i64 = 20_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    // `cargo bench` gives no file, and then there is nothing to do.
    let Some(state) = arguments.next().filter(|state| !state.starts_with("--")) else { return };
    let tasks: i64 = arguments.next().expect("a number of tasks").parse().expect("a number of tasks");
    let mut store = Store::open(Path::new(&state), START).unwrap();
    let chats = (tasks + TASKS_OF_A_CHAT - 1) / TASKS_OF_A_CHAT;
    let mut chance = Chance(7);
    store
        .write(|conn| {
            rooms(conn, chats, &mut chance);
            Ok(())
        })
        .unwrap();
    for first in (0..tasks).step_by(usize::try_from(TASKS_OF_A_TRANSACTION).unwrap()) {
        store
            .write(|conn| {
                for number in first..tasks.min(first + TASKS_OF_A_TRANSACTION) {
                    task(conn, number, chats, &mut chance);
                }
                Ok(())
            })
            .unwrap();
    }
    store
        .conn()
        .execute(
            "INSERT INTO task_counts SELECT status, priority, due_at >> 26, count(*) FROM tasks GROUP BY 1, 2, 3",
            [],
        )
        .unwrap();
}

/// Numbers that look drawn by chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % u64::try_from(limit).unwrap()).unwrap()
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    fn letter(&mut self, of: &str) -> char {
        of.chars().nth(self.below(of.chars().count())).unwrap()
    }

    /// A word by its share of a hundred.
    fn weighed<'a>(&mut self, words: &[(&'a str, usize)]) -> &'a str {
        let mut left = self.below(100);
        for (word, share) in words {
            if left < *share {
                return word;
            }
            left -= share;
        }
        words[0].0
    }
}

fn rooms(conn: &Connection, chats: i64, chance: &mut Chance) {
    for chat in 1..=chats {
        conn.prepare_cached("INSERT INTO conversations VALUES (?1, ?2, '1', ?3, NULL, 'group', 0, '', 0, 0)")
            .unwrap()
            .execute(params![chat, chance.weighed(&PLATFORMS), chat.to_string()])
            .unwrap();
    }
    conn.execute(
        "INSERT INTO commits(\"commit\", round, conversation, group_id, settings_fp, at, model, rules_sha256, usage)
         VALUES (1, 1, 1, 'g_', x'00', 0, 'played', '', '{}')",
        [],
    )
    .unwrap();
}

fn task(conn: &Connection, number: i64, chats: i64, chance: &mut Chance) {
    let chat = number / TASKS_OF_A_CHAT + 1;
    let platform: String = conn
        .prepare_cached("SELECT platform FROM conversations WHERE conversation = ?1")
        .unwrap()
        .query_row([chat], |row| row.get(0))
        .unwrap();
    // A revision comes some days after the task, now and then.
    let created = START + number * 20_000;
    let updated =
        if chance.below(4) == 0 { created + i64::try_from(chance.below(30)).unwrap() * DAY } else { created };
    let due = (chance.below(5) > 0)
        .then(|| START + number * 20_000 + i64::try_from(chance.below(60)).unwrap() * DAY);
    let record = record(number, chat, &platform, due, chance);
    conn.prepare_cached(
        "INSERT INTO tasks(task_id, revision, status, status_by, priority, due_at, created_at, updated_at,
           conversation, last_commit, record) VALUES (?1, 1, ?2, 'model', ?3, ?4, ?5, ?6, ?7, 1, ?8)",
    )
    .unwrap()
    .execute(params![
        format!("t_{number:026}"),
        record.status.as_str(),
        record.priority.as_str(),
        record.due_at().unwrap(),
        created,
        updated,
        chat,
        serde_json::to_string(&record).unwrap()
    ])
    .unwrap();
    let row = conn.last_insert_rowid();
    index(conn, row, &record).unwrap();
    let mut rests = conn.prepare_cached("INSERT OR IGNORE INTO task_conversations VALUES (?1, ?2)").unwrap();
    rests.execute([row, chat]).unwrap();
    if chance.below(10) == 0 {
        rests
            .execute([row, i64::try_from(chance.below(usize::try_from(chats).unwrap())).unwrap() + 1])
            .unwrap();
    }
}

fn record(number: i64, chat: i64, platform: &str, due: Option<i64>, chance: &mut Chance) -> Record {
    let code = chance.below(100_000);
    let name = format!("{}{}{}", chance.letter(FAMILIES), chance.letter(GIVEN), chance.letter(GIVEN));
    let place = chance.of(&PLACES);
    let (title, event, text) = if chance.below(10) < 3 {
        let title = format!("{} {} {code:05}", chance.of(&VERBS), chance.of(&NOUNS));
        let text = format!(
            "Hi {name}, please {} for room {place} before the end of the week.",
            title.to_lowercase()
        );
        (title, chance.of(&NOUNS), text)
    } else {
        let title = format!("{}{}{code:05}", chance.of(&DOINGS), chance.of(&THINGS));
        let text = format!("{name}老师：请{title}，在{place}。");
        (title, chance.of(&THINGS), text)
    };
    let key = format!("{platform}:1:{chat}:{number}");
    let day = due.map(|due| jiff::Timestamp::from_millisecond(due).unwrap().strftime("%Y-%m-%d").to_string());
    let conversation = json!({"id": chat.to_string(), "name": null, "type": "group"});
    let subject: Vec<String> = (0..TASKS_OF_A_CHAT).map(|at| format!("{platform}:1:{chat}:{at}")).collect();
    let record: Value = json!({
        "title": title, "event": event,
        "priority": format!("P{}", chance.below(5)), "priority_reason": "",
        "status": chance.weighed(&STATUSES), "status_by": "model", "priority_by": "model",
        "time": {"start": null, "due": day, "timezone": "Asia/Shanghai", "original": null, "check": "unresolved"},
        "people": [{"name": name, "role": null}], "location": place, "action_steps": [], "notes": "",
        "needs_review": false, "review_reasons": [],
        "source_message_keys": [key],
        "sources": [{"platform": platform, "account_id": "1", "conversation": conversation, "message_key": key,
            "message_id": null, "sender": {"id": "10001", "name": null}, "sent_at": START / 1000,
            "sent_at_local": "2026-07-01T10:00:00+08:00", "collected_at": null, "text": text, "attachments": [],
            "quotes": [], "selection": null, "source": null}],
        "attachment_evidence": [],
        "owner": {"platform": platform, "account_id": "1", "conversation": conversation},
        "context": {"group_id": "g_sqopbyz4pnz5xpx4l4mqf6ugli", "subject": subject, "history": [],
            "continuity": ["proven"]},
        "processing": {"rules_file": "rules.md", "rules_sha256": "0".repeat(64), "model": "played",
            "settings_fp": "0".repeat(64), "content_fp": ["0".repeat(64)],
            "time": "2026-11-30T14:40:45.203+08:00", "times_version": 1, "usage": {}},
    });
    serde_json::from_value(record).unwrap()
}
