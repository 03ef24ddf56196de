//! Clock times on the clock of 24 hours: what a part of the day makes of them, and which half is meant.

use jiff::civil::{Date, DateTime, Time};

use super::calendar::add_days;
use super::said::{Clock, Face, Part, Point};

/// A clock time without a day: the next time that the clock shows it.
pub(super) fn nearest(point: &Point, clock: Clock, now: DateTime, hours: &[Hour]) -> Vec<DateTime> {
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

/// A clock time on the clock of 24 hours, so many days after the day it is told with.
#[derive(Clone, Copy)]
pub(super) struct Hour {
    pub days: i64,
    pub time: Time,
}

impl Hour {
    fn new(days: i64, hour: u8, clock: Clock) -> Option<Self> {
        let [hour, minute, second] = [hour, clock.minute, clock.second].map(i8::try_from);
        Some(Self { days, time: Time::new(hour.ok()?, minute.ok()?, second.ok()?, 0).ok()? })
    }

    pub(super) fn on(&self, day: Date) -> Option<DateTime> {
        Some(add_days(day, self.days)?.to_datetime(self.time))
    }
}

/// What a clock time with its part of the day can mean. `limit`: it is the end of a time for something.
pub(super) fn hours(clock: Clock, part: Option<Part>, eve: bool, limit: bool) -> Vec<Hour> {
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
            // Between eight and noon the day is meant; "by 12" may be midnight too. Of the others the hour
            // at which people are up is the likelier one, and for a deadline the later one.
            6 | 7 if !limit => both_halves(clock),
            1..=7 => both_halves(clock).into_iter().rev().collect(),
            12 if limit && clock.minute == 0 => [one(0, 12), one(1, 0)].concat(),
            _ => one(0, hour),
        },
    }
}

/// An hour of a clock face in the morning and in the evening.
pub(super) fn both_halves(clock: Clock) -> Vec<Hour> {
    let morning = if clock.hour == 12 { 0 } else { clock.hour };
    let mut both: Vec<Hour> =
        [morning, morning + 12].into_iter().filter_map(|hour| Hour::new(0, hour, clock)).collect();
    if clock.face == Face::Midnight || clock.face == Face::Full || clock.hour > 12 {
        both = hours(clock, None, false, false);
    }
    both
}

/// The evening's hour of one that is by itself read as the morning's.
pub(super) fn other_half(clock: Clock, part: Option<Part>) -> Option<Hour> {
    let open = clock.face == Face::Open && matches!(part, None | Some(Part::DayEnd));
    match clock.hour {
        8..=11 if open => Hour::new(0, clock.hour + 12, clock),
        12 if open => Hour::new(1, 0, clock),
        _ => None,
    }
}

/// The day of a part of the day that is named alone; none where it is over.
pub(super) fn day_of_part(part: Part, now: DateTime) -> Option<Date> {
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
