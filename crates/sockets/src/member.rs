//! Members of an epoll set: what the program asked for, and what its ring and its anchor say.

use std::sync::{Arc, atomic::Ordering};

use sidestep_fabric::event::SourceId;

use crate::{
    carrier::Carrier,
    kernel,
    poll::ring_events,
    stream::{READ, Stream, WRITE},
};

#[derive(Debug)]
pub struct Member {
    pub stream: &'static Stream,
    /// As the program asked; 0 after a one-shot event or a removal.
    pub events: u32,
    pub data: u64,
    /// The program has it in the set.
    pub present: bool,
    /// One-shot, and reported.
    pub spent: bool,
    pub ring: Option<Ring>,
}

#[derive(Debug)]
pub struct Ring {
    pub carrier: Arc<Carrier>,
    /// The two tripwires in the event queue.
    pub sources: [SourceId; 2],
    /// Whether it is in the list of active ones.
    pub active: bool,
    /// Looks without news.
    pub quiet: u32,
    /// What the kernel said of the anchor.
    pub anchor: u32,
    /// Edge-triggered: what has been reported.
    pub seen: Seen,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub struct Seen {
    pub written: u64,
    pub read: u64,
    pub anchor: u32,
}

/// Members by descriptor number.
#[derive(Debug, Default)]
pub struct Members(Vec<Option<Box<Member>>>);

pub const IN: u32 = libc::EPOLLIN as u32;
pub const OUT: u32 = libc::EPOLLOUT as u32;
pub const RDHUP: u32 = libc::EPOLLRDHUP as u32;
pub const HUP: u32 = libc::EPOLLHUP as u32;
pub const ERR: u32 = libc::EPOLLERR as u32;
/// What the kernel says for good.
pub const ENDS: u32 = RDHUP | HUP | ERR;
pub const EDGE: u32 = libc::EPOLLET as u32;
pub const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;

impl Members {
    /// The member with this number.
    #[inline]
    pub fn get(&self, fd: i32) -> Option<&Member> {
        self.0.get(fd as usize)?.as_deref()
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, fd: i32) -> Option<&mut Member> {
        self.0.get_mut(fd as usize)?.as_deref_mut()
    }

    /// Puts a member in; returns the one that was there.
    pub fn insert(&mut self, fd: i32, member: Member) -> Option<Box<Member>> {
        let at = fd as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at].replace(Box::new(member))
    }

    /// Takes a member out.
    pub fn remove(&mut self, fd: i32) -> Option<Box<Member>> {
        self.0.get_mut(fd as usize)?.take()
    }

    /// All of them, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Member)> {
        self.0.iter().enumerate().filter_map(|(fd, member)| Some((fd as i32, member.as_deref()?)))
    }
}

impl Member {
    /// What would be reported now.
    #[inline]
    pub fn ready(&self) -> u32 {
        let Some(ring) = &self.ring else { return 0 };
        if !self.present || self.spent {
            return 0;
        }
        let mut ready = ring_events(self.stream, &ring.carrier) as u32 & (IN | OUT);
        if ring.anchor != 0 {
            ready |= ring.anchor | IN | if ring.anchor & (HUP | ERR) != 0 { OUT } else { 0 };
        }
        let [reads, writes] = [READ, WRITE].map(|direction| self.stream.on_ring[direction].load(Ordering::Relaxed));
        if !reads || !writes || ring.carrier.is_switching() {
            ready |= self.kernel_ready();
        }
        ready &= self.events & (IN | OUT | RDHUP) | HUP | ERR;
        if self.events & EDGE == 0 {
            return ready;
        }
        let now =
            Seen { written: ring.carrier.monitor.written(), read: ring.carrier.monitor.read(), anchor: ring.anchor };
        let mut fresh = 0;
        if now.written != ring.seen.written || now.anchor != ring.seen.anchor {
            fresh |= IN | RDHUP | HUP | ERR;
        }
        if ring.seen.read == u64::MAX || now.read != ring.seen.read && !self.had_space(ring) {
            fresh |= OUT;
        }
        if ready & fresh != 0 { ready } else { 0 }
    }

    /// A direction that is not on the ring is the kernel's: it is asked.
    #[cold]
    pub fn kernel_ready(&self) -> u32 {
        let mut asked = self.events as i16 & (libc::POLLIN | libc::POLLRDHUP);
        if !self.stream.on_ring[WRITE].load(Ordering::Relaxed) {
            asked |= self.events as i16 & libc::POLLOUT;
        }
        kernel::look(self.stream.fd(), asked) as u32 & (IN | OUT | RDHUP | HUP | ERR)
    }

    pub fn had_space(&self, ring: &Ring) -> bool {
        let pushed = ring.carrier.pushed.load(Ordering::Relaxed);
        let capacity = ring.carrier.capacity.load(Ordering::Relaxed);
        pushed.saturating_sub(ring.seen.read & !(1 << 63)) <= capacity - capacity / 4
    }

    pub fn reported(&mut self) {
        self.spent = self.events & ONE_SHOT != 0;
        if let Some(ring) = &mut self.ring {
            ring.quiet = 0;
            ring.seen = Seen {
                written: ring.carrier.monitor.written(),
                read: ring.carrier.monitor.read(),
                anchor: ring.anchor,
            };
        }
    }

    /// Arms its tripwires; `false` if there is news after all.
    pub fn becomes_idle(&mut self) -> bool {
        let Some(ring) = &mut self.ring else { return true };
        ring.carrier.monitor.arrival().arm();
        if self.events & OUT != 0 {
            ring.carrier.monitor.space().arm();
        }
        if self.ready() != 0 {
            return false;
        }
        if let Some(ring) = &mut self.ring {
            ring.active = false;
            ring.quiet = 0;
        }
        true
    }
}
