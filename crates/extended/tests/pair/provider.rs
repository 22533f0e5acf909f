//! What carries the operations of extended sockets: the same tests run over all of it.

#![allow(unused_macros, unused_imports)]

use std::{
    fs::File,
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sidestep_extended::{Options, Stack};
use sidestep_testkit::hosts::{self, Hosts};

/// Where the two ends of the connections of a test are.
pub enum Provider {
    /// Both on this host: shared memory.
    OneHost,
    /// On two hosts that this test has made, joined by a cable: iWARP. This thread is on the near one.
    TwoHosts {
        hosts: Hosts,
        /// The network namespace that this thread came from.
        before: File,
    },
    /// Both on this host, over the connection itself: iWARP.
    InPlace,
}

/// The port on which ends on two hosts meet. Each test has its own two hosts, and so all of their ports.
pub const PORT: u16 = 7471;

const IN_PLACE: &str = "in-place";

/// One test for each provider out of each function: `fn name(provider: &Provider)`.
macro_rules! on_every_provider {
    ($($name:ident),* $(,)?) => {
        crate::pair::provider::beside_the_stream!($($name),*);
        mod in_place {
            $(#[test] fn $name() { super::$name(&super::Provider::InPlace) })*
        }
    };
}
pub(crate) use on_every_provider;

/// The same for each provider that leaves the stream of bytes to the program.
macro_rules! beside_the_stream {
    ($($name:ident),* $(,)?) => {
        mod one_host {
            $(#[test] fn $name() { super::$name(&super::Provider::OneHost) })*
        }
        mod two_hosts {
            $(#[test] fn $name() { super::Provider::two_hosts().iter().for_each(super::$name) })*
        }
    };
}
pub(crate) use beside_the_stream;

impl Provider {
    /// Two hosts, and this thread moved to the near one; `None`, with a message, where they cannot be made.
    pub fn two_hosts() -> Option<Provider> {
        let skipped = |why| println!("skipped: two hosts cannot be made here: {why}");
        let hosts = Hosts::with_cable().map_err(skipped).ok()?;
        let before = File::open("/proc/thread-self/ns/net").unwrap();
        hosts::enter(hosts.host(0).id()).unwrap();
        Some(Provider::TwoHosts { hosts, before })
    }

    /// Moves this thread to the host of the far end.
    pub fn go_to_far(&self) {
        if let Provider::TwoHosts { hosts, .. } = self {
            hosts::enter(hosts.host(1).id()).unwrap();
        }
    }

    /// Does something at the far end.
    pub fn at_far<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                self.go_to_far();
                act()
            });
            there.join().unwrap()
        })
    }

    /// For [`enter`], in a process of the far end.
    pub fn far_holder(&self) -> String {
        match self {
            Provider::OneHost => "0".to_string(),
            Provider::InPlace => IN_PLACE.to_string(),
            Provider::TwoHosts { hosts, .. } => hosts.host(1).id().to_string(),
        }
    }

    /// Whether ends map each other's memory.
    pub fn maps(&self) -> bool {
        matches!(self, Provider::OneHost)
    }

    pub fn options(&self) -> Options {
        let in_place = matches!(self, Provider::InPlace);
        Options { port: matches!(self, Provider::TwoHosts { .. }).then_some(PORT), in_place }
    }

    pub fn stack(&self) -> Stack {
        Stack::with(self.options()).unwrap()
    }

    pub fn listen(&self) -> TcpListener {
        match self {
            Provider::OneHost | Provider::InPlace => TcpListener::bind("127.0.0.1:0").unwrap(),
            Provider::TwoHosts { hosts, .. } => TcpListener::bind((hosts.host(0).address(), 0)).unwrap(),
        }
    }

    /// A connection: its near end and its far end.
    pub fn connected(&self) -> (TcpStream, TcpStream) {
        let listener = self.listen();
        let address = listener.local_addr().unwrap();
        let far = self.at_far(|| TcpStream::connect(address).unwrap());
        (listener.accept().unwrap().0, far)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if let Provider::TwoHosts { before, .. } = self {
            // The next test may run in this thread.
            move_into_link_name_space(before.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        }
    }
}

/// In a process that was started for the far end: goes there. What to make a stack with.
pub fn enter(holder: &str) -> Options {
    match holder {
        IN_PLACE => Options { in_place: true, ..Options::default() },
        "0" => Options::default(),
        holder => {
            hosts::enter(holder.parse().unwrap()).unwrap();
            Options { port: Some(PORT), ..Options::default() }
        }
    }
}
