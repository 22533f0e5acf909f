//! The two ends of `bench extended`: a server in a process of its own, and its client.

use std::{
    env,
    hint::black_box,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};
use sidestep_extended::{Completion, CompletionQueue, Kind, Options, Remote, Rights, Socket, Stack, in_milliseconds};
use sidestep_fabric::{Node, Region};

use super::pool::Pool;
use super::talk::{self, Messages, Talk, Tcp};
use super::threaded::Threaded;
use crate::bench::hosts;

/// What a server does beside serving, and where it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Job {
    /// Threads that only compute.
    pub computing: usize,
    /// Clients that always want a document of the threads that serve, and those answer everything; `None`: each connection has a
    /// thread of its own.
    pub serving: Option<usize>,
    /// The process that holds its host, unless that is this one.
    pub holder: u32,
    pub way: Way,
}

/// What carries the operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Way {
    /// Shared memory, or a second connection between hosts.
    #[default]
    Beside,
    /// The connection itself.
    InPlace,
}

impl Job {
    fn to_text(self) -> String {
        let Job { computing, serving, holder, way } = self;
        let serving = serving.map_or(0, |clients| clients + 1);
        format!("{computing},{serving},{holder},{}", u8::from(way == Way::InPlace))
    }

    fn parse(text: &str) -> Option<Job> {
        let mut fields = text.split(',').map(|field| field.parse::<usize>().ok());
        let mut next = || fields.next().flatten();
        let (computing, serving, holder) = (next()?, next()?, u32::try_from(next()?).ok()?);
        let way = if next()? == 1 { Way::InPlace } else { Way::Beside };
        Some(Job { computing, serving: serving.checked_sub(1), holder, way })
    }

    fn stack(&self) -> Result<Stack> {
        let in_place = self.way == Way::InPlace;
        Ok(Stack::with(Options { port: (self.holder != 0 && !in_place).then_some(PORT), in_place })?)
    }
}

/// A server, on the first core, until it is dropped.
pub struct Server {
    child: Child,
    job: Job,
    address: String,
    /// Its name on the fabric.
    pub fabric: String,
}

/// What the measuring process has of it.
pub struct Client {
    /// A connection with the extension, and one without, which another thread of the server answers, or one of its pool.
    pub stream: TcpStream,
    pub plain: TcpStream,
    pub socket: Socket,
    /// Its memory: all of it, and some to be read.
    pub all: Remote,
    pub table: Remote,
    queue: CompletionQueue,
    stack: Stack,
}

/// Bytes of a message, and of the region.
pub const MESSAGE: usize = 64;
const REGION: usize = 1 << 20;
const PATIENCE_MS: u64 = 10_000;
/// Where ends on two hosts meet.
const PORT: u16 = 7471;

