//! What a carrier asks of the process that it lives in, which may be somebody else's program.

use std::{
    io,
    thread::{self, JoinHandle},
};

/// What a thread does.
pub type Work = Box<dyn FnOnce() + Send>;

/// What a process allows, and how it starts threads.
#[derive(Debug)]
pub struct Host {
    /// Whether calls that a sandbox may forbid must not be made any more.
    pub is_sandboxed: fn() -> bool,
    /// Whether a thread may be started here and now. That allocates, which a program that was interrupted may not allow.
    pub may_start: fn() -> bool,
    /// Starts a thread with this name.
    pub start: fn(&str, Work) -> io::Result<JoinHandle<()>>,
}

impl Host {
    /// A process that is nobody else's.
    pub const PLAIN: Host = Host { is_sandboxed: || false, may_start: || true, start: start_plainly };
}

fn start_plainly(name: &str, run: Work) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(run)
}
