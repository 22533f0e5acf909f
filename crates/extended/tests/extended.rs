//! Two ends of a TCP connection with extended sockets: what they can do, what they may not, and how it ends.

mod pair;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    sync::atomic::Ordering,
};

use pair::{Pair, Provider, now_and, outcome_of, provider::on_every_provider};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_extended::{Error, Kind, Rights, Stack};
use sidestep_fabric::{self as fabric, CloseReason, Refusal};
use sidestep_testkit::process;

mod stream {
    use super::{
        Provider, a_peer_that_does_not_enable_leaves_the_socket_as_it_was, bytes_of_the_stream_are_not_touched,
    };

    crate::pair::provider::beside_the_stream!(
        bytes_of_the_stream_are_not_touched,
        a_peer_that_does_not_enable_leaves_the_socket_as_it_was,
    );
}

on_every_provider!(
    put_get_and_atomics_reach_the_other_ends_memory,
    memory_that_is_not_mapped_is_reached_too,
    rights_and_ranges_are_kept,
    deregistered_memory_is_out_of_reach,
    posted_operations_end_in_order_each_with_its_outcome,
    memory_of_an_operation_stays_registered,
    messages_are_gathered_and_scattered_and_keep_their_order,
    a_message_that_is_too_long_is_lost_alone,
    notices_are_not_lost_when_nobody_takes_them,
    the_queue_is_a_descriptor,
    the_end_is_told_and_ends_what_waits,
    sockets_come_and_go,
);

fn bytes_of_the_stream_are_not_touched(provider: &Provider) {
    let (mut near, mut far) = provider.connected();
    near.write_all(b"before").unwrap();
    let mut pair = Pair::over(provider, near, far.try_clone().unwrap());
    pair.near_stream.write_all(b" after").unwrap();
    let mut bytes = [0; 12];
    far.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"before after");
    drop((pair.near, pair.far));
    pair.near_stream.write_all(b"end").unwrap();
    far.read_exact(&mut bytes[..3]).unwrap();
    assert_eq!(&bytes[..3], b"end");
}

