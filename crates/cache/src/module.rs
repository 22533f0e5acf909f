//! The application's module for static files: it lies beside a server that does not know of it, and tells proxies the versions of its
//! files ([`Lender`]). It also changes files, for users who may ([`Author`]).
//!
//! A file is replaced in one step (`rename`), so that the server, which asks nobody, reads the old one or the new one. Files that are
//! changed past the module are noticed by nobody.

use std::{io, path::Path, sync::Arc, thread};

use crate::{Error, Result, application::Application, changes::Changes, lender::Lender};
pub use crate::{changes::Author, users::Users};

/// The module of one folder.
#[derive(Debug)]
pub struct Module {
    lender: Lender,
    changes: Arc<Changes>,
}

impl Module {
    /// Serves the versions of a folder's files at an address. This user and root may change them.
    pub fn bind(folder: &Path, address: &str) -> Result<Module> {
        Module::bind_for(Users::default(), folder, address)
    }

    /// The same; these users may change files.
    pub fn bind_for(users: Users, folder: &Path, address: &str) -> Result<Module> {
        let folder = folder.canonicalize().map_err(|source| Error::Folder { folder: folder.into(), source })?;
        let mut made = None;
        let lender = Lender::bind_with(address, |application, instance| {
            let changes = Changes::listen(folder, application.clone(), users, instance)?;
            Ok(Some(made.insert(Arc::new(changes)).place()))
        })?;
        let changes = made.expect("made before the lender was");
        Ok(Module { lender, changes })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.lender.address()
    }

    /// The documents, for a program that changes them by itself.
    pub fn application(&self) -> &Application {
        self.lender.application()
    }

    /// Serves until the process ends.
    pub fn serve(&self) -> Result<()> {
        let changes = self.changes.clone();
        thread::Builder::new().spawn(move || changes.serve()).map_err(Error::Runtime)?;
        self.lender.serve()
    }
}

/// Asks a module of this user or of root to replace a file, and waits until it has been done.
pub fn update(address: &str, path: &str, bytes: &[u8]) -> Result<()> {
    Author::new(address, None).update(path, bytes)
}

/// Asks a module of this user or of root to remove a file, and waits until it has been done.
pub fn delete(address: &str, path: &str) -> Result<()> {
    Author::new(address, None).delete(path)
}
