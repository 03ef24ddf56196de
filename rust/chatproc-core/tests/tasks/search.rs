//! Search finds what stands there, whatever the script or the query's characters, and its pages add up.

use chatproc_core::error::Error;
use chatproc_core::store::search::{Bounds, Query, search, search_within};
use chatproc_core::store::tasks::update_status;
use chatproc_core::task::Record;
use icu_casemap::CaseMapper;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{NOW, World, draft, request, with};

/// A world with one task for each of these changes to a draft, titled by its number.
fn tasks(changes: &[Value]) -> World {
    let mut world = World::new();
    let conversation = world.conversation("qq", "1");
    world.message(conversation, "m1", "源文 Source");
    let segment = world.segment(&["m1"]);
    let plain = json!({"event": "", "people": [], "location": null});
    let drafts: Vec<Value> = changes
        .iter()
        .enumerate()
        .map(|(number, change)| {
            with(
                with(draft(&["m1"]), with(plain.clone(), json!({"title": format!("no{number}")}))),
                change.clone(),
            )
        })
        .collect();
    world.commit(&[segment], &drafts).unwrap();
    world
}

fn found(world: &World, query: Value) -> Vec<String> {
    let page = world.search(with(json!({"limit": 1000, "sort": "created"}), query));
    assert_eq!((page.total, page.at_least), (i64::try_from(page.tasks.len()).unwrap(), false));
    page.tasks.into_iter().rev().map(|task| task.title).collect()
}

#[test]
fn one_and_two_characters_of_any_field_are_found() {
    let world = tasks(&[
        json!({"event": "实验报告"}),
        json!({"notes": "报"}),
        json!({"location": "告示栏"}),
        json!({"people": [{"name": "李报告"}]}),
        json!({"title": "🎉报 告"}),
    ]);
    for (query, wanted) in [
        ("报告", vec!["no0", "no3"]),
        ("报", vec!["no0", "no1", "no3", "🎉报 告"]),
        ("告", vec!["no0", "no2", "no3", "🎉报 告"]),
        ("验报告", vec!["no0"]),
        ("🎉", vec!["🎉报 告"]),
        ("报 告", vec!["no0", "no3", "🎉报 告"]),
        ("栏 示", vec!["no2"]),
        ("栏告", vec![]),
        ("源文", vec!["no0", "no1", "no2", "no3", "🎉报 告"]),
        ("文 source", vec!["no0", "no1", "no2", "no3", "🎉报 告"]),
        ("  \u{3000} ", vec!["no0", "no1", "no2", "no3", "🎉报 告"]),
    ] {
        assert_eq!(found(&world, json!({"query": query})), wanted, "{query:?}");
    }
}

#[test]
fn case_is_folded_whole_and_without_a_locale() {
    let world = tasks(&[
        json!({"notes": "Straße"}),
        json!({"notes": "STRASSE"}),
        json!({"notes": "TITLE İ"}),
        json!({"notes": "ΣΊΣΥΦΟΣ"}),
    ]);
    for (query, wanted) in [
        ("strasse", vec!["no0", "no1"]),
        ("STRAẞE", vec!["no0", "no1"]),
        ("ß", vec!["no0", "no1"]),
        ("title", vec!["no2"]),
        ("TITLE", vec!["no2"]),
        ("tıtle", vec![]),
        ("σίσυφος", vec!["no3"]),
    ] {
        assert_eq!(found(&world, json!({"query": query})), wanted, "{query:?}");
    }
}

