//! Hashes of object ids.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashes that nobody can foresee, since clients may name objects that are then made. Ids are short, and are looked up
/// with every request: a multiplication for every eight bytes instead of the many rounds of the standard library.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeded {
    begin: u64,
    factor: u64,
}

pub(super) struct Folding {
    state: u64,
    factor: u64,
}

impl Default for Seeded {
    fn default() -> Self {
        let random = RandomState::new();
        Self { begin: random.hash_one(0u8), factor: random.hash_one(1u8) | 1 }
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folding;

    #[inline]
    fn build_hasher(&self) -> Folding {
        Folding { state: self.begin, factor: self.factor }
    }
}

impl Folding {
    /// Every bit of the word takes part in every bit of the state.
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64) ^ ((product >> 64) as u64).rotate_left(32);
    }
}

/// The golden ratio, of which no bits repeat: a random factor may have too few to reach all bits of ids that differ in a byte.
const LAST_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Folding {
    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(LAST_FACTOR);
        product as u64 ^ (product >> 64) as u64
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.fold(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.fold(u64::from_le_bytes(last));
        }
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_that_are_alike_have_hashes_that_differ_in_every_part() {
        for _ in 0..100 {
            let seeded = Seeded::default();
            let ids = (0..4096u64).map(u64::to_be_bytes).map(|id| id.to_vec()).chain((0..64).map(|len| vec![0; len]));
            let hashes: Vec<u64> =
                ids.filter(|id| id.len() != 8 || id[..] != [0; 8]).map(|id| seeded.hash_one(&id[..])).collect();
            assert_eq!(HashSet::<u64>::from_iter(hashes.iter().copied()).len(), hashes.len(), "{seeded:?}");
            // A table looks at the low bits for the place, and at the high ones to tell those in one place apart.
            for part in [0, 57] {
                let spread: HashSet<u64> = hashes.iter().map(|hash| hash >> part & 127).collect();
                assert_eq!(spread.len(), 128, "{seeded:?}");
            }
            assert_ne!(Seeded::default().hash_one(b"id".as_slice()), seeded.hash_one(b"id".as_slice()));
        }
    }
}
