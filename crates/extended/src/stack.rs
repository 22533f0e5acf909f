//! The extended sockets of a process: its node on the fabric, and what is made there.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
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

/// A deadline for calls that wait: so many milliseconds from now.
pub fn in_milliseconds(milliseconds: u64) -> u64 {
    clock::now().saturating_add(milliseconds.saturating_mul(1_000_000))
}

impl Stack {
    /// A stack of its own, for connections within this host.
    pub fn new() -> Result<Stack> {
        Stack::with(Options::default())
    }

    /// A stack of its own. One with a [port](Options::port) also reaches other hosts. It then has a thread, which serves
    /// peers of other hosts while the program is busy with something else.
    pub fn with(options: Options) -> Result<Stack> {
        let generation = process::generation();
        let schemes: &[&str] = if options.port.is_some() { &["shm", "iwarp"] } else { &["shm"] };
        Ok(Stack { node: Node::open(schemes, &LinkOptions::default())?, options, board: Board::new(), generation })
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
    /// used meanwhile.
    pub fn enable(&self, socket: BorrowedFd<'_>, queue: &CompletionQueue, deadline: u64) -> Result<Socket> {
        self.check()?;
        let met = meeting::meet(&self.node, socket, self.options.port, deadline)?;
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
