//! One answer from all wordings of a text: denied ones out, replaced ones out, the deadline before the rest.

use super::MOST_READINGS;
use super::marks::{self, Marks};
use super::phrase::{self, Phrase};
use super::resolve::{Meaning, Moment, When};
use super::said::{Day, Month, Period, Point, Said, Week, Year};
use super::text::Text;

/// What a text says: its meanings (one: sure; several: open), and the letters it says it with.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub meanings: Vec<Meaning>,
    pub from: usize,
    pub to: usize,
    /// The only times that are named are denied.
    pub negated: bool,
}

#[derive(Clone)]
struct Found {
    phrase: Phrase,
    marks: Marks,
    meanings: Vec<Meaning>,
}

pub(super) fn choose(text: &Text, moment: &Moment) -> Choice {
    let t = text.letters();
    let phrases = phrase::scan(text, moment.lang);
    let ends = |i: usize| phrases.get(i).map_or((t.len(), t.len()), |phrase| (phrase.from, phrase.to));
    let mut marked: Vec<(Phrase, Marks)> = phrases
        .iter()
        .enumerate()
        .map(|(i, phrase)| {
            let previous = if i == 0 { 0 } else { ends(i - 1).1 };
            (*phrase, marks::read(t, phrase, previous, ends(i + 1).0))
        })
        .collect();
    share(t, &mut marked);
    let kept = standing(&inherit(t, marked));
    let (Some(first), Some(last)) = (phrases.first(), phrases.last()) else { return Choice::default() };
    let all = |negated| Choice { from: first.from, to: last.to, negated, ..Choice::default() };
    let denied = kept.iter().any(|(_, marks)| marks.negated);
    let mut found: Vec<Found> = kept
        .into_iter()
        .filter(|(_, marks)| !marks.negated)
        .map(|(phrase, marks)| Found { meanings: moment.meanings(&phrase.said, marks), phrase, marks })
        .collect();
    let certain = found.iter().any(|found| !found.meanings.is_empty());
    if !certain {
        return all(
            denied && found.iter().all(|found| matches!(found.phrase.said, Said::Vague | Said::Recurring))
        );
    }
    // Something that comes again and again has no one time.
    if found.iter().any(|found| found.phrase.said == Said::Recurring)
        && !found.iter().any(|found| found.marks.deadline && !found.meanings.is_empty())
    {
        return all(false);
    }
    found.retain(|found| !found.meanings.is_empty());
    decide(found, moment)
}

/// What is said of the last of several wordings in a row ("周三、周五都要交") is said of each.
fn share(t: &[char], marked: &mut [(Phrase, Marks)]) {
    for i in (1..marked.len()).rev() {
        let joint = &t[marked[i - 1].0.to..marked[i].0.from];
        let joint: String = joint.iter().take(8).collect();
        let or = matches!(joint.trim(), "或" | "或者" | "or");
        if !or && !matches!(joint.trim(), "、" | "和" | "及" | "以及" | "与" | "还有" | "/" | "and") {
            continue;
        }
        let later = marked[i].1;
        let earlier = &mut marked[i - 1].1;
        *earlier = Marks {
            deadline: earlier.deadline || later.deadline,
            duty: earlier.duty || later.duty,
            event: earlier.event || later.event,
            negated: earlier.negated || later.negated,
            ..*earlier
        };
        marked[i].1.negated |= marked[i - 1].1.negated;
        // "周二和周四下午3点": the clock time is of both days.
        if let (Said::Point(mut point), Said::Point(last)) = (marked[i - 1].0.said, marked[i].0.said)
            && point.clock.is_none()
            && last.day.is_some()
        {
            point.part = point.part.or(last.part);
            point.clock = last.clock;
            marked[i - 1].0.said = Said::Point(point);
        }
    }
}

