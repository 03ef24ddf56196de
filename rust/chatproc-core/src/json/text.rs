//! Strings: where they can end, how they are written, and how they are shown to a person.

use std::borrow::Cow;

/// How many bytes from here on are neither quote, backslash nor control character.
#[inline]
pub fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    // The highest bit of each byte that is zero; above the first such byte it may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let mut rest = bytes;
    while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let controls = word.wrapping_sub(ONES * 0x20) & !word & (ONES << 7);
        let stops = controls | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c));
        if stops != 0 {
            return bytes.len() - rest.len() + (stops.trailing_zeros() / 8) as usize;
        }
        rest = behind;
    }
    let tail = rest.iter().take_while(|byte| !matches!(**byte, b'"' | b'\\' | 0..0x20)).count();
    bytes.len() - rest.len() + tail
}

/// Writes a string of a tree; one that was read without escapes needs no look.
#[allow(clippy::ptr_arg, reason = "whether it is borrowed is the point")]
pub fn write_text(out: &mut Vec<u8>, text: &Cow<'_, str>) {
    match text {
        Cow::Borrowed(plain) => {
            out.push(b'"');
            out.extend_from_slice(plain.as_bytes());
            out.push(b'"');
        }
        Cow::Owned(any) => write_string(out, any),
    }
}

/// Writes any string with no escape beyond those that JSON demands.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    out.push(b'"');
    loop {
        let (plain, behind) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((&stop, behind)) = behind.split_first() else { break };
        match stop {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', stop]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x8 => out.extend_from_slice(b"\\b"),
            0xc => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(format!("\\u{stop:04x}").as_bytes()),
        }
        rest = behind;
    }
    out.push(b'"');
}

/// Text for an explanation: on one line, nothing in it that a terminal would obey, at most `longest`
/// characters before escaping.
pub fn shorten(text: &str, longest: usize) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(longest).flat_map(visible).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Text for an explanation, in quotation marks.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text, 40))
}

fn visible(character: char) -> impl Iterator<Item = char> {
    // The standard escapes quotes too, which are harmless here and would only be harder to read.
    let harmless = matches!(character, '"' | '\'' | '\\');
    let escaped = (!harmless).then(|| character.escape_debug());
    escaped.into_iter().flatten().chain(harmless.then_some(character))
}
