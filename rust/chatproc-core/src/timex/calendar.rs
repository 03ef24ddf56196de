//! Arithmetic on days: weeks from Monday, months, festivals, stretches of days.

use jiff::Span;
use jiff::civil::{Date, Weekday, date};

use super::said::{Festival, Month, Period, Week, Year};
use super::{lunar, sun};

pub(super) fn add_days(day: Date, days: i64) -> Option<Date> {
    day.checked_add(Span::new().try_days(days).ok()?).ok()
}

/// The same day so many months on, or the last day of a shorter month.
pub(super) fn add_months(day: Date, months: i32) -> Option<Date> {
    day.checked_add(Span::new().try_months(months).ok()?).ok()
}

pub(super) fn monday(day: Date) -> Option<Date> {
    add_days(day, -i64::from(day.weekday().to_monday_zero_offset()))
}

/// The weekday in the week that lies so many weeks from a day's own.
pub(super) fn in_week(day: Date, weeks: i64, weekday: Weekday) -> Option<Date> {
    add_days(monday(day)?, weeks.checked_mul(7)?.checked_add(weekday.to_monday_zero_offset().into())?)
}

/// The nearest such weekday from a day on.
pub(super) fn on_or_after(day: Date, weekday: Weekday) -> Option<Date> {
    add_days(day, weekday.since(day.weekday()).into())
}

/// The days that a weekday with its week can mean, the likeliest first.
pub(super) fn weekdays(today: Date, week: Week, weekday: Weekday) -> Vec<Date> {
    let coming = || add_days(on_or_after(today, weekday)?, if today.weekday() == weekday { 7 } else { 0 });
    let found = match week {
        Week::Nearest => vec![on_or_after(today, weekday)],
        Week::From(weeks) => vec![in_week(today, weeks, weekday)],
        Week::This => vec![in_week(today, 0, weekday).filter(|day| *day >= today).or_else(coming)],
        Week::Next => vec![in_week(today, 1, weekday), coming()],
        Week::Last => vec![
            in_week(today, -1, weekday),
            add_days(today, -1).and_then(|day| add_days(day, -i64::from(day.weekday().since(weekday)))),
        ],
    };
    distinct(found)
}

fn distinct(days: Vec<Option<Date>>) -> Vec<Date> {
    let mut kept = Vec::new();
    for day in days.into_iter().flatten() {
        if !kept.contains(&day) {
            kept.push(day);
        }
    }
    kept
}

pub(super) fn year_number(today: Date, year: Year) -> Option<i16> {
    match year {
        Year::Of(number) => Some(number),
        Year::From(years) => today.year().checked_add(years),
    }
    .filter(|number| (1..=9999).contains(number))
}

/// The n-th such weekday of a month, from its end with -1.
pub(super) fn nth_weekday(year: i16, month: u8, nth: i8, weekday: Weekday) -> Option<Date> {
    let first = Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
    first.nth_weekday_of_month(nth, weekday).ok()
}

/// The day of a festival in a year; for a lunar one the lunar year of that number.
pub(super) fn festival(festival: Festival, year: i16) -> Vec<Date> {
    match festival {
        Festival::Solar(month, day) => solar(year, month, day).into_iter().collect(),
        Festival::Lunar(month, day) => lunar::day(year, month, false, day).into_iter().collect(),
        Festival::NewYearsEve => lunar::month_end(year, 12, false).into_iter().collect(),
        Festival::KitchenGod => {
            [23, 24].into_iter().filter_map(|day| lunar::day(year, 12, false, day)).collect()
        }
        Festival::Term(number) => sun::term(number, year).into_iter().collect(),
        Festival::Easter(days) => {
            sun::easter(year).and_then(|easter| add_days(easter, days)).into_iter().collect()
        }
        Festival::BlackFriday => {
            nth_weekday(year, 11, 4, Weekday::Thursday).and_then(|day| add_days(day, 1)).into_iter().collect()
        }
        Festival::Nth(month, nth, weekday) => nth_weekday(year, month, nth, weekday).into_iter().collect(),
    }
}

