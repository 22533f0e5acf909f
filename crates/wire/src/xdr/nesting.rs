//! How deep the values of a message lie within each other, and how much of the stack that takes.
//!
//! Every level of recursive data is a few function calls deeper. How many bytes of the stack these take depends on the type: an
//! array of a fixed length is decoded by value. So two things are bounded: the levels, since a value is also encoded and dropped
//! level by level, in frames that are small for every type; and the stack between the outermost level and the one that begins.

use std::hint::black_box;

use super::{Error, MAX_DEPTH, MAX_STACK};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Nesting {
    depth: u32,
    /// Where the stack was at the outermost level.
    outermost: usize,
}

impl Nesting {
    /// One level deeper, if that is allowed. Whoever goes there does so in a function that is not inlined, so that its part of
    /// the stack is not taken yet.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Error> {
        let here = stack_position();
        if self.depth == 0 {
            self.outermost = here;
        }
        if self.depth == MAX_DEPTH {
            return Err(Error::Depth { limit: MAX_DEPTH });
        }
        if self.outermost.abs_diff(here) > MAX_STACK {
            return Err(Error::Stack { limit: MAX_STACK });
        }
        self.depth += 1;
        Ok(())
    }

    #[inline]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// Where the stack of this thread is now.
#[inline(never)]
fn stack_position() -> usize {
    // Miri gives every variable an address of its own, wherever it likes.
    if cfg!(miri) {
        return 0;
    }
    let here = 0_u8;
    std::ptr::from_ref(black_box(&here)).addr()
}
