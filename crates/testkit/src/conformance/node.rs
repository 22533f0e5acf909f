//! A node with several links: names pick the link, and everything else is one. A node with one link passes, too.

use sidestep_fabric::{
    Channel, ChannelOptions, CloseReason, Endpoint, Error, EventQueue, Listener, Node, PeerId, link::SCHEMES,
    queue::Kind,
};

use super::{
    fixture::{Fixture, unique_name},
    nodes::{Pair, connect_to, drive, nodes, soon},
};

/// A connection on every link of two nodes, from this one on.
fn on_links(a: &Node, b: &Node, first: usize) -> Vec<(Endpoint, Endpoint, Listener)> {
    let connect = |scheme| {
        let name = format!("{scheme}:{}", unique_name());
        let listener = b.listen(&name).expect("a name that is free");
        let (to_b, to_a) = connect_to(a, b, &listener, &name);
        (to_b, to_a, listener)
    };
    b.schemes().skip(first).map(connect).collect()
}

/// The scheme of a name picks the link: the same name on two links is two names, and each peer is of its link.
pub fn the_scheme_picks_the_link(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let (a, b, local) = (&two[0], &two[1], unique_name());
    let names: Vec<_> = b.schemes().map(|scheme| format!("{scheme}:{local}")).collect();
    let listeners: Vec<_> = names.iter().map(|name| b.listen(name).expect("a name that is free")).collect();
    let mut peers: Vec<PeerId> = Vec::new();
    for (which, name) in names.iter().enumerate() {
        let end = a.begin_connect(name, name.as_bytes()).expect("someone who listens");
        let request = drive(&[a, b], "a request", || listeners[which].poll());
        assert_eq!(request.private(), name.as_bytes());
        assert!(listeners.iter().all(|other| other.poll().is_none()), "a request came over another link");
        let link = b.capabilities(name.split(':').next().expect("a scheme")).expect("a link of the node");
        let peer = b.peer(request.peer().expect("someone who asks"));
        assert_eq!((peer.is_distant(), peer.is_served()), (link.distant, link.served));
        request.accept(b"").expect("a peer that waits").close();
        assert!(!peers.contains(&end.peer()), "two links know a peer by one id");
        peers.push(end.peer());
    }
    drop(listeners);
    for name in &names {
        b.listen(name).expect("a name that is free again");
    }
}

/// A scheme that no link has is an error that says which there are.
pub fn an_unknown_scheme_is_a_clear_error(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    let known: Vec<_> = node.schemes().collect();
    let other = SCHEMES.into_iter().find(|scheme| !known.contains(scheme));
    for scheme in ["nowhere", "", &known[0].to_uppercase()].into_iter().chain(other) {
        let name = format!("{scheme}:{}", unique_name());
        let expected = Error::Scheme { scheme: scheme.into(), known: known.join(", ").into() };
        assert_eq!(node.listen(&name).err(), Some(expected.clone()));
        assert_eq!(node.begin_connect(&name, b"").err(), Some(expected.clone()));
        assert_eq!(node.capabilities(scheme).err(), Some(expected.clone()));
        let said = expected.to_string();
        assert!(known.iter().all(|scheme| said.contains(scheme)), "{said}");
    }
}

/// Peers of all links report to one event queue, and a wait for it ends whichever link has news.
pub fn peers_of_all_links_report_to_one_event_queue(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let ends = on_links(&two[0], &two[1], 0);
    let queue = EventQueue::new(&two[1]);
    for (which, (_, to_a, _)) in ends.iter().enumerate() {
        queue.attach_endpoint(to_a, which as u64);
    }
    for round in 0..20u8 {
        for (to_b, ..) in &ends {
            to_b.post(&[round]).expect("an open connection");
        }
        let mut heard = vec![false; ends.len()];
        while heard.contains(&false) {
            let event = drive(&[&two[0], &two[1]], "an event", || queue.poll());
            let which = event.token as usize;
            if let Some(message) = ends[which].1.poll_message().expect("an open connection") {
                assert_eq!(message, [round]);
                assert!(!std::mem::replace(&mut heard[which], true), "one message twice");
            }
        }
    }
}

