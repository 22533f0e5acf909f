//! The process under attack: an echo server for whoever connects, with its memory open to RDMA.

use std::thread;

use sidestep_testkit::process::Role;
use sidestep_vi::{Buffer, ConnectionRequest, Descriptor, Error, MemAttributes, Nic, Ptag, ViAttributes, clock};

use super::{SIZE, point_of};

/// Serves until told to end.
pub fn play(role: Role) {
    let nic = Nic::open("nic0").unwrap();
    nic.serve().unwrap();
    let there = point_of(&role.arguments[0]);
    let listening = nic.clone();
    thread::spawn(move || {
        loop {
            match listening.connect_wait(&there, Some(clock::now() + 1_000_000_000)) {
                Ok(request) => {
                    let nic = listening.clone();
                    thread::spawn(move || echo(&nic, request));
                }
                Err(Error::TimedOut) => {}
                Err(error) => panic!("waiting failed: {error}"),
            }
        }
    });
    role.control.say("here");
    while let Some(word) = role.control.hear_any_time() {
        if word == "end" {
            return;
        }
    }
}

/// Whatever ends it, it ends this connection only.
fn echo(nic: &Nic, request: ConnectionRequest) {
    let ptag = nic.create_ptag().unwrap();
    let attributes = MemAttributes { rdma_write: true, rdma_read: true, ..MemAttributes::new(ptag) };
    let buffer = nic.allocate(RECEIVES * ROOM + ROOM, &attributes).unwrap();
    serve(nic, ptag, &buffer, request);
    nic.deregister(buffer.address(), buffer.handle()).unwrap();
    nic.destroy_ptag(ptag).unwrap();
}

fn serve(nic: &Nic, ptag: Ptag, buffer: &Buffer, mut request: ConnectionRequest) {
    let reliability = request.attributes().reliability;
    let rdma_read = reliability != sidestep_vi::Reliability::Unreliable;
    let attributes = ViAttributes { reliability, rdma_write: true, rdma_read, ..ViAttributes::new(ptag) };
    let vi = nic.create_vi(&attributes, None, None).unwrap();
    let receive = |slot: u64| Descriptor::new(slot, &[buffer.segment(slot as usize * ROOM, ROOM)]);
    for slot in 0..RECEIVES as u64 {
        vi.post_receive(&receive(slot)).unwrap();
    }
    if request.accept(&vi).is_err() {
        return;
    }
    // A peer that says nothing for long is left.
    while let Ok(received) = vi.wait_receive(Some(clock::now() + 2_000_000_000)) {
        if received.status.is_error() {
            return;
        }
        let mut bytes = [0; SIZE];
        buffer.read(received.token as usize * ROOM, &mut bytes).unwrap();
        buffer.write(RECEIVES * ROOM, &bytes).unwrap();
        vi.post_receive(&receive(received.token)).unwrap();
        vi.post_send(&Descriptor::new(9, &[buffer.segment(RECEIVES * ROOM, SIZE)])).unwrap();
        if vi.wait_send(Some(clock::now() + 2_000_000_000)).is_err() {
            return;
        }
    }
}

const RECEIVES: usize = 4;
const ROOM: usize = 16 << 10;
