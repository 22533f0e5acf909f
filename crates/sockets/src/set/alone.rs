//! Sets of a process that has shut itself in: the kernel answers, and beside it the memory of members whose peers have not
//! followed them to TCP. Only calls that the program itself makes are made.

use std::sync::atomic::Ordering;

use crate::{
    engine, kernel, leaving,
    member::{IN, Member, ONE_SHOT, OUT},
    stream::{Stream, lock},
};

use super::Set;

impl Set {
    /// The process is about to shut itself in, and its streams were asked to leave.
    pub fn shut_in(&self) {
        if !self.exported.swap(true, Ordering::AcqRel) {
            self.give_to_kernel();
        }
    }

    /// Whether bytes for a member lie here.
    pub fn has_bytes_alone(&self) -> bool {
        lock(&self.state).members.iter().any(|(_, member)| is_due(member))
    }

    /// Adds to what the kernel reported members for which bytes lie here; returns how many events there are then. An
    /// edge-triggered one is told as long as it has some: it reads until there is nothing more.
    pub fn add_alone(&self, events: &mut [libc::epoll_event], count: usize) -> usize {
        let set = self.fd.load(Ordering::Relaxed);
        let mut count = count;
        for member in lock(&self.state).members.iter_mut().filter(|member| is_due(member)) {
            let told = events[..count].iter_mut().find(|event| event.u64 == member.data);
            if let Some(event) = told {
                event.events |= IN;
            } else if count < events.len() {
                // As the kernel does, which tells of all that is so when it tells of one thing.
                let also = match engine::is_disabled() {
                    true => 0,
                    false => kernel::look(member.stream.fd(), (member.events & OUT) as i16) as u32 & member.events,
                };
                events[count] = libc::epoll_event { events: IN | also, u64: member.data };
                count += 1;
                if member.events & ONE_SHOT != 0 {
                    // As the kernel does with what it reports. A program with such members makes this call itself.
                    let silent = libc::epoll_event { events: ONE_SHOT, u64: member.data };
                    let _ = kernel::epoll_control(set, libc::EPOLL_CTL_MOD, member.fd, Some(silent));
                }
            } else {
                break;
            }
            member.spent = member.events & ONE_SHOT != 0;
        }
        count
    }

    /// The kernel has changed a registration.
    pub fn was_controlled(&self, op: i32, fd: i32, stream: &'static Stream, event: Option<libc::epoll_event>) {
        let mut state = lock(&self.state);
        let id = state.members.id(fd);
        let member = id.and_then(|id| state.members.get_mut(id)).filter(|member| member.stream.index == stream.index);
        match (member, event) {
            (Some(member), Some(event)) if op != libc::EPOLL_CTL_DEL => {
                (member.events, member.data, member.present, member.spent) = (event.events, event.u64, true, false);
            }
            (Some(member), _) => (member.events, member.present) = (0, false),
            (None, Some(event)) if op == libc::EPOLL_CTL_ADD && !leaving::is_kernels(stream) => {
                let (events, data) = (event.events, event.u64);
                state.members.insert(fd, Member { stream, fd, events, data, present: true, spent: false, ring: None });
                drop(state);
                let mut sets = lock(&stream.sets);
                if !sets.contains(&self.index) {
                    sets.push(self.index);
                }
            }
            (None, _) => {}
        }
    }
}

fn is_due(member: &Member) -> bool {
    member.present && !member.spent && member.events & IN != 0 && leaving::has_bytes(member.stream)
}
