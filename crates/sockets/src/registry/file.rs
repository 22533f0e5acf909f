//! The file of the registry: made, checked and mapped; and kept by a process that changes its root, which could not open it
//! any more.

use std::{
    os::fd::OwnedFd,
    sync::{
        OnceLock,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
};

use rustix::{
    fs::{FallocateFlags, Mode, OFlags},
    process::{Resource, getrlimit},
};
use sidestep_shm::{
    Memory, descriptor,
    lock::{Mutex, MutexGuard},
    procfs,
};

use super::{LEN, MAGIC, Registry, VERSION};
use crate::{config::config, reason::Reason, stream::lock};

/// Before a change of root, by user.
static KEPT: [OnceLock<(u32, Registry)>; USERS] = [const { OnceLock::new() }; USERS];
const USERS: usize = 8;
static KEEPING: Mutex<()> = Mutex::new(());

/// The registry of this user.
pub fn of_user() -> Option<&'static Registry> {
    let opened = || Registry::open(&config().directory).ok().map(|registry| &*Box::leak(Box::new(registry)));
    kept().or_else(opened)
}

/// Leaves word in the registry that this process has no engine. It is given back at once: what is short is the program's.
pub fn excuse(reason: Reason) {
    if let Ok(registry) = Registry::open(&config().directory) {
        registry.excuse(crate::kernel::process(), reason);
    }
}

/// Opens the registry of this user, and what else has a path, for this process and its children: under another root they
/// could not.
pub fn keep() {
    let _keeping = lock(&KEEPING);
    procfs::keep();
    if kept().is_none()
        && let Some(cell) = KEPT.iter().find(|cell| cell.get().is_none())
        && let Ok(registry) = Registry::open(&config().directory)
    {
        let _ = cell.set((user(), registry));
    }
}

fn kept() -> Option<&'static Registry> {
    KEPT.iter().filter_map(OnceLock::get).find(|(of, _)| *of == user()).map(|(_, registry)| registry)
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Held by a thread that forks, so that nothing is half kept in the child.
pub fn none_keeps() -> MutexGuard<'static, ()> {
    lock(&KEEPING)
}

impl Registry {
    /// Opens the registry of this user, and makes it if it is not there.
    pub fn open(directory: &str) -> Result<Registry, Reason> {
        Self::open_file(directory, true).ok_or(Reason::Resources)
    }

    /// Opens it for looking, if it is there.
    pub fn look(directory: &str) -> Option<Registry> {
        Self::open_file(directory, false)
    }

    fn open_file(directory: &str, create: bool) -> Option<Registry> {
        if create {
            // Everyone's, with the sticky bit; if it is there already, its owner's modes stand.
            let made = rustix::fs::mkdir(directory, Mode::from_raw_mode(0o1777));
            if made.is_ok() {
                let _ = rustix::fs::chmod(directory, Mode::from_raw_mode(0o1777));
            }
        }
        let user = rustix::process::geteuid();
        let path = format!("{directory}/{}", user.as_raw());
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if create {
            flags |= OFlags::CREATE;
        }
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).ok()?;
        let status = rustix::fs::fstat(&file).ok()?;
        let regular = rustix::fs::FileType::from_raw_mode(status.st_mode).is_file();
        if status.st_uid != user.as_raw() || !regular {
            return None;
        }
        if (status.st_size as usize) < LEN {
            // Space first: a full file system must be an error here, not a signal later. Beyond the limit of files it would
            // be one here. Who only looks makes nothing.
            if !create || getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < LEN as u64) {
                return None;
            }
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, LEN as u64).ok()?;
        }
        Self::map(file)
    }

    fn map(file: OwnedFd) -> Option<Registry> {
        let memory = Memory::map_own_file(descriptor::keep(file), LEN).ok()?;
        let words = memory.words(0, LEN / 8).ok()?;
        let (magic, version) = (words.word(0), words.word(1));
        match magic.load(Acquire) {
            0 => {
                version.store(VERSION, Relaxed);
                magic.store(MAGIC, Release);
            }
            MAGIC if version.load(Relaxed) == VERSION => {}
            _ => return None,
        }
        Some(Registry { words, _memory: memory })
    }
}
