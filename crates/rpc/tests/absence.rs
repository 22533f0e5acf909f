//! What a null call does not do: allocate.

#[path = "every/mod.rs"]
mod every;

use every::generated::EveryV1Client;
use sidestep_rpc::{Client, ClientOptions};
use sidestep_testkit::allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Client and server are in this process, so both are counted.
#[test]
fn a_null_call_allocates_nothing_once_it_is_warm() {
    let id = std::process::id();
    let path = std::env::temp_dir().join(format!("sidestep-rpc-absence-{id}.sock"));
    let (path, shm, vi) =
        (format!("unix:{}", path.display()), format!("shm:rpc-absence-{id}"), format!("vi:absence-{id}"));
    let builder = ["tcp:127.0.0.1:0", "udp:127.0.0.1:0", "rdma:127.0.0.1:0", &path, &shm, &vi]
        .into_iter()
        .fold(every::builder(), |builder, address| builder.listen(address).unwrap());
    let server = builder.start().unwrap();
    let sockets = server.addresses().zip(["tcp", "udp", "rdma"]).map(|(socket, scheme)| format!("{scheme}:{socket}"));
    for address in sockets.chain([path, shm, vi]) {
        allocates_nothing(&address, ClientOptions::default());
        // Calls that may be sent again.
        allocates_nothing(&address, ClientOptions { resend: true, ..ClientOptions::default() });
    }
}

fn allocates_nothing(address: &str, options: ClientOptions) {
    let client = EveryV1Client::new(Client::connect_with(&address.parse().unwrap(), options).unwrap());
    // The pool grows until one thread is free, and each thread has buffers of its own: a few rounds may still
    // allocate, and two in a row must not.
    let mut counts = Vec::new();
    for _ in 0..50 {
        let before = ALLOCATOR.calls();
        for _ in 0..100 {
            client.every_null().unwrap();
        }
        counts.push(ALLOCATOR.calls() - before);
        if counts.ends_with(&[0, 0]) {
            break;
        }
    }
    assert!(counts.ends_with(&[0, 0]), "allocations per 100 calls over {address}: {counts:?}");
}
