//! What the words around a wording of time say of it: a deadline, a beginning, an event, no time at all.
//!
//! Only the clause counts, and of it a bounded number of letters.

use super::cursor::{any, at, lit, space, word};
use super::phrase::Phrase;

/// How many letters before and behind a wording are looked at.
const BEFORE: usize = 24;
const BEHIND: usize = 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Something is due then: 前, 截止, by.
    pub deadline: bool,
    /// The mark says "before": a stretch ends where it begins.
    pub before: bool,
    /// Something is to be done then: 交, submit.
    pub duty: bool,
    /// It begins then or later: 起, 之后, from.
    pub start: bool,
    /// It begins later only: 之后, after.
    pub after: bool,
    /// Something takes place then: 开会, exam.
    pub event: bool,
    /// It is not then.
    pub negated: bool,
    /// It replaces what was said before: 改到, moved to.
    pub change: bool,
    /// It is what held before: 原定, instead of.
    pub former: bool,
}

/// The letters of the clause before a wording and behind it.
struct Around {
    before: String,
    behind: String,
}

fn is_stop(letter: char) -> bool {
    matches!(letter, '\n' | ',' | '。' | '!' | '?' | ';' | '…')
}

impl Around {
    fn new(t: &[char], phrase: &Phrase, previous: usize, next: usize) -> Self {
        let floor = previous.max(phrase.from.saturating_sub(BEFORE));
        let from = (floor..phrase.from)
            .rev()
            .find(|&i| is_stop(t[i]) || (t[i] == '.' && at(t, i + 1) == ' '))
            .map_or(floor, |i| i + 1);
        let ceiling = next.min(phrase.to + BEHIND).min(t.len());
        let to = (phrase.to..ceiling)
            .find(|&i| is_stop(t[i]) || (t[i] == '.' && at(t, i + 1) == ' '))
            .unwrap_or(ceiling);
        Self { before: t[from..phrase.from].iter().collect(), behind: t[phrase.to..to].iter().collect() }
    }

    /// Whether the words before end with one of these, white space and fillers aside.
    fn ends(&self, words: &[&str]) -> bool {
        let before = self.before.trim_end_matches([' ', ':', '在', '于', '"', '“', '「', '(']);
        words.iter().any(|word| ends_with_word(before, word))
    }

    fn holds_before(&self, words: &[&str]) -> bool {
        words.iter().any(|word| holds_word(&self.before, word))
    }

    fn holds_behind(&self, words: &[&str]) -> bool {
        words.iter().any(|word| holds_word(&self.behind, word))
    }

    fn begins(&self, words: &[&str]) -> bool {
        let behind = self.behind.trim_start_matches([' ', '的', ')', '"', '”', '」', ':']);
        words.iter().any(|word| begins_with_word(behind, word))
    }
}

fn is_latin(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word)
        .is_some_and(|rest| !is_latin(word) || !rest.ends_with(|letter: char| letter.is_ascii_alphanumeric()))
}

fn begins_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| {
        !is_latin(word) || !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric())
    })
}

fn holds_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !is_latin(word) || {
            let free = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_ascii_alphanumeric());
            free(text[..at].chars().next_back()) && free(text[at + word.len()..].chars().next())
        }
    })
}

const NOT_LATER: &[&str] = &[
    "不晚于",
    "不迟于",
    "不得晚于",
    "不得迟于",
    "不能晚于",
    "不能迟于",
    "不要晚于",
    "不要迟于",
    "不超过",
    "不得超过",
    "别晚于",
    "别超过",
    "不要超过",
    "no later than",
    "not later than",
    "do not exceed",
];

const DEADLINE_BEFORE: &[&str] = &[
    "截止",
    "截至",
    "截止到",
    "截至到",
    "最晚",
    "最迟",
    "至迟",
    "最晚到",
    "赶在",
    "赶到",
    "务必在",
    "by",
    "before",
    "until",
    "till",
    "til",
    "due",
    "due on",
    "due by",
    "due at",
    "by the",
    "ddl",
    "deadline",
    "by around",
    "no later than",
    "expires",
    "expires on",
    "closes",
    "closes on",
    "ends",
    "ends on",
    "ends at",
    "close of",
    "截稿",
    "之前",
    "最后期限",
    "限期",
    "期限",
    "due date",
];

