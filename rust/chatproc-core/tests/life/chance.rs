//! What happens by chance, the same for the same seed and step whatever other steps do.

/// `SplitMix64`.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64, step: u64) -> Self {
        let mut chance =
            Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step.wrapping_mul(0xd1b5_4a32_d192_ed03));
        chance.next();
        chance
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.place(list.len())].clone()
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.place(at + 1));
        }
    }
}
