//! One completion queue for many peers: nothing of any of them is overlooked, however busy the others are.

use std::{collections::HashSet, thread};

use sidestep_testkit::process::PATIENCE_NS;
use sidestep_vi::{Buffer, Descriptor, MemAttributes, NetAddress, Nic, Queue, Vi, ViAttributes, clock};

const PEERS: usize = 24;

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

/// One peer, with a VI that is connected to one of the server.
struct Client {
    vi: Vi,
    source: Buffer,
    _nic: Nic,
}

#[test]
fn a_poll_that_finds_nothing_has_looked_at_all() {
    let server = Nic::open("nic0").unwrap();
    let ptag = server.create_ptag().unwrap();
    let cq = server.create_cq(4096).unwrap();
    let buffer = server.allocate(4096, &MemAttributes::new(ptag)).unwrap();
    let point = NetAddress::new(&[127, 0, 0, 1], format!("peers-{}", std::process::id()).as_bytes());
    let room = Descriptor::new(0, &[buffer.segment(0, 64)]);
    let mut there = Vec::new();
    let clients: Vec<Client> = (0..PEERS)
        .map(|_| {
            let vi = server.create_vi(&ViAttributes::new(ptag), None, Some(&cq)).unwrap();
            vi.post_receive(&room).unwrap();
            let client = thread::scope(|scope| {
                scope.spawn(|| server.connect_wait(&point, soon()).unwrap().accept(&vi).unwrap());
                connect(&point)
            });
            there.push(vi);
            client
        })
        .collect();
    // In each round some of them send, one message each; it has been delivered when it has been sent.
    for round in 0..2000 {
        let senders: HashSet<usize> =
            (0..PEERS).filter(|peer| (round * (peer + 3)) % 7 < 2 || peer % 11 == 0).collect();
        for peer in &senders {
            let Client { vi, source, .. } = &clients[*peer];
            vi.post_send(&Descriptor::new(0, &[source.segment(0, 8)])).unwrap();
            assert!(!vi.wait_send(soon()).unwrap().status.is_error());
        }
        let mut heard = HashSet::new();
        while let Some((vi, queue)) = cq.poll() {
            assert_eq!(queue, Queue::Receive);
            assert!(!vi.poll_receive().unwrap().status.is_error());
            vi.post_receive(&room).unwrap();
            heard.insert(there.iter().position(|known| known.id() == vi.id()).unwrap());
        }
        assert_eq!(heard, senders, "round {round}");
    }
}

fn connect(point: &NetAddress) -> Client {
    let nic = Nic::open("nic0").unwrap();
    let ptag = nic.create_ptag().unwrap();
    let vi = nic.create_vi(&ViAttributes::new(ptag), None, None).unwrap();
    vi.connect(&NetAddress::default(), point, soon()).unwrap();
    let source = nic.allocate(8, &MemAttributes::new(ptag)).unwrap();
    Client { vi, source, _nic: nic }
}
