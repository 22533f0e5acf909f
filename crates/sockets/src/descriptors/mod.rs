//! Descriptors: which numbers of the program are streams and sets of the engine, which are the engine's own, and which wait past
//! it.

pub mod numbers;
pub mod table;
pub mod unseen;
