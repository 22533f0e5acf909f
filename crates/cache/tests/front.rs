//! Hits that are answered without hyper, among requests that are not: every answer is that of its request, in whatever pieces requests
//! come, and however many at once.

mod site;

use std::{path::Path, sync::atomic::Ordering, thread};

use sidestep_cache::{Mode, Module, module};
use sidestep_testkit::{process, seeded::Seeded};
use site::{Answered, Client, Origin, Running, folder};

/// An origin with the documents `/0` to `/3`, of which `/3` is large, and a proxy that has kept them.
struct Served {
    origin: Origin,
    module: String,
    proxy: Running,
}

const LARGE: usize = 900_000;

fn serve(name: &str, mode: Mode) -> Served {
    let folder = folder(name);
    let module = module_of(&folder);
    let origin = Origin::start(&folder);
    for at in 0..4 {
        let length = if at == 3 { LARGE } else { 1 + at * 3000 };
        module::update(&module, &format!("/{at}"), &vec![b'0' + at as u8; length]).unwrap();
    }
    let proxy = Running::start(&origin.address, Some((mode, &module)));
    let mut client = Client::new(&proxy.address);
    for at in 0..4 {
        client.get(&format!("/{at}"));
        assert_eq!(client.get(&format!("/{at}")).how(), "hit");
    }
    Served { origin, module, proxy }
}

fn module_of(folder: &Path) -> String {
    let module = Module::bind(folder, "127.0.0.1:0").unwrap();
    let address = module.address().unwrap().to_string();
    thread::spawn(move || module.serve());
    address
}

/// A request, its method, and what its answer must be.
struct Asked {
    bytes: Vec<u8>,
    method: &'static str,
    status: u16,
    body: Vec<u8>,
}

impl Asked {
    /// One of all kinds. The last ones are such that hyper has the connection from there on.
    fn of_kind(kind: u64, random: &mut Seeded) -> Asked {
        let at = random.below(3) as usize;
        let whole = vec![b'0' + at as u8; 1 + at * 3000];
        let sent: Vec<u8> = (0..random.below(5000)).map(|at| at as u8).collect();
        let (method, headers, status, body): (&'static str, String, u16, Vec<u8>) = match kind {
            0..=3 => ("GET", String::new(), 200, whole),
            4 => ("GET", "Range: bytes=0-0\r\n".into(), 206, whole[..1].to_vec()),
            5 => ("HEAD", String::new(), 200, Vec::new()),
            6 => ("GET", format!("If-None-Match: \"{}\"\r\n", whole.len()), 304, Vec::new()),
            7 => ("GET", "Cache-Control: no-cache\r\n".into(), 200, whole),
            8 => ("GET", "Connection: keep-alive\r\nAccept: */*\r\n".into(), 200, whole),
            9 => ("POST", format!("Content-Length: {}\r\n", sent.len()), 200, sent.clone()),
            _ => ("POST", "Transfer-Encoding: chunked\r\n".into(), 200, sent.clone()),
        };
        // A document that something was posted to is not kept any more.
        let path = if method == "POST" { "/posted".to_string() } else { format!("/{at}") };
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: site\r\n{headers}\r\n").into_bytes();
        match kind {
            9 => bytes.extend(&sent),
            10.. => {
                for chunk in sent.chunks(1000) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            }
            _ => {}
        }
        Asked { bytes, method, status, body }
    }

    fn is_answered_by(&self, answered: &Answered) -> bool {
        answered.status == self.status && answered.body == self.body
    }
}

/// Requests of all kinds in random order, in random pieces, many at once.
#[test]
fn every_answer_is_that_of_its_request() {
    let seed = process::seed_or(1);
    println!("SIDESTEP_SEED={seed}");
    for mode in [Mode::OneSided, Mode::TwoSided] {
        ask_at_random(&serve(&format!("kinds-{mode:?}"), mode), seed);
    }
}

fn ask_at_random(served: &Served, seed: u64) {
    let mut random = Seeded::new(seed);
    for round in 0..if process::full() { 400 } else { 40 } {
        let kinds = if round % 4 == 0 { 11 } else { 10 };
        let asked: Vec<Asked> = (0..20).map(|_| Asked::of_kind(random.below(kinds), &mut random)).collect();
        let all: Vec<u8> = asked.iter().flat_map(|asked| asked.bytes.clone()).collect();
        let mut client = Client::new(&served.proxy.address);
        let (largest, mut rest) = (1 + random.below(4000), &all[..]);
        while !rest.is_empty() {
            let count = (1 + random.below(largest) as usize).min(rest.len());
            client.say(&rest[..count]);
            rest = &rest[count..];
        }
        for (at, asked) in asked.iter().enumerate() {
            let answered = client.hear(asked.method);
            let text = String::from_utf8_lossy(&asked.bytes[..asked.bytes.len().min(80)]);
            assert!(asked.is_answered_by(&answered), "round {round}, request {at}, {text:?}: {}", answered.status);
        }
    }
}

