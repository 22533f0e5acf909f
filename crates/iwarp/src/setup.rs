//! Set-up: the request of the initiator, the reply of the responder, and what they agree on
//! (RFC 5044 §7.1, RFC 6581 §9).
//!
//! Everything here is a function from what is wanted and what was said to what is agreed; the
//! [`Connection`](crate::Connection) decides when.

use crate::config::{Config, RtrModes};
use crate::error::Error;
use crate::fault::Fault;
use sidestep_wire::hello;
use sidestep_wire::mpa::enhanced::{self, Depth};
use sidestep_wire::mpa::frame::{self, Kind, Revision};
use sidestep_wire::mpa::marker::Interval;

/// What the two ends have agreed on, as one of them sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The revision of the frames.
    pub revision: Revision,
    /// CRCs are generated and checked.
    pub crc: bool,
    /// The interval of markers in what this end sends.
    pub markers_sent: Option<Interval>,
    /// The interval of markers in what this end receives.
    pub markers_received: Option<Interval>,
    /// How many reads and atomics of the peer are served at a time.
    pub ird: u16,
    /// How many reads and atomics may be under way towards the peer.
    pub ord: u16,
    /// The depths that the peer gave, if it gave any.
    pub peer_depths: Option<PeerDepths>,
    /// The initiator says that it is ready before anything else.
    pub peer_to_peer: bool,
}

/// The read depths that a peer gave in its frame; `None` where it leaves them open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerDepths {
    /// How many reads it serves at a time.
    pub ird: Option<u16>,
    /// How many reads it may have under way.
    pub ord: Option<u16>,
}

/// A frame of the peer, with its private data taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerFrame {
    pub(crate) revision: Revision,
    pub(crate) rejected: bool,
    markers: bool,
    crc: bool,
    enhanced: Option<enhanced::Repr>,
    hello: Option<hello::Repr>,
    pub(crate) private_data: Vec<u8>,
}

impl PeerFrame {
    /// Takes apart a frame. A hello is looked for only where one is expected.
    pub(crate) fn new(repr: &frame::Repr<'_>, expect_hello: bool) -> Self {
        let mut private_data = repr.private_data;
        let hello = hello::Header::new_checked(private_data)
            .and_then(|header| hello::Repr::parse(&header))
            .ok()
            .filter(|_| expect_hello);
        if hello.is_some() {
            private_data = &private_data[hello::LEN..];
        }
        Self {
            revision: repr.revision,
            rejected: repr.kind == Kind::Reply { rejected: true },
            markers: repr.markers,
            crc: repr.crc,
            enhanced: repr.enhanced,
            hello,
            private_data: private_data.to_vec(),
        }
    }

    pub(crate) fn depths(&self) -> Option<PeerDepths> {
        self.enhanced.map(|data| PeerDepths { ird: data.ird.negotiated(), ord: data.ord.negotiated() })
    }

    pub(crate) fn peer_to_peer(&self) -> bool {
        self.enhanced.is_some_and(|data| data.peer_to_peer.is_some())
    }

    /// The interval at which this peer wants markers.
    fn interval(&self) -> Option<Interval> {
        let agreed = self.hello.and_then(|hello| hello.interval);
        self.markers.then(|| agreed.unwrap_or(Interval::STANDARD))
    }
}

/// The way in which an initiator says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadySignal {
    Write,
    Read,
    Send,
}

/// Whether the initiator says hello: only to ask for something beyond the standard.
pub(crate) fn says_hello(config: &Config) -> bool {
    config.markers.is_some_and(|interval| interval != Interval::STANDARD)
}

/// The bytes of the initiator's request.
pub(crate) fn request(config: &Config, private_data: &[u8]) -> Result<Vec<u8>, Error> {
    let enhanced = (config.revision == Revision::Two).then(|| enhanced::Repr {
        ird: offered(config, config.ird),
        ord: offered(config, config.ord),
        peer_to_peer: config.peer_to_peer.then_some(config.rtr),
    });
    let hello = says_hello(config).then_some(hello::Repr { interval: config.markers });
    emit(config, Kind::Request, config.revision, enhanced, hello, private_data)
}

/// The responder's answer to a request that is accepted: its bytes, and what is agreed.
pub(crate) fn accept(config: &Config, request: &PeerFrame, private_data: &[u8]) -> Result<(Vec<u8>, Agreement), Error> {
    let mut agreement = Agreement {
        revision: request.revision,
        crc: config.crc || request.crc,
        markers_sent: request.interval(),
        markers_received: config.markers.map(|wanted| wanted_interval(wanted, request)),
        ird: config.ird,
        ord: config.ord,
        peer_depths: request.depths(),
        peer_to_peer: request.peer_to_peer(),
    };
    let enhanced = request.enhanced.map(|theirs| {
        let (ird, ord) = answered_depths(config, &theirs, &mut agreement);
        enhanced::Repr { ird, ord, peer_to_peer: theirs.peer_to_peer.map(|modes| answered_modes(config, modes)) }
    });
    let kind = Kind::Reply { rejected: false };
    let hello = hello_answer(config, request);
    let bytes = emit(config, kind, request.revision, enhanced, hello, private_data)?;
    Ok((bytes, agreement))
}

