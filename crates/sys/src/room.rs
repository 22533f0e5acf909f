//! Room for values that shall lie beside each other in memory: made together, filled one by one.
//!
//! Things that are made over time lie wherever there was room at the moment, each on a page of its own. Where many of them are
//! used in turn, the processor then spends its time on finding pages.
//!
//! # Invariants
//!
//! - **R1** A room is held by nobody else until it is filled.

#![allow(unsafe_code)]

use std::{fmt, mem::MaybeUninit, sync::Arc};

/// Room for one value.
pub struct Room<T>(Arc<MaybeUninit<T>>);

impl<T> Room<T> {
    /// So many rooms, made one right after the other.
    pub fn row(count: usize) -> Vec<Room<T>> {
        (0..count).map(|_| Room(Arc::new_uninit())).collect()
    }

    /// Puts the value there.
    pub fn fill(mut self, value: T) -> Arc<T> {
        Arc::get_mut(&mut self.0).expect("R1: not shared").write(value);
        // SAFETY: written just above.
        unsafe { self.0.assume_init() }
    }
}

impl<T> fmt::Debug for Room<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("room")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_anywhere() {
        let made: Vec<Arc<String>> =
            Room::row(5).into_iter().take(3).enumerate().map(|(at, room)| room.fill(at.to_string())).collect();
        assert_eq!(made, ["0", "1", "2"].map(|text| Arc::new(text.to_string())));
        assert!(made.iter().all(|value| Arc::strong_count(value) == 1));
    }
}
