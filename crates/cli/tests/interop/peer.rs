//! The host's end of a connection with the verbs program of the guest.

use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use sidestep_iwarp::{
    Agreement, Config, DomainId, Event, Fault, Outcome, Reason, Region, Rights, SendKind, Stag, TaggedOffset, WorkId,
};
use sidestep_wire::rdmap::read_request;

use crate::driver::{Driver, describe};
use crate::guest::{Guest, Running};

/// Which end the guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

impl Role {
    pub const BOTH: [Self; 2] = [Self::Server, Self::Client];

    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// How two ends meet.
#[derive(Debug, Clone)]
pub struct Meeting<'a> {
    pub role: Role,
    pub config: Config,
    /// Options of the verbs program.
    pub guest_options: &'a str,
    /// What the guest does.
    pub steps: String,
    pub private_data: &'a [u8],
    pub receives: usize,
    pub receive_len: u32,
}

impl<'a> Meeting<'a> {
    pub fn new(role: Role, crc: bool, steps: impl Into<String>) -> Self {
        let config = Config { crc, nudge: Some(Duration::from_millis(50)), ..Config::default() };
        let steps = steps.into();
        Self { role, config, guest_options: "", steps, private_data: b"", receives: 16, receive_len: 128 * 1024 }
    }

    /// Connects the two ends and exchanges the regions.
    pub fn meet(&self, guest: &mut Guest) -> Result<(Peer, Running)> {
        let (mut peer, running) = self.set_up(guest)?;
        peer.exchange_regions(self.role == Role::Server)?;
        Ok((peer, running))
    }

    /// Connects the two ends.
    pub fn set_up(&self, guest: &mut Guest) -> Result<(Peer, Running)> {
        let (stream, running) = self.connect(guest)?;
        let (driver, agreement) = match self.role {
            Role::Server => {
                let mut driver = Driver::initiate(stream, self.config.clone(), self.private_data)?;
                self.post(&mut driver)?;
                (driver, None)
            }
            Role::Client => {
                let mut driver = Driver::respond(stream, self.config.clone())?;
                self.post(&mut driver)?;
                match driver.wait_event(Some(Instant::now() + LIMIT))? {
                    Some(Event::Requested { private_data, .. }) => {
                        driver.connection.accept(self.private_data)?;
                        (driver, Some(private_data))
                    }
                    other => bail!("instead of a request: {other:?}"),
                }
            }
        };
        let mut peer = Peer::new(driver, self)?;
        let (agreed, private_data) = peer.driver.wait_established(LIMIT)?;
        peer.agreement = Some(agreed);
        peer.private_data = agreement.unwrap_or(private_data);
        Ok((peer, running))
    }

    /// Starts the guest's end, and opens the stream.
    pub fn connect(&self, guest: &mut Guest) -> Result<(TcpStream, Running)> {
        let Self { guest_options, steps, .. } = self;
        match self.role {
            Role::Server => {
                let (inside, outside) = guest.port();
                let mut running = guest.start(&format!("verbs {guest_options} server {inside} {steps}"))?;
                running.wait_line("listening")?;
                let stream = TcpStream::connect(("127.0.0.1", outside)).context("connecting to the guest")?;
                Ok((stream, running))
            }
            Role::Client => {
                let listener = TcpListener::bind(("127.0.0.1", 0))?;
                let port = listener.local_addr()?.port();
                let running = guest.start(&format!("verbs {guest_options} client 10.0.2.2 {port} {steps}"))?;
                Ok((accept(&listener)?, running))
            }
        }
    }

    fn post(&self, driver: &mut Driver) -> Result<()> {
        for _ in 0..self.receives {
            driver.post_receive(self.receive_len)?;
        }
        Ok(())
    }
}

/// The connection, and the regions of both ends.
pub struct Peer {
    pub driver: Driver,
    pub agreement: Option<Agreement>,
    /// What the guest sent along in set-up.
    pub private_data: Vec<u8>,
    mine: Vec<Stag>,
    /// Where reads go to.
    sink: Stag,
    theirs: Vec<(Stag, u64)>,
    receives: VecDeque<WorkId>,
    /// How many messages were sent.
    pub sent: u32,
}

