//! Set-up frames that no engine would send, and what siw makes of them.

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use sidestep_iwarp::{Check, Event, Revision, RtrModes};
use sidestep_wire::mpa::enhanced::{self, Depth};
use sidestep_wire::mpa::frame;

use crate::driver::Driver;
use crate::guest::Guest;
use crate::offence::verdict;
use crate::peer::{LIMIT, Meeting, Role};
use crate::raw;
use crate::report::Report;

pub fn run(report: &mut Report, guest: &mut Guest) {
    report.case("set-up", "reply with more reads than siw can serve", "client", || {
        reply(guest, (2, 0, 6), |repr| {
            repr.enhanced = Some(enhanced::Repr { ird: Depth::limit(8), ord: Depth::limit(200), peer_to_peer: None });
        })
    });
    report.case("set-up", "siw with peer-to-peer mode on is put to work", "client", || {
        let output = guest.run("use-siw p2p && rdma link")?;
        ensure!(output.contains("siw0/1 state ACTIVE"), "{}", output.trim());
        Ok(String::new())
    });
    report.case("set-up", "reply without a common way to signal readiness", "client", || {
        reply(guest, (2, 0, 7), |repr| {
            repr.enhanced = Some(enhanced::Repr {
                ird: Depth::limit(8),
                ord: Depth::limit(8),
                peer_to_peer: Some(RtrModes { send: true, ..RtrModes::default() }),
            });
        })
    });
}

/// The last case of a guest: where a peer ends the connection instead of saying that it is ready, the
/// guest's kernel may stop.
pub fn run_last(report: &mut Report, guest: &mut Guest) {
    report.case("set-up", "peer-to-peer, ready by send, which siw lacks", "server", || {
        let mut meeting = Meeting::new(Role::Server, true, "ended");
        meeting.config.peer_to_peer = true;
        meeting.config.rtr = RtrModes { send: true, ..RtrModes::default() };
        let (stream, running) = meeting.connect(guest)?;
        let mut driver = Driver::initiate(stream, meeting.config, b"")?;
        let event = driver.wait_event(Some(Instant::now() + LIMIT))?;
        let Some(Event::Failed(fault)) = event else { bail!("instead of a fault: {event:?}") };
        ensure!(fault.check() == Check::NoReadyMode, "{fault}");
        let until = Some(Instant::now() + LIMIT);
        while !driver.is_closed() && driver.turn(until)? {}
        drop(running);
        let log = guest.kernel_log()?;
        let bug = log.lines().find_map(|line| line.split_once("kernel BUG at ")).map(|(_, place)| place.to_owned());
        let terminate = fault.check().reason();
        Ok(bug
            .map_or_else(|| terminate.to_string(), |place| format!("{terminate}; the guest's kernel stops at {place}")))
    });
}

/// Answers the guest's request by hand, and reads its terminate message.
fn reply(guest: &mut Guest, reason: (u8, u8, u8), change: impl FnOnce(&mut frame::Repr<'_>)) -> Result<String> {
    let meeting = Meeting::new(Role::Client, false, "");
    let (mut stream, running) = meeting.connect(guest)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut request = [0; frame::HEADER_LEN + enhanced::LEN];
    stream.read_exact(&mut request).context("the guest's request")?;
    let mut repr = frame::Repr {
        kind: frame::Kind::Reply { rejected: false },
        revision: Revision::Two,
        markers: false,
        crc: false,
        enhanced: None,
        private_data: b"",
    };
    change(&mut repr);
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    raw::put(&stream, &bytes)?;
    let found = raw::terminate(&stream)?;
    let verdict = verdict(found, reason)?;
    let output = running.output()?;
    ensure!(output.contains("instead of RDMA_CM_EVENT_ESTABLISHED"), "the guest is connected: {}", output.trim());
    Ok(verdict)
}
