//! The steps a program may take.

use std::{thread, time::Duration};

use super::{
    Judged,
    driver::Answer,
    model::{
        AGAIN, EPOLLET, EPOLLONESHOT, EXISTS, Expected, IN, INTERRUPTED, Interest, NO_ENTRY, OUT, RDHUP, SHUT_RD,
        SHUT_WR,
    },
    play::{DONT_WAIT, Game, NO_SIGNAL, PEEK, TRUNC, WAIT_ALL},
};

impl Game<'_> {
    /// One step at one end.
    pub(super) fn step(&mut self) -> Judged<()> {
        let end = self.random.below(2) as usize;
        if self.model.ends[end].closed {
            return Ok(());
        }
        match self.random.below(100) {
            0..=27 => self.send(end),
            28..=54 => self.receive(end),
            55..=64 => self.look(end),
            65..=72 => self.epoll(end),
            73..=80 => self.woken(end),
            81..=83 if self.model.is_whole() => self.fill(end),
            84..=91 => self.option(end),
            92..=93 => self.shut(end),
            94 => self.close(end),
            95 => self.plain(end, "do dupswap"),
            96 if self.random.one_in(3) => self.plain(end, "do fork"),
            97 => self.error(end),
            _ => self.settle(end),
        }
    }

    fn send(&mut self, end: usize) -> Judged<()> {
        let room = MOST_UNREAD.saturating_sub(self.model.unread(1 - end));
        if !self.model.can_send(end) || room == 0 {
            return Ok(());
        }
        let len = self.random.size(room);
        let call = self.random.of(&["s", "s", "w", "v", "m", "t", "l", "f", "c"]);
        let takes_flags = !["w", "v", "f"].contains(&call);
        let dont_wait = takes_flags && self.random.one_in(4);
        let flags = if dont_wait { NO_SIGNAL | DONT_WAIT } else { NO_SIGNAL };
        // A reset that has not come yet would be seen by some calls and not by others.
        self.settle(end)?;
        let nonblocking = dont_wait || self.model.ends[end].nonblocking;
        let expected = self.model.expect_send(end, len, nonblocking);
        let answer = self.tell(end, &format!("do send {call} {len} {flags}"))?;
        self.require(end, expected.permits(&answer), &answer, &format!("{expected:?}"))?;
        if answer.value > 0 {
            self.model.sent(end, answer.value as u64);
        }
        Ok(())
    }

    fn receive(&mut self, end: usize) -> Judged<()> {
        let len = self.random.size(70_000);
        let mut call = self.random.of(&["s", "s", "w", "v", "m", "t", "l", "c"]);
        if call == "l" && self.model.ends[end].error.is_some() {
            // `recvmmsg` gives a waiting error before the bytes, unlike all the others.
            call = "m";
        }
        let mut flags = 0;
        if !["w", "v"].contains(&call) {
            flags |= self.random.of(&[0, 0, PEEK, TRUNC, WAIT_ALL, WAIT_ALL | PEEK]);
            flags |= self.random.of(&[0, DONT_WAIT]);
        }
        // A call that may wait is given the chance to be early.
        if flags & DONT_WAIT != 0 || self.random.one_in(2) {
            self.settle(end)?;
        }
        let own = &self.model.ends[end];
        let (nonblocking, timeout) = (own.nonblocking || flags & DONT_WAIT != 0, own.timeout_ms);
        // For fewer bytes than the low-water mark Linux wakes nobody, not a call that wants fewer either: an early one sleeps on.
        let marked = own.low_water > 1 && self.model.unread(end) < own.low_water;
        if nonblocking || timeout > 0 || own.reads_no_more || marked {
            self.settle(end)?;
        }
        let line = format!("recv {call} {len} {flags}");
        let all = flags & WAIT_ALL != 0;
        match self.model.expect_receive(end, len, all, nonblocking) {
            Expected::Waits => self.receive_nothing(end, &line, timeout, all, flags & PEEK != 0),
            expected => {
                let answer = self.tell(end, &format!("do {line}"))?;
                self.received(end, expected, &answer, flags & PEEK != 0)
            }
        }
    }

    /// A receive that would wait: ended by its time-out or by a signal, or not made.
    fn receive_nothing(&mut self, end: usize, line: &str, timeout: u64, all: bool, peek: bool) -> Judged<()> {
        let unread = self.model.unread(end);
        if timeout > 0 {
            self.settle(end)?;
            let answer = self.tell(end, &format!("do {line}"))?;
            let expected = if unread > 0 { Expected::Bytes(1, unread) } else { Expected::Error(AGAIN) };
            let in_time = answer.micros + 4000 >= timeout as i64 * 1000;
            self.require(end, in_time, &answer, &format!("not before {timeout} ms"))?;
            return self.received(end, expected, &answer, peek);
        }
        if self.random.one_in(2) && (unread == 0 || all) {
            self.settle(end)?;
            let answer = self.tell(end, &format!("do sig 2 0 {line}"))?;
            let expected = if unread > 0 { Expected::Bytes(1, unread) } else { Expected::Error(INTERRUPTED) };
            return self.received(end, expected, &answer, peek);
        }
        Ok(())
    }

    /// Looks with `poll` or `select`.
    fn look(&mut self, end: usize) -> Judged<()> {
        self.settle(end)?;
        let (events, certain) = self.model.events(end);
        let asked = self.random.of(&[IN, OUT, IN | OUT, IN | OUT | RDHUP, RDHUP]);
        let select = self.random.one_in(3) && asked & RDHUP == 0;
        let (mut shown, mut sure) = (events & (asked | ERR_HUP), certain);
        if select {
            // Errors and hang-ups count as readable, errors as writable.
            let any = |bits: i16| events & bits != 0;
            shown = 0;
            shown |= if asked & IN != 0 && any(IN | ERR_HUP) { IN } else { 0 };
            shown |= if asked & OUT != 0 && any(OUT | 8) { OUT } else { 0 };
            sure |= ERR_HUP;
        }
        sure |= !(asked | ERR_HUP);
        let limit = if shown & sure != 0 { self.random.of(&[0, 1000]) } else { self.random.of(&[0, 2]) };
        let answer = self.tell(end, &format!("do {} {asked} {limit}", if select { "select" } else { "poll" }))?;
        self.judge_events(end, &answer, shown, sure)
    }

    fn judge_events(&mut self, end: usize, answer: &Answer, shown: i16, sure: i16) -> Judged<()> {
        let got = answer.good as i16;
        let met = got & sure == shown & sure && (answer.value > 0) == (got != 0) && answer.value >= 0;
        self.require(end, met, answer, &format!("events {shown:#x} within {sure:#x}"))
    }

    /// Changes an epoll set, or looks at it.
    fn epoll(&mut self, end: usize) -> Judged<()> {
        let has = self.model.ends[end].interest.is_some();
        if self.random.one_in(3) || !has {
            let asked = u32::from(self.random.of(&[IN, IN, OUT, IN | OUT, IN | RDHUP]) as u16);
            let events = asked | self.random.of(&[0, 0, EPOLLET, EPOLLONESHOT, EPOLLET | EPOLLONESHOT]);
            let operation = if has { self.random.of(&[1, 2, 3, 3]) } else { self.random.of(&[1, 1, 1, 2, 3]) };
            let expected = match (operation, has) {
                (1, true) => Expected::Error(EXISTS),
                (2 | 3, false) => Expected::Error(NO_ENTRY),
                _ => Expected::Bytes(0, 0),
            };
            let answer = self.tell(end, &format!("do ectl {operation} {events}"))?;
            self.require(end, expected.permits(&answer), &answer, &format!("{expected:?}"))?;
            match (operation, has) {
                (1, false) | (3, true) => {
                    let interest = Interest { events, spent: false, fresh: true };
                    self.model.ends[end].interest = Some(interest);
                }
                (2, true) => self.model.ends[end].interest = None,
                _ => {}
            }
            return Ok(());
        }
        self.settle(end)?;
        match self.model.expect_epoll(end) {
            Some((shown, sure)) => {
                let limit = if shown & sure != 0 { self.random.of(&[0, 1000]) } else { self.random.of(&[0, 2]) };
                let answer = self.tell(end, &format!("do epoll {limit}"))?;
                self.judge_events(end, &answer, shown, sure)?;
                if answer.value > 0 {
                    self.model.reported(end);
                }
            }
            None => {
                let answer = self.tell(end, "do epoll 0")?;
                self.require(end, answer.value >= 0, &answer, "no error")?;
                self.looked_without_news(&answer);
                if answer.value > 0 {
                    self.model.reported(end);
                }
            }
        }
        Ok(())
    }

    /// One end waits in a second thread, and the other end, or the same, does what ends the wait.
    fn woken(&mut self, end: usize) -> Judged<()> {
        let own = &self.model.ends[end];
        let idle = self.model.unread(end) == 0 && own.low_water == 1 && !self.model.ends[1 - end].closed;
        let idle = idle && !own.peer_ended && !own.reset && !own.reads_no_more && own.timeout_ms == 0;
        let peer = &self.model.ends[1 - end];
        if !idle || peer.sends_no_more || own.sends_no_more || peer.reads_no_more {
            return Ok(());
        }
        let by_epoll = own.interest.is_some_and(|interest| interest.events & IN as u32 != 0 && !interest.spent);
        let by_epoll = by_epoll && own.interest.is_some_and(|interest| interest.events & OUT as u32 == 0);
        let kind = self.random.below(if by_epoll { 5 } else { 4 });
        if own.nonblocking && kind < 2 {
            return Ok(());
        }
        self.settle(end)?;
        if kind == 4 {
            // Nothing is left from before that would end the wait at once.
            let answer = self.tell(end, "do epoll 0")?;
            self.require(end, answer.value == 0, &answer, "nothing to report")?;
            if let Some(interest) = &mut self.model.ends[end].interest {
                interest.fresh = false;
            }
        }
        let signals = self.random.of(&["", "", "sig 1 1 "]);
        let (line, len) = match kind {
            0 => (format!("{signals}recv {} 1000 0", self.random.of(&["s", "w", "v", "m", "t", "l", "c"])), 1000),
            1 => (format!("{signals}recv s 1000 {PEEK}"), 1000),
            2 => (format!("poll {IN} 20000"), 0),
            3 => (format!("select {IN} 20000"), 0),
            _ => ("epoll 20000".to_string(), 0),
        };
        self.plain(end, &format!("go {line}"))?;
        if self.random.one_in(2) {
            thread::sleep(Duration::from_micros(self.random.below(3000)));
        }
        match self.random.below(12) {
            0 => {
                self.plain(1 - end, &format!("do shutdown {SHUT_WR}"))?;
                self.model.shutdown(1 - end, SHUT_WR);
            }
            1 if kind != 4 => {
                let how = self.random.of(&[SHUT_RD, 2]);
                self.plain(end, &format!("do shutdown {how}"))?;
                self.model.shutdown(end, how);
            }
            2 => self.close(1 - end)?,
            _ => {
                let count = self.random.size(5000);
                self.send_exactly(1 - end, count)?;
            }
        }
        if len > 0 {
            let expected = self.model.expect_receive(end, len, false, false);
            let answer = self.tell(end, "join")?;
            return self.received(end, expected, &answer, kind == 1);
        }
        let answer = self.tell(end, "join")?;
        let awake = answer.value == 1 && answer.good as i16 & IN != 0;
        self.require(end, awake, &answer, "woken, and readable")?;
        if kind == 4 {
            // What came in several pieces may be told of again.
            if let Some(interest) = &mut self.model.ends[end].interest {
                interest.fresh = false;
            }
            self.model.reported(end);
        }
        Ok(())
    }

    fn option(&mut self, end: usize) -> Judged<()> {
        let on = self.random.below(2);
        match self.random.below(7) {
            0 | 1 => {
                let way = self.random.of(&[1, 2]);
                self.plain(end, &format!("do nonblock {}", on * way))?;
                self.model.ends[end].nonblocking = on == 1;
                Ok(())
            }
            2 => {
                self.plain(end, &format!("do timeout 0 {}", on * 12))?;
                self.model.ends[end].timeout_ms = on * 12;
                Ok(())
            }
            3 => {
                let water = self.random.of(&[1, 1, 10, 500]);
                self.plain(end, &format!("do lowat {water}"))?;
                self.model.ends[end].low_water = water;
                Ok(())
            }
            4 => self.plain(end, &format!("do keepalive {on}")),
            _ => self.plain(end, &format!("do nodelay {on}")),
        }
    }

    fn shut(&mut self, end: usize) -> Judged<()> {
        let how = self.random.of(&[SHUT_WR, SHUT_WR, SHUT_RD]);
        let busy = how == SHUT_RD && self.model.ends[end].sends_no_more;
        if busy || how == SHUT_WR && self.model.ends[end].reads_no_more {
            return Ok(());
        }
        self.settle(0)?;
        self.settle(1)?;
        let expected = self.model.shutdown(end, how);
        let answer = self.tell(end, &format!("do shutdown {how}"))?;
        self.require(end, expected.permits(&answer), &answer, &format!("{expected:?}"))
    }

    fn close(&mut self, end: usize) -> Judged<()> {
        let abort = self.random.one_in(3);
        self.settle(1 - end)?;
        self.settle(end)?;
        if abort {
            self.plain(end, "do linger 1 0")?;
        }
        self.plain(end, "do close")?;
        self.model.close(end, abort);
        Ok(())
    }

    fn error(&mut self, end: usize) -> Judged<()> {
        self.settle(end)?;
        let expected = self.model.ends[end].error.take().unwrap_or(0);
        let answer = self.tell(end, "do error")?;
        self.require(end, answer.value == i64::from(expected), &answer, &format!("{expected}"))
    }
}

const ERR_HUP: i16 = 8 | 16;

/// Beyond this, a program first reads: what lies unread within a first receive window is readable at once.
const MOST_UNREAD: u64 = 48_000;