const DEADLINE_BEHIND: &[&str] = &[
    "之前",
    "以前",
    "或之前",
    "及之前",
    "及以前",
    "前",
    "截止",
    "截至",
    "截稿",
    "止",
    "到期",
    "为止",
    "之内",
    "以内",
    "内",
    "ddl",
    "deadline",
    "due",
    "结束",
    "关闭",
    "下线",
    "封榜",
    "at the latest",
    "latest",
    "or earlier",
    "or before",
];

/// What makes 前 part of another word.
const NO_BEFORE: &[&str] = &[
    "前往", "前台", "前端", "前面", "前提", "前后", "前排", "前线", "前辈", "前夕", "前者", "前任", "前一",
    "前几", "前两", "前三",
];

const EVENTS: &[&str] = &[
    "开会",
    "会议",
    "例会",
    "班会",
    "大会",
    "晨会",
    "周会",
    "组会",
    "见面会",
    "会",
    "考试",
    "笔试",
    "面试",
    "复试",
    "考",
    "上课",
    "课",
    "讲座",
    "答辩",
    "聚餐",
    "聚会",
    "集合",
    "出发",
    "彩排",
    "排练",
    "比赛",
    "决赛",
    "初赛",
    "见面",
    "见",
    "碰头",
    "碰面",
    "举行",
    "举办",
    "召开",
    "开始",
    "开幕",
    "开场",
    "直播",
    "活动",
    "培训",
    "体检",
    "约",
    "吃饭",
    "火锅",
    "起飞",
    "发车",
    "到账",
    "开放",
    "开赛",
    "值班",
    "放假",
    "开学",
    "meeting",
    "meet",
    "call",
    "exam",
    "test",
    "interview",
    "class",
    "lecture",
    "lunch",
    "dinner",
    "breakfast",
    "party",
    "start",
    "starts",
    "begins",
    "standup",
    "sync",
    "appointment",
    "event",
    "session",
    "kick-off",
    "kickoff",
    "webinar",
    "seminar",
    "rehearsal",
    "demo",
    "review",
    "flight",
    "train",
    "presentation",
];

const DUTIES: &[&str] = &[
    "交", "提交", "上交", "完成", "做完", "写完", "弄完", "发我", "发给", "发到", "发出", "给我", "给你",
    "填", "报名", "报到", "缴", "还", "回复", "反馈", "汇总", "截", "搞定", "上报", "上传", "确认", "付款",
    "到期", "归还", "submit", "hand in", "send", "finish", "deliver", "return", "complete", "turn in", "pay",
    "reply", "respond", "upload", "file",
];

const NEGATIONS: &[&str] = &[
    "不是",
    "并不是",
    "并非",
    "不在",
    "不用",
    "不必",
    "无需",
    "不需要",
    "不要",
    "别",
    "不再是",
    "不会是",
    "不会在",
    "不是说",
    "不用等到",
    "不要等到",
    "非",
    "不等到",
    "不能等到",
    "取消",
    "取消了",
    "不改到",
    "没说",
    "不再",
    "不定在",
    "没定在",
    "不安排",
    "instead of",
    "rather than",
    "cancel",
    "canceled",
    "cancelled",
    "except",
    "except on",
    "不存在",
    "除了",
];

const NEGATIONS_BEHIND: &[&str] = &[
    "不用交",
    "不必交",
    "无需",
    "不用提交",
    "不用",
    "不必",
    "不需要",
    "不交",
    "不开会",
    "不开了",
    "不上课",
    "不上",
    "不考",
    "不算",
    "不行",
    "不截止",
    "不是截止",
    "不再",
    "没课",
    "没空",
    "没时间",
    "不收",
    "取消",
    "作废",
    "来不及",
    "不作数",
    "不举行",
    "不举办",
    "不去了",
    "is canceled",
    "is cancelled",
    "was cancelled",
    "was canceled",
    "cancelled",
    "canceled",
    "called off",
    "is off",
    "isn't",
    "is not",
    "doesn't work",
    "does not work",
    "won't work",
    "no longer",
];

