//! Days that the sun decides, and the moon with it: the 24 solar terms in China's time, Easter.

use jiff::civil::Date;

use super::calendar::solar;

/// The month of each solar term from 小寒 on, and the day of the year 2000 that its mean falls on, in
/// ten-thousandths. Found by fitting the sun's apparent longitude over 2000 to 2099.
const TERMS: [(u8, i32); 24] = [
    (1, 53_820),
    (1, 201_085),
    (2, 38_665),
    (2, 187_180),
    (3, 55_930),
    (3, 206_480),
    (4, 48_040),
    (4, 200_940),
    (5, 54_995),
    (5, 210_390),
    (6, 56_480),
    (6, 213_670),
    (7, 70_940),
    (7, 228_280),
    (8, 74_995),
    (8, 231_250),
    (9, 76_405),
    (9, 230_390),
    (10, 83_120),
    (10, 234_445),
    (11, 74_445),
    (11, 223_510),
    (12, 71_710),
    (12, 219_290),
];

/// Terms within minutes of midnight, where the mean is a day off.
const NEAR_MIDNIGHT: &[(u8, i16, i32)] =
    &[(3, 2026, -1), (4, 2080, 1), (8, 2002, 1), (10, 2022, 1), (14, 2002, 1), (23, 2021, -1)];

/// The day of a solar term (0 is 小寒, 23 is 冬至) in a year of 2000 to 2099.
pub(super) fn term(number: u8, year: i16) -> Option<Date> {
    let since = i32::from(year).checked_sub(2000).filter(|since| (0..100).contains(since))?;
    let &(month, mean) = TERMS.get(usize::from(number))?;
    // 0.2422 days a year are made good by a leap day every fourth year, from March of it on.
    let leaps = if month < 3 { (since + 3) / 4 - 1 } else { since / 4 };
    let off = NEAR_MIDNIGHT.iter().find(|(term, near, _)| (*term, *near) == (number, year));
    let day = (since * 2422 + mean) / 10_000 - leaps + off.map_or(0, |(_, _, days)| *days);
    solar(year, month, u8::try_from(day).ok()?)
}

/// Easter Sunday of the Gregorian calendar.
pub(super) fn easter(year: i16) -> Option<Date> {
    let year_number = i32::from(year);
    let golden = year_number % 19;
    let century = year_number / 100;
    let epact = (century - century / 4 - (8 * century + 13) / 25 + 19 * golden + 15) % 30;
    let full = epact - (epact / 28) * (1 - (29 / (epact + 1)) * ((21 - golden) / 11));
    let weekday = (year_number + year_number / 4 + full + 2 - century + century / 4) % 7;
    let after = full - weekday;
    let month = 3 + (after + 40) / 44;
    solar(year, u8::try_from(month).ok()?, u8::try_from(after + 28 - 31 * (month / 4)).ok()?)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn terms_are_what_almanacs_say() {
        for (number, day) in [
            (0, date(2000, 1, 6)),
            (2, date(2024, 2, 4)),
            (2, date(2025, 2, 3)),
            (3, date(2026, 2, 18)),
            (5, date(2026, 3, 20)),
            (5, date(2023, 3, 21)),
            (6, date(2026, 4, 5)),
            (6, date(2028, 4, 4)),
            (10, date(2022, 6, 6)),
            (11, date(2026, 6, 21)),
            (14, date(2026, 8, 7)),
            (17, date(2026, 9, 23)),
            (20, date(2026, 11, 7)),
            (23, date(2021, 12, 21)),
            (23, date(2024, 12, 21)),
            (23, date(2026, 12, 22)),
        ] {
            assert_eq!(term(number, day.year()), Some(day));
        }
        assert_eq!(term(24, 2026), None);
        assert_eq!(term(0, 1999), None);
    }

    #[test]
    fn easter_is_what_the_church_says() {
        for day in
            [date(2000, 4, 23), date(2024, 3, 31), date(2025, 4, 20), date(2026, 4, 5), date(2038, 4, 25)]
        {
            assert_eq!(easter(day.year()), Some(day));
        }
    }
}