fn put_get_and_atomics_reach_the_other_ends_memory(provider: &Provider) {
    let pair = Pair::new(provider);
    let (region, remote) = pair.shared(8192, Rights::ALL);
    assert_eq!(remote.reads_directly(), provider.maps());
    assert_eq!((remote.len(), remote.rights(), remote.tag()), (8192, Rights::ALL, 42));
    pair.near.put(&remote, 100, b"hello").unwrap();
    let mut bytes = [0; 5];
    region.read(100, &mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    region.write(4000, b"world").unwrap();
    pair.near.get(&remote, 4000, &mut bytes).unwrap();
    assert_eq!(&bytes, b"world");
    assert_eq!(pair.near.fetch_add(&remote, 8, 7).unwrap(), 0);
    assert_eq!(pair.near.compare_swap(&remote, 8, 7, 9).unwrap(), 7);
    assert_eq!(pair.near.compare_swap(&remote, 8, 7, 11).unwrap(), 9);
    assert_eq!(region.word64(8).unwrap().load(Ordering::Acquire), 9);
}

/// Rights that no mapping can be limited to, and memory of the program: the owner's library carries the operations out.
fn memory_that_is_not_mapped_is_reached_too(provider: &Provider) {
    let pair = Pair::new(provider);
    let rights = Rights::READ.and(Rights::WRITE);
    let (region, remote) = pair.shared(200_000, rights);
    let sent: Vec<u8> = (0..150_000).map(|at| (at % 251) as u8).collect();
    let serving = pair.serve_far();
    pair.near.put(&remote, 17, &sent).unwrap();
    let mut back = vec![0; sent.len()];
    pair.near.get(&remote, 17, &mut back).unwrap();
    assert!(back == sent);
    let refused = pair.near.fetch_add(&remote, 0, 1).unwrap_err();
    assert!(matches!(refused, Error::Fabric(fabric::Error::Cookie(Refusal::Rights { .. }))), "{refused}");
    // The one that failed holds up nothing.
    pair.near.put(&remote, 0, b"on").unwrap();
    drop(serving);
    region.read(0, &mut back[..2]).unwrap();
    assert_eq!(&back[..2], b"on");
}

fn rights_and_ranges_are_kept(provider: &Provider) {
    let pair = Pair::new(provider);
    let (region, remote) = pair.shared(4096, Rights::READ);
    for refused in [
        pair.near.put(&remote, 0, b"x").unwrap_err(),
        pair.near.fetch_add(&remote, 0, 1).unwrap_err(),
        pair.near.compare_swap(&remote, 0, 0, 1).unwrap_err(),
    ] {
        assert_eq!(refused.errno(), libc::EACCES, "{refused}");
    }
    let mut bytes = [0; 16];
    for (offset, len) in [(4096, 1), (4090, 16), (usize::MAX, 1), (usize::MAX - 3, 16)] {
        let refused = pair.near.get(&remote, offset, &mut bytes[..len]).unwrap_err();
        assert_eq!(refused.errno(), libc::EINVAL, "{offset} {len}: {refused}");
    }
    assert_eq!(pair.far.export(&region, Rights::WRITE, 0).unwrap_err().errno(), libc::EACCES);
    let (_whole, whole) = pair.shared(64, Rights::ALL);
    assert_eq!(pair.near.fetch_add(&whole, 4, 1).unwrap_err().errno(), libc::EINVAL);
    assert_eq!(pair.near.fetch_add(&whole, 64, 1).unwrap_err().errno(), libc::EINVAL);
    assert_eq!(pair.far.get(&whole, 0, &mut bytes).unwrap_err(), Error::OtherSocket);
}

/// The moment is the return of the call: what the owner stores afterwards is never read, and what a peer writes never arrives.
fn deregistered_memory_is_out_of_reach(provider: &Provider) {
    for rights in [Rights::READ, Rights::ALL] {
        let pair = Pair::new(provider);
        let (region, remote) = pair.shared(4096, rights);
        region.write(0, b"old").unwrap();
        let mut bytes = [0; 3];
        pair.near.get(&remote, 0, &mut bytes).unwrap();
        region.revoke().unwrap();
        region.write(0, b"new").unwrap();
        let read = pair.near.get(&remote, 0, &mut bytes);
        assert!(read.is_err() || &bytes == b"old", "{bytes:?}");
        let written = pair.near.put(&remote, 0, b"bad");
        assert!(written.is_err() || rights == Rights::ALL);
        region.read(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"new", "what the peer wrote has arrived");
        // As soon as this end has heard of it, every operation is refused.
        pair.near_stack.progress();
        assert_eq!(pair.near.get(&remote, 0, &mut bytes).unwrap_err().errno(), libc::ESTALE);
        let (region, remote) = pair.shared(4096, rights);
        region.deregister().unwrap();
        pair.near_stack.progress();
        assert_eq!(pair.near.get(&remote, 0, &mut bytes).unwrap_err().errno(), libc::ESTALE);
    }
}

fn posted_operations_end_in_order_each_with_its_outcome(provider: &Provider) {
    let pair = Pair::new(provider);
    let (region, remote) = pair.shared(1 << 20, Rights::ALL);
    let local = pair.near_stack.register(1 << 20, Rights::NONE).unwrap();
    local.write(0, b"gathered").unwrap();
    let pieces = vec![local.piece(4, 4).unwrap(), local.piece(0, 4).unwrap()];
    pair.near.post_put(&remote, 0, pieces, 1).unwrap();
    pair.near.post_get(&remote, 0, vec![local.piece(100, 300_000).unwrap()], 2).unwrap();
    pair.near.fence().unwrap();
    let completions = pair.near_completions(2);
    assert_eq!(outcome_of(&completions[0]), (Kind::Put, 1, Ok(8)));
    assert_eq!(outcome_of(&completions[1]), (Kind::Get, 2, Ok(300_000)));
    let mut bytes = [0; 8];
    local.read(100, &mut bytes).unwrap();
    assert_eq!(&bytes, b"eredgath");
    region.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"eredgath");
    let outside = pair.near.post_get(&remote, 1 << 20, vec![local.piece(0, 1).unwrap()], 3).unwrap_err();
    assert_eq!(outside.errno(), libc::EINVAL);
    assert!(local.piece(1 << 20, 1).is_err());
}

