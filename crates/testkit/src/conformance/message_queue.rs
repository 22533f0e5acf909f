//! Message queues of slots, and channels as a whole.

use sidestep_fabric::{Channel, ChannelOptions, Error, channel::private_of, queue::Kind};

use super::{
    fixture::Fixture,
    nodes::{Pair, drive, name_on, nodes, pattern, soon},
    stream::{Channels, small},
};

/// Messages arrive whole and in order, of any size up to the slot's.
pub fn messages_arrive_whole(fixture: Fixture) {
    let mut channels = Channels::new(fixture, slots(2048, 256), slots(2048, 256));
    let Channels { a, b, .. } = &mut channels;
    let (sender, receiver) = (&mut a.sender, &mut b.receiver);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..500u64 {
                sender.send_message(&pattern(number as usize % 249, number), soon()).expect("an open connection");
            }
        });
        let mut buffer = [0; 248];
        for number in 0..500u64 {
            let len = receiver.receive_message(&mut buffer, soon()).expect("an open connection");
            assert!(buffer[..len] == pattern(number as usize % 249, number), "message {number} of {len} bytes");
        }
    });
}

/// A message that is larger than a slot is refused; the queue goes on.
pub fn a_large_message_is_refused(fixture: Fixture) {
    let mut channels = Channels::new(fixture, slots(1024, 128), slots(1024, 128));
    assert!(channels.a.sender.try_send_message(&[1; 121]).is_err());
    assert_eq!(channels.a.sender.try_send_message(&[2; 120]), Ok(true));
    let mut buffer = [0; 120];
    let len = channels.until("a message", |channels| {
        channels.b.receiver.try_receive_message(&mut buffer).expect("an open connection")
    });
    assert_eq!(buffer[..len], [2; 120]);
}

/// A message for which the receiver's buffer is too small is not lost.
pub fn a_small_buffer_loses_nothing(fixture: Fixture) {
    let mut channels = Channels::new(fixture, slots(1024, 128), slots(1024, 128));
    channels.a.sender.send_message(&[3; 100], soon()).expect("an empty ring");
    let mut buffer = [0; 120];
    channels.until("a message", |channels| match channels.b.receiver.try_receive_message(&mut buffer[..10]) {
        Ok(None) => None,
        Ok(Some(len)) => panic!("a message of 100 bytes was put into 10, as {len}"),
        Err(_) => Some(()),
    });
    assert_eq!(channels.b.receiver.try_receive_message(&mut buffer), Ok(Some(100)));
    assert_eq!(buffer[..100], [3; 100]);
}

/// With no slot free nothing is sent; a slot that is taken out is free again.
pub fn a_full_queue_takes_no_more(fixture: Fixture) {
    let mut channels = Channels::new(fixture, slots(1024, 128), slots(1024, 128));
    for number in 0..8 {
        assert_eq!(channels.a.sender.try_send_message(&[number]), Ok(true));
    }
    assert_eq!(channels.a.sender.try_send_message(&[8]), Ok(false));
    let mut buffer = [0; 120];
    for number in 0..8 {
        channels.until("a message", |channels| {
            channels.b.receiver.try_receive_message(&mut buffer).expect("an open connection")
        });
        assert_eq!(buffer[0], number);
    }
    channels.until("a slot", |channels| {
        channels.a.sender.try_send_message(&[9]).expect("an open connection").then_some(())
    });
}

/// Many messages can be published at once.
pub fn one_publish_covers_many(fixture: Fixture) {
    let mut channels = Channels::new(fixture, slots(1024, 128), slots(1024, 128));
    for number in 0..5 {
        assert_eq!(channels.a.sender.push_message(&[number]), Ok(true));
    }
    let mut buffer = [0; 120];
    for _ in 0..50 {
        channels.progress();
        assert_eq!(channels.b.receiver.try_receive_message(&mut buffer), Ok(None));
    }
    channels.a.sender.publish().expect("an open connection");
    for number in 0..5 {
        channels.until("a message", |channels| {
            channels.b.receiver.try_receive_message(&mut buffer).expect("an open connection")
        });
        assert_eq!(buffer[0], number);
    }
}

