//! An origin with files, a proxy in front of it, and a client: all in this process.

#![allow(dead_code)]

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

/// A server of files that knows nothing of caches. A file `NAME.headers` beside one has more headers of its answers.
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
        while input.read_line(&mut line).unwrap_or(0) > 2 {
            line.clear();
        }
        counted.fetch_add(1, Ordering::SeqCst);
        let path = first.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
        let file = folder.join(path.trim_start_matches('/'));
        let answer = match fs::read(&file) {
            Ok(body) => {
                let more = fs::read_to_string(file.with_extension("headers")).unwrap_or_default();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nETag: \"{}\"\r\nContent-Length: {}\r\n{more}\r\n",
                    body.len(),
                    body.len()
                );
                [head.as_bytes(), if first.starts_with("HEAD") { &[] } else { &body }].concat()
            }
            Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        let mut output = stream;
        if output.write_all(&answer).is_err() {
            return;
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
        self.stream.get_mut().write_all(question.as_bytes()).unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        let mut answered = Answered { status, ..Answered::default() };
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            answered.headers.insert(name.to_lowercase(), value.to_string());
        }
        let length = answered.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        if method != "HEAD" && status != 304 {
            answered.body = vec![0; length];
            self.stream.read_exact(&mut answered.body).unwrap();
        }
        answered
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
