//! What can go wrong below the fabric.
//!
//! Three kinds are never mixed: a *limit* of the machine was reached, the *peer* handed over something
//! that may not be used, or the *caller* asked for something that does not exist.

use rustix::io::Errno;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine, the user or the process has used up a resource.
    #[error("{what}: {limit} is used up ({source}); raise it or free some, what exists goes on")]
    Limit {
        /// What was being done.
        what: &'static str,
        /// Which limit was met, in the words an administrator knows.
        limit: &'static str,
        /// The system's own word.
        source: Errno,
    },
    /// A system call failed for a reason that is not a limit.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// The system's own word.
        source: Errno,
    },
    /// A descriptor that came from a peer may not be mapped.
    #[error("the memory a peer sent is refused: {0}")]
    Foreign(&'static str),
    /// The peer wrote a value that no correct peer writes.
    #[error("the peer broke the protocol: {0}")]
    Peer(&'static str),
    /// The caller named a range outside the memory.
    #[error("range {offset}..{offset}+{len} lies outside memory of {size} bytes, or is not aligned")]
    Range {
        /// Where the range starts.
        offset: usize,
        /// How long it is.
        len: usize,
        /// How long the memory is.
        size: usize,
    },
    /// A size or count that the structure cannot have.
    #[error("{what} must be {must}, not {value}")]
    Size {
        /// Which parameter.
        what: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it was.
        value: usize,
    },
    /// Another process listens under this name.
    #[error("the name {0:?} is taken by a running process; choose another or end that one")]
    NameTaken(String),
    /// Nobody listens under this name.
    #[error("nobody listens under the name {0:?}; start the other side first")]
    NobodyListens(String),
    /// Another live process holds what was asked for.
    #[error("held by another live process")]
    Held,
}

impl Error {
    /// Turns the outcome of a system call into an error that names the limit, where it is one.
    pub fn from_errno(what: &'static str, source: Errno) -> Self {
        let limit = match source {
            Errno::MFILE => "the limit of open descriptors of this process (ulimit -n)",
            Errno::NFILE => "the limit of open files of this machine (fs.file-max)",
            Errno::NOMEM => "memory, or the limit of mappings or of address space (ulimit -v, vm.max_map_count)",
            Errno::NOSPC => "the space for shared memory (memory of the machine or of its control group)",
            Errno::NOBUFS => "the kernel's buffer space",
            Errno::TOOMANYREFS => "the limit of descriptors in flight (ulimit -n)",
            _ => return Error::System { what, source },
        };
        Error::Limit { what, limit, source }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
