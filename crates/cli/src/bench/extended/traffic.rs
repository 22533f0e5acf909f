//! Copied bytes, time and processor time for each byte that is moved from one program's memory to another's: by TCP, over a ring, by an
//! RDMA write and by an RDMA read, with buffers that fit into the cache and with ones that do not (chapter 9 of Balaji 2006).
//!
//! Copies are counted: the bytes that calls and completions say were moved, each of which is one copy. Times are measured. What crosses the memory bus is
//! the model's: there are no counters of it.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use sidestep_extended::{
    Completion, CompletionQueue, Kind, Region, Remote, Rights, Socket, Stack, in_milliseconds,
    traffic::{Direction, Interface, Policy, ratio},
};

use super::{end::pin, record};
use crate::bench::{record::Metric, sheet::Table, stats::median};

/// How bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tcp,
    Ring,
    Write,
    Read,
}

const WAYS: [Way; 4] = [Way::Tcp, Way::Ring, Way::Write, Way::Read];

/// Messages, and between how many buffers each end changes.
#[derive(Debug, Clone, Copy)]
struct Size {
    message: usize,
    buffers: usize,
    fits: bool,
}

/// The second is larger than the caches of today, at each end alone.
const SIZES: [Size; 2] =
    [Size { message: 16 << 10, buffers: 1, fits: true }, Size { message: 10 << 20, buffers: 8, fits: false }];
const AREA: usize = 80 << 20;
const PATIENCE_MS: u64 = 10_000;

/// One end, with its program's memory.
struct End {
    stream: TcpStream,
    socket: Socket,
    queue: CompletionQueue,
    memory: Region,
    /// For calls on the stream.
    bytes: Vec<u8>,
    _stack: Stack,
}

/// What the far end does next: so many messages.
type Order = (Way, Size, usize);

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Tcp => "tcp",
            Way::Ring => "ring",
            Way::Write => "rdma-write",
            Way::Read => "rdma-read",
        }
    }

    /// What table 9.1 has for it: bytes on the bus of the end that sends, and of the one that receives.
    fn model(self, fits: bool) -> Option<[(u32, u32); 2]> {
        let interface = match self {
            Way::Tcp => Interface::Sockets,
            // There is no card between two copies: the table does not have it.
            Way::Ring => return None,
            Way::Write | Way::Read => Interface::Rdma,
        };
        Some([Direction::Transmit, Direction::Receive].map(|way| ratio(interface, way, fits, Policy::Practical)))
    }
}

impl End {
    fn new(stream: TcpStream) -> Result<End> {
        stream.set_nodelay(true)?;
        let stack = Stack::new()?;
        let queue = stack.completion_queue()?;
        let socket = stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS))?;
        let memory = stack.register(AREA, Rights::ALL)?;
        Ok(End { stream, socket, queue, memory, bytes: vec![1; AREA], _stack: stack })
    }

    /// Waits for a completion of this kind: its length.
    fn wait(&self, kind: Kind) -> Result<u64> {
        let mut taken: Vec<Completion> = Vec::new();
        loop {
            self.queue.wait(&mut taken, 1, None)?;
            let Some(completion) = taken.pop() else { continue };
            let length = completion.outcome?;
            if completion.kind == kind {
                return Ok(length as u64);
            }
        }
    }

    /// The far end: takes what comes, and says so. The bytes that it has copied go back by the channel.
    fn serve(mut self, orders: &Receiver<Order>, copied: &Sender<u64>) -> Result<()> {
        self.socket.export(&self.memory, Rights::ALL, 1)?;
        for (way, size, count) in orders {
            let mut bytes = 0;
            for at in 0..count {
                let place = at % size.buffers * size.message;
                match way {
                    Way::Tcp => {
                        self.stream.read_exact(&mut self.bytes[place..place + size.message])?;
                        bytes += size.message as u64;
                        self.stream.write_all(&[1])?;
                    }
                    Way::Ring => {
                        self.socket.post_recv(vec![self.memory.piece(place, size.message)?], 0)?;
                        bytes += self.wait(Kind::Receive)?;
                        self.socket.notify(0)?;
                    }
                    Way::Write | Way::Read => {}
                }
            }
            copied.send(bytes).ok().context("nobody wants to know")?;
        }
        Ok(())
    }

    /// The near end: moves one message, and waits until it is there; bytes that it has copied.
    fn move_one(&mut self, way: Way, remote: &Remote, size: Size, at: usize) -> Result<u64> {
        let place = at % size.buffers * size.message;
        let pieces = || Ok::<_, anyhow::Error>(vec![self.memory.piece(place, size.message)?]);
        match way {
            Way::Tcp => {
                self.stream.write_all(&self.bytes[place..place + size.message])?;
                self.stream.read_exact(&mut [0])?;
                Ok(size.message as u64)
            }
            Way::Ring => {
                self.socket.post_send(pieces()?, 0)?;
                let copied = self.wait(Kind::Send)?;
                self.wait(Kind::Notice)?;
                Ok(copied)
            }
            Way::Write => {
                self.socket.post_put(remote, place, pieces()?, 0)?;
                self.wait(Kind::Put)
            }
            Way::Read => {
                self.socket.post_get(remote, place, pieces()?, 0)?;
                self.wait(Kind::Get)
            }
        }
    }
}

