//! Sleeping: in one call to the kernel, on news of the fabric, on the anchor, and on whatever else a call waits for.

use std::{
    cell::RefCell,
    os::fd::{AsFd, AsRawFd},
    sync::Arc,
    time::Duration,
};

use sidestep_fabric::{Berth, Node};
use sidestep_shm::clock;

use crate::{
    kernel::{self, Errno, Mask},
    signal::{self, Inside, Runs},
};

/// The berth of a thread; dropped inside the engine, since it closes descriptors of ours.
#[derive(Default)]
struct Own(Option<(Node, Arc<Berth>)>);

thread_local! {
    static BERTH: RefCell<Own> = const { RefCell::new(Own(None)) };
}

impl Drop for Own {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        self.0 = None;
    }
}

/// The berth of this thread at a node; `None` if there are no descriptors for one.
pub fn berth(node: &Node) -> Option<Arc<Berth>> {
    BERTH
        .try_with(|own| {
            let mut own = own.borrow_mut();
            if let Some((of, berth)) = &own.0
                && of.is(node)
            {
                return Some(berth.clone());
            }
            let berth = Arc::new(node.berth().ok()?);
            own.0 = Some((node.clone(), berth.clone()));
            Some(berth)
        })
        .ok()
        .flatten()
}

/// In a forked child: the berth is the parent's.
pub fn after_fork() {
    let _ = BERTH.try_with(|own| std::mem::forget(own.take().0.take()));
}

/// Sleeps on a node's news and on `fds`, until `ready` (which is looked at after announcing the sleep), a deadline, or a
/// signal. The first entry of `fds` is used for the node. The thread is inside the engine and holds none of its locks.
pub fn sleep(
    node: &Node,
    fds: &mut [libc::pollfd],
    deadline: Option<u64>,
    mask: Option<Mask>,
    ready: &dyn Fn() -> bool,
) -> kernel::Result<usize> {
    let Some(berth) = berth(node) else {
        // Without a berth nothing would wake this thread: look again in a while.
        let nap = deadline.map_or(1_000_000, |deadline| deadline.saturating_sub(clock::now()).min(1_000_000));
        return kernel::poll(&mut fds[1..], Some(Duration::from_nanos(nap)), mask);
    };
    let epoch = node.epoch();
    let mut outcome = Ok(0);
    if berth.occupy() && !ready() && node.epoch() == epoch {
        fds[0] = libc::pollfd { fd: berth.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        outcome = sleep_unmasked(mask, |mask| kernel::poll(fds, left(deadline), Some(mask)));
    } else {
        fds.iter_mut().for_each(|entry| entry.revents = 0);
    }
    berth.leave();
    outcome
}

/// Runs a call that sleeps with a mask, the thread's own if there is none, such that no handler runs between the last
/// look at what was put off and the sleep.
pub fn sleep_unmasked(mask: Option<Mask>, sleep: impl FnOnce(Mask) -> kernel::Result<usize>) -> kernel::Result<usize> {
    let old = kernel::set_mask(Mask::ALL);
    let outcome =
        if signal::has_put_off() { Err(Errno(libc::EINTR)) } else { signal::outside(|| sleep(mask.unwrap_or(old))) };
    kernel::set_mask(old);
    outcome
}

/// The time until a deadline, for the kernel.
pub fn left(deadline: Option<u64>) -> Option<Duration> {
    deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now())))
}

/// Whether a call that began at `before` must end with EINTR. A call with a time-out is ended by every handler.
pub fn is_interrupted(before: Runs, timed: bool) -> bool {
    let now = signal::runs();
    now.breaking != before.breaking || timed && now.all != before.all
}

/// A sleep was ended by a signal: EINTR if a handler of the program's ran that ends the call, else [`Errno::RESTART`].
pub fn why(before: Runs, timed: bool) -> Errno {
    if is_interrupted(before, timed) { Errno(libc::EINTR) } else { Errno::RESTART }
}
