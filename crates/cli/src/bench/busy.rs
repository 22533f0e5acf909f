//! How long it takes to get 64 bytes from a process whose core is busy: read from its memory, or asked of it over TCP.
//!
//! The size of a measurement is the number of threads that compute there, all on one core. The two-sided server answers
//! from one of them, between pieces of its work; with no such thread it sleeps until it is asked. The one-sided one does
//! nothing for its readers.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use sidestep_fabric::{LinkOptions, Node};

use super::clock::{self, Stopwatch};
use super::control::Peer;
use super::exercise::{Exercise, Run, Seen};
use super::iwarp::{self, ReadEnd};
use super::path::{Bench, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::{shared, tcp};

/// Reads over iWARP.
pub const IWARP: Path = Path {
    name: "busy-iwarp",
    about: "RDMA read over iWARP from a process with so many computing threads; one way is half of the read",
    work: Work::Pair {
        open: |opening| one_sided(iwarp::open_pair(opening, on_iwarp()?, &super::hosts::iwarp_name())?, opening.peer()),
        attach: |offer| one_sided(iwarp::attach_pair(&offer, on_iwarp()?)?, offer.peer),
    },
    parts: &[part("iwarp-read", Wait::Spin)],
};

/// Reads of mapped memory.
pub const SHM: Path = Path {
    name: "busy-shm",
    about: "read of mapped memory of a process with so many computing threads",
    work: Work::Pair {
        open: |opening| one_sided(iwarp::open_pair(opening, Node::new()?, &shared::fabric_name())?, opening.peer()),
        attach: |offer| one_sided(iwarp::attach_pair(&offer, Node::new()?)?, offer.peer),
    },
    parts: &[part("shm-read", Wait::Spin)],
};

/// A question and an answer.
pub const TCP: Path = Path {
    name: "busy-tcp",
    about: "baseline: a question over TCP, answered by one of the computing threads",
    work: Work::Pair { open: open_tcp, attach: attach_tcp },
    parts: &[part("tcp", Wait::Block)],
};

const fn part(row: &'static str, wait: Wait) -> Part {
    let placements = &[Placement::Cross];
    Part { bench: Bench::Busy, row, operation: Operation::PingPong, wait, placements, sizes: THREADS, shift: 0 }
}

fn on_iwarp() -> Result<Node> {
    Ok(Node::open(&["iwarp"], &LinkOptions::default())?)
}

fn one_sided(pair: iwarp::Connected, peer: Peer) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = pair;
    Ok(Box::new(OneSided { end: ReadEnd::new(endpoint, target, aperture, peer)? }))
}

struct OneSided {
    end: ReadEnd,
}

impl Exercise for OneSided {
    fn lead(&mut self, run: &Run) -> Result<Seen> {
        self.end.wait_other_side()?;
        self.end.time_reads(BYTES, WARM_UP)?;
        let watch = Stopwatch::start();
        let trips = self.end.time_reads(BYTES, run.count)?;
        let elapsed = watch.elapsed();
        self.end.finish()?;
        Ok(Seen { trips, elapsed, ..Seen::default() })
    }

    fn follow(&mut self, run: &Run) -> Result<Seen> {
        self.end.begin()?;
        let watch = Stopwatch::start();
        compute(run.size, || match run.size {
            0 => self.end.wait_over().map(|()| true),
            _ => self.end.has_been_told(),
        })?;
        Ok(Seen { elapsed: watch.elapsed(), ..Seen::default() })
    }
}

fn open_tcp(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    Ok(Box::new(TwoSided { stream: tcp::open_stream(opening)? }))
}

fn attach_tcp(offer: Offer) -> Result<Box<dyn Exercise>> {
    Ok(Box::new(TwoSided { stream: tcp::attach_stream(offer)? }))
}

struct TwoSided {
    stream: TcpStream,
}

impl TwoSided {
    fn ask(&self, word: u8) -> Result<()> {
        let mut answer = [word; BYTES];
        write(&self.stream, &answer)?;
        read(&self.stream, &mut answer)
    }
}

impl Exercise for TwoSided {
    fn lead(&mut self, run: &Run) -> Result<Seen> {
        for _ in 0..WARM_UP {
            self.ask(QUESTION)?;
        }
        let watch = Stopwatch::start();
        let mut trips = Vec::with_capacity(run.count);
        for _ in 0..run.count {
            let before = clock::now();
            self.ask(QUESTION)?;
            trips.push(u32::try_from(clock::now() - before).unwrap_or(u32::MAX));
        }
        let elapsed = watch.elapsed();
        self.ask(OVER)?;
        Ok(Seen { trips, elapsed, ..Seen::default() })
    }

    fn follow(&mut self, run: &Run) -> Result<Seen> {
        let watch = Stopwatch::start();
        let mut question = [0; BYTES];
        self.stream.set_nonblocking(run.size > 0)?;
        let outcome = compute(run.size, || {
            match rustix::net::recv(&self.stream, &mut question[..], rustix::net::RecvFlags::empty()) {
                Ok((BYTES, _)) => {}
                Ok(_) => bail!("a question was cut"),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(error) => return Err(error).context("read failed"),
            }
            write(&self.stream, &question)?;
            Ok(question[0] == OVER)
        });
        self.stream.set_nonblocking(false)?;
        outcome?;
        Ok(Seen { elapsed: watch.elapsed(), ..Seen::default() })
    }
}

fn write(stream: &TcpStream, bytes: &[u8]) -> Result<()> {
    let mut stream = stream;
    std::io::Write::write_all(&mut stream, bytes).context("write failed")
}

fn read(stream: &TcpStream, bytes: &mut [u8]) -> Result<()> {
    let mut stream = stream;
    std::io::Read::read_exact(&mut stream, bytes).context("read failed")
}

/// Computes in so many threads, this one among them, which asks between two pieces of its work whether it is over.
fn compute(threads: usize, mut over: impl FnMut() -> Result<bool>) -> Result<()> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    clock::spin_for(PIECE);
                }
            });
        }
        let outcome = loop {
            if threads > 0 {
                clock::spin_for(PIECE);
            }
            match over() {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

const THREADS: &[usize] = &[0, 1, 2, 4, 8];
const BYTES: usize = 64;
const WARM_UP: usize = 10;
/// A piece of work between two looks.
const PIECE: Duration = Duration::from_micros(100);
const QUESTION: u8 = 1;
const OVER: u8 = 2;
