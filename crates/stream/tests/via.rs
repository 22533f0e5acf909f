//! Links between two NICs: bytes come whole and in order, whatever the mechanisms and the sizes of writes and reads.

use std::{
    collections::VecDeque,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use proptest::prelude::*;
use sidestep_stream::carrier::{
    Host,
    via::{Link, Options},
};
use sidestep_testkit::process::PATIENCE;
use sidestep_vi::{NetAddress, Nic};

/// Two links that are connected.
fn pair(name: &str, options: Options) -> [Arc<Link>; 2] {
    pair_in(name, options, &Host::PLAIN)
}

fn pair_in(name: &str, options: Options, host: &'static Host) -> [Arc<Link>; 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let address = NetAddress::new(&[], format!("{name}-{}-{number}", std::process::id()).as_bytes());
    joined([(); 2].map(|()| Nic::open("nic0").expect("a NIC")), address, options, host)
}

/// Two links over iWARP.
fn distant_pair(options: Options) -> [Arc<Link>; 2] {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address");
    let address = NetAddress::new(&[127, 0, 0, 1], format!("{free}/links").as_bytes());
    joined([0, 1].map(|_| Nic::open("iwarp").expect("a NIC")), address, options, &Host::PLAIN)
}

fn joined(nics: [Nic; 2], address: NetAddress, options: Options, host: &'static Host) -> [Arc<Link>; 2] {
    nics[1].listen(&address).expect("the address is free");
    let links = [0, 1].map(|at| Link::new(&nics[at], options, host).expect("memory for a link"));
    let mut connecting =
        links[0].vi().begin_connect(&NetAddress::new(&[], b"asks"), &address).expect("somebody listens");
    let until = Instant::now() + PATIENCE;
    let mut connected = [false; 2];
    while connected != [true; 2] {
        assert!(Instant::now() < until, "the two did not meet");
        nics[1].node().progress_kernel();
        if let Some(mut request) = nics[1].poll_request(&address).expect("a listener") {
            request.accept(links[1].vi()).expect("two that agree");
            connected[1] = true;
        }
        nics[0].node().progress_kernel();
        connected[0] |= connecting.poll().expect("nobody refuses");
    }
    while links.each_ref().map(|link| link.is_ready()) != [true; 2] {
        assert!(Instant::now() < until, "the boards were not found");
        nics.iter().for_each(|nic| _ = nic.node().progress_kernel());
    }
    links
}

/// Byte number `at` of a stream.
fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

/// One direction of a link, and how far it has come.
struct Flow<'a> {
    from: &'a Arc<Link>,
    to: &'a Arc<Link>,
    sent: u64,
    received: u64,
}

impl Flow<'_> {
    fn write(&mut self, len: usize) {
        let bytes: Vec<u8> = (0..len as u64).map(|at| byte(self.sent + at)).collect();
        self.sent += self.from.send(&bytes).expect("the link stands") as u64;
    }

    fn read(&mut self, len: usize) {
        let mut bytes = vec![0; len];
        let mut seen = vec![0; len / 2];
        let peeked = self.to.peek(len / 4, &mut seen).expect("the link stands");
        let count = self.to.receive(&mut bytes).expect("the link stands");
        assert!(peeked == 0 || count >= (len / 4 + peeked).min(len), "{peeked} bytes were seen, {count} read");
        for (at, found) in bytes[..count].iter().enumerate() {
            assert_eq!(*found, byte(self.received + at as u64), "byte {} of the stream", self.received + at as u64);
        }
        self.received += count as u64;
        if count == 0 {
            self.to.found_nothing();
        }
    }
}

fn options() -> impl Strategy<Value = Options> {
    let numbers = (1u32..40, 1u32..40, prop_oneof![Just(0usize), 64usize..20_000], 0usize..9_000, 1_024usize..40_000);
    (numbers, any::<[bool; 2]>()).prop_map(|((window, acks, combine, copy, chunk), [piggyback, apart])| {
        let on = |name: &str, on: bool| if on { name.to_owned() } else { format!("no-{name}") };
        let (piggyback, apart) = (on("piggyback", piggyback), on("apart", apart));
        let text =
            format!("window={window},acks={acks},combine={combine},copy={copy},chunk={chunk},{piggyback},{apart}");
        Options::parse(&text).expect("options that exist")
    })
}

