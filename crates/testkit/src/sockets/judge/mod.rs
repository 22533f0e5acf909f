//! The judge: random programs of socket calls between two processes, each call checked against a model of what Linux
//! permits. Kernel TCP must pass it, and so must anything that stands in for it.
//!
//! A program is made from a seed while it runs: each step picks an end, picks a call that can end in the present state,
//! executes it in that end's process (`driver`), and compares what it gave with the `model`.

mod driver;
mod model;
mod play;
mod random;
mod steps;

pub use self::{
    driver::Driver,
    play::{Tally, play, play_storms},
    random::Random,
};

/// Why a program failed.
#[derive(Debug)]
pub struct Failure(pub String);

/// What a step gives.
pub type Judged<T> = Result<T, Failure>;