const NO_NEGATION_BEHIND: &[&str] =
    &["不用担心", "不用急", "不用谢", "不用客气", "不见不散", "不变", "不要忘", "不能迟", "不上班"];

const CHANGES: &[&str] = &[
    "改到",
    "改到了",
    "改成",
    "改成了",
    "改为",
    "改至",
    "改在",
    "推迟到",
    "推迟到了",
    "推迟至",
    "延到",
    "延期到",
    "延期至",
    "延长到",
    "延长至",
    "延至",
    "延后到",
    "延后至",
    "提前到",
    "提前到了",
    "提前至",
    "调到",
    "调整到",
    "调整为",
    "调整至",
    "挪到",
    "挪到了",
    "挪至",
    "换到",
    "换成",
    "顺延到",
    "顺延至",
    "变更为",
    "变更到",
    "更改为",
    "更正为",
    "更新为",
    "应为",
    "应该是",
    "而是",
    "变成",
    "定到",
    "现定",
    "移到",
    "移至",
    "宽限到",
    "宽限至",
    "moved to",
    "moved it to",
    "move it to",
    "moving it to",
    "pushed to",
    "pushed back to",
    "push it to",
    "postponed to",
    "postponed until",
    "postponed till",
    "rescheduled to",
    "rescheduled for",
    "changed to",
    "shifted to",
    "delayed to",
    "delayed until",
    "brought forward to",
    "extended to",
    "extended until",
    "but",
    "but rather",
    "it's now",
    "is now",
    "now due",
    "now",
    "actually",
    "correction",
];

const FORMER: &[&str] = &[
    "原定",
    "原定于",
    "原本",
    "原来",
    "原来是",
    "之前定的",
    "原计划",
    "原先",
    "本来",
    "本来是",
    "本来定",
    "originally",
    "was",
    "used to be",
    "由",
    "moved from",
    "rescheduled from",
    "postponed from",
    "changed from",
    "pushed from",
];

/// Words with "not" before that do not deny the time: not until, don't forget.
const NO_DENIAL: &[&str] = &[
    "forget", "miss", "late", "later", "worry", "hesitate", "only", "sure", "accepted", "exceed", "delay",
    "if", "whether", "or not", "why not",
];

fn denied_in_english(around: &Around) -> bool {
    let not = around.holds_before(&[
        "not",
        "no longer",
        "never",
        "without",
        "cannot",
        "no need",
        "isn't",
        "don't",
        "doesn't",
        "won't",
        "can't",
        "aren't",
        "wasn't",
        "needn't",
        "dont",
        "isnt",
        "wont",
        "cant",
    ]);
    not && !around.holds_before(NO_DENIAL)
}

