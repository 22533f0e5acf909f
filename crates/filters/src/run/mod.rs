//! What runs a group: the coordinator ([`Group`]) in the program's own process, and a worker in every process, this one too.
//!
//! A group runs in *epochs*. In an epoch every process makes its connections ([`wiring`]) and starts a thread for each of its
//! copies ([`copy`]); units of work then flow through. When a copy dies or fails, the epoch is over: all connections end, a
//! process that died is started again, and the next epoch begins with the units of work that were not complete.

mod assembly;
mod attempts;
mod copy;
mod crew;
mod ending;
mod group;
mod message;
mod outcome;
mod pulse;
mod wiring;
pub mod worker;

pub use crew::Launcher;
pub(crate) use ending::Ending;
pub use group::Group;
pub use outcome::{Canceller, Outcome, UnitError};
