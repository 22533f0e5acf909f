//! The application's module for static files: it lies beside a server that does not know of it, tells proxies the versions of its files, and
//! changes files for whoever asks.
//!
//! A line of text asks, over TCP:
//!
//! | line | answer | |
//! |---|---|---|
//! | `TABLE` | `TABLE`, then the connection is extended and the table of versions exported, with this run's number as its tag | for proxies that read |
//! | `VERSION PATH` | this run's number and the word of the document | for proxies that ask |
//! | `UPDATE PATH LENGTH` and as many bytes | `DONE`, when no proxy answers with an older file any more; or `ERROR` and why | |
//! | `DELETE PATH` | the same | |
//!
//! A file is replaced in one step (`rename`), so that the server, which asks nobody, reads the old one or the new one. Files that are
//! changed past the module are noticed by nobody.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use sidestep_extended::{Rights, Stack, in_milliseconds};

use crate::{Error, Result, application::Application, versions::is_plain};

/// The module of one folder.
#[derive(Debug)]
pub struct Module {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    stack: Stack,
    application: Application,
    /// Names this run.
    instance: u64,
    temporary: AtomicU64,
}

/// The longest line, and the largest file.
const LONGEST_LINE: u64 = 8 << 10;
const LARGEST_FILE: u64 = 1 << 30;
/// How long a proxy may take to extend its connection.
const PATIENCE_MS: u64 = 5_000;
/// Longer than a proxy reads the table of a run that has ended: before that, nothing changes.
const SETTLE: Duration = Duration::from_millis(10);

impl Module {
    /// Serves the files of a folder at an address.
    pub fn bind(folder: &Path, address: &str) -> Result<Module> {
        let failed = |source| Error::Listen { address: address.to_string(), source };
        let folder = folder.canonicalize().map_err(|source| Error::Folder { folder: folder.into(), source })?;
        let listener = TcpListener::bind(address).map_err(failed)?;
        let stack = Stack::new()?;
        let application = Application::new(&stack)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let instance = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 48;
        let shared = Shared { folder, stack, application, instance, temporary: AtomicU64::new(0) };
        std::thread::sleep(SETTLE);
        Ok(Module { listener, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// The documents, for a program that changes them by itself.
    pub fn application(&self) -> &Application {
        &self.shared.application
    }

    /// Serves until the listener fails.
    pub fn serve(&self) -> Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let shared = self.shared.clone();
                    // Without a thread the connection is closed, and whoever asks tries again.
                    let _ = std::thread::Builder::new().spawn(move || shared.attend(stream));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Descriptors may be there again later.
                Err(_) => std::thread::sleep(SETTLE),
            }
        }
    }
}

impl Shared {
    /// Answers the lines of a connection, until it ends or says something that nobody understands.
    fn attend(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut input = BufReader::new(&stream);
        let mut line = String::new();
        loop {
            line.clear();
            match (&mut input).take(LONGEST_LINE).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            let answer = match words[..] {
                ["TABLE"] => return self.lend_table(&stream),
                ["VERSION", path] => self.version(path),
                ["UPDATE", path, length] => self.update(path, length, &mut input),
                ["DELETE", path] => self.change(path, |file| fs::remove_file(file)),
                _ => Err("what is asked is not TABLE, VERSION, UPDATE or DELETE".into()),
            };
            let text = answer.clone().unwrap_or_else(|why| format!("ERROR {why}"));
            if (&stream).write_all((text + "\n").as_bytes()).is_err() || answer.is_err() {
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

    fn update(&self, path: &str, length: &str, input: &mut impl Read) -> Result<String, String> {
        let length = length.parse().ok().filter(|length| *length <= LARGEST_FILE).ok_or("a length that no file has")?;
        // Beside its place, so that it can be renamed; the name is of this run and used once.
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let new = self.folder.join(format!(".sidestep-{}-{number}", self.instance));
        let received = fs::File::create(&new)
            .and_then(|mut file| io::copy(&mut input.take(length), &mut file))
            .map_err(|error| error.to_string())
            .and_then(|count| if count == length { Ok(()) } else { Err("the file is not whole".into()) });
        let outcome = received.and_then(|()| self.change(path, |file| fs::rename(&new, file)));
        if outcome.is_err() {
            let _ = fs::remove_file(&new);
        }
        outcome
    }

    /// Changes a file in its turn.
    fn change(&self, path: &str, change: impl FnOnce(&Path) -> io::Result<()>) -> Result<String, String> {
        if !is_plain(path) || path.ends_with('/') || path.contains("/.sidestep-") {
            return Err(format!("{path} is not the plain path of a file"));
        }
        let updating = self.application.update(path).map_err(|error| error.to_string())?;
        let outcome = change(&self.folder.join(&path[1..])).map_err(|error| format!("{path}: {error}"));
        drop(updating);
        outcome.map(|()| "DONE".to_string())
    }
}

/// Asks a module to replace a file, and waits until it has been done.
pub fn update(address: &str, path: &str, bytes: &[u8]) -> Result<()> {
    ask(address, &[format!("UPDATE {path} {}\n", bytes.len()).as_bytes(), bytes].concat())
}

/// Asks a module to remove a file, and waits until it has been done.
pub fn delete(address: &str, path: &str) -> Result<()> {
    ask(address, format!("DELETE {path}\n").as_bytes())
}

fn ask(address: &str, question: &[u8]) -> Result<()> {
    let failed = |source| Error::Application { address: address.to_string(), source };
    let stream = TcpStream::connect(address).map_err(failed)?;
    (&stream).write_all(question).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).map_err(failed)?;
    match answer.trim_end() {
        "DONE" => Ok(()),
        why => Err(Error::Refused(why.trim_start_matches("ERROR ").to_string())),
    }
}