impl Peer {
    fn new(mut driver: Driver, meeting: &Meeting<'_>) -> Result<Self> {
        let mut receives: Vec<WorkId> = driver.memory.receives.keys().copied().collect();
        receives.sort_unstable();
        let both = Rights::READ | Rights::WRITE;
        let mut mine = Vec::new();
        for (at, rights) in [both, Rights::READ, Rights::WRITE, both, both | Rights::INVALIDATE].into_iter().enumerate()
        {
            let bytes = pattern(REGION_LEN, at as u8);
            let mut stag = driver.register(bytes.clone(), rights)?;
            if at == OTHER_DOMAIN {
                driver.table.deregister(stag);
                driver.memory.regions.remove(&stag);
                let domain = DomainId(meeting.config.identity.domain.0 + 1);
                let length = REGION_LEN as u64;
                let region = Region { base: TaggedOffset(0), length, rights, domain, stream: None };
                stag = driver.table.register(region, || stag.0)?;
                driver.memory.regions.insert(stag, bytes);
            }
            mine.push(stag);
        }
        let sink = driver.register(vec![0; REGION_LEN], Rights::NONE)?;
        Ok(Self {
            driver,
            agreement: None,
            private_data: Vec::new(),
            mine,
            sink,
            theirs: Vec::new(),
            receives: receives.into(),
            sent: 0,
        })
    }

    fn exchange_regions(&mut self, first: bool) -> Result<()> {
        if first {
            self.send_regions()?;
        }
        let bytes = self.receive().context("the guest's regions")?;
        ensure!(bytes.len() == REGIONS * 16, "the guest's regions take {} bytes", bytes.len());
        self.theirs = bytes
            .chunks_exact(16)
            .map(|part| {
                let address = u64::from_be_bytes(part[..8].try_into().expect("eight bytes"));
                let stag = u32::from_be_bytes(part[8..12].try_into().expect("four bytes"));
                (Stag(stag), address)
            })
            .collect();
        if !first {
            self.send_regions()?;
        }
        Ok(())
    }

    fn send_regions(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        for stag in &self.mine {
            bytes.extend(0u64.to_be_bytes());
            bytes.extend(stag.0.to_be_bytes());
            bytes.extend((REGION_LEN as u32).to_be_bytes());
        }
        self.send_bytes(&bytes, SendKind::default())
    }

    /// The tag and the first offset of the guest's region; `x` is one that does not exist.
    pub fn theirs(&self, name: char) -> (Stag, u64) {
        if name == 'x' {
            let (Stag(stag), address) = self.theirs[0];
            return (Stag(stag ^ 0x5555_5500), address);
        }
        self.theirs[name as usize - 'a' as usize]
    }

    /// The tag of an own region.
    pub fn mine(&self, name: char) -> Stag {
        self.mine[name as usize - 'a' as usize]
    }

    fn finish(&mut self, work: WorkId, what: &str) -> Result<Outcome> {
        match self.driver.wait_completion(work, Some(Instant::now() + LIMIT))? {
            Some(Outcome::Flushed) => bail!("{what}: {}", self.driver.end_reason()),
            Some(outcome) => Ok(outcome),
            None => bail!("{what}: not done within {LIMIT:?}"),
        }
    }

    /// Posts a write of the pattern.
    pub fn post_write(&mut self, name: char, offset: u64, len: usize, seed: u8) -> Result<WorkId> {
        let (stag, address) = self.theirs(name);
        let work = WorkId(self.driver.number());
        let source = self.driver.source(&pattern(len, seed));
        self.driver.connection.post_write(work, source, stag, TaggedOffset(address + offset))?;
        Ok(work)
    }

    pub fn write(&mut self, name: char, offset: u64, len: usize, seed: u8) -> Result<()> {
        let work = self.post_write(name, offset, len, seed)?;
        self.finish(work, "write").map(drop)
    }

    /// Posts a read of the guest's region.
    pub fn post_read(&mut self, name: char, offset: u64, len: u32, into: u64) -> Result<WorkId> {
        let (source, address) = self.theirs(name);
        let work = WorkId(self.driver.number());
        let request = read_request::Repr {
            sink: self.sink,
            sink_offset: TaggedOffset(into),
            size: len,
            source,
            source_offset: TaggedOffset(address + offset),
        };
        let Driver { connection, table, .. } = &mut self.driver;
        connection.post_read(work, request, table)?;
        Ok(work)
    }

    pub fn read(&mut self, name: char, offset: u64, len: u32, seed: u8) -> Result<()> {
        let work = self.post_read(name, offset, len, 0)?;
        self.finish(work, "read")?;
        self.expect_read(0, len as usize, seed)
    }

    /// As many reads at once.
    pub fn reads(&mut self, count: u64, len: u32, seed: u8) -> Result<()> {
        let works: Vec<_> =
            (0..count).map(|at| self.post_read('b', 0, len, at * u64::from(len))).collect::<Result<_>>()?;
        for work in works {
            self.finish(work, "reads")?;
        }
        (0..count as usize).try_for_each(|at| self.expect_read(at * len as usize, len as usize, seed))
    }

    pub fn send(&mut self, len: usize, seed: u8, kind: SendKind) -> Result<()> {
        self.send_bytes(&pattern(len, seed), kind)
    }

