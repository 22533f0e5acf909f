//! One end of a measurement of calls: a server, or a client that says what it found.

use std::io::{BufRead, Write, stdin, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sidestep_fabric::{Channel, ChannelOptions, Node};
use sidestep_orb::{Call, Dispatching, Object, Orb, Servant, Stub, SystemException, Threads};

use super::super::{clock, place};

/// What an end is to do, and on which cores.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub cores: Vec<usize>,
    pub role: Role,
    /// Octets from so many on go past the buffers.
    pub direct: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Role {
    /// Serves until its standard input ends; prints its reference first.
    Serve { on: Listen, dispatcher: bool },
    /// Makes null calls.
    Call { millis: u64 },
    /// Sends octets one way.
    Send { millis: u64, size: usize },
    /// Sends octets and waits for a reply to each.
    Trip { millis: u64, size: usize },
    /// Makes first calls over connections.
    First { finds: Finds },
    /// Makes null calls over so many connections, of which one or all are used.
    Many { millis: u64, connections: usize, all: bool },
    /// Sends back what it gets over a channel of this name; then the same as the one who asks.
    Channel { name: String, serve: bool, millis: u64 },
}

/// What a first call over a connection finds of others before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finds {
    /// Nothing: both ends are new.
    Nothing,
    /// Memory that a connection of the same ends had.
    Strand,
    /// That, and a thread of the server.
    Thread,
}

/// What a server listens on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Listen {
    Tcp,
    Unix(String),
    Fabric(String),
    Iwarp(String),
    Via(String),
    ViaFlow(String),
}

/// What a client found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// Nanoseconds, or bytes or calls per second.
    pub value: f64,
    /// Another one: the tail, or messages per second.
    pub second: f64,
    /// Processor time of the client per call, in nanoseconds.
    pub cpu_ns: f64,
    /// Calls, or messages.
    pub count: u64,
}

/// Runs an end. A client reads the reference of its object from its standard input.
pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).context("not a job")?;
    place::pin(&job.cores)?;
    let found = match &job.role {
        Role::Serve { on, dispatcher } => return serve(on, *dispatcher, job.direct),
        Role::Channel { name, serve: true, .. } => return serve_channel(name),
        Role::Channel { name, millis, .. } => call_channel(name, *millis)?,
        Role::Call { millis } => {
            let object = reference(&client(job.direct, 1)?, &line()?)?;
            timed(*millis, || null(&object))?
        }
        Role::Send { millis, size } => send(&reference(&client(job.direct, 1)?, &line()?)?, *millis, *size)?,
        Role::Trip { millis, size } => {
            let (object, octets) = (reference(&client(job.direct, 1)?, &line()?)?, vec![7; *size]);
            timed(*millis, || take(&object, &octets))?
        }
        Role::First { finds } => first(&line()?, *finds)?,
        Role::Many { millis, connections, all } => many(&line()?, *millis, *connections, *all)?,
    };
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

fn line() -> Result<String> {
    let mut text = String::new();
    stdin().lock().read_line(&mut text)?;
    Ok(text)
}

fn client(direct: usize, connections: usize) -> Result<Orb> {
    Ok(Orb::builder().direct(direct).connections(connections).build()?)
}

fn reference(orb: &Orb, text: &str) -> Result<Object> {
    Ok(orb.string_to_object(text)?)
}

/// The object of `tests/programs/corba/echo.idl`, as far as it is called here.
struct Echo;

impl Servant for Echo {
    fn type_ids(&self) -> &'static [&'static str] {
        &["IDL:Echo:1.0"]
    }

    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        match call.operation() {
            "nothing" => call.arguments(|_| Ok(()))?,
            "take" => {
                let octets: Vec<u8> = call.arguments(sidestep_orb::cdr::Cdr::decode)?;
                // Touched, as whoever wants the octets would.
                std::hint::black_box(octets.iter().fold(0u8, |sum, octet| sum.wrapping_add(*octet)));
            }
            _ => return Err(call.unknown_operation()),
        }
        call.reply(|_| Ok(()))
    }
}

fn serve(on: &Listen, dispatcher: bool, direct: usize) -> Result<()> {
    let builder = match on {
        Listen::Tcp => Orb::builder().tcp("127.0.0.1:0"),
        Listen::Unix(path) => Orb::builder().unix(path),
        Listen::Fabric(name) => Orb::builder().fabric(name),
        Listen::Iwarp(address) => Orb::builder().iwarp(address),
        Listen::Via(name) => Orb::builder().via(name),
        Listen::ViaFlow(name) => Orb::builder().via_flow(name),
    };
    let threads = if dispatcher { Threads::Dispatcher(Dispatching::default()) } else { Threads::PerConnection };
    let orb = builder.threads(threads).direct(direct).build()?;
    let echo: Object = orb.root_poa().activate(Echo)?;
    orb.root_poa().manager().activate()?;
    println!("{}", echo.object().ior());
    stdout().flush()?;
    // Each line asks for the processor time so far; the end is the end.
    for _ in stdin().lock().lines() {
        println!("{}", processor_time());
        stdout().flush()?;
    }
    orb.shutdown();
    Ok(())
}

fn null(object: &Object) -> Result<()> {
    Ok(object.call::<(), SystemException>("nothing", |_| Ok(()), |_| Ok(()))?)
}

