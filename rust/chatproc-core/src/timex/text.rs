//! A message as the grammar reads it: simplified characters, half-width, lower case, folded white space,
//! and for each letter where it stood in the message.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

/// The folded letters of a message with their origins.
pub(super) struct Text<'t> {
    source: &'t str,
    letters: Vec<char>,
    /// Byte offsets in `source`, one per letter and one for the end.
    origins: Vec<usize>,
}

impl<'t> Text<'t> {
    pub(super) fn new(source: &'t str) -> Self {
        let mut text = Self {
            source,
            letters: Vec::with_capacity(source.len() / 2),
            origins: Vec::with_capacity(source.len() / 2 + 1),
        };
        for (at, letter) in source.char_indices() {
            if letter.is_ascii() {
                text.push(letter.to_ascii_lowercase(), at);
            } else if ('\u{4e00}'..='\u{9fff}').contains(&letter) {
                text.push(simplified(letter), at);
            } else {
                // A character that NFKC spells out (㋆, ⽇, ½) is read as it is spelled.
                for part in std::iter::once(letter).nfkc() {
                    text.push(simplified(part.to_ascii_lowercase()), at);
                }
            }
        }
        text.origins.push(source.len());
        text
    }

    fn push(&mut self, letter: char, at: usize) {
        let letter = match letter {
            '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\u{fe0e}' | '\u{fe0f}' => return,
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => '\n',
            '–' | '—' | 'ー' | '―' | '−' | '‐' | '‑' | '‒' | '─' | '➡' | '→' => '-',
            '〜' | '∼' | '～' => '~',
            '’' | '‘' | '`' => '\'',
            '︰' | '∶' => ':',
            letter if letter.is_whitespace() => ' ',
            letter => letter,
        };
        if matches!(letter, ' ' | '\n' | '-' | '~') && self.letters.last() == Some(&letter) {
            return;
        }
        self.letters.push(letter);
        self.origins.push(at);
    }

    pub(super) fn letters(&self) -> &[char] {
        &self.letters
    }

    /// The message's own wording of the letters `from..to`, without white space around it. A character that
    /// was spelled out (㈰ is read as "(日)") stands in it whole.
    pub(super) fn wording(&self, from: usize, to: usize) -> &'t str {
        let begin = self.origins[from];
        let last = if from < to { self.origins[to - 1] } else { begin };
        let end = self.origins[to..].iter().copied().find(|&at| at > last).unwrap_or(begin);
        self.source[begin..end].trim()
    }

    /// Whether the letter was written as a capital.
    pub(super) fn is_capital(&self, at: usize) -> bool {
        self.source[self.origins[at]..].chars().next().is_some_and(char::is_uppercase)
    }
}

/// Traditional and formal characters that times are written with, each before its simplified form.
const PAIRS: &str = "週周點点時时後后號号兩两個个禮礼當当內内農农曆历歷历陰阴舊旧臘腊閏闰過过這这來来無无須须遲迟開开會会\
試试課课結结節节國国慶庆聖圣誕诞勞劳動动兒儿婦妇師师黨党軍军親亲陽阳鐘钟鍾钟間间區区東东紐纽約约倫伦\
標标準准報报給给發发還还繳缴終终從从為为爲为於于達达關关幾几數数盡尽儘尽學学調调換换變变遞递銷销請请\
應应該该裡里裏里隔隔輪轮對对壹一貳二贰二叁三參三叄三肆四伍五陸六陆六柒七捌八玖九拾十佰百仟千〇零係是\
聽听麼么們们賽赛講讲錄录飯饭寫写齊齐劃划場场員员說说訂订單单雙双萬万億亿視视頻频談谈議议誰谁進进連连\
遊游離离歲岁將将書书買买車车見见電电話话醫医藥药檢检";

const FIRST: u32 = 0x3000;

/// The simplified form of a character, where it has one that matters here.
fn simplified(letter: char) -> char {
    static TABLE: LazyLock<Vec<char>> = LazyLock::new(|| {
        let mut table: Vec<char> = ('\u{3000}'..'\u{a000}').collect();
        let letters: Vec<char> = PAIRS.chars().collect();
        for pair in letters.chunks_exact(2) {
            if let Some(simple) = place(pair[0]).and_then(|place| table.get_mut(place)) {
                *simple = pair[1];
            }
        }
        table
    });
    place(letter).and_then(|place| TABLE.get(place)).copied().unwrap_or(letter)
}

fn place(letter: char) -> Option<usize> {
    usize::try_from(u32::from(letter).checked_sub(FIRST)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(source: &str) -> String {
        Text::new(source).letters().iter().collect()
    }

    #[test]
    fn traditional_full_width_and_white_space_fold_to_one_form() {
        for (written, read) in [
            ("週五 下午３點半前", "周五 下午3点半前"),
            ("２０：００", "20:00"),
            ("下禮拜二　\t十點", "下礼拜二 十点"),
            ("7月3日——5日", "7月3日-5日"),
            ("8：00～9：00", "8:00~9:00"),
            ("By FRIDAY", "by friday"),
            ("㋆⽇", "7月日"),
            ("二〇二六年", "二零二六年"),
            ("周\u{200b}五", "周五"),
        ] {
            assert_eq!(folded(written), read);
        }
    }

    #[test]
    fn wording_is_the_messages_own() {
        let text = Text::new("请於 週五　１７：００ 前");
        let found = text.letters().iter().position(|letter| *letter == '周').unwrap();
        assert_eq!(text.wording(found, text.letters().len() - 1), "週五　１７：００");
        assert!(Text::new("May").is_capital(0));
    }

    #[test]
    fn a_character_that_is_spelled_out_stands_whole_in_the_wording() {
        let text = Text::new("到㈰n");
        assert_eq!(text.letters(), ['到', '(', '日', ')', 'n']);
        assert_eq!(text.wording(2, 3), "㈰");
        assert_eq!(text.wording(0, 2), "到㈰");
        assert_eq!(text.wording(4, 5), "n");
    }
}
