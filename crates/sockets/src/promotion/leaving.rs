//! Leaving the ring for good: one stream for a call that only the kernel can carry out, or all of them before the process is
//! where the engine cannot follow.
//!
//! What this side writes goes over TCP at once. For the other direction this side ends its ring, and wants what it has not read
//! to come over TCP: a message wakes the peer if it sleeps. What the peer has not taken in time is read here. The reader of a
//! link can only ask its peer to go over, and gives what it has not read back to it. A process that shuts itself in takes what
//! lies in its ring into memory of its own.

use std::{
    sync::atomic::{Ordering, fence},
    time::Duration,
};

use sidestep_stream::carrier::{Carrier, Watch};
use sidestep_sys::clock;

use crate::{
    descriptors::table,
    kernel::{self, signal::Inside},
    processes::{fork::Legacy, heirloom::Wish},
    promotion::engine,
    readiness::sleep,
    registry::{self, reason::Reason},
    streams::{READ, Stage, Stream, WRITE, Withheld},
};

/// How long a stream that leaves waits for its peer.
pub const LEAVE_NS: u64 = 20_000_000;
/// The same for all streams of a process that shuts itself in: afterwards every call that is not its own may end it.
const SHUT_IN_NS: u64 = 200_000_000;
/// The same for all streams that a child will have: it may execute a program, which does not find what lies here.
const CHILD_NS: u64 = 100_000_000;
/// The same before what lies here is out of reach.
const WHOLE_NS: u64 = 1_000_000_000;
/// Between two looks.
pub const LOOK: Duration = Duration::from_micros(50);

/// Moves a stream back to TCP for good, and waits for a while until the peer has followed.
pub fn leave(stream: &'static Stream, reason: Reason) {
    leave_these(&[stream], reason);
}

