//! What a wording means when it was said at a certain moment.

use jiff::civil::{Date, DateTime, Time};

use super::calendar::{self, add_days, add_months, on_or_after, solar, year_number};
use super::lunar;
use super::marks::Marks;
use super::said::{
    Amount, Anchor, Clock, Day, Face, Festival, Month, Part, Period, Place, Point, Said, Week, Year,
};
use super::{Lang, MOST_READINGS};
use crate::zone::Zone;

/// How many days a date without a year may be past and still be meant as past.
const LATELY: i32 = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Day(Date),
    /// Milliseconds since 1970.
    At(i64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    pub start: Option<When>,
    pub due: Option<When>,
}

/// The moment and the place that a message was sent at.
pub(super) struct Moment<'z> {
    pub sent: i64,
    pub zone: &'z Zone,
    pub lang: Lang,
}

#[derive(Clone, Copy)]
enum Value {
    Day(Date),
    Stretch(Date, Date, Period),
    At(i64),
}

impl Moment<'_> {
    /// All meanings of a wording, the likeliest first; none where it has no day or no such time exists.
    pub(super) fn meanings(&self, said: &Said, marks: Marks) -> Vec<Meaning> {
        let mut kept: Vec<Meaning> = Vec::new();
        let found = match said {
            Said::Point(point) => {
                self.values(point, marks).into_iter().flat_map(|value| by_role(value, marks)).collect()
            }
            Said::Range(from, to) => self.ranges(from, to),
            Said::After(amount) => {
                self.elapsed(amount).into_iter().flat_map(|when| by_role(when, marks)).collect()
            }
            Said::Within(amount) => self
                .elapsed(amount)
                .into_iter()
                .map(|value| Meaning { start: None, due: Some(plain(value)) })
                .collect(),
            Said::Vague | Said::Recurring | Said::Nothing => Vec::new(),
        };
        for meaning in found {
            if !kept.contains(&meaning) && kept.len() < MOST_READINGS {
                kept.push(meaning);
            }
        }
        kept
    }

    /// Today's date where the message was sent.
    pub(super) fn today(&self) -> Option<Date> {
        Some(self.zone.local(self.sent)?.date())
    }

    fn elapsed(&self, amount: &Amount) -> Option<Value> {
        let now = self.zone.local(self.sent)?;
        let day = add_days(add_months(now.date(), amount.months)?, amount.days)?;
        if !amount.exact {
            return Some(Value::Day(day));
        }
        let base = if day == now.date() {
            self.sent
        } else {
            *self.zone.moments(day.to_datetime(now.time())).first()?
        };
        Some(Value::At((base / 1000).checked_add(amount.seconds)?.checked_mul(1000)?))
    }

    /// The zones that a wording can be meant in.
    fn zones(&self, place: Option<Place>) -> Vec<Zone> {
        match place {
            None => vec![self.zone.clone()],
            Some(Place::Named(name)) => Zone::named(name).into_iter().collect(),
            Some(Place::Fixed(seconds)) => Zone::fixed(seconds).into_iter().collect(),
            Some(Place::Several(names)) => {
                let names = if self.lang == Lang::Chinese { &names[..1] } else { names };
                names.iter().filter_map(|name| Zone::named(name).ok()).collect()
            }
        }
    }

    fn values(&self, point: &Point, marks: Marks) -> Vec<Value> {
        let Some(clock) = point.clock else {
            return self
                .zone
                .local(self.sent)
                .map_or_else(Vec::new, |now| self.days_without_clock(point, now));
        };
        let mut values = Vec::new();
        for zone in self.zones(point.place) {
            let Some(now) = zone.local(self.sent) else { continue };
            for time in self.times(point, clock, now, marks) {
                values.extend(zone.moments(time).into_iter().map(Value::At));
            }
        }
        values
    }

    fn days_without_clock(&self, point: &Point, now: DateTime) -> Vec<Value> {
        if point.day.is_none() {
            return point.part.and_then(|part| day_of_part(part, now)).map(Value::Day).into_iter().collect();
        }
        self.days(point, now.date())
            .into_iter()
            .map(|(first, last)| match point.day {
                Some(Day::Period(period)) if first != last => Value::Stretch(first, last, period),
                _ => Value::Day(first),
            })
            .collect()
    }

    /// The days of a point; of two wordings those that agree, else all.
    fn days(&self, point: &Point, today: Date) -> Vec<(Date, Date)> {
        let Some(day) = point.day else { return Vec::new() };
        let days = self.days_of(day, today);
        let Some(also) = point.also else { return days };
        let (dated, other) = if matches!(day, Day::Weekday(..)) { (also, day) } else { (day, also) };
        let days = if dated == day { days } else { self.days_of(dated, today) };
        if let Day::Weekday(week, weekday) = other {
            // "两周后的周五": a weekday of that week.
            if let (Day::After { days: ahead, months: 0 }, Week::Nearest) = (dated, week)
                && ahead % 7 == 0
            {
                return calendar::in_week(today, ahead / 7, weekday)
                    .map(|day| (day, day))
                    .into_iter()
                    .collect();
            }
            let agreeing: Vec<_> = days.iter().copied().filter(|(day, _)| day.weekday() == weekday).collect();
            let agreeing: Vec<_> = match week {
                Week::From(_) => {
                    let named = self.days_of(other, today);
                    agreeing.into_iter().filter(|day| named.contains(day)).collect()
                }
                _ => agreeing,
            };
            if !agreeing.is_empty() {
                return agreeing;
            }
        }
        let others = self.days_of(other, today);
        let both: Vec<_> = days.iter().copied().filter(|day| others.contains(day)).collect();
        if both.is_empty() { days.into_iter().chain(others).collect() } else { both }
    }

    fn days_of(&self, day: Day, today: Date) -> Vec<(Date, Date)> {
        let single = |days: Vec<Date>| days.into_iter().map(|day| (day, day)).collect();
        let one = |day: Option<Date>| day.map(|day| (day, day)).into_iter().collect();
        match day {
            Day::Offset(days) => one(add_days(today, days)),
            Day::After { months, days } => one(add_months(today, months).and_then(|day| add_days(day, days))),
            Day::Weekday(week, weekday) => single(calendar::weekdays(today, week, weekday)),
            Day::Date { year, month, day } => single(self.dates(today, year, month, day)),
            Day::OfMonth(day) => one(next_of_month(today, day)),
            Day::Stroke { year, first, second } => single(self.stroke(today, year, first, second)),
            Day::Lunar { year, month, leap, day } => single(lunar_days(today, year, |year| {
                lunar::day(year, month, leap, day).into_iter().collect()
            })),
            Day::Festival(year, festival) => single(festivals(today, year, festival)),
            Day::Nth { year, month, nth, weekday } => one(nth_day(today, year, month, |year, month| {
                calendar::nth_weekday(year, month, nth, weekday)
            })),
            Day::Shifted(days, anchor) => one(match anchor {
                Anchor::Day(offset) => offset.checked_add(days).and_then(|days| add_days(today, days)),
                Anchor::Weekday(weekday) => on_or_after(today, weekday).and_then(|day| add_days(day, days)),
            }),
            Day::Period(period) => calendar::stretch(today, period),
            Day::EndOf(period) => {
                single(calendar::stretch(today, period).into_iter().map(|(_, last)| last).collect())
            }
        }
    }

    /// A date; without a year the coming one, and beside it one that is past for a few days only.
    fn dates(&self, today: Date, year: Option<Year>, month: Month, day: u8) -> Vec<Date> {
        let month = match month {
            Month::Of(month) => month,
            Month::From(months) => {
                let first = add_months(today.first_of_month(), months);
                return first
                    .and_then(|first| Date::new(first.year(), first.month(), i8::try_from(day).ok()?).ok())
                    .into_iter()
                    .collect();
            }
        };
        if let Some(year) = year {
            return year_number(today, year).and_then(|year| solar(year, month, day)).into_iter().collect();
        }
        let near = |year: i16| solar(year, month, day);
        let coming =
            (today.year()..today.year().saturating_add(9)).filter_map(near).find(|date| *date >= today);
        let past = [today.year(), today.year() - 1]
            .into_iter()
            .filter_map(near)
            .find(|date| *date < today && (today - *date).get_days() <= LATELY);
        past.into_iter().chain(coming).collect()
    }

    /// Two numbers with a stroke, in the order of the language, or in both where it has none.
    fn stroke(&self, today: Date, year: Option<Year>, first: u8, second: u8) -> Vec<Date> {
        let orders: &[(u8, u8)] = match self.lang {
            Lang::Chinese if year.is_none() => &[(first, second)],
            Lang::American if (1..=12).contains(&first) => &[(first, second)],
            Lang::British if (1..=12).contains(&second) => &[(second, first)],
            _ => &[(first, second), (second, first)],
        };
        let dates = |&(month, day): &(u8, u8)| self.dates(today, year, Month::Of(month), day);
        orders.iter().filter(|(month, _)| (1..=12).contains(month)).flat_map(dates).collect()
    }

    /// The local times of a point with a clock time.
    fn times(&self, point: &Point, clock: Clock, now: DateTime, marks: Marks) -> Vec<DateTime> {
        let today = now.date();
        let hours = hours(clock, point.part, point.eve, marks.deadline && self.lang == Lang::Chinese);
        let on = |day: Date| hours.iter().filter_map(move |hour| hour.on(day)).collect::<Vec<_>>();
        let ahead = |times: Vec<DateTime>| times.into_iter().filter(|time| *time > now).collect::<Vec<_>>();
        let Some(day) = point.day else {
            return nearest(point, clock, now, &hours);
        };
        let days = self.days(point, today);
        let mut times = Vec::new();
        for (first, last) in days {
            let span = if first == last { vec![first] } else { vec![first, last] };
            if last != first && add_days(first, 1) != Some(last) {
                continue;
            }
            for date in span {
                let all = on(date);
                if date != today {
                    times.extend(all);
                    continue;
                }
                let coming = ahead(all.clone());
                if !coming.is_empty() {
                    times.extend(coming);
                } else if let Some(late) =
                    other_half(clock, point.part).and_then(|hour| hour.on(date)).filter(|time| *time > now)
                {
                    times.push(late);
                } else if day == Day::Weekday(Week::Nearest, date.weekday()) && point.also.is_none() {
                    times.extend(add_days(date, 7).map(on).unwrap_or_default());
                } else {
                    times.extend(all);
                    // Late in the evening "今天凌晨" can be the coming night.
                    if point.part == Some(Part::Dawn) && now.hour() >= 18 {
                        times.extend(add_days(date, 1).map(on).unwrap_or_default());
                    }
                }
            }
        }
        times
    }

    fn ranges(&self, from: &Point, to: &Point) -> Vec<Meaning> {
        let place = from.place.or(to.place);
        let mut meanings = Vec::new();
        for zone in self.zones(place) {
            let Some(now) = zone.local(self.sent) else { continue };
            let at = |time: Option<DateTime>, day: Date| match time {
                Some(time) => zone.moments(time).first().copied().map(When::At),
                None => Some(When::Day(day)),
            };
            for (start, end) in self.spans(from, to, now) {
                let (Some(start), Some(due)) = (at(start.1, start.0), at(end.1, end.0)) else { continue };
                meanings.push(Meaning { start: Some(start), due: Some(due) });
            }
        }
        meanings
    }

    /// The local beginnings and ends of a range.
    fn spans(&self, from: &Point, to: &Point, now: DateTime) -> Vec<(End, End)> {
        let today = now.date();
        let implied = from.day.is_none();
        let mut spans: Vec<(End, End)> = Vec::new();
        for first in self.first_days(from, to, today) {
            let mut found = Vec::new();
            for last in self.last_days(from, to, first, today) {
                found.extend(join(from, to, first, last));
            }
            let over = |(_, end): &(End, End)| end.1.map_or(end.0 < today, |time| time <= now);
            let ahead: Vec<_> = found.iter().copied().filter(|span| !over(span)).collect();
            let weekly = matches!(from.day, Some(Day::Weekday(Week::Nearest, _))) && first == today;
            if !ahead.is_empty() {
                spans.extend(ahead);
            } else if implied || weekly {
                let days = if implied { 1 } else { 7 };
                spans.extend(
                    found
                        .into_iter()
                        .filter_map(|(start, end)| Some((later(start, days)?, later(end, days)?))),
                );
            } else {
                spans.extend(found);
            }
        }
        if let Some(
            Day::Date { year: None, month: Month::Of(_), .. }
            | Day::Period(Period::Month(None, Month::Of(_))),
        ) = from.day
        {
            let open = |(_, end): &&(End, End)| end.0 >= today;
            return spans.iter().find(open).or(spans.last()).copied().into_iter().collect();
        }
        spans
    }

    fn first_days(&self, from: &Point, to: &Point, today: Date) -> Vec<Date> {
        match from.day {
            None => vec![today],
            Some(Day::Date { year: None, month: Month::Of(month), day }) if from.also.is_none() => {
                let years = [-1, 0, 1, 2, 3, 4].map(|years| today.year().saturating_add(years));
                years
                    .into_iter()
                    .filter_map(|year| solar(year, month, day))
                    .filter(|date| *date >= today || (today - *date).get_days() < 300)
                    .collect()
            }
            Some(Day::Period(Period::Month(None, Month::Of(month)))) => {
                [-1, 0, 1].into_iter().filter_map(|years| solar(today.year() + years, month, 1)).collect()
            }
            Some(Day::Weekday(Week::Nearest, weekday)) if from.also.is_none() => {
                let next = on_or_after(today, weekday);
                // In the middle of "周三到周五" this one may be meant as well as the next one.
                let running =
                    next.filter(|next| *next > today).and_then(|next| add_days(next, -7)).filter(|first| {
                        self.last_days(from, to, *first, today).iter().any(|last| *last >= today)
                            && matches!(to.day, Some(Day::Weekday(Week::Nearest, _)))
                            && from.clock.is_none()
                            && calendar::monday(*first) == calendar::monday(today)
                    });
                running.into_iter().chain(next).collect()
            }
            _ => self.days(from, today).into_iter().map(|(first, _)| first).collect(),
        }
    }

    fn last_days(&self, from: &Point, to: &Point, first: Date, today: Date) -> Vec<Date> {
        let one = |day: Option<Date>| day.into_iter().collect();
        match to.day {
            None => match from.day {
                Some(Day::Period(_)) => self.days(from, today).into_iter().map(|(_, last)| last).collect(),
                _ => vec![first],
            },
            Some(Day::OfMonth(day)) => match from.day {
                Some(Day::Lunar { year, month, leap, .. }) => {
                    let other = Day::Lunar { year, month, leap, day };
                    self.days_of(other, first).into_iter().map(|(day, _)| day).take(1).collect()
                }
                _ => one(next_of_month(first, day)),
            },
            Some(Day::Date { year: None, month: Month::Of(month), day }) if to.also.is_none() => {
                let near = |years: i16| {
                    solar(first.year().saturating_add(years), month, day).filter(|day| *day >= first)
                };
                one((0..9).find_map(near))
            }
            Some(Day::Weekday(Week::Nearest, weekday)) => one(on_or_after(first, weekday)),
            Some(Day::Period(Period::Month(None, Month::Of(month)))) => {
                let near = |years: i16| {
                    solar(first.year().saturating_add(years), month, 1)
                        .map(Date::last_of_month)
                        .filter(|day| *day >= first)
                };
                one((0..2).find_map(near))
            }
            _ => {
                let days: Vec<Date> = self.days(to, today).into_iter().map(|(_, last)| last).collect();
                let ordered: Vec<Date> = days.iter().copied().filter(|day| *day >= first).collect();
                if ordered.is_empty() { days } else { ordered }
            }
        }
    }
}

