//! What Linux permits: the state of a TCP connection as its two programs can see it, without time.
//!
//! The model knows what has been sent, received and ended. It gives the outcomes that a call may have once the bytes have
//! arrived; which of several partial results comes is not its business.

use super::driver::Answer;

/// A connection.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its ends.
    pub ends: [End; 2],
}

/// One end, as its program knows it.
#[derive(Debug, Clone)]
pub struct End {
    /// Bytes that its calls have taken.
    pub sent: u64,
    /// Bytes that its calls have given.
    pub received: u64,
    /// It has shut down its sending side.
    pub sends_no_more: bool,
    /// It has shut down its receiving side.
    pub reads_no_more: bool,
    /// Its descriptor is closed.
    pub closed: bool,
    /// The peer's FIN has come.
    pub peer_ended: bool,
    /// A reset has come.
    pub reset: bool,
    /// The error that the next call to ask will get.
    pub error: Option<i32>,
    /// The descriptor does not block.
    pub nonblocking: bool,
    /// SO_RCVLOWAT.
    pub low_water: u64,
    /// SO_RCVTIMEO, in milliseconds; 0 for none.
    pub timeout_ms: u64,
    /// Its place in its epoll set.
    pub interest: Option<Interest>,
}

/// What an epoll set keeps of an end.
#[derive(Debug, Clone, Copy)]
pub struct Interest {
    /// What was asked for, with the flags.
    pub events: u32,
    /// One-shot and fired.
    pub spent: bool,
    /// Edge-triggered: something has happened since the last look.
    pub fresh: bool,
}

/// What a call must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// A number of bytes in this range.
    Bytes(u64, u64),
    /// This error.
    Error(i32),
    /// It would wait.
    Waits,
}

impl Model {
    /// A fresh connection.
    pub fn new() -> Model {
        let end = End {
            sent: 0,
            received: 0,
            sends_no_more: false,
            reads_no_more: false,
            closed: false,
            peer_ended: false,
            reset: false,
            error: None,
            nonblocking: false,
            low_water: 1,
            timeout_ms: 0,
            interest: None,
        };
        Model { ends: [end.clone(), end] }
    }

    /// Bytes that have come to an end and lie there.
    pub fn unread(&self, end: usize) -> u64 {
        self.ends[1 - end].sent - self.ends[end].received
    }

    /// Whether both directions are as at the beginning.
    pub fn is_whole(&self) -> bool {
        self.ends.iter().all(|end| !end.sends_no_more && !end.reads_no_more && !end.closed && !end.reset)
    }

    /// Whether an end may send without making the model guess: a peer that reads no more and has ended its own stream
    /// would reset both ends.
    pub fn can_send(&self, end: usize) -> bool {
        let peer = &self.ends[1 - end];
        peer.closed || !(peer.reads_no_more && peer.sends_no_more)
    }

    /// The events of an end, and which of them are certain.
    pub fn events(&self, end: usize) -> (i16, i16) {
        let own = &self.ends[end];
        let input_ended = own.reads_no_more || own.peer_ended || own.reset;
        let output_ended = own.sends_no_more || own.reset;
        let mut events = 0;
        let mut certain = IN | OUT | RDHUP | HUP | ERR;
        if self.unread(end) >= own.low_water || input_ended {
            events |= IN;
        }
        if input_ended {
            events |= RDHUP;
        }
        if input_ended && output_ended {
            events |= HUP;
        }
        if own.error.is_some() {
            events |= ERR;
        }
        if output_ended || self.unread(1 - end) <= SURELY_TAKEN {
            events |= OUT;
        } else {
            certain &= !OUT;
        }
        (events, certain)
    }

    /// What a receiving call must give. `all` is MSG_WAITALL.
    pub fn expect_receive(&mut self, end: usize, len: u64, all: bool, dont_wait: bool) -> Expected {
        let unread = self.unread(end);
        let own = &mut self.ends[end];
        let ended = own.peer_ended || own.reset || own.reads_no_more;
        if unread > 0 {
            let most = len.min(unread);
            let target = if all { len } else { len.min(own.low_water) };
            return match unread >= target || ended || dont_wait {
                true if all => Expected::Bytes(most, most),
                true => Expected::Bytes(target.min(most).max(1), most),
                false => Expected::Waits,
            };
        }
        if own.peer_ended {
            return Expected::Bytes(0, 0);
        }
        if let Some(error) = own.error.take() {
            return Expected::Error(error);
        }
        match ended {
            true => Expected::Bytes(0, 0),
            false if dont_wait => Expected::Error(AGAIN),
            false => Expected::Waits,
        }
    }

