//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The application's module does not answer.
    #[error(
        "the application's module at {address}: {source}; start it with `sidestep cache files FOLDER --listen {address}`"
    )]
    Application {
        /// Where it should be.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Something else listens there.
    #[error("what listens at {0} is no module of `sidestep cache`")]
    NoModule(String),
    /// The module does not do what was asked.
    #[error("the application's module refuses: {0}")]
    Refused(String),
    /// Files are changed where the module is.
    #[error("the module at {0} is not on this host, or in another network namespace: change its files where it runs")]
    OtherHost(String),
    /// It may be somebody's who has taken the module's name: nothing was sent to it.
    #[error(
        "the module at {address} is one of user {owner}, not of this user or root; with `--owner {owner}` files are sent to it"
    )]
    OtherUser {
        /// Where it is.
        address: String,
        /// Whose it is.
        owner: u32,
    },
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Which.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// A folder is not there.
    #[error("{}: {source}", .folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime that serves connections cannot be had.
    #[error("cannot start to serve: {0}")]
    Runtime(io::Error),
    /// The origin's address is not one.
    #[error("{0:?} is not the address of an origin: HOST:PORT")]
    Origin(String),
    /// A file of settings is wrong.
    #[error("the settings: {0}")]
    Settings(String),
    /// Extended sockets say why.
    #[error(transparent)]
    Extended(#[from] sidestep_extended::Error),
}