/// The same for several, which are waited for together.
pub fn leave_these(streams: &[&'static Stream], reason: Reason) {
    leave_within(streams, reason, LEAVE_NS);
}

/// The same, with so long for the peers: what they do not answer to in time they leave behind.
fn leave_within(streams: &[&'static Stream], reason: Reason, limit: u64) {
    let _inside = Inside::enter();
    let _withheld = Withheld::begin(streams);
    let until = clock::now() + limit;
    wait(ask(streams, reason), reason, |_| limit);
    streams.iter().for_each(|stream| conclude(stream));
    return_inherited(streams, until.saturating_sub(clock::now()).max(LEAVE_NS));
    streams.iter().for_each(|stream| stream.set_reason(reason));
}

/// As [`leave_these`], before what lies here is out of reach: as long as there is something, it is wanted again and again.
pub fn leave_whole(streams: &[&'static Stream], reason: Reason) {
    let until = clock::now() + WHOLE_NS;
    leave_within(streams, reason, WHOLE_NS);
    let mut rest = streams.to_vec();
    loop {
        rest.retain(may_come);
        if rest.is_empty() || clock::now() >= until {
            return;
        }
        leave_these(&rest, reason);
    }
}

/// Before a program is executed that will have these streams, or libc itself reads from them: both directions are TCP's, as before a
/// `fork`. What lies here is wanted again and again. Later they may be promoted again, by whoever has them alone then.
pub fn leave_to_program(streams: &[&'static Stream]) {
    let _inside = Inside::enter();
    let _withheld = Withheld::begin(streams);
    let until = clock::now() + WHOLE_NS;
    let mut rest = streams.to_vec();
    loop {
        // A wish that is withdrawn leaves an ended ring, which a peer that looks then does not take anything from.
        let limit = until.saturating_sub(clock::now());
        leave_to_child(&rest, |_| limit);
        return_inherited(&rest, CHILD_NS);
        rest.retain(may_come);
        if rest.is_empty() || clock::now() >= until {
            return;
        }
    }
}

/// Whether something lies here that the peer may send over TCP: not once it has shut its writing direction down.
fn may_come(stream: &&'static Stream) -> bool {
    let _inside = Inside::enter();
    has_rest(stream) && !stream.carrier().is_some_and(|carrier| carrier.has_ended())
}

/// After [`leave_to_program`]: waits for a while until the peers have parted with the carriers, too, so that they look for the next
/// program at once.
pub fn await_parting(streams: &[&'static Stream]) {
    let until = clock::now() + CHILD_NS;
    let mut rest = streams.to_vec();
    loop {
        rest.retain(|stream| !stream.has_given_back());
        if rest.is_empty() || clock::now() >= until {
            return;
        }
        kernel::pause(LOOK);
    }
}

/// Whether something that the program has not read lies here, and not with the kernel.
pub fn has_rest(stream: &'static Stream) -> bool {
    let _inside = Inside::enter();
    stream.stage() == Stage::Carried && !stream.reader().is_through(stream) || stream.inherited_bytes() > 0
}

/// Takes that.
pub fn take_rest(stream: &'static Stream) -> Vec<u8> {
    let _inside = Inside::enter();
    stream.reader().collect(stream)
}

/// Before a `fork`: streams stay as they are, if the child can take them over when it wants to. The others go over to TCP both
/// ways, at once. What was not read of those, and the peer has not sent anew in time, is put where the child sees it, too.
/// Later, when one process has such a stream alone, it may be promoted again.
pub fn leave_to_family() -> Vec<Legacy> {
    let (mut legacies, mut others) = (Vec::new(), Vec::new());
    for stream in all_streams() {
        match stream.share() {
            Some(heirloom) => legacies.push(Legacy::shared(stream, heirloom)),
            None => others.push(stream),
        }
    }
    let _withheld = Withheld::begin(&others);
    leave_to_child(&others, patience);
    legacies.extend(others.iter().copied().filter_map(Legacy::of));
    legacies
}

/// The streams of this process.
pub fn all_streams() -> Vec<&'static Stream> {
    // Several numbers lead to one, whose own is one of them.
    let own = |fd: i32| table::stream(fd).filter(|stream| stream.fd() == fd);
    table::numbers(0, u32::MAX).filter_map(own).collect()
}

/// Before a `vfork`, whose child has this memory: every stream goes over to TCP both ways.
pub fn lend() {
    let streams = all_streams();
    let _withheld = Withheld::begin(&streams);
    leave_to_child(&streams, patience);
}

fn leave_to_child(streams: &[&'static Stream], limit: impl Fn(&Stream) -> u64) {
    streams.iter().for_each(|stream| stream.end_sharing());
    let carried: Vec<_> = streams.iter().copied().filter(|stream| stream.stage() == Stage::Carried).collect();
    carried.iter().for_each(|stream| {
        stream.carriage.parting.store(true, Ordering::SeqCst);
        stream.carriage.decline();
    });
    // All readers first: the peer of a stream may be another one of them, and sends anew what is wanted when it leaves.
    let asked = carried.iter().copied().filter(|stream| stream.reader().give_back(stream, true)).collect();
    let began = clock::now();
    // A peer that gives something back decides when it has an answer, and may be another stream of this process.
    let (later, at_once): (Vec<_>, Vec<_>) = carried.iter().partition(|stream| stream.writer().awaits_return(stream));
    at_once.into_iter().for_each(leave_writing);
    wait(asked, Reason::Demoted, limit);
    later.into_iter().for_each(leave_writing);
    let waited = clock::now() - began;
    carried.iter().for_each(|stream| {
        stream.carriage.waited.fetch_add(waited, Ordering::Relaxed);
    });
}

/// The writing direction goes over to TCP, and the peer is told that this side parts with the carrier: behind its last switch.
fn leave_writing(stream: &Stream) {
    stream.writer().leave_to_family(stream);
    stream.reader().say_parting();
    tell_peer(stream, patience(stream).min(LEAVE_NS));
}

/// What the peer gives back while this side leaves is not left to later calls.
fn conclude(stream: &Stream) {
    let mut writer = stream.writer();
    if writer.awaits_return(stream) {
        writer.leave_to_family(stream);
    }
}

/// How long a fork waits for the peer of a stream. All forks together wait so long for one carrier, else a program that forks all
/// the time would do nothing but wait for a peer that does not look.
fn patience(stream: &Stream) -> u64 {
    CHILD_NS.saturating_sub(stream.carriage.waited.load(Ordering::Relaxed))
}

/// The same for every stream of the process.
pub fn leave_all(reason: Reason) {
    let _inside = Inside::enter();
    if reason == Reason::Sandboxed {
        engine::disable();
    }
    let kept = |fd| kernel::control(fd, libc::F_GETFD, 0).is_ok_and(|flags| flags & libc::FD_CLOEXEC as usize == 0);
    let numbers: Vec<i32> = table::numbers(0, u32::MAX).filter(|fd| reason != Reason::Passed || kept(*fd)).collect();
    let streams: Vec<&'static Stream> = numbers.iter().filter_map(|fd| table::stream(*fd)).collect();
    let limit = if reason == Reason::Sandboxed { SHUT_IN_NS } else { LEAVE_NS };
    // Who is shut in has them in its own memory, where they can be read at once.
    let _withheld = Withheld::begin(if reason == Reason::Sandboxed { &[] } else { &streams });
    wait(ask(&streams, reason), reason, |_| limit);
    return_inherited(&streams, if reason == Reason::Passed { CHILD_NS } else { limit });
    streams.iter().for_each(|stream| stream.set_reason(reason));
    if reason == Reason::Sandboxed {
        // What the family shares stays mapped when it is read: this process may not be allowed to give memory back.
        streams.iter().filter_map(|stream| stream.heirloom()).for_each(std::mem::forget);
        // One that ends by leaving its only thread must have no other.
        if let Some(engine) = engine::running() {
            engine.end_threads();
        }
        numbers.iter().filter_map(|fd| table::set(*fd)).for_each(|set| set.shut_in());
    }
}

/// Before a change of user: gives back all that this process has as the present one. Its connections with other processes were
/// made in that user's name, and so was the memory that it shares with them.
pub fn change_user() {
    let _inside = Inside::enter();
    let numbers: Vec<i32> = table::numbers(0, u32::MAX).collect();
    let mut streams: Vec<&'static Stream> = numbers.iter().filter_map(|fd| table::stream(*fd)).collect();
    {
        let _change = table::change();
        engine::renew();
        streams.iter().for_each(|stream| stream.give_back());
    }
    let deadline = clock::now() + LEAVE_NS;
    loop {
        streams.retain(|stream| !stream.has_given_back());
        if streams.is_empty() || clock::now() >= deadline {
            break;
        }
        kernel::pause(LOOK);
    }
    numbers.iter().filter_map(|fd| table::set(*fd)).for_each(|set| set.give_back());
    sleep::give_back();
}

/// After a change of user: a thread may have made an engine as the former one meanwhile.
pub fn changed_user() {
    let _inside = Inside::enter();
    if engine::running().is_some_and(|engine| Some(engine.user) != sidestep_sys::user::own()) {
        change_user();
    }
    registry::file::drop_strange();
}

/// Whether a stream is on TCP both ways, and nothing for it lies here.
pub fn is_kernels(stream: &Stream) -> bool {
    [READ, WRITE].iter().all(|direction| !stream.on_ring(*direction))
        && stream.carrier().is_none_or(|carrier| carrier.kept.load(Ordering::Relaxed) == 0)
        && stream.inherited_bytes() == 0
}

/// Whether bytes for a stream lie here, and not with the kernel. Looks at memory only.
pub fn has_bytes(stream: &Stream) -> bool {
    let has = |carrier: &Carrier| stream.on_ring(READ) && carrier.has_at_least(1);
    stream.carrier().is_some_and(|carrier| carrier.kept.load(Ordering::Relaxed) != 0 || has(&carrier))
        || stream.inherited_bytes() > 0
}

/// Goes over to TCP, and asks the peers to do the same. Returns those that have to be waited for.
fn ask(streams: &[&'static Stream], reason: Reason) -> Vec<&'static Stream> {
    streams.iter().for_each(|stream| stream.end_sharing());
    let (carried, others): (Vec<_>, Vec<_>) = streams.iter().partition(|stream| stream.stage() == Stage::Carried);
    others.iter().for_each(|stream: &&Stream| stream.stay(reason));
    carried.iter().for_each(|stream| drop(stream.carriage.take_inbound()));
    // As in `leave_to_child`; and before the peer is told to go over, when it sends anew what is wanted.
    // Who shuts itself in takes what lies in a link into its own memory instead.
    let of_links = reason != Reason::Sandboxed;
    let asked =
        carried.iter().copied().filter(|stream: &&Stream| stream.reader().give_back(stream, of_links)).collect();
    for stream in carried {
        stream.reader().leave();
        stream.writer().leave(stream);
        tell_peer(stream, LEAVE_NS);
    }
    asked
}

/// What lies in rings that were another process's is wanted over TCP, and waited for.
fn return_inherited(streams: &[&'static Stream], limit: u64) {
    let deadline = clock::now() + limit;
    let mut wanted: Vec<_> = Vec::new();
    for stream in streams {
        if let Some(heirloom) = stream.take_over()
            && let Some(wish) = heirloom.want()
        {
            wanted.push((stream.fd(), heirloom, wish));
        }
    }
    while !wanted.is_empty() {
        let late = clock::now() >= deadline;
        wanted.retain(|(fd, heirloom, wish)| {
            // They were there before, and are to be there afterwards.
            let arrived = || kernel::ask(*fd, libc::FIONREAD).is_ok_and(|count| count > 0);
            let over = late || heirloom.is_sent() && arrived();
            if over && *wish == Wish::Own {
                heirloom.decide();
            }
            !over
        });
        if !wanted.is_empty() {
            kernel::pause(LOOK);
        }
    }
}

/// The peer looks. Over a link its writer announces that it enters, and looks for a word to leave once more. That lies in its memory
/// when this returns, or the time is over: from then on the announcement is found here, or it finds the word.
fn tell_peer(stream: &Stream, limit: u64) {
    if let Some(carrier) = stream.carrier() {
        carrier.watch().nudge();
        if !carrier.capabilities().freezes {
            carrier.deliver(clock::now() + limit);
        }
        // Pairs with the one in the writer's `await_word`.
        fence(Ordering::SeqCst);
    }
}

/// Waits until the peers of these streams have gone over to TCP, too, for each as long as its limit says.
fn wait(mut streams: Vec<&'static Stream>, reason: Reason, limit: impl Fn(&Stream) -> u64) {
    let began = clock::now();
    loop {
        let now = clock::now();
        streams.retain(|stream| {
            let mut reader = stream.reader();
            if reason == Reason::Sandboxed {
                reader.put_aside(stream);
                // The peer is told how far it was read while it can be.
                stream.carrier().iter().for_each(|carrier| carrier.watch().settle());
            }
            let late = now - began >= limit(stream);
            if late {
                // First: an answer that is taken up is decided for good, and nobody may be there to act on it any more.
                reader.stop_giving_back(stream);
            }
            let decided = reader.is_given_back(stream);
            if decided && !late {
                reader.stop_giving_back(stream);
            }
            if late && !decided && reason == Reason::Sandboxed {
                // It is read from its ring as long as nothing comes over TCP.
                reader.prepare_alone();
            }
            !decided && !late || reader.are_on_their_way(stream)
        });
        let Some(first) = streams.first() else { return };
        if let Some(carrier) = first.carrier() {
            carrier.check();
        }
        // The peer may be this process.
        for stream in table::numbers(0, u32::MAX).filter_map(table::stream) {
            stream.carrier().iter().for_each(|carrier| stream.keep_up(carrier));
        }
        kernel::pause(LOOK);
    }
}
