//! Pipelines of components that balance themselves: filters, joined by streams, copied, on threads, processes and hosts.
//!
//! **What it is.** A group of filters works on units of work, one after the other and several at once. A filter takes buffers
//! from its inputs and gives buffers to its outputs, where they lie. It can have several copies, between which its streams are
//! dealt in turn, by demand or by key. The model is that of DataCutter (Beynon and others 2001), as chapter 3 of Balaji 2006 has it.
//!
//! **Who calls it.** Rust programs, and `sidestep pipe`, which runs groups that a file describes.
//!
//! **What it calls.** Channels of the fabric, VIs, or sockets, between processes; nothing but memory within one.
//!
//! **What it never does.** It never trusts what another process wrote into a stream, never allocates for a buffer once it is warm,
//! and never lets one unit of work, or one group, fail another.
//!
//! # In five minutes
//!
//! A kind of filters has a name, ports, and a function that makes one. A group is filters and streams:
//!
//! ```
//! use sidestep_filters::{ANY_WHOLE, Graph, Group, Kind, Kinds, Launcher, Place, Schedule, Settings, function};
//!
//! let kinds = Kinds::new()
//!     .with("count", Kind::new("gives numbers", |settings| {
//!         let most: u64 = settings.number("most", 100)?;
//!         Ok(function(move |work| {
//!             for number in 0..most {
//!                 let mut buffer = work.outputs.reserve()?;
//!                 buffer.copy_in(0, &number.to_le_bytes())?;
//!                 buffer.commit(8)?;
//!             }
//!             Ok(())
//!         }))
//!     }).output("out", "numbers").setting("most", ANY_WHOLE))
//!     .with("square", Kind::new("squares numbers", |_| Ok(function(|work| {
//!         while let Some(mut buffer) = work.inputs.take()? {
//!             let number = u64::from_le_bytes(buffer.array(0)?);
//!             let mut square = work.outputs.reserve()?;
//!             square.copy_in(0, &(number * number).to_le_bytes())?;
//!             square.commit(8)?;
//!         }
//!         Ok(())
//!     }))).input("in", "numbers").output("out", "numbers"))
//!     .with("sum", Kind::new("prints the sum", |_| Ok(function(|work| {
//!         let mut sum = 0;
//!         while let Some(mut buffer) = work.inputs.take()? {
//!             sum += u64::from_le_bytes(buffer.array(0)?);
//!         }
//!         println!("unit {}: {sum}", work.unit.number);
//!         Ok(())
//!     }))).input("in", "numbers"));
//!
//! // Three copies square; each gets a number when it has begun with the one before.
//! let graph = Graph::new("squares")
//!     .filter("count", "count", 1, Place::Thread).set("most", 10)
//!     .filter("square", "square", 3, Place::Thread)
//!     .filter("sum", "sum", 1, Place::Thread)
//!     .stream("count.out", "square.in", 64).dealt(Schedule::Demand)
//!     .stream("square.out", "sum.in", 64);
//! let mut group = Group::start(graph, &kinds, Launcher::this_program())?;
//! for outcome in group.run([Settings::default(), Settings::default()])? {
//!     outcome.result?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With [`Place::Process`] each copy is a process: this program, started again. It calls [`worker::enter`] first in `main`,
//! with the same kinds. [`Graph::over`] chooses what joins processes. Nothing else changes.
//!
//! A unit of work whose filter fails, panics, or is killed ends with an [`UnitError`] that names the copy; the group goes on.
//! [`parse`] reads a group from a file, [`check`] says what is wrong with one, [`draw`] makes a picture of it.

#![forbid(unsafe_code)]

pub mod builtin;
mod counters;
pub mod error;
mod filter;
mod frame;
mod graph;
mod link;
pub mod model;
mod port;
mod run;
mod schedule;
mod setting;

pub use counters::Counts;
pub use error::{Error, Failure, Result};
pub use filter::{ANY, Filter, Kind, Kinds, Port, Settings, Unit, Work, function};
pub use graph::{
    BUFFER, CopyId, FilterSpec, Graph, HostSpec, Key, OnDeath, PATIENCE, Place, Problem, QUEUE, StreamSpec, Transport,
    UnitSpec, check, draw, parse,
};
pub use port::{Buffer, Filling, Input, Inputs, Output, Outputs};
pub use run::{Canceller, Group, Launcher, Outcome, UnitError, worker};
pub use schedule::{Schedule, Scheduler};
pub use setting::{ANY_WHOLE, Accepts, NOT_NEGATIVE, Setting};
