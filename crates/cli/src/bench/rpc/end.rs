//! One end of a measurement of calls, in a process of its own.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, Cookie, Endpoint, LinkOptions, Node, RdmaQueue, Region, Rights,
};
use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Call, Client, ClientOptions, Pending, Procedure, Refusal, Server, Service};

use super::super::clock::{self, Stopwatch};
use super::super::stats::OneWay;

/// What an end does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Serves calls until it is killed.
    Serve {
        /// The longest message that is sent inline over RDMA.
        inline: usize,
    },
    /// Makes calls.
    Call {
        /// Which.
        calls: Calls,
        /// The longest message that is sent inline over RDMA.
        inline: usize,
    },
    /// Answers messages on channels of the fabric with messages as long as empty replies, until it is killed.
    Echo {
        /// Bytes of the arguments for which a message has space.
        size: usize,
    },
    /// Sends such messages.
    Exchange(Calls),
    /// Offers memory over iWARP, until it is killed.
    Offer {
        /// How much.
        size: usize,
    },
    /// Reads such memory by RDMA, as many bytes at a time as a call has arguments.
    Read(Calls),
}

/// Which calls, by how many threads and for how long.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Calls {
    /// Bytes of opaque arguments; none is the null call.
    pub size: usize,
    /// Threads that call at a time.
    pub threads: usize,
    /// Calls of a thread that are outstanding at a time.
    pub outstanding: usize,
    /// Milliseconds of the measurement. A fifth more goes before it.
    pub run_ms: u64,
}

/// The null call of the service, which is the one of `tests/programs/rpc/echo.x`.
pub const NULL: Procedure = Procedure { program: 0x2000_0101, version: 1, procedure: 0 };
const TAKE: Procedure = Procedure { procedure: 2, ..NULL };
const MOST: u32 = 64 << 10;

/// Does what the role says, and prints what a client has measured.
pub fn run(address: &str, role: Role) -> Result<()> {
    match role {
        Role::Serve { inline } => serve(address, inline),
        Role::Echo { size } => echo(address, size),
        Role::Call { calls, inline } => {
            let options = ClientOptions { inline, reply_chunk: 0, ..ClientOptions::default() };
            let client = Client::connect_with(&address.parse()?, options)?;
            let bytes = vec![7; calls.size];
            if calls.outstanding > 1 {
                return measure(calls, |_| Ok(in_a_row(&client, &bytes, calls.outstanding)));
            }
            measure(calls, |_| {
                let (client, bytes) = (&client, &bytes);
                Ok(move || {
                    let done = match bytes.len() {
                        0 => client.call(NULL, |_| Ok(()), |_| Ok(())),
                        _ => client.call(TAKE, |out| out.opaque(bytes, MOST), |_| Ok(())),
                    };
                    done.map_err(Into::into)
                })
            })
        }
        Role::Offer { size } => offer(address, size),
        Role::Read(calls) => read(address, calls),
        Role::Exchange(calls) => {
            let (call, mut reply) = (vec![7; call_len(calls.size)], [0; REPLY_LEN]);
            let mut channel = Some(open_channel(address)?);
            measure(calls, |_| {
                let mut channel = channel.take().ok_or_else(|| anyhow!("a channel has one thread"))?;
                let call = &call;
                Ok(move || {
                    // All of it moves in here: its endpoint keeps it open.
                    let channel = &mut channel;
                    channel.sender.send(call, None)?;
                    channel.receiver.receive_exact(&mut reply, None)?;
                    Ok(())
                })
            })
        }
    }
}

/// Calls of which several are outstanding: each trip waits for the oldest, and begins another one.
fn in_a_row<'a>(client: &'a Client, bytes: &'a [u8], most: usize) -> impl FnMut() -> Result<()> + Send + 'a {
    let mut outstanding: VecDeque<Pending<()>> = VecDeque::new();
    move || {
        while outstanding.len() < most {
            outstanding.push_back(client.begin(TAKE, |out| out.opaque(bytes, MOST), |_| Ok(()))?);
        }
        let oldest = outstanding.pop_front().ok_or_else(|| anyhow!("no call is outstanding"))?;
        Ok(oldest.wait()?)
    }
}

struct Taker;

impl Service for Taker {
    fn program(&self) -> u32 {
        NULL.program
    }

