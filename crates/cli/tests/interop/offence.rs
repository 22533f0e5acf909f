//! What this end does wrong on purpose, and the terminate message with which siw must answer.

use anyhow::{Result, bail, ensure};
use sidestep_iwarp::{Reason, SendKind, Stag, TaggedOffset};
use sidestep_wire::rdmap::{read_request, segment};
use sidestep_wire::{MessageOffset, Msn};

use crate::guest::{Guest, Running};
use crate::peer::{Meeting, Peer, REGION_LEN, Role, pattern};
use crate::raw;
use crate::report::Report;

const TRIES: usize = 5;
/// Reads of which a guest with a depth of one has to find too many.
const READS: u32 = 64;

struct Offence {
    name: &'static str,
    reason: (u8, u8, u8),
    guest_options: &'static str,
    /// What the guest does.
    steps: &'static str,
    commit: fn(&mut Peer) -> Result<()>,
}

impl Offence {
    /// Does it once.
    fn commit(&self, guest: &mut Guest, role: Role) -> Result<Option<Reason>> {
        let mut meeting = Meeting::new(role, true, self.steps);
        meeting.guest_options = self.guest_options;
        let (mut peer, mut running) = meeting.meet(guest)?;
        running.wait_line("ready")?;
        (self.commit)(&mut peer)?;
        outcome(&mut peer, running)
    }
}

const fn offence(name: &'static str, reason: (u8, u8, u8), commit: fn(&mut Peer) -> Result<()>) -> Offence {
    Offence { name, reason, guest_options: "", steps: "say:ready ended", commit }
}

const END: u64 = REGION_LEN as u64;

const OFFENCES: &[Offence] = &[
    offence("write to an invalid tag", (1, 1, 0), |peer| post_write(peer, 'x', 0, 64)),
    offence("write to a region that is not writable", (1, 1, 0), |peer| post_write(peer, 'b', 0, 64)),
    offence("write beyond a region", (1, 1, 1), |peer| post_write(peer, 'a', END - 10, 64)),
    offence("write to a tag of another protection domain", (1, 1, 2), |peer| post_write(peer, 'd', 0, 64)),
    offence("write to a tag that was invalidated", (1, 1, 0), |peer| {
        let (stag, _) = peer.theirs('e');
        peer.send(4, 1, SendKind { invalidate: Some(stag), ..SendKind::default() })?;
        post_write(peer, 'e', 0, 64)
    }),
    offence("long write beyond a region", (1, 1, 1), |peer| post_write(peer, 'a', END - 100_000, 100_001)),
    offence("read of an invalid tag", (0, 1, 0), |peer| peer.post_read('x', 0, 64, 0).map(drop)),
    offence("read beyond a region", (0, 1, 1), |peer| peer.post_read('a', END - 10, 64, 0).map(drop)),
    offence("read of a tag of another protection domain", (0, 1, 3), |peer| peer.post_read('d', 0, 64, 0).map(drop)),
    Offence {
        name: "invalidation of an invalid tag, which siw tells only when it closes",
        reason: (0, 2, 9),
        guest_options: "",
        steps: "say:ready failrecv close",
        commit: |peer| invalidate(peer, 'x'),
    },
    Offence {
        name: "invalidation of a tag of another protection domain, likewise",
        reason: (0, 1, 9),
        guest_options: "",
        steps: "say:ready failrecv close",
        commit: |peer| invalidate(peer, 'd'),
    },
    Offence {
        name: "send longer than the receive buffer",
        reason: (1, 2, 2),
        guest_options: "-b 100",
        steps: "say:ready ended",
        commit: |peer| peer.post_send(&pattern(101, 1), SendKind::default()).map(drop),
    },
    Offence {
        name: "send without a receive buffer",
        reason: (1, 2, 2),
        guest_options: "-r 1",
        steps: "say:ready ended",
        commit: |peer| peer.post_send(&pattern(10, 1), SendKind::default()).map(drop),
    },
    offence("FPDU with a wrong CRC", (2, 0, 2), |peer| {
        let mut bytes = raw::fpdu(&send_segment(peer, 0, 0));
        let last = bytes.len() - 1;
        bytes[last] ^= 0x01;
        raw::put(&peer.driver.socket, &bytes)
    }),
    offence("FPDU with a wrong byte of payload", (2, 0, 2), |peer| {
        let mut bytes = raw::fpdu(&send_segment(peer, 0, 0));
        bytes[22] ^= 0x80;
        raw::put(&peer.driver.socket, &bytes)
    }),
    offence("FPDU shorter than its headers", (2, 0, 3), |peer| put(peer, &send_segment(peer, 0, 0)[..14])),
    offence("tagged segment of another DDP version", (1, 1, 4), |peer| {
        let mut bytes = write_segment(peer, true, 0, 0);
        bytes[0] ^= 0x02;
        put(peer, &bytes)
    }),
    offence("untagged segment of another DDP version", (1, 2, 6), |peer| {
        let mut bytes = send_segment(peer, 0, 0);
        bytes[0] ^= 0x02;
        put(peer, &bytes)
    }),
    offence("message of another RDMAP version", (0, 2, 5), |peer| {
        let mut bytes = send_segment(peer, 0, 0);
        bytes[1] ^= 0xc0;
        put(peer, &bytes)
    }),
    offence("unknown opcode", (0, 2, 6), |peer| {
        let mut bytes = send_segment(peer, 0, 0);
        bytes[1] = bytes[1] & 0xf0 | 0x0c;
        put(peer, &bytes)
    }),
    offence("immediate data, which siw lacks", (0, 2, 6), |peer| {
        let work = sidestep_iwarp::WorkId(peer.driver.number());
        Ok(peer.driver.connection.post_immediate(work, 7, false)?)
    }),
    offence("send on another queue", (1, 2, 1), |peer| {
        let mut bytes = send_segment(peer, 0, 0);
        bytes[9] = 5;
        put(peer, &bytes)
    }),
    offence("message number out of turn", (1, 2, 3), |peer| put(peer, &send_segment(peer, 3, 0))),
    offence("message offset out of turn", (1, 2, 4), |peer| put(peer, &send_segment(peer, 0, 8))),
    offence("read request with a number out of turn", (1, 2, 3), |peer| put(peer, &read_segment(peer, 2))),
    offence("write that changes its tag", (1, 1, 0), |peer| {
        put(peer, &write_segment(peer, false, 0, 0))?;
        put(peer, &write_segment(peer, true, 16, 1))
    }),
    offence("write that jumps", (1, 1, 1), |peer| {
        put(peer, &write_segment(peer, false, 0, 0))?;
        put(peer, &write_segment(peer, true, 20, 0))
    }),
    offence("read response that was not asked for", (1, 0, 0), |peer| {
        let (sink, offset) = peer.theirs('a');
        let repr = segment::Repr::ReadResponse { last: true, sink, offset: TaggedOffset(offset) };
        put(peer, &raw::segment(&repr, &[7; 16]))
    }),
];

