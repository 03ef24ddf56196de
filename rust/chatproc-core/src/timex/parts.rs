//! Parts of the day: 凌晨, 今晚, 下班前, in the morning, tonight, end of day.

use super::cursor::{any, at, before, begins_word, lit, one_of, pick, pick_word, word};
use super::numerals::small;
use super::said::Part;

/// What makes 早 and 晚 part of another word.
const NO_PART: &str = "点些于会饭自餐课读操就已退高宴场安期先晚早跑练了间";

/// Reads a part of the day in Chinese. `joined`: a day stands directly before it.
pub(super) fn part_zh(t: &[char], i: usize, joined: bool) -> Option<(Part, usize)> {
    const PARTS: &[(&str, Part)] = &[
        ("凌晨", Part::Dawn),
        ("拂晓", Part::Dawn),
        ("清晨", Part::Morning),
        ("清早", Part::Morning),
        ("一大早", Part::Morning),
        ("大清早", Part::Morning),
        ("大早上", Part::Morning),
        ("一早", Part::Morning),
        ("早晨", Part::Morning),
        ("早上", Part::Morning),
        ("早间", Part::Morning),
        ("上午", Part::Morning),
        ("午前", Part::Morning),
        ("中午", Part::Noon),
        ("午间", Part::Noon),
        ("下午", Part::Afternoon),
        ("午后", Part::Afternoon),
        ("傍晚", Part::Evening),
        ("晚上", Part::Evening),
        ("晚间", Part::Evening),
        ("夜晚", Part::Evening),
        ("夜间", Part::Night),
        ("夜里", Part::Night),
        ("半夜", Part::Night),
        ("深夜", Part::Night),
        ("午夜", Part::Night),
        ("子夜", Part::Night),
    ];
    if !(one_of(t, i, "一上下中傍凌前午半夜大子打拂收放早晚深清睡闭晨朝")) {
        return None;
    }
    if let Some((part, end)) = pick(t, i, PARTS) {
        return (!matches!(at(t, end), '茶' | '好')).then_some((part, end));
    }
    if let Some(end) =
        any(t, i, &["下班", "放学", "收工", "下课", "睡觉", "睡", "晚饭", "午饭", "打烊", "闭馆"])
        && any(t, end, &["前", "之前", "以前"]).is_some()
    {
        return Some((Part::DayEnd, end));
    }
    let part = match at(t, i) {
        '晚' | '夜' => Part::Evening,
        '早' | '晨' | '朝' => Part::Morning,
        _ => return None,
    };
    let counted = small(t, i + 1).is_some() && ((at(t, i + 1) != '一' && at(t, i) != '朝') || joined);
    (counted || joined && !NO_PART.contains(at(t, i + 1))).then_some((part, i + 1))
}

/// Reads a part of the day in English. `joined`: a day or a clock time stands before it.
pub(super) fn part_en(t: &[char], i: usize, joined: bool) -> Option<(Part, usize)> {
    const ALWAYS: &[(&str, Part)] = &[
        ("in the early morning", Part::Dawn),
        ("in the morning", Part::Morning),
        ("in the afternoon", Part::Afternoon),
        ("in the evening", Part::Evening),
        ("at night", Part::Evening),
        ("the end of the day", Part::DayEnd),
        ("the end of day", Part::DayEnd),
        ("end of the day", Part::DayEnd),
        ("end of day", Part::DayEnd),
        ("end of business", Part::DayEnd),
        ("end of play", Part::DayEnd),
        ("close of business", Part::DayEnd),
        ("close of play", Part::DayEnd),
        ("the close of business", Part::DayEnd),
        ("eod", Part::DayEnd),
        ("cob", Part::DayEnd),
        ("eob", Part::DayEnd),
    ];
    const JOINED: &[(&str, Part)] = &[
        ("early morning", Part::Dawn),
        ("morning", Part::Morning),
        ("afternoon", Part::Afternoon),
        ("evening", Part::Evening),
        ("night", Part::Evening),
    ];
    if lit(t, i, "night").is_some() && matches!(before(t, i), 'o' | 't')
        || lit(t, i, "night").is_some() && joined
    {
        // "tonight" and "last night" hand their second half over.
        return word(t, i, "night").map(|end| (Part::Evening, end));
    }
    if !begins_word(t, i) {
        return None;
    }
    let always = pick_word(t, i, ALWAYS);
    if always.is_some() || !joined {
        return always;
    }
    pick_word(t, i, JOINED)
}
