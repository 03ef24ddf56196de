//! Numbers as chats write them: digits, 中文数字 with units or digit by digit, English words.

use super::cursor::{at, before, lit, pick_word, space, word};

/// Longest run of Chinese numerals that is one number; longer ones are no time.
const LONGEST: usize = 9;

/// Digits: value and how many there are. A run longer than nine is no number of a time.
pub(super) fn digits(t: &[char], i: usize) -> Option<(u32, usize)> {
    let mut value = 0;
    let mut end = i;
    while let Some(digit) = at(t, end).to_digit(10) {
        if end - i >= LONGEST {
            return None;
        }
        value = value * 10 + digit;
        end += 1;
    }
    (end > i).then_some((value, end))
}

/// Whether a number can begin with this letter.
pub(super) fn is_numeral(letter: char) -> bool {
    matches!(
        letter,
        '0'..='9'
            | '零'
            | '一'
            | '二'
            | '两'
            | '三'
            | '四'
            | '五'
            | '六'
            | '七'
            | '八'
            | '九'
            | '十'
            | '百'
            | '千'
            | '半'
            | '廿'
            | '卅'
    )
}

fn han_digit(letter: char) -> Option<u32> {
    let place = "零一二三四五六七八九".chars().position(|digit| digit == letter);
    place.and_then(|place| u32::try_from(place).ok()).or_else(|| (letter == '两').then_some(2))
}

/// 中文数字 with units: 五, 十二, 二十五, 廿三, 一百零五.
pub(super) fn han(t: &[char], i: usize) -> Option<(u32, usize)> {
    let (mut total, mut pending, mut room, mut end) = (0, None, 10_000, i);
    loop {
        let letter = at(t, end);
        let unit = match letter {
            '千' => 1000,
            '百' => 100,
            '十' => 10,
            '廿' | '卅' if end == i => {
                total = if letter == '廿' { 20 } else { 30 };
                room = 10;
                end += 1;
                continue;
            }
            '零' if end > i && pending.is_none() && han_digit(at(t, end + 1)).is_some() => {
                end += 1;
                continue;
            }
            _ => match han_digit(letter) {
                Some(digit) if pending.is_none() && room > 1 => {
                    pending = Some(digit);
                    end += 1;
                    continue;
                }
                _ => break,
            },
        };
        if unit >= room || (pending.is_none() && (unit != 10 || total > 0)) {
            break;
        }
        total += pending.take().unwrap_or(1) * unit;
        room = unit;
        end += 1;
    }
    (end > i).then_some((total + pending.unwrap_or(0), end))
}

/// 中文数字 digit by digit, at least two of them: 二零二六, 零五.
pub(super) fn han_digits(t: &[char], i: usize) -> Option<(u32, usize)> {
    let mut value = 0;
    let mut end = i;
    while let Some(digit) = han_digit(at(t, end)) {
        if end - i >= 4 {
            return None;
        }
        value = value * 10 + digit;
        end += 1;
    }
    (end - i >= 2).then_some((value, end))
}

/// Digits or 中文数字 with units, not in the middle of a longer number.
pub(super) fn number(t: &[char], i: usize) -> Option<(u32, usize)> {
    if at(t, i).is_ascii_digit() {
        return (!before(t, i).is_ascii_digit()).then(|| digits(t, i))?;
    }
    han(t, i)
}

/// A number of one or two digits, as months, days, hours and minutes have.
pub(super) fn small(t: &[char], i: usize) -> Option<(u8, usize)> {
    let (value, end) = number(t, i)?;
    if at(t, i).is_ascii_digit() && end - i > 2 {
        return None;
    }
    Some((u8::try_from(value).ok()?, end))
}

const ONES: &[(&str, u32)] = &[
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
];
const TENS: &[(&str, u32)] = &[("twenty", 20), ("thirty", 30), ("forty", 40), ("fifty", 50), ("sixty", 60)];

/// Digits, or a number in English words up to sixty-nine.
pub(super) fn english(t: &[char], i: usize) -> Option<(u32, usize)> {
    if at(t, i).is_ascii_digit() {
        return number(t, i);
    }
    if let Some((tens, end)) = pick_word(t, i, TENS) {
        let next = if at(t, end) == '-' { end + 1 } else { space(t, end) };
        return Some(match pick_word(t, next, &ONES[..9]) {
            Some((ones, end)) => (tens + ones, end),
            None => (tens, end),
        });
    }
    pick_word(t, i, ONES)
}

const ORDINALS: &[(&str, u8)] = &[
    ("first", 1),
    ("second", 2),
    ("third", 3),
    ("fourth", 4),
    ("fifth", 5),
    ("sixth", 6),
    ("seventh", 7),
    ("eighth", 8),
    ("ninth", 9),
    ("tenth", 10),
    ("eleventh", 11),
    ("twelfth", 12),
    ("thirteenth", 13),
    ("fourteenth", 14),
    ("fifteenth", 15),
    ("sixteenth", 16),
    ("seventeenth", 17),
    ("eighteenth", 18),
    ("nineteenth", 19),
    ("twentieth", 20),
    ("thirtieth", 30),
];

/// An English ordinal: 3rd, 21st, third, twenty-first.
pub(super) fn ordinal(t: &[char], i: usize) -> Option<(u8, usize)> {
    if at(t, i).is_ascii_digit() {
        let (value, end) = small(t, i)?;
        let end = ["st", "nd", "rd", "th"].iter().find_map(|suffix| lit(t, end, suffix))?;
        return (!at(t, end).is_ascii_alphanumeric()).then_some((value, end));
    }
    for (tens, value) in [("twenty", 20), ("thirty", 30)] {
        if let Some(end) = word(t, i, tens) {
            let next = if at(t, end) == '-' { end + 1 } else { space(t, end) };
            let (ones, end) = pick_word(t, next, &ORDINALS[..9])?;
            return Some((value + ones, end));
        }
    }
    pick_word(t, i, ORDINALS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn chinese_numbers_with_units_end_where_the_number_ends() {
        for (text, value, length) in [
            ("五", 5, 1),
            ("两点", 2, 1),
            ("十", 10, 1),
            ("十二点", 12, 2),
            ("二十五日", 25, 3),
            ("二十五五点", 25, 3),
            ("三十一", 31, 3),
            ("廿三", 23, 2),
            ("卅", 30, 1),
            ("一百零五", 105, 4),
            ("四十八小时", 48, 3),
        ] {
            assert_eq!(han(&letters(text), 0), Some((value, length)), "{text}");
        }
        assert_eq!(han(&letters("点"), 0), None);
        assert_eq!(han_digits(&letters("二零二六年"), 0), Some((2026, 4)));
        assert_eq!(han_digits(&letters("零五"), 0), Some((5, 2)));
        assert_eq!(han_digits(&letters("五"), 0), None);
    }

    #[test]
    fn english_numbers_and_ordinals() {
        for (text, value) in
            [("three", 3), ("forty-five", 45), ("twenty", 20), ("12", 12), ("sixty nine", 69)]
        {
            assert_eq!(english(&letters(text), 0).map(|(value, _)| value), Some(value), "{text}");
        }
        for (text, value) in [("3rd", 3), ("twenty-first", 21), ("31st", 31), ("third", 3)] {
            assert_eq!(ordinal(&letters(text), 0).map(|(value, _)| value), Some(value), "{text}");
        }
        assert_eq!(english(&letters("oneself"), 0), None);
        assert_eq!(digits(&letters("1234567890"), 0), None);
    }
}
