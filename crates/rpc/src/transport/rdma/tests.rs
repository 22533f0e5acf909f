//! Who gets the credits.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sidestep_wire::oncrpc::{Auth, Xid, call};

use super::*;
use crate::rdma::INLINE;
use crate::record::ROOM;
use crate::transport::after;
use crate::xdr::{Reader, Writer};
use crate::{Call, MAX_MESSAGE, Refusal, Server, Service};

/// Replies to each call when it is told to.
struct Obedient(Mutex<Receiver<()>>);

impl Service for Obedient {
    fn program(&self) -> u32 {
        99
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, _: &Call<'_>, _: &mut Reader<'_>, _: &mut Writer<'_>) -> Result<(), Refusal> {
        lock(&self.0).recv().map_err(|_| Refusal::SystemError)
    }
}

fn frame(xid: u32, arguments: usize) -> Vec<u8> {
    let mut frame = vec![0; ROOM];
    let header = call::Repr {
        xid: Xid(xid),
        program: 99,
        version: 1,
        procedure: 0,
        credential: Auth::NONE,
        verifier: Auth::NONE,
    };
    header.emit(&mut Writer::new(&mut frame, 1 << 20)).unwrap();
    frame.resize(frame.len() + arguments, 0);
    frame
}

#[test]
fn whoever_waits_for_credits_goes_before_newcomers() {
    let (replying, told) = channel();
    let server = Server::builder().service(Obedient(Mutex::new(told))).rdma("127.0.0.1:0").unwrap().start().unwrap();
    let host = server.addresses().next().unwrap().to_string();
    let timeout = Duration::from_secs(60);
    let wishes =
        Wishes { max_message: MAX_MESSAGE, timeout, reply_chunk: 1000, inline: INLINE, binding: Binding::NONE };
    let line = connect(&host, wishes).unwrap();
    let replies = |expected: usize| {
        let mut count = 0;
        (0..expected).for_each(|_| replying.send(()).unwrap());
        while count < expected {
            assert!(line.receive(after(timeout), &mut |_| count += 1).unwrap(), "no reply came");
        }
    };
    // There is one credit until the server grants more.
    let (first, waiting, mut newcomer) = (frame(1, 0), frame(2, 10_000), frame(3, 10_000));
    assert_eq!(line.send(&first).unwrap(), first.len());
    assert_eq!(line.send(&waiting).unwrap(), 0);
    assert!(!line.give_whole(&mut newcomer).unwrap());
    replies(1);
    // Now there are enough for both, and the one who waited is the first to get one.
    assert!(!line.give_whole(&mut newcomer).unwrap());
    assert_eq!(line.send(&waiting).unwrap(), waiting.len());
    assert!(line.give_whole(&mut newcomer).unwrap());
    // What was given lies in memory that the server reads, and what was kept is here still.
    assert!(newcomer.is_empty() && waiting == frame(2, 10_000));
    replies(2);
    assert!(line.give_whole(&mut frame(4, 0)).unwrap());
    replies(1);
}