/// A clock time without a day: the next time that the clock shows it.
fn nearest(point: &Point, clock: Clock, now: DateTime, hours: &[Hour]) -> Vec<DateTime> {
    let today = now.date();
    let on = |day: Date, hours: &[Hour]| {
        hours.iter().filter_map(|hour| hour.on(day)).filter(|time| *time > now).collect::<Vec<_>>()
    };
    // Before dawn "今晚两点" is still ahead on the same day.
    if matches!(point.part, Some(Part::Evening | Part::Night)) && now.hour() < 5 {
        let early: Vec<Hour> =
            hours.iter().filter(|hour| hour.days == 1).map(|hour| Hour { days: 0, ..*hour }).collect();
        let times = on(today, &early);
        if !times.is_empty() {
            return times;
        }
    }
    if clock.face == Face::Midnight {
        return add_days(today, 1).and_then(|day| day.at(0, 0, 0, 0).into()).into_iter().collect();
    }
    let mut times = on(today, hours);
    if times.is_empty() {
        // "8点" said at ten is this evening or tomorrow morning.
        times = on(today, other_half(clock, point.part).as_slice());
        times.extend(add_days(today, 1).map(|day| on(day, hours)).unwrap_or_default());
    }
    times
}

/// One end of a range: its day, and its time where a clock time was told.
type End = (Date, Option<DateTime>);

