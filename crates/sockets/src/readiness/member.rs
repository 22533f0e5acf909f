//! Members of an epoll set: what the program asked for, and what its ring and its anchor say.

use std::sync::{Arc, atomic::Ordering};

use sidestep_fabric::event::SourceId;
use sidestep_stream::carrier::{Carrier, Watch};

use crate::{
    kernel,
    readiness::{look_again, ring_events},
    streams::{READ, Stream, WRITE, lock},
};

#[derive(Debug)]
pub struct Member {
    pub stream: &'static Stream,
    /// The number it was added under.
    pub fd: i32,
    /// As the program asked; 0 after a one-shot event or a removal.
    pub events: u32,
    pub data: u64,
    /// The program has it in the set.
    pub present: bool,
    /// One-shot, and reported.
    pub spent: bool,
    /// Edge-triggered, without a ring: how far the peer had written when bytes that lie here were reported.
    pub told: Option<u64>,
    /// Edge-triggered, and about to get a ring: what it has been told, and the number of the carrier.
    pub told_before: Option<(u64, Seen)>,
    pub ring: Option<Ring>,
}

#[derive(Debug)]
pub struct Ring {
    pub carrier: Arc<Carrier>,
    /// The two tripwires in the event queue, or the watch on a link.
    pub sources: Vec<SourceId>,
    /// Whether it is in the list of active ones.
    pub active: bool,
    /// Looks without news.
    pub quiet: u32,
    /// The last collection that has reported it.
    pub pass: u32,
    /// What the kernel said of the anchor.
    pub anchor: u32,
    /// Edge-triggered: what has been reported.
    pub seen: Seen,
}

/// How far things had come when a member was last reported. What has gone on since is news for an edge-triggered one.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub struct Seen {
    /// The peer's writing of the ring; `u64::MAX`: whatever is there is new.
    pub written: u64,
    /// The peer's reading of the ring; `u64::MAX`: as above.
    pub read: u64,
    /// What has come over TCP.
    pub arrived: u64,
    /// How often TCP was full.
    pub fulls: u64,
    /// What the program did that shows.
    pub stirs: u64,
    /// What the kernel said of the anchor.
    pub anchor: u32,
    /// The peer's end has come, by the kernel's word.
    pub ended: bool,
}

impl Seen {
    /// Whatever is there is new.
    pub const NOTHING: Seen =
        Seen { written: u64::MAX, read: u64::MAX, arrived: 0, fulls: 0, stirs: 0, anchor: 0, ended: false };
}

/// The members of a set. A member has an id for as long as it is in the set; a descriptor number leads to one. Interest
/// belongs to the open file: a member whose number was closed stays while another number keeps the file.
#[derive(Debug, Default)]
pub struct Members {
    all: Vec<Option<Box<Member>>>,
    free: Vec<u32>,
    /// The memory of former members, for the next ones.
    // Boxes, which go where those of members in use are.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Member>>,
    /// Id plus 1, by number.
    by_number: Vec<u32>,
}

/// Ids of members: mostly one, for which there is no list.
#[derive(Debug)]
pub enum Ids {
    One(Option<u32>),
    Several(std::vec::IntoIter<u32>),
}

impl Iterator for Ids {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match self {
            Ids::One(id) => id.take(),
            Ids::Several(ids) => ids.next(),
        }
    }
}

/// As many as come and go between two waits of a busy program.
const MOST_SPARE: usize = 32;

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
    /// The member with this id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&Member> {
        self.all.get(id as usize)?.as_deref()
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Member> {
        self.all.get_mut(id as usize)?.as_deref_mut()
    }

    /// The id behind a descriptor number.
    #[inline]
    pub fn id(&self, fd: i32) -> Option<u32> {
        self.by_number.get(fd as usize)?.checked_sub(1)
    }

    /// Puts a member in under a number that has none; returns its id.
    pub fn insert(&mut self, fd: i32, member: Member) -> u32 {
        let id = self.free.pop().unwrap_or(self.all.len() as u32);
        if id as usize == self.all.len() {
            self.all.push(None);
        }
        self.all[id as usize] = Some(match self.spare.pop() {
            Some(mut memory) => {
                *memory = member;
                memory
            }
            None => Box::new(member),
        });
        self.set_number(fd, id);
        id
    }

    /// Lets a number lead to a member.
    pub fn set_number(&mut self, fd: i32, id: u32) {
        let at = fd as usize;
        if self.by_number.len() <= at {
            self.by_number.resize(at + 1, 0);
        }
        self.by_number[at] = id + 1;
    }

    /// A number leads to its member no more.
    pub fn forget_number(&mut self, fd: i32) {
        if let Some(entry) = self.by_number.get_mut(fd as usize) {
            *entry = 0;
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, id: u32) -> Option<Box<Member>> {
        let member = self.all.get_mut(id as usize)?.take()?;
        self.free.push(id);
        if self.id(member.fd) == Some(id) {
            self.forget_number(member.fd);
        }
        Some(member)
    }

    /// Keeps the memory of a member that was taken out, unless there is enough.
    pub fn keep_memory(&mut self, mut member: Box<Member>) {
        if self.spare.len() < MOST_SPARE {
            member.ring = None;
            self.spare.push(member);
        }
    }

    /// The ids of a stream's members. A stream to which one number has led has one, under that number: no look at thousands of
    /// others for each of thousands.
    pub fn of(&self, stream: &Stream) -> Ids {
        let own = |id: &u32| self.get(*id).is_some_and(|member| member.stream.index == stream.index);
        match self.id(stream.fd()).filter(own).filter(|_| stream.had_one_number()) {
            Some(id) => Ids::One(Some(id)),
            None => Ids::Several(self.iter().map(|(id, _)| id).filter(own).collect::<Vec<_>>().into_iter()),
        }
    }

    /// All of them, with their ids, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Member)> {
        self.all.iter_mut().enumerate().filter_map(|(id, member)| Some((id as u32, member.as_deref_mut()?)))
    }

    /// All of them, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Member)> {
        self.all.iter().enumerate().filter_map(|(id, member)| Some((id as u32, member.as_deref()?)))
    }
}

