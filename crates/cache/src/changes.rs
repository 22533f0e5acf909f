//! Changes of files, for users who may: over a UNIX socket, whose ends learn from the kernel whose process is at the other.
//!
//! A line of text asks:
//!
//! | line | answer |
//! |---|---|
//! | `UPDATE PATH LENGTH` and as many bytes | `DONE`, when no proxy answers with an older file any more; or `ERROR` and why |
//! | `DELETE PATH` | the same |
//!
//! The socket has an abstract name, which the module tells whoever asks for it over TCP. A name can be taken by any user: so a program that
//! asks for a change first looks whose module it has found.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    Error, Result,
    application::Application,
    lender::{LONGEST_LINE, accept},
    users::{PeerUser, Users},
    versions::is_plain,
};

/// Changes the files of a folder for those who may ask for it.
#[derive(Debug)]
pub(crate) struct Changes {
    name: String,
    listener: UnixListener,
    folder: PathBuf,
    application: Arc<Application>,
    users: Users,
    peer_user: PeerUser,
    /// Names files that are not in their place yet.
    temporary: AtomicU64,
}

const LARGEST_FILE: u64 = 1 << 30;
/// What the module says before the name of the socket.
const NAMED: &str = "CHANGES ";

impl Changes {
    /// For the folder of the run of a module that has this number.
    pub(crate) fn listen(
        folder: PathBuf,
        application: Arc<Application>,
        users: Users,
        instance: u64,
    ) -> io::Result<Changes> {
        let name = format!("sidestep-cache/{instance:016x}");
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let (peer_user, temporary) = (PeerUser::new()?, AtomicU64::new(0));
        Ok(Changes { name, listener, folder, application, users, peer_user, temporary })
    }

    /// The answer to who asks where changes are asked for.
    pub(crate) fn place(&self) -> String {
        format!("{NAMED}{}", self.name)
    }

    /// Serves until the process ends.
    pub(crate) fn serve(self: &Arc<Self>) {
        accept(
            || self.listener.accept().map(|(stream, _)| stream),
            |stream| {
                let changes = self.clone();
                move || changes.attend(&stream)
            },
        );
    }

    /// Carries out the changes that come over a connection, until one fails.
    fn attend(&self, stream: &UnixStream) {
        let mut input = BufReader::new(stream);
        let mut line = String::new();
        let mut outcome = self.admit(stream);
        loop {
            if outcome.is_ok() {
                line.clear();
                match (&mut input).take(LONGEST_LINE).read_line(&mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let words: Vec<&str> = line.trim_end().split(' ').collect();
                outcome = match words[..] {
                    ["UPDATE", path, length] => self.update(path, length, &mut input),
                    ["DELETE", path] => self.change(path, |file| fs::remove_file(file)),
                    _ => Err("what is asked is neither UPDATE nor DELETE".into()),
                };
            }
            let answer = outcome.as_ref().map_or_else(|why| format!("ERROR {why}\n"), |()| "DONE\n".to_string());
            let mut output = stream;
            if output.write_all(answer.as_bytes()).is_err() || outcome.is_err() {
                return;
            }
        }
    }

    fn admit(&self, stream: &UnixStream) -> Result<(), String> {
        let user = self.peer_user.of(stream).map_err(|error| error.to_string())?;
        if self.users.have(user) {
            return Ok(());
        }
        Err(format!(
            "user {user} may not change files here: only the module's own user, root and those it was told to allow"
        ))
    }

    fn update(&self, path: &str, length: &str, input: &mut impl Read) -> Result<(), String> {
        let length = length.parse().ok().filter(|length| *length <= LARGEST_FILE).ok_or("a length that no file has")?;
        // Beside its place, so that it can be renamed; the name is of this run and used once.
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let new = self.folder.join(format!(".{}-{number}", self.name.replace('/', "-")));
        // A new one: whoever else may write to the folder has no say in where the bytes go.
        let received = fs::File::create_new(&new)
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
    fn change(&self, path: &str, change: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), String> {
        if !is_plain(path) || path.ends_with('/') || path.contains("/.sidestep-") {
            return Err(format!("{path} is not the plain path of a file"));
        }
        let updating = self.application.update(path).map_err(|error| error.to_string())?;
        let outcome = change(&self.folder.join(&path[1..])).map_err(|error| format!("{path}: {error}"));
        drop(updating);
        outcome
    }
}

/// A module, as a program that changes its files knows it.
#[derive(Debug, Clone)]
pub struct Author {
    address: String,
    owners: Arc<Users>,
}

impl Author {
    /// Of the module at this address of this host. It must be one of this user or of root, or of the user with the number
    /// `owner`: others are sent nothing.
    pub fn new(address: &str, owner: Option<u32>) -> Author {
        Author { address: address.to_string(), owners: Arc::new(Users::also(owner.as_slice())) }
    }

    /// Replaces a file, and waits until it has been done.
    pub fn update(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.ask(&[format!("UPDATE {path} {}\n", bytes.len()).as_bytes(), bytes].concat())
    }

    /// Removes a file, and waits until it has been done.
    pub fn delete(&self, path: &str) -> Result<()> {
        self.ask(format!("DELETE {path}\n").as_bytes())
    }

    fn ask(&self, question: &[u8]) -> Result<()> {
        let failed = |source| Error::Application { address: self.address.clone(), source };
        let stream = self.connect()?;
        // A module that refuses says so without reading on.
        let sent = (&stream).write_all(question);
        let mut answer = String::new();
        let heard = BufReader::new(&stream).take(LONGEST_LINE).read_line(&mut answer);
        match answer.trim_end() {
            "DONE" => Ok(()),
            "" => Err(failed(sent.and(heard).err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()))),
            why => Err(Error::Refused(why.trim_start_matches("ERROR ").to_string())),
        }
    }

    /// A connection for changes, to a module of the right user.
    fn connect(&self) -> Result<UnixStream> {
        let failed = |source| Error::Application { address: self.address.clone(), source };
        let stream = TcpStream::connect(&self.address).map_err(failed)?;
        (&stream).write_all(b"CHANGES\n").map_err(failed)?;
        let mut answer = String::new();
        BufReader::new(&stream).take(LONGEST_LINE).read_line(&mut answer).map_err(failed)?;
        let name = answer.trim_end().strip_prefix(NAMED).ok_or_else(|| Error::NoModule(self.address.clone()))?;
        let place = SocketAddr::from_abstract_name(name).map_err(failed)?;
        let stream = UnixStream::connect_addr(&place).map_err(|_| Error::OtherHost(self.address.clone()))?;
        let owner = PeerUser::new().and_then(|peer| peer.of(&stream)).map_err(failed)?;
        if !self.owners.have(owner) {
            return Err(Error::OtherUser { address: self.address.clone(), owner });
        }
        Ok(stream)
    }
}