fn later(end: End, days: i64) -> Option<End> {
    let day = add_days(end.0, days)?;
    let time = match end.1 {
        Some(time) => Some(add_days(time.date(), days)?.to_datetime(time.time())),
        None => None,
    };
    Some((day, time))
}

/// The spans from one day to another: of open clock times those that follow each other most closely.
fn join(from: &Point, to: &Point, first: Date, last: Date) -> Vec<(End, End)> {
    let (Some(start), Some(end)) = (from.clock, to.clock) else {
        let fixed = |point: &Point, clock: Option<Clock>, day: Date| {
            clock.map_or_else(
                || vec![(day, None)],
                |clock| {
                    hours(clock, point.part, point.eve, false)
                        .iter()
                        .filter_map(|hour| Some((day, Some(hour.on(day)?))))
                        .collect()
                },
            )
        };
        let starts = fixed(from, from.clock, first);
        let ends = fixed(to, to.clock, last);
        return starts.iter().flat_map(|start| ends.iter().map(move |end| (*start, *end))).collect();
    };
    let same_day = to.day.is_none() || first == last;
    let told = |point: &Point| matches!(point.part, Some(part) if part != Part::DayEnd);
    let ends = |clock: Clock| -> Vec<Hour> {
        if told(to) || clock.face == Face::Full {
            hours(clock, to.part, to.eve, false)
        } else {
            both_halves(clock)
        }
    };
    let on = |hours: &[Hour], day: Date| hours.iter().filter_map(|hour| hour.on(day)).collect::<Vec<_>>();
    let mut closes = on(&ends(end), last);
    if same_day {
        closes.extend(add_days(last, 1).map(|day| on(&ends(end), day)).unwrap_or_default());
    }
    closes.sort_unstable();
    let start_open = !told(from) && start.face == Face::Open;
    if start_open && told(to) {
        let starts = on(&both_halves(start), first);
        return closes
            .first()
            .and_then(|close| {
                // "10-2pm" begins in the morning: the latest beginning before the end.
                let begin =
                    starts.iter().filter(|begin| begin.time() < close.time()).max().or(starts.first())?;
                Some(((first, Some(*begin)), (close.date(), Some(*close))))
            })
            .into_iter()
            .collect();
    }
    let starts = on(&hours(start, from.part, from.eve, false), first);
    starts
        .iter()
        .filter_map(|begin| {
            let close = closes.iter().find(|close| *close > begin)?;
            Some(((first, Some(*begin)), (last.max(close.date()), Some(*close))))
        })
        .collect()
}