    fn send_bytes(&mut self, bytes: &[u8], kind: SendKind) -> Result<()> {
        let work = self.post_send(bytes, kind)?;
        self.finish(work, "send").map(drop)
    }

    pub fn post_send(&mut self, bytes: &[u8], kind: SendKind) -> Result<WorkId> {
        let work = WorkId(self.driver.number());
        let source = self.driver.source(bytes);
        self.driver.connection.post_send(work, source, kind)?;
        self.sent += 1;
        Ok(work)
    }

    /// Waits for a message.
    pub fn receive(&mut self) -> Result<Vec<u8>> {
        self.receive_kind().map(|(bytes, _)| bytes)
    }

    pub fn receive_kind(&mut self) -> Result<(Vec<u8>, SendKind)> {
        let work = self.receives.pop_front().ok_or_else(|| anyhow!("no receive is posted"))?;
        match self.finish(work, "receive")? {
            Outcome::Received { len, solicited, invalidated: invalidate } => {
                let mut bytes = self.driver.memory.receives.remove(&work).unwrap_or_default();
                bytes.truncate(len as usize);
                Ok((bytes, SendKind { solicited, invalidate }))
            }
            other => bail!("instead of a message: {other:?}"),
        }
    }

    /// Waits for a message with the pattern.
    pub fn recv(&mut self, len: usize, seed: u8) -> Result<SendKind> {
        let (bytes, kind) = self.receive_kind()?;
        ensure!(bytes.len() == len, "a message of {} bytes instead of {len}", bytes.len());
        compare(&bytes, seed).context("a message")?;
        Ok(kind)
    }

    /// Compares what was read with the pattern.
    fn expect_read(&self, offset: usize, len: usize, seed: u8) -> Result<()> {
        let bytes = &self.driver.memory.regions[&self.sink][offset..offset + len];
        compare(bytes, seed).with_context(|| format!("what was read to {offset}"))
    }

    /// Compares an own region with the pattern.
    pub fn expect(&self, name: char, offset: usize, len: usize, seed: u8) -> Result<()> {
        let region = &self.driver.memory.regions[&self.mine(name)];
        compare(&region[offset..offset + len], seed).with_context(|| format!("region {name} at {offset}"))
    }

    /// Waits for the guest's terminate message; `None` if it closes without one.
    pub fn terminated(&mut self) -> Result<Option<Reason>> {
        let until = Instant::now() + LIMIT;
        loop {
            match self.driver.wait_event(Some(until))? {
                Some(Event::PeerTerminated(terminate)) => return Ok(Some(terminate.reason)),
                Some(Event::PeerClosed | Event::Lost { .. } | Event::Closed) => return Ok(None),
                Some(event @ Event::Failed(_)) => bail!("no terminate message: {}", describe(&event)),
                Some(_) => {}
                None => bail!("no terminate message within {LIMIT:?}"),
            }
        }
    }

    /// Waits until the engine finds a fault of the guest.
    pub fn failed(&mut self) -> Result<Fault> {
        let until = Instant::now() + LIMIT;
        loop {
            match self.driver.wait_event(Some(until))? {
                Some(Event::Failed(fault)) => return Ok(fault),
                Some(event @ (Event::Closed | Event::Lost { .. } | Event::PeerTerminated(_))) => {
                    bail!("no fault was found: {}", describe(&event))
                }
                Some(_) => {}
                None => bail!("no fault was found within {LIMIT:?}"),
            }
        }
    }

    /// Runs until everything is over.
    pub fn closed(&mut self) -> Result<()> {
        let until = Instant::now() + LIMIT;
        while !self.driver.is_closed() {
            ensure!(self.driver.turn(Some(until))?, "not closed within {LIMIT:?}");
        }
        Ok(())
    }
}

/// Bytes that differ from place to place; the guest has the same.
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed) ^ (at >> 8) as u8).collect()
}

fn compare(bytes: &[u8], seed: u8) -> Result<()> {
    let wanted = pattern(bytes.len(), seed);
    match (0..bytes.len()).find(|at| bytes[*at] != wanted[*at]) {
        Some(at) => bail!("byte {at} is {:#04x} instead of {:#04x}", bytes[at], wanted[at]),
        None => Ok(()),
    }
}

/// Accepts one connection, or gives up.
fn accept(listener: &TcpListener) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let begin = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                ensure!(begin.elapsed() < LIMIT, "the guest did not connect within {LIMIT:?}");
                sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error).context("accepting the guest"),
        }
    }
}

pub const REGION_LEN: usize = 256 * 1024;
const REGIONS: usize = 5;
const OTHER_DOMAIN: usize = 3;
/// How long one step may take in an emulated machine.
pub const LIMIT: Duration = Duration::from_secs(30);
