//! The Chinese calendar from 1900 to 2099, as a table of its months.
//!
//! Each year is one number: bits 0 to 12 tell which of its months, the leap month in its place, have 30 days
//! (else 29), bits 13 to 16 the month that is doubled (0: none), bits 17 up the days from 1 January to its
//! first day. The table was computed from new moons and solar terms in China's time and compared month by
//! month with two calendars that are kept by other hands; they differ only in the eighth month of 2089 and
//! the seventh of 2097, which begin within minutes of midnight.

use jiff::civil::{Date, date};

const FIRST: i16 = 1900;

#[rustfmt::skip]
const YEARS: [u32; 200] = [
    0x3d_16d2, 0x62_0752, 0x4c_0ea5, 0x38_b64a, 0x5c_064b, 0x44_0a9b, 0x30_9556, 0x56_056a, 0x40_0b59, 0x2a_5752,
    0x50_0752, 0x3a_db25, 0x60_0b25, 0x48_0a4b, 0x32_b4ab, 0x58_02ad, 0x42_056b, 0x2c_4b69, 0x52_0da9, 0x3e_fd92,
    0x64_0e92, 0x4c_0d25, 0x36_ba4d, 0x5c_0a56, 0x46_02b6, 0x2e_95b5, 0x56_06d4, 0x40_0ea9, 0x2c_5e92, 0x50_0e92,
    0x3a_cd26, 0x5e_052b, 0x48_0a57, 0x32_b2b6, 0x58_0b5a, 0x44_06d4, 0x2e_6ec9, 0x52_0749, 0x3c_f693, 0x62_0a93,
    0x4c_052b, 0x34_ca5b, 0x5a_0aad, 0x46_056a, 0x30_9b55, 0x56_0ba4, 0x40_0b49, 0x2a_5a93, 0x50_0a95, 0x38_f52d,
    0x5e_0536, 0x48_0aad, 0x34_b5aa, 0x58_05b2, 0x42_0da5, 0x2e_7d4a, 0x54_0d4a, 0x3d_0a95, 0x60_0a97, 0x4c_0556,
    0x36_cab5, 0x5a_0ad5, 0x46_06d2, 0x30_8ea5, 0x56_0ea5, 0x40_064a, 0x28_6c97, 0x4e_0a9b, 0x3a_f55a, 0x5e_056a,
    0x48_0b69, 0x34_b752, 0x5a_0b52, 0x42_0b25, 0x2c_964b, 0x52_0a4b, 0x3d_14ab, 0x60_02ad, 0x4a_056d, 0x36_cb69,
    0x5c_0da9, 0x46_0d92, 0x30_9d25, 0x56_0d25, 0x41_5a4d, 0x64_0a56, 0x4e_02b6, 0x38_c5b5, 0x5e_06d5, 0x48_0ea9,
    0x34_be92, 0x5a_0e92, 0x44_0d26, 0x2c_6a56, 0x50_0a57, 0x3d_14d6, 0x62_035a, 0x4a_06d5, 0x36_b6c9, 0x5c_0749,
    0x46_0693, 0x2e_952b, 0x54_052b, 0x3e_0a5b, 0x2a_555a, 0x4e_056a, 0x38_fb55, 0x60_0ba4, 0x4a_0b49, 0x32_ba93,
    0x58_0a95, 0x42_052d, 0x2c_8aad, 0x50_0ab5, 0x3d_35aa, 0x62_05d2, 0x4c_0da5, 0x36_dd4a, 0x5c_0d4a, 0x46_0c95,
    0x30_952e, 0x54_0556, 0x3e_0ab5, 0x2a_55b2, 0x50_06d2, 0x38_cea5, 0x5e_0725, 0x48_064b, 0x32_ac97, 0x56_0cab,
    0x42_055a, 0x2c_6ad6, 0x52_0b69, 0x3d_7752, 0x62_0b52, 0x4c_0b25, 0x36_da4b, 0x5a_0a4b, 0x44_04ab, 0x2e_a55b,
    0x54_05ad, 0x3e_0b6a, 0x2a_5b52, 0x50_0d92, 0x3a_fd25, 0x5e_0d25, 0x48_0a55, 0x32_b4ad, 0x58_04b6, 0x40_05b5,
    0x2c_6daa, 0x52_0ec9, 0x3f_1e92, 0x62_0e92, 0x4c_0d26, 0x36_ca56, 0x5a_0a57, 0x44_04d6, 0x2e_86d5, 0x54_0755,
    0x40_0749, 0x28_6e93, 0x4e_0693, 0x38_f52b, 0x5e_052b, 0x46_0a5b, 0x32_b55a, 0x58_056a, 0x42_0b65, 0x2c_974a,
    0x52_0b4a, 0x3d_1a95, 0x62_0a95, 0x4a_052d, 0x34_caad, 0x5a_0ab5, 0x46_05aa, 0x2e_8ba5, 0x54_0da5, 0x40_0d4a,
    0x2a_7c95, 0x4e_0c96, 0x38_f94e, 0x5e_0556, 0x48_0ab5, 0x32_b5b2, 0x58_06d2, 0x42_0ea5, 0x2e_8e4a, 0x50_068b,
    0x3b_0c97, 0x60_04ab, 0x4a_055b, 0x34_cad6, 0x5a_0b6a, 0x46_0752, 0x30_9725, 0x54_0b45, 0x3e_0a8b, 0x28_549b,
];

