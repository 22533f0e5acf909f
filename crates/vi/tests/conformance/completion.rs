//! Completion queues, waiting, callbacks.

use std::{
    sync::{Arc, Barrier, Mutex, mpsc},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_testkit::{conformance::fixture::Fixture, process::PATIENCE};
use sidestep_vi::{Error, ErrorCode, Queue, Resource, Status, ViState, clock};

use super::pair::{Options, Pair, contents, in_ms, one, pair, soon};

fn apart(fixture: Fixture) -> Pair {
    Pair::new(fixture, Options { connect: false, ..Options::default() })
}

pub fn one_queue_serves_many(fixture: Fixture) {
    let pair = apart(fixture);
    let cq = pair.b.nic.create_cq(1000).unwrap();
    let (source, target) = (pair.a.filled(64, 1), pair.b.buffer(64));
    let vis: Vec<_> = (0..20u64)
        .map(|word| {
            let (from, to) =
                (pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, Some(&cq)));
            to.set_user_word(word);
            for token in 0..3 {
                to.post_receive(&one(token, &target, 64)).unwrap();
            }
            pair.join(&from, &to);
            (from, to)
        })
        .collect();
    assert!(cq.is_in_use());
    pair.settle();
    for token in 0..3 {
        for (from, _) in &vis {
            from.post_send(&one(token, &source, 64)).unwrap();
        }
    }
    let mut counts = [0; 20];
    for _ in 0..60 {
        let (vi, queue) = pair.until("a completion", || {
            vis.iter().for_each(|(from, _)| from.progress());
            cq.poll()
        });
        assert_eq!(queue, Queue::Receive);
        let received = vi.poll_receive().expect("a descriptor for each entry");
        assert_eq!(received.token, counts[vi.user_word() as usize]);
        counts[vi.user_word() as usize] += 1;
    }
    assert_eq!(counts, [3; 20]);
    assert!(cq.poll().is_none());
    assert!(matches!(vis[0].1.wait_receive(in_ms(1)), Err(Error::Invalid(_))));
}

pub fn sends_complete_there_too(fixture: Fixture) {
    let pair = apart(fixture);
    let (cq, other) = (pair.a.nic.create_cq(10).unwrap(), pair.b.nic.create_cq(10).unwrap());
    let from = pair.a.another(&Options::default(), Some(&cq), Some(&cq));
    let to = pair.b.another(&Options::default(), Some(&other), Some(&other));
    pair.join(&from, &to);
    let (source, target) = (pair.a.filled(400_000, 1), pair.b.buffer(400_000));
    for size in [10, 400_000] {
        to.post_receive(&one(1, &target, 400_000)).unwrap();
        pair.settle();
        from.progress();
        from.post_send(&one(2, &source, size)).unwrap();
        let (mut sent, mut received) = (false, false);
        pair.until("both", || {
            if let Some((vi, queue)) = cq.poll() {
                assert_eq!(queue, Queue::Send);
                assert_eq!(vi.poll_send().unwrap().len as usize, size);
                sent = true;
            }
            if let Some((vi, _)) = other.poll() {
                assert_eq!(vi.poll_receive().unwrap().len as usize, size);
                received = true;
            }
            (sent && received).then_some(())
        });
    }
    // The end of the connection comes as flushed descriptors.
    to.post_receive(&one(1, &target, 8)).unwrap();
    drop(from);
    let (vi, queue) = other.wait(soon()).unwrap();
    assert_eq!(queue, Queue::Receive);
    assert!(vi.poll_receive().unwrap().status.has(Status::FLUSHED));
}

pub fn waiting_threads_are_woken(fixture: Fixture) {
    let pair = pair(fixture);
    let cq = pair.b.nic.create_cq(10).unwrap();
    let (from, to) =
        (pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, Some(&cq)));
    pair.join(&from, &to);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    let timed_out = Barrier::new(3);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            assert!(matches!(cq.wait(in_ms(1)), Err(Error::TimedOut)));
            timed_out.wait();
            let (vi, _) = cq.wait(soon()).unwrap();
            vi.poll_receive().unwrap()
        });
        let other = scope.spawn(|| {
            assert!(matches!(pair.b.vi.wait_receive(in_ms(1)), Err(Error::TimedOut)));
            timed_out.wait();
            pair.b.vi.wait_receive(soon()).unwrap()
        });
        timed_out.wait();
        thread::sleep(Duration::from_millis(30));
        // Posting goes on beside a wait.
        to.post_receive(&one(5, &target, 8)).unwrap();
        pair.b.vi.post_receive(&one(6, &target, 8)).unwrap();
        pair.settle();
        from.post_send(&one(1, &source, 8)).unwrap();
        pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
        while !waiting.is_finished() || !other.is_finished() {
            pair.a.nic.node().progress();
        }
        assert_eq!((waiting.join().unwrap().token, other.join().unwrap().token), (5, 6));
    });
}

pub fn waits_see_the_end(fixture: Fixture) {
    let pair = pair(fixture);
    let target = pair.b.buffer(8);
    pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pair.b.vi.wait_receive(soon()).unwrap());
        thread::sleep(Duration::from_millis(20));
        pair.a.vi.disconnect().unwrap();
        while !waiting.is_finished() {
            pair.a.nic.node().progress();
        }
        assert!(waiting.join().unwrap().status.has(Status::FLUSHED));
    });
    assert_eq!(pair.b.vi.state(), ViState::Error);
}

