//! What the words around a wording of time say of it: a deadline, a beginning, an event, no time at all.
//!
//! Only the clause counts, and of it a bounded number of letters.

use super::cursor::{any, at, lit, space, word};
use super::phrase::Phrase;
use super::said::{Part, Point, Said};
use super::words::{
    CHANGES, CLOSED, DEADLINE_BEFORE, DEADLINE_BEHIND, DUTIES, EVENTS, EVENTS_BEFORE, FORMER, MOVED,
    NEGATIONS, NEGATIONS_BEHIND, NO_BEFORE, NO_DENIAL, NO_NEGATION_BEHIND, NOT_LATER, NOT_UNTIL, PARTED,
    STARTS,
};

/// How many letters before and behind a wording are looked at.
const BEFORE: usize = 24;
const BEHIND: usize = 20;

/// Each says one thing of its own, and any of them may hold together.
#[allow(clippy::struct_excessive_bools)]
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
    /// What takes place has its part of the day: 起床, 晚自习.
    pub part: Option<Part>,
}

/// The letters of the clause on one side of a wording.
struct Side {
    text: String,
    /// Which of the two kinds of words it can hold.
    latin: bool,
    han: bool,
}

impl Side {
    fn new(letters: &[char]) -> Self {
        Self {
            text: letters.iter().collect(),
            latin: letters.iter().any(char::is_ascii_alphabetic),
            han: letters.iter().any(|letter| !letter.is_ascii()),
        }
    }

    /// Where the first of these words stands.
    fn find(&self, words: &[&str]) -> Option<usize> {
        words.iter().filter_map(|word| self.find_word(word)).min()
    }

    fn holds(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.find_word(word).is_some())
    }

    fn find_word(&self, word: &str) -> Option<usize> {
        let latin = is_latin(word);
        if !(if latin { self.latin } else { self.han }) {
            return None;
        }
        if !latin {
            return self.text.find(word);
        }
        let free = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_ascii_alphanumeric());
        let mut places = self.text.match_indices(word).map(|(at, _)| at);
        places.find(|&at| {
            free(self.text[..at].chars().next_back()) && free(self.text[at + word.len()..].chars().next())
        })
    }
}

/// The clause before a wording and behind it.
struct Around {
    before: Side,
    behind: Side,
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
        Self { before: Side::new(&t[from..phrase.from]), behind: Side::new(&t[phrase.to..to]) }
    }

    /// Whether the words before end with one of these, white space and fillers aside.
    fn ends(&self, words: &[&str]) -> bool {
        let before = self.before.text.trim_end_matches([' ', ':', '在', '于', '"', '“', '「', '(']);
        words.iter().any(|word| ends_with_word(before, word))
    }

    fn holds_before(&self, words: &[&str]) -> bool {
        self.before.holds(words)
    }

    fn holds_behind(&self, words: &[&str]) -> bool {
        self.behind.holds(words)
    }

    fn begins(&self, words: &[&str]) -> bool {
        let behind = self.behind.text.trim_start_matches([' ', '的', ')', '"', '”', '」', ':']);
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
    let by = (around.ends(DEADLINE_BEFORE) && !around.ends(NOT_UNTIL)) || last_words;
    marks.deadline = not_later
        || directly
        || by
        || around.holds_behind(&["截止", "截至", "ddl", "deadline", "最后期限", "到期", "due"])
            && !around.holds_behind(&["due to"]);
    let after = after(t, phrase.to);
    marks.after = after || around.ends(&["after"]);
    marks.start =
        (after || from_here(t, phrase.to) || around.ends(STARTS) || around.ends(NOT_UNTIL)) && !directly;
    // "After Friday nothing is taken": Friday is the end.
    let closed =
        (after && around.holds_behind(CLOSED)) || (around.ends(&["after"]) && denied_in_english(&around));
    if closed {
        marks.deadline = true;
        marks.start = false;
    }
    // The word for what takes place stands behind; of two the nearer one counts.
    let (event, duty) = (around.behind.find(EVENTS), around.behind.find(DUTIES));
    marks.event = !marks.deadline && event.is_some_and(|event| duty.is_none_or(|duty| event < duty))
        || (!marks.deadline && duty.is_none() && around.holds_before(EVENTS_BEFORE));
    marks.duty = duty.is_some_and(|duty| duty <= 12 && event.is_none_or(|event| duty < event));
    if matches!(phrase.said, Said::Point(Point { clock: Some(_), part: None, .. })) {
        marks.part = PARTED.iter().find(|(words, _)| around.holds_behind(words)).map(|(_, part)| *part);
    }
    let change = around.ends(CHANGES) || changed(&around);
    marks.change = change;
    // "extended from July 3 to July 10"
    let moved = around.holds_before(MOVED) && around.ends(&["from"]);
    marks.former = (moved || around.ends(FORMER)) && !change;
    marks.negated = !not_later
        && !closed
        && !marks.start_denied(&around)
        && ((around.ends(NEGATIONS) && !around.ends(&["不要忘", "别忘"]))
            || (denied_in_english(&around)
                && !change
                && !(marks.deadline && around.ends(&["after", "before"])))
            || negated_behind(&around, directly));
    marks
}

impl Marks {
    /// "not until Friday" begins on Friday.
    fn start_denied(self, around: &Around) -> bool {
        self.start && around.ends(NOT_UNTIL)
    }
}

fn changed(around: &Around) -> bool {
    // "moved the meeting to"
    around.holds_before(MOVED)
        && around.ends(&["to", "until", "till", "for"])
        && !around.holds_before(&["from"])
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
