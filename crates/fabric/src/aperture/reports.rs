//! Reads of watched words that the owner is still to hear of.
//!
//! One report a line of armed bits is on the way at a time, however often it is read. A read meanwhile is reported when that
//! one was heard: the owner may have armed the words again in between.

use std::collections::BTreeMap;

use sidestep_sys::lock::Mutex;

/// Lines of armed bits with a report on the way, and whether one of their words was read since.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<BTreeMap<usize, bool>>);

impl Reports {
    /// A watched word of a line was read. `true` if that is to be reported now.
    pub(super) fn begin(&self, line: usize) -> bool {
        let mut lines = self.0.lock().expect("no panic in reports");
        match lines.get_mut(&line) {
            Some(again) => {
                *again = true;
                false
            }
            None => lines.insert(line, false).is_none(),
        }
    }

    /// A report was heard. `true` if there is to be another one.
    pub(super) fn end(&self, line: usize) -> bool {
        let mut lines = self.0.lock().expect("no panic in reports");
        match lines.get_mut(&line) {
            Some(again) if *again => {
                *again = false;
                true
            }
            _ => {
                lines.remove(&line);
                false
            }
        }
    }
}
