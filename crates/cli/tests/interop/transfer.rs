//! Writes, reads and sends with the verbs program of the guest: what must work.

use std::fmt::Write;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use sidestep_iwarp::{Event, Revision, SendKind};

use crate::driver::Driver;
use crate::guest::Guest;
use crate::peer::{LIMIT, Meeting, Peer, Role};
use crate::report::Report;
use crate::rping::on;

const SIZES: [usize; 8] = [0, 1, 5, 1440, 1460, 4096, 65536, 200_000];
const MESSAGES: [usize; 5] = [0, 1, 1000, 1460, 100_000];

pub fn run(report: &mut Report, guest: &mut Guest) {
    for role in Role::BOTH {
        for crc in [true, false] {
            let name = format!("writes and reads of {SIZES:?} bytes, CRC {}", on(crc));
            report.case("verbs", name, role.name(), || one_sided(guest, &Meeting::new(role, crc, "")));
            let name = format!("sends of {MESSAGES:?} bytes, solicited, with invalidate, CRC {}", on(crc));
            report.case("verbs", name, role.name(), || two_sided(guest, role, crc));
        }
        for segment_size in [536, 9000, 60000] {
            let name = format!("writes and reads in FPDUs for segments of {segment_size} bytes");
            report.case("verbs", name, role.name(), || {
                let mut meeting = Meeting::new(role, true, "");
                meeting.config.segment_size = segment_size;
                one_sided(guest, &meeting)
            });
        }
        report.case("verbs", "read of length zero of a guest at rest", role.name(), || empty_read(guest, role));
        report.case("verbs", "8 reads at once in each direction", role.name(), || many_reads(guest, role));
        report.case("verbs", "private data in both directions", role.name(), || private_data(guest, role));
        report.case("verbs", "the connection is refused", role.name(), || reject(guest, role));
        report.case("verbs", "this end closes first", role.name(), || host_closes(guest, role));
    }
    report.case("verbs", "revision 1: write, read, send", "server", || {
        let mut meeting = Meeting::new(Role::Server, true, "");
        meeting.config.revision = Revision::One;
        meeting.config.negotiate_depths = false;
        one_sided(guest, &meeting)
    });
}

fn one_sided(guest: &mut Guest, meeting: &Meeting<'_>) -> Result<String> {
    let mut steps = String::new();
    for (seed, len) in (10..).zip(SIZES) {
        write!(steps, "write:a:0:{len}:{seed} send:4:{seed} read:b:0:{len}:1 ")?;
        write!(steps, "recv:4:{seed} expect:c:0:{len}:{seed} ")?;
    }
    let meeting = Meeting { steps: steps + "recv:4:99 close", guest_options: "-r 40", receives: 40, ..meeting.clone() };
    let (mut peer, running) = meeting.meet(guest)?;
    for (seed, len) in (10..).zip(SIZES) {
        peer.recv(4, seed)?;
        peer.expect('a', 0, len, seed)?;
        peer.write('c', 0, len, seed)?;
        peer.send(4, seed, SendKind::default())?;
        // siw answers a read of length zero with bytes of its last send, if that is still going out.
        if len > 0 {
            peer.read('b', 0, len as u32, 1)?;
        }
    }
    peer.send(4, 99, SendKind::default())?;
    guest_closes(peer)?;
    running.success()?;
    Ok(String::new())
}

fn empty_read(guest: &mut Guest, role: Role) -> Result<String> {
    let (mut peer, mut running) = Meeting::new(role, true, "say:ready recv:4:1 close").meet(guest)?;
    running.wait_line("ready")?;
    peer.read('b', 0, 0, 0)?;
    peer.send(4, 1, SendKind::default())?;
    guest_closes(peer)?;
    running.success()?;
    Ok(String::new())
}

