//! The connections to the origin: used again when an answer has been read, and not when it has not.

mod site;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use site::{Client, Running};

/// Answers by path, and counts connections.
struct Counting {
    address: String,
    connections: Arc<AtomicUsize>,
}

const ENDLESS: usize = 1 << 30;

impl Counting {
    fn start() -> Counting {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, connections) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicUsize::new(0)));
        let counted = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serve(&stream));
            }
        });
        Counting { address, connections }
    }

    fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: &TcpStream) {
    let mut input = BufReader::new(stream);
    loop {
        let (mut first, mut line) = (String::new(), String::new());
        if input.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut host = String::new();
        while input.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("host: ") {
                host = value.trim_end().to_string();
            }
            line.clear();
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let answer = match path {
            "/length" => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".to_string(),
            "/empty" => "HTTP/1.1 204 No Content\r\n\r\n".to_string(),
            "/closes" => "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc".to_string(),
            "/chunks" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_string(),
            "/host" => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{host}", host.len()),
            "/endless" => format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS}\r\n\r\nabc"),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_string(),
        };
        if stream.write_all(answer.as_bytes()).is_err() || path == "/closes" {
            return;
        }
    }
}

#[test]
fn a_connection_is_used_again_when_its_answer_has_been_read() {
    let origin = Counting::start();
    let proxy = Running::start(&origin.address, None);
    let mut client = Client::new(&proxy.address);
    for _ in 0..20 {
        assert_eq!(client.get("/length").text(), "abc");
        assert_eq!(client.get("/empty").status, 204);
        assert_eq!(client.get("/missing").status, 404);
        client.say(b"GET /chunks HTTP/1.1\r\nHost: site\r\n\r\n");
        assert_eq!(client.hear_chunks(), "abc");
    }
    assert_eq!(origin.count(), 1);
    for _ in 0..10 {
        assert_eq!(client.get("/closes").text(), "abc");
    }
    assert!((10..=11).contains(&origin.count()), "{}", origin.count());
}

/// A client that leaves in the middle of an answer takes the origin's connection with it: its rest is nobody's.
#[test]
fn a_connection_whose_answer_was_broken_off_is_not_used_again() {
    let origin = Counting::start();
    let proxy = Running::start(&origin.address, None);
    for round in 0..5 {
        let mut leaving = Client::new(&proxy.address);
        leaving.say(b"GET /endless HTTP/1.1\r\nHost: site\r\n\r\n");
        assert_eq!(leaving.hear_head().1["content-length"], ENDLESS.to_string());
        drop(leaving);
        assert_eq!(Client::new(&proxy.address).get("/length").text(), "abc", "round {round}");
    }
}

#[test]
fn requests_in_the_form_for_proxies_and_without_a_host_are_passed_on() {
    let origin = Counting::start();
    let proxy = Running::start(&origin.address, None);
    let mut client = Client::new(&proxy.address);
    client.say(b"GET http://elsewhere/host HTTP/1.1\r\nHost: site\r\n\r\n");
    assert_eq!(client.hear("GET").text(), "site");
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    stream.write_all(b"GET /host HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(&format!("\r\n\r\n{}", origin.address)), "{answer:?}");
}

#[test]
fn an_origin_that_is_not_there_is_told_of() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let proxy = Running::start(&address, None);
    let answered = Client::new(&proxy.address).get("/length");
    assert_eq!((answered.status, answered.text()), (502, "the origin does not answer"));
    assert_eq!(proxy.proxy.metrics().failed.value(), 1);
}
