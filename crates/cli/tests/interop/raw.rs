//! FPDUs that the engine would never send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sidestep_iwarp::Reason;
use sidestep_wire::mpa::fpdu;
use sidestep_wire::mpa::marker::Spacing;
use sidestep_wire::rdmap::{read_request, segment};

/// The bytes of a segment.
pub fn segment(repr: &segment::Repr, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// The FPDU of a segment, with the right CRC.
pub fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let repr = fpdu::Repr { ulpdu_len: ulpdu.len() as u16 };
    let mut bytes = vec![0; repr.buffer_len(Spacing::none())];
    repr.emit(ulpdu, Spacing::none(), &mut bytes);
    bytes
}

/// Writes to a stream that does not block.
pub fn put(mut stream: &TcpStream, mut bytes: &[u8]) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < until => {
                sleep(Duration::from_millis(1));
            }
            Err(error) => bail!("writing to the guest: {error}"),
        }
    }
    Ok(())
}

/// Reads the next FPDU from a stream; its CRC is not looked at. `None` at the end of the stream.
fn next_segment(mut stream: &TcpStream) -> Result<Option<segment::Repr>> {
    let until = Instant::now() + Duration::from_secs(20);
    let mut bytes = Vec::new();
    loop {
        let needed = fpdu::needed(&bytes, Spacing::none());
        if bytes.len() >= needed {
            break;
        }
        let mut part = vec![0; needed - bytes.len()];
        match stream.read(&mut part) {
            Ok(0) if bytes.is_empty() => return Ok(None),
            Ok(0) => bail!("the guest closed after {} bytes of an FPDU", bytes.len()),
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < until => {
                sleep(Duration::from_millis(1));
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => bail!("reading from the guest: {error}"),
        }
    }
    let packet = fpdu::Packet::new_checked(bytes.as_slice(), Spacing::none())?;
    let mut ulpdu = vec![0; packet.ulpdu_len()];
    packet.copy_ulpdu(&mut ulpdu);
    let header = segment::Header::new_checked(ulpdu.as_slice(), ulpdu.len())?;
    Ok(Some(segment::Repr::parse(&header)?))
}

fn read_segment(stream: &TcpStream) -> Result<segment::Repr> {
    next_segment(stream)?.context("the guest closed without a word")
}

/// Reads until the stream ends or is ended by a terminate message, and returns the reason of that.
pub fn last_word(stream: &TcpStream) -> Result<Option<Reason>> {
    while let Some(segment) = next_segment(stream)? {
        if let segment::Repr::Terminate { terminate, .. } = segment {
            return Ok(Some(terminate.reason));
        }
    }
    Ok(None)
}

/// Reads a read request from a stream.
pub fn read_request(stream: &TcpStream) -> Result<read_request::Repr> {
    match read_segment(stream)? {
        segment::Repr::ReadRequest { request, .. } => Ok(request),
        other => bail!("instead of a read request: {other}"),
    }
}

/// Reads a terminate message from a stream.
pub fn terminate(stream: &TcpStream) -> Result<Reason> {
    match read_segment(stream)? {
        segment::Repr::Terminate { terminate, .. } => Ok(terminate.reason),
        other => bail!("instead of a terminate message: {other}"),
    }
}
