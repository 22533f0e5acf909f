//! Whose a process is, and the right to order something of it: its user has it, and root, who acts as that user then. What lies in
//! shared memory belongs to users, and the kernel lets nobody else write it.

use anyhow::{Context, Result, bail};
use nix::unistd::{Uid, User, seteuid};
use sidestep_sockets::{config::config, registry::Registry};

use super::process;

/// The user whose process this is, if it is this one, or this one is root.
pub fn of_process(pid: u32) -> Result<u32> {
    let Some(name) = process::program(pid) else { bail!("there is no process {pid} (a port is written :{pid})") };
    let Some(user) = process::user(pid) else { bail!("process {pid} ({name}) has ended") };
    let own = Uid::current();
    if !own.is_root() && own.as_raw() != user {
        bail!("process {pid} ({name}) belongs to another user: only that user and root may do this");
    }
    Ok(user)
}

/// A user as people know it: the name, if it has one, and the number.
pub fn shown(user: u32) -> String {
    match User::from_uid(Uid::from_raw(user)) {
        Ok(Some(known)) => format!("{} ({user})", known.name),
        _ => user.to_string(),
    }
}

/// The users that have a registry: this one, or for root all of them.
pub fn with_registries() -> Vec<u32> {
    match Uid::current() {
        own if own.is_root() => Registry::users(&config().directory),
        own => vec![own.as_raw()],
    }
}

/// Acts as this user from now on.
pub fn become_user(user: u32) -> Result<()> {
    if Uid::effective().as_raw() != user {
        become_self()?;
        seteuid(Uid::from_raw(user)).with_context(|| format!("cannot act as user {user}"))?;
    }
    Ok(())
}

/// Acts as the user who has called.
pub fn become_self() -> Result<()> {
    Ok(seteuid(Uid::current())?)
}