/// What was found of a way at a size.
#[derive(Debug, Default)]
struct Found {
    /// Nanoseconds of a message, one for each round.
    times: Vec<f64>,
    /// Processor time of both ends for a message, in nanoseconds.
    busy: Vec<f64>,
    copied: u64,
    moved: u64,
}

/// Measures all ways in turn, so many times.
pub fn measure(rounds: usize) -> Result<Table> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let far = listener.accept()?.0;
    let (orders, ordered) = channel::<Order>();
    let (copied, told) = channel();
    let found = thread::scope(|scope| {
        let served = scope.spawn(move || {
            pin(0);
            End::new(far)?.serve(&ordered, &copied)
        });
        pin(1);
        let found = near_end(near, orders, &told, rounds);
        // The other end's error says more than that it has gone.
        served.join().map_err(|_| anyhow::anyhow!("the far end has panicked"))??;
        found
    })?;
    Ok(table(&found))
}

type Finding = (Way, Size, Found);

fn near_end(near: TcpStream, orders: Sender<Order>, told: &Receiver<u64>, rounds: usize) -> Result<Vec<Finding>> {
    let mut end = End::new(near)?;
    let remote = end.socket.import(Some(in_milliseconds(PATIENCE_MS)))?;
    let sizes = SIZES.iter().flat_map(|size| WAYS.map(|way| (way, *size, Found::default())));
    let mut found: Vec<Finding> = sizes.collect();
    for round in 0..=rounds {
        for (way, size, found) in &mut found {
            // Once around all buffers, and long enough to be timed.
            let count = if size.fits { 64 } else { size.buffers };
            orders.send((*way, *size, count)).ok().context("the far end has gone")?;
            let (began, busy, mut copied) = (Instant::now(), processor_ns(), 0);
            for at in 0..count {
                copied += end.move_one(*way, &remote, *size, at)?;
            }
            let (took, busy) = (began.elapsed().as_nanos() as f64, processor_ns() - busy);
            copied += told.recv().context("the far end has gone")?;
            // The first round touches the memory.
            if round > 0 {
                found.times.push(took / count as f64);
                found.busy.push(busy / count as f64);
                found.copied += copied;
                found.moved += (count * size.message) as u64;
            }
        }
    }
    ensure!(found.iter().all(|(_, _, found)| found.moved > 0), "nothing was measured");
    Ok(found)
}

/// Processor time of this process, which is both ends.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn table(found: &[Finding]) -> Table {
    let mut table = Table::new(&["bytes, way", "copies", "GB/s", "cpu ns/KiB", "bus: out", "in"]);
    table.text.insert(0, format!("{:24} {:>10} {:>10} {:>10} {:>21}", "", "counted", "measured", "measured", "model"));
    for (way, size, found) in found {
        let (time, busy) = (median(found.times.iter().copied()), median(found.busy.iter().copied()));
        let (time, busy) = (time.unwrap_or(f64::NAN), busy.unwrap_or(f64::NAN));
        let copies = found.copied as f64 / found.moved as f64;
        let model = way.model(size.fits);
        let shown = |(least, most)| if least == most { format!("{least}") } else { format!("{least} to {most}") };
        let [out, taken_in] = model.map_or(["-".to_string(), "-".to_string()], |model| model.map(shown));
        table.row(&[
            format!("{}, {}", size.message, way.name()),
            format!("{copies:.2}"),
            format!("{:.2}", size.message as f64 / time),
            format!("{:.0}", busy / (size.message >> 10) as f64),
            out,
            taken_in,
        ]);
        for (metric, value) in [(Metric::Bandwidth, size.message as f64 / time * 1e9), (Metric::CpuPerMessage, busy)] {
            let mut record = record("extended.traffic", way.name(), size.message, metric, (value, None));
            record.extra.insert("copies".into(), json!(copies));
            record.extra.insert("fits".into(), json!(size.fits));
            record.extra.insert("bus_model".into(), json!(model));
            table.records.push(record);
        }
    }
    table
}