    /// What a sending call must give.
    pub fn expect_send(&mut self, end: usize, len: u64, dont_wait: bool) -> Expected {
        let waiting = self.unread(1 - end);
        let own = &mut self.ends[end];
        if own.sends_no_more || own.reset {
            return Expected::Error(own.error.take().unwrap_or(PIPE));
        }
        match dont_wait && waiting + len > SURELY_TAKEN {
            true => Expected::Bytes(1, len),
            false => Expected::Bytes(len, len),
        }
    }

    /// An end has sent so many bytes.
    pub fn sent(&mut self, end: usize, len: u64) {
        self.ends[end].sent += len;
        if self.ends[1 - end].closed {
            // They find nobody, and are answered with a reset after the FIN.
            self.arrives_reset(end);
        }
        // Below the mark nobody is woken.
        if self.unread(1 - end) >= self.ends[1 - end].low_water {
            self.stir(1 - end);
        }
    }

    /// An end shuts down. Gives what the call must give.
    pub fn shutdown(&mut self, end: usize, how: i32) -> Expected {
        let own = &mut self.ends[end];
        let gone = own.reset || own.sends_no_more && own.peer_ended;
        own.reads_no_more |= how != SHUT_WR;
        let ends_now = how != SHUT_RD && !own.sends_no_more;
        own.sends_no_more |= how != SHUT_RD;
        self.stir(end);
        if ends_now && !gone {
            self.ends[1 - end].peer_ended = true;
            self.stir(1 - end);
        }
        if gone { Expected::Error(NOT_CONNECTED) } else { Expected::Bytes(0, 0) }
    }

    /// An end closes; `abort` is linger with a time of zero.
    pub fn close(&mut self, end: usize, abort: bool) {
        let unread = self.unread(end);
        let was_reset = self.ends[end].reset;
        self.ends[end].closed = true;
        let peer = &self.ends[1 - end];
        let over = peer.peer_ended && peer.sends_no_more || peer.reset || was_reset;
        if over || peer.closed {
            return;
        }
        if unread > 0 || abort {
            self.arrives_reset(1 - end);
        } else if !peer.peer_ended {
            self.ends[1 - end].peer_ended = true;
            self.stir(1 - end);
        }
    }

    fn arrives_reset(&mut self, end: usize) {
        let own = &mut self.ends[end];
        if !own.reset {
            own.reset = true;
            own.error = Some(if own.peer_ended { PIPE } else { RESET });
        }
        self.stir(end);
    }

    fn stir(&mut self, end: usize) {
        if let Some(interest) = &mut self.ends[end].interest {
            // One who asks for space only is told of arrivals or not, as the kernel likes.
            interest.fresh |= interest.events & IN as u32 != 0;
        }
    }

    /// What an `epoll_wait` must report: the events and which of them are certain; `None` if that is not certain at all.
    pub fn expect_epoll(&mut self, end: usize) -> Option<(i16, i16)> {
        let (events, certain) = self.events(end);
        let Some(interest) = &mut self.ends[end].interest else { return Some((0, -1)) };
        if interest.spent {
            return Some((0, -1));
        }
        let asked = interest.events as i16 & (IN | OUT | RDHUP) | HUP | ERR;
        let fresh = std::mem::take(&mut interest.fresh);
        let shown = (events & asked, certain | !asked);
        if interest.events & EPOLLET == 0 {
            return Some(shown);
        }
        // Without news there is mostly nothing, but Linux does not promise that.
        fresh.then_some(shown)
    }

    /// An `epoll_wait` has reported something.
    pub fn reported(&mut self, end: usize) {
        if let Some(interest) = &mut self.ends[end].interest {
            interest.spent |= interest.events & EPOLLONESHOT != 0;
        }
    }
}

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Expected {
    /// Whether an answer is one of the permitted ones.
    pub fn permits(&self, answer: &Answer) -> bool {
        match *self {
            Expected::Bytes(least, most) => answer.value >= least as i64 && answer.value <= most as i64,
            Expected::Error(error) => answer.value == -1 && answer.error == error,
            Expected::Waits => false,
        }
    }
}

pub const IN: i16 = 1;
pub const OUT: i16 = 4;
pub const ERR: i16 = 8;
pub const HUP: i16 = 16;
pub const RDHUP: i16 = 0x2000;
pub const EPOLLONESHOT: u32 = 1 << 30;
pub const EPOLLET: u32 = 1 << 31;

pub const SHUT_RD: i32 = 0;
pub const SHUT_WR: i32 = 1;

pub const INTERRUPTED: i32 = 4;
pub const AGAIN: i32 = 11;
pub const PIPE: i32 = 32;
pub const RESET: i32 = 104;
pub const NOT_CONNECTED: i32 = 107;
pub const EXISTS: i32 = 17;
pub const NO_ENTRY: i32 = 2;

/// As much unread data as every connection takes without waiting.
pub const SURELY_TAKEN: u64 = 32 << 10;
