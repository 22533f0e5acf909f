//! What a set knows of its members, and how it finds those with news.

use std::sync::Arc;

use sidestep_fabric::{Berth, EventQueue, Node, event::SourceId};
use sidestep_shm::wait::{Patience, Waiter};
use sidestep_stream::carrier::{Carrier, SharedNews, Watch};

use crate::{
    kernel::{self, Errno, Result},
    readiness::member::{EDGE, ENDS, IN, Member, Members, ONE_SHOT, OUT, RDHUP, Ring, Seen},
    streams::Stage,
};

use super::{
    order::Order,
    token::{berth_mark, token},
};

/// The members of a set, and what is known of each. Behind the set's lock.
#[derive(Debug, Default)]
pub struct State {
    pub members: Members,
    /// Promoted members that are looked at.
    pub active: Vec<u32>,
    /// How many members are promoted.
    pub carried: usize,
    pub berth: Option<Arc<Berth>>,
    /// The node of the berth.
    pub node: Option<Node>,
    news: Option<EventQueue>,
    pub waiter: Waiter,
    /// When the kernel was last asked, in ticks of the processor.
    pub looked: u64,
    /// Where the next look begins, so that nobody is left out.
    pub(super) next: usize,
    /// Members for which a sleep must end in time.
    watched: Vec<u32>,
    /// Where news of members comes in that have no tripwires of their own.
    pub shared: Option<SharedNews>,
    pub order: Order,
    /// A wait has told of something in the berth that only the node's look at the kernel sees to.
    pub kernel_told: bool,
    /// Members with rings that the kernel has told of.
    pub mentioned: Vec<u32>,
    /// Some member was left to the kernel for a fork, and its stream had a carrier still.
    pub lapsed: bool,
}

const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// Looks without news after which a member becomes idle, if there are many.
pub(super) const QUIET: u32 = 64;
/// So many members are looked at without further ado.
pub const FEW: usize = 16;

impl State {
    /// Of a set without members.
    pub fn new(patience: Patience) -> State {
        State { waiter: Waiter::with(patience), ..State::default() }
    }

    /// Before a stream of this set is opened: lets the fabric wake who waits here. Once a berth is of another user's time, and
    /// no member needs it, it gives way.
    pub fn give_berth(&mut self, set: i32, node: &Node) {
        if self.node.as_ref().is_some_and(|own| !own.is(node)) {
            self.drop_berth();
        }
        if self.berth.is_some() {
            return;
        }
        let Ok(copy) = kernel::copy_high(set) else { return };
        let Ok(berth) = node.berth_within(copy, berth_mark()) else { return };
        self.berth = Some(Arc::new(berth));
        self.node = Some(node.clone());
        self.news = Some(EventQueue::new(node));
    }

    /// Whether a carrier of this node can be waited for: the berth hears one node, as long as any member needs it.
    pub fn serves(&self, node: &Node) -> bool {
        self.carried == 0 || self.node.as_ref().is_some_and(|own| own.is(node))
    }

    /// Gives the berth back, if no member needs it.
    pub fn drop_berth(&mut self) {
        if self.carried == 0 && self.berth.take().is_some() {
            (self.node, self.news, self.shared) = (None, None, None);
        }
    }

    /// A member gets its ring.
    pub fn carry(&mut self, set: i32, id: u32) {
        let Some(carrier) = self.members.get(id).and_then(|member| member.stream.carrier()) else { return };
        if self.node.as_ref().is_some_and(|node| !node.is(carrier.node())) {
            // Of another user's time.
            self.drop_berth();
        }
        self.give_berth(set, carrier.node());
        let (Some(news), Some(member)) = (&self.news, self.members.get_mut(id)) else { return };
        if member.ring.as_ref().is_some_and(|ring| ring.carrier.serial == carrier.serial) {
            return;
        }
        if let Some(shared) = carrier.watch().shared_news() {
            self.shared = Some(shared);
        }
        if member.ring.is_some() {
            // Another one, in place of one that was given up.
            let told = member.told_so_far(&carrier, || member.ready() != 0).unwrap_or(Seen::NOTHING);
            if let Some(ring) = &mut member.ring {
                detach(news, ring);
                (ring.sources, ring.seen) = (attach(news, &carrier, id), told);
                ring.carrier = carrier;
            }
            return self.activate(id);
        }
        let fd = member.fd;
        let event = libc::epoll_event { events: IN | OUT | RDHUP | EDGE, u64: token(id) };
        if change(set, fd, event).is_err() {
            return;
        }
        let sources = attach(news, &carrier, id);
        let anchor = kernel::look(fd, libc::POLLRDHUP) as u32 & ENDS;
        // For an edge-triggered member everything is new that it may not have been told.
        let told = member.told_before.take().filter(|(serial, _)| *serial == carrier.serial);
        let seen = told.map_or(Seen::NOTHING, |(_, seen)| seen);
        member.ring = Some(Ring { carrier, sources, active: true, quiet: 0, pass: 0, anchor, seen });
        self.active.push(id);
        self.carried += 1;
    }

