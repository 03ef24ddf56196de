//! What a task claims of its time, held against the messages it cites.
//!
//! Pure. The wording must stand in a cited message and is counted from when that was sent; where it has one
//! meaning, that meaning is the task's time whatever a model said. Never takes one of several meanings, and
//! never lets a wording that is denied become a time.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::evidence::{Quote, check_quote};
use crate::task::{Record, TimeCheck};
use crate::timex::{self, Check, Lang, Reading, Verdict};
use crate::zone::Zone;

/// A wording that stands more often than this in one message is looked at in these places only.
const MOST_PLACES: usize = 8;
/// A day that was named in another message is looked for in so many of them.
const MOST_OTHERS: usize = 8;
/// The length of `2026-07-03`.
const DAY: usize = 10;
/// Where a statement ends, and where a part of one does.
const ENDS: &[char] = &['。', '！', '？', '!', '?', '；', ';', '\n'];
const PARTS: &[char] = &['。', '！', '？', '!', '?', '；', ';', '\n', '，', ','];

/// A message that a task cites.
#[derive(Clone, Debug, Deserialize)]
pub struct Told {
    /// Its text.
    pub text: String,
    /// Milliseconds since 1970.
    pub sent_at: i64,
    /// Whether a unit of one of its attachments, whose text is not at hand here, may hold the wording.
    #[serde(default)]
    pub unit: bool,
}

/// How a model's times and the wording stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// There is neither a time nor a wording.
    Nothing,
    /// There is a time without a wording.
    NoWording,
    /// The wording stands in no cited message.
    NotFound,
    /// The time is what the wording means.
    Agrees,
    /// There is no time, the wording means one.
    Computed,
    /// The wording is not understood.
    Unresolved,
    /// The wording has several meanings; the time is one of them, or there is none.
    Ambiguous,
    /// The wording has several meanings and the time is none of them.
    Misfit,
    /// The wording means another time.
    Contradicts,
    /// The message names the time only to deny it.
    Negated,
}

/// Words of a cited message with what they mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worded {
    /// The message's place among those given.
    pub place: usize,
    /// Its own words.
    pub original: String,
    /// What they mean.
    pub meaning: Reading,
}

/// What is to be stored of a task's time, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// As stored.
    pub time: Reading,
    /// The wording as the message has it; none when no message has it.
    pub original: Option<String>,
    /// As stored; none for a task without a time.
    pub check: Option<TimeCheck>,
    /// How model and wording stand.
    pub finding: Finding,
    /// What the wording means: once, or several times when that is open.
    pub readings: Vec<Reading>,
    /// A wording in the cited messages that means a time, where the model gave none that is found.
    pub suggestion: Option<Worded>,
    /// Cited messages that were sent after the one with the wording and mean another time.
    pub later: Vec<Worded>,
    /// What a reader of the task must know of it.
    pub note: Option<String>,
}

/// Judges the times that a model gives with the wording that it gives for them.
///
/// ```
/// use chatproc_core::claim::{Finding, Told, judge};
/// use chatproc_core::{timex::Reading, zone::Zone};
/// let zone = Zone::named("Asia/Shanghai").unwrap();
/// let told = [Told { text: "周五17:00前交".into(), sent_at: 1_782_871_200_000, unit: false }];
/// let wrong = Reading { start: None, due: Some("2026-07-10T17:00:00+08:00".into()) };
/// let judged = judge(Some("周五17:00前"), &told, &wrong, &zone);
/// assert_eq!(judged.finding, Finding::Contradicts);
/// assert_eq!(judged.time.due.as_deref(), Some("2026-07-03T17:00:00+08:00"));
/// ```
#[must_use]
pub fn judge(original: Option<&str>, told: &[Told], given: &Reading, zone: &Zone) -> Judged {
    let timeless = given.start.is_none() && given.due.is_none();
    let Some(wording) = original.map(str::trim).filter(|wording| !wording.is_empty()) else {
        let finding = if timeless { Finding::Nothing } else { Finding::NoWording };
        return Judged::standing(given, finding, told, zone);
    };
    let Some((place, own)) = found(wording, told) else {
        let mut judged = Judged::standing(given, Finding::NotFound, told, zone);
        judged.note = (!timeless).then(|| format!("Time: no source holds the words {wording:?}."));
        return judged;
    };
    let verdict = verdict(own.as_deref(), wording, place, told, given, zone);
    let mut judged = Judged::by(verdict, given, own.as_deref().unwrap_or(wording));
    judged.later = later(told, place, &judged.time, zone);
    if judged.finding == Finding::Negated {
        judged.suggestion = suggestion(told, given, zone);
    }
    judged
}

