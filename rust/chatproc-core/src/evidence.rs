//! Whether a quote stands in what it quotes, on NFKC text with white space folded.
//!
//! Pure. Must never call a quote found that is not there, and never store the model's wording where the
//! source's differs.

use unicode_normalization::{
    IsNormalized, UnicodeNormalization, char::canonical_combining_class, is_nfc_quick,
};

/// What became of a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote<'t> {
    /// It stands there as it is.
    Exact,
    /// It stands there after folding; this is the source's own wording.
    Repaired(&'t str),
    /// It is not there, or quotes nothing at all.
    Unverified,
}

/// Looks for `quote` in `text`.
///
/// ```
/// use chatproc_core::evidence::{Quote, check_quote};
/// assert_eq!(check_quote("17:00 前", "请周五 17:00 前交"), Quote::Exact);
/// assert_eq!(check_quote("17:00 前交", "请周五 １７：００\n前交"), Quote::Repaired("１７：００\n前交"));
/// assert_eq!(check_quote("18:00", "请周五 17:00 前交"), Quote::Unverified);
/// ```
#[must_use]
pub fn check_quote<'t>(quote: &str, text: &'t str) -> Quote<'t> {
    let wanted = Folded::new(quote);
    let wanted = wanted.text.trim();
    if wanted.is_empty() {
        return Quote::Unverified;
    }
    if text.contains(quote) {
        return Quote::Exact;
    }
    let folded = Folded::new(text);
    match folded.text.find(wanted) {
        Some(start) => Quote::Repaired(folded.origin(text, start, start + wanted.len())),
        None => Quote::Unverified,
    }
}

/// Text in NFKC with each run of white space as one space, and where each piece of it came from.
struct Folded {
    text: String,
    /// Beginnings of pieces that NFKC treats alone: in `text`, and in the original. Both ascend.
    pieces: Vec<(usize, usize)>,
}

impl Folded {
    fn new(original: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(original.len()), pieces: Vec::new() };
        let mut start = 0;
        let ends = original.char_indices().skip(1).filter(|&(_, next)| begins_piece(next)).map(|(at, _)| at);
        for end in ends.chain([original.len()]) {
            folded.pieces.push((folded.text.len(), start));
            folded.push(&original[start..end]);
            start = end;
        }
        folded
    }

    fn push(&mut self, piece: &str) {
        for letter in piece.nfkc() {
            if !letter.is_whitespace() {
                self.text.push(letter);
            } else if !self.text.ends_with(' ') {
                self.text.push(' ');
            }
        }
    }

    /// The original's pieces that the folded bytes `start..end` came from.
    fn origin<'t>(&self, original: &'t str, start: usize, end: usize) -> &'t str {
        // A piece that added nothing begins where the next one does, so the last of equals is meant.
        let first = self.pieces.partition_point(|&(at, _)| at <= start).saturating_sub(1);
        let after = self.pieces.partition_point(|&(at, _)| at < end);
        let place = |piece: usize| self.pieces.get(piece).map_or(original.len(), |&(_, origin)| origin);
        &original[place(first)..place(after)]
    }
}

/// Whether NFKC never joins this character to the one before it: what it decomposes into begins with a
/// character that is reordered with nothing and composes with nothing.
fn begins_piece(letter: char) -> bool {
    let Some(first) = std::iter::once(letter).nfkd().next() else { return false };
    canonical_combining_class(first) == 0 && is_nfc_quick(std::iter::once(first)) != IsNormalized::Maybe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fold(text: &str) -> String {
        Folded::new(text).text.trim().to_owned()
    }

    #[test]
    fn a_quote_is_found_as_it_is_or_after_folding_or_not_at_all() {
        let text = "请大家\u{3000}周五　17：00\r\n前把 Ｒｅｐｏｒｔ 交到 ３０２室";
        let cases = [
            ("请大家", Quote::Exact),
            ("周五 17:00 前", Quote::Repaired("周五　17：00\r\n前")),
            ("  周五 17:00\n", Quote::Repaired("周五　17：00")),
            ("Report 交到 302室", Quote::Repaired("Ｒｅｐｏｒｔ 交到 ３０２室")),
            ("report", Quote::Unverified),
            ("周六", Quote::Unverified),
            ("请大家周五", Quote::Unverified),
            ("", Quote::Unverified),
            (" \u{3000}\n", Quote::Unverified),
        ];
        for (quote, found) in cases {
            assert_eq!(check_quote(quote, text), found, "{quote:?}");
        }
    }

    #[test]
    fn the_sources_own_wording_is_never_cut_inside_a_composed_character() {
        assert_eq!(
            check_quote("caf\u{e9} noir", "un cafe\u{301}  noir"),
            Quote::Repaired("cafe\u{301}  noir")
        );
        assert_eq!(
            check_quote("각", "\u{1100}\u{1161}\u{11a8}!"),
            Quote::Repaired("\u{1100}\u{1161}\u{11a8}")
        );
        assert_eq!(check_quote("1⁄2", "a ½ b"), Quote::Repaired("½"));
        assert_eq!(check_quote("fin", "ﬁne"), Quote::Repaired("ﬁn"));
    }

    #[test]
    fn a_long_text_of_near_misses_takes_no_quadratic_time() {
        let text = "あ\u{3099}ab ".repeat(200_000);
        let quote = "ab が".repeat(50_000) + "x";
        assert_eq!(check_quote(&quote, &text), Quote::Unverified);
    }

    const ALPHABET: &str =
        "[ab \t\u{3000}１1½e\u{301}\u{327}가\u{1100}\u{1161}\u{11a8}ﬁßが\u{3099}\u{a8}中文.]{0,24}";

    proptest! {
        #[test]
        fn folding_by_pieces_is_folding_the_whole(text in prop_oneof![ALPHABET, ".{0,40}"]) {
            let mut whole = String::new();
            for letter in text.nfkc() {
                if !letter.is_whitespace() { whole.push(letter) } else if !whole.ends_with(' ') { whole.push(' ') }
            }
            prop_assert_eq!(Folded::new(&text).text, whole);
        }

        #[test]
        fn every_part_of_a_text_is_an_exact_quote_of_it(text in "\\PC{1,30}", from in 0usize..30, to in 0usize..30) {
            let part: String = text.chars().skip(from).take(to).collect();
            let blank = fold(&part).is_empty();
            prop_assert_eq!(check_quote(&part, &text), if blank { Quote::Unverified } else { Quote::Exact });
        }

        #[test]
        fn a_repaired_quote_is_a_part_of_the_text_and_says_the_same(text in ALPHABET, quote in ALPHABET) {
            match check_quote(&quote, &text) {
                Quote::Exact => prop_assert!(text.contains(&quote)),
                Quote::Repaired(own) => {
                    prop_assert!(text.contains(own));
                    prop_assert!(fold(own).contains(&fold(&quote)));
                    prop_assert_eq!(check_quote(own, &text), Quote::Exact);
                }
                Quote::Unverified => prop_assert!(fold(&quote).is_empty() || !fold(&text).contains(&fold(&quote))),
            }
        }

        #[test]
        fn a_part_that_was_folded_is_found_again(text in ALPHABET, from in 0usize..12, to in 1usize..12) {
            let folded: String = fold(&text).chars().skip(from).take(to).collect();
            if !folded.trim().is_empty() {
                prop_assert_ne!(check_quote(&folded, &text), Quote::Unverified);
            }
        }
    }
}