pub fn callbacks_are_called(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    let (told, tells) = mpsc::channel();
    let again = told.clone();
    pair.b.vi.notify(Queue::Receive, Box::new(move |_, done| told.send(done.token).unwrap())).unwrap();
    pair.a.vi.notify(Queue::Send, Box::new(move |_, done| again.send(done.token).unwrap())).unwrap();
    pair.b.vi.post_receive(&one(3, &target, 8)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(4, &source, 8)).unwrap();
    let mut tokens = [(); 2].map(|()| tells.recv_timeout(PATIENCE).expect("a call"));
    tokens.sort();
    assert_eq!(tokens, [3, 4]);

    let cq = pair.b.nic.create_cq(10).unwrap();
    let (from, to) =
        (pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, Some(&cq)));
    pair.join(&from, &to);
    let (told, tells) = mpsc::channel();
    let callback = move |vi: sidestep_vi::Vi, queue| told.send((vi.poll_receive().unwrap().token, queue)).unwrap();
    cq.notify(Box::new(callback)).unwrap();
    to.post_receive(&one(7, &target, 8)).unwrap();
    pair.settle();
    from.post_send(&one(4, &source, 8)).unwrap();
    assert_eq!(tells.recv_timeout(PATIENCE), Ok((7, Queue::Receive)));
}

pub fn errors_are_reported(fixture: Fixture) {
    let pair = pair(fixture);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    pair.b.nic.set_error_handler(Some(Arc::new(move |event| sink.lock().unwrap().push(event.code)))).unwrap();
    let source = pair.a.filled(8, 1);
    pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
    pair.until("an error", || seen.lock().unwrap().contains(&ErrorCode::ReceiveQueueEmpty).then_some(()));
    for vi in [&pair.a.vi, &pair.b.vi] {
        pair.until("the end", || (vi.state() == ViState::Error).then_some(()));
        vi.disconnect().unwrap();
    }
    pair.join(&pair.a.vi, &pair.b.vi);
    pair.a.vi.disconnect().unwrap();
    pair.until("an error", || seen.lock().unwrap().contains(&ErrorCode::ConnectionLost).then_some(()));
}

/// The connection is lost amid an RDMA write that the target carries out: both sides hear of it, and in which operation.
pub fn lost_rdma_is_reported(fixture: Fixture) {
    const LEN: usize = 4 << 20;
    for target_dies in [false, true] {
        let pair = pair(fixture);
        let events = [&pair.a, &pair.b].map(|side| {
            let events = Arc::new(Mutex::new(Vec::new()));
            let sink = events.clone();
            side.nic.set_error_handler(Some(Arc::new(move |event| sink.lock().unwrap().push(*event)))).unwrap();
            events
        });
        // The peer has not been told of it: its owner places the bytes, and they are more than the ring holds.
        let (source, target) = (pair.a.filled(LEN, 1), pair.b.buffer(LEN));
        pair.a.vi.post_send(&one(7, &source, LEN).write_to(target.address(), target.handle())).unwrap();
        // Only the target's side is driven here: the write is to be under way when the connection ends. Both service threads look
        // now and then, so it may also have ended by then.
        let deadline = soon();
        while contents(&target, 0, 8) == [0; 8] {
            pair.b.nic.node().progress();
            pair.b.vi.progress();
            assert!(Some(clock::now()) < deadline, "no byte of the write arrived");
        }
        let heard = |side: usize, code: ErrorCode| {
            events[side].lock().unwrap().iter().find(|event| event.code == code).copied()
        };
        if target_dies {
            pair.b.vi.disconnect().unwrap();
            if !pair.sent(&pair.a.vi).status.is_error() {
                continue; // all of it was taken before
            }
            let event = pair.until("an error", || heard(0, ErrorCode::RdmaTransport));
            assert_eq!(
                (event.operation, event.resource, event.token),
                (Status::OP_RDMA_WRITE, Resource::Descriptor, 7)
            );
            pair.until("an error", || heard(0, ErrorCode::ConnectionLost));
        } else {
            pair.a.vi.disconnect().unwrap();
            let lost = pair.until("an error", || heard(1, ErrorCode::ConnectionLost));
            assert_eq!((lost.operation, lost.vi), (Status(0), Some(pair.b.vi.id())));
            // The write's last word is placed last. The initiator may have gone after its last byte and before the answer: then
            // its descriptor fails, and the target has carried out a whole write.
            let is_whole = contents(&target, LEN - 8, 8) == contents(&source, LEN - 8, 8);
            let abort = heard(1, ErrorCode::RdmaWriteAbort).map(|event| (event.operation, event.resource));
            assert_eq!(abort, (!is_whole).then_some((Status::OP_REMOTE_RDMA_WRITE, Resource::Vi)));
            assert!(pair.sent(&pair.a.vi).status.is_error() || is_whole);
        }
    }
}

pub fn a_descriptor_tells(fixture: Fixture) {
    let pair = apart(fixture);
    let cq = pair.b.nic.create_cq(10).unwrap();
    let (from, to) =
        (pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, Some(&cq)));
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    for token in 0..4 {
        to.post_receive(&one(token, &target, 8)).unwrap();
    }
    pair.join(&from, &to);
    let descriptor = cq.descriptor().unwrap();
    pair.settle();
    while cq.poll().is_some() {}
    for _ in 0..3 {
        from.post_send(&one(1, &source, 8)).unwrap();
        let found = pair.until("readiness", || {
            let mut set = [PollFd::new(&descriptor, PollFlags::IN)];
            let ready = poll(&mut set, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 })).unwrap();
            if ready > 0 { cq.poll() } else { None }
        });
        assert!(found.0.poll_receive().is_some());
    }
}
