//! Baseline: a TCP connection without Nagle's delay, over the loopback interface or between two hosts.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use rustix::net::sockopt::set_tcp_congestion;

use super::descriptor::{self, Descriptors};
use super::exercise::Exercise;
use super::hosts;
use super::path::{Offer, Opening, Path, Work};

/// The path.
pub const PATH: Path = Path {
    name: "tcp",
    about: "baseline: kernel TCP over loopback, blocking; tcp-spin: non-blocking in a loop",
    work: Work::Pair { open, attach },
    parts: &descriptor::parts("tcp", "tcp-spin"),
};

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let here = open_stream(opening)?;
    descriptor::StreamEnd::boxed(Descriptors::both_ways(here)?, opening.wait, opening.peer())
}

fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let (wait, peer) = (offer.wait, offer.peer.clone());
    descriptor::StreamEnd::boxed(Descriptors::both_ways(attach_stream(offer)?)?, wait, peer)
}

/// As `PATH`, for streams whose receiver has every message whole.
pub const WHOLE: Work =
    Work::Pair { open: |opening| open_whole(opening, None), attach: |offer| attach_whole(offer, None) };

/// As `WHOLE`, with the congestion control that every kernel has.
pub const RENO: Work =
    Work::Pair { open: |opening| open_whole(opening, Some("reno")), attach: |offer| attach_whole(offer, Some("reno")) };

fn open_whole(opening: &mut Opening<'_>, congestion: Option<&str>) -> Result<Box<dyn Exercise>> {
    let here = open_stream(opening)?;
    set_congestion(&here, congestion)?;
    descriptor::StreamEnd::boxed_whole(Descriptors::both_ways(here)?, opening.wait, opening.peer())
}

fn attach_whole(offer: Offer, congestion: Option<&str>) -> Result<Box<dyn Exercise>> {
    let (wait, peer) = (offer.wait, offer.peer.clone());
    let here = attach_stream(offer)?;
    set_congestion(&here, congestion)?;
    descriptor::StreamEnd::boxed_whole(Descriptors::both_ways(here)?, wait, peer)
}

fn set_congestion(stream: &TcpStream, congestion: Option<&str>) -> Result<()> {
    congestion.map_or(Ok(()), |name| set_tcp_congestion(stream, name).context("no such congestion control"))
}

/// This side of a connection; the worker is offered the other end, or where to connect to from its host.
pub fn open_stream(opening: &mut Opening<'_>) -> Result<TcpStream> {
    let listener = TcpListener::bind(hosts::address()).context("cannot listen on a TCP port")?;
    let address = listener.local_addr()?;
    if hosts::are_apart() {
        opening.offer(&address.to_string(), &[])?;
        return accept(&listener);
    }
    let there = TcpStream::connect(address).context("no TCP connection over loopback")?;
    let here = accept(&listener)?;
    there.set_nodelay(true)?;
    opening.offer("", &[there.as_fd()])?;
    Ok(here)
}

/// The worker's side of what [`open_stream`] offered.
pub fn attach_stream(offer: Offer) -> Result<TcpStream> {
    if let Some(descriptor) = offer.descriptors.into_iter().next() {
        return Ok(TcpStream::from(descriptor));
    }
    let address: SocketAddr = offer.note.parse().context("no address was offered")?;
    let stream = TcpStream::connect(address).context("no TCP connection between the hosts")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let (stream, _) = listener.accept().context("no TCP connection")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