impl Judged {
    /// The model's times stand, with no wording beside them.
    fn standing(given: &Reading, finding: Finding, told: &[Told], zone: &Zone) -> Self {
        let timeless = given.start.is_none() && given.due.is_none();
        Self {
            time: given.clone(),
            original: None,
            check: (!timeless).then_some(TimeCheck::Unresolved),
            finding,
            readings: Vec::new(),
            suggestion: if finding == Finding::Nothing { None } else { suggestion(told, given, zone) },
            later: Vec::new(),
            note: None,
        }
    }

    fn by(verdict: Verdict, given: &Reading, original: &str) -> Self {
        let said = words(given);
        let (time, check, finding, readings, note) = match verdict {
            Verdict::Agrees => (given.clone(), TimeCheck::Agrees, Finding::Agrees, vec![], None),
            Verdict::Computed(meant) => {
                (meant.clone(), TimeCheck::Computed, Finding::Computed, vec![meant], None)
            }
            Verdict::Unresolved => (given.clone(), TimeCheck::Unresolved, Finding::Unresolved, vec![], None),
            Verdict::Ambiguous { readings, fits } => {
                let listed = readings.iter().map(words).collect::<Vec<_>>().join(" or ");
                let mut note = format!("Time: {original:?} can mean {listed}.");
                let open = fits || said.is_empty();
                if !open {
                    note = format!("{note} The model said {said}, which is none of these.");
                }
                let (time, finding) = if open {
                    (given.clone(), Finding::Ambiguous)
                } else {
                    (Reading::default(), Finding::Misfit)
                };
                (time, TimeCheck::Ambiguous, finding, readings, Some(note))
            }
            Verdict::Contradicts { computed, .. } => {
                let time = placed(computed, given);
                let note = format!("Time: {original:?} means {}; the model said {said}.", words(&time));
                (time.clone(), TimeCheck::Computed, Finding::Contradicts, vec![time], Some(note))
            }
            Verdict::Negated => {
                let note = (!said.is_empty())
                    .then(|| format!("Time: {original:?} denies a time; the model said {said}."));
                (Reading::default(), TimeCheck::Unresolved, Finding::Negated, vec![], note)
            }
        };
        Self {
            time,
            original: Some(original.to_owned()),
            check: Some(check),
            finding,
            readings,
            suggestion: None,
            later: Vec::new(),
            note,
        }
    }
}

/// A reading for a sentence; empty when it is none.
fn words(reading: &Reading) -> String {
    match (&reading.start, &reading.due) {
        (Some(start), Some(due)) => format!("{start} to {due}"),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => String::new(),
    }
}

/// A single time in the place, start or due, where the model has its own: which it is, the model says.
fn placed(computed: Reading, given: &Reading) -> Reading {
    let (only, begins) = match (&computed.start, &computed.due) {
        (Some(only), None) => (only.clone(), true),
        (None, Some(only)) => (only.clone(), false),
        _ => return computed,
    };
    let begins = match (&given.start, &given.due) {
        (Some(start), Some(due)) => *start == only || (begins && *due != only),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => begins,
    };
    if begins { Reading { start: Some(only), due: None } } else { Reading { start: None, due: Some(only) } }
}

