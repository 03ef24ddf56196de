//! Numbers by their exact value: none is rounded, whatever it is written like.

/// Up to this many digits a whole number is written out in canonical form; beyond, with an exponent.
const PLAIN_DIGITS: usize = 21;
/// Longer exponents would not fit the arithmetic below; no number that means anything has one.
const MAX_EXPONENT_DIGITS: usize = 18;

/// A number as it stands in a line.
pub struct Number<'a> {
    pub text: &'a str,
    /// Whether it has neither point nor exponent.
    pub whole: bool,
}

impl Number<'_> {
    /// Whether it is known to be in canonical form as it stands.
    pub fn is_canonical(&self) -> bool {
        self.whole && self.text.len() < PLAIN_DIGITS && self.text != "-0"
    }

    /// Whether a 64-bit float can hold it roughly. One that is merely too near to zero is in bounds and
    /// keeps its exact value, unless its exponent is absurd.
    #[inline]
    pub fn is_in_bounds(&self) -> bool {
        // No whole number of 300 digits is beyond a float.
        if self.whole && self.text.len() <= 300 {
            return true;
        }
        let exponent = self.text.split_once(['e', 'E']).map_or("", |(_, exponent)| exponent);
        let exponent = exponent.trim_start_matches(['+', '-']).trim_start_matches('0');
        let finite = self.text.parse::<f64>().is_ok_and(f64::is_finite);
        finite && (exponent.len() <= MAX_EXPONENT_DIGITS || Decimal::new(self.text).digits.is_empty())
    }
}

/// A number by its exact value: `digits` × 10^`exponent`, without zeros at either end; zero has none.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn new(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole.trim_start_matches('-'), fraction].concat();
        let digits = all.trim_end_matches('0');
        let shift = i64::try_from(all.len() - digits.len()).unwrap_or_default()
            - i64::try_from(fraction.len()).unwrap_or_default();
        Self {
            negative: text.starts_with('-'),
            digits: digits.trim_start_matches('0').to_owned(),
            // Only zero has an exponent that does not fit, see `is_in_bounds`.
            exponent: exponent.parse::<i64>().unwrap_or_default().saturating_add(shift),
        }
    }
}

/// The number times 10^`scale` if that is a whole number of a size that occurs.
pub fn scaled(text: &str, scale: u32) -> Option<i128> {
    if let Some(whole) = text.parse::<i64>().ok().and_then(|whole| whole.checked_mul(10_i64.pow(scale))) {
        return Some(whole.into());
    }
    let number = Decimal::new(text);
    if number.digits.is_empty() {
        return Some(0);
    }
    let zeros = u32::try_from(number.exponent.saturating_add(i64::from(scale))).ok()?;
    if number.digits.len().saturating_add(zeros as usize) > 30 {
        return None;
    }
    let whole = number.digits.parse::<i128>().ok()? * 10_i128.pow(zeros);
    Some(if number.negative { -whole } else { whole })
}

/// Writes a number so that equal values are equal bytes, in room bounded by the number's text.
pub fn write_number(out: &mut Vec<u8>, text: &str) {
    let number = Number { text, whole: !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) };
    if number.is_canonical() {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let Decimal { negative, digits, exponent } = Decimal::new(text);
    if digits.is_empty() {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(digits.as_bytes());
    match usize::try_from(exponent) {
        Ok(zeros) if digits.len().saturating_add(zeros) <= PLAIN_DIGITS => {
            out.resize(out.len() + zeros, b'0');
        }
        _ => out.extend_from_slice(format!("e{exponent}").as_bytes()),
    }
}
