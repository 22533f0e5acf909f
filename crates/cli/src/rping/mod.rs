//! `sidestep rping`: RDMA ping over iWARP, with the options and on the wire as rdma-core's `rping`.
//!
//! ```text
//!  client                                        server
//!    | -- send: address, tag, length of source --> |
//!    | <-- RDMA read of the source --------------- |
//!    | <-- send: go ahead ------------------------ |
//!    | -- send: address, tag, length of sink ----> |
//!    | <-- RDMA write of what was read ----------- |
//!    | <-- send: go ahead ------------------------ |
//! ```

mod advert;
mod client;
mod driver;
pub mod options;
mod server;
mod session;

use anyhow::Result;

use self::options::Rping;

/// Runs a client or a server.
pub fn run(options: &Rping) -> Result<()> {
    if options.server { server::run(options) } else { client::run(options) }
}
