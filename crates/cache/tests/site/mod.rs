//! An origin with files, a proxy in front of it, and a client: all in this process.

#![allow(dead_code)]

pub mod scripted;

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use sidestep_cache::{Checker, Mode, Order, Proxy, Store};
use tokio::sync::watch;

/// A server of files that knows nothing of caches. A file `NAME.headers` beside one has more headers of its answers. A request with a
/// body is answered with that.
pub struct Origin {
    pub address: String,
    pub requests: Arc<AtomicU64>,
}

/// A proxy that runs until it is dropped.
pub struct Running {
    pub address: String,
    pub proxy: Arc<Proxy>,
    orders: watch::Sender<Order>,
    thread: Option<thread::JoinHandle<()>>,
}

/// A client with one connection that is kept.
pub struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug, Default)]
pub struct Answered {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

/// When each file was changed, as the origin has it.
const CHANGED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sidestep-cache-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

impl Origin {
    pub fn start(folder: &Path) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, requests) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicU64::new(0)));
        let (folder, counted) = (folder.to_path_buf(), requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, counted) = (folder.clone(), counted.clone());
                thread::spawn(move || serve(&folder, &stream, &counted));
            }
        });
        Origin { address, requests }
    }
}

fn serve(folder: &Path, stream: &TcpStream, counted: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let mut input = BufReader::new(stream);
    loop {
        let (mut line, mut first) = (String::new(), String::new());
        if input.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut sent = None;
        while input.read_line(&mut line).unwrap_or(0) > 2 {
            match line.trim_end().to_lowercase().split_once(": ") {
                Some(("content-length", length)) => sent = Some(Sent::Length(length.parse().unwrap())),
                Some(("transfer-encoding", _)) => sent = Some(Sent::Chunks),
                _ => {}
            }
            line.clear();
        }
        let echoed = sent.map(|sent| sent.read(&mut input));
        counted.fetch_add(1, Ordering::SeqCst);
        let path = first.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
        let file = folder.join(path.trim_start_matches('/'));
        let answer = match (echoed, fs::read(&file)) {
            (Some(body), _) => {
                [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()
            }
            (_, Ok(body)) => {
                let more = fs::read_to_string(file.with_extension("headers")).unwrap_or_default();
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nLast-Modified: {CHANGED}\r\nETag: \"{length}\"\r\nContent-Length: {length}\r\n{more}\r\n"
                );
                [head.as_bytes(), if first.starts_with("HEAD") { &[] } else { &body }].concat()
            }
            (_, Err(_)) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        let mut output = stream;
        if output.write_all(&answer).is_err() {
            return;
        }
    }
}

/// How the body of a request is sent.
enum Sent {
    Length(usize),
    Chunks,
}

impl Sent {
    fn read(self, input: &mut impl BufRead) -> Vec<u8> {
        let mut take = |length: usize| {
            let mut bytes = vec![0; length];
            input.read_exact(&mut bytes).map(|()| bytes).unwrap_or_default()
        };
        if let Sent::Length(length) = self {
            return take(length);
        }
        let mut body = Vec::new();
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\n") {
                line.extend(take(1));
            }
            let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            body.extend(take(length));
            assert_eq!(take(2), b"\r\n");
            if length == 0 {
                return body;
            }
        }
    }
}

impl Running {
    /// With a cache that is checked like this; `None`: without one.
    pub fn start(origin: &str, checked: Option<(Mode, &str)>) -> Running {
        let cache = checked.map(|(mode, module)| (Store::new(64 << 20), Checker::new(mode, module)));
        let proxy = Arc::new(Proxy::new(origin, cache, 1 << 20).unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (orders, orders_of) = watch::channel(Order::Serve);
        let serving = proxy.clone().serve(listener, orders_of);
        let thread = thread::spawn(move || runtime.block_on(serving));
        Running { address, proxy, orders, thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders.send_replace(Order::Stop);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Client {
    pub fn new(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub fn get(&mut self, path: &str) -> Answered {
        self.ask("GET", path, &[])
    }

    pub fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answered {
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let question = format!("{method} {path} HTTP/1.1\r\nHost: site\r\n{more}\r\n");
        self.say(question.as_bytes());
        self.hear(method)
    }

    /// Sends bytes as they are.
    pub fn say(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The answer to a request with this method.
    pub fn hear(&mut self, method: &str) -> Answered {
        let (status, headers) = self.hear_head();
        let mut answered = Answered { status, headers, ..Answered::default() };
        let length = answered.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        if method != "HEAD" && status != 304 {
            answered.body = vec![0; length];
            self.stream.read_exact(&mut answered.body).unwrap();
        }
        answered
    }

    /// The status and the headers of an answer.
    pub fn hear_head(&mut self) -> (u16, HashMap<String, String>) {
        let (mut line, mut headers) = (String::new(), HashMap::new());
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { return (status, headers) };
            headers.insert(name.to_lowercase(), value.to_string());
        }
    }

    /// The body of an answer that comes in chunks.
    pub fn hear_chunks(&mut self) -> String {
        assert_eq!(self.hear_head().1["transfer-encoding"], "chunked");
        String::from_utf8(Sent::Chunks.read(&mut self.stream)).unwrap()
    }
}

impl Client {
    /// Sends as much as the proxy takes.
    pub fn try_say(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// The status of the next answer, if there is one.
    pub fn try_hear(&mut self) -> Option<u16> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        line.split(' ').nth(1)?.parse().ok()
    }

    /// Whether the proxy closes the connection.
    pub fn has_ended(&mut self) -> bool {
        self.stream.read(&mut [0]).is_ok_and(|count| count == 0)
    }
}

impl Answered {
    pub fn how(&self) -> &str {
        self.headers.get("x-cache").map_or("", String::as_str)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