/// The message, sent last, that holds a wording, and its own words; none where a unit may hold it.
fn found(wording: &str, told: &[Told]) -> Option<(usize, Option<String>)> {
    let mut places: Vec<usize> = (0..told.len()).collect();
    places.sort_by_key(|&place| (told[place].sent_at, place));
    let held = places.iter().rev().find_map(|&place| match check_quote(wording, &told[place].text) {
        Quote::Exact => Some((place, Some(wording.to_owned()))),
        Quote::Repaired(own) => Some((place, Some(own.trim().to_owned()))),
        Quote::Unverified => None,
    });
    let unit = || places.iter().rev().find(|&&place| told[place].unit);
    held.or_else(|| unit().map(|&place| (place, None)))
}

/// Compares with the wording, and where that is a part of what its statement says, with the whole of it.
fn verdict(
    own: Option<&str>,
    wording: &str,
    place: usize,
    told: &[Told],
    given: &Reading,
    zone: &Zone,
) -> Verdict {
    let sent_at = told[place].sent_at;
    let Some(own) = own else { return completed(timex::check(wording, sent_at, zone, None, given)) };
    let lang = Some(Lang::of(&told[place].text));
    let check = |text: &str| completed(timex::check(text, sent_at, zone, lang, given));
    let mut alone = check(own);
    if is_certain(&alone) && is_denied(own, &told[place], zone) {
        alone = Verdict::Negated;
    }
    let whole = statement(own, &told[place], zone).or_else(|| day_beside(own, &told[place], zone)).map(check);
    let chosen = match whole {
        // One day of a range that the statement gives may be all that a task is about.
        Some(whole) if is_range(&whole) && is_certain(&alone) => alone,
        Some(whole) => whole,
        None => alone,
    };
    if matches!(chosen, Verdict::Contradicts { .. } | Verdict::Ambiguous { fits: false, .. })
        && is_clock_alone(own)
        && is_of_another_day(own, place, told, given, zone)
    {
        return Verdict::Agrees;
    }
    chosen
}

fn is_certain(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Agrees | Verdict::Computed(_) | Verdict::Contradicts { .. })
}

/// Where a model gave one end of a range rightly, or the day of a clock time, the rest is filled in.
fn completed(verdict: Verdict) -> Verdict {
    let Verdict::Contradicts { computed, given } = verdict else { return verdict };
    let meant = placed(computed.clone(), &given);
    let begins = |full: &Option<String>, part: &Option<String>| match (full, part) {
        (Some(full), Some(part)) => full == part || (part.len() == DAY && full.starts_with(part.as_str())),
        (full, part) => full.is_none() && part.is_none(),
    };
    let one_end = meant.start.is_some()
        && meant.due.is_some()
        && (given.start.is_none() && begins(&meant.due, &given.due)
            || given.due.is_none() && begins(&meant.start, &given.start));
    if one_end || (begins(&meant.start, &given.start) && begins(&meant.due, &given.due)) {
        return Verdict::Computed(meant);
    }
    Verdict::Contradicts { computed, given }
}

fn is_range(verdict: &Verdict) -> bool {
    let (Verdict::Computed(reading) | Verdict::Contradicts { computed: reading, .. }) = verdict else {
        return false;
    };
    reading.start.is_some() && reading.due.is_some()
}

/// Whether every part of a statement that holds the wording denies it.
fn is_denied(own: &str, told: &Told, zone: &Zone) -> bool {
    let mut places = places(own, &told.text).peekable();
    places.peek().is_some()
        && places.all(|at| {
            let (part, _) = around(&told.text, at, own.len(), PARTS);
            timex::resolve(part, told.sent_at, zone, Some(Lang::of(&told.text))).negated
        })
}

