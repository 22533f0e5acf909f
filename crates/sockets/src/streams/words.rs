//! What a stream keeps in its record: where its bytes go, how many went where, and the options of its open file.

use std::{sync::atomic::Ordering, time::Duration};

use sidestep_stream::record::{Direction, Holder, Record};

use super::{READ, Stage, Stream, WRITE};
use crate::{kernel, processes::custody};

/// The place of this process among the holders of a record that it has alone.
pub(super) fn own() -> Holder {
    Holder::FIRST
}

/// A direction, as the record names it.
fn way(direction: usize) -> Direction {
    if direction == READ { Direction::Read } else { Direction::Write }
}

impl Stream {
    /// The words that decide where its bytes go.
    #[inline]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Whether a direction is on its carrier. One that writes has left it when the reader can know.
    #[inline]
    pub fn on_ring(&self, direction: usize) -> bool {
        match direction {
            READ => self.record.reading().is_within(),
            _ => !self.record.writing().is_on_tcp(),
        }
    }

    /// Bytes of a direction that went over TCP: what this process has counted alone, and what its family has.
    #[inline]
    pub fn over_tcp(&self, direction: usize) -> u64 {
        self.own_tcp(direction).wrapping_add(self.family_tcp(direction))
    }

    fn own_tcp(&self, direction: usize) -> u64 {
        match direction {
            READ => self.record.reading().tcp_taken(),
            _ => self.record.writing().tcp_sent(),
        }
    }

    fn family_tcp(&self, direction: usize) -> u64 {
        self.family.tally().map_or(0, |tally| custody::counted(tally, direction))
    }

    /// A call that the engine has no part in has carried so many bytes, of which others will want to know.
    pub fn count_alone(&self, direction: usize, bytes: usize) {
        if self.family.tally().is_some() {
            self.count_tcp(direction, bytes as u64);
        }
    }

    /// Other processes will move bytes, too: what was counted is the family's, and so is what follows.
    pub fn count_in_family(&self, cookie: u64) {
        if self.family.tally().is_some() {
            return;
        }
        // Where a stream is on its carrier or will be is told by both counts together. None gets a carrier meanwhile: the caller has the
        // lock of the table.
        let _both = (self.stage() == Stage::Carried).then(|| (self.reader(), self.writer()));
        let Some(tally) = custody::tally(cookie) else { return };
        self.family.set_tally(Some(tally));
        // A call that has looked before this may still count in the record: both are added up.
        custody::count(tally, READ, self.record.reading().hand_over());
        custody::count(tally, WRITE, self.record.writing().hand_over());
    }

    /// Bytes of a direction that went over carriers which were given up.
    #[inline]
    pub fn over_former(&self, direction: usize) -> u64 {
        match direction {
            READ => self.record.reading().former(),
            _ => self.record.writing().former(),
        }
    }

    /// A carrier was given up, of which so much was used.
    pub(super) fn count_former(&self, direction: usize, bytes: u64) {
        match direction {
            READ => self.record.reading().count_former(bytes as i64),
            _ => self.record.writing().count_former(bytes),
        }
    }

    /// The kernel has carried so many bytes of a direction.
    #[inline]
    pub(super) fn count_tcp(&self, direction: usize, bytes: u64) {
        if let Some(tally) = self.family.tally() {
            return custody::count(tally, direction, bytes);
        }
        match direction {
            READ => self.record.reading().count_taken(bytes),
            _ => self.record.writing().count_sent(bytes),
        }
    }

    /// Whether the calls that were seen here moved all the bytes that the kernel has moved. `None`: calls are under way, or bytes
    /// keep coming.
    pub fn counts_all_bytes(&self) -> kernel::Result<Option<bool>> {
        let own = || (self.over_tcp(READ), self.over_tcp(WRITE));
        let before = own();
        if kernel::counts::of(self.fd())? == Some(before) && own() == before {
            return Ok(Some(true));
        }
        // A call that the kernel has carried out and that has not counted yet makes a difference, too. None is under way while the
        // locks of both directions are free and nobody sits in the kernel; one that has come and gone meanwhile has counted.
        let Some(_both) = self.try_both() else { return Ok(None) };
        let is_quiet = || [READ, WRITE].iter().all(|direction| self.calls_in_kernel(*direction) == 0);
        let (was_quiet, before) = (is_quiet(), own());
        let Some(kernel) = kernel::counts::of(self.fd())? else { return Ok(None) };
        Ok((was_quiet && is_quiet() && own() == before).then_some(kernel == before))
    }

