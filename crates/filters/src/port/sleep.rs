//! One sleep for all connections of a port, whatever they are.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sidestep_shm::wait::Waiter;

use crate::error::{Error, Result};
use crate::link::bell::{Bell, BellKind};
use crate::link::vi::Line;

/// What a port sleeps with.
pub(super) trait Sources {
    /// Whether one that was waited for has news. An error is news.
    fn look(&mut self) -> Result<bool>;
    /// Its sockets.
    fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>>;
    /// Its VIs.
    fn lines(&self, each: &mut dyn FnMut(&Line));
}

/// Connections of a port for which a sleep needs no memory, and one more.
const FEW: usize = 16;

/// Sleeps until one of the sources may have news, or the port is cancelled.
pub(super) fn sleep(bell: &Bell, waiter: &mut Waiter, sources: &mut impl Sources) -> Result<()> {
    bell.announce();
    let outcome = sleep_announced(bell, waiter, sources);
    bell.awake();
    if bell.is_cancelled() { Err(Error::Cancelled) } else { outcome }
}

fn sleep_announced(bell: &Bell, waiter: &mut Waiter, sources: &mut impl Sources) -> Result<()> {
    if sources.look()? || bell.is_cancelled() {
        return Ok(());
    }
    match bell.kind() {
        BellKind::Local(..) => bell.sleep_local(),
        BellKind::Events(events, _) => drop(events.wait(None)?),
        BellKind::Socket(here, _) => {
            let readable = |socket| PollFd::new(socket, PollFlags::POLLIN);
            let all = || sources.sockets().chain([here.as_fd()]).map(readable);
            let (mut few, mut many): ([PollFd<'_>; FEW], Vec<PollFd<'_>>) =
                (std::array::from_fn(|_| readable(here.as_fd())), Vec::new());
            let mut count = 0;
            few.iter_mut().zip(all()).for_each(|(place, socket)| {
                *place = socket;
                count += 1;
            });
            if count == FEW {
                many.extend(all());
            }
            let polled = if many.is_empty() { &mut few[..count] } else { &mut many[..] };
            match poll(polled, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::System { what: "poll", source: errno.into() }),
            }
        }
        BellKind::Nic(nic, sleepers) => {
            let mut sleepers = sleepers.lock().expect("no panic in a sleep");
            nic.add_sleepers(&mut sleepers);
            let slept = nic.node().wait_for(waiter, None, &mut || {
                // All VIs, not only those of this port: a peer that asks another one for space is answered by whoever looks,
                // and its filter may be what this one waits for.
                nic.arm();
                nic.catch_up();
                let mut news = bell.is_cancelled();
                sources.lines(&mut |line| news |= line.has_news());
                let found = sources.look();
                (news || !matches!(found, Ok(false))).then_some(())
            });
            sleepers.clear();
            slept?;
        }
    }
    Ok(())
}