#[test]
fn a_querys_syntax_is_only_text() {
    let texts = [
        "say \"hi\"",
        "100%",
        "a_b",
        "a*b",
        "x AND y",
        "it's",
        "NEAR(a b)",
        "-minus",
        "^caret",
        "texts:x",
        "nul\0here",
    ];
    let world = tasks(&texts.map(|text| json!({"notes": text})));
    for (query, wanted) in [
        ("\"", vec!["no0"]),
        ("\"hi\"", vec!["no0"]),
        ("%", vec!["no1"]),
        ("0%", vec!["no1"]),
        ("_", vec!["no2"]),
        ("a_b", vec!["no2"]),
        ("*", vec!["no3"]),
        ("a*", vec!["no3"]),
        ("AND", vec!["no4"]),
        ("'", vec!["no5"]),
        ("near(", vec!["no6"]),
        ("-m", vec!["no7"]),
        ("^", vec!["no8"]),
        ("texts:", vec!["no9"]),
        ("l\0h", vec!["no10"]),
        ("\0", vec!["no10"]),
        ("' OR 1=1 --", vec![]),
        ("\"a\" OR \"b\"", vec![]),
        ("}", vec![]),
    ] {
        assert_eq!(found(&world, json!({"query": query})), wanted, "{query:?}");
    }
    let many = vec!["a"; 500].join(" ");
    assert_eq!(found(&world, json!({"query": many})), ["no0", "no2", "no3", "no4", "no6", "no8"]);
}

#[test]
fn filters_are_alternatives_within_and_all_of_them_together() {
    let mut world = tasks(&[
        json!({"people": [{"name": "Wang Li"}], "priority": "P0", "time": {"due": "2026-07-03"}}),
        json!({"people": [{"name": "赵四"}], "priority": "P1", "time": {"due": "2026-07-03T23:59:59+08:00"}, "notes": "wang"}),
        json!({"priority": "P1", "status": "cancelled", "time": {"due": "2026-07-04T00:00:00+08:00"}}),
        json!({"priority": "P4", "time": {"due": null}}),
    ]);
    for (filter, wanted) in [
        (json!({"people": ["wang"]}), vec!["no0"]),
        (json!({"people": ["g L"]}), vec!["no0"]),
        (json!({"people": ["四", "li"]}), vec!["no0", "no1"]),
        (json!({"people": [" "]}), vec!["no0", "no1", "no2", "no3"]),
        (json!({"people": ["王"]}), vec![]),
        (json!({"people": ["四"], "query": "wang"}), vec!["no1"]),
        (json!({"priority": ["P1", "P4", "P1"]}), vec!["no1", "no2", "no3"]),
        (json!({"priority": ["P1"], "status": ["open"]}), vec!["no1"]),
        (json!({"status": ["open", "cancelled"]}), vec!["no0", "no1", "no2", "no3"]),
        (json!({"due_to": "2026-07-03"}), vec!["no0", "no1"]),
        (json!({"due_to": "2026-07-02"}), vec![]),
        (json!({"due_from": "2026-07-04"}), vec!["no2"]),
        (json!({"due_from": "2026-07-03", "due_to": "2026-07-03T23:59:59+08:00"}), vec!["no1"]),
        (json!({"updated_from": "2026-07-02"}), vec!["no0", "no1", "no2", "no3"]),
        (json!({"updated_from": "2026-07-03"}), vec![]),
    ] {
        assert_eq!(found(&world, filter.clone()), wanted, "{filter}");
    }
    let id = world.search(json!({"query": "no3"})).tasks.remove(0).task_id;
    update_status(&mut world.conn, &request(&id, "completed", "r"), NOW + 86_400_000, &world.zone).unwrap();
    assert_eq!(found(&world, json!({"updated_from": "2026-07-03"})), ["no3"]);
    assert_eq!(found(&world, json!({"status": ["completed"], "query": "no3"})), ["no3"]);
    let order = |sort| {
        world.search(json!({"sort": sort})).tasks.into_iter().map(|task| task.title).collect::<Vec<_>>()
    };
    assert_eq!(order("due"), ["no1", "no0", "no2", "no3"], "a date stands for its end, no date comes last");
    assert_eq!(order("priority"), ["no0", "no1", "no2", "no3"]);
    assert_eq!(order("updated"), ["no3", "no2", "no1", "no0"]);
    assert_eq!(order("created"), ["no3", "no2", "no1", "no0"]);
}

