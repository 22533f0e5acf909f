//! A seeded generator: the same seed gives the same numbers on every machine. For simulation, never for keys.

/// The splitmix64 generator (Steele, Lea, Flood, 2014): one addition and one mix per number.
#[derive(Debug, Clone)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Seeded {
        Seeded { state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is below 2^-32 for every bound a simulation uses.
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// `true` in `per_mille` of a thousand cases.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_bounds_hold() {
        let (mut one, mut two) = (Seeded::new(7), Seeded::new(7));
        for _ in 0..1000 {
            assert_eq!(one.below(10), two.below(10));
            assert!(one.below(3) < 3);
            two.below(3);
        }
        assert_eq!(one.below(0), 0);
    }

    #[test]
    fn chances_are_about_what_they_say() {
        let mut random = Seeded::new(1);
        let hits = (0..10_000).filter(|_| random.chance(250)).count();
        assert!((2_300..2_700).contains(&hits), "{hits} of 10000 at 250 in a thousand");
        assert!(!random.chance(0));
        assert!(random.chance(1000));
    }
}
