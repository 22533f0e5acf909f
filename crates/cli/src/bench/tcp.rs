//! Baseline: a TCP connection over the loopback interface, without Nagle's delay.

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use anyhow::{Context, Result};

use super::descriptor::{self, Descriptors};
use super::exercise::Exercise;
use super::path::{Opening, Path, Work};

/// The path.
pub const PATH: Path = Path {
    name: "tcp",
    about: "baseline: kernel TCP over loopback, blocking; tcp-spin: non-blocking in a loop",
    work: Work::Pair { open, attach: descriptor::attach },
    parts: &descriptor::parts("tcp", "tcp-spin"),
};

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (here, there) = connected().context("no TCP connection over loopback")?;
    descriptor::open(opening, Descriptors::both_ways(here)?, Descriptors::both_ways(there)?)
}

/// Both ends of a connection.
pub fn connected() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    Ok((here, there))
}