/// A clock time on the clock of 24 hours, so many days after the day it is told with.
#[derive(Clone, Copy)]
struct Hour {
    days: i64,
    time: Time,
}

impl Hour {
    fn new(days: i64, hour: u8, clock: Clock) -> Option<Self> {
        let [hour, minute, second] = [hour, clock.minute, clock.second].map(i8::try_from);
        Some(Self { days, time: Time::new(hour.ok()?, minute.ok()?, second.ok()?, 0).ok()? })
    }

    fn on(&self, day: Date) -> Option<DateTime> {
        Some(add_days(day, self.days)?.to_datetime(self.time))
    }
}

/// What a clock time with its part of the day can mean. `limit`: it is the end of a time for something.
fn hours(clock: Clock, part: Option<Part>, eve: bool, limit: bool) -> Vec<Hour> {
    let hour = clock.hour;
    let one = |days: i64, hour: u8| Hour::new(days, hour, clock).into_iter().collect::<Vec<_>>();
    if clock.face == Face::Midnight {
        let ends = matches!(part, Some(Part::Evening | Part::Night)) || limit;
        return if ends { one(1, 0) } else { [one(0, 0), one(1, 0)].concat() };
    }
    if hour == 24 {
        return one(1, 0);
    }
    let afternoon = if hour < 12 && hour > 0 { hour + 12 } else { hour };
    match part {
        Some(Part::Dawn) => one(i64::from(eve), if hour == 12 { 0 } else { hour }),
        Some(Part::Am) => one(0, if hour == 12 { 0 } else { hour }),
        Some(Part::Morning) => one(0, hour),
        Some(Part::Noon) => one(0, if hour < 6 { afternoon } else { hour }),
        Some(Part::Afternoon | Part::Pm) => one(0, afternoon),
        Some(Part::Evening) => match hour {
            0 | 12 => one(1, 0),
            1..=4 => one(1, hour),
            _ => one(0, afternoon),
        },
        Some(Part::Night) => match hour {
            0 | 12 => one(1, 0),
            1..=5 => one(1, hour),
            _ => one(0, afternoon),
        },
        None | Some(Part::DayEnd) if clock.face == Face::Full => one(0, hour),
        None | Some(Part::DayEnd) => match hour {
            // Between eight and noon the day is meant; "by 12" may be midnight too.
            1..=7 => both_halves(clock),
            12 if limit && clock.minute == 0 => [one(0, 12), one(1, 0)].concat(),
            _ => one(0, hour),
        },
    }
}