/// A clock time takes the day that was named before it, and the wording that named only the day is spent.
fn inherit(t: &[char], marked: Vec<(Phrase, Marks)>) -> Vec<(Phrase, Marks)> {
    let mut kept: Vec<(Phrase, Marks)> = Vec::with_capacity(marked.len());
    for (mut phrase, mut marks) in marked {
        let Some((known, known_marks)) = kept.last().copied() else {
            kept.push((phrase, marks));
            continue;
        };
        let apart = t[known.to..phrase.from]
            .iter()
            .filter(|letter| matches!(letter, '\n' | '。' | '!' | '?'))
            .count()
            > 0;
        // "第三天上午 8点": an hour of an uncertain day is no certain time.
        if known.said == Said::Vague
            && matches!(phrase.said, Said::Point(Point { day: None, clock: Some(_), .. }))
            && t[known.to..phrase.from].iter().all(|letter| matches!(letter, ' ' | '的'))
        {
            phrase.said = Said::Vague;
            kept.push((phrase, marks));
            continue;
        }
        let before = match known.said {
            Said::Point(point) | Said::Range(_, point) => Some(point),
            _ => None,
        };
        if let (Some(before), Said::Point(point) | Said::Range(point, _)) =
            (before.filter(|_| !apart), phrase.said)
            && !known_marks.negated
        {
            let filled = fill(before, point, marks.change);
            if filled != point {
                let spent = before.clock.is_none()
                    && !known_marks.deadline
                    && matches!(known.said, Said::Point(_))
                    && point.day.is_none();
                phrase.said = match phrase.said {
                    Said::Range(_, to) => Said::Range(filled, to),
                    _ => Said::Point(filled),
                };
                if spent {
                    marks.event |= known_marks.event && !marks.duty && !marks.deadline;
                    marks.change |= known_marks.change;
                    marks.start |= known_marks.start && !marks.deadline;
                    phrase.from = known.from;
                    kept.pop();
                }
            }
        }
        kept.push((phrase, marks));
    }
    kept
}

/// A point with what it leaves out taken from the one before it.
fn fill(before: Point, point: Point, change: bool) -> Point {
    let mut filled = point;
    let past = match before.day {
        Some(Day::Offset(days)) => days < 0,
        Some(Day::Weekday(Week::From(weeks), _)) => weeks < 0,
        Some(Day::Weekday(Week::Last, _)) => true,
        Some(Day::After { months, days }) => months < 0 || days < 0,
        _ => false,
    };
    let single = !matches!(before.day, Some(Day::Period(_)) | None);
    if point.day.is_none()
        && (point.clock.is_some() || (point.part.is_some() && before.part.is_none()))
        && single
        && !past
    {
        filled.day = before.day;
        filled.also = before.also;
        filled.place = point.place.or(before.place);
        if point.part.is_none() && (change || before.clock.is_none()) {
            filled.part = before.part;
        }
    }
    // "9月10号开学，11号报到": of the same month, or of the next when the number is smaller.
    if let (Some(Day::Date { year, month: Month::Of(month), day: known }), Some(Day::OfMonth(day))) =
        (before.day, point.day)
    {
        let next = u8::from(day < known);
        let year = match year {
            Some(Year::Of(year)) if month + next > 12 => Some(Year::Of(year.saturating_add(1))),
            other => other,
        };
        filled.day = Some(Day::Date { year, month: Month::Of((month + next - 1) % 12 + 1), day });
    }
    if let (Some(Day::Period(Period::Week(weeks))), Some(Day::Weekday(Week::Nearest, weekday))) =
        (before.day, point.day)
        && weeks >= 1
    {
        filled.day = Some(Day::Weekday(Week::From(weeks), weekday));
    }
    filled
}

