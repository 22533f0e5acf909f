//! The extended sockets of a process: its node on the fabric, and what is made there.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sidestep_fabric::{self as fabric, Node, Rights, link::LinkOptions};
use sidestep_shm::Memory;
use sidestep_sys::{clock, process};

use crate::{
    board::Board,
    completion::CompletionQueue,
    error::{Error, Result},
    meeting,
    options::Options,
    region::Region,
    socket::Socket,
};

/// The extended sockets of this process. One is enough; clones are the same.
#[derive(Debug, Clone)]
pub struct Stack {
    node: Node,
    options: Options,
    /// Where its sockets are shown to others, if there is memory for that.
    pub(crate) board: Option<Arc<Board>>,
    /// The process that made it: a forked child has the parent's memory, and none of its connections.
    generation: u32,
}

/// Numbers of sockets, each given out once in a process.
static NEXT_SOCKET: AtomicU64 = AtomicU64::new(1);

/// As long as the slowest program takes to enable its end.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A deadline for calls that wait: so many milliseconds from now.
pub fn in_milliseconds(milliseconds: u64) -> u64 {
    clock::now().saturating_add(milliseconds.saturating_mul(1_000_000))
}

impl Stack {
    /// A stack of its own, for connections within this host.
    pub fn new() -> Result<Stack> {
        Stack::with(Options::default())
    }

    /// A stack of its own. One with a [port](Options::port) also reaches other hosts, and so does one whose sockets are extended
    /// [in place](Options::in_place). It then has a thread, which serves peers of other hosts while the program is busy with
    /// something else.
    pub fn with(options: Options) -> Result<Stack> {
        let generation = process::generation();
        let schemes: &[&str] = match options {
            Options { in_place: true, .. } => &["iwarp"],
            Options { port: Some(_), .. } => &["shm", "iwarp"],
            Options { port: None, .. } => &["shm"],
        };
        let mut link = LinkOptions::default();
        if options.in_place {
            // The deadline of each call is what ends it.
            link.setup_timeout = FOR_EVER;
        }
        Ok(Stack { node: Node::open(schemes, &link)?, options, board: Board::new(), generation })
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The node that everything goes through.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Whether this process made it, and not its parent.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.generation == process::generation()
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_own() { Ok(()) } else { Err(Error::Forked) }
    }

    /// A queue for completions.
    pub fn completion_queue(&self) -> Result<CompletionQueue> {
        self.check()?;
        Ok(CompletionQueue::new(&self.node))
    }

    /// Asks the other end of a connected TCP socket to extend it, and waits until it has done the same, at most until the
    /// deadline (nanoseconds of `sys::clock::now`). Completions go to `queue`.
    ///
    /// The bytes of the connection are not touched, whether that succeeds or not, and neither is the descriptor, which may be
    /// used meanwhile. But for sockets that are extended [in place](Options::in_place): see there.
    pub fn enable(&self, socket: BorrowedFd<'_>, queue: &CompletionQueue, deadline: u64) -> Result<Socket> {
        self.check()?;
        let met = meeting::meet(&self.node, socket, &self.options, deadline)?;
        Socket::new(self.clone(), NEXT_SOCKET.fetch_add(1, Ordering::Relaxed), met, queue)
    }

    /// Registers fresh memory, which peers with all rights, or with the right to read, map: their operations need nothing of
    /// this process.
    pub fn register(&self, len: usize, rights: Rights) -> Result<Region> {
        self.check()?;
        Ok(Region::new(fabric::Region::new(&self.node, len)?, rights))
    }

    /// Registers memory of the program. Peers copy through the kernel, if it lets them; else this process's calls serve them.
    ///
    /// The `unsafe` step is [`Memory::from_raw`], which makes the `memory`.
    pub fn register_over(&self, memory: Memory, rights: Rights) -> Result<Region> {
        self.check()?;
        Ok(Region::new(fabric::Region::over(&self.node, memory)?, rights))
    }

    /// Serves peers whose operations need this process. Every call does that, too.
    pub fn progress(&self) {
        if self.is_own() {
            self.node.progress_kernel();
        }
    }
}
