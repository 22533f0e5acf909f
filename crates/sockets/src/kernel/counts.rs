//! What the kernel counts of a connection.

use super::{
    Errno, Result, ask, read_option,
    socket::{TCP_CLOSE, TCP_CLOSE_WAIT, TCP_CLOSING, TCP_LAST_ACK, TCP_TIME_WAIT},
};

/// Bytes read from and written to a connection, as the program's calls should have counted them. `None`: bytes came at each
/// look, and so it is not known how many of them were read.
pub fn of(fd: i32) -> Result<Option<(u64, u64)>> {
    let mut before = Info::of(fd)?;
    for _ in 0..LOOKS {
        let unread = ask(fd, libc::FIONREAD)? as u64;
        let after = Info::of(fd)?;
        // What came between the two belongs to one of the numbers only.
        if after.received == before.received {
            return Ok(Some((after.received.saturating_sub(unread), after.sent)));
        }
        before = after;
    }
    Ok(None)
}

/// Bytes that have come over a connection, whoever has read them.
pub fn received(fd: i32) -> Result<u64> {
    Info::of(fd).map(|info| info.received)
}

struct Info {
    received: u64,
    sent: u64,
}

impl Info {
    fn of(fd: i32) -> Result<Info> {
        let mut info = [0u8; 256];
        let len = read_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
        if len < BYTES_SENT + 8 {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let word = |at: usize| u64::from_ne_bytes(info[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u64::from(u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes")));
        // A FIN that has come counts as one byte.
        let ended = matches!(info[0], TCP_CLOSE_WAIT | TCP_LAST_ACK | TCP_CLOSING | TCP_TIME_WAIT | TCP_CLOSE);
        Ok(Info {
            received: word(BYTES_RECEIVED).saturating_sub(u64::from(ended)),
            sent: word(BYTES_SENT).saturating_sub(word(BYTES_RETRANS)) + half(NOTSENT_BYTES),
        })
    }
}

/// Looks before it is given up for now.
const LOOKS: u32 = 8;

// Offsets in `struct tcp_info`.
const BYTES_RECEIVED: usize = 128;
const NOTSENT_BYTES: usize = 144;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
        thread,
    };

    use super::*;

    #[test]
    fn bytes_that_come_while_it_looks_are_not_taken_for_read_ones() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut reader = listener.accept().unwrap().0;
        writer.set_nodelay(true).unwrap();
        let writing = thread::spawn(move || (0..50_000).for_each(|_| writer.write_all(b"some more").unwrap()));
        let mut bytes = [0; 4096];
        let (mut read, mut known) = (0, 0);
        loop {
            let count = reader.read(&mut bytes).unwrap();
            if count == 0 {
                break;
            }
            read += count as u64;
            if let Some(counts) = of(reader.as_raw_fd()).unwrap() {
                assert_eq!(counts, (read, 0));
                known += 1;
            }
        }
        assert!(known > 0);
        writing.join().unwrap();
    }
}