/// Nothing is mapped, acknowledgements are packets, and what was sent is in the peer's memory when it says so.
#[test]
fn links_go_over_iwarp() {
    for words in ["", "combine=0,copy=0", "window=3,acks=2,no-piggyback"] {
        let links = distant_pair(Options::parse(words).expect("options that exist"));
        assert!(links.iter().all(|link| link.is_distant() && !link.options().apart));
        let mut flows =
            [(0, 1), (1, 0)].map(|(from, to)| Flow { from: &links[from], to: &links[to], sent: 0, received: 0 });
        let until = Instant::now() + PATIENCE;
        for step in 0..400_usize {
            let len = [1, 60, 300, 5_000, 40_000][step % 5];
            flows[step % 2].write(len);
            flows[(step / 3) % 2].read(len + step);
        }
        while flows.iter().any(|flow| flow.received < flow.sent) {
            assert!(Instant::now() < until, "{words}: bytes do not come");
            flows.iter_mut().for_each(|flow| flow.read(50_000));
        }
        links[0].set_writer_note(0, 77, false).expect("the link stands");
        let mut mark = None;
        while !links[0].has_arrived(&mut mark) {
            assert!(Instant::now() < until, "{words}: the note does not arrive");
        }
        links[1].settle();
        assert_eq!(links[1].writer_note(0), 77, "{words}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bytes_come_whole_and_in_order(
        options in options(),
        steps in proptest::collection::vec((0u8..4, 0usize..70_000), 1..120),
    ) {
        let links = pair("order", options);
        let mut flows = [(0, 1), (1, 0)].map(|(from, to)| Flow { from: &links[from], to: &links[to], sent: 0, received: 0 });
        for (what, len) in steps {
            // Most programs write little at a time.
            let len = if len % 3 == 0 { len } else { len % 300 };
            match what {
                0 => flows[0].write(len),
                1 => flows[1].write(len),
                2 => flows[0].read(len),
                _ => flows[1].read(len),
            }
        }
        let until = Instant::now() + PATIENCE;
        while flows.iter().any(|flow| flow.received < flow.sent) {
            prop_assert!(Instant::now() < until, "bytes do not come: {:?}", flows.each_ref().map(|flow| (flow.sent, flow.received)));
            flows.iter_mut().for_each(|flow| flow.read(50_000));
        }
        // An acknowledgement for which there was no room goes with the next look.
        while links.iter().any(|link| link.read() != link.sent()) {
            prop_assert!(Instant::now() < until, "not all was acknowledged");
            links.iter().for_each(|link| link.settle());
        }
    }
}

#[test]
fn a_peer_that_does_not_look_gets_what_the_window_holds() {
    for apart in ["apart", "no-apart"] {
        let options = Options::parse(&format!("window=8,acks=4,combine=0,{apart}")).unwrap();
        let links = pair("window", options);
        let sent = (0..100).take_while(|_| links[0].send(&[7; 100]) == Ok(100)).count();
        assert_eq!(sent, 8);
        assert!(!links[0].has_space());
        let mut bytes = [0; 400];
        assert_eq!(links[1].receive(&mut bytes), Ok(400));
        assert!(links[0].has_space(), "four were acknowledged");
        assert_eq!(links[0].send(&[7; 100]), Ok(100));
    }
}

#[test]
fn small_writes_are_combined_while_the_reader_is_busy_and_go_out_in_time() {
    let links = pair("combine", Options::BEST);
    for _ in 0..1000 {
        assert_eq!(links[0].send(&[1; 16]), Ok(16));
    }
    let sent = links[0].packets();
    assert!(sent <= 2, "1000 writes took {sent} packets");
    let until = Instant::now() + PATIENCE;
    let mut total = 0;
    while total < 16_000 {
        assert!(Instant::now() < until, "what was held did not come: {total}");
        total += links[1].receive(&mut [0; 4096]).unwrap();
    }
}

#[test]
fn who_sets_nodelay_is_not_combined() {
    let links = pair("prompt", Options::BEST);
    links[0].set_prompt(true);
    for at in 1..20 {
        assert_eq!(links[0].send(&[1; 16]), Ok(16));
        assert_eq!(links[1].available(), at * 16);
    }
}

#[test]
fn acknowledgements_ride_with_data() {
    let options = Options::parse("no-apart").unwrap();
    let links = pair("piggyback", options);
    for _ in 0..1000 {
        for (from, to) in [(0, 1), (1, 0)] {
            assert_eq!(links[from].send(&[3; 64]), Ok(64));
            assert_eq!(links[to].receive(&mut [0; 64]), Ok(64));
        }
    }
    let acks = links.each_ref().map(|link| link.acks.load(Ordering::Relaxed));
    assert_eq!(acks, [0, 0]);
}

#[test]
fn a_handler_takes_what_arrives() {
    let links = pair("handler", Options::parse("handler,combine=0").unwrap());
    let until = Instant::now() + PATIENCE;
    for _ in 0..100 {
        for (from, to) in [(0, 1), (1, 0)] {
            while links[from].send(&[3; 64]) == Ok(0) {
                assert!(Instant::now() < until, "no credit came back");
            }
            while links[to].receive(&mut [0; 64]) == Ok(0) {
                assert!(Instant::now() < until, "nothing came");
            }
        }
    }
}

#[test]
fn notes_find_room_however_much_was_sent() {
    let links = pair("notes", Options::parse("window=4,combine=0").unwrap());
    while links[0].send(&[1; 8000]) != Ok(0) {}
    for note in 1..200 {
        assert!(links[0].may_note(), "data leaves room");
        links[0].set_writer_note(note as usize, note, false).unwrap();
        links[1].absorb();
        assert_eq!(links[1].writer_note(note as usize), note);
        links[0].set_reader_note(note << 20).unwrap();
        links[1].absorb();
        assert_eq!(links[1].reader_note(), note << 20);
    }
    // What came before is all there.
    let mut total = 0;
    loop {
        let count = links[1].receive(&mut [0; 1000]).unwrap();
        total += count;
        if count == 0 {
            break;
        }
    }
    assert_eq!(total as u64, links[0].sent());
}

#[test]
fn the_end_is_answered_when_everything_has_been_read() {
    let links = pair("end", Options::BEST);
    assert_eq!(links[0].send(b"last words"), Ok(10));
    links[0].set_writer_note(0, 1 << 63, true).unwrap();
    links[1].absorb();
    assert_eq!(links[1].writer_note(0), 1 << 63);
    links[0].absorb();
    assert!(!links[0].is_finished());
    assert_eq!(links[1].receive(&mut [0; 100]), Ok(10));
    links[0].absorb();
    assert!(links[0].is_finished());
}

#[test]
fn a_peer_that_goes_leaves_what_it_has_sent() {
    let [one, two] = pair("gone", Options::BEST);
    assert_eq!(one.send(b"the last"), Ok(8));
    drop(one);
    let until = Instant::now() + PATIENCE;
    while two.check() {
        assert!(Instant::now() < until, "the end was not seen");
        two.nic().node().progress_kernel();
    }
    assert_eq!(two.receive(&mut [0; 100]), Ok(8));
    assert!(two.send(&[0; 8000]).is_err());
}

/// A number that looks random.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

/// Each read gives one write, or as much of it as there is room for. What is left of it is gone, and nothing else is.
#[test]
fn a_datagram_is_read_by_itself() {
    for words in ["datagram", "datagram,window=3,acks=2,no-piggyback,no-apart,chunk=2048", "datagram,combine=9000"] {
        let links = pair("datagrams", Options::parse(words).unwrap());
        let chunk = links[0].options().chunk;
        let (mut state, mut made) = (7, 0);
        let mut under_way = VecDeque::new();
        for _ in 0..600 {
            if random(&mut state) % 2 == 0 {
                let most = if random(&mut state) % 3 == 0 { chunk } else { 64 };
                let write: Vec<u8> =
                    (0..1 + random(&mut state) as u64 % most as u64).map(|at| byte(made + at)).collect();
                let sent = links[0].send(&write).expect("the link stands");
                assert!(sent == 0 || sent == write.len(), "{words}: {sent} bytes of {}", write.len());
                if sent > 0 {
                    made += sent as u64;
                    under_way.push_back(write);
                }
            } else {
                let mut room = vec![0; 1 + random(&mut state) % (2 * chunk)];
                let count = links[1].receive(&mut room).expect("the link stands");
                if count == 0 {
                    links[1].found_nothing();
                } else {
                    let write = under_way.pop_front().expect("something was written");
                    assert_eq!(count, write.len().min(room.len()), "{words}");
                    assert!(room[..count] == write[..count], "{words}: another write");
                }
            }
            links.iter().for_each(|link| link.settle());
        }
        while links[1].receive(&mut vec![0; chunk]).expect("the link stands") > 0 {
            assert!(under_way.pop_front().is_some(), "{words}: more reads than writes");
        }
        assert!(under_way.is_empty(), "{words}: {} writes have not come", under_way.len());
        // A longer write is as much of it as a packet takes.
        let until = Instant::now() + PATIENCE;
        while links[0].send(&vec![1; chunk + 100]).expect("the link stands") != chunk {
            assert!(Instant::now() < until, "{words}: no packet for a long write");
            links.iter().for_each(|link| link.settle());
        }
        assert_eq!(links[1].receive(&mut vec![0; 2 * chunk]), Ok(chunk), "{words}");
    }
}

#[test]
fn long_writes_arrive_whole_however_they_are_taken() {
    for (words, most_read) in
        [("rendezvous=4096", 200_000), ("rendezvous=4096", 3000), ("window=4,rendezvous=20000", 60_000)]
    {
        let [from, to] = pair("lent", Options::parse(words).unwrap());
        const TOTAL: u64 = 24 << 20;
        let all: Vec<u8> = (0..TOTAL).map(byte).collect();
        let until = Instant::now() + PATIENCE;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut seed, mut sent) = (7, 0);
                while sent < TOTAL {
                    let len = (1 + random(&mut seed) % 150_000).min((TOTAL - sent) as usize);
                    let bytes = &all[sent as usize..][..len];
                    let mut done = 0;
                    while done < len {
                        assert!(Instant::now() < until, "{words}: {sent} bytes went out");
                        done += from.send_or_lend(&bytes[done..]).expect("the link stands");
                    }
                    sent += len as u64;
                }
                from.flush();
                while from.read() != TOTAL {
                    assert!(Instant::now() < until, "{words}: the last bytes were not read");
                    from.settle();
                }
                assert_eq!(from.sent(), TOTAL);
            });
            let (mut seed, mut received) = (9, 0);
            let mut bytes = vec![0; most_read];
            while received < TOTAL {
                assert!(Instant::now() < until, "{words}: {received} bytes came in");
                let len = 1 + random(&mut seed) % most_read;
                let count = match random(&mut seed) % 8 {
                    0 => to.peek(0, &mut bytes[..len]).expect("the link stands"),
                    1 => {
                        let here = to.available();
                        assert_eq!(to.receive(&mut bytes[..here.min(len)]), Ok(here.min(len)));
                        assert!(bytes[..here.min(len)] == all[received as usize..][..here.min(len)]);
                        received += here.min(len) as u64;
                        continue;
                    }
                    _ => {
                        let count = to.receive(&mut bytes[..len]).expect("the link stands");
                        assert!(bytes[..count] == all[received as usize..][..count]);
                        received += count as u64;
                        if count == 0 {
                            to.found_nothing();
                        }
                        continue;
                    }
                };
                assert!(bytes[..count] == all[received as usize..][..count]);
            }
            // The writer waits for word of the last ones.
            while from.read() != TOTAL {
                assert!(Instant::now() < until, "{words}: the last bytes were not acknowledged");
                to.settle();
            }
        });
        assert_eq!((to.written(), to.position()), (TOTAL, TOTAL));
    }
}

