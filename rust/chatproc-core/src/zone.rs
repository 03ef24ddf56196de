//! Instants as people write and read them: RFC 3339 in the rules' zone, or a date without a clock time.
//!
//! Pure. Knows no clock: every instant is an argument, in milliseconds since 1970.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::error::{Error, Result};

/// A time zone by its IANA name, from the data that is built in.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

/// Which end of a day a date without a clock time stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Its first millisecond.
    Start,
    /// Its last millisecond.
    End,
}

impl Zone {
    /// Finds a zone; an unknown name is [`Error::Config`].
    pub fn named(name: &str) -> Result<Self> {
        let zone =
            TimeZone::get(name).map_err(|_| Error::Config(format!("{name:?} is no IANA time zone")))?;
        Ok(Self { name: name.to_owned(), zone })
    }

    /// A zone with one offset, in seconds east of Greenwich.
    pub fn fixed(seconds: i32) -> Result<Self> {
        let offset = Offset::from_seconds(seconds)
            .map_err(|_| Error::Invalid(format!("{seconds} s is no offset of a time zone")))?;
        Ok(Self { name: offset.to_string(), zone: offset.to_time_zone() })
    }

    /// What calendar and clock show here at an instant.
    #[must_use]
    pub fn local(&self, at: i64) -> Option<DateTime> {
        let time = Timestamp::from_millisecond(at).ok()?;
        Some(self.zone.to_offset(time).to_datetime(time))
    }

    /// The instants at which the clock here shows a time: two when it is set back over it. A time that it
    /// skips is moved on by as much as the clock is.
    #[must_use]
    pub fn moments(&self, shown: DateTime) -> Vec<i64> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let offsets = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => vec![offset],
            // Read with the offset before the gap it comes out behind it, by as much as was skipped.
            AmbiguousOffset::Gap { before, .. } => vec![before],
            AmbiguousOffset::Fold { before, after } => vec![before, after],
        };
        offsets
            .into_iter()
            .filter_map(|offset| Some(offset.to_timestamp(shown).ok()?.as_millisecond()))
            .collect()
    }

    /// The name it was found by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes an instant as RFC 3339 with this zone's offset; milliseconds only where there are any.
    pub fn rfc3339(&self, at: i64) -> Result<String> {
        let time = Timestamp::from_millisecond(at)
            .map_err(|_| Error::Invalid(format!("{at} ms lies outside the years 1 to 9999")))?;
        let mut text = String::with_capacity(32);
        DateTimePrinter::new()
            .print_timestamp_with_offset(&time, self.zone.to_offset(time), &mut text)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(text)
    }

    /// Reads RFC 3339 with an offset, or `YYYY-MM-DD` as an edge of that day here; anything else is
    /// [`Error::Invalid`].
    pub fn instant(&self, text: &str, edge: Edge) -> Result<i64> {
        self.day(text, edge).or_else(|| moment(text)).ok_or_else(|| {
            Error::Invalid(format!("{text:?} is neither RFC 3339 with an offset nor YYYY-MM-DD"))
        })
    }

    fn day(&self, text: &str, edge: Edge) -> Option<i64> {
        after_digits(text, "dddd-dd-dd").filter(|rest| rest.is_empty())?;
        let day: Date = text.parse().ok()?;
        let start = |day: Date| Some(self.zone.to_timestamp(day.at(0, 0, 0, 0)).ok()?.as_millisecond());
        match edge {
            Edge::Start => start(day),
            Edge::End => Some(start(day.tomorrow().ok()?)? - 1),
        }
    }
}

/// The instant of a text that is RFC 3339 to the letter; the parser alone would take more than that.
fn moment(text: &str) -> Option<i64> {
    let rest = after_digits(text, "dddd-dd-ddTdd:dd:dd")?;
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            (offset.len() < fraction.len()).then_some(offset)?
        }
        None => rest,
    };
    let is_offset = offset == "Z"
        || offset
            .strip_prefix(['+', '-'])
            .and_then(|offset| after_digits(offset, "dd:dd"))
            .is_some_and(str::is_empty);
    is_offset.then(|| Some(text.parse::<Timestamp>().ok()?.as_millisecond()))?
}

/// What follows a beginning of that shape, where `d` is any ASCII digit.
fn after_digits<'t>(text: &'t str, shape: &str) -> Option<&'t str> {
    let head = text.get(..shape.len())?;
    let fits =
        |(found, wanted): (u8, u8)| if wanted == b'd' { found.is_ascii_digit() } else { found == wanted };
    head.bytes().zip(shape.bytes()).all(fits).then(|| &text[shape.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shanghai() -> Zone {
        Zone::named("Asia/Shanghai").unwrap()
    }

    #[test]
    fn an_instant_is_written_with_the_zones_offset_and_read_back() {
        for (at, text) in [
            (1_782_871_200_000, "2026-07-01T10:00:00+08:00"),
            (1_782_871_200_250, "2026-07-01T10:00:00.25+08:00"),
        ] {
            assert_eq!(shanghai().rfc3339(at).unwrap(), text);
            assert_eq!(shanghai().instant(text, Edge::Start).unwrap(), at);
        }
    }

    #[test]
    fn a_date_stands_for_either_edge_of_the_zones_day() {
        let zone = shanghai();
        assert_eq!(
            zone.rfc3339(zone.instant("2026-07-01", Edge::Start).unwrap()).unwrap(),
            "2026-07-01T00:00:00+08:00"
        );
        assert_eq!(
            zone.rfc3339(zone.instant("2026-07-01", Edge::End).unwrap()).unwrap(),
            "2026-07-01T23:59:59.999+08:00"
        );
        // On this day New York's clock went from 2 to 3: it had 23 hours.
        let zone = Zone::named("America/New_York").unwrap();
        let edges = [Edge::Start, Edge::End].map(|edge| zone.instant("2026-03-08", edge).unwrap());
        assert_eq!(edges[1] - edges[0], 23 * 3_600_000 - 1);
    }

    #[test]
    fn what_is_neither_a_date_nor_rfc_3339_is_refused() {
        for text in [
            "",
            "2026-7-1",
            "2026-02-30",
            "2026-07-01T10:00",
            "2026-07-01T10:00+08:00",
            "2026-07-01 10:00:00Z",
            "2026-07-01T10:00:00",
            "2026-07-01T10:00:00.Z",
            "2026-07-01T10:00:00+0800",
            "2026-07-01T25:00:00Z",
            "2026-07-01T10:00:00+08:00[Asia/Shanghai]",
            "2026-07-01 ",
            "明天",
            "２０２６-07-01",
            "-000001-01-01",
        ] {
            assert!(shanghai().instant(text, Edge::Start).is_err(), "{text:?} was read");
        }
        assert!(matches!(Zone::named("Asia/Nowhere"), Err(Error::Config(_))));
    }
}
