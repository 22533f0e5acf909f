//! Sleeping: in one call to the kernel, on news of the fabric, on the anchor, and on whatever else a call waits for.

use std::{
    cell::RefCell,
    mem::ManuallyDrop,
    os::fd::{AsFd, AsRawFd},
    sync::Arc,
    time::Duration,
};

use sidestep_fabric::{
    Node,
    berth::{Berth, GUEST},
};
use sidestep_stream::carrier::Carrier;
use sidestep_sys::clock;

use crate::{
    kernel::{
        self, Errno, KeptList, Mask, Result,
        signal::{self, Runs},
        stack,
        thread_end::{self, Kept},
    },
    readiness::{
        idle,
        jump::{self, Note, What},
    },
    streams::Stream,
};

/// How long a thread without a berth sleeps.
const NAP_NS: u64 = 1_000_000;

/// A berth, and the anchor that lies in its epoll set.
#[derive(Clone)]
struct Bunk {
    node: Node,
    berth: Arc<Berth>,
    guest: Guest,
}

/// An anchor in the set of a berth. It is registered for one event at a time: one that nobody takes out again, because its
/// descriptor was closed here and lives on in another process, disturbs one sleep and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Guest {
    fd: i32,
    /// The serial number of its carrier; 0: there is none.
    serial: u64,
    events: u32,
    armed: bool,
}

thread_local! {
    /// The berth of this thread. Dropped by [`give_back`].
    static BERTH: ManuallyDrop<RefCell<Option<Bunk>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The thread ends.
pub fn give_back() {
    drop(BERTH.with(|own| own.take()));
}

/// The berth of this thread at a node; `None` if there are no descriptors for one.
fn bunk(node: &Node) -> Option<Bunk> {
    BERTH.with(|own| {
        let mut own = own.borrow_mut();
        if let Some(bunk) = &*own
            && bunk.node.is(node)
        {
            return Some(bunk.clone());
        }
        thread_end::note(Kept::Berth, give_back);
        let berth = Arc::new(node.berth().ok()?);
        let bunk = Bunk { node: node.clone(), berth, guest: Guest::default() };
        *own = Some(bunk.clone());
        Some(bunk)
    })
}

/// Notes who lies in the set of this thread's berth.
fn note_guest(guest: Guest) {
    BERTH.with(|own| {
        if let Some(bunk) = &mut *own.borrow_mut() {
            bunk.guest = guest;
        }
    });
}

/// In a forked child: the berth is the parent's.
pub fn after_fork() {
    std::mem::forget(BERTH.with(|own| own.take()));
}

/// A sleep on a list that has been announced. It holds nothing that would be lost if a handler left it by a jump.
#[derive(Debug)]
pub struct ListSleep {
    deadline: Option<u64>,
    /// The descriptor of this thread's berth, who lies in it, and whether there is something to sleep for.
    at: Option<(i32, Guest, Note, bool)>,
}

/// What is done last before a sleep.
#[derive(Clone, Copy)]
pub struct LastLook<'a> {
    /// Has the next news of what is waited for be news of the node, once. Another thread may dispatch that, and then nothing tells
    /// of what comes after it: so the epoch is taken before this.
    pub arm: &'a dyn Fn(),
    /// Whether there is something already.
    pub ready: &'a dyn Fn() -> bool,
}

impl LastLook<'_> {
    /// Whether to sleep in a berth.
    fn sleeps(self, node: &Node, berth: &Berth) -> bool {
        let epoch = node.epoch();
        (self.arm)();
        berth.occupy() && !(self.ready)() && node.epoch() == epoch
    }
}

/// Announces a sleep on a node's news and on a list, until there is something, a deadline, or a signal. The thread is inside the
/// engine and holds none of its locks.
pub fn announce_list(node: &Node, deadline: Option<u64>, last_look: LastLook<'_>) -> ListSleep {
    let at = bunk(node).map(|Bunk { berth, guest, .. }| {
        let note = jump::note(What::Berth);
        let sleeps = last_look.sleeps(node, &berth);
        (berth.as_fd().as_raw_fd(), guest, note, sleeps)
    });
    ListSleep { deadline, at }
}

