//! What the contract allows as a value: both readers of a line ask here.

use crate::json;

/// The schema of every line.
pub const SCHEMA: &str = "chatproc.event/1";
/// Whole numbers up to here are exact in every JSON reader.
const MAX_SAFE: i128 = (1 << 53) - 1;
/// The first second that cannot be written as a date in every time zone.
const END_OF_TIME: i128 = 253_402_207_200;

/// A number of things, as JSON writes it.
pub fn natural(text: &str) -> Option<u64> {
    json::scaled(text, 0).filter(|number| *number <= MAX_SAFE).and_then(|number| u64::try_from(number).ok())
}

/// Seconds since 1970, as JSON writes them, in milliseconds.
pub fn seconds(text: &str) -> Option<i64> {
    let milliseconds = json::scaled(text, 3).filter(|number| (0..END_OF_TIME * 1000).contains(number))?;
    i64::try_from(milliseconds).ok()
}

/// A position, as JSON writes it.
pub fn position(text: &str) -> Option<i64> {
    json::scaled(text, 0).and_then(|number| i64::try_from(number).ok())
}

/// Whether a text has `least` to `most` characters.
pub fn is_length(text: &str, least: usize, most: usize) -> bool {
    // No text has more characters than bytes: the count is seldom needed.
    text.len() >= least && (text.len() <= most || text.chars().count() <= most)
}

/// Whether a text can be a platform's name.
pub fn is_platform(text: &str) -> bool {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    is_length(text, 1, 32) && text.bytes().all(allowed)
}
