//! Socket programs under test: built from C, run plain or under `sidestep run`, never without a limit, and judged.
//!
//! A program that hangs is reported with the stacks of all its processes.

mod behaviour;
mod bounded;
mod compile;
pub mod judge;
mod launch;

pub use self::{
    behaviour::{Behaviour, enter_program},
    bounded::{Bounded, Ended, processes_of_group, stacks_of_group},
    compile::compile,
    launch::{Launch, Promote},
};
