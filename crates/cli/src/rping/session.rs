//! What client and server have in common: messages, limits, what is printed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sidestep_iwarp::{Agreement, Config, Interval, Outcome, Revision, RtrModes, SendKind, WorkId};

use super::advert::{self, Advert};
use super::driver::Driver;
use super::options::{self, Rping};

/// One connection in the course of its pings.
#[derive(Debug)]
pub struct Session<'a> {
    /// The connection.
    pub driver: Driver,
    /// What the user asked for.
    pub options: &'a Rping,
    receive: WorkId,
}

impl<'a> Session<'a> {
    /// Posts the buffer for the first message.
    pub fn new(mut driver: Driver, options: &'a Rping) -> Result<Self> {
        let receive = driver.post_receive(advert::LEN as u32)?;
        Ok(Self { driver, options, receive })
    }

    /// How long the peer may take.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.options.timeout)
    }

    /// Sends a message.
    pub fn send(&mut self, advert: Advert) -> Result<()> {
        let work = WorkId(self.driver.number());
        let source = self.driver.source(&advert.emit());
        self.driver.connection.post_send(work, source, SendKind::default())?;
        let sent = self.finish(work, "sending a message").map(drop);
        if let sidestep_iwarp::Source::Buffer(id) = source.source {
            self.driver.memory.buffers.remove(&id);
        }
        sent
    }

    /// Waits for a message of the peer. `None`: the deadline passed first.
    pub fn receive(&mut self, deadline: Option<Instant>) -> Result<Option<Advert>> {
        let work = self.receive;
        let Some(outcome) = self.driver.wait_completion(work, deadline)? else {
            return Ok(None);
        };
        let bytes = self.driver.memory.receives.remove(&work).unwrap_or_default();
        match outcome {
            Outcome::Received { len, .. } if len as usize == advert::LEN => {}
            Outcome::Received { len, .. } => bail!("a message of {len} bytes, rping sends {}", advert::LEN),
            Outcome::Flushed => bail!("{}", self.driver.end_reason()),
            other => bail!("unexpected on a receive buffer: {other:?}"),
        }
        self.receive = self.driver.post_receive(advert::LEN as u32)?;
        let bytes = bytes.first_chunk().context("a receive buffer is too short")?;
        Ok(Some(Advert::parse(bytes)))
    }

    /// Waits for the completion of a request.
    pub fn finish(&mut self, work: WorkId, what: &str) -> Result<Outcome> {
        let limit = self.limit();
        match self.driver.wait_completion(work, Some(Instant::now() + limit))? {
            Some(Outcome::Flushed) => bail!("{what}: {}", self.driver.end_reason()),
            Some(outcome) => Ok(outcome),
            None => bail!("{what}: not done within {limit:?}"),
        }
    }

    /// Says something that only interests those who look for errors.
    pub fn debug(&self, text: impl FnOnce() -> String) {
        if self.options.debug {
            println!("{}", text());
        }
    }
}

/// The parameters of a connection.
pub fn config(options: &Rping) -> Config {
    Config {
        crc: !options.no_crc,
        markers: options.markers.then_some(Interval::STANDARD),
        revision: if options.revision == 1 { Revision::One } else { Revision::Two },
        peer_to_peer: options.peer_to_peer,
        rtr: ready_modes(&options.ready),
        setup_timeout: Duration::from_secs(options.timeout),
        nudge: (options.nudge > 0).then(|| Duration::from_millis(options.nudge)),
        ..Config::default()
    }
}

fn ready_modes(wanted: &[options::Ready]) -> RtrModes {
    let knows = |mode| wanted.is_empty() || wanted.contains(&mode);
    RtrModes {
        send: knows(options::Ready::Send),
        write: knows(options::Ready::Write),
        read: knows(options::Ready::Read),
    }
}

/// What was agreed, in words.
pub fn agreed(agreement: &Agreement) -> String {
    let Agreement { revision, crc, markers_sent, markers_received, ird, ord, peer_to_peer, .. } = agreement;
    format!(
        "revision {}, crc {crc}, markers sent {} received {}, IRD {ird}, ORD {ord}, peer-to-peer {peer_to_peer}",
        revision.number(),
        markers_sent.is_some(),
        markers_received.is_some(),
    )
}

/// The text at the beginning of a buffer, up to its first zero.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
