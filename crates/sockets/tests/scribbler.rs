//! A peer process that has been promoted like any other, and then writes garbage over all the memory that it shares, for as
//! long as it lives. Our end may lose that connection; its calls come back, it does not crash, and its other connections
//! are as they were.

use std::{
    fs::{File, read_to_string},
    io::{IoSlice, IoSliceMut},
    net::{TcpListener, TcpStream},
    os::{fd::IntoRawFd, unix::fs::FileExt},
    thread,
    time::{Duration, Instant},
};

use sidestep_sockets::{Errno, calls, kernel};
use sidestep_testkit::{
    process::{Child, PATIENCE, Role, enter, full, seed},
    sockets::judge::Random,
};

#[test]
fn role() {
    enter(&[("scribbler", scribble)]);
}

#[test]
fn a_process_that_scribbles_over_what_it_shares_harms_itself_only() {
    let seed = seed();
    println!("SIDESTEP_SEED={seed}");
    for round in 0..if full() { 60 } else { 6 } {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let mut child = Child::start("scribbler", &[&port, &(seed ^ round).to_string()]);
        let ours = listener.accept().unwrap().0.into_raw_fd();
        calls::accepted(ours, false);
        for _ in 0..EXCHANGES {
            assert_eq!(receive(ours, 4, libc::MSG_WAITALL), Ok(b"ping".to_vec()));
            assert_eq!(send(ours, b"pong", 0), Ok(4));
        }
        assert_eq!(calls::paths(ours), Some((true, true)), "not promoted");
        let other = honest_pair();
        child.control.say("go");
        let sleeper = thread::spawn(move || while matches!(receive(ours, 5000, 0), Ok(bytes) if !bytes.is_empty()) {});
        let end = Instant::now() + Duration::from_millis(250);
        while Instant::now() < end {
            let mut entry = [libc::pollfd { fd: ours, events: libc::POLLIN | libc::POLLOUT, revents: 0 }];
            let _ = calls::poll(&mut entry, Some(Duration::from_millis(1)), None);
            let _ = receive(ours, 3000, libc::MSG_DONTWAIT);
            let _ = receive(ours, 70_000, libc::MSG_DONTWAIT | libc::MSG_PEEK);
            let _ = send(ours, &[7; 9000], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
            let _ = calls::readable_bytes(ours);
            exchange(other);
        }
        child.kill();
        child.wait();
        let end = Instant::now() + PATIENCE;
        while !sleeper.is_finished() {
            assert!(Instant::now() < end, "a call does not end although its peer is dead");
            thread::sleep(Duration::from_millis(1));
        }
        calls::close(ours).unwrap();
        exchange(other);
        calls::close(other.0).unwrap();
        calls::close(other.1).unwrap();
    }
}

/// The hostile process.
fn scribble(role: Role) {
    let stream = TcpStream::connect(("127.0.0.1", role.number(0) as u16)).unwrap();
    stream.set_nodelay(true).unwrap();
    let fd = stream.into_raw_fd();
    calls::made(fd, false);
    calls::connected(fd);
    for _ in 0..EXCHANGES {
        assert_eq!(send(fd, b"ping", 0), Ok(4));
        assert_eq!(receive(fd, 4, libc::MSG_WAITALL), Ok(b"pong".to_vec()));
    }
    let mut random = Random::new(role.number(1));
    // Sometimes everything, sometimes the control words at the beginning of each page only.
    let (whole, bulk) = (random.one_in(2), random.one_in(3));
    let shared = shared_memory();
    assert!(!shared.is_empty(), "nothing is shared");
    let memory = File::options().write(true).open("/proc/self/mem").expect("the memory of this process");
    role.control.hear();
    loop {
        let (begin, end) = random.of(&shared);
        let page = begin + random.below((end - begin) / 4096) * 4096;
        let at = page + random.below(if whole { 512 } else { 32 }) * 8;
        let value = match random.below(4) {
            0 => random.number(),
            1 => random.below(1 << 20),
            2 => random.below(16) << 8 | random.below(16),
            _ => 1 << random.below(64),
        };
        let _ = memory.write_at(&value.to_le_bytes(), at);
        if bulk && random.one_in(16) {
            let _ = memory.write_at(&[value as u8; 4096], page);
        }
        if random.one_in(64) {
            let _ = kernel::send(fd, &[IoSlice::new(&value.to_le_bytes())], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        }
    }
}

/// Mappings of memory that came from, or went to, another process.
fn shared_memory() -> Vec<(u64, u64)> {
    let maps = read_to_string("/proc/self/maps").expect("the mappings of this process");
    let shared = maps.lines().filter(|line| line.contains("/memfd:") && line.contains(" rw-s "));
    shared
        .filter_map(|line| {
            let (begin, end) = line.split(' ').next()?.split_once('-')?;
            Some((u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
        })
        .collect()
}

/// Two ends in this process, promoted.
fn honest_pair() -> (i32, i32) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    let pair = (client.into_raw_fd(), listener.accept().unwrap().0.into_raw_fd());
    calls::made(pair.0, false);
    calls::connected(pair.0);
    calls::accepted(pair.1, false);
    (0..EXCHANGES).for_each(|_| exchange(pair));
    assert_eq!(calls::paths(pair.0), Some((true, true)), "not promoted");
    pair
}

fn exchange((client, server): (i32, i32)) {
    for (from, to) in [(client, server), (server, client)] {
        assert_eq!(send(from, b"steady as she goes", 0), Ok(18));
        assert_eq!(receive(to, 18, libc::MSG_WAITALL), Ok(b"steady as she goes".to_vec()));
    }
}

fn send(fd: i32, bytes: &[u8], flags: i32) -> Result<usize, Errno> {
    calls::send(fd, &[IoSlice::new(bytes)], flags)
}

fn receive(fd: i32, len: usize, flags: i32) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; len];
    let count = calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], flags)?;
    assert!(count <= len);
    bytes.truncate(count);
    Ok(bytes)
}

/// Enough for a promotion.
const EXCHANGES: usize = 1000;