    fn version(&self) -> u32 {
        NULL.version
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, _: &mut Writer<'_>) -> Result<(), Refusal> {
        match call.procedure {
            0 => Ok(()),
            procedure if procedure == TAKE.procedure => {
                std::hint::black_box(input.opaque(MOST)?);
                Ok(())
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }

    /// As libtirpc's servers have it, which remember nothing unless they are told to.
    fn repeatable(&self, _: u32) -> bool {
        true
    }
}

fn serve(address: &str, inline: usize) -> Result<()> {
    let _server = Server::builder().service(Taker).inline(inline).listen(address)?.start()?;
    loop {
        thread::park();
    }
}

/// A record mark and the header of a call; a reply has 28 bytes in all.
const CALL_LEN: usize = 44;
const REPLY_LEN: usize = 28;

fn call_len(size: usize) -> usize {
    if size == 0 { CALL_LEN } else { CALL_LEN + 4 + size.next_multiple_of(4) }
}

fn echo(address: &str, size: usize) -> Result<()> {
    let listener = Node::new()?.listen(address)?;
    loop {
        let channel = Channel::accept(listener.wait(None)?, ChannelOptions::default(), b"", None)?;
        thread::spawn(move || answer(channel, size));
    }
}

fn answer(mut channel: Channel, size: usize) -> Result<()> {
    let mut call = vec![0; call_len(size)];
    loop {
        channel.receiver.receive_exact(&mut call, None)?;
        channel.sender.send(&call[..REPLY_LEN], None)?;
    }
}

/// Connects to an end that echoes.
pub fn open_channel(address: &str) -> Result<Channel> {
    Ok(Channel::connect(&Node::new()?, address, ChannelOptions::default(), b"", clock::in_seconds(10))?)
}

fn iwarp() -> Result<Node> {
    Ok(Node::open(&["iwarp"], &LinkOptions::default())?)
}

fn offer(address: &str, size: usize) -> Result<()> {
    let node = iwarp()?;
    let (listener, memory) = (node.listen(address)?, Region::new(&node, size)?);
    let mut readers = Vec::new();
    loop {
        readers.push(listener.wait(None)?.accept(&memory.cookie(Rights::ALL).to_bytes())?);
    }
}

/// Opens memory that an end offers.
pub fn open_memory(address: &str) -> Result<(Endpoint, Aperture)> {
    let endpoint = iwarp()?.connect(address, b"", clock::in_seconds(10))?;
    let cookie = Cookie::from_bytes(&endpoint.private())?;
    let aperture = Aperture::open(&endpoint, &cookie, clock::in_seconds(10))?;
    Ok((endpoint, aperture))
}

/// As [`in_a_row`], without RPC: RDMA reads of as many bytes, of which as many are outstanding.
fn read(address: &str, calls: Calls) -> Result<()> {
    let Calls { size, outstanding: most, .. } = calls;
    let (endpoint, aperture) = open_memory(address)?;
    let queue = RdmaQueue::new(endpoint.node(), most);
    let into = Region::new(endpoint.node(), size * most)?;
    measure(calls, |_| {
        let (mut outstanding, mut next) = (VecDeque::new(), 0);
        let (queue, aperture, into) = (&queue, &aperture, &into);
        Ok(move || {
            while outstanding.len() < most {
                outstanding.push_back(queue.read(aperture, 0, &into.slice(next * size, size)?)?);
                next = (next + 1) % most;
            }
            let oldest = outstanding.pop_front().ok_or_else(|| anyhow!("no read is outstanding"))?;
            Ok(queue.wait(oldest, None)?)
        })
    })
}

/// Each thread repeats its trip for a while; those of the measured time are timed.
fn measure<T>(calls: Calls, mut open: impl FnMut(usize) -> Result<T>) -> Result<()>
where
    T: FnMut() -> Result<()> + Send,
{
    let reading = clock::reading_cost();
    let run = Duration::from_millis(calls.run_ms);
    let trips: Vec<T> = (0..calls.threads).map(&mut open).collect::<Result<_>>()?;
    let ready = Barrier::new(calls.threads);
    let watch = Stopwatch::start();
    let timed: Vec<Result<(Vec<u32>, u64, Duration)>> = thread::scope(|scope| {
        let spawn = |mut trip: T| {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                let begin = Instant::now();
                let (warm_until, end) = (begin + run / 5, begin + run / 5 + run);
                let (mut times, mut all, mut before) = (Vec::with_capacity(1 << 20), 0, begin);
                // One is measured on the busiest machine.
                while before < end || times.is_empty() {
                    trip()?;
                    let after = Instant::now();
                    all += 1;
                    if before >= warm_until {
                        let time = (after - before).as_nanos() as u64;
                        times.push(time.saturating_sub(reading).min(u64::from(u32::MAX)) as u32);
                    }
                    before = after;
                }
                Ok((times, all, before - warm_until))
            })
        };
        let threads: Vec<_> = trips.into_iter().map(spawn).collect();
        let died = || Err(anyhow!("a thread has panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| died())).collect()
    });
    let used = watch.elapsed().processor_time;
    let (mut times, mut all, mut elapsed) = (Vec::new(), 0, run);
    for outcome in timed {
        let (own, count, took) = outcome.context("calling")?;
        times.extend(own);
        all += count;
        elapsed = elapsed.max(took);
    }
    let one_way = OneWay::from_trips(&times);
    let [median, p99, p999] = [0.5, 0.99, 0.999].map(|share| one_way.quantile(share) * 2.0);
    println!(
        "median_ns {median} p99_ns {p99} p999_ns {p999} calls {} elapsed_ns {} all {all} cpu_ns {used}",
        times.len(),
        elapsed.as_nanos()
    );
    Ok(())
}
