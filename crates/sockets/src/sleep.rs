//! Sleeping: in one call to the kernel, on news of the fabric, on the anchor, and on whatever else a call waits for.

use std::{
    cell::RefCell,
    os::fd::{AsFd, AsRawFd},
    sync::Arc,
    time::Duration,
};

use sidestep_fabric::{
    Node,
    berth::{Berth, GUEST},
};
use sidestep_shm::clock;

use crate::{
    carrier::Carrier,
    kernel::{self, Errno, Mask, Result},
    signal::{self, Inside, Runs},
    stream::Stream,
};

/// How long a thread without a berth sleeps.
const NAP_NS: u64 = 1_000_000;

/// The berth of a thread; dropped inside the engine, since it closes descriptors of ours.
#[derive(Default)]
struct Own(Option<Bunk>);

/// A berth, and the anchor that lies in its epoll set.
#[derive(Clone)]
struct Bunk {
    node: Node,
    berth: Arc<Berth>,
    guest: Guest,
}

/// An anchor in the set of a berth. It is registered for one event at a time: one that nobody takes out again, because its
/// descriptor was closed here and lives on in another process, disturbs one sleep and no more.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Guest {
    fd: i32,
    /// The serial number of its carrier; 0: there is none.
    serial: u64,
    events: u32,
    armed: bool,
}

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
fn bunk(node: &Node) -> Option<Bunk> {
    BERTH
        .try_with(|own| {
            let mut own = own.borrow_mut();
            if let Some(bunk) = &own.0
                && bunk.node.is(node)
            {
                return Some(bunk.clone());
            }
            let berth = Arc::new(node.berth().ok()?);
            let bunk = Bunk { node: node.clone(), berth, guest: Guest::default() };
            own.0 = Some(bunk.clone());
            Some(bunk)
        })
        .ok()
        .flatten()
}

/// Notes who lies in the set of this thread's berth.
fn note_guest(guest: Guest) {
    let _ = BERTH.try_with(|own| {
        if let Some(bunk) = &mut own.borrow_mut().0 {
            bunk.guest = guest;
        }
    });
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
) -> Result<usize> {
    let Some(Bunk { berth, mut guest, .. }) = bunk(node) else {
        // Without a berth nothing would wake this thread: look again in a while.
        let nap = deadline.map_or(NAP_NS, |deadline| deadline.saturating_sub(clock::now()).min(NAP_NS));
        return kernel::poll(&mut fds[1..], Some(Duration::from_nanos(nap)), mask);
    };
    let epoch = node.epoch();
    let mut outcome = Ok(0);
    if berth.occupy() && !ready() && node.epoch() == epoch {
        fds[0] = libc::pollfd { fd: berth.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        outcome = in_kernel(|| kernel::poll(fds, left(deadline), mask));
    } else {
        fds.iter_mut().for_each(|entry| entry.revents = 0);
    }
    if guest.disarm(&berth.leave()) {
        note_guest(guest);
    }
    outcome
}

/// The same for one stream: on news of its carrier's node, and on `events` of its anchor. `true`: the anchor has some.
/// One call to the kernel, since the anchor stays in the berth's set.
pub fn sleep_on(
    stream: &Stream,
    carrier: &Carrier,
    events: u32,
    deadline: Option<u64>,
    ready: &dyn Fn() -> bool,
) -> (bool, Result<usize>) {
    let node = carrier.node();
    let wanted = Guest { fd: stream.fd(), serial: carrier.serial, events, armed: true };
    let bunk = bunk(node).filter(|bunk| bunk.guest == wanted || bunk.admit(wanted));
    let Some(Bunk { berth, .. }) = bunk else {
        let asked = libc::pollfd { fd: stream.fd(), events: events as i16, revents: 0 };
        let mut fds = [asked, asked];
        let outcome = sleep(node, &mut fds, deadline, None, ready);
        return (fds[1].revents != 0, outcome);
    };
    let epoch = node.epoch();
    let mut outcome = Ok(0);
    let mut found = [libc::epoll_event { events: 0, u64: 0 }; 16];
    if berth.occupy() && !ready() && node.epoch() == epoch {
        outcome = in_kernel(|| kernel::epoll_wait(berth.as_fd().as_raw_fd(), &mut found, left(deadline), None));
    }
    let mut tokens = [0; 16];
    let count = outcome.unwrap_or(0);
    tokens.iter_mut().zip(&found).for_each(|(token, event)| *token = event.u64);
    let tokens = &tokens[..count];
    let news = tokens.contains(&wanted.token());
    if news {
        note_guest(Guest { armed: false, ..wanted });
    }
    berth.leave_with(tokens);
    (news, outcome)
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
