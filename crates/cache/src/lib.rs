//! A reverse proxy for HTTP whose cache is strongly coherent: no answer is older than the last update that was complete
//! before the request began (Balaji 2006, chapter 10).
//!
//! **What it is.** The application side keeps a version for each document in memory that proxies read by themselves; a proxy looks at it
//! before every answer out of its cache. [`coherency`] says when a document may be read and when it may be changed.
//!
//! **Who calls it.** `sidestep cache`, and application servers that keep their own documents ([`Lender`]).
//!
//! **What it calls.** `extended`, for the memory and the reads of it.
//!
//! **What it never does.** It never answers out of the cache without a check, unless it was told to, and never from a version that
//! it could not check.

#![forbid(unsafe_code)]

pub mod answer;
pub mod application;
mod changes;
pub mod checker;
pub mod coherency;
pub mod current;
mod error;
mod fetch;
mod flights;
mod followed;
pub mod freshness;
mod front;
mod head;
mod input;
mod invalidation;
pub mod lender;
pub mod metrics;
pub mod module;
mod origin;
pub mod proxy;
pub mod rules;
mod settings;
pub mod store;
mod users;
pub mod versions;

pub use application::Application;
pub use checker::{Checker, Mode};
pub use current::Current;
pub use error::{Error, Result};
pub use lender::Lender;
pub use module::Module;
pub use proxy::{Order, Proxy};
pub use settings::Settings;
pub use store::Store;
