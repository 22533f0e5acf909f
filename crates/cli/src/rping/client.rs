//! The client: it offers a buffer to be read, then one to be written, and compares.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use sidestep_iwarp::{Event, Revision, Rights, Stag};

use super::advert::Advert;
use super::driver::{Driver, describe};
use super::options::Rping;
use super::session::{self, Session};

/// Pings a server as often as the options say.
pub fn run(options: &Rping) -> Result<()> {
    let address = server_address(options)?;
    let mut session = establish(options, address)?;
    let size = options.size as usize;
    let source = session.driver.register(vec![0; size], Rights::READ)?;
    let sink = session.driver.register(vec![0; size], Rights::WRITE)?;
    let mut ping = 0;
    while options.count == 0 || ping < options.count {
        exchange(&mut session, ping, source, sink).with_context(|| format!("ping {ping}"))?;
        ping += 1;
    }
    session.debug(|| format!("{ping} pings done, closing"));
    session.driver.close(session.limit())
}

/// One ping: the server reads `source`, and writes what it read to `sink`.
fn exchange(session: &mut Session<'_>, ping: u32, source: Stag, sink: Stag) -> Result<()> {
    let size = session.options.size;
    session.driver.memory.regions.insert(source, message(ping, size as usize));
    for (stag, step) in [(source, "the server's read"), (sink, "the server's write")] {
        session.debug(|| format!("RDMA addr 0 rkey {:x} len {size}", stag.0));
        session.send(Advert { stag, len: size, ..Advert::default() })?;
        let limit = session.limit();
        let answer = session.receive(Some(Instant::now() + limit)).context(step)?;
        answer.ok_or_else(|| anyhow!("{step}: no answer within {limit:?}"))?;
    }
    let regions = &session.driver.memory.regions;
    let (sent, found) = (&regions[&source], &regions[&sink]);
    if session.options.validate
        && let Some(at) = (0..sent.len()).find(|at| sent[*at] != found[*at])
    {
        bail!("data mismatch: byte {at} is {:#04x} instead of {:#04x}", found[at], sent[at]);
    }
    if session.options.verbose {
        println!("ping data: {}", session::text(found));
    }
    Ok(())
}

/// What rping sends: a text with a number, then letters up to the last byte, which is zero: the
/// server gives back a string.
fn message(ping: u32, size: usize) -> Vec<u8> {
    let letters = b'A'..=b'z';
    let first = ping as usize % letters.len();
    let mut bytes = format!("rdma-ping-{ping}: ").into_bytes();
    bytes.extend(letters.cycle().skip(first).take(size.saturating_sub(bytes.len())));
    bytes.truncate(size - 1);
    bytes.push(0);
    bytes
}

/// Connects; a second time in revision one if the server wants that.
fn establish(options: &Rping, address: SocketAddr) -> Result<Session<'_>> {
    let mut config = session::config(options);
    let limit = Duration::from_secs(options.timeout);
    for _ in 0..2 {
        let stream = dial(options.source, address)?;
        let mut session = Session::new(Driver::initiate(stream, config.clone(), b"")?, options)?;
        match session.driver.wait_event(Some(Instant::now() + limit))? {
            Some(Event::Established { agreement, .. }) => {
                session.debug(|| format!("connected to {address}: {}", session::agreed(&agreement)));
                return Ok(session);
            }
            Some(Event::FallBack { revision }) if config.revision == Revision::Two => {
                session.debug(|| format!("{address} speaks revision {}", revision.number()));
                config.revision = revision;
            }
            Some(event) => bail!("connecting to {address}: {}", describe(&event)),
            None => bail!("connecting to {address}: no answer within {limit:?}"),
        }
    }
    bail!("{address} refuses both revisions")
}

fn dial(source: Option<IpAddr>, address: SocketAddr) -> Result<TcpStream> {
    let connecting = || format!("connecting to {address}");
    let Some(source) = source else {
        return TcpStream::connect(address).with_context(connecting);
    };
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let descriptor = socket(family, SocketType::STREAM, None).context("making a socket")?;
    bind(&descriptor, &SocketAddr::new(source, 0)).with_context(|| format!("binding to {source}"))?;
    connect(&descriptor, &address).with_context(connecting)?;
    Ok(TcpStream::from(descriptor))
}

fn server_address(options: &Rping) -> Result<SocketAddr> {
    let Some(host) = options.address.as_deref() else {
        bail!("a client needs the address of its server: -a ADDRESS");
    };
    let found = (host, options.port).to_socket_addrs().with_context(|| format!("looking up {host}"))?.next();
    found.ok_or_else(|| anyhow!("{host} has no address"))
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn messages_are_strings_of_their_size() {
        for size in [27, 64, 65535] {
            for ping in [0, 1, 57, 58, u32::MAX] {
                let bytes = message(ping, size);
                assert_eq!(bytes.len(), size);
                assert_eq!(bytes.iter().position(|byte| *byte == 0), Some(size - 1), "{ping}");
            }
        }
        assert_eq!(&message(1, 64)[..16], b"rdma-ping-1: BCD");
    }
}