/// A stream takes no messages, and a queue of slots no streams; the two directions need not agree.
pub fn each_direction_has_its_kind(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), slots(1024, 128));
    let unsupported = |outcome: Result<usize, Error>| matches!(outcome, Err(Error::Unsupported(_)));
    assert!(unsupported(channels.a.sender.try_send(b"x")));
    assert!(unsupported(channels.b.sender.try_send_message(b"x").map(usize::from)));
    assert!(unsupported(channels.b.receiver.try_receive(&mut [0])));
    assert!(unsupported(channels.a.receiver.try_receive_message(&mut [0]).map(|_| 0)));
    channels.a.sender.send_message(b"message", soon()).expect("an empty ring");
    channels.b.sender.send(b"stream", soon()).expect("an empty ring");
    let (mut message, mut stream) = ([0; 120], [0; 6]);
    let len = channels.until("a message", |channels| {
        channels.b.receiver.try_receive_message(&mut message).expect("an open connection")
    });
    assert_eq!(message[..len], *b"message");
    channels.until("bytes", |channels| (channels.a.receiver.available() == Ok(6)).then_some(()));
    assert_eq!(channels.a.receiver.try_receive(&mut stream), Ok(6));
    assert_eq!(&stream, b"stream");
}

/// A channel carries private data of its own beside what it needs.
pub fn a_channel_carries_private_data(fixture: Fixture) {
    let channels = Channels::new(fixture, small(1024), small(1024));
    assert_eq!((channels.a.private(), channels.b.private()), (b"to a".to_vec(), b"to b".to_vec()));
    let two = nodes(fixture, 2);
    let name = name_on(&two[1]);
    let listener = two[1].listen(&name).expect("a name that is free");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = listener.wait(soon()).expect("a request");
            assert_eq!(private_of(&request), b"who I am");
            request.refuse(b"not you").expect("a peer that waits");
        });
        let refused = Channel::connect(&two[0], &name, small(1024), b"who I am", soon()).err();
        assert_eq!(refused, Some(Error::Refused { private: b"not you".to_vec() }));
    });
}

/// A request that is none for a channel is refused.
pub fn a_request_for_something_else_is_refused(fixture: Fixture) {
    let pair = Pair::new(fixture);
    for private in [&b""[..], b"nothing like a queue", &[0; 100]] {
        let asking = pair.a.begin_connect(&pair.name, private).expect("someone who listens");
        let request = pair.until("a request", || pair.listener.poll());
        assert!(Channel::accept(request, small(1024), b"", soon()).is_err());
        let error = drive(&[&pair.a, &pair.b], "an answer", || asking.is_connected().err());
        assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    }
}

/// Blocks are used again, and nothing of the former connection is seen in the next.
pub fn blocks_are_used_again_clean(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let name = name_on(&two[1]);
    let listener = two[1].listen(&name).expect("a name that is free");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..30u8 {
                let request = listener.wait(soon()).expect("a request");
                let mut channel = Channel::accept(request, small(256), b"", soon()).expect("a channel");
                let mut got = [0; 100];
                channel.receiver.receive_exact(&mut got, soon()).expect("bytes in time");
                assert_eq!(got, [round; 100]);
                channel.sender.send(&[!round; 200], soon()).expect("space in time");
                let _ = channel.endpoint.wait_closed(soon()).expect("an end");
            }
        });
        for round in 0..30u8 {
            let mut channel = Channel::connect(&two[0], &name, small(256), b"", soon()).expect("a channel");
            channel.sender.send(&[round; 100], soon()).expect("space in time");
            // Half of the answer stays unread.
            let mut got = [0; 100];
            channel.receiver.receive_exact(&mut got, soon()).expect("bytes in time");
            assert_eq!(got, [!round; 100]);
        }
    });
}

fn slots(capacity: usize, stride: u32) -> ChannelOptions {
    ChannelOptions { capacity, kind: Kind::Slots(stride) }
}
