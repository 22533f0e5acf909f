//! Memory of the program, taken back while a peer writes it: when deregistering returns, the bytes are the program's own.

use std::thread;

use sidestep_fabric::{Node, link::AnyLink};
use sidestep_testkit::{
    conformance::{
        fixture::{self, Fixture},
        nodes::scheme_of,
    },
    process::{PATIENCE_NS, full},
};
use sidestep_vi::{Buffer, Descriptor, MemAttributes, Memory, NetAddress, Nic, Status, Vi, ViAttributes, clock};

const LEN: usize = 64 << 10;

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

/// By the initiator itself, through the kernel: the target calls nothing.
#[test]
fn nothing_is_written_after_deregistering() {
    write_and_take_back(fixture::shm, false);
}

/// By the target's service thread: a link that is traced has no way through the kernel.
#[test]
fn nothing_is_written_after_deregistering_by_the_service_thread() {
    write_and_take_back(fixture::traced_shm, true);
}

/// A peer that was told of a receive maps all of the memory it lies in, until that is deregistered; one that may not place
/// messages never does. What taking it back after each message would cost is printed.
#[test]
fn without_placing_no_peer_maps_receive_memory() {
    for placing in [true, false] {
        let mut links = fixture::shm(2).links;
        let nics = [(); 2].map(|()| nic_on(links.remove(0)));
        let tags = [nics[0].create_ptag().unwrap(), nics[1].create_ptag().unwrap()];
        let vis = [0, 1].map(|side: usize| nics[side].create_vi(&ViAttributes::new(tags[side]), None, None).unwrap());
        vis[1].set_placing(placing);
        let source = nics[0].allocate(LEN, &MemAttributes::new(tags[0])).unwrap();
        let target = nics[1].allocate(LEN, &MemAttributes::new(tags[1])).unwrap();
        source.write(0, &[7; LEN]).unwrap();
        connect(&nics[1], &vis, &fixture::unique_name());
        for _ in 0..20 {
            vis[1].post_receive(&Descriptor::new(1, &[target.segment(0, LEN)])).unwrap();
            vis[0].progress();
            vis[0].post_send(&Descriptor::new(2, &[source.segment(0, LEN)])).unwrap();
            let received = loop {
                vis[0].progress();
                if let Some(received) = vis[1].poll_receive() {
                    break received;
                }
            };
            assert_eq!((received.len as usize, received.status.is_error()), (LEN, false));
            while vis[0].poll_send().is_none() {}
        }
        assert_eq!(mappings(&target) > 1, placing, "placing {placing}");
        let begun = clock::now();
        nics[1].deregister(target.address(), target.handle()).unwrap();
        println!("placing {placing}: taking {LEN} bytes back took {} ns", clock::now() - begun);
    }
}

/// How often the pages of a buffer are mapped in this process, which is both sides.
fn mappings(buffer: &Buffer) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let inode = |line: &str| line.split_whitespace().nth(4).map(str::to_string);
    let own = maps.lines().find(|line| {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let range = [from, to].map(|end| u64::from_str_radix(end, 16).unwrap());
        (range[0]..range[1]).contains(&buffer.address())
    });
    let own = own.and_then(inode).expect("the buffer is mapped");
    maps.lines().filter(|line| inode(line).as_ref() == Some(&own)).count()
}

fn write_and_take_back(fixture: Fixture, serve: bool) {
    let mut links = fixture(2).links;
    let nics = [(); 2].map(|()| nic_on(links.remove(0)));
    if serve {
        nics[1].serve().unwrap();
    }
    let tags = [nics[0].create_ptag().unwrap(), nics[1].create_ptag().unwrap()];
    let source = nics[0].allocate(LEN, &MemAttributes::new(tags[0])).unwrap();
    for round in 0..if full() { 500 } else { 50 } {
        let vis = [0, 1].map(|side: usize| {
            let attributes = ViAttributes { rdma_write: true, ..ViAttributes::new(tags[side]) };
            nics[side].create_vi(&attributes, None, None).unwrap()
        });
        let target = Memory::heap(LEN).unwrap();
        let rights = MemAttributes { rdma_write: true, ..MemAttributes::new(tags[1]) };
        let handle = nics[1].register(target.clone(), &rights).unwrap();
        let address = target.base().as_ptr() as u64;
        connect(&nics[1], &vis, &fixture::unique_name());
        thread::scope(|scope| {
            let writer = scope.spawn(|| write_until_refused(&vis[0], &source, address, handle));
            let deadline = soon();
            // The first write may be for the target to carry out; it tells of the memory. From then on it calls nothing.
            while contents(&target)[0] == 0 {
                vis[1].poll_receive();
                assert!(Some(clock::now()) < deadline && !writer.is_finished(), "nothing was written");
                thread::yield_now();
            }
            nics[1].deregister(address, handle).unwrap();
            let then = contents(&target);
            // Its refusal comes behind everything that was on its way, and needs somebody who says it.
            while !writer.is_finished() {
                vis[1].poll_receive();
            }
            writer.join().unwrap();
            assert!(contents(&target) == then, "round {round}: written after deregistering");
        });
    }
}

/// Writes all of the target, each time something else, until that is refused.
fn write_until_refused(vi: &Vi, source: &Buffer, address: u64, handle: sidestep_vi::MemHandle) {
    for byte in (1..=255u8).cycle() {
        source.write(0, &[byte; LEN]).unwrap();
        vi.post_send(&Descriptor::new(1, &[source.segment(0, LEN)]).write_to(address, handle)).unwrap();
        let status = vi.wait_send(soon()).unwrap().status;
        if status.is_error() {
            return assert_eq!(status.and(Status::RDMA_PROT_ERROR), status);
        }
    }
}

fn contents(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; LEN];
    memory.span(0, LEN).unwrap().copy_out(0, &mut bytes).unwrap();
    bytes
}

fn connect(server: &Nic, [client, accepting]: &[Vi; 2], name: &str) {
    let point = NetAddress::new(&[127, 0, 0, 1], name.as_bytes());
    thread::scope(|scope| {
        scope.spawn(|| server.connect_wait(&point, soon()).unwrap().accept(accepting).unwrap());
        client.connect(&NetAddress::default(), &point, soon()).unwrap();
    });
}

fn nic_on(link: AnyLink) -> Nic {
    let node = Node::with_links(vec![link]).unwrap();
    Nic::on(node.clone(), scheme_of(&node), "nic0").unwrap()
}