/// A request that comes byte by byte, and one behind it that comes with its end.
#[test]
fn a_request_may_come_in_any_two_pieces() {
    let served = serve("pieces", Mode::OneSided);
    let mut client = Client::new(&served.proxy.address);
    let text = b"GET /1 HTTP/1.1\r\nHost: site\r\nAccept: */*\r\n\r\nGET /2 HTTP/1.1\r\nHost: site\r\n\r\n";
    let before = served.origin.requests.load(Ordering::SeqCst);
    for cut in 1..text.len() {
        client.say(&text[..cut]);
        thread::yield_now();
        client.say(&text[cut..]);
        let (first, second) = (client.hear("GET"), client.hear("GET"));
        assert_eq!(
            (first.body.len(), first.how(), second.body.len(), second.how()),
            (3001, "hit", 6001, "hit"),
            "{cut}"
        );
    }
    assert_eq!(served.origin.requests.load(Ordering::SeqCst), before);
}

/// A client that asks and does not read gets everything when it reads, and holds up nobody else.
#[test]
fn a_slow_client_gets_all_of_its_answers() {
    let served = serve("slow", Mode::OneSided);
    let mut slow = Client::new(&served.proxy.address);
    slow.say(&b"GET /3 HTTP/1.1\r\nHost: site\r\n\r\n".repeat(40));
    let mut other = Client::new(&served.proxy.address);
    for _ in 0..100 {
        assert_eq!(other.get("/1").how(), "hit");
    }
    // What is answered after a change is new, although it was asked for before.
    module::update(&served.module, "/3", b"new").unwrap();
    let lengths: Vec<usize> = (0..40).map(|_| slow.hear("GET").body.len()).collect();
    let old = lengths.iter().take_while(|length| **length == LARGE).count();
    assert!(old > 0 && lengths[old..].iter().all(|length| *length == 3), "{lengths:?}");
    assert_eq!(slow.get("/1").how(), "hit");
}

#[test]
fn connections_end_when_they_are_asked_to() {
    let served = serve("ends", Mode::OneSided);
    for text in ["GET /1 HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n", "GET /1 HTTP/1.0\r\nHost: site\r\n\r\n"]
    {
        let mut client = Client::new(&served.proxy.address);
        assert_eq!(client.get("/2").how(), "hit");
        client.say(text.as_bytes());
        assert_eq!(client.hear("GET").body.len(), 3001);
        assert!(client.has_ended(), "{text:?}");
    }
}

/// What is no request is refused, behind hits as well as before them.
#[test]
fn heads_without_sense_or_measure_are_refused() {
    let served = serve("refused", Mode::OneSided);
    let many = (0..200).map(|at| format!("X-{at}: 1\r\n")).collect::<String>();
    for (text, statuses) in [
        ("nonsense\r\n\r\n".to_string(), &[400][..]),
        (format!("GET /1 HTTP/1.1\r\nHost: site\r\n{many}\r\n"), &[400, 431]),
        (format!("GET /1 HTTP/1.1\r\nHost: site\r\nX-Long: {}", "x".repeat(1 << 20)), &[400, 431]),
        ("POST /1 HTTP/1.1\r\nHost: site\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".into(), &[400]),
    ] {
        let mut client = Client::new(&served.proxy.address);
        assert_eq!(client.get("/1").how(), "hit");
        // The proxy may have answered and closed before it has read all.
        client.try_say(text.as_bytes());
        let what = &text[..text.len().min(60)];
        match client.try_hear() {
            Some(status) => assert!(statuses.contains(&status), "{what:?}: {status}"),
            None => assert!(text.len() > 1 << 16, "{what:?} is not answered"),
        }
    }
}

/// An answer without a date gets that of its arrival, which stays the same for every hit.
#[test]
fn hits_have_the_date_of_their_arrival() {
    let served = serve("date", Mode::OneSided);
    let mut client = Client::new(&served.proxy.address);
    let date = client.get("/1").headers["date"].clone();
    assert!(date.ends_with(" GMT"));
    assert_eq!(client.get("/1").headers["date"], date);
    assert_eq!(client.ask("GET", "/1", &[("Range", "bytes=0-1")]).headers["date"], date);
}
