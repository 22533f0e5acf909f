//! Where the registry of a user is: a small file says which segment it is. And the registries that a process keeps which
//! changes its root, since it could not open them any more.
//!
//! The file is a hint and is never mapped, so whatever happens to it or to its directory costs acceleration and nothing
//! else. The directory is opened once and not through a link; the file in it is one of this user alone.

use std::{os::fd::OwnedFd, sync::Arc, time::Duration};

use rustix::{
    fs::{Access, AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat},
    process::{Resource, getrlimit},
};
use sidestep_shm::segment::{self, SegmentId};
use sidestep_sys::{
    lock::{Mutex, MutexGuard},
    procfs, user,
};
use sidestep_wire::cursor::little::{Reader, Writer};

use super::{
    LEN, Registry, View,
    layout::{MAGIC, VERSION},
};
use crate::{config::config, kernel, registry::reason::Reason};

/// The registries of users that this process was before a change of root, with the users. Nobody waits for the lock: in a
/// forked child a thread may have it for ever that is not there, and then nothing is kept.
static KEPT: Mutex<Vec<(u32, Arc<Registry>)>> = Mutex::new(Vec::new());

/// More users than a server is between two changes of root.
const MOST_KEPT: usize = 8;

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hint {
    segment: SegmentId,
    /// Also in the segment: its number may be another's by now.
    nonce: u64,
}

/// Bytes of the file: magic, version and segment, nonce, and one word for later.
pub const HINT_LEN: usize = 32;
/// Tries to lock the file, and the time between two: who holds it for longer does not make a registry.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The registry of this user.
pub fn of_user() -> Option<Arc<Registry>> {
    let user = user::own()?;
    let find = |kept: MutexGuard<'_, Vec<(u32, Arc<Registry>)>>| {
        kept.iter().find(|(of, _)| *of == user).map(|(_, registry)| registry.clone())
    };
    KEPT.try_lock().ok().and_then(find).or_else(|| Registry::open(&config().directory).ok().map(Arc::new))
}

/// Leaves word in the registry that this process has no engine. The word lasts as long as what is returned.
pub fn excuse(reason: Reason) -> Option<Arc<Registry>> {
    let registry = of_user()?;
    registry.excuse(kernel::process(), reason);
    Some(registry)
}

/// Opens the registry of this user, and what else has a path, for this process and its children: under another root they
/// could not.
pub fn keep() {
    procfs::keep();
    kernel::keep_pid_namespace();
    let (Ok(mut kept), Some(user)) = (KEPT.try_lock(), user::own()) else { return };
    if kept.len() < MOST_KEPT
        && kept.iter().all(|(of, _)| *of != user)
        && let Ok(registry) = Registry::open(&config().directory)
    {
        kept.push((user, Arc::new(registry)));
    }
}

/// After a change of user: what belongs to users that this process can no longer become is given back.
pub fn drop_strange() {
    let mut own = [u32::MAX; 3];
    kernel::users(&mut own);
    if let Ok(mut kept) = KEPT.try_lock() {
        kept.retain(|(of, _)| own.contains(of));
    }
}

impl Registry {
    /// Opens the registry of this user, and makes it if it is not there.
    pub fn open(directory: &str) -> Result<Registry, Reason> {
        open(directory).ok_or(Reason::Resources)
    }

    /// The registry of this user for tools that order something, if it is there. Nothing is made.
    pub fn attach(directory: &str) -> Option<Registry> {
        let user = user::own()?;
        attached(read(&open_file(&open_directory(directory)?, user, OFlags::RDONLY)?)?, user)
    }

    /// The registry of this user as tools see it, if it is there. Nothing is made.
    pub fn look(directory: &str) -> Option<View> {
        look(&open_directory(directory)?, rustix::process::geteuid().as_raw())
    }

    /// Whether programs of this user can have a registry in this directory. Nothing is opened for writing.
    pub fn is_usable(directory: &str) -> bool {
        let Some(user) = user::own() else { return false };
        let can_write = |path: &str| rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        match (open_directory(directory), rustix::fs::lstat(directory)) {
            (Some(folder), _) => match rustix::fs::statat(&folder, file_name(user), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) => is_proper(&status, user),
                Err(_) => can_write(directory),
            },
            // The first program makes it, if that can be done where it is to be.
            (None, Err(rustix::io::Errno::NOENT)) => {
                let probe = format!("{}-{}", directory.trim_end_matches('/'), kernel::process());
                rustix::fs::mkdir(&probe, Mode::RWXU).and_then(|()| rustix::fs::rmdir(&probe)).is_ok()
            }
            (None, _) => false,
        }
    }

    /// The registries of all users that this process may look at.
    pub fn look_at_all(directory: &str) -> Vec<View> {
        let Some(folder) = open_directory(directory) else { return Vec::new() };
        users(&folder).into_iter().filter_map(|user| look(&folder, user)).collect()
    }

    /// The users that have a registry in this directory, or had.
    pub fn users(directory: &str) -> Vec<u32> {
        open_directory(directory).map_or(Vec::new(), |folder| users(&folder))
    }
}

/// The users that the names of the files say.
fn users(folder: &OwnedFd) -> Vec<u32> {
    let names = rustix::fs::Dir::read_from(folder).into_iter().flatten().flatten();
    let user = |name: &str| name.split_once('-')?.0.parse().ok().filter(|user| file_name(*user) == name);
    names.filter_map(|entry| user(entry.file_name().to_str().ok()?)).collect()
}

