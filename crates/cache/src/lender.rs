//! Tells proxies the versions of an application's documents: for servers that keep their own documents, in memory or in a database.
//!
//! ```no_run
//! use sidestep_cache::Lender;
//!
//! let lender = Lender::bind("127.0.0.1:8079")?;
//! let documents = lender.application().clone();
//! std::thread::spawn(move || lender.serve());
//! // Whenever a document is changed:
//! let updating = documents.update("/news")?;
//! // ... the change, as long as `updating` lives ...
//! drop(updating); // From here on no proxy answers with what was there before.
//! # Ok::<(), sidestep_cache::Error>(())
//! ```
//!
//! `sidestep cache proxy --origin SERVER --module 127.0.0.1:8079` stands before such a server. What it answers must say how long it lasts, or
//! when it was changed, to be kept at all (`Cache-Control: s-maxage=86400`): it is kept so long at most, and only as long as its version stays.
//!
//! A line of text asks, over TCP:
//!
//! | line | answer | |
//! |---|---|---|
//! | `TABLE` | `TABLE`, then the connection is extended and the table of versions exported, with this run's number as its tag | for proxies that read |
//! | `VERSION PATH` | this run's number and the word of the document | for proxies that ask |
//! | `CHANGES` | `CHANGES` and the name of the UNIX socket over which files are changed | of a [`Module`](crate::Module) of files only |
//!
//! `examples/guestbook.rs` is a whole server.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use sidestep_extended::{Rights, Stack, in_milliseconds};

use crate::{Error, Result, application::Application};

/// Lends the table of an application's versions. Clones are the same.
#[derive(Debug, Clone)]
pub struct Lender {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    listener: TcpListener,
    stack: Stack,
    application: Arc<Application>,
    /// Names this run.
    instance: u64,
    /// Where changes are asked for, in the words of an answer.
    changes_at: Option<String>,
}

/// The longest line.
pub(crate) const LONGEST_LINE: u64 = 8 << 10;
/// How long a proxy may take to extend its connection.
const PATIENCE_MS: u64 = 5_000;
/// Longer than a proxy reads the table of a run that has ended: before that, nothing changes.
const SETTLE: Duration = Duration::from_millis(10);

impl Lender {
    /// Listens at an address, with no document in use.
    pub fn bind(address: &str) -> Result<Lender> {
        Lender::bind_with(address, |_, _| Ok(None))
    }

    /// The same; `changes` makes the place where changes are asked for, with the documents and the number of this run.
    pub(crate) fn bind_with(
        address: &str,
        changes: impl FnOnce(&Arc<Application>, u64) -> io::Result<Option<String>>,
    ) -> Result<Lender> {
        let failed = |source| Error::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let stack = Stack::new()?;
        let application = Arc::new(Application::new(&stack)?);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let instance = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 48;
        let changes_at = changes(&application, instance).map_err(failed)?;
        thread::sleep(SETTLE);
        Ok(Lender { shared: Arc::new(Shared { listener, stack, application, instance, changes_at }) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.shared.listener.local_addr()
    }

    /// The documents: a server asks it for its turn to read or change one.
    pub fn application(&self) -> &Arc<Application> {
        &self.shared.application
    }

    /// Serves proxies until the process ends, each in a thread of its own.
    pub fn serve(&self) -> ! {
        accept(
            || self.shared.listener.accept().map(|(stream, _)| stream),
            |stream| {
                let lender = self.clone();
                move || lender.attend(&stream)
            },
        )
    }

    /// Serves one connection, until it ends or says something that nobody understands: for a server that accepts by itself.
    pub fn attend(&self, stream: &TcpStream) {
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
                ["CHANGES"] => {
                    self.shared.changes_at.clone().ok_or("this application changes its documents itself".into())
                }
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
        let Shared { stack, application, instance, .. } = &*self.shared;
        let Ok(queue) = stack.completion_queue() else { return };
        if stream.write_all(b"TABLE\n").is_err() {
            return;
        }
        let Ok(socket) = stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS)) else { return };
        if socket.export(application.versions().region(), Rights::READ, *instance).is_ok() {
            // Nothing comes: it ends.
            let _ = stream.read(&mut [0]);
        }
    }

    fn version(&self, path: &str) -> Result<String, String> {
        let version = self.shared.application.versions().version(path).map_err(|error| error.to_string())?;
        Ok(format!("{} {}", self.shared.instance, version.0))
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
