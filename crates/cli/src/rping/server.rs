//! The server: it reads the buffer that the client offers, and writes its text back.

use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use sidestep_iwarp::{Event, Rights, Source, SourceSlice, Stag, TaggedOffset, WorkId};
use sidestep_wire::rdmap::read_request;

use super::advert::Advert;
use super::driver::{Driver, describe};
use super::options::Rping;
use super::session::{self, Session};

/// Serves one client, or with `-P` every client that comes.
pub fn run(options: &Rping) -> Result<()> {
    let address = listen_address(options)?;
    let listener = TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
    if options.verbose || options.debug {
        println!("listening on {}", listener.local_addr()?);
    }
    if !options.persistent {
        let (stream, peer) = listener.accept().context("accepting a client")?;
        return serve(options, stream, peer);
    }
    thread::scope(|scope| {
        loop {
            let (stream, peer) = listener.accept().context("accepting a client")?;
            scope.spawn(move || {
                if let Err(error) = serve(options, stream, peer) {
                    eprintln!("sidestep: {error:#}");
                }
            });
        }
    })
}

fn serve(options: &Rping, stream: TcpStream, peer: SocketAddr) -> Result<()> {
    serve_pings(options, stream, peer).with_context(|| format!("serving {peer}"))
}

fn serve_pings(options: &Rping, stream: TcpStream, peer: SocketAddr) -> Result<()> {
    let limit = Duration::from_secs(options.timeout);
    let mut session = Session::new(Driver::respond(stream, session::config(options))?, options)?;
    match session.driver.wait_event(Some(Instant::now() + limit))? {
        Some(Event::Requested { .. }) => session.driver.connection.accept(b"")?,
        Some(event) => bail!("{}", describe(&event)),
        None => bail!("no request within {limit:?}"),
    }
    let (agreement, _) = session.driver.wait_established(limit)?;
    session.debug(|| format!("{peer} connected: {}", session::agreed(&agreement)));
    // Only answers to own reads may be placed here.
    let buffer = session.driver.register(vec![0; options.size as usize], Rights::NONE)?;
    let mut pings = 0u64;
    loop {
        // The client decides when the next ping comes, and when there is none.
        match session.receive(None) {
            Ok(Some(source)) => answer(&mut session, buffer, source).with_context(|| format!("ping {pings}"))?,
            Ok(None) => bail!("no message"),
            Err(_) if session.driver.has_ended_well() => break,
            Err(error) => return Err(error),
        }
        pings += 1;
    }
    session.debug(|| format!("{peer} is done after {pings} pings"));
    session.driver.close(limit)
}

/// One ping.
fn answer(session: &mut Session<'_>, buffer: Stag, source: Advert) -> Result<()> {
    let size = session.options.size;
    session.debug(|| format!("received rkey {:x} addr {:x} len {}", source.stag.0, source.offset.0, source.len));
    if source.len > size {
        bail!("the client offers {} bytes, room is for {size}: start the server with -S {}", source.len, source.len);
    }
    let work = WorkId(session.driver.number());
    let request = read_request::Repr {
        sink: buffer,
        sink_offset: TaggedOffset(0),
        size: source.len,
        source: source.stag,
        source_offset: source.offset,
    };
    let Driver { connection, table, .. } = &mut session.driver;
    connection.post_read(work, request, table).context("reading from the client")?;
    session.finish(work, "reading from the client")?;
    let text = session::text(&session.driver.memory.regions[&buffer][..source.len as usize]);
    if session.options.verbose {
        println!("server ping data: {text}");
    }
    session.send(Advert::default())?;

    let limit = session.limit();
    let sink = session.receive(Some(Instant::now() + limit))?;
    let sink = sink.ok_or_else(|| anyhow!("the client gives no buffer to write to within {limit:?}"))?;
    // The text with its zero, as far as the client sent one.
    let held = &session.driver.memory.regions[&buffer][..source.len as usize];
    let len = held.iter().position(|byte| *byte == 0).map_or(held.len(), |end| end + 1) as u32;
    let work = WorkId(session.driver.number());
    let text = SourceSlice { source: Source::Region(buffer), offset: 0, len };
    session.driver.connection.post_write(work, text, sink.stag, sink.offset).context("writing to the client")?;
    session.finish(work, "writing to the client")?;
    session.send(Advert::default())
}

fn listen_address(options: &Rping) -> Result<SocketAddr> {
    let host = options.address.as_deref().unwrap_or("0.0.0.0");
    let found = (host, options.port).to_socket_addrs().with_context(|| format!("looking up {host}"))?.next();
    found.ok_or_else(|| anyhow!("{host} has no address"))
}