fn memory_of_an_operation_stays_registered(provider: &Provider) {
    let pair = Pair::new(provider);
    let local = pair.near_stack.register(4096, Rights::NONE).unwrap();
    pair.near.post_recv(vec![local.piece(0, 16).unwrap()], 5).unwrap();
    let (local, error) = local.deregister().unwrap_err();
    assert_eq!(error, Error::Busy);
    let theirs = pair.far_stack.register(4096, Rights::NONE).unwrap();
    pair.far.post_send(vec![theirs.piece(0, 3).unwrap()], 6).unwrap();
    assert_eq!(outcome_of(&pair.near_completions(1)[0]), (Kind::Receive, 5, Ok(3)));
    local.deregister().unwrap();
}

fn messages_are_gathered_and_scattered_and_keep_their_order(provider: &Provider) {
    let pair = Pair::new(provider);
    let (ours, theirs) =
        (pair.near_stack.register(1 << 20, Rights::NONE), pair.far_stack.register(1 << 20, Rights::NONE));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    let bytes: Vec<u8> = (0..300_000).map(|at| (at * 7 % 253) as u8).collect();
    ours.write(0, &bytes).unwrap();
    // Longer than the ring, so that it travels in parts.
    let pieces =
        vec![ours.piece(0, 100_000).unwrap(), ours.piece(100_000, 0).unwrap(), ours.piece(100_000, 200_000).unwrap()];
    pair.near.post_send(pieces, 1).unwrap();
    pair.near.notify(77).unwrap_or_else(|error| panic!("{error}"));
    let into = vec![theirs.piece(500_000, 123_456).unwrap(), theirs.piece(0, 400_000).unwrap()];
    pair.far.post_recv(into, 2).unwrap();
    let completions = pair.far_completions(2);
    assert_eq!(outcome_of(&completions[0]), (Kind::Receive, 2, Ok(300_000)));
    assert_eq!(outcome_of(&completions[1]), (Kind::Notice, 77, Ok(0)));
    let mut back = vec![0; 300_000];
    let (first, second) = back.split_at_mut(123_456);
    theirs.read(500_000, first).unwrap();
    theirs.read(0, second).unwrap();
    assert!(back == bytes);
    assert_eq!(outcome_of(&pair.near_completions(1)[0]), (Kind::Send, 1, Ok(300_000)));
}

fn a_message_that_is_too_long_is_lost_alone(provider: &Provider) {
    let pair = Pair::new(provider);
    let region = pair.far_stack.register(4096, Rights::NONE).unwrap();
    let source = pair.near_stack.register(4096, Rights::NONE).unwrap();
    source.write(0, b"0123456789").unwrap();
    pair.far.post_recv(vec![region.piece(0, 4).unwrap()], 1).unwrap();
    pair.far.post_recv(vec![region.piece(0, 4).unwrap()], 2).unwrap();
    pair.near.post_send(vec![source.piece(0, 10).unwrap()], 3).unwrap();
    pair.near.post_send(vec![source.piece(6, 4).unwrap()], 4).unwrap();
    let completions = pair.far_completions(2);
    assert_eq!(outcome_of(&completions[0]), (Kind::Receive, 1, Err(libc::EMSGSIZE)));
    assert_eq!(outcome_of(&completions[1]), (Kind::Receive, 2, Ok(4)));
    let mut bytes = [0; 4];
    region.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"6789");
}

fn notices_are_not_lost_when_nobody_takes_them(provider: &Provider) {
    const COUNT: u64 = 20_000;
    let pair = Pair::new(provider);
    let mut taken = Vec::new();
    for value in 0..COUNT {
        while let Err(error) = pair.near.notify(value) {
            assert_eq!(error.errno(), libc::EAGAIN, "{error}");
            taken.extend(pair.far_completions(1));
        }
    }
    while taken.len() < COUNT as usize {
        taken.extend(pair.far_completions(1));
    }
    assert!(taken.iter().map(|completion| completion.token).eq(0..COUNT));
}

