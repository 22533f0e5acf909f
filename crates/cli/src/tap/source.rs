//! Where pieces come from: the buffers that processes of a user, or for root of all users, hand them to.

use std::{io, path::Path};

use anyhow::{Result, anyhow, bail};
use sidestep_sockets::{
    config::config,
    registry::Registry,
    tap::{Buffer, Filter, Losses, buffer::Tapped, record::Record},
};
use sidestep_sys::clock;

use crate::census::{owner, process};

/// The buffers, until it is closed.
#[derive(Debug)]
pub struct Source(Vec<OfUser>);

#[derive(Debug)]
struct OfUser {
    user: u32,
    registry: Option<Registry>,
    nonce: u64,
    buffer: Buffer,
    lanes: Vec<Tapped>,
    /// When lanes of processes that are gone were last looked for.
    recycled: u64,
}

/// Between two looks for those.
const RECYCLE_NS: u64 = 100_000_000;
/// Pieces that are taken from one process before it is another's turn.
const TURN: usize = 256;

/// Reads filters: `pid=N`, `port=N`, `address=A`, each once at most.
pub fn filter(texts: &[String]) -> Result<Filter> {
    let mut filter = Filter::default();
    for text in texts {
        let (key, value) = text.split_once('=').ok_or_else(|| anyhow!("{text}: a filter is KEY=VALUE"))?;
        let number = || anyhow!("{text}: {key} is a number");
        let again = match key {
            "pid" => filter.pid.replace(value.parse().map_err(|_| number())?).is_some(),
            "port" => filter.port.replace(value.parse().map_err(|_| number())?).is_some(),
            "address" => {
                filter.address.replace(value.parse().map_err(|_| anyhow!("{text}: not an IP address"))?).is_some()
            }
            _ => bail!("{text}: a key is pid, port or address"),
        };
        if again {
            bail!("{text}: {key} is given twice");
        }
    }
    Ok(filter)
}

impl Source {
    /// Begins to tap what fits, and to keep so many bytes of each piece.
    pub fn open(filter: &Filter, snap: u64) -> Result<Source> {
        let users = match filter.pid {
            Some(pid) => vec![user_of(pid)?],
            None => owner::with_registries(),
        };
        let mut source = Source(Vec::new());
        for user in users {
            owner::become_user(user)?;
            // The directory may be closed to this user, or its registry gone.
            if let Some(registry) = Registry::attach(&config().directory) {
                source.0.push(OfUser::open(user, registry, filter, snap)?);
            }
        }
        owner::become_self()?;
        if source.0.is_empty() {
            let directory = &config().directory;
            bail!("nothing to tap: no program runs under `sidestep run` that meets others in {directory}");
        }
        Ok(source)
    }

    /// Gives what has come to `each`, with the time of the monotonic clock. Returns how many pieces that were.
    pub fn drain(&mut self, mut each: impl FnMut(Record, Vec<u8>, u64)) -> usize {
        let now = clock::now();
        let mut count = 0;
        for of_user in &mut self.0 {
            of_user.buffer.beat();
            for lane in &mut of_user.lanes {
                for (record, bytes) in std::iter::from_fn(|| lane.take()).take(TURN) {
                    count += 1;
                    each(record, bytes, now);
                }
            }
            if now.saturating_sub(of_user.recycled) >= RECYCLE_NS {
                of_user.recycled = now;
                of_user.lanes.iter_mut().for_each(|lane| lane.recycle(lives));
            }
        }
        count
    }

    /// Whether something lies in the buffers.
    pub fn has_more(&self) -> bool {
        self.0.iter().flat_map(|of_user| &of_user.lanes).any(Tapped::has_more)
    }

    /// What was lost so far.
    pub fn losses(&self) -> Losses {
        self.0.iter().fold(Losses::default(), |sum, of_user| {
            let losses = of_user.buffer.losses();
            Losses { pieces: sum.pieces.saturating_add(losses.pieces), bytes: sum.bytes.saturating_add(losses.bytes) }
        })
    }

    /// Tells the processes that it is over. What they have handed over stays.
    pub fn close(&mut self) {
        for of_user in &mut self.0 {
            if let Some(registry) = of_user.registry.take()
                && owner::become_user(of_user.user).is_ok()
                && registry.tap().is_some_and(|(_, nonce)| nonce == of_user.nonce)
            {
                registry.set_tap(None);
            }
        }
        let _ = owner::become_self();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.close();
    }
}

impl OfUser {
    fn open(user: u32, registry: Registry, filter: &Filter, snap: u64) -> Result<OfUser> {
        let busy = registry.tap().and_then(|(segment, nonce)| Buffer::attach(segment, nonce, user));
        if let Some(busy) = busy.filter(|buffer| buffer.is_alive() && lives(buffer.pid())) {
            bail!("another tap is on for user {user}, by process {}: end that one first", busy.pid());
        }
        let nonce = random()?;
        let Some((segment, buffer)) = Buffer::create(nonce, filter, snap) else {
            bail!("cannot make the buffer: {}", io::Error::last_os_error());
        };
        registry.set_tap(Some((segment, nonce)));
        Ok(OfUser { user, registry: Some(registry), nonce, lanes: buffer.lanes(), buffer, recycled: 0 })
    }
}

/// The user of a process that can be tapped.
fn user_of(pid: u32) -> Result<u32> {
    let user = owner::of_process(pid)?;
    if process::has_library(pid) == Some(false) {
        let name = process::program(pid).unwrap_or_default();
        bail!("process {pid} ({name}) does not run under Sidestep: there is nothing to tap, see `sidestep why {pid}`");
    }
    Ok(user)
}

fn lives(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        let of = |texts: &[&str]| filter(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let read = of(&["pid=7", "port=80", "address=::1"]).unwrap();
        assert_eq!(read, Filter { pid: Some(7), port: Some(80), address: Some("::1".parse().unwrap()) });
        for wrong in [&["pid"][..], &["pid=x"], &["port=65536"], &["address=host"], &["fd=3"], &["port=1", "port=2"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