/// A statement whose one meaning rests on more words than the wording, some of its own among them.
fn statement<'t>(own: &str, told: &'t Told, zone: &Zone) -> Option<&'t str> {
    places(own, &told.text).find_map(|at| {
        let (statement, at) = around(&told.text, at, own.len(), ENDS);
        let resolved = timex::resolve(statement, told.sent_at, zone, Some(Lang::of(&told.text)));
        let words = resolved.original.filter(|_| resolved.check == Check::Computed)?;
        let begin = statement.find(&words)?;
        let overlaps = begin < at + own.len() && at < begin + words.len();
        (overlaps && !own.contains(&words)).then_some(statement)
    })
}

/// What stands around a clock time and gives it a day, though not one meaning: "周五5点前".
fn day_beside<'t>(own: &str, told: &'t Told, zone: &Zone) -> Option<&'t str> {
    let lang = Some(Lang::of(&told.text));
    let wider = |(text, at): (&'t str, usize)| {
        let resolved = timex::resolve(text, told.sent_at, zone, lang);
        let words = resolved.original.filter(|_| resolved.check == Check::Ambiguous)?;
        let begin = text.find(&words)?;
        (begin < at && at < begin + words.len()).then_some(text)
    };
    let at = places(own, &told.text).next().filter(|_| is_clock_alone(own))?;
    [PARTS, ENDS].into_iter().find_map(|ends| wider(around(&told.text, at, own.len(), ends)))
}

fn places<'t>(own: &'t str, text: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(own).map(|(at, _)| at).take(MOST_PLACES)
}

/// The text around a place, from one of these letters to the next, and the place within it.
fn around<'t>(text: &'t str, at: usize, length: usize, ends: &[char]) -> (&'t str, usize) {
    let after = |end: usize| end + text[end..].chars().next().map_or(0, char::len_utf8);
    let begin = text[..at].rfind(ends).map_or(0, after);
    let end = text[at + length..].find(ends).map_or(text.len(), |end| at + length + end);
    (&text[begin..end], at - begin)
}

/// Whether a wording names a clock time and no day.
fn is_clock_alone(own: &str) -> bool {
    const WORDS: [&str; 32] = [
        "上午", "下午", "晚上", "早上", "中午", "凌晨", "傍晚", "晚间", "早晨", "清晨", "之前", "以前",
        "左右", "截止", "开始", "整", "前", "点", "时", "分", "半", "刻", "早", "晚", "钟", "at", "by",
        "before", "am", "pm", "noon", "o'clock",
    ];
    let mut rest = own.to_lowercase();
    for word in WORDS {
        rest = rest.replace(word, " ");
    }
    let is_number = |letter: char| letter.is_numeric() || "零一二两三四五六七八九十".contains(letter);
    rest.chars().all(|letter| is_number(letter) || letter.is_whitespace() || ":：~到至".contains(letter))
        && (own.contains(is_number) || own.contains("noon") || own.contains("中午"))
}

/// Whether the model's time has the wording's clock time on the day that a cited message means.
fn is_of_another_day(own: &str, place: usize, told: &[Told], given: &Reading, zone: &Zone) -> bool {
    let others = told.iter().rev().take(MOST_OTHERS).chain([&told[place]]);
    others.map(|other| timex::resolve(&other.text, other.sent_at, zone, None)).any(|resolved| {
        let day = resolved.due.or(resolved.start).and_then(|time| time.get(..10).map(str::to_owned));
        let joined = day.map(|day| format!("{day} {own}"));
        joined.is_some_and(|joined| {
            let lang = Some(Lang::of(&told[place].text));
            let verdict = timex::check(&joined, told[place].sent_at, zone, lang, given);
            matches!(verdict, Verdict::Agrees | Verdict::Ambiguous { fits: true, .. })
        })
    })
}

/// Words of a cited message that mean one time, those that mean the model's first, then the latest.
fn suggestion(told: &[Told], given: &Reading, zone: &Zone) -> Option<Worded> {
    let worded = |(place, told): (usize, &Told)| {
        let resolved = timex::resolve(&told.text, told.sent_at, zone, None);
        let original = resolved.original.filter(|_| resolved.check == Check::Computed)?;
        let meaning = Reading { start: resolved.start, due: resolved.due };
        let agrees = timex::check(&original, told.sent_at, zone, None, given) == Verdict::Agrees;
        Some((agrees, told.sent_at, Worded { place, original, meaning }))
    };
    let best = told.iter().enumerate().filter_map(worded).max_by_key(|(agrees, at, _)| (*agrees, *at));
    best.map(|(_, _, worded)| worded)
}