#[test]
fn what_is_offered_to_nobody_goes_in_packets() {
    let [from, to] = pair("withdrawn", Options::parse("rendezvous=4096,combine=0").unwrap());
    let bytes: Vec<u8> = (0..100_000).map(byte).collect();
    assert_eq!(from.send_or_lend(&bytes), Ok(bytes.len()));
    assert_eq!(to.written(), bytes.len() as u64, "nothing is offered any more");
    let mut got = vec![0; bytes.len()];
    assert_eq!(to.receive(&mut got), Ok(got.len()));
    assert_eq!(got, bytes);
}

#[test]
fn a_process_in_a_sandbox_takes_nothing_through_the_kernel() {
    static SANDBOX: Host = Host { is_sandboxed: || true, ..Host::PLAIN };
    const ROUNDS: usize = 2_000;
    let [from, to] = pair_in("sandbox", Options::parse("rendezvous=4096,combine=0").unwrap(), &SANDBOX);
    let bytes: Vec<u8> = (0..100_000).map(byte).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                let mut done = 0;
                while done < bytes.len() {
                    done += from.send_or_lend(&bytes[done..]).expect("the link stands");
                }
            }
        });
        let mut got = vec![0; bytes.len()];
        let until = Instant::now() + PATIENCE;
        for round in 0..ROUNDS {
            let mut done = 0;
            while done < got.len() {
                assert!(Instant::now() < until, "round {round}: {done} bytes");
                done += to.receive(&mut got[done..]).expect("the link stands");
            }
            assert!(got == bytes);
        }
    });
    // Every byte came in a packet.
    assert!(from.packets() as usize >= ROUNDS * bytes.len().div_ceil(Options::BEST.chunk));
}
