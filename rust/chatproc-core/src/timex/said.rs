//! What a wording says, before it is known when it was said.

use jiff::civil::Weekday;

/// A year: its number, or how many years from the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Year {
    Of(i16),
    From(i16),
}

/// A month: its number, or how many months from the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Month {
    Of(u8),
    From(i32),
}

/// Which week a weekday is meant in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Week {
    /// No week named: the nearest one from that day on.
    Nearest,
    /// So many weeks from the present one, Monday to Sunday.
    From(i64),
    /// English "this": in this week, or the nearest one when it is over.
    This,
    /// English "next": the coming one, or the one in the next week.
    Next,
    /// English "last": the latest one, or the one in the last week.
    Last,
}

/// A stretch of whole days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Period {
    Week(i64),
    Weekend(Week),
    Month(Option<Year>, Month),
    /// The first, second or last ten days of a month (1, 2, 3), its first or second half (4, 5).
    Third(Option<Year>, Month, u8),
    Quarter(Option<Year>, u8),
    /// So many quarters from the present one.
    QuarterFrom(i32),
    Half(Option<Year>, u8),
    Year(Year),
    LunarMonth(Option<Year>, u8, bool),
    /// From so many days from today to so many days from today.
    Days(i64, i64),
    /// Each end of a working week: Friday or Sunday, where English leaves it open.
    EndOfWeek(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Festival {
    Solar(u8, u8),
    Lunar(u8, u8),
    /// The day before the lunar new year.
    NewYearsEve,
    /// Kept on the 23rd or the 24th of the twelfth month.
    KitchenGod,
    /// A solar term, counted from 小寒.
    Term(u8),
    /// So many days from Easter Sunday.
    Easter(i64),
    /// The day after the fourth Thursday of November.
    BlackFriday,
    /// The n-th weekday of a month.
    Nth(u8, i8, Weekday),
}

/// What "from" counts from in "a week from Friday".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Day(i64),
    Weekday(Week, Weekday),
    Date(Option<Year>, u8, u8),
    Festival(Option<Year>, Festival),
}

impl Anchor {
    pub(super) fn day(self) -> Day {
        match self {
            Self::Day(days) => Day::Offset(days),
            Self::Weekday(week, weekday) => Day::Weekday(week, weekday),
            Self::Date(year, month, day) => Day::Date { year, month: Month::Of(month), day },
            Self::Festival(year, festival) => Day::Festival(year, festival),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Day {
    /// So many days from today.
    Offset(i64),
    /// So many months and days from today; the day of the month is kept.
    After {
        months: i32,
        days: i64,
    },
    Weekday(Week, Weekday),
    Date {
        year: Option<Year>,
        month: Month,
        day: u8,
    },
    /// The day of a month that is not named.
    OfMonth(u8),
    /// Two numbers with a stroke, either one the month.
    Stroke {
        year: Option<Year>,
        first: u8,
        second: u8,
    },
    Lunar {
        year: Option<Year>,
        month: u8,
        leap: bool,
        day: u8,
    },
    Festival(Option<Year>, Festival),
    /// The n-th (or with -1 the last) weekday of a month.
    Nth {
        year: Option<Year>,
        month: Month,
        nth: i8,
        weekday: Weekday,
    },
    Shifted(i64, Anchor),
    Period(Period),
    /// The last day of a stretch.
    EndOf(Period),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// 凌晨: midnight to morning.
    Dawn,
    Morning,
    Noon,
    Afternoon,
    Evening,
    /// 半夜, 深夜: from the evening into the next day.
    Night,
    Am,
    Pm,
    /// The end of a working day: which day, but no clock time.
    DayEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// On the clock of 24 hours.
    Full,
    /// On a clock face: morning or evening is open unless a part of the day says it.
    Open,
    /// "Midnight": the end of a day or its beginning.
    Midnight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub face: Face,
}

/// The zone a wording names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Named(&'static str),
    /// Seconds east of Greenwich.
    Fixed(i32),
    /// An abbreviation of several zones.
    Several(&'static [&'static str]),
}

/// One point in time, as far as it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub day: Option<Day>,
    /// A second wording for the day: "7月3日(周五)".
    pub also: Option<Day>,
    pub part: Option<Part>,
    /// A part of the day before it: "今晚凌晨".
    pub eve: bool,
    pub clock: Option<Clock>,
    pub place: Option<Place>,
    /// The day was told behind the clock time: "16:00-18:00 on Friday" has it at both ends.
    pub day_last: bool,
    /// So many days after the day: 中秋前一天.
    pub shift: i64,
}

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub months: i32,
    pub days: i64,
    pub seconds: i64,
    /// Whether it is counted in hours or less.
    pub exact: bool,
    /// Whether it is counted in weeks alone.
    pub weeks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Point(Point),
    Range(Point, Point),
    /// An amount after (or, with a negative one, before) the moment of saying it.
    After(Amount),
    /// By the end of an amount from the moment of saying it.
    Within(Amount),
    /// A time, but no certain one.
    Vague,
    /// A time that comes again and again.
    Recurring,
    /// A length, a number: no time, but not to be read as one from its middle on.
    Nothing,
}