#[test]
fn what_cannot_be_understood_is_refused() {
    let world = tasks(&[json!({}), json!({})]);
    let cursor = world.search(json!({"limit": 1})).cursor.unwrap();
    for query in [
        json!({"limit": 0}),
        json!({"limit": 1001}),
        json!({"offset": -1}),
        json!({"sort": "title"}),
        json!({"status": ["done"]}),
        json!({"priority": ["P9"]}),
        json!({"due_from": "tomorrow"}),
        json!({"cursor": ""}),
        json!({"cursor": "x"}),
        json!({"cursor": "WzFd"}),
        json!({"cursor": cursor, "sort": "created"}),
        json!({"query": "长".repeat(1001)}),
    ] {
        let query: Query = serde_json::from_value(query).unwrap();
        assert!(matches!(search(&world.conn, &query, &world.zone), Err(Error::Invalid(_))), "{query:?}");
    }
}

#[test]
fn the_index_follows_the_record() {
    let mut world = World::new();
    let id = world.with_a_task("m1", "旧文");
    assert_eq!(world.search(json!({"query": "旧文"})).total, 1);
    world.edit("m1", "新文");
    let segment = world.segment(&["m1"]);
    world.commit(&[segment], &[crate::world::update(draft(&["m1"]), &id, 1)]).unwrap();
    assert_eq!(world.search(json!({"query": "旧文"})).total, 0);
    assert_eq!(world.search(json!({"query": "新文"})).total, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pages_are_complete_and_without_doubles_under_ties(
        given in prop::collection::vec((0u8..3, 0u8..4, any::<bool>()), 1..24),
        limit in 1i64..6,
    ) {
        let changes: Vec<Value> = given.iter().map(|&(priority, due, open)| json!({
            "priority": format!("P{priority}"),
            "time": {"due": if due == 0 { None } else { Some(format!("2026-07-0{due}")) }},
            "status": if open { "open" } else { "cancelled" },
        })).collect();
        let world = tasks(&changes);
        for sort in ["due", "priority", "updated", "created"] {
            let whole: Vec<String> = world.search(json!({"sort": sort, "limit": 1000})).tasks.into_iter().map(|task| task.task_id).collect();
            let mut paged = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let page = world.search(json!({"sort": sort, "limit": limit, "cursor": cursor}));
                prop_assert_eq!(page.total, i64::try_from(given.len()).unwrap());
                paged.extend(page.tasks.into_iter().map(|task| task.task_id));
                cursor = page.cursor;
                if cursor.is_none() { break }
            }
            prop_assert_eq!(&paged, &whole);
            prop_assert_eq!(paged.len(), given.len());
            let offset = world.search(json!({"sort": sort, "limit": limit, "offset": 2}));
            let offset: Vec<String> = offset.tasks.into_iter().map(|task| task.task_id).collect();
            let wanted: Vec<String> = whole.iter().skip(2).take(usize::try_from(limit).unwrap()).cloned().collect();
            prop_assert_eq!(offset, wanted);
        }
    }

    #[test]
    fn search_finds_exactly_the_folded_substrings(
        notes in prop::collection::vec("[aAbßSsﬁİı报告%_\"*\u{0}🎉 ]{0,6}", 1..8),
        term in "[aAbßSsﬁİı报告%_\"*\u{0}🎉]{1,3}",
    ) {
        let changes: Vec<Value> = notes.iter().map(|notes| json!({"notes": notes, "title": "·"})).collect();
        let mut world = World::new();
        let conversation = world.conversation("qq", "1");
        world.message(conversation, "m1", "");
        let segment = world.segment(&["m1"]);
        let plain = json!({"event": "", "people": [], "location": null});
        let drafts: Vec<Value> = changes.iter().map(|change| with(with(draft(&["m1"]), plain.clone()), change.clone())).collect();
        world.commit(&[segment], &drafts).unwrap();
        let fold = |text: &str| CaseMapper::new().fold_string(text).into_owned();
        let wanted = notes.iter().filter(|notes| fold(notes).contains(&fold(&term))).count();
        prop_assert_eq!(world.search(json!({"query": term})).total, i64::try_from(wanted).unwrap());
    }
}

// ── against a search that looks at everything ──────────────────────────────────────────────────────