pub fn run(report: &mut Report, guest: &mut Guest) {
    for role in Role::BOTH {
        for offence in OFFENCES {
            report.case("terminate from siw", offence.name, role.name(), || {
                several_times(|| offence.commit(guest, role), offence.reason)
            });
        }
        report.case("terminate from siw", "read of a region that is not readable", role.name(), || {
            let (mut peer, running) = Meeting::new(role, true, "recv:4:1 close").meet(guest)?;
            match peer.read('c', 0, 64, 2) {
                Ok(()) => {
                    peer.send(4, 1, SendKind::default())?;
                    running.success()?;
                    Ok("siw serves the read: it does not check the right".to_owned())
                }
                Err(error) => peer.terminated()?.map_or(Err(error), |found| verdict(found, (0, 1, 2))),
            }
        });
        let name = "more reads at once than agreed, which siw calls catastrophic";
        report.case("terminate from siw", name, role.name(), || too_many_reads(guest, role));
        for (name, reason, change) in RESPONSES {
            report.case("terminate from siw", *name, role.name(), || {
                several_times(|| wrong_response(guest, role, *change), *reason)
            });
        }
    }
}

/// Asks for more reads than the guest serves, in one write to the stream.
fn too_many_reads(guest: &mut Guest, role: Role) -> Result<String> {
    let mut meeting = Meeting::new(role, true, "say:ready ended");
    meeting.guest_options = "-i 1";
    let (peer, mut running) = meeting.meet(guest)?;
    running.wait_line("ready")?;
    let requests: Vec<u8> = (0..READS).flat_map(|ahead| raw::fpdu(&read_segment(&peer, ahead))).collect();
    raw::put(&peer.driver.socket, &requests)?;
    match raw::last_word(&peer.driver.socket)? {
        Some(found) => verdict(found, (0, 2, 7)),
        None => Ok("siw closes without a terminate message".to_owned()),
    }
}

/// A change to a read response.
type Change = fn(&mut segment::Repr, &mut Vec<u8>);