impl ListSleep {
    /// The entry of the list that stands for the node: the first.
    pub fn first(&self) -> libc::pollfd {
        libc::pollfd { fd: self.at.map_or(-1, |(berth, ..)| berth), events: libc::POLLIN, revents: 0 }
    }

    /// Sleeps.
    pub fn sleep(self, list: KeptList, mask: Option<Mask>) -> Result<usize> {
        let Some((_, mut guest, note, sleeps)) = self.at else {
            return in_kernel(|| kernel::poll_kept(list, 1, nap(self.deadline), mask));
        };
        let mut outcome = Ok(0);
        if sleeps {
            outcome = in_kernel(|| kernel::poll_kept(list, 0, left(self.deadline), mask));
        }
        if jump::strike(note)
            && let Some(tokens) = in_berth(Berth::leave)
            && guest.disarm(&tokens)
        {
            note_guest(guest);
        }
        outcome
    }
}

/// A sleep that has been announced. It holds nothing that would be lost if a handler left it by a jump.
#[derive(Debug)]
pub struct Announced {
    fd: i32,
    events: u32,
    deadline: Option<u64>,
    at: At,
}

#[derive(Debug)]
enum At {
    /// In this thread's berth, whose descriptor this is; with the anchor, if there is something to sleep for.
    Berth { set: i32, guest: Guest, note: Note, sleeps: bool },
    /// For a while only.
    Nowhere,
}

/// Announces a sleep for one stream: on news of its carrier's node, and on `events` of its anchor.
pub fn announce(
    stream: &Stream,
    carrier: &Carrier,
    events: u32,
    deadline: Option<u64>,
    last_look: LastLook<'_>,
) -> Announced {
    let (node, fd) = (carrier.node(), stream.fd());
    let guest = Guest { fd, serial: carrier.serial, events, armed: true };
    let at = match bunk(node) {
        None => At::Nowhere,
        Some(bunk) => {
            let guest = if bunk.guest == guest || bunk.admit(guest) { guest } else { Guest::default() };
            let note = jump::note(What::Berth);
            let sleeps = last_look.sleeps(node, &bunk.berth);
            At::Berth { set: bunk.berth.as_fd().as_raw_fd(), guest, note, sleeps }
        }
    };
    Announced { fd, events, deadline, at }
}

impl Announced {
    /// Sleeps. `true`: the anchor has some of the events. One call to the kernel, since the anchor stays in the berth's set.
    pub fn sleep(self) -> (bool, Result<usize>) {
        let asked = libc::pollfd { fd: self.fd, events: self.events as i16, revents: 0 };
        let At::Berth { set, guest, note, sleeps } = self.at else {
            let mut fds = [asked];
            let outcome = in_kernel(|| kernel::poll(&mut fds, nap(self.deadline), None));
            return (fds[0].revents != 0, outcome);
        };
        if guest.serial == 0 {
            // The kernel has no room for the anchor in the set.
            let mut fds = [libc::pollfd { fd: set, events: libc::POLLIN, revents: 0 }, asked];
            let mut outcome = Ok(0);
            if sleeps {
                outcome = in_kernel(|| kernel::poll(&mut fds, left(self.deadline), None));
            }
            if jump::strike(note) {
                in_berth(Berth::leave);
            }
            return (fds[1].revents != 0, outcome);
        }
        let mut outcome = Ok(0);
        let mut found = [libc::epoll_event { events: 0, u64: 0 }; 16];
        if sleeps {
            outcome = in_kernel(|| kernel::epoll_wait(set, &mut found, left(self.deadline), None));
        }
        let mut tokens = [0; 16];
        let count = outcome.unwrap_or(0);
        tokens.iter_mut().zip(&found).for_each(|(token, event)| *token = event.u64);
        let tokens = &tokens[..count];
        let news = tokens.contains(&guest.token());
        if news {
            note_guest(Guest { armed: false, ..guest });
        }
        if jump::strike(note) {
            in_berth(|berth| berth.leave_with(tokens));
        }
        (news, outcome)
    }
}