struct Year {
    first: Date,
    leap: u8,
    long: u32,
}

fn year(number: i16) -> Option<Year> {
    let packed = *YEARS.get(usize::try_from(number.checked_sub(FIRST)?).ok()?)?;
    let first = date(number, 1, 1).checked_add(jiff::Span::new().days(packed >> 17)).ok()?;
    Some(Year { first, leap: u8::try_from(packed >> 13 & 15).ok()?, long: packed & 0x1fff })
}

/// The day of a lunar date; `None` where that year has no such month or day.
pub(super) fn day(number: i16, month: u8, leap: bool, day: u8) -> Option<Date> {
    let year = year(number)?;
    if !(1..=12).contains(&month) || (leap && year.leap != month) {
        return None;
    }
    let place = u32::from(month - 1) + u32::from(leap || (year.leap != 0 && month > year.leap));
    let length = |place: u32| 29 + (year.long >> place & 1);
    if day == 0 || u32::from(day) > length(place) {
        return None;
    }
    let days = (0..place).map(length).sum::<u32>() + u32::from(day) - 1;
    year.first.checked_add(jiff::Span::new().days(days)).ok()
}

/// The last day of a lunar month.
pub(super) fn month_end(number: i16, month: u8, leap: bool) -> Option<Date> {
    day(number, month, leap, 30).or_else(|| day(number, month, leap, 29))
}

/// The lunar year in which a day lies; its own year's number where the table does not reach.
pub(super) fn year_of(day: Date) -> i16 {
    match year(day.year()) {
        Some(year) if day < year.first => day.year() - 1,
        _ => day.year(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn festivals_fall_on_the_days_of_printed_calendars() {
        for (number, month, leap, lunar, solar) in [
            (1900, 1, false, 1, date(1900, 1, 31)),
            (1984, 10, true, 1, date(1984, 11, 23)),
            (2000, 1, false, 1, date(2000, 2, 5)),
            (2020, 4, true, 1, date(2020, 5, 23)),
            (2023, 8, false, 15, date(2023, 9, 29)),
            (2024, 1, false, 1, date(2024, 2, 10)),
            (2025, 6, true, 1, date(2025, 7, 25)),
            (2025, 8, false, 15, date(2025, 10, 6)),
            (2025, 12, false, 23, date(2026, 2, 10)),
            (2026, 1, false, 1, date(2026, 2, 17)),
            (2026, 5, false, 5, date(2026, 6, 19)),
            (2026, 8, false, 15, date(2026, 9, 25)),
            (2027, 1, false, 1, date(2027, 2, 6)),
            (2033, 11, true, 1, date(2033, 12, 22)),
        ] {
            assert_eq!(day(number, month, leap, lunar), Some(solar), "{number}-{month}-{lunar}");
        }
    }

    #[test]
    fn each_year_ends_where_the_next_begins() {
        for number in FIRST..2099 {
            let end = month_end(number, 12, false).unwrap();
            assert_eq!(end.tomorrow().unwrap(), day(number + 1, 1, false, 1).unwrap(), "{number}");
        }
    }

    #[test]
    fn what_a_year_does_not_have_is_no_day() {
        assert_eq!(day(2026, 6, true, 1), None);
        assert_eq!(day(2025, 12, false, 30), None);
        assert_eq!(day(1899, 1, false, 1), None);
        assert_eq!(day(2100, 1, false, 1), None);
        assert_eq!(year_of(date(2026, 2, 16)), 2025);
        assert_eq!(year_of(date(2026, 2, 17)), 2026);
    }
}
