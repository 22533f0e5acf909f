//! What a card process is asked to be.

use crate::config::Config;
use crate::driver::Marks;

/// What a card process is.
#[derive(Debug, Clone, Copy)]
pub struct CardOptions {
    /// The card.
    pub config: Config,
    /// How many pages of a process may be locked; fewer where the limit on locked memory is lower.
    pub marks: Marks,
    /// Whether the cache of translations is made smaller where its pages could not all be locked. Otherwise that is an error.
    pub may_shrink: bool,
}

impl Default for CardOptions {
    fn default() -> CardOptions {
        CardOptions { config: Config::default(), marks: Marks::default(), may_shrink: true }
    }
}