/// An hour of a clock face in the morning and in the evening.
fn both_halves(clock: Clock) -> Vec<Hour> {
    let morning = if clock.hour == 12 { 0 } else { clock.hour };
    let mut both: Vec<Hour> =
        [morning, morning + 12].into_iter().filter_map(|hour| Hour::new(0, hour, clock)).collect();
    if clock.face == Face::Midnight || clock.face == Face::Full || clock.hour > 12 {
        both = hours(clock, None, false, false);
    }
    both
}

/// The evening's hour of one that is by itself read as the morning's.
fn other_half(clock: Clock, part: Option<Part>) -> Option<Hour> {
    let open = clock.face == Face::Open && matches!(part, None | Some(Part::DayEnd));
    match clock.hour {
        8..=11 if open => Hour::new(0, clock.hour + 12, clock),
        12 if open => Hour::new(1, 0, clock),
        _ => None,
    }
}

/// The day of a part of the day that is named alone; none where it is over.
fn day_of_part(part: Part, now: DateTime) -> Option<Date> {
    let (over, next) = match part {
        Part::Dawn => (6, true),
        Part::Morning | Part::Am => (12, false),
        Part::Noon => (14, false),
        Part::Afternoon | Part::Pm => (18, false),
        Part::Evening | Part::Night | Part::DayEnd => (24, false),
    };
    match (now.hour() >= over, next) {
        (false, _) => Some(now.date()),
        (true, true) => add_days(now.date(), 1),
        (true, false) => None,
    }
}

