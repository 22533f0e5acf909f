//! VIs: the same records as over TCP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sidestep_sys::lock::Lock;

use super::{Take, Transport, after};
use crate::Address;
use crate::via::{Card, Inward, Outward, ViaLine};

pub(super) fn connect(
    address: &Address,
    identity: u64,
    max_message: usize,
    timeout: Duration,
) -> io::Result<Box<dyn Transport>> {
    let line = Card::open(address)?.connect(identity, after(timeout))?;
    let (outward, inward) = (Lock::new(line.outward()), Lock::new(line.inward(max_message)));
    Ok(Box::new(Via { outward, inward, line }))
}

struct Via {
    /// One thread at a time sends, and one receives: nobody ever waits for these.
    outward: Lock<Outward>,
    inward: Lock<Inward>,
    line: Arc<ViaLine>,
}

/// How long to wait for a reply before looking whether more can be sent, or whether somebody else still receives.
const LOOK: Duration = Duration::from_micros(100);

impl Transport for Via {
    fn lossy(&self) -> bool {
        false
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        self.outward.lock().try_send(frame)
    }

    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.inward.lock().receive(Some(until), take)
    }

    fn wait_sendable(&self, until: u64, take: Option<&mut Take<'_>>) -> io::Result<()> {
        match take {
            // Word of the receives of the server comes the same way as its replies.
            Some(take) => self.receive(until.min(after(LOOK)), take).map(|_| ()),
            None => {
                std::thread::sleep(LOOK);
                Ok(())
            }
        }
    }

    fn close(&self) {
        self.line.close();
    }
}