fn two_sided(guest: &mut Guest, role: Role, crc: bool) -> Result<String> {
    let mut steps = String::new();
    for (seed, len) in (10..).zip(MESSAGES) {
        write!(steps, "send:{len}:{seed} recv:{len}:{seed} ")?;
    }
    steps += "sendse:10:3 recv:10:4 sendinv:e:20:5 recv:20:6 close";
    let (mut peer, running) = Meeting::new(role, crc, steps).meet(guest)?;
    for (seed, len) in (10..).zip(MESSAGES) {
        let kind = peer.recv(len, seed)?;
        ensure!(kind == SendKind::default(), "a plain send came as {kind:?}");
        peer.send(len, seed, kind)?;
    }
    let kind = peer.recv(10, 3)?;
    ensure!(kind.solicited, "the solicited event is missing");
    peer.send(10, 4, kind)?;
    let kind = peer.recv(20, 5)?;
    let own = peer.mine('e');
    ensure!(kind.invalidate == Some(own), "{:?} was invalidated instead of {own}", kind.invalidate);
    ensure!(peer.driver.table.region(own).is_none(), "the tag is still valid");
    let (stag, _) = peer.theirs('e');
    peer.send(20, 6, SendKind { invalidate: Some(stag), ..SendKind::default() })?;
    guest_closes(peer)?;
    running.success()?;
    Ok(String::new())
}

fn many_reads(guest: &mut Guest, role: Role) -> Result<String> {
    let (mut peer, running) = Meeting::new(role, true, "reads:8:20000:0 send:4:1 recv:4:2 close").meet(guest)?;
    peer.recv(4, 1)?;
    peer.reads(8, 20000, 1)?;
    peer.send(4, 2, SendKind::default())?;
    let agreement = peer.agreement;
    guest_closes(peer)?;
    running.success()?;
    Ok(agreement.map_or_else(String::new, |agreed| format!("IRD {}, ORD {}", agreed.ird, agreed.ord)))
}

fn private_data(guest: &mut Guest, role: Role) -> Result<String> {
    let mut meeting = Meeting::new(role, true, "close");
    meeting.guest_options = "-d from-the-guest";
    meeting.private_data = b"from-the-host";
    let (peer, running) = meeting.meet(guest)?;
    ensure!(peer.private_data == b"from-the-guest", "the guest sent {:?}", peer.private_data);
    guest_closes(peer)?;
    let output = running.success()?;
    ensure!(output.contains("private data: from-the-host"), "{}", output.trim());
    Ok(String::new())
}

fn reject(guest: &mut Guest, role: Role) -> Result<String> {
    let step = if role == Role::Server { "reject" } else { "rejected" };
    let mut meeting = Meeting::new(role, true, step);
    meeting.guest_options = "-d no-thanks";
    let (stream, running) = meeting.connect(guest)?;
    let until = Some(Instant::now() + LIMIT);
    if role == Role::Server {
        let mut driver = Driver::initiate(stream, meeting.config, b"")?;
        match driver.wait_event(until)? {
            Some(Event::Rejected { private_data, .. }) => {
                ensure!(private_data == b"no-thanks", "refused with {private_data:?}");
            }
            other => bail!("instead of a refusal: {other:?}"),
        }
    } else {
        let mut driver = Driver::respond(stream, meeting.config)?;
        match driver.wait_event(until)? {
            Some(Event::Requested { .. }) => driver.connection.reject(driver.now(), b"not now")?,
            other => bail!("instead of a request: {other:?}"),
        }
        while !driver.is_closed() {
            ensure!(driver.turn(until)?, "not closed within {LIMIT:?}");
        }
    }
    running.success()?;
    Ok(String::new())
}

fn host_closes(guest: &mut Guest, role: Role) -> Result<String> {
    let (mut peer, mut running) = Meeting::new(role, true, "say:ready ended").meet(guest)?;
    running.wait_line("ready")?;
    peer.driver.close(LIMIT)?;
    running.success()?;
    Ok(String::new())
}

/// The guest closes, then this end.
fn guest_closes(mut peer: Peer) -> Result<()> {
    let until = Instant::now() + LIMIT;
    while !peer.driver.has_ended_well() {
        ensure!(peer.driver.turn(Some(until))?, "the guest did not close within {LIMIT:?}");
    }
    peer.driver.close(LIMIT)
}