/// Messages after the one at `place` that mean another time than `time`.
fn later(told: &[Told], place: usize, time: &Reading, zone: &Zone) -> Vec<Worded> {
    let after = told.iter().enumerate().filter(|(_, other)| other.sent_at > told[place].sent_at);
    let other = |(place, told): (usize, &Told)| match timex::check(&told.text, told.sent_at, zone, None, time)
    {
        Verdict::Contradicts { computed, .. } => {
            let original = timex::resolve(&told.text, told.sent_at, zone, None).original?;
            Some(Worded { place, original, meaning: computed })
        }
        _ => None,
    };
    after.filter_map(other).collect()
}

// ── records ────────────────────────────────────────────────────────────────────────────────────────

fn told(record: &Record) -> Vec<Told> {
    let unit = |key: &str| record.attachment_evidence.iter().any(|unit| unit.message_key == key);
    let told = record.sources.iter().map(|source| Told {
        text: source.text.clone(),
        sent_at: source.sent_at.0,
        unit: unit(&source.message_key),
    });
    told.collect()
}

fn judged(record: &Record) -> Result<Judged> {
    let given = Reading { start: record.time.start.clone(), due: record.time.due.clone() };
    let zone = Zone::named(&record.time.timezone)?;
    Ok(judge(record.time.original.as_deref(), &told(record), &given, &zone))
}

/// Puts in a record, whose time is as a model gave it, the time that its sources mean, and notes what a
/// reader must know of it.
pub fn settle(record: &mut Record) -> Result<()> {
    let judged = judged(record)?;
    record.time.start = judged.time.start;
    record.time.due = judged.time.due;
    record.time.original = judged.original;
    record.time.check = judged.check;
    if let Some(note) = judged.note {
        record.notes = match record.notes.trim_end() {
            "" => note,
            said => format!("{said}\n{note}"),
        };
    }
    Ok(())
}

/// Whether a stored record's time is what its sources mean; if not, in what way. Nothing is held against
/// records of versions that computed no times, or that read wordings in another way.
pub fn doubt(record: &Record) -> Result<Option<String>> {
    let time = &record.time;
    let Some(check) = time.check else { return Ok(None) };
    if record.processing.times_version != Some(timex::VERSION) {
        return Ok(None);
    }
    let judged = judged(record)?;
    let holds = match check {
        TimeCheck::Agrees | TimeCheck::Computed => judged.finding == Finding::Agrees,
        TimeCheck::Ambiguous => judged.finding == Finding::Ambiguous,
        TimeCheck::Unresolved => {
            matches!(judged.finding, Finding::Unresolved | Finding::NoWording | Finding::Negated)
        }
    };
    if holds
        && judged.original == time.original
        && judged.time.start == time.start
        && judged.time.due == time.due
    {
        return Ok(None);
    }
    let wording = time.original.as_deref().unwrap_or_default();
    let stored = words(&Reading { start: time.start.clone(), due: time.due.clone() });
    Ok(Some(match judged.finding {
        Finding::NotFound => format!("no source holds the words {wording:?} of its time"),
        Finding::Negated => format!("{wording:?} denies a time, stored is {stored:?}"),
        Finding::Contradicts | Finding::Misfit | Finding::Computed | Finding::Ambiguous => {
            let means = judged.readings.iter().map(words).collect::<Vec<_>>().join(" or ");
            format!("{wording:?} means {means}, stored is {stored:?}")
        }
        _ => format!("its time is {:?} and not {:?}", judged.finding, check.as_str()),
    }))
}

#[cfg(test)]
mod tests;
