//! Which connections are offered: one with a second exchange is, one that its program has shut down is not.

mod ends;

use std::{
    ffi::OsStr,
    io::{IoSlice, IoSliceMut},
};

use ends::pair;
use sidestep_sockets::{calls, config::config, registry::Registry};
use sidestep_testkit::process::{Child, Folder, enter};

#[test]
fn role() {
    enter(&[("offers", |_| offers())]);
}

#[test]
fn a_connection_that_was_shut_down_is_not_offered() {
    let folder = Folder::new("offers");
    Child::start_with("offers", &[], &[("SIDESTEP_DIR", OsStr::new(folder.path()))]).wait_success();
}

fn offers() {
    let [client, server] = pair();
    exchange(client, server);
    exchange(client, server);
    assert!(is_known(server), "a second exchange makes an offer");
    // As a server that answers once per connection: it says that this was all, and reads until the other end has closed.
    let [client, server] = pair();
    exchange(client, server);
    calls::shutdown(server, libc::SHUT_WR).expect("it is connected");
    for _ in 0..3 {
        assert_eq!(calls::send(client, &[IoSlice::new(b"x")], 0), Ok(1));
        assert_eq!(receive(server), 1);
    }
    calls::close(client).expect("it is open");
    assert_eq!((receive(server), receive(server)), (0, 0));
    assert!(!is_known(server), "its last turn is over");
}

fn exchange(client: i32, server: i32) {
    for (from, to) in [(client, server), (server, client)] {
        assert_eq!(calls::send(from, &[IoSlice::new(b"ping")], 0), Ok(4));
        assert_eq!(receive(to), 4);
    }
}

fn receive(fd: i32) -> usize {
    let mut bytes = [0; 16];
    calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], 0).expect("a connection")
}

/// Whether the registry has the socket with this number.
fn is_known(fd: i32) -> bool {
    let Some(registry) = Registry::look(&config().directory) else { return false };
    registry.sockets().iter().any(|socket| socket.fd == fd as u32)
}
