//! What a process wrote into a page: where it differs from its twin, the copy that was made before the first write.

use crate::id::PAGE;

/// The runs of words that differ: where each begins, and how long it is, in bytes.
pub(super) fn runs(twin: &[u8; PAGE], now: &[u8; PAGE]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, (before, after)) in twin.chunks_exact(8).zip(now.chunks_exact(8)).enumerate() {
        if before != after {
            match runs.last_mut() {
                Some((begin, len)) if *begin + *len == at * 8 => *len += 8,
                _ => runs.push((at * 8, 8)),
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_what_differs_and_nothing_else() {
        let twin = [0; PAGE];
        assert_eq!(runs(&twin, &twin), []);
        let mut now = twin;
        for at in [0, 9, 17, 4095] {
            now[at] = 1;
        }
        assert_eq!(runs(&twin, &now), [(0, 24), (4088, 8)]);
        assert_eq!(runs(&twin, &[1; PAGE]), [(0, PAGE)]);
    }
}
