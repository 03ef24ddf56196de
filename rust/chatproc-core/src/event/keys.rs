//! The keys that the contract knows, and which of them a line goes on with.

/// The keys of one of the contract's objects.
pub struct Keys<K, const N: usize> {
    /// In the order in which they are usually written.
    pub usual: [Key<K>; N],
    /// Their places in canonical order.
    pub sorted: [usize; N],
}

#[derive(Clone, Copy)]
pub struct Key<K> {
    pub which: K,
    /// With quotes and colon.
    pub written: &'static str,
    /// The same as a number, and which of its bits count.
    word: u128,
    mask: u128,
}

impl<K: Copy, const N: usize> Keys<K, N> {
    /// Keys as they are written, with quotes and colon, of at most 16 bytes.
    pub const fn new(keys: [(K, &'static str); N]) -> Self {
        let (which, written) = keys[0];
        let (mut usual, mut sorted) = ([Key { which, written, word: 0, mask: 0 }; N], [0; N]);
        let mut place = 0;
        while place < N {
            let (which, written) = keys[place];
            let (word, mask) = word_of(written.as_bytes());
            usual[place] = Key { which, written, word, mask };
            let (mut rank, mut other) = (0, 0);
            while other < N {
                rank += is_before(keys[other].1, written) as usize;
                other += 1;
            }
            sorted[rank] = place;
            place += 1;
        }
        Self { usual, sorted }
    }

    /// Which key a text begins with, looked for from where the last one stood on.
    #[inline]
    pub fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        let word = text.first_chunk().map(|chunk| u128::from_le_bytes(*chunk));
        let is_here = |place: &usize| {
            let key = &self.usual[*place];
            match word {
                Some(word) => word & key.mask == key.word,
                None => text.starts_with(key.written.as_bytes()),
            }
        };
        (from..N).find(is_here).or_else(|| (0..from).find(is_here))
    }
}

const fn word_of(bytes: &[u8]) -> (u128, u128) {
    let (mut word, mut mask, mut at) = ([0; 16], [0; 16], 0);
    while at < bytes.len() {
        (word[at], mask[at]) = (bytes[at], 0xff);
        at += 1;
    }
    (u128::from_le_bytes(word), u128::from_le_bytes(mask))
}

const fn is_before(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at < other.len() && (at == one.len() || one[at] < other[at])
}
