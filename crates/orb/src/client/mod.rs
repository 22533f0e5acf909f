//! The calling side: connections, and the requests that are under way on them.

mod connection;
mod pool;

pub(crate) use connection::{Connection, Lost, Reply};
pub(crate) use pool::Pool;