/// Without what was replaced by a later wording.
fn standing(marked: &[(Phrase, Marks)]) -> Vec<(Phrase, Marks)> {
    let from = marked
        .iter()
        .rposition(|(phrase, marks)| marks.change && !marks.negated && phrase.said != Said::Vague)
        .unwrap_or(0);
    let mut kept: Vec<(Phrase, Marks)> = marked[from..].to_vec();
    if let Some((first, marks)) = kept.first_mut()
        && marks.change
        && let Said::Range(..) = first.said
    {
        return kept;
    }
    if kept.iter().any(|(_, marks)| !marks.former && !marks.negated) {
        // "moved from Thursday to Friday": of a range that is a change only its end holds.
        for (phrase, marks) in &mut kept {
            if let Said::Range(_, to) = phrase.said
                && marks.former
            {
                phrase.said = Said::Point(to);
                *marks = Marks { former: false, start: false, ..*marks };
            }
        }
        kept.retain(|(_, marks)| !marks.former);
    } else {
        for (phrase, marks) in &mut kept {
            if let Said::Range(_, to) = phrase.said
                && marks.former
            {
                phrase.said = Said::Point(to);
                marks.start = false;
            }
        }
    }
    kept
}

fn decide(mut found: Vec<Found>, moment: &Moment) -> Choice {
    let deadlines: Vec<Found> = found.iter().filter(|found| found.marks.deadline).cloned().collect();
    let starts: Vec<Found> =
        found.iter().filter(|found| found.marks.start && !found.marks.deadline).cloned().collect();
    if let ([start], [due]) = (starts.as_slice(), deadlines.as_slice())
        && let ([begin], [end]) = (start.meanings.as_slice(), due.meanings.as_slice())
    {
        let meaning = Meaning { start: begin.start.or(begin.due), due: end.due };
        if is_after(meaning.start, meaning.due) {
            return gather(&deadlines);
        }
        let (from, to) = (start.phrase.from.min(due.phrase.from), start.phrase.to.max(due.phrase.to));
        return Choice { meanings: vec![meaning], from, to, negated: false };
    }
    if !deadlines.is_empty() {
        return gather(&deadlines);
    }
    if found.len() > 1 {
        refine(&mut found, moment);
    }
    if gather(&found).meanings.len() > 1 && found.len() > 1 {
        let duties: Vec<Found> = found.iter().filter(|found| found.marks.duty).cloned().collect();
        if duties.len() == 1 {
            return gather(&duties);
        }
    }
    gather(&found)
}

/// Whether a beginning lies behind an end of its kind.
fn is_after(start: Option<When>, due: Option<When>) -> bool {
    match (start, due) {
        (Some(When::Day(start)), Some(When::Day(due))) => start > due,
        (Some(When::At(start)), Some(When::At(due))) => start > due,
        _ => false,
    }
}

/// Drops stretches beside days ("本月的作业，周五交"), and what is past beside what is to come.
fn refine(found: &mut Vec<Found>, moment: &Moment) {
    let coarse = |found: &Found| matches!(found.phrase.said, Said::Point(Point { day: Some(Day::Period(period)), clock: None, .. }) if !matches!(period, Period::Days(..)));
    if found.iter().any(|found| !coarse(found)) {
        found.retain(|found| !coarse(found));
    }
    let today = moment.today();
    let is_past = |found: &Found| {
        found.meanings.iter().all(|meaning| match meaning.due.or(meaning.start) {
            Some(When::Day(day)) => today.is_some_and(|today| day < today),
            Some(When::At(at)) => at < moment.sent,
            None => false,
        })
    };
    if found.iter().any(|found| !is_past(found)) {
        found.retain(|found| !is_past(found));
    }
}

/// The meanings of several wordings, each once.
fn gather(found: &[Found]) -> Choice {
    let mut choice = Choice { from: usize::MAX, ..Choice::default() };
    for found in found {
        choice.from = choice.from.min(found.phrase.from);
        choice.to = choice.to.max(found.phrase.to);
        for meaning in &found.meanings {
            let same = choice.meanings.iter().any(|known| {
                known == meaning
                    || known.due.or(known.start) == meaning.due.or(meaning.start)
                        && (known.start.is_none() || known.due.is_none())
                        && (meaning.start.is_none() || meaning.due.is_none())
            });
            if !same && choice.meanings.len() < MOST_READINGS {
                choice.meanings.push(*meaning);
            }
        }
    }
    choice
}
