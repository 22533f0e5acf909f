//! VIs: the same records as over TCP.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidestep_sys::clock;
use sidestep_sys::lock::Lock;

use super::channel::Clocks;
use super::{Take, Transport};
use crate::Address;
use crate::via::{Card, Inward, Outward, ViaLine};

pub(super) fn connect(
    address: &Address,
    identity: u64,
    max_message: usize,
    timeout: Duration,
) -> io::Result<Box<dyn Transport>> {
    let clocks = Clocks::new();
    let deadline = clock::now().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let line = Card::open(address)?.connect(identity, deadline)?;
    let (outward, inward) = (Lock::new(line.outward()), Lock::new(line.inward(max_message)));
    Ok(Box::new(Via { outward, inward, line, clocks }))
}

struct Via {
    /// One thread at a time sends, and one receives: nobody ever waits for these.
    outward: Lock<Outward>,
    inward: Lock<Inward>,
    line: Arc<ViaLine>,
    clocks: Clocks,
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

    fn receive(&self, until: Instant, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.inward.lock().receive(Some(self.clocks.fabric_time(until)), take)
    }

    fn wait_sendable(&self, until: Instant, take: Option<&mut Take<'_>>) -> io::Result<()> {
        match take {
            // Word of the receives of the server comes the same way as its replies.
            Some(take) => self.receive(until.min(Instant::now() + LOOK), take).map(|_| ()),
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