fn the_queue_is_a_descriptor(provider: &Provider) {
    let pair = Pair::new(provider);
    let mut some = Vec::new();
    while pair.far_queue.poll(&mut some, 16) > 0 {}
    let is_readable = |patience_ms: i64| {
        let descriptor = pair.far_queue.descriptor().unwrap();
        let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
        let limit = Timespec { tv_sec: patience_ms / 1000, tv_nsec: patience_ms % 1000 * 1_000_000 };
        poll(&mut fds, Some(&limit)).unwrap() == 1
    };
    // Notices are there when `notify` returns, or are on their way.
    let patience_ms = if provider.maps() { 0 } else { process::PATIENCE.as_millis() as i64 };
    is_readable(0);
    while pair.far_queue.poll(&mut some, 16) > 0 {}
    assert!(!is_readable(0));
    for value in 0..40 {
        pair.near.notify(value).unwrap();
    }
    assert!(is_readable(patience_ms));
    some.clear();
    while some.len() < 40 && is_readable(patience_ms) {
        pair.far_queue.poll(&mut some, 16);
    }
    assert!(some.iter().map(|completion| completion.token).eq(0..40));
    while pair.far_queue.poll(&mut some, 16) > 0 {}
    assert!(!is_readable(0));
}

fn the_end_is_told_and_ends_what_waits(provider: &Provider) {
    let pair = Pair::new(provider);
    let (_region, remote) = pair.shared(64, Rights::READ);
    let local = pair.near_stack.register(64, Rights::NONE).unwrap();
    pair.near.post_recv(vec![local.piece(0, 8).unwrap()], 9).unwrap();
    drop(pair.far);
    let completions = pair::take(&pair.near_queue, 2);
    assert_eq!(outcome_of(&completions[0]), (Kind::Receive, 9, Err(libc::ECONNRESET)));
    let closed = fabric::Error::Closed(CloseReason::Peer);
    assert_eq!((completions[1].kind, completions[1].outcome.clone()), (Kind::Closed, Err(Error::Fabric(closed))));
    assert_eq!(pair.near.get(&remote, 0, &mut [0; 8]).unwrap_err().errno(), libc::ECONNRESET);
    assert_eq!(pair.near.notify(1).unwrap_err().errno(), libc::ECONNRESET);
    assert_eq!(pair.near.import(None).unwrap_err().errno(), libc::ECONNRESET);
}

/// The line of a socket that has ended goes with it: a process has a limited number of them with another.
fn sockets_come_and_go(provider: &Provider) {
    for _ in 0..100 {
        let pair = Pair::new(provider);
        let (_region, remote) = pair.shared(64, Rights::READ);
        pair.near.get(&remote, 0, &mut [0; 8]).unwrap();
    }
    let pair = Pair::new(provider);
    for _ in 0..100 {
        let (near, far) = provider.connected();
        let (near, far) = pair::enable(
            provider,
            (&pair.near_stack, &pair.near_queue),
            (&pair.far_stack, &pair.far_queue),
            &near,
            &far,
        );
        drop(near);
        drop(far);
        pair.near_stack.progress();
    }
}

fn a_peer_that_does_not_enable_leaves_the_socket_as_it_was(provider: &Provider) {
    let (mut near, mut far) = provider.connected();
    let stack = provider.stack();
    let queue = stack.completion_queue().unwrap();
    let refused = |end: &TcpStream| stack.enable(end.as_fd(), &queue, now_and(30)).unwrap_err();
    assert_eq!(refused(&near), Error::Unanswered);
    assert_eq!(provider.at_far(|| refused(&far)), Error::Unanswered);
    near.write_all(b"plain").unwrap();
    let mut bytes = [0; 5];
    far.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"plain");
    // And it can be tried again.
    Pair::over(provider, near, far);
}

#[test]
fn what_is_no_connection_is_refused() {
    let stack = Stack::new().unwrap();
    let queue = stack.completion_queue().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(stack.enable(listener.as_fd(), &queue, now_and(1000)).unwrap_err().errno(), libc::ENOTCONN);
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(stack.enable(file.as_fd(), &queue, now_and(1000)).unwrap_err().errno(), libc::ENOTSOCK);
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let near = listener.accept().unwrap().0;
    drop(far);
    assert_eq!(stack.enable(near.as_fd(), &queue, now_and(1000)).unwrap_err(), Error::Elsewhere);
}