impl Member {
    /// One that the program adds to a set.
    pub fn new(stream: &'static Stream, fd: i32, events: u32, data: u64) -> Member {
        Member { stream, fd, events, data, present: true, spent: false, told: None, told_before: None, ring: None }
    }

    /// The program asks for something else; whatever there is of that is new.
    pub fn change(&mut self, event: libc::epoll_event) {
        (self.events, self.data, self.present) = (event.events, event.u64, true);
        (self.spent, self.told, self.told_before) = (false, None, None);
        if let Some(ring) = &mut self.ring {
            ring.seen = Seen::NOTHING;
        }
    }

    /// What would be reported now.
    #[inline]
    pub fn ready(&self) -> u32 {
        let Some(ring) = &self.ring else { return 0 };
        if !self.present || self.spent {
            return 0;
        }
        let mut ready = ring_events(self.stream, &ring.carrier) as u32 & (IN | OUT);
        if ring.anchor != 0 || ring.carrier.has_ended() || self.stream.ends.is_shut.load(Ordering::Relaxed) {
            // Asked anew: an error that was told is no more.
            let events = kernel::look(self.stream.fd(), libc::POLLRDHUP);
            self.stream.tells(events);
            ready |= anchor_ready(events as u32 & ENDS);
        }
        let on_tcp = self.uses_tcp(&ring.carrier);
        if on_tcp {
            ready |= self.kernel_ready();
        }
        ready &= self.events & (IN | OUT | RDHUP) | HUP | ERR;
        if self.events & EDGE == 0 || ready == 0 {
            return ready;
        }
        let (now, seen) = (self.now(&ring.carrier, ring.anchor, on_tcp), ring.seen);
        // As in the kernel: what has happened makes the member be looked at, and all that is ready then is told, also if
        // what came was read meanwhile.
        let arrived = now.written != seen.written || now.arrived > seen.arrived;
        let space = seen.read == u64::MAX || now.read != seen.read && !self.had_space(ring) || now.fulls != seen.fulls;
        let fresh = arrived && self.events & IN != 0
            || (now.anchor, now.ended) != (seen.anchor, seen.ended)
            || now.stirs != seen.stirs
            || space && ready & OUT != 0;
        if fresh { ready } else { 0 }
    }

    /// Whether a direction is on TCP, or about to be.
    fn uses_tcp(&self, carrier: &Carrier) -> bool {
        let on_ring = |direction: usize| self.stream.on_ring(direction);
        !on_ring(READ) || !on_ring(WRITE) || carrier.may_leave()
    }

    /// How far things have come. What another thread reads meanwhile is left out, not counted twice: then it is told once more.
    fn now(&self, carrier: &Carrier, anchor: u32, on_tcp: bool) -> Seen {
        let taken = self.stream.over_tcp(READ) + carrier.kept.load(Ordering::Relaxed);
        let unread = if on_tcp { kernel::ask(self.stream.fd(), libc::FIONREAD).unwrap_or(0) as u64 } else { 0 };
        Seen {
            written: carrier.watch().written(),
            read: carrier.watch().read(),
            arrived: taken + unread,
            fulls: self.stream.edges.fulls.load(Ordering::Relaxed),
            stirs: self.stream.edges.stirs.load(Ordering::Relaxed),
            anchor,
            // A reading direction that the program has shut looks the same at the anchor before the peer's end and after.
            ended: anchor != 0 && kernel::has_peer_ended(self.stream.fd()),
        }
    }