const RESPONSES: &[(&str, (u8, u8, u8), Change)] = &[
    ("read response for another tag", (1, 1, 0), |repr, _| {
        if let segment::Repr::ReadResponse { sink, .. } = repr {
            *sink = Stag(sink.0 ^ 0x100);
        }
    }),
    ("read response for another place", (1, 1, 1), |repr, _| {
        if let segment::Repr::ReadResponse { offset, .. } = repr {
            *offset = TaggedOffset(offset.0 + 4);
        }
    }),
    ("read response that is too short", (1, 1, 1), |_, payload| payload.truncate(60)),
    ("read response that is too long", (1, 1, 1), |_, payload| payload.extend([0; 20])),
];

/// The guest reads, and is answered wrongly.
fn wrong_response(guest: &mut Guest, role: Role, change: Change) -> Result<Option<Reason>> {
    let (mut peer, running) = Meeting::new(role, true, "recv:4:1 failread:a:0:100 ended").meet(guest)?;
    peer.send(4, 1, SendKind::default())?;
    let request = raw::read_request(&peer.driver.socket)?;
    let read_request::Repr { sink, sink_offset: offset, .. } = request;
    let mut repr = segment::Repr::ReadResponse { last: true, sink, offset };
    let mut payload = pattern(100, 0);
    change(&mut repr, &mut payload);
    put(&peer, &raw::segment(&repr, &payload))?;
    outcome(&mut peer, running)
}

/// The reason that siw gives; none if it closed without a word.
fn outcome(peer: &mut Peer, running: Running) -> Result<Option<Reason>> {
    let found = peer.terminated()?;
    if found.is_some() {
        running.success()?;
    }
    Ok(found)
}

/// siw sends no terminate message while something else of its own is going out, so one that is missing
/// is waited for in a few more tries.
fn several_times(mut commit: impl FnMut() -> Result<Option<Reason>>, reason: (u8, u8, u8)) -> Result<String> {
    for _ in 0..TRIES {
        if let Some(found) = commit()? {
            return verdict(found, reason);
        }
    }
    bail!("siw closed {TRIES} times without a terminate message")
}

/// Whether siw found the right reason. It writes layer and type in the bit order of its machine, so
/// that they come swapped; without headers in the message that cannot be seen from it.
pub fn verdict(found: Reason, (layer, etype, code): (u8, u8, u8)) -> Result<String> {
    let wanted = Reason::new(layer, etype, code);
    ensure!(found == wanted || found == Reason::new(etype, layer, code), "{found} instead of {wanted}");
    Ok(if found == wanted { found.to_string() } else { format!("{wanted}, layer and type swapped") })
}

fn post_write(peer: &mut Peer, name: char, offset: u64, len: usize) -> Result<()> {
    peer.post_write(name, offset, len, 1).map(drop)
}

fn invalidate(peer: &mut Peer, name: char) -> Result<()> {
    let (stag, _) = peer.theirs(name);
    let kind = SendKind { invalidate: Some(stag), ..SendKind::default() };
    peer.post_send(&pattern(10, 1), kind).map(drop)
}

fn put(peer: &Peer, ulpdu: &[u8]) -> Result<()> {
    raw::put(&peer.driver.socket, &raw::fpdu(ulpdu))
}

/// A send of ten bytes, `ahead` numbers too early, at an offset.
fn send_segment(peer: &Peer, ahead: u32, offset: u32) -> Vec<u8> {
    let (msn, offset) = (Msn(peer.sent + 1 + ahead), MessageOffset(offset));
    let repr = segment::Repr::Send { last: true, msn, offset, kind: SendKind::default() };
    raw::segment(&repr, &pattern(10, 1))
}

/// A segment of a write to the guest's `a`, 16 bytes at an offset.
fn write_segment(peer: &Peer, last: bool, offset: u64, other_tag: u32) -> Vec<u8> {
    let (Stag(stag), address) = peer.theirs('a');
    let sink = Stag(stag ^ other_tag);
    let repr = segment::Repr::Write { last, sink, offset: TaggedOffset(address + offset) };
    raw::segment(&repr, &pattern(16, 1))
}

/// A read of the guest's `a`, `ahead` numbers too early.
fn read_segment(peer: &Peer, ahead: u32) -> Vec<u8> {
    let (source, address) = peer.theirs('a');
    let request = read_request::Repr {
        sink: peer.mine('a'),
        sink_offset: TaggedOffset(0),
        size: 16,
        source,
        source_offset: TaggedOffset(address),
    };
    raw::segment(&segment::Repr::ReadRequest { msn: Msn(1 + ahead), request }, &[])
}
