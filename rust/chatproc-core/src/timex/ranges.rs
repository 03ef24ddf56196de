//! Ranges: two points of which each may leave out what the other says.

use jiff::civil::{Date, DateTime};

use super::calendar::{self, add_days, on_or_after, solar, year_number};
use super::hours::{Hour, both_halves, hours};
use super::resolve::{Meaning, Moment, When, next_of_month};
use super::said::{Clock, Day, Face, Month, Part, Period, Point, Week, Year};

impl Moment<'_> {
    /// All meanings of a range.
    pub(super) fn ranges(&self, from: &Point, to: &Point) -> Vec<Meaning> {
        let from = &self.dated_by_end(from, to);
        let place = from.place.or(to.place);
        let mut meanings = Vec::new();
        for zone in self.zones(place) {
            let Some(now) = zone.local(self.sent) else { continue };
            let at = |time: Option<DateTime>, day: Date| match time {
                Some(time) => zone.moments(time).first().copied().map(When::At),
                None => Some(When::Day(day)),
            };
            for (start, end) in self.spans(from, to, now).into_iter().filter(in_order) {
                let (Some(start), Some(due)) = (at(start.1, start.0), at(end.1, end.0)) else { continue };
                meanings.push(Meaning { start: Some(start), due: Some(due) });
            }
        }
        meanings
    }

    /// A beginning without a year before an end with one: the year in which it comes before that end.
    fn dated_by_end(&self, from: &Point, to: &Point) -> Point {
        let end_year = match to.day {
            Some(Day::Date { year, .. } | Day::Stroke { year, .. } | Day::Period(Period::Month(year, _))) => {
                year
            }
            _ => None,
        };
        if let (Some(Day::OfMonth(day)), Some(Day::Date { year, month, .. })) = (from.day, to.day) {
            return Point { day: Some(Day::Date { year, month, day }), ..*from };
        }
        let (Some(year), Some(today)) = (end_year, self.today()) else { return *from };
        let with = |year: Year| {
            let year = Some(year);
            let day = match from.day? {
                Day::Date { year: None, month: month @ Month::Of(_), day } => Day::Date { year, month, day },
                Day::Stroke { year: None, first, second } => Day::Stroke { year, first, second },
                Day::Period(Period::Month(None, month @ Month::Of(_))) => {
                    Day::Period(Period::Month(year, month))
                }
                _ => return None,
            };
            Some(Point { day: Some(day), ..*from })
        };
        let first = |point: &Point| Some(self.days(point, today).first()?.0);
        let last = self.days(to, today).first().map(|(_, last)| *last);
        let before = || with(Year::Of(year_number(today, year)?.checked_sub(1)?));
        match with(year) {
            Some(same) if first(&same) <= last => same,
            Some(_) => before().unwrap_or(*from),
            None => *from,
        }
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
            // The first of the years that leave the end ahead.
            let open = spans.iter().find(|(_, end)| end.0 >= today);
            return open.or(spans.last()).copied().into_iter().collect();
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
            Some(
                Day::Period(Period::Month(None, Month::Of(month)))
                | Day::EndOf(Period::Month(None, Month::Of(month))),
            ) => {
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

/// One end of a range: its day, and its time where a clock time was told.
type End = (Date, Option<DateTime>);

/// "Monday to last night" is no range.
fn in_order((start, end): &(End, End)) -> bool {
    match (start.1, end.1) {
        (Some(start), Some(end)) => start <= end,
        _ => start.0 <= end.0,
    }
}

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
