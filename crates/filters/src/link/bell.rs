//! Where a thread of a copy sleeps for news of connections within its own process.
//!
//! A sleeper sets `asleep`, then looks; whoever has news publishes it, then looks at `asleep`. A full fence on both sides lets
//! one of them see the other, so no wake-up is lost, and news for a thread that runs costs no more than a load.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex};

use sidestep_fabric::EventQueue;
use sidestep_fabric::event::SourceId;
use sidestep_vi::{Nic, Sleeper};

use crate::error::{Error, Result};

/// One for each port: two ports of a copy may be used by two threads.
pub(crate) struct Bell {
    asleep: AtomicBool,
    cancelled: AtomicBool,
    kind: BellKind,
}

pub(crate) enum BellKind {
    /// All connections of the port are within the process.
    Local(Mutex<bool>, Condvar),
    /// Others are channels.
    Events(EventQueue, SourceId),
    /// Others are sockets: one end is polled with them.
    Socket(UnixStream, UnixStream),
    /// Others are VIs: the sleep is one of their node, with what it keeps at each peer.
    Nic(Nic, Mutex<Vec<Sleeper>>),
}

impl Bell {
    pub fn new(kind: BellKind) -> Arc<Bell> {
        Arc::new(Bell { asleep: AtomicBool::new(false), cancelled: AtomicBool::new(false), kind })
    }

    pub fn local() -> BellKind {
        BellKind::Local(Mutex::new(false), Condvar::new())
    }

    pub fn socket() -> Result<BellKind> {
        let pair = UnixStream::pair().and_then(|(here, there)| {
            here.set_nonblocking(true)?;
            there.set_nonblocking(true)?;
            Ok((here, there))
        });
        let (here, there) = pair.map_err(Error::system("a bell"))?;
        Ok(BellKind::Socket(here, there))
    }

    pub fn kind(&self) -> &BellKind {
        &self.kind
    }

    /// From now on news rings. Look again after this, and sleep only then.
    pub fn announce(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// After the sleep.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        match &self.kind {
            BellKind::Local(rung, _) => *rung.lock().expect("no panic with a bell") = false,
            BellKind::Socket(here, _) => while matches!((&mut &*here).read(&mut [0; 64]), Ok(64)) {},
            BellKind::Events(..) | BellKind::Nic(..) => {}
        }
    }

    /// Sleeps until someone rings, where that is all there is to wait for.
    pub fn sleep_local(&self) {
        if let BellKind::Local(rung, condition) = &self.kind {
            let mut rung = rung.lock().expect("no panic with a bell");
            while !*rung {
                rung = condition.wait(rung).expect("no panic with a bell");
            }
        }
    }

    /// There is news for whoever sleeps here.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.ring_now();
        }
    }

    /// Ends the reports of channels: they and the event queue hold each other.
    pub fn detach(&self, sources: &[SourceId]) {
        if let BellKind::Events(events, _) = &self.kind {
            sources.iter().for_each(|source| events.detach(*source));
        }
    }

    /// Everything that waits here, and will, is over.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.ring_now();
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn ring_now(&self) {
        match &self.kind {
            BellKind::Local(rung, condition) => {
                *rung.lock().expect("no panic with a bell") = true;
                condition.notify_one();
            }
            BellKind::Events(events, source) => drop(events.deliver(*source)),
            // A full socket has rung already.
            BellKind::Socket(_, there) => drop((&mut &*there).write(&[1])),
            BellKind::Nic(nic, _) => nic.node().wake(),
        }
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Bell")
    }
}