    /// Members whose streams have kept their carriers through a fork have them again: the peer may write to one at any time.
    #[cold]
    pub fn carry_again(&mut self, set: i32) {
        self.lapsed = false;
        let kept = |member: &Member| {
            member.ring.is_none() && member.events & ONE_SHOT == 0 && member.stream.stage() == Stage::Carried
        };
        let ids: Vec<u32> = self.members.iter().filter(|(_, member)| kept(member)).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.carry(set, id));
    }

    /// A member is the kernel's again, as the program registered it.
    pub fn uncarry(&mut self, set: i32, id: u32) {
        let numbered = self.members.get(id).is_some_and(|member| self.members.id(member.fd) == Some(id));
        let Some(member) = self.members.get_mut(id).filter(|_| numbered) else { return };
        let Some(ring) = member.ring.take() else { return };
        let event = match member.spent {
            // Silent until the program arms it anew. The kernel may tell of an end all the same, which is then dropped.
            true => libc::epoll_event { events: ONE_SHOT, u64: token(id) },
            false => libc::epoll_event { events: member.events, u64: member.data },
        };
        let _ = match member.present {
            true => change(set, member.fd, event),
            false => kernel::epoll_control(set, libc::EPOLL_CTL_DEL, member.fd, None),
        };
        self.drop_ring(id, &ring);
    }

    pub fn drop_ring(&mut self, id: u32, ring: &Ring) {
        self.carried -= 1;
        self.active.retain(|other| *other != id);
        if let Some(news) = &self.news {
            detach(news, ring);
        }
    }

    pub fn remove(&mut self, id: u32) {
        let Some(member) = self.members.remove(id) else { return };
        if let Some(ring) = &member.ring {
            self.drop_ring(id, ring);
        }
        self.members.keep_memory(member);
    }

    pub fn control_carried(&mut self, op: i32, id: u32, event: Option<libc::epoll_event>) -> Result<()> {
        let Some(member) = self.members.get_mut(id) else { return Err(Errno(libc::ENOENT)) };
        match (op, event) {
            (libc::EPOLL_CTL_ADD, Some(_)) if member.present => return Err(Errno(libc::EEXIST)),
            (libc::EPOLL_CTL_ADD, Some(event)) => member.change(event),
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, _) if !member.present => return Err(Errno(libc::ENOENT)),
            (libc::EPOLL_CTL_MOD, Some(event)) if (member.events | event.events) & EXCLUSIVE != 0 => {
                return Err(Errno(libc::EINVAL));
            }
            (libc::EPOLL_CTL_MOD, Some(event)) => member.change(event),
            (libc::EPOLL_CTL_DEL, _) => {
                (member.events, member.present) = (0, false);
                return Ok(());
            }
            (_, None) => return Err(Errno(libc::EFAULT)),
            _ => return Err(Errno(libc::EINVAL)),
        }
        self.activate(id);
        Ok(())
    }

    pub fn activate(&mut self, id: u32) {
        if let Some(ring) = self.members.get_mut(id).and_then(|member| member.ring.as_mut()) {
            ring.quiet = 0;
            if !ring.active {
                ring.active = true;
                self.active.push(id);
            }
        }
    }

    /// What the kernel has told of members with rings may have been lost.
    #[cold]
    pub fn look_at_all(&mut self) {
        let ids: Vec<u32> = self.members.iter().filter(|(_, member)| member.ring.is_some()).map(|(id, _)| id).collect();
        for id in ids {
            if let Some(member) = self.members.get_mut(id)
                && let Some(ring) = &mut member.ring
            {
                ring.anchor |= kernel::look(member.fd, libc::POLLRDHUP) as u32 & ENDS;
            }
            self.activate(id);
        }
    }

    /// Takes what the fabric has for this set.
    pub fn progress(&mut self) {
        if let Some(shared) = self.shared.as_ref().filter(|_| self.carried > self.active.len()) {
            shared.take_arrivals();
        }
        while let Some(event) = self.news.as_ref().and_then(|news| news.poll()) {
            self.activate((event.token / 2) as u32);
        }
    }

    /// Whether some active member has an event for the program: the last look before a sleep.
    pub fn has_news(&self) -> bool {
        if let Some(shared) = self.shared.as_ref().filter(|_| self.carried > self.active.len()) {
            // What this takes for members that are not looked at raises the epoch.
            shared.catch_up();
        }
        let settled = |member: &Member| {
            member.ring.iter().for_each(|ring| ring.carrier.watch().settle());
            member.ready() != 0 || member.must_follow()
        };
        self.active.iter().any(|id| self.members.get(*id).is_some_and(settled))
    }

    /// Many members: those without news for long become idle.
    #[cold]
    pub fn arm_quiet(&mut self) {
        let State { members, active, .. } = self;
        active.retain(|id| {
            let Some(member) = members.get_mut(*id) else { return false };
            let stays = |ring: &Ring| ring.quiet <= QUIET;
            member.ring.as_ref().is_none_or(stays) || !member.becomes_idle(true)
        });
    }

    /// Before a sleep: everyone becomes idle who has no news. Returns when the sleep must end at the latest.
    pub fn arm(&mut self) -> Option<u64> {
        let State { members, active, watched, carried, shared, .. } = self;
        let many = *carried > FEW;
        watched.extend(active.iter());
        active.retain(|id| members.get_mut(*id).is_some_and(|member| !member.becomes_idle(many)));
        if let Some(shared) = shared.as_ref().filter(|_| many) {
            shared.arm();
        }
        self.look_again()
    }

    /// Looks at members that no tripwire tells of.
    fn look_again(&mut self) -> Option<u64> {
        let mut watched = std::mem::take(&mut self.watched);
        watched.sort_unstable();
        watched.dedup();
        let mut least = None;
        watched.retain(|id| {
            let Some(member) = self.members.get_mut(*id) else { return false };
            let until = member.look_again();
            // Nothing tells of one that is to be looked at again, or that has given way to TCP, where there was space before: the
            // look before the next sleep finds what has come.
            if until.is_some() || member.ready() != 0 {
                self.activate(*id);
            }
            least = least.into_iter().chain(until).min();
            until.is_some()
        });
        self.watched = watched;
        least
    }

    /// Full rings whose readers do not move give way to TCP also while other news keeps the program from sleeping.
    pub fn see_to_full(&mut self) {
        let State { members, active, .. } = self;
        for id in active.iter() {
            members.get_mut(*id).filter(|member| member.events & OUT != 0).and_then(Member::look_again);
        }
    }

    /// Lets every promoted member follow its peer.
    #[cold]
    pub fn keep_up(&self) {
        let carried =
            self.members.iter().filter_map(|(_, member)| Some((member.stream, &member.ring.as_ref()?.carrier)));
        carried.for_each(|(stream, carrier)| stream.keep_up(carrier));
    }
}

/// Changes a registration. An exclusive one, before or afterwards, cannot be changed, and is made anew.
pub fn change(set: i32, fd: i32, event: libc::epoll_event) -> Result<()> {
    kernel::epoll_control(set, libc::EPOLL_CTL_MOD, fd, Some(event)).or_else(|_| {
        kernel::epoll_control(set, libc::EPOLL_CTL_DEL, fd, None)?;
        kernel::epoll_control(set, libc::EPOLL_CTL_ADD, fd, Some(event))
    })
}

/// Lets news of a member's carrier come to the queue.
fn attach(news: &EventQueue, carrier: &Carrier, id: u32) -> Vec<SourceId> {
    carrier.watch().attach(news, u64::from(id) * 2)
}

fn detach(news: &EventQueue, ring: &Ring) {
    ring.sources.iter().for_each(|source| ring.carrier.watch().detach(news, *source));
}
