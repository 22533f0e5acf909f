//! The application's module for static files: it lies beside a server that does not know of it, and tells proxies the versions of its
//! files. It also changes files, for users who may ([`Author`]).
//!
//! A line of text asks, over TCP:
//!
//! | line | answer | |
//! |---|---|---|
//! | `TABLE` | `TABLE`, then the connection is extended and the table of versions exported, with this run's number as its tag | for proxies that read |
//! | `VERSION PATH` | this run's number and the word of the document | for proxies that ask |
//! | `CHANGES` | `CHANGES` and the name of the UNIX socket over which files are changed | for programs that change files |
//!
//! A file is replaced in one step (`rename`), so that the server, which asks nobody, reads the old one or the new one. Files that are
//! changed past the module are noticed by nobody.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use sidestep_extended::{Rights, Stack, in_milliseconds};

use crate::{Error, Result, application::Application, changes::Changes};
pub use crate::{changes::Author, users::Users};

/// The module of one folder.
#[derive(Debug)]
pub struct Module {
    listener: TcpListener,
    shared: Arc<Shared>,
    changes: Arc<Changes>,
}

#[derive(Debug)]
struct Shared {
    stack: Stack,
    application: Arc<Application>,
    /// Names this run.
    instance: u64,
    /// Where changes are asked for, in the words of an answer.
    changes_at: String,
}

/// The longest line.
pub(crate) const LONGEST_LINE: u64 = 8 << 10;
/// How long a proxy may take to extend its connection.
const PATIENCE_MS: u64 = 5_000;
/// Longer than a proxy reads the table of a run that has ended: before that, nothing changes.
const SETTLE: Duration = Duration::from_millis(10);

impl Module {
    /// Serves the versions of a folder's files at an address. This user and root may change them.
    pub fn bind(folder: &Path, address: &str) -> Result<Module> {
        Module::bind_for(Users::default(), folder, address)
    }

    /// The same; these users may change files.
    pub fn bind_for(users: Users, folder: &Path, address: &str) -> Result<Module> {
        let failed = |source| Error::Listen { address: address.to_string(), source };
        let folder = folder.canonicalize().map_err(|source| Error::Folder { folder: folder.into(), source })?;
        let listener = TcpListener::bind(address).map_err(failed)?;
        let stack = Stack::new()?;
        let application = Arc::new(Application::new(&stack)?);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let instance = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 48;
        let changes = Arc::new(Changes::listen(folder, application.clone(), users, instance).map_err(failed)?);
        let shared = Arc::new(Shared { stack, application, instance, changes_at: changes.place() });
        thread::sleep(SETTLE);
        Ok(Module { listener, shared, changes })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// The documents, for a program that changes them by itself.
    pub fn application(&self) -> &Application {
        &self.shared.application
    }

    /// Serves until the process ends.
    pub fn serve(&self) -> Result<()> {
        let changes = self.changes.clone();
        thread::Builder::new().spawn(move || changes.serve()).map_err(Error::Runtime)?;
        accept(
            || self.listener.accept().map(|(stream, _)| stream),
            |stream| {
                let shared = self.shared.clone();
                move || shared.attend(&stream)
            },
        )
    }
}

/// Attends to each connection in a thread of its own, until the process ends.
pub(crate) fn accept<S, A: FnOnce() + Send + 'static>(next: impl Fn() -> io::Result<S>, attend: impl Fn(S) -> A) -> ! {
    loop {
        match next() {
            // Without a thread the connection is closed, and whoever asks tries again.
            Ok(stream) => _ = thread::Builder::new().spawn(attend(stream)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Descriptors may be there again later.
            Err(_) => thread::sleep(SETTLE),
        }
    }
}

impl Shared {
    /// Answers the lines of a connection, until it ends or says something that nobody understands.
    fn attend(&self, stream: &TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut input = BufReader::new(stream);
        let mut line = String::new();
        loop {
            line.clear();
            match (&mut input).take(LONGEST_LINE).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            let answer = match words[..] {
                ["TABLE"] => return self.lend_table(stream),
                ["VERSION", path] => self.version(path),
                ["CHANGES"] => Ok(self.changes_at.clone()),
                _ => Err("what is asked is not TABLE, VERSION or CHANGES".into()),
            };
            let text = answer.clone().unwrap_or_else(|why| format!("ERROR {why}"));
            let mut output = stream;
            if output.write_all((text + "\n").as_bytes()).is_err() || answer.is_err() {
                return;
            }
        }
    }

    /// Lets a proxy read the table for as long as its connection stands.
    fn lend_table(&self, mut stream: &TcpStream) {
        let Ok(queue) = self.stack.completion_queue() else { return };
        if stream.write_all(b"TABLE\n").is_err() {
            return;
        }
        let Ok(socket) = self.stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS)) else { return };
        if socket.export(self.application.versions().region(), Rights::READ, self.instance).is_ok() {
            // Nothing comes: it ends.
            let _ = stream.read(&mut [0]);
        }
    }

    fn version(&self, path: &str) -> Result<String, String> {
        let version = self.application.versions().version(path).map_err(|error| error.to_string())?;
        Ok(format!("{} {}", self.instance, version.0))
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