pub(super) fn solar(year: i16, month: u8, day: u8) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// The first and the last day of stretches that a wording can mean.
pub(super) fn stretch(today: Date, period: Period) -> Vec<(Date, Date)> {
    let one = |span: Option<(Date, Date)>| span.into_iter().collect();
    match period {
        Period::Week(weeks) => one(whole_week(today, weeks)),
        Period::Weekend(week) => weekends(today, week),
        Period::Days(first, last) => one(add_days(today, first).zip(add_days(today, last))),
        Period::EndOfWeek(weeks) => [Weekday::Friday, Weekday::Sunday]
            .into_iter()
            .filter_map(|weekday| in_week(today, weeks, weekday))
            .filter(|day| *day >= today)
            .map(|day| (day, day))
            .collect(),
        Period::Month(year, month) => {
            one(month_start(today, year, month).map(|first| (first, first.last_of_month())))
        }
        Period::Third(year, month, third) => one(month_third(today, year, month, third)),
        Period::Quarter(year, quarter) => one(months_of(today, year, (quarter - 1) * 3 + 1, 3)),
        Period::Half(year, half) => one(months_of(today, year, (half - 1) * 6 + 1, 6)),
        Period::QuarterFrom(quarters) => {
            let month = (today.month() - 1) / 3 * 3 + 1;
            let first = Date::new(today.year(), month, 1)
                .ok()
                .and_then(|first| add_months(first, quarters.checked_mul(3)?));
            one(first.and_then(|first| Some((first, add_days(add_months(first, 3)?, -1)?))))
        }
        Period::Year(year) => {
            one(year_number(today, year).map(|year| (date(year, 1, 1), date(year, 12, 31))))
        }
        Period::LunarMonth(year, month, leap) => one(lunar_month(today, year, month, leap)),
    }
}

fn whole_week(today: Date, weeks: i64) -> Option<(Date, Date)> {
    in_week(today, weeks, Weekday::Monday).zip(in_week(today, weeks, Weekday::Sunday))
}

fn weekends(today: Date, week: Week) -> Vec<(Date, Date)> {
    let weeks = match week {
        Week::From(weeks) => vec![weeks],
        Week::Nearest | Week::This => vec![0],
        Week::Next => vec![1, 0],
        Week::Last => vec![-1],
    };
    let weekend =
        |weeks: i64| in_week(today, weeks, Weekday::Saturday).zip(in_week(today, weeks, Weekday::Sunday));
    let over = today.weekday().to_monday_zero_offset() >= 5;
    // On a Saturday "next weekend" is surely the one after this.
    weeks
        .iter()
        .filter(|weeks| !(over && week == Week::Next && **weeks == 0))
        .filter_map(|weeks| weekend(*weeks))
        .collect()
}

/// The first day of a month; without a year the present one or, when it is over, the next one.
fn month_start(today: Date, year: Option<Year>, month: Month) -> Option<Date> {
    match month {
        Month::From(months) => add_months(today.first_of_month(), months),
        Month::Of(month) => {
            let over = year.is_none() && i8::try_from(month).ok()? < today.month();
            let year = year_number(today, year.unwrap_or(Year::From(i16::from(over))))?;
            solar(year, month, 1)
        }
    }
}

fn month_third(today: Date, year: Option<Year>, month: Month, third: u8) -> Option<(Date, Date)> {
    let span = |first: Date| {
        let at = |day: i8| Date::new(first.year(), first.month(), day).ok();
        match third {
            1 => at(1).zip(at(10)),
            2 => at(11).zip(at(20)),
            4 => at(1).zip(at(15)),
            5 => at(16).zip(Some(first.last_of_month())),
            _ => at(21).zip(Some(first.last_of_month())),
        }
    };
    let found = span(month_start(today, year, month)?)?;
    if found.1 >= today || year.is_some() {
        return Some(found);
    }
    match month {
        Month::From(0) => span(month_start(today, year, Month::From(1))?),
        Month::Of(_) => span(add_months(month_start(today, year, month)?, 12)?),
        Month::From(_) => Some(found),
    }
}

/// So many months from one on; without a year the present one or, when they are over, the next one.
fn months_of(today: Date, year: Option<Year>, month: u8, months: i32) -> Option<(Date, Date)> {
    let span = |year: i16| {
        let first = solar(year, month, 1)?;
        Some((first, add_days(add_months(first, months)?, -1)?))
    };
    let found = span(year_number(today, year.unwrap_or(Year::From(0)))?)?;
    if year.is_none() && found.1 < today { span(today.year().checked_add(1)?) } else { Some(found) }
}

fn lunar_month(today: Date, year: Option<Year>, month: u8, leap: bool) -> Option<(Date, Date)> {
    let span = |year: i16| lunar::day(year, month, leap, 1).zip(lunar::month_end(year, month, leap));
    let own = lunar::year_of(today);
    match year {
        Some(year) => span(year_number(today, year)?),
        None => (own..own.checked_add(40)?).filter_map(span).find(|(_, last)| *last >= today),
    }
}
