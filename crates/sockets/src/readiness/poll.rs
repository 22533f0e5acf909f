//! `poll` and its relatives: lists of descriptors, some of them with rings.

use std::time::Duration;

use sidestep_stream::carrier::Watch;
use sidestep_sys::clock;

use crate::{
    kernel::{
        self, Errno, Mask, Result,
        signal::{self, Inside, Runs},
    },
    promotion::engine,
    readiness::{
        LOOK_NS,
        jump::{self, Note, What},
        sleep::{self, LastLook},
        soon,
    },
    registry::reason::Reason,
    streams::{READ, Stream},
};

mod list;

pub use list::{LOOK_TICKS, forget};
use list::{List, Ringed};

/// Whether descriptors without a ring are looked at by every call, or now and then while rings are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// By every call: a closed one is an error (`select`).
    Always,
    /// Now and then.
    Sometimes,
}

/// `ppoll` on a list that has streams of ours.
pub fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
    mask: Option<Mask>,
    before: Runs,
    others: Others,
) -> Result<usize> {
    let deadline = timeout.map(|timeout| clock::now().saturating_add(timeout.as_nanos() as u64));
    loop {
        let inside = Inside::enter();
        let mut list = List::of(fds);
        let Some(node) = list.ringed.first().map(|ringed| ringed.carrier.node().clone()) else {
            if let Some(held) = hold(&list.plain) {
                let (scarce, inherits) = (list.scarce, !list.inherited.is_empty());
                let bed = list.lie_down(None);
                drop(inside);
                let left = sleep::left(deadline);
                let at_once = sleep::is_interrupted(before, true) || inherits;
                let left = if at_once { Some(Duration::ZERO) } else { soon(left, scarce) };
                let outcome = kernel::poll(fds, left, mask);
                let _inside = Inside::enter();
                let Some(list) = List::get_up(bed) else { return outcome };
                let outcome = match outcome.map(|count| list.add_inherited(fds, count)) {
                    Ok(0) if sleep::is_interrupted(before, true) => Err(Errno(libc::EINTR)),
                    outcome => outcome,
                };
                let_go(&list.plain, held);
                let again = list.scarce && outcome == Ok(0) && sleep::left(deadline) != Some(Duration::ZERO);
                list.put_by();
                if again {
                    continue;
                }
                return outcome;
            }
            continue;
        };
        let ready = list.rings_ready(fds);
        if ready {
            // Also for streams with rings: their other direction, and their end, are the kernel's to tell.
            let due = list.is_due(fds);
            if due && list.gives_way(fds) {
                continue;
            }
            if due || list.is_behind() || list.needs_kernel(fds, others) {
                list.look_at_kernel()?;
            }
            let count = list.report_in_order(fds)?;
            list.put_by();
            return Ok(count);
        }
        let expired = deadline.is_some_and(|deadline| clock::now() >= deadline);
        if expired && list.gives_way(fds) {
            continue;
        }
        if expired || list.look_longer(fds, deadline)? {
            if !list.rings_ready(fds) || list.is_due(fds) || list.is_behind() || list.needs_kernel(fds, others) {
                list.look_at_kernel()?;
            }
            let count = list.report_in_order(fds)?;
            if count > 0 || expired {
                list.put_by();
                return Ok(count);
            }
        }
        if sleep::is_interrupted(before, true) {
            return Err(Errno(libc::EINTR));
        }
        let Some(held) = hold(&list.plain) else { continue };
        let arm = || list.arm(fds);
        let List { ringed, fds: kernel_fds, scarce, .. } = &list;
        let news = || ringed.iter().any(|ringed| ringed.events(fds[ringed.at].events) != 0);
        let ready = || {
            engine::see_to_links();
            ringed.iter().for_each(|ringed| ringed.carrier.watch().settle());
            let changes =
                |Ringed { stream, carrier, .. }: &Ringed| stream.must_follow(carrier) || !stream.is_carried_by(carrier);
            news() || signal::was_cancelled(before) || ringed.iter().any(changes)
        };
        let again = ringed.iter().filter_map(|ringed| ringed.look_again(fds[ringed.at].events));
        let until = again.chain(scarce.then(|| clock::now() + LOOK_NS)).chain(deadline).min();
        let last_look = LastLook { arm: &arm, ready: &ready };
        // Who leaves this sleep by a jump keeps nothing.
        let (bed, (news, outcome)) = match &ringed[..] {
            // One call to the kernel instead of two.
            [only] if fds.len() == 1 && mask.is_none() => {
                let events = u32::from(kernel_fds[1].events as u16);
                let sleep = sleep::announce(only.stream, &only.carrier, events, until, last_look);
                drop(node);
                (list.lie_down(None), sleep.sleep())
            }
            _ => {
                let sleep = sleep::announce_list(&node, until, last_look);
                drop(node);
                let bed = list.lie_down(Some(sleep.first()));
                (bed, (false, sleep.sleep(bed.words, mask)))
            }
        };
        let Some(mut list) = List::get_up(bed) else { return Err(sleep::why(before, true)) };
        let_go(&list.plain, held);
        if news || list.rings_ready(fds) && list.is_behind() {
            list.look_at_kernel()?;
        }
        let count = list.report_in_order(fds)?;
        list.put_by();
        if count > 0 {
            return Ok(count);
        }
        drop(inside);
        if outcome == Err(Errno(libc::EINTR)) || signal::was_cancelled(before) {
            return Err(sleep::why(before, true));
        }
    }
}

/// Counts this call as in the kernel for streams without a ring. `None`: one of them has been opened meanwhile. Inside.
fn hold(streams: &[&'static Stream]) -> Option<Note> {
    for stream in streams {
        stream.enter_kernel(READ);
    }
    let note = jump::note_each(streams.iter().map(|stream| What::InKernel(stream, READ)));
    // SeqCst: pairs with `Reader::take_up`: it sees the count, or this sees the opening.
    if streams.iter().all(|stream| !stream.is_open()) {
        return Some(note);
    }
    let_go(streams, note);
    None
}

fn let_go(streams: &[&'static Stream], note: Note) {
    let _inside = Inside::enter();
    if jump::strike(note) {
        for stream in streams {
            stream.leave_kernel(READ);
        }
    }
}

/// A set leaves user space: its streams go back to TCP.
pub const EXPORTED: Reason = Reason::Option;