    /// The kernel has carried so many bytes of a direction from its beginning on. Under both locks, while no call is in the
    /// kernel for it.
    pub(super) fn recover_tcp(&self, direction: usize, bytes: u64) {
        let family = self.family_tcp(direction);
        if self.family.tally().is_some() && self.has_others() {
            // What the kernel has counted may be another's.
            return;
        }
        let bytes = bytes.max(self.over_tcp(direction)).wrapping_sub(family);
        match direction {
            READ => self.record.reading().recover(bytes),
            _ => self.record.writing().recover(bytes),
        }
    }

    /// The reading direction is open: its waits cover the carrier.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.record.reading().is_open()
    }

    /// Calls that sit in the kernel for a direction.
    pub fn calls_in_kernel(&self, direction: usize) -> u32 {
        self.record.shared().in_kernel(own(), way(direction))
    }

    /// One more does.
    pub fn enter_kernel(&self, direction: usize) {
        self.record.shared().enter_kernel(own(), way(direction));
    }

    /// One has come back. Returns how many were there with it.
    pub fn leave_kernel(&self, direction: usize) -> u32 {
        self.record.shared().leave_kernel(own(), way(direction))
    }

    /// O_NONBLOCK.
    #[inline]
    pub fn is_nonblocking(&self) -> bool {
        self.record.shared().is_nonblocking()
    }

    /// SO_RCVLOWAT.
    #[inline]
    pub fn low_water(&self) -> u32 {
        self.record.shared().low_water()
    }

    /// SO_RCVTIMEO or SO_SNDTIMEO in nanoseconds; 0: none.
    pub fn timeout(&self, direction: usize) -> u64 {
        self.record.shared().timeout(way(direction)).map_or(0, |time| time.as_nanos() as u64)
    }

    /// Sets that.
    pub fn set_timeout(&self, direction: usize, nanoseconds: u64) {
        self.record.shared().set_timeout(way(direction), Some(Duration::from_nanos(nanoseconds)));
    }

    /// The same from the value of SO_RCVTIMEO or SO_SNDTIMEO.
    pub fn set_timeout_option(&self, direction: usize, value: &[u8]) {
        let word = |at: usize| {
            value.get(at..at + 8).map_or(0, |bytes| i64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
        };
        let [seconds, micros] = [word(0), word(8)].map(|part| part.max(0) as u64);
        self.set_timeout(direction, seconds.saturating_mul(1_000_000_000).saturating_add(micros.saturating_mul(1000)));
    }

    /// In a forked child: what the parent's stream has counted, and the options of the open file.
    pub(super) fn inherit_words(&self, from: &Stream, carried: [u64; 2]) {
        for direction in [READ, WRITE] {
            self.count_tcp(direction, from.own_tcp(direction));
            self.count_former(direction, from.carried_bytes(direction, carried[direction]));
            self.set_timeout(direction, from.timeout(direction));
        }
        self.record.shared().set_low_water(from.low_water());
        self.family.set_tally(from.family.tally());
    }

    /// In a program that was executed with this socket: goes on where the one before was, whose family counts there. So much
    /// went over carriers.
    pub fn adopt(&self, fd: i32, tally: u32, former: [u64; 2]) {
        self.begin(fd, kernel::is_nonblocking(fd));
        self.set_inherited();
        self.family.set_tally(Some(tally));
        [READ, WRITE].iter().for_each(|direction| self.count_former(*direction, former[*direction]));
        self.origin.connected.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{IoSlice, Read},
        net::{TcpListener, TcpStream},
        os::fd::IntoRawFd,
        thread,
    };

    use crate::{calls, descriptors::table};

    const CALLS: usize = 100_000;

    #[test]
    fn a_call_that_ends_meanwhile_is_not_one_that_was_not_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let writing = TcpStream::connect(listener.local_addr().unwrap()).unwrap().into_raw_fd();
        let mut reading = listener.accept().unwrap().0;
        calls::made(writing, false);
        calls::connected(writing);
        let reader = thread::spawn(move || while reading.read(&mut [0; 4096]).unwrap() > 0 {});
        let writer = thread::spawn(move || {
            (0..CALLS).for_each(|_| assert_eq!(calls::send(writing, &[IoSlice::new(b"more")], 0), Ok(4)));
        });
        let stream = table::stream(writing).unwrap();
        while !writer.is_finished() {
            assert_ne!(stream.counts_all_bytes(), Ok(Some(false)));
        }
        writer.join().unwrap();
        assert_eq!(stream.counts_all_bytes(), Ok(Some(true)));
        calls::close(writing).unwrap();
        reader.join().unwrap();
    }
}