fn open(directory: &str) -> Option<Registry> {
    let user = user::own()?;
    let folder = open_directory(directory).or_else(|| make_directory(directory))?;
    let file = open_file(&folder, user, OFlags::RDWR | OFlags::CREATE)?;
    let known = |file| attached(read(file)?, user);
    if let Some(registry) = known(&file) {
        return Some(registry);
    }
    // One that is gone, or was never there. Beyond the limit of files a write would be a signal.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < HINT_LEN as u64) {
        return None;
    }
    let locked = (0..LOCK_TRIES).any(|_| {
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !locked {
            kernel::pause(LOCK_PAUSE);
        }
        locked
    });
    let same = || {
        let named = rustix::fs::statat(&folder, file_name(user), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let own = rustix::fs::fstat(&file).ok()?;
        Some((named.st_dev, named.st_ino) == (own.st_dev, own.st_ino))
    };
    let made = if locked && same() == Some(true) { known(&file).or_else(|| make(&file)) } else { known(&file) };
    // Not only by closing it: a child that another thread forked just now has it, too.
    let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
    made
}

/// Makes a segment, and says so in the file, which is locked.
fn make(file: &OwnedFd) -> Option<Registry> {
    let (segment, memory) = segment::create(LEN).ok()?;
    let mut nonce = [0; 8];
    rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty()).ok()?;
    let hint = Hint { segment, nonce: u64::from_ne_bytes(nonce) };
    let registry = Registry::new(&memory)?;
    registry.found(hint.nonce);
    let written = rustix::io::pwrite(file, &hint.to_bytes(), 0).ok()?;
    (written == HINT_LEN).then_some(registry)
}

/// The registry in the segment that is named, if it is the one that was meant.
fn attached(hint: Hint, user: u32) -> Option<Registry> {
    let memory = segment::attach(hint.segment, LEN, user).ok()?;
    Registry::new(&memory).filter(|registry| registry.is_founded(hint.nonce))
}

fn look(folder: &OwnedFd, user: u32) -> Option<View> {
    let hint = read(&open_file(folder, user, OFlags::RDONLY)?)?;
    View::new(segment::attach_read_only(hint.segment, LEN, user).ok()?, hint.nonce)
}

/// The directory: of this user or of root, written by nobody else; or one that is everyone's, where files stay their makers'.
fn open_directory(path: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // With a slash at its end a link would be followed.
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let folder = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    let status = rustix::fs::fstat(&folder).ok()?;
    let mode = Mode::from_raw_mode(status.st_mode);
    let shared = mode.contains(Mode::SVTX);
    let private = !mode.intersects(Mode::WGRP | Mode::WOTH) && (status.st_uid == 0 || user::is_own(status.st_uid));
    (shared || private).then_some(folder)
}

fn make_directory(path: &str) -> Option<OwnedFd> {
    let everyone = Mode::RWXU | Mode::RWXG | Mode::RWXO | Mode::SVTX;
    let made = match rustix::fs::mkdir(path.trim_end_matches('/'), Mode::RWXU | Mode::SVTX) {
        Ok(()) => true,
        // Another thread or process was faster.
        Err(rustix::io::Errno::EXIST) => false,
        Err(_) => return None,
    };
    let folder = open_directory(path)?;
    // What the process lets others do with its files does not matter here.
    let own = rustix::fs::fstat(&folder).is_ok_and(|status| user::is_own(status.st_uid));
    if made && own {
        let _ = rustix::fs::fchmod(&folder, everyone);
    }
    Some(folder)
}

/// The file of a user: regular, the user's alone, under this name alone, and of the right size.
fn open_file(folder: &OwnedFd, user: u32, flags: OFlags) -> Option<OwnedFd> {
    // Not waiting: whatever is there may be a pipe.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, file_name(user), flags, Mode::RUSR | Mode::WUSR).ok()?;
    is_proper(&rustix::fs::fstat(&file).ok()?, user).then_some(file)
}

fn is_proper(status: &Stat, user: u32) -> bool {
    FileType::from_raw_mode(status.st_mode).is_file()
        && status.st_uid == user
        && user != user::overflow()
        && !Mode::from_raw_mode(status.st_mode).intersects(Mode::RWXG | Mode::RWXO)
        && status.st_nlink == 1
        && [0, HINT_LEN as u64].contains(&(status.st_size as u64))
}

/// Processes of other IPC namespaces cannot attach to the same segment, and those of other versions of the layout could not
/// read it: they have a file of their own.
fn file_name(user: u32) -> String {
    format!("{user}-{}-{VERSION}", kernel::namespace("ipc"))
}

fn read(file: &OwnedFd) -> Option<Hint> {
    let mut bytes = [0; HINT_LEN];
    let count = rustix::io::pread(file, &mut bytes[..], 0).ok()?;
    if count == HINT_LEN { Hint::from_bytes(&bytes) } else { None }
}

impl Hint {
    fn to_bytes(self) -> [u8; HINT_LEN] {
        let mut bytes = [0; HINT_LEN];
        Writer::new(&mut bytes[..]).u64(MAGIC).u64(VERSION << 32 | u64::from(self.segment.0)).u64(self.nonce);
        bytes
    }

    fn from_bytes(bytes: &[u8; HINT_LEN]) -> Option<Hint> {
        let mut fields = Reader::new(bytes);
        let [magic, place, nonce] = [fields.u64().ok()?, fields.u64().ok()?, fields.u64().ok()?];
        (magic == MAGIC && place >> 32 == VERSION).then_some(Hint { segment: SegmentId(place as u32), nonce })
    }
}

#[cfg(test)]
mod tests;