    /// What an edge-triggered member that gets a ring has been told, if that is known: all that TCP has brought, unless `has_news`.
    /// Bytes that are counted here are news for whoever asks afterwards.
    pub fn told_so_far(&self, carrier: &Carrier, has_news: impl FnOnce() -> bool) -> Option<Seen> {
        if self.events & EDGE == 0 || !self.uses_tcp(carrier) {
            return None;
        }
        let now = self.now(carrier, 0, true);
        let own = kernel::look(self.stream.fd(), libc::POLLOUT | libc::POLLRDHUP);
        let from_elsewhere = || ring_events(self.stream, carrier) as u32 & IN != 0;
        if has_news() || from_elsewhere() || own as u32 & ENDS != 0 {
            return None;
        }
        // Space that is not there yet is told when it is.
        Some(Seen { read: if own & libc::POLLOUT != 0 { now.read } else { u64::MAX }, ..now })
    }

    /// A direction that is not on the ring is the kernel's: it is asked.
    #[cold]
    pub fn kernel_ready(&self) -> u32 {
        let mut asked = self.events as i16 & (libc::POLLIN | libc::POLLRDHUP);
        if !self.stream.on_ring(WRITE) {
            asked |= self.events as i16 & libc::POLLOUT;
        }
        let ready = kernel::look(self.stream.fd(), asked);
        if asked & !ready & libc::POLLOUT != 0 {
            self.stream.is_full();
        }
        ready as u32 & (IN | OUT | RDHUP | HUP | ERR)
    }

    /// Whether bytes have come by way of its ring.
    pub fn has_carried_bytes(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring_events(self.stream, &ring.carrier) as u32 & IN != 0)
    }

    pub fn had_space(&self, ring: &Ring) -> bool {
        let pushed = ring.carrier.pushed.load(Ordering::Relaxed);
        let capacity = ring.carrier.capacity.load(Ordering::Relaxed);
        pushed.saturating_sub(ring.seen.read & !(1 << 63)) <= capacity - capacity / 4
    }

    /// These events are about to be reported; returns which.
    pub fn report(&mut self, ready: u32) -> u32 {
        let ready = if self.events & EDGE != 0 { self.note_edge(ready) } else { ready };
        self.spent = self.events & ONE_SHOT != 0;
        if let Some(ring) = &mut self.ring {
            ring.quiet = 0;
        }
        ready
    }

    /// How far things have come is noted before they are looked at once more: what comes in between is told now, or is
    /// news for the next look.
    fn note_edge(&mut self, ready: u32) -> u32 {
        if let Some(ring) = &mut self.ring
            && self.stream.ends.is_shut.load(Ordering::Relaxed)
        {
            // The kernel's own word for what the program did comes later, and is no news then.
            ring.anchor |= kernel::look(self.stream.fd(), libc::POLLRDHUP) as u32 & ENDS;
        }
        let now = |ring: &Ring| self.now(&ring.carrier, ring.anchor, self.uses_tcp(&ring.carrier));
        let Some(now) = self.ring.as_ref().map(now) else { return ready };
        let ready = ready | self.ready();
        if let Some(ring) = &mut self.ring {
            // Space on TCP is news until it is told.
            let fulls = if ready & OUT != 0 { now.fulls } else { ring.seen.fulls };
            ring.seen = Seen { fulls, ..now };
        }
        ready
    }

    /// When a wait must look again at the latest, if it must ([`look_again`]).
    pub fn look_again(&mut self) -> Option<u64> {
        let ring = self.ring.as_mut().filter(|_| self.present && !self.spent)?;
        let on_ring = || self.stream.on_ring(WRITE);
        let before = on_ring();
        let until = look_again(self.stream, &ring.carrier, self.events as i16);
        if before && !on_ring() {
            // The ring has given way: there is space, and that is new.
            ring.seen.read = u64::MAX;
        }
        until
    }

    /// Whether its peer asks for something that this side has not followed.
    pub fn must_follow(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| self.stream.must_follow(&ring.carrier))
    }

    /// Arms its tripwires; `false` if there is news after all. Links are looked at, unless there are `many` members.
    pub fn becomes_idle(&mut self, many: bool) -> bool {
        let shared = lock(&self.stream.sets).len() > 1;
        let Some(ring) = &mut self.ring else { return true };
        ring.carrier.watch().arm_arrival();
        if self.events & OUT != 0 {
            ring.carrier.watch().arm_space();
        }
        if !ring.carrier.watch().may_rest(many) {
            return false;
        }
        // What arrived before it was armed may be in the hands of another thread, which tells nobody.
        ring.carrier.watch().settle();
        // The tripwires of a stream in several sets report to one of them only.
        if shared || self.ready() != 0 || self.must_follow() {
            return false;
        }
        if let Some(ring) = &mut self.ring {
            ring.active = false;
            ring.quiet = 0;
        }
        true
    }
}

/// What the end of a stream is to a program that waits.
fn anchor_ready(anchor: u32) -> u32 {
    match anchor {
        0 => 0,
        _ => anchor | IN | if anchor & (HUP | ERR) != 0 { OUT } else { 0 },
    }
}

#[cfg(test)]
mod tests;
