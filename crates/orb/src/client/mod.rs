//! The calling side: connections, and the requests that are under way on them.

mod connection;
mod pending;
mod pool;
mod reader;
mod sending;

pub(crate) use connection::{Connection, Lost, Ticket, Wanted};
pub(crate) use pool::Pool;
pub(crate) use reader::{Reply, Status};
