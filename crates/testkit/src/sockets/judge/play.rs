//! One program: a connection, its steps, its end.

use super::{
    Failure, Judged,
    driver::{Answer, Driver},
    model::{AGAIN, Expected, Model},
    random::Random,
};

/// What programs have done, to show that they did something.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Programs played.
    pub programs: u64,
    /// Calls judged.
    pub calls: u64,
    /// Bytes received and compared.
    pub bytes: u64,
    /// Looks at edge-triggered sets without news, and how many of them showed something.
    pub quiet: (u64, u64),
}

/// Plays the program of a seed between two drivers.
pub fn play(drivers: &mut [Driver; 2], seed: u64, tally: &mut Tally) -> Judged<()> {
    connected(drivers, seed, tally, |game| game.whole())
}

/// So many storms of a seed, one after the other on one connection: threads of one end that move to and fro at once find what one
/// call after the other does not.
pub fn play_storms(drivers: &mut [Driver; 2], seed: u64, count: usize, tally: &mut Tally) -> Judged<()> {
    connected(drivers, seed, tally, |game| {
        (0..count).try_for_each(|_| game.storm())?;
        game.finish()
    })
}

fn connected(
    drivers: &mut [Driver; 2],
    seed: u64,
    tally: &mut Tally,
    steps: impl FnOnce(&mut Game<'_>) -> Judged<()>,
) -> Judged<()> {
    let mut random = Random::new(seed);
    let client = random.below(2) as usize;
    let salts = [seed & 0xffff_ffff, seed >> 32 | 1 << 40];
    let (port, [out, back]) = (drivers[1 - client].port, salts);
    let mut game = Game { drivers, model: Model::new(), random, log: Vec::new(), tally: *tally };
    let outcome = game
        .plain(client, &format!("open connect {port} {out} {back}"))
        .and_then(|()| game.plain(1 - client, &format!("open accept {back} {out}")))
        .and_then(|()| steps(&mut game));
    *tally = game.tally;
    tally.programs += 1;
    let log = game.log;
    outcome.map_err(|Failure(text)| {
        let from = log.len().saturating_sub(SHOWN);
        Failure(format!("program {seed}, after\n  {}\n{text}", log[from..].join("\n  ")))
    })
}

/// A program being played.
pub(super) struct Game<'a> {
    pub(super) drivers: &'a mut [Driver; 2],
    pub(super) model: Model,
    pub(super) random: Random,
    log: Vec<String>,
    tally: Tally,
}