impl Server {
    pub fn start(job: Job) -> Result<Server> {
        let mut child = Command::new(env::current_exe()?)
            .args(["extended-end", &job.to_text()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
        let (address, fabric) = line.trim_end().split_once(' ').context("the server does not say where it is")?;
        Ok(Server { address: address.to_string(), fabric: fabric.to_string(), job, child })
    }
}

impl Server {
    /// A connection of a kind.
    fn open(&self, kind: u8) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.write_all(&[kind])?;
        Ok(stream)
    }

    /// A connection for messages, over plain TCP.
    pub fn tcp(&self) -> Result<Box<dyn Talk>> {
        Ok(Box::new(Tcp(self.open(b'l')?)))
    }

    /// The same over the thesis's two threads.
    pub fn threaded(&self) -> Result<Box<dyn Talk>> {
        Ok(Box::new(Threaded::new(self.open(b't')?)?))
    }

    /// The same over an extended socket.
    pub fn messages(&self) -> Result<Box<dyn Talk>> {
        let (stream, stack) = (self.open(b'm')?, self.job.stack()?);
        let queue = stack.completion_queue()?;
        let socket = stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS))?;
        // Between the ends of one host the connection tells of death; in place it is not ours any more.
        std::mem::forget(stream);
        Ok(Box::new(Messages::new(stack, queue, socket)?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// Connects from the second core.
    pub fn connect(server: &Server) -> Result<Client> {
        pin(1);
        let stream = server.open(b'x')?;
        let stack = server.job.stack()?;
        let queue = stack.completion_queue()?;
        let deadline = in_milliseconds(PATIENCE_MS);
        let socket = stack.enable(stream.as_fd(), &queue, deadline)?;
        let (all, table) = (socket.import(Some(deadline))?, socket.import(Some(deadline))?);
        let plain = server.open(if server.job.serving.is_some() { b'w' } else { b'p' })?;
        Ok(Client { stream, plain, socket, all, table, queue, stack })
    }

    /// Memory of this end.
    pub fn register(&self, len: usize) -> Result<sidestep_extended::Region> {
        Ok(self.stack.register(len, Rights::NONE)?)
    }

    /// Takes the completion of a posted operation.
    pub fn take_one(&self) -> Result<()> {
        let mut taken = Vec::new();
        loop {
            self.queue.wait(&mut taken, 1, None)?;
            match taken.pop() {
                Some(Completion { kind: Kind::Put | Kind::Get, outcome, .. }) => return Ok(outcome.map(drop)?),
                Some(Completion { kind: Kind::Closed, outcome, .. }) => return Ok(outcome.map(drop)?),
                _ => {}
            }
        }
    }

    /// A message and its answer.
    pub fn exchange(&self, mut stream: &TcpStream) -> Result<()> {
        let mut message = [1; MESSAGE];
        stream.write_all(&message)?;
        Ok(stream.read_exact(&mut message)?)
    }
}

/// The server: serves until nobody has its standard input open.
pub fn run(job: &str) -> Result<()> {
    let job = Job::parse(job).context("what the server is to do")?;
    pin(0);
    if job.holder != 0 {
        hosts::enter(job.holder)?;
    }
    let listener = TcpListener::bind((hosts::worker_address(), 0))?;
    let address = listener.local_addr()?;
    let node = Node::new()?;
    let name = format!("shm:bench-extended-{}", std::process::id());
    let fabric = node.listen(&name)?;
    let region = Region::new(&node, REGION)?;
    println!("{address} {name}");
    std::io::stdout().flush()?;
    thread::spawn(move || -> Result<()> {
        loop {
            let request = fabric.wait(None)?;
            let share = |endpoint: &sidestep_fabric::Endpoint| {
                Ok(endpoint.share(&region, sidestep_fabric::Rights::ALL)?.to_bytes().to_vec())
            };
            // Kept, as long as this process lives.
            std::mem::forget(request.accept_with(share)?);
        }
    });
    for _ in 0..job.computing {
        thread::spawn(|| {
            let mut value = 1u64;
            loop {
                value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        });
    }
    let pool = Pool::start();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let pool = pool.clone();
            thread::spawn(move || serve(stream, &job, &pool));
        }
    });
    Pool::load(address, job.serving.unwrap_or(0))?;
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Serves a connection by its first byte.
fn serve(mut stream: TcpStream, job: &Job, pool: &Pool) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    match &kind {
        b"w" => pool.attend(stream),
        b"l" => talk::answer(&mut Tcp(stream))?,
        b"t" => talk::answer(&mut Threaded::new(stream)?)?,
        b"p" => echo(stream)?,
        _ => extend(stream, job, kind == *b"m")?,
    }
    Ok(())
}

/// Extends a connection, and answers messages there, or on the stream, or none.
fn extend(stream: TcpStream, job: &Job, messages: bool) -> Result<()> {
    let stack = job.stack()?;
    let queue = stack.completion_queue()?;
    let socket = stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS))?;
    if messages {
        return talk::answer(&mut Messages::new(stack, queue, socket)?);
    }
    let (all, table) = (stack.register(REGION, Rights::ALL)?, stack.register(REGION, Rights::READ)?);
    socket.export(&all, Rights::ALL, 1)?;
    socket.export(&table, Rights::READ, 2)?;
    if job.way == Way::InPlace {
        // Until the other end has gone.
        let mut taken = Vec::new();
        while taken.iter().all(|completion: &Completion| completion.kind != Kind::Closed) {
            queue.wait(&mut taken, 16, None)?;
        }
        return Ok(());
    }
    echo(stream)
}

/// Answers every message with itself.
fn echo(mut stream: TcpStream) -> Result<()> {
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        stream.write_all(&message)?;
    }
    Ok(())
}

/// Keeps this process, or thread, on one core; where there is only one, on that.
pub fn pin(core: usize) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(core % cores);
    let _ = sched_setaffinity(None, &set);
}