/// All links carry messages at once, in order on each.
pub fn all_links_carry_messages_at_once(fixture: Fixture) {
    const COUNT: u32 = 500;
    let two = nodes(fixture, 2);
    let options = ChannelOptions { capacity: 4096, kind: Kind::Stream };
    let names: Vec<_> = two[1].schemes().map(|scheme| format!("{scheme}:{}", unique_name())).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let listener = two[1].listen(name).expect("a name that is free");
            let a = &two[0];
            scope.spawn(move || {
                let mut channel = Channel::connect(a, name, options, b"", soon()).expect("someone who accepts");
                for number in 0..COUNT {
                    channel.sender.send(&number.to_le_bytes(), soon()).expect("an open channel");
                    let mut echo = [0; 4];
                    receive_all(&mut channel, &mut echo);
                    assert_eq!(u32::from_le_bytes(echo), !number);
                }
            });
            scope.spawn(move || {
                let request = listener.wait(soon()).expect("a request");
                let mut channel = Channel::accept(request, options, b"", soon()).expect("a request for a channel");
                for number in 0..COUNT {
                    let mut bytes = [0; 4];
                    receive_all(&mut channel, &mut bytes);
                    assert_eq!(u32::from_le_bytes(bytes), number);
                    channel.sender.send(&(!number).to_le_bytes(), soon()).expect("an open channel");
                }
                let _ = channel.endpoint.wait_closed(soon());
            });
        }
    });
}

fn receive_all(channel: &mut Channel, into: &mut [u8]) {
    let mut have = 0;
    while have < into.len() {
        have += channel.receiver.receive(&mut into[have..], soon()).expect("an open channel");
    }
}

/// A thread that sleeps is woken by news of every link.
pub fn a_sleeper_is_woken_by_every_link(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let ends = on_links(&two[0], &two[1], 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20u8 {
                for (_, to_a, _) in &ends {
                    assert_eq!(to_a.wait_message(soon()), Ok(vec![round]));
                    to_a.post(&[!round]).expect("an open connection");
                }
            }
        });
        for round in 0..20u8 {
            for (to_b, ..) in &ends {
                to_b.post(&[round]).expect("an open connection");
                assert_eq!(to_b.wait_message(soon()), Ok(vec![!round]));
            }
        }
    });
}

/// The death of a peer on one link ends its connections there, and none on the others.
pub fn a_death_on_one_link_leaves_the_others(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let others = on_links(&pair.a, &pair.b, 1);
    pair.kill_b();
    let (error, _) = pair.until("the end of a connection", || pair.to_b.closed());
    assert!(matches!(error, Error::Closed(CloseReason::Died)), "{error:?}");
    for (to_b, to_a, _) in &others {
        to_b.post(b"still here").expect("an open connection");
        let message = pair.until("a message", || to_a.poll_message().expect("an open connection"));
        assert_eq!(message, b"still here");
        assert!(to_b.closed().is_none());
    }
}

/// A peer that has something to say at every poll does not hide that another one, on another link, has died.
pub fn a_busy_link_hides_no_death(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let others = on_links(&pair.a, &pair.b, 1);
    pair.kill_b();
    let (error, _) = pair.until("the end of a connection", || {
        for (to_b, to_a, _) in &others {
            match to_a.post(b"news") {
                Ok(()) | Err(Error::Full { .. }) => {}
                Err(error) => panic!("the other link stands: {error}"),
            }
            while to_b.poll_message().expect("an open connection").is_some() {}
        }
        pair.to_b.closed()
    });
    assert!(matches!(error, Error::Closed(CloseReason::Died)), "{error:?}");
}