/// A sleep in this thread's berth was left by a jump. What the kernel's call had taken out of the set by then is lost: the
/// anchor is registered anew before the next sleep, and everything else is looked at.
pub fn leave_berth() {
    in_berth(look_at_all);
    BERTH.with(|own| {
        if let Some(bunk) = &mut *own.borrow_mut() {
            bunk.guest.armed = false;
        }
    });
}

/// Leaves a berth in which something may have been taken out of the set and lost. The thread's own stack may be small.
pub fn look_at_all(berth: &Berth) {
    stack::on_own(|| {
        berth.leave();
        berth.node().progress_kernel();
    });
}

/// Does something with this thread's berth.
fn in_berth<T>(act: impl FnOnce(&Berth) -> T) -> Option<T> {
    let berth = BERTH.with(|own| own.borrow().as_ref().map(|bunk| bunk.berth.clone()));
    berth.map(|berth| act(&berth))
}

/// How long a thread without a berth sleeps: nothing would wake it.
fn nap(deadline: Option<u64>) -> Option<Duration> {
    let nap = deadline.map_or(NAP_NS, |deadline| deadline.saturating_sub(clock::now()).min(NAP_NS));
    Some(Duration::from_nanos(nap))
}

impl Bunk {
    /// Lets an anchor into the set, in place of the one before. `false`: the kernel has no room for it.
    #[cold]
    fn admit(&self, guest: Guest) -> bool {
        let set = self.berth.as_fd().as_raw_fd();
        let before = self.guest;
        let event = libc::epoll_event { events: guest.events | libc::EPOLLONESHOT as u32, u64: guest.token() };
        let same = before.fd == guest.fd && before.serial == guest.serial;
        if !same && before.serial != 0 {
            // The number may be another's by now: then this takes out nothing.
            let _ = kernel::epoll_control(set, libc::EPOLL_CTL_DEL, before.fd, None);
        }
        let changed = kernel::epoll_control(set, libc::EPOLL_CTL_MOD, guest.fd, Some(event))
            .or_else(|_| kernel::epoll_control(set, libc::EPOLL_CTL_ADD, guest.fd, Some(event)));
        note_guest(if changed.is_ok() { guest } else { Guest::default() });
        changed.is_ok()
    }
}

impl Guest {
    fn token(self) -> u64 {
        GUEST | self.serial
    }

    /// Whether its event is among those taken out.
    fn disarm(&mut self, tokens: &[u64]) -> bool {
        let taken = self.serial != 0 && tokens.contains(&self.token());
        self.armed &= !taken;
        taken
    }
}

/// Runs a call that sleeps. Handlers run at once in it; what was put off before ends it.
///
/// A signal that comes between this look and the kernel's call does not end the sleep, just as one that comes before the
/// call of any other program does not: programs that care give a mask, which the kernel sets as it goes to sleep.
pub fn in_kernel(sleep: impl FnOnce() -> Result<usize>) -> Result<usize> {
    idle::sweep_if_due();
    signal::outside(|| if signal::has_put_off() { Err(Errno(libc::EINTR)) } else { sleep() })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The next news after arming is dispatched by another thread before this one sleeps: nothing would tell of what follows.
    #[test]
    fn news_that_another_thread_has_seen_to_keeps_this_one_awake() {
        let node = Node::new().unwrap();
        let berth = node.berth().unwrap();
        let ready = || false;
        assert!(!LastLook { arm: &|| node.wake(), ready: &ready }.sleeps(&node, &berth));
        berth.leave();
        assert!(LastLook { arm: &|| (), ready: &ready }.sleeps(&node, &berth));
        berth.leave();
    }
}