/// Tasks of several chats, each with a source or two, some changed by a user later.
fn rooms(given: &[Made]) -> World {
    let mut world = World::new();
    let chats = [("qq", "1"), ("qq", "2"), ("wechat", "1")];
    let numbers = chats.map(|(platform, id)| world.conversation(platform, id));
    for (at, number) in numbers.into_iter().enumerate() {
        world.message(number, &format!("m{at}"), ["报告 12", "Report 7", "x"][at]);
    }
    let mut ids = Vec::new();
    for chat in 0..3 {
        let key = format!("m{chat}");
        let change = |made: &Made| {
            json!({
                "title": made.title, "location": null, "people": [{"name": made.person}],
                "priority": format!("P{}", made.priority), "status": if made.cancelled { "cancelled" } else { "open" },
                "time": {"due": if made.due == 0 { None } else { Some(format!("2026-07-0{}", made.due)) }},
            })
        };
        let of_chat = given.iter().filter(|made| made.chat == chat);
        let drafts: Vec<Value> = of_chat
            .enumerate()
            .map(|(at, made)| with(with(draft(&[&key]), change(made)), json!({"event": format!("e{at}")})))
            .collect();
        let segment = world.segment(&[&key]);
        ids.extend(world.commit(&[segment], &drafts).unwrap().tasks.into_iter().map(|it| it.task_id));
    }
    for (at, id) in ids.iter().enumerate().filter(|(at, _)| given.get(*at).is_some_and(|made| made.done)) {
        let later = NOW + 86_400_000 * i64::try_from(at % 2 + 1).unwrap();
        update_status(&mut world.conn, &request(id, "completed", &format!("r{at}")), later, &world.zone)
            .unwrap();
    }
    world
}

#[derive(Clone, Debug)]
struct Made {
    chat: u8,
    title: String,
    person: String,
    priority: u8,
    cancelled: bool,
    done: bool,
    due: u8,
}

fn made() -> impl Strategy<Value = Made> {
    let place = (0u8..3, "[报告12aAB ]{1,5}[0-9]{2}", "王[一二]?|Li", 0u8..3);
    (place, any::<bool>(), any::<bool>(), 0u8..5).prop_map(
        |((chat, title, person, priority), cancelled, done, due)| Made {
            chat,
            title,
            person,
            priority,
            cancelled,
            done,
            due,
        },
    )
}

fn asked() -> impl Strategy<Value = Value> {
    use prop::{option, sample::select};
    let text = option::of("[报告12ab]{1,3}( [0-9])?");
    let names = prop::collection::vec("王|一|l|李", 0..2);
    let several = |words: Vec<&'static str>, most: usize| prop::collection::vec(select(words), 0..=most);
    let statuses = several(vec!["open", "completed", "cancelled"], 2);
    let priorities = several(vec!["P0", "P1", "P2"], 2);
    let places = (option::of(select(vec!["qq", "wechat", "none"])), option::of(select(vec!["1", "2"])));
    let day = || option::of(select(vec!["2026-07-01", "2026-07-02", "2026-07-03"]));
    let sort = select(vec!["due", "priority", "updated", "created"]);
    (text, names, statuses, priorities, places, (day(), day(), day()), sort).prop_map(
        |(query, people, status, priority, (platform, conversation), (due_from, due_to, updated_from), sort)| {
            json!({"query": query, "people": people, "status": status, "priority": priority, "platform": platform,
                   "conversation": conversation, "due_from": due_from, "due_to": due_to,
                   "updated_from": updated_from, "sort": sort})
        },
    )
}

