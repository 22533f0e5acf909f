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
use sidestep_extended::{CompletionQueue, Remote, Rights, Socket, Stack, in_milliseconds};
use sidestep_fabric::{Node, Region};

/// A server, on the first core, until it is dropped.
pub struct Server {
    child: Child,
    address: String,
    /// Its name on the fabric.
    pub fabric: String,
}

/// What the measuring process has of it.
pub struct Client {
    /// A connection with the extension, and one without.
    pub stream: TcpStream,
    pub plain: TcpStream,
    pub socket: Socket,
    /// Its memory: all of it, and some to be read.
    pub all: Remote,
    pub table: Remote,
    _queue: CompletionQueue,
    _stack: Stack,
}

/// Bytes of a message, and of the region.
const MESSAGE: usize = 64;
const REGION: usize = 1 << 20;
const PATIENCE_MS: u64 = 10_000;

impl Server {
    /// With so many threads that only compute.
    pub fn start(busy: usize) -> Result<Server> {
        let mut child = Command::new(env::current_exe()?)
            .args(["extended-end", &busy.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
        let (address, fabric) = line.trim_end().split_once(' ').context("the server does not say where it is")?;
        Ok(Server { address: address.to_string(), fabric: fabric.to_string(), child })
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
        let open = || -> Result<TcpStream> {
            let stream = TcpStream::connect(&server.address)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let mut stream = open()?;
        stream.write_all(b"x")?;
        let stack = Stack::new()?;
        let queue = stack.completion_queue()?;
        let deadline = in_milliseconds(PATIENCE_MS);
        let socket = stack.enable(stream.as_fd(), &queue, deadline)?;
        let (all, table) = (socket.import(Some(deadline))?, socket.import(Some(deadline))?);
        let mut plain = open()?;
        plain.write_all(b"p")?;
        Ok(Client { stream, plain, socket, all, table, _queue: queue, _stack: stack })
    }

    /// A message and its answer.
    pub fn exchange(&self, mut stream: &TcpStream) -> Result<()> {
        let mut message = [1; MESSAGE];
        stream.write_all(&message)?;
        Ok(stream.read_exact(&mut message)?)
    }
}

/// The server: serves until nobody has its standard input open.
pub fn run(busy: &str) -> Result<()> {
    pin(0);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let node = Node::new()?;
    let name = format!("shm:bench-extended-{}", std::process::id());
    let fabric = node.listen(&name)?;
    let region = Region::new(&node, REGION)?;
    println!("{} {name}", listener.local_addr()?);
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
    for _ in 0..busy.parse::<usize>().context("how many threads compute")? {
        thread::spawn(|| {
            let mut value = 1u64;
            loop {
                value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        });
    }
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Extends a connection that begins with `x`; then answers every message.
fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let stack = Stack::new()?;
    let queue = stack.completion_queue()?;
    let (all, table) = (stack.register(REGION, Rights::ALL)?, stack.register(REGION, Rights::READ)?);
    let socket = if kind == *b"x" {
        let socket = stack.enable(stream.as_fd(), &queue, in_milliseconds(PATIENCE_MS))?;
        socket.export(&all, Rights::ALL, 1)?;
        socket.export(&table, Rights::READ, 2)?;
        Some(socket)
    } else {
        None
    };
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        stream.write_all(&message)?;
    }
    drop(socket);
    Ok(())
}

/// Keeps this process, or thread, on one core; where there is only one, on that.
fn pin(core: usize) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(core % cores);
    let _ = sched_setaffinity(None, &set);
}
