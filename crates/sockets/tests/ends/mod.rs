//! A connection whose two ends are in one process.

use std::{
    net::{TcpListener, TcpStream},
    os::fd::IntoRawFd,
};

use sidestep_sockets::calls;

/// Two ends of a connection, both of this process.
pub fn pair() -> [i32; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (server, _) = listener.accept().expect("a connection");
    let ends = [client.into_raw_fd(), server.into_raw_fd()];
    calls::made(ends[0], false);
    calls::connected(ends[0]);
    calls::accepted(ends[1], false);
    ends
}