/// Every task that the query means, in its order, found by reading each record.
fn slowly(world: &World, query: &Query) -> Vec<i64> {
    let sql = "SELECT task, record, status, priority, due_at, updated_at FROM tasks ORDER BY task";
    let mut rows = world.conn.prepare(sql).unwrap();
    let fold = |text: &str| CaseMapper::new().fold_string(text).into_owned();
    let edge = |day: &Option<String>, hours: i64| {
        day.as_ref().map(|day| {
            let start = jiff::civil::date(2026, 7, day[8..].parse().unwrap()).at(0, 0, 0, 0);
            start.in_tz("Asia/Shanghai").unwrap().timestamp().as_millisecond() + hours * 3_600_000
        })
    };
    let mut found = Vec::new();
    let mut rows = rows.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let record: Record = serde_json::from_str(&row.get::<_, String>(1).unwrap()).unwrap();
        let (task, due, updated): (i64, i64, i64) =
            (row.get(0).unwrap(), row.get(4).unwrap(), row.get(5).unwrap());
        let (status, priority): (String, String) = (row.get(2).unwrap(), row.get(3).unwrap());
        let named: Vec<String> = record.people.iter().map(|person| fold(&person.name)).collect();
        let mut texts = vec![fold(&record.title), fold(&record.event), fold(&record.notes)];
        texts.extend(record.location.iter().map(|it| fold(it)));
        texts.extend(record.sources.iter().map(|it| fold(&it.text)));
        texts.extend(named.iter().cloned());
        let among = |wanted: &[String], word: &str| wanted.is_empty() || wanted.iter().any(|it| it == word);
        let terms = query.query.as_deref().unwrap_or_default();
        let fits = terms.split_whitespace().all(|term| texts.iter().any(|text| text.contains(&fold(term))))
            && (query.people.is_empty()
                || query.people.iter().any(|it| named.iter().any(|name| name.contains(&fold(it)))))
            && among(&query.status, &status)
            && among(&query.priority, &priority)
            && query
                .platform
                .as_ref()
                .is_none_or(|it| record.sources.iter().any(|source| source.platform == *it))
            && query
                .conversation
                .as_ref()
                .is_none_or(|it| record.sources.iter().any(|source| source.conversation.id == *it))
            && edge(&query.due_from, 0).is_none_or(|from| due >= from && due < i64::MAX)
            && edge(&query.due_to, 24).is_none_or(|to| due < to)
            && edge(&query.updated_from, 0).is_none_or(|from| updated >= from);
        if fits {
            found.push((task, priority, due, updated));
        }
    }
    match query.sort.as_str() {
        "due" => found.sort_by_key(|it| (it.2, it.0)),
        "priority" => found.sort_by_key(|it| (it.1.clone(), it.2, it.0)),
        "updated" => found.sort_by_key(|it| std::cmp::Reverse((it.3, it.0))),
        _ => found.sort_by_key(|it| std::cmp::Reverse(it.0)),
    }
    found.into_iter().map(|it| it.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_looking_at_everything_finds_whatever_it_may_look_at(
        given in prop::collection::vec(made(), 1..12),
        asked in prop::collection::vec(asked(), 24),
        (counted, tried, walked) in (0usize..8, 0usize..4, 0usize..8),
        limit in 1i64..5,
    ) {
        let world = rooms(&given);
        for asked in asked {
            let query: Query = serde_json::from_value(with(asked, json!({"limit": limit}))).unwrap();
            let wanted = slowly(&world, &query);
            for bounds in [Bounds { counted, tried, walked }, Bounds::default()] {
                let (mut found, mut cursor) = (Vec::new(), None);
                loop {
                    let page = search_within(&world.conn, &Query { cursor, ..query.clone() }, &world.zone, bounds).unwrap();
                    let total = usize::try_from(page.total).unwrap();
                    prop_assert!(total <= wanted.len());
                    prop_assert!(page.at_least || total == wanted.len());
                    for task in page.tasks {
                        found.push(world.number("SELECT task FROM tasks WHERE task_id = ?1", &task.task_id));
                    }
                    cursor = page.cursor;
                    if cursor.is_none() { break }
                }
                prop_assert_eq!(&found, &wanted, "{:?} {:?}", query, bounds);
                let passed = search_within(&world.conn, &Query { offset: 2, ..query.clone() }, &world.zone, bounds).unwrap();
                let ids: Vec<i64> = passed.tasks.iter().map(|task| world.number("SELECT task FROM tasks WHERE task_id = ?1", &task.task_id)).collect();
                prop_assert_eq!(&ids[..], &wanted[wanted.len().min(2)..wanted.len().min(2 + usize::try_from(limit).unwrap())]);
            }
        }
    }
}