/// The bytes of the responder's answer to a request that is rejected.
pub(crate) fn reject(config: &Config, request: &PeerFrame, private_data: &[u8]) -> Result<Vec<u8>, Error> {
    let enhanced = request.enhanced.map(|theirs| enhanced::Repr {
        ird: offered(config, config.ird),
        ord: offered(config, config.ord),
        peer_to_peer: theirs.peer_to_peer.map(|modes| answered_modes(config, modes)),
    });
    let kind = Kind::Reply { rejected: true };
    let hello = hello_answer(config, request);
    emit(config, kind, request.revision, enhanced, hello, private_data)
}

/// What the initiator makes of a reply that accepts, and how it says that it is ready.
///
/// Where it fails, the agreement still says how to send the terminate message.
pub(crate) fn agree(config: &Config, reply: &PeerFrame) -> (Agreement, Result<Option<ReadySignal>, Fault>) {
    let mut agreement = Agreement {
        revision: reply.revision,
        crc: config.crc || reply.crc,
        markers_sent: reply.interval(),
        markers_received: config.markers.map(|wanted| wanted_interval(wanted, reply)),
        ird: config.ird,
        ord: config.ord,
        peer_depths: reply.depths(),
        peer_to_peer: false,
    };
    let Some(theirs) = reply.enhanced.filter(|_| config.revision == Revision::Two) else {
        return (agreement, Ok(None));
    };
    if let Some(limit) = theirs.ird.negotiated().filter(|_| config.negotiate_depths) {
        agreement.ord = agreement.ord.min(limit);
    }
    if let Some(needed) = theirs.ord.negotiated().filter(|_| config.negotiate_depths)
        && needed > config.ird
    {
        let fault = Fault::ReadDepthShort { needed, have: config.ird };
        return (agreement, Err(fault));
    }
    let Some(offered) = theirs.peer_to_peer.filter(|_| config.peer_to_peer) else {
        return (agreement, Ok(None));
    };
    agreement.peer_to_peer = true;
    let supported = config.rtr;
    let signal = if offered.write && supported.write {
        Ok(Some(ReadySignal::Write))
    } else if offered.read && supported.read {
        Ok(Some(ReadySignal::Read))
    } else if offered.send && supported.send {
        Ok(Some(ReadySignal::Send))
    } else {
        Err(Fault::NoReadyMode { offered, supported })
    };
    (agreement, signal)
}

/// The responder's depths: at most what it is asked for, and what it is offered (RFC 6581 §9.1).
fn answered_depths(config: &Config, theirs: &enhanced::Repr, agreement: &mut Agreement) -> (Depth, Depth) {
    let mut ird = Depth::NOT_NEGOTIATED;
    let mut ord = Depth::NOT_NEGOTIATED;
    if let Some(asked) = theirs.ord.negotiated().filter(|_| config.negotiate_depths) {
        // A read that says "ready" needs a place even where no other reads are meant.
        let ready = theirs.peer_to_peer.is_some_and(|modes| modes.read && config.rtr.read);
        agreement.ird = if ready { config.ird.max(1) } else { config.ird };
        agreement.ird = agreement.ird.min(asked.max(u16::from(ready)));
        ird = Depth::limit(agreement.ird);
    }
    if let Some(served) = theirs.ird.negotiated().filter(|_| config.negotiate_depths) {
        agreement.ord = config.ord.min(served);
        ord = Depth::limit(agreement.ord);
    }
    (ird, ord)
}

/// The responder's modes: those that both know, or else all that it knows (RFC 6581 §9.2).
fn answered_modes(config: &Config, asked: RtrModes) -> RtrModes {
    let known = config.rtr;
    let common =
        RtrModes { send: asked.send && known.send, write: asked.write && known.write, read: asked.read && known.read };
    if common == RtrModes::default() { known } else { common }
}

/// A peer that does not say hello sends markers at the standard interval.
fn wanted_interval(wanted: Interval, peer: &PeerFrame) -> Interval {
    if peer.hello.is_some() { wanted } else { Interval::STANDARD }
}

/// A hello is answered by a hello.
fn hello_answer(config: &Config, request: &PeerFrame) -> Option<hello::Repr> {
    request.hello.map(|_| hello::Repr { interval: config.markers.filter(|interval| *interval != Interval::STANDARD) })
}

fn offered(config: &Config, depth: u16) -> Depth {
    if config.negotiate_depths { Depth::limit(depth) } else { Depth::NOT_NEGOTIATED }
}

fn emit(
    config: &Config,
    kind: Kind,
    revision: Revision,
    enhanced: Option<enhanced::Repr>,
    hello: Option<hello::Repr>,
    private_data: &[u8],
) -> Result<Vec<u8>, Error> {
    let own = hello.map_or(0, |hello| hello.buffer_len());
    let limit = frame::Repr::private_data_limit(enhanced.is_some()) - own;
    if private_data.len() > limit {
        return Err(Error::PrivateData { length: private_data.len(), limit });
    }
    let mut data = vec![0; own];
    if let Some(hello) = hello {
        hello.emit(&mut data);
    }
    data.extend_from_slice(private_data);
    let repr = frame::Repr {
        kind,
        revision,
        markers: config.markers.is_some(),
        crc: config.crc,
        enhanced,
        private_data: &data,
    };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
