//! What it costs to make the things a connection needs, and to use them again.

use std::hint::black_box;

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketAddrV4, SocketType, bind, socket};
use sidestep_fabric::{Access, Aperture, Channel, ChannelOptions, Cookie, Endpoint, Mode, Region, Rights, Tripwire};
use sidestep_shm::Memory;

use super::clock;
use super::duo::Duo;
use super::path::{Bench, Operation, Part, Path, Solo, Wait, Work};
use super::place::Placement;
use super::record::Metric;

/// A first connection: both processes meet, then an endpoint on each side.
pub const ENDPOINT: Path = Path {
    name: "endpoint",
    about: "first connection of two nodes: session and an endpoint on each side",
    work: Work::Solo { make: || Ok(Box::new(|_| Duo::new()?.connect().map(drop))) },
    parts: &[part("endpoint", &[0])],
};

/// Another connection of two nodes that have met.
pub const ENDPOINT_AGAIN: Path = Path {
    name: "endpoint-again",
    about: "another connection of the same nodes, in slots that were used before",
    work: Work::Solo {
        make: || {
            let duo = Duo::new()?;
            Ok(Box::new(move |_| duo.connect().map(drop)))
        },
    },
    parts: &[part("endpoint-again", &[0])],
};

/// Another connection with its queues, all from the caches.
pub const CHANNEL_AGAIN: Path = Path {
    name: "channel-again",
    about: "another channel (endpoint and queues) of the same nodes, from cached memory",
    work: Work::Solo {
        make: || {
            let channels = Channels::new()?;
            Ok(Box::new(move |_| channels.connect()))
        },
    },
    parts: &[part("channel-again", &[0])],
};

/// A region of fresh memory.
pub const REGION: Path = Path {
    name: "region",
    about: "a region of fresh shared memory, and its cookie",
    work: Work::Solo {
        make: || {
            let duo = Duo::new()?;
            Ok(Box::new(move |size| {
                let region = Region::new(&duo.server, size)?;
                black_box(region.cookie(Rights::ALL));
                Ok(())
            }))
        },
    },
    parts: &[part("region", &[4096, 65536, 1 << 20])],
};

/// A region of memory that the caller owns.
pub const REGISTER: Path = Path {
    name: "register",
    about: "a region of the caller's memory, registered and given back",
    work: Work::Solo {
        make: || {
            let duo = Duo::new()?;
            let memory = Memory::heap(1 << 20)?;
            Ok(Box::new(move |_| {
                black_box(Region::over(&duo.server, memory.clone())?);
                Ok(())
            }))
        },
    },
    parts: &[part("register", &[1 << 20])],
};

/// An aperture, mapped.
pub const APERTURE: Path = Path {
    name: "aperture",
    about: "an aperture onto a region that was not mapped before, and one that was",
    work: Work::Solo { make: || Ok(Box::new(Apertures::new()?)) },
    parts: &[part("aperture", &[65536]), part("aperture-again", &[0])],
};

/// A tripwire.
pub const TRIPWIRE: Path = Path {
    name: "tripwire",
    about: "a tripwire, set, armed and taken away",
    work: Work::Solo {
        make: || {
            let duo = Duo::new()?;
            let region = Region::new(&duo.server, 4096)?;
            Ok(Box::new(move |_| {
                Tripwire::new(&region, 64, Access::Write, Mode::Once)?.arm();
                Ok(())
            }))
        },
    },
    parts: &[part("tripwire", &[0])],
};

/// The kernel's own endpoint, for comparison.
pub const SOCKET: Path = Path {
    name: "tcp-socket",
    about: "a TCP socket, made, bound and closed",
    work: Work::Solo {
        make: || {
            Ok(Box::new(|_| {
                let made = socket(AddressFamily::INET, SocketType::STREAM, None)?;
                Ok(bind(&made, &SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0))?)
            }))
        },
    },
    parts: &[part("tcp-socket", &[0])],
};

const fn part(row: &'static str, sizes: &'static [usize]) -> Part {
    Part {
        bench: Bench::Cost,
        row,
        operation: Operation::Stream,
        wait: Wait::Spin,
        placements: &[Placement::Cross],
        sizes,
        shift: 0,
    }
}

impl<F: FnMut(usize) -> Result<()>> Solo for F {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        // Making things is slow enough that a few are plenty, and each leaves work for the kernel.
        let count = count.min(MOST);
        let before = clock::now();
        for _ in 0..count {
            self(size)?;
        }
        Ok(vec![(Metric::Cost, (clock::now() - before) as f64 / count as f64)])
    }
}

/// Two nodes with a connection, and apertures from one onto regions of the other.
struct Apertures {
    again: Cookie,
    _region: Region,
    ends: (Endpoint, Endpoint),
    duo: Duo,
}

impl Apertures {
    fn new() -> Result<Apertures> {
        let duo = Duo::new()?;
        let ends = duo.connect()?;
        let region = Region::new(&duo.server, 65536)?;
        Ok(Apertures { again: region.cookie(Rights::ALL), _region: region, ends, duo })
    }

    fn open(&self, cookie: &Cookie) -> Result<()> {
        let aperture = Aperture::begin(&self.ends.0, cookie)?;
        self.duo.until(|| Ok(aperture.is_open()?.then_some(())))
    }
}

impl Solo for Apertures {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        let count = count.min(MOST);
        let mut time = 0;
        for _ in 0..count {
            // The region is made outside the watch.
            let fresh = if size == 0 { None } else { Some(Region::new(&self.duo.server, size)?) };
            let cookie = fresh.as_ref().map_or(self.again, |region| region.cookie(Rights::ALL));
            let before = clock::now();
            self.open(&cookie)?;
            time += clock::now() - before;
        }
        Ok(vec![(Metric::Cost, time as f64 / count as f64)])
    }
}

/// Channels between two nodes; the accepting side runs in a thread of its own.
struct Channels {
    client: sidestep_fabric::Node,
    name: String,
    _first: Channel,
}

impl Channels {
    fn new() -> Result<Channels> {
        let server = sidestep_fabric::Node::new()?;
        let client = sidestep_fabric::Node::new()?;
        let name = super::shared::fabric_name();
        let listener = server.listen(&name)?;
        std::thread::spawn(move || {
            let mut held = Vec::new();
            while let Ok(request) = listener.wait(None) {
                if let Ok(channel) = Channel::accept(request, ChannelOptions::default(), b"", clock::in_seconds(10)) {
                    held.push(channel);
                }
                // The first stays; the others end when the client has closed.
                while held.len() > 1 && held[1].endpoint.wait_closed(clock::in_seconds(10)).is_ok() {
                    held.remove(1);
                }
            }
        });
        let first = Self::open(&client, &name)?;
        Ok(Channels { client, name, _first: first })
    }

    fn connect(&self) -> Result<()> {
        Self::open(&self.client, &self.name).map(drop)
    }

    fn open(client: &sidestep_fabric::Node, name: &str) -> Result<Channel> {
        Channel::connect(client, name, ChannelOptions::default(), b"", clock::in_seconds(10))
            .context("cannot open a channel")
    }
}

const MOST: usize = 200;