/// Reads the marks of a wording between its neighbours.
pub(super) fn read(t: &[char], phrase: &Phrase, previous: usize, next: usize) -> Marks {
    let around = Around::new(t, phrase, previous, next);
    let mut marks = Marks::default();
    let not_later = around.ends(NOT_LATER) || around.holds_before(NOT_LATER);
    let behind_before = around.begins(&["之前", "以前", "前", "或之前", "及之前", "及以前", "或以前"])
        && !around.begins(NO_BEFORE);
    let inclusive = around.begins(&["或之前", "及之前", "及以前", "或以前"]);
    marks.before = (behind_before && !inclusive) || around.ends(&["before", "赶在"]);
    let last_words = around.holds_before(&[
        "截止",
        "截至",
        "deadline",
        "ddl",
        "due",
        "最后期限",
        "最晚",
        "最迟",
        "due date",
    ]);
    let directly = behind_before
        || (around.begins(DEADLINE_BEHIND)
            && !around.begins(&["前", "内容", "内部", "内存", "止咳", "结束后", "结束之后"]));
    let by = around.ends(DEADLINE_BEFORE) || last_words;
    marks.deadline = not_later
        || directly
        || by
        || around.holds_behind(&["截止", "截至", "ddl", "deadline", "最后期限", "到期", "due"])
            && !around.holds_behind(&["due to"]);
    let after = after(t, phrase.to);
    marks.after = after || around.ends(&["after"]);
    marks.start = (after
        || from_here(t, phrase.to)
        || around.ends(&[
            "从",
            "自",
            "自从",
            "from",
            "after",
            "since",
            "starting",
            "starting from",
            "starting on",
            "beginning",
            "as of",
            "not until",
            "not before",
        ]))
        && !directly;
    if marks.start
        && after
        && (around
            .holds_behind(&["不再", "不收", "不予", "不接", "无法", "关闭", "逾期", "作废", "拒收", "截止"]))
        || (around.ends(&["after"]) && denied_in_english(&around))
    {
        marks.deadline = true;
        marks.start = false;
    }
    // The word for what takes place stands behind; of two the nearer one counts.
    let place = |words: &[&str]| {
        words
            .iter()
            .filter(|word| holds_word(&around.behind, word))
            .filter_map(|word| around.behind.find(word))
            .min()
    };
    let (event, duty) = (place(EVENTS), place(DUTIES));
    marks.event = !marks.deadline && event.is_some_and(|event| duty.is_none_or(|duty| event < duty))
        || (!marks.deadline && duty.is_none() && around.holds_before(EVENTS_BEFORE));
    marks.duty = duty.is_some_and(|duty| duty <= 12 && event.is_none_or(|event| duty < event));
    let change = around.ends(CHANGES) || changed(&around);
    marks.change = change;
    marks.former = around.ends(FORMER) && !change;
    marks.negated = !not_later
        && !marks.start_denied(&around)
        && ((around.ends(NEGATIONS) && !around.ends(&["不要忘", "别忘"]) && !(around.ends(&["除了"])))
            || (denied_in_english(&around)
                && !change
                && !(marks.deadline && around.ends(&["after", "before"])))
            || negated_behind(&around, directly));
    marks
}

const EVENTS_BEFORE: &[&str] = &[
    "开会时间",
    "会议时间",
    "考试时间",
    "面试时间",
    "上课时间",
    "活动时间",
    "集合时间",
    "开始时间",
    "出发时间",
    "讲座时间",
    "开会",
    "考试",
    "面试",
    "答辩",
    "聚餐",
    "集合",
    "出发",
    "见面",
    "meeting",
    "exam",
    "interview",
    "meet",
    "lunch",
    "dinner",
    "call",
    "party",
    "class",
    "appointment",
    "starts",
    "begins",
];

impl Marks {
    /// "not until Friday" begins on Friday.
    fn start_denied(self, around: &Around) -> bool {
        self.start && around.ends(&["not until", "not before"])
    }
}

fn changed(around: &Around) -> bool {
    // "由周四改到了周五", "moved the meeting to"
    let verb = around.holds_before(&[
        "moved",
        "rescheduled",
        "postponed",
        "pushed",
        "changed",
        "shifted",
        "delayed",
        "extended",
    ]);
    verb && around.ends(&["to", "until", "till", "for"]) && !around.holds_before(&["from"])
}

fn negated_behind(around: &Around, directly: bool) -> bool {
    if around.holds_behind(NO_NEGATION_BEHIND) {
        return false;
    }
    if directly {
        return around.holds_behind(&["不用", "不必", "无需", "不需要", "不是截止"]);
    }
    around.holds_behind(NEGATIONS_BEHIND)
}

/// 后, 之后, 以后 directly behind.
fn after(t: &[char], i: usize) -> bool {
    let i = space(t, i);
    any(t, i, &["之后", "以后", "过后", "或之后", "及之后", "及以后"]).is_some()
        || lit(t, i, "后")
            .is_some_and(|end| any(t, end, &["勤", "台", "面", "端", "天", "续", "果", "排"]).is_none())
        || ["or later", "or after", "onwards", "onward"].iter().any(|words| word(t, i, words).is_some())
}

/// 起, 开始 directly behind.
fn from_here(t: &[char], i: usize) -> bool {
    let i = space(t, i);
    lit(t, i, "起").is_some_and(|end| any(t, end, &["床", "来", "飞", "立", "身", "跑"]).is_none())
        || any(t, i, &["开始", "开抢", "开售", "开放"]).is_some()
}
