//! `poll`, `select` and `epoll`.

use std::time::Duration;

use crate::{
    descriptors::table,
    kernel::{
        self, Mask, Result,
        signal::{self, Inside},
    },
    promotion::engine,
    readiness::poll::{self, Others},
};

use super::{is_set, owns};

/// Whether a list of descriptors to poll has any of ours.
#[inline]
pub fn any_owned(fds: &[libc::pollfd]) -> bool {
    fds.iter().any(|entry| owns(entry.fd) || is_set(entry.fd))
}

/// `poll`, `ppoll`. A time-out of `None` is for ever.
pub fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>, mask: Option<&libc::sigset_t>) -> Result<usize> {
    let mask = mask.map(Mask::from);
    let _masked = mask.map(Masked::new);
    poll::poll(fds, timeout, mask, signal::runs(), Others::Sometimes)
}

/// `select` and `pselect`, as a list.
pub fn select(fds: &mut [libc::pollfd], timeout: Option<Duration>, mask: Option<&libc::sigset_t>) -> Result<usize> {
    let mask = mask.map(Mask::from);
    let _masked = mask.map(Masked::new);
    poll::poll(fds, timeout, mask, signal::runs(), Others::Always)
}

/// A wait with a mask of its own: what it blocks is blocked from the beginning, also while the call only looks, and what was
/// handled before ends no call. What it lets in comes in the sleep.
struct Masked(Mask);

impl Masked {
    fn new(mask: Mask) -> Masked {
        Masked(kernel::block(mask))
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        kernel::set_mask(self.0);
    }
}

/// `epoll_create` has made this set.
pub fn set_created(fd: i32) {
    let _inside = Inside::enter();
    let _change = table::change();
    if let Some(set) = table::new_set() {
        set.begin(fd);
        if !table::put_set(fd, set) {
            table::recycle_set(set);
        }
    }
}

/// `epoll_ctl` on a set of ours, whatever `fd` is.
pub fn set_control(set: i32, op: i32, fd: i32, event: Option<libc::epoll_event>) -> Result<()> {
    match table::set(set) {
        Some(set) => {
            let _inside = Inside::enter();
            set.control(op, fd, event)
        }
        None => kernel::epoll_control(set, op, fd, event),
    }
}

/// `epoll_wait`, `epoll_pwait`, `epoll_pwait2` on a set of ours.
pub fn set_wait(
    set: i32,
    events: &mut [libc::epoll_event],
    timeout: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> Result<usize> {
    match table::set(set) {
        Some(set) => {
            let mask = mask.map(Mask::from);
            let _masked = mask.map(Masked::new);
            set.wait(events, timeout, mask, signal::runs())
        }
        None => kernel::epoll_wait(set, events, timeout, mask.map(Mask::from)),
    }
}

/// `pthread_cancel` has been called: sleeping threads end their calls with [`Errno::RESTART`](crate::Errno::RESTART).
pub fn cancelled() {
    signal::cancelled();
    let _inside = Inside::enter();
    if let Some(engine) = engine::running() {
        engine.node.wake();
    }
}
