//! The smallest steps of reading: literals, words and tables at a place in folded letters.
//!
//! Every function takes the letters and a place and returns the place behind what it read. None looks
//! further than its literal, so a scan that tries them at every place is linear.

#[cfg(test)]
thread_local! {
    /// How many letters this thread has looked at.
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The letter at a place; NUL where there is none.
pub(super) fn at(t: &[char], i: usize) -> char {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
    t.get(i).copied().unwrap_or('\0')
}

/// The letter before a place; NUL at the beginning.
pub(super) fn before(t: &[char], i: usize) -> char {
    i.checked_sub(1).map_or('\0', |i| at(t, i))
}

/// Whether the letter at a place is one of some.
pub(super) fn one_of(t: &[char], i: usize, letters: &str) -> bool {
    let letter = at(t, i);
    letters.chars().any(|one| one == letter)
}

/// Behind a literal.
pub(super) fn lit(t: &[char], i: usize, literal: &str) -> Option<usize> {
    let mut end = i;
    for letter in literal.chars() {
        if at(t, end) != letter {
            return None;
        }
        end += 1;
    }
    Some(end)
}

/// The value of the first literal that stands here; longer ones come first in the table.
pub(super) fn pick<V: Copy>(t: &[char], i: usize, table: &[(&str, V)]) -> Option<(V, usize)> {
    table.iter().find_map(|&(literal, value)| Some((value, lit(t, i, literal)?)))
}

/// Behind the first of some literals.
pub(super) fn any(t: &[char], i: usize, literals: &[&str]) -> Option<usize> {
    literals.iter().find_map(|literal| lit(t, i, literal))
}

/// Behind one of some literals, or here.
pub(super) fn skip(t: &[char], i: usize, literals: &[&str]) -> usize {
    any(t, i, literals).unwrap_or(i)
}

/// Behind a space, or here.
pub(super) fn space(t: &[char], i: usize) -> usize {
    if at(t, i) == ' ' { i + 1 } else { i }
}

/// Whether a Latin word can begin here.
pub(super) fn begins_word(t: &[char], i: usize) -> bool {
    !before(t, i).is_ascii_alphanumeric()
}

/// Behind Latin words that end here; a space in them stands for a space or a hyphen.
pub(super) fn word(t: &[char], i: usize, words: &str) -> Option<usize> {
    let mut end = i;
    for letter in words.bytes() {
        let found = at(t, end);
        if found != letter as char && !(letter == b' ' && found == '-') {
            return None;
        }
        end += 1;
    }
    (!at(t, end).is_ascii_alphanumeric()).then_some(end)
}

/// The value of the first words that stand here; longer ones come first in the table.
pub(super) fn pick_word<V: Copy>(t: &[char], i: usize, table: &[(&str, V)]) -> Option<(V, usize)> {
    table.iter().find_map(|&(words, value)| Some((value, word(t, i, words)?)))
}

/// Behind one of some Latin words, or here; a space behind it goes along.
pub(super) fn skip_word(t: &[char], i: usize, words: &[&str]) -> usize {
    words.iter().find_map(|word_| word(t, i, word_)).map_or(i, |end| space(t, end))
}
