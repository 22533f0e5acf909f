//! Ends that do not keep to the protocol, over every transport: each loses its own connection, whoever it talks to goes on, and
//! nothing panics.

#[path = "../peer/mod.rs"]
mod peer;
#[path = "../raw/mod.rs"]
mod raw;

mod clients;
mod panics;
mod servers;
