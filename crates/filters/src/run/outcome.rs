//! How units of work end, and how they are ended.

use std::sync::mpsc::Sender;

use super::crew::Event;

/// How a unit of work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number.
    pub unit: u64,
    /// What went wrong, if something did.
    pub result: Result<(), UnitError>,
}

/// Why a unit of work failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{copy}: {what}")]
pub struct UnitError {
    /// The copy, and the process that it ran in.
    pub copy: String,
    /// What happened to it.
    pub what: String,
}

/// Gives units of work of a group up, from another thread.
#[derive(Debug, Clone)]
pub struct Canceller(pub(super) Sender<(String, u64, Event)>);

impl Canceller {
    /// Gives a unit of work up. It fails, and the group goes on with the next.
    pub fn cancel(&self, unit: u64) {
        // A group that is gone has nothing to give up.
        let _ = self.0.send((String::new(), 0, Event::Cancel(unit)));
    }
}
