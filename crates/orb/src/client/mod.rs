//! The calling side: connections, and the requests that are under way on them.

mod connection;
mod pending;
mod pool;
mod reader;

pub(crate) use connection::{Connection, Lost};
pub(crate) use pool::Pool;
pub(crate) use reader::Reply;
