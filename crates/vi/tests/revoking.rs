//! Memory of the program, taken back while a peer writes it: when deregistering returns, the bytes are the program's own.

use std::thread;

use sidestep_fabric::Node;
use sidestep_testkit::{
    conformance::fixture::{self, Fixture},
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

fn write_and_take_back(fixture: Fixture, serve: bool) {
    let mut links = fixture(2).links;
    let nics = [(); 2].map(|()| Nic::on(Node::with_link(links.remove(0)).unwrap(), "nic0").unwrap());
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
