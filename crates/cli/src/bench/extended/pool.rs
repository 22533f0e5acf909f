//! A server whose threads serve requests, and which answers the question for a version as it answers any other: by one of those
//! threads, when it comes to that (figures 10.8 and 10.9). Nothing else of it computes.

use std::{
    hint::black_box,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::end::MESSAGE;

/// Where requests wait for a thread.
#[derive(Clone)]
pub struct Pool {
    waiting: Sender<Request>,
}

struct Request {
    from: Arc<TcpStream>,
    message: [u8; MESSAGE],
}

/// Threads that serve.
const THREADS: usize = 8;
/// What one request for a document computes, of its thread's time.
const DOCUMENT: Duration = Duration::from_millis(1);
/// A request for a document, by its first byte; others ask for a version.
const WANTS_DOCUMENT: u8 = b'd';

impl Pool {
    pub fn start() -> Pool {
        let (waiting, requests) = mpsc::channel();
        let requests = Arc::new(Mutex::new(requests));
        for _ in 0..THREADS {
            let requests = requests.clone();
            thread::spawn(move || work(&requests));
        }
        Pool { waiting }
    }

    /// Takes requests off a connection until it ends.
    pub fn attend(&self, stream: TcpStream) {
        let from = Arc::new(stream);
        let mut message = [0; MESSAGE];
        while (&*from).read_exact(&mut message).is_ok()
            && self.waiting.send(Request { from: from.clone(), message }).is_ok()
        {}
    }

    /// Clients that always want a document, so many.
    pub fn load(address: SocketAddr, clients: usize) -> Result<()> {
        for _ in 0..clients {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"w")?;
            thread::spawn(move || {
                let mut message = [WANTS_DOCUMENT; MESSAGE];
                while stream.write_all(&message).and_then(|()| stream.read_exact(&mut message)).is_ok() {}
            });
        }
        Ok(())
    }
}

fn work(requests: &Mutex<Receiver<Request>>) {
    loop {
        let next = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Request { from, message }) = next else { return };
        if message[0] == WANTS_DOCUMENT {
            let (began, mut value) = (Instant::now(), 1u64);
            while began.elapsed() < DOCUMENT {
                value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        }
        // A client that has gone wants no answer.
        let _ = (&*from).write_all(&message);
    }
}
