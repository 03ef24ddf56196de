//! What a wording means when it was said at a certain moment.

use jiff::civil::{Date, DateTime};

use super::calendar::{self, add_days, add_months, solar, year_number};
use super::hours::{day_of_part, hours, nearest, other_half};
use super::lunar;
use super::marks::Marks;
use super::said::{Amount, Clock, Day, Face, Festival, Month, Part, Period, Place, Point, Said, Week, Year};
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
    pub(super) fn zones(&self, place: Option<Place>) -> Vec<Zone> {
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
        let open = clock.face == Face::Open && point.part.is_none();
        let point = &Point { part: if open { marks.part } else { point.part }, ..*point };
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

    /// The days of a point.
    pub(super) fn days(&self, point: &Point, today: Date) -> Vec<(Date, Date)> {
        let days = self.agreeing_days(point, today);
        if point.shift == 0 {
            return days;
        }
        let shifted = |(first, last): (Date, Date)| {
            // "前一天" of a stretch is before its first day.
            let day = add_days(if point.shift < 0 { first } else { last }, point.shift)?;
            Some((day, day))
        };
        days.into_iter().filter_map(shifted).collect()
    }

    /// The days that a point names; of two wordings those that agree, else all.
    fn agreeing_days(&self, point: &Point, today: Date) -> Vec<(Date, Date)> {
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

    pub(super) fn days_of(&self, day: Day, today: Date) -> Vec<(Date, Date)> {
        let single = |days: Vec<Date>| days.into_iter().map(|day| (day, day)).collect();
        let one = |day: Option<Date>| day.map(|day| (day, day)).into_iter().collect();
        match day {
            Day::Offset(days) => one(add_days(today, days)),
            Day::After { months, days } => one(add_months(today, months).and_then(|day| add_days(day, days))),
            Day::Weekday(week, weekday) => single(calendar::weekdays(today, week, weekday)),
            Day::Date { year, month, day } => single(Self::dates(today, year, month, day)),
            Day::OfMonth(day) => one(next_of_month(today, day)),
            Day::Stroke { year, first, second } => single(self.stroke(today, year, first, second)),
            Day::Lunar { year, month, leap, day } => single(lunar_days(today, year, |year| {
                lunar::day(year, month, leap, day)
                    .or_else(|| lunar::month_end(year, month, leap).filter(|_| month == 12 && day == 30))
                    .into_iter()
                    .collect()
            })),
            Day::Festival(year, festival) => single(festivals(today, year, festival)),
            Day::Nth { year, month, nth, weekday } => one(nth_day(today, year, month, |year, month| {
                calendar::nth_weekday(year, month, nth, weekday)
            })),
            Day::Shifted(days, anchor) => {
                let shifted = |(day, _): (Date, Date)| add_days(day, days).map(|day| (day, day));
                self.days_of(anchor.day(), today).into_iter().filter_map(shifted).collect()
            }
            Day::Period(period) => calendar::stretch(today, period),
            Day::EndOf(period) => {
                single(calendar::stretch(today, period).into_iter().map(|(_, last)| last).collect())
            }
        }
    }

    /// A date; without a year the coming one, and beside it one that is past for a few days only.
    fn dates(today: Date, year: Option<Year>, month: Month, day: u8) -> Vec<Date> {
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
        let dates = |&(month, day): &(u8, u8)| Self::dates(today, year, Month::Of(month), day);
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
                    // Late in the evening "今天凌晨" can be the coming night, "今天零点" always.
                    let night = point.part == Some(Part::Dawn) && now.hour() >= 18;
                    if night || (clock.hour == 0 && point.part.is_none()) {
                        times.extend(add_days(date, 1).map(on).unwrap_or_default());
                    }
                }
            }
        }
        times
    }
}

/// The next day of that number, in this month or a later one that has it.
pub(super) fn next_of_month(today: Date, day: u8) -> Option<Date> {
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