fn take(object: &Object, octets: &[u8]) -> Result<()> {
    Ok(object.call::<(), SystemException>("take", |encoder| encoder.octets(octets), |_| Ok(()))?)
}

/// Calls for a while after a warm-up, and says how long a call takes.
fn timed(millis: u64, mut call: impl FnMut() -> Result<()>) -> Result<Found> {
    (0..WARM_UP).try_for_each(|_| call())?;
    // A reading of the clock takes as long as a good part of a trip.
    let reading = clock::reading_cost();
    let (began, cpu) = (Instant::now(), processor_time());
    let mut trips = Vec::with_capacity(1 << 20);
    let mut before = began;
    while before - began < Duration::from_millis(millis) && trips.len() < 1 << 20 {
        call()?;
        let after = Instant::now();
        trips.push(((after - before).as_nanos() as u64).saturating_sub(reading));
        before = after;
    }
    let cpu = processor_time() - cpu;
    trips.sort_unstable();
    let at = |share: usize| trips[(trips.len() - 1) * share / 100] as f64;
    Ok(Found { value: at(50), second: at(99), cpu_ns: cpu as f64 / trips.len() as f64, count: trips.len() as u64 })
}

fn send(object: &Object, millis: u64, size: usize) -> Result<Found> {
    let octets = vec![7u8; size];
    let put = || object.oneway("take", |encoder| encoder.octets(&octets));
    for _ in 0..WARM_UP.min(1 + WARM_UP * 4096 / size.max(1)) {
        put()?;
    }
    null(object)?;
    let (began, cpu) = (Instant::now(), processor_time());
    let mut count = 0u64;
    while began.elapsed() < Duration::from_millis(millis) {
        for _ in 0..8 {
            put()?;
        }
        count += 8;
    }
    // With this all of it has come.
    null(object)?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu_ns = (processor_time() - cpu) as f64 / count as f64;
    Ok(Found { value: count as f64 * size as f64 / seconds, second: count as f64 / seconds, cpu_ns, count })
}

/// How often a first call that finds something is made.
const FIRSTS: usize = 5;

fn first(text: &str, finds: Finds) -> Result<Found> {
    let (orb, other) = (client(usize::MAX, 1)?, client(usize::MAX, 1)?);
    let (object, others) = (reference(&orb, text)?, reference(&other, text)?);
    let timed = || -> Result<f64> {
        let began = Instant::now();
        null(&object)?;
        Ok(began.elapsed().as_nanos() as f64)
    };
    let mut found = Vec::new();
    if finds == Finds::Nothing {
        found.push(timed()?);
    }
    while found.len() < FIRSTS && finds != Finds::Nothing {
        null(&object)?;
        orb.disconnect();
        // Whoever served the connection has seen its end.
        std::thread::sleep(Duration::from_millis(2));
        if finds == Finds::Strand {
            // It has another one to serve.
            null(&others)?;
        }
        found.push(timed()?);
        other.disconnect();
    }
    let count = found.len() as u64;
    let value = super::super::stats::median(found).context("no call")?;
    Ok(Found { value, second: 0.0, cpu_ns: 0.0, count })
}

/// Requests go out over all connections before the replies are collected.
fn many(text: &str, millis: u64, connections: usize, all: bool) -> Result<Found> {
    let orb = client(usize::MAX, connections)?;
    let objects: Vec<Object> = (0..connections).map(|_| reference(&orb, text)).collect::<Result<_>>()?;
    objects.iter().try_for_each(null)?;
    let used = if all { &objects[..] } else { &objects[..1] };
    let begin = |object: &Object| object.begin::<(), SystemException>("nothing", |_| Ok(()), |_| Ok(()));
    let (began, cpu) = (Instant::now(), processor_time());
    let mut count = 0u64;
    while began.elapsed() < Duration::from_millis(millis) {
        let calls: Vec<_> = used.iter().map(begin).collect::<Result<_, _>>()?;
        count += calls.len() as u64;
        calls.into_iter().try_for_each(sidestep_orb::Deferred::collect)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let cpu_ns = (processor_time() - cpu) as f64 / count as f64;
    Ok(Found { value: count as f64 / seconds, second: 0.0, cpu_ns, count })
}

/// As long as the request and the reply of a null call.
const REQUEST: usize = 68;
const REPLY: usize = 24;

fn serve_channel(name: &str) -> Result<()> {
    let node = Node::new()?;
    let listener = node.listen(name)?;
    println!("ready");
    stdout().flush()?;
    let mut channel = Channel::accept(listener.wait(None)?, ChannelOptions::default(), b"", None)?;
    let mut request = [0; REQUEST];
    while channel.receiver.receive_exact(&mut request, None).is_ok() {
        channel.sender.send(&request[..REPLY], None)?;
    }
    Ok(())
}

fn call_channel(name: &str, millis: u64) -> Result<Found> {
    let node = Node::new()?;
    let mut channel = Channel::connect(&node, name, ChannelOptions::default(), b"", None)?;
    timed(millis, || {
        channel.sender.send(&[7; REQUEST], None)?;
        let mut reply = [0; REPLY];
        channel.receiver.receive_exact(&mut reply, None)?;
        ensure!(reply == [7; REPLY], "something else came back");
        Ok(())
    })
}

/// Processor time of this process, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

const WARM_UP: usize = 500;
