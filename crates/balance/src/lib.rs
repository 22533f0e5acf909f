//! Servers of several sites move between them by load, and nobody coordinates them (Balaji 2006, section 10.3).
//!
//! **What it is.** Words of shared memory say which site each server belongs to, who may change that, and how often it was changed.
//! Controllers read and change them by one-sided operations. [`protocol`] says in which order, [`decision`] when.
//!
//! **Who calls it.** `sidestep balance`.
//!
//! **What it calls.** `extended`, for the memory of other processes.
//!
//! **What it never does.** It never takes the last server of a site, never waits for a controller that has died longer than its
//! lease, and asks no server for anything.

#![forbid(unsafe_code)]

pub mod config;
pub mod decision;
mod error;
pub mod node;
pub mod pages;
pub mod protocol;
pub mod simulation;

pub use config::Config;
pub use error::{Error, Result};
pub use node::{News, run};