/// The next day of that number, in this month or a later one that has it.
fn next_of_month(today: Date, day: u8) -> Option<Date> {
    let day = i8::try_from(day).ok()?;
    (0..12)
        .filter_map(|months| add_months(today.first_of_month(), months))
        .filter_map(|first| Date::new(first.year(), first.month(), day).ok())
        .find(|date| *date >= today)
}

fn nth_day(
    today: Date,
    year: Option<Year>,
    month: Month,
    day: impl Fn(i16, u8) -> Option<Date>,
) -> Option<Date> {
    match (year, month) {
        (None, Month::From(months)) => {
            let first = add_months(today.first_of_month(), months)?;
            day(first.year(), u8::try_from(first.month()).ok()?)
        }
        (None, Month::Of(month)) => (0..2)
            .filter_map(|years| day(today.year().checked_add(years)?, month))
            .find(|date| *date >= today),
        (Some(year), Month::Of(month)) => day(year_number(today, year)?, month),
        (Some(_), Month::From(_)) => None,
    }
}

/// The days of a lunar date: in the year that is named, else the first that is not past.
fn lunar_days(today: Date, year: Option<Year>, days: impl Fn(i16) -> Vec<Date>) -> Vec<Date> {
    if let Some(year) = year {
        return year_number(today, year).map(days).unwrap_or_default();
    }
    let own = lunar::year_of(today);
    (own..own.saturating_add(40))
        .map(days)
        .find(|days| days.iter().any(|day| *day >= today))
        .unwrap_or_default()
}

