//! Processes: who holds a connection, and what `fork` leaves to a child.

pub mod custody;
pub mod fork;
pub mod heirloom;
