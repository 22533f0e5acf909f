//! Links that wrap links: what a trace says, and what programs see when a link fails.

#[path = "links/faults.rs"]
mod faults;
#[path = "links/simulation.rs"]
mod simulation;
#[path = "links/traces.rs"]
mod traces;
