//! What the guest does wrong, the terminate message with which the engine answers, and that siw
//! understands it: its kernel log has the three numbers.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use sidestep_iwarp::{Check, Reason};
use sidestep_wire::Msn;
use sidestep_wire::rdmap::{segment, terminate};

use crate::guest::Guest;
use crate::peer::{Meeting, REGION_LEN, Role};
use crate::raw;
use crate::report::Report;

pub fn run(report: &mut Report, guest: &mut Guest) {
    let beyond = REGION_LEN - 10;
    for role in Role::BOTH {
        for (steps, check) in [
            ("trywrite:x:0:64:1".to_owned(), Check::WriteStag),
            ("trywrite:b:0:64:1".to_owned(), Check::WriteRights),
            (format!("trywrite:a:{beyond}:64:1"), Check::WriteBounds),
            ("trywrite:d:0:64:1".to_owned(), Check::WriteAssociation),
            ("sendinv:e:4:1 trywrite:e:0:64:1".to_owned(), Check::WriteStag),
            ("failread:x:0:64".to_owned(), Check::ReadStag),
            ("failread:c:0:64".to_owned(), Check::ReadRights),
            (format!("failread:a:{beyond}:64"), Check::ReadBounds),
            ("failread:d:0:64".to_owned(), Check::ReadAssociation),
            ("trysendinv:x:4:1".to_owned(), Check::InvalidateForbidden),
            ("trysendinv:a:4:1".to_owned(), Check::InvalidateForbidden),
            ("trysendinv:d:4:1".to_owned(), Check::InvalidateAssociation),
            ("trysend:1001:1".to_owned(), Check::MessageTooLong),
            ("send:4:1 trysend:4:1".to_owned(), Check::NoReceive),
        ] {
            report.case("terminate to siw", format!("{}: {steps}", check.description()), role.name(), || {
                refuse(guest, role, &steps, check)
            });
        }
    }
    report.case("terminate to siw", "the program above gives up", "server", || {
        guest.kernel_log()?;
        let (mut peer, mut running) = Meeting::new(Role::Server, true, "say:ready ended").meet(guest)?;
        running.wait_line("ready")?;
        let now = peer.driver.now();
        peer.driver.connection.abort(now);
        peer.closed()?;
        running.success()?;
        understood(guest, Check::Aborted.reason())
    });
    report.case("terminate to siw", "every code of the table, as a message without headers", "server", || {
        let reasons: BTreeSet<(u8, u8, u8)> = Check::ALL
            .iter()
            .map(|check| check.reason())
            .map(|reason| (reason.layer, reason.etype, reason.code))
            .collect();
        let count = reasons.len();
        for (layer, etype, code) in reasons {
            let reason = Reason::new(layer, etype, code);
            guest.kernel_log()?;
            let (peer, mut running) = Meeting::new(Role::Server, true, "say:ready ended").meet(guest)?;
            running.wait_line("ready")?;
            let terminate = terminate::Repr { reason, segment_len: None, ddp: None, request: None };
            let repr = segment::Repr::Terminate { msn: Msn::FIRST, terminate };
            raw::put(&peer.driver.socket, &raw::fpdu(&raw::segment(&repr, &[])))?;
            running.success()?;
            understood(guest, reason)?;
        }
        Ok(format!("{count} codes"))
    });
}

/// The guest does something that the engine refuses.
fn refuse(guest: &mut Guest, role: Role, steps: &str, check: Check) -> Result<String> {
    guest.kernel_log()?;
    let mut meeting = Meeting::new(role, true, format!("{steps} ended"));
    // One receive for the regions, one more.
    meeting.receives = 2;
    meeting.receive_len = 1000;
    let (mut peer, running) = meeting.meet(guest)?;
    let fault = peer.failed()?;
    ensure!(fault.check() == check, "{fault} instead of {}", check.description());
    peer.closed()?;
    running.success()?;
    understood(guest, check.reason())
}

/// siw tells the three numbers in its log, layer and type swapped: it takes them in the bit order of
/// its machine.
fn understood(guest: &Guest, reason: Reason) -> Result<String> {
    let Reason { layer, etype, code } = reason;
    let log = guest.kernel_log()?;
    let wanted = format!("got TERMINATE. layer {etype}, type {layer}, code {code}");
    ensure!(log.contains(&wanted), "the guest's kernel does not say {wanted:?}: {}", log.trim());
    Ok(reason.to_string())
}