impl Game<'_> {
    fn whole(&mut self) -> Judged<()> {
        if !self.random.one_in(4) {
            // Otherwise small messages wait for the acknowledgement of those before.
            self.plain(0, "do nodelay 1")?;
            self.plain(1, "do nodelay 1")?;
        }
        let prelude = self.random.of(&[0, 2, 5, 40]);
        for _ in 0..prelude {
            for sender in [0, 1] {
                self.send_exactly(sender, 64)?;
                self.receive_exactly(1 - sender, 64)?;
            }
        }
        for _ in 0..20 + self.random.below(50) {
            self.step()?;
            if self.model.ends.iter().any(|end| end.closed) && self.random.one_in(8) {
                break;
            }
        }
        if self.model.is_whole() && self.random.one_in(3) {
            self.storm()?;
        }
        self.finish()
    }

    /// Closes what is open.
    fn finish(&mut self) -> Judged<()> {
        for end in [0, 1] {
            if !self.model.ends[end].closed {
                self.settle(1 - end)?;
                self.plain(end, "do close")?;
                self.model.close(end, false);
            }
        }
        Ok(())
    }

    /// Both ends send and receive at once, in several threads.
    fn storm(&mut self) -> Judged<()> {
        for end in [0, 1] {
            self.plain(end, "do lowat 1")?;
            self.model.ends[end].low_water = 1;
        }
        let totals = [self.random.below(3_000_000), self.random.below(300_000)];
        let lines: Vec<String> = (0..2)
            .map(|end| {
                let (out, coming) = (totals[end], totals[1 - end] + self.model.unread(end));
                format!("go storm {} {out} {coming}", self.random.below(1 << 30))
            })
            .collect();
        for end in [0, 1] {
            self.plain(end, &lines[end])?;
        }
        for end in [0, 1] {
            let answer = self.tell(end, "join")?;
            self.require(end, answer.value == 0, &answer, "a storm without a fault")?;
            self.tally.bytes += totals[1 - end];
        }
        let sent = [0, 1].map(|end| self.model.ends[end].sent + totals[end]);
        for end in [0, 1] {
            self.model.ends[end].sent = sent[end];
            self.model.ends[end].received = sent[1 - end];
            // A storm makes a set of its own.
            self.model.ends[end].interest = None;
        }
        Ok(())
    }

    /// A call that must give 0.
    pub(super) fn plain(&mut self, end: usize, line: &str) -> Judged<()> {
        let answer = self.tell(end, line)?;
        self.require(end, answer.value == 0, &answer, "0")
    }

    /// An edge-triggered set was looked at without news.
    pub(super) fn looked_without_news(&mut self, answer: &Answer) {
        self.tally.quiet.0 += 1;
        self.tally.quiet.1 += u64::from(answer.value > 0);
    }

    /// Says a line to an end, and notes it with the answer.
    pub(super) fn tell(&mut self, end: usize, line: &str) -> Judged<Answer> {
        self.log.push(format!("{end}: {line}"));
        self.tally.calls += 1;
        match self.drivers[end].tell(line) {
            Ok(answer) => {
                let Answer { value, error, good, micros } = answer;
                let last = self.log.last_mut().expect("just pushed");
                *last += &format!(" -> {value} errno {error} good {good} ({micros} us)");
                Ok(answer)
            }
            Err(Failure(text)) => {
                let other = self.drivers[1 - end].failure("the other end:");
                let stacks = self.drivers[1 - end].stacks();
                Err(Failure(format!("{text}\n{}\n{stacks}", other.0)))
            }
        }
    }

    pub(super) fn require(&mut self, end: usize, met: bool, answer: &Answer, expected: &str) -> Judged<()> {
        if met {
            return Ok(());
        }
        let both: Vec<String> = (0..2).map(|end| self.drivers[end].failure("").0).collect();
        let model = &self.model.ends;
        Err(Failure(format!("end {end} gave {answer:?}, permitted: {expected}\n{model:#?}\n{}", both.join("\n"))))
    }

    /// Checks what a receiving call gave, and takes it into the model.
    pub(super) fn received(&mut self, end: usize, expected: Expected, answer: &Answer, peek: bool) -> Judged<()> {
        let right = answer.value <= 0 || answer.good == answer.value;
        self.require(end, expected.permits(answer) && right, answer, &format!("{expected:?}, all bytes right"))?;
        if answer.value > 0 {
            self.tally.bytes += answer.value as u64;
            if !peek {
                self.model.ends[end].received += answer.value as u64;
            }
        }
        Ok(())
    }

    /// Waits until an end sees what the model says.
    pub(super) fn settle(&mut self, end: usize) -> Judged<()> {
        if self.model.ends[end].closed {
            return Ok(());
        }
        let (events, certain) = self.model.events(end);
        let unread = self.model.unread(end);
        let answer = self.tell(end, &format!("do settle {unread} {certain} {}", events & certain))?;
        self.require(end, answer.value == 0, &answer, &format!("{unread} readable, events {events:#x} of {certain:#x}"))
    }

    pub(super) fn send_exactly(&mut self, end: usize, len: u64) -> Judged<()> {
        let answer = self.tell(end, &format!("do send s {len} {NO_SIGNAL}"))?;
        self.require(end, answer.value == len as i64, &answer, "all of it")?;
        self.model.sent(end, len);
        Ok(())
    }

    pub(super) fn receive_exactly(&mut self, end: usize, len: u64) -> Judged<()> {
        let answer = self.tell(end, &format!("do recv s {len} {WAIT_ALL}"))?;
        self.received(end, Expected::Bytes(len, len), &answer, false)
    }

    /// Fills a direction until it takes no more, and lets a second thread send while the peer reads all.
    pub(super) fn fill(&mut self, end: usize) -> Judged<()> {
        let least = TAKEN_AT_LEAST.saturating_sub(self.model.unread(1 - end));
        let answer = self.tell(end, &format!("do fill {least}"))?;
        let enough = answer.value as u64 >= least;
        self.require(end, enough && answer.error == 0, &answer, "a MiB and more")?;
        let again = self.tell(end, &format!("do send s 1 {}", NO_SIGNAL | DONT_WAIT))?;
        let full = again.value == -1 && again.error == AGAIN || again.value == 1;
        self.require(end, full, &again, "EAGAIN, or the byte")?;
        let extra = 1 + self.random.below(100_000);
        let was_nonblocking = self.model.ends[end].nonblocking;
        if was_nonblocking {
            self.plain(end, "do nonblock 0")?;
        }
        self.plain(end, &format!("go send s {extra} {NO_SIGNAL}"))?;
        self.model.sent(end, answer.value as u64 + again.value.max(0) as u64 + extra);
        let reader = 1 - end;
        let reader_nonblocking = self.model.ends[reader].nonblocking;
        if reader_nonblocking {
            self.plain(reader, "do nonblock 0")?;
        }
        self.plain(reader, "do timeout 0 0")?;
        let unread = self.model.unread(reader);
        let drained = self.tell(reader, &format!("do drain {unread}"))?;
        self.received(reader, Expected::Bytes(unread, unread), &drained, false)?;
        self.model.ends[reader].timeout_ms = 0;
        let joined = self.tell(end, "join")?;
        self.require(end, joined.value == extra as i64, &joined, "all of it")?;
        for (which, was) in [(end, was_nonblocking), (reader, reader_nonblocking)] {
            if was {
                self.plain(which, "do nonblock 1")?;
            }
        }
        Ok(())
    }
}

pub(super) const PEEK: i64 = 2;
pub(super) const TRUNC: i64 = 0x20;
pub(super) const DONT_WAIT: i64 = 0x40;
pub(super) const WAIT_ALL: i64 = 0x100;
pub(super) const NO_SIGNAL: i64 = 0x4000;

/// What a connection takes before anyone reads.
const TAKEN_AT_LEAST: u64 = 1 << 20;

/// Steps shown of a program that failed.
const SHOWN: usize = 100;
