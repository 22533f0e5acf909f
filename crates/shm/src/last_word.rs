//! The last word of a transfer: programs poll it, and take it for the sign that the bytes before it are there.
//!
//! So whoever places bytes that a program may poll stores the last aligned word as one, and after everything else. A
//! transfer that goes in several parts is cut so that its last word is not: see [`first_part`].

/// Bytes of the largest word that is stored as one.
pub const WORD: usize = 8;

/// How many bytes before `end` (an address) belong to the last word of a transfer of `len` bytes: the word itself if the
/// transfer ends with one of eight or four bytes, otherwise what lies in the word that it breaks off in.
#[inline]
pub fn tail(end: usize, len: usize) -> usize {
    match end % WORD {
        0 if len >= WORD => WORD,
        0 | 4 if len >= 4 => 4,
        0 => len,
        begun => begun.min(len),
    }
}

/// How many of `rest` bytes go next if at most `most` (more than a word) can: all of them, or so many that a whole word is left.
#[inline]
pub fn first_part(rest: usize, most: usize) -> usize {
    if rest > most && rest - most < WORD { most - WORD } else { rest.min(most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_a_word_or_what_was_begun_of_one() {
        let cases = [(64, 64, 8), (64, 8, 8), (64, 7, 4), (64, 3, 3), (68, 64, 4), (68, 3, 3), (67, 64, 3), (67, 2, 2)];
        for (end, len, expected) in cases {
            assert_eq!(tail(end, len), expected, "{len} bytes before {end}");
        }
    }

    #[test]
    fn parts_leave_a_whole_word() {
        assert_eq!([first_part(10, 100), first_part(100, 100), first_part(200, 100)], [10, 100, 100]);
        assert_eq!([first_part(101, 100), first_part(107, 100), first_part(108, 100)], [92, 92, 100]);
    }
}