fn festivals(today: Date, year: Option<Year>, festival: Festival) -> Vec<Date> {
    let in_winter = matches!(festival, Festival::NewYearsEve | Festival::KitchenGod | Festival::Lunar(12, _));
    match (year, festival) {
        // People call the eve that falls into a year by that year.
        (Some(year), _) if in_winter => {
            let Some(year) = year_number(today, year) else { return Vec::new() };
            let falls = |days: &Vec<Date>| days.iter().any(|day| day.year() == year);
            [year - 1, year]
                .map(|lunar| calendar::festival(festival, lunar))
                .into_iter()
                .find(falls)
                .unwrap_or_default()
        }
        (Some(year), _) => {
            year_number(today, year).map(|year| calendar::festival(festival, year)).unwrap_or_default()
        }
        (None, _) => lunar_days(today, None, |year| calendar::festival(festival, year)),
    }
}

fn plain(value: Value) -> When {
    match value {
        Value::Day(day) | Value::Stretch(_, day, _) => When::Day(day),
        Value::At(at) => When::At(at),
    }
}

/// Whether a value is when something begins, when it is due, or both.
fn by_role(value: Value, marks: Marks) -> Vec<Meaning> {
    let start = |when: When| Meaning { start: Some(when), due: None };
    let due = |when: When| Meaning { start: None, due: Some(when) };
    let Value::Stretch(first, last, period) = value else {
        let when = plain(value);
        let begins = !marks.deadline && (marks.start || marks.event);
        return vec![if begins { start(when) } else { due(when) }];
    };
    let day = |day: Date| due(When::Day(day));
    if marks.deadline && marks.before {
        let eve = add_days(first, -1).map(day);
        return match period {
            // "before the week" is said of its end too.
            Period::Week(weeks) if weeks <= 0 => vec![day(last)],
            Period::Week(_) | Period::Weekend(_) => eve.into_iter().chain([day(last)]).collect(),
            Period::Days(..) => vec![day(last)],
            _ => eve.into_iter().collect(),
        };
    }
    if marks.deadline {
        return vec![day(last)];
    }
    if marks.start {
        return if marks.after {
            add_days(last, 1).map(|day| start(When::Day(day))).into_iter().collect()
        } else {
            vec![start(When::Day(first))]
        };
    }
    vec![Meaning { start: Some(When::Day(first)), due: Some(When::Day(last)) }]
}
