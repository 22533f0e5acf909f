//! What one end of a connection asks for.

use crate::mem::{DomainId, StreamId, StreamIdentity};
use sidestep_wire::mpa::frame::Revision;
use sidestep_wire::mpa::marker::Interval;
use std::time::Duration;

pub use sidestep_wire::mpa::enhanced::RtrModes;

/// The parameters of one end. The default is what RFC 5044 and RFC 6581 call for: CRC, no markers,
/// revision two, the client-server model.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which memory the peer may reach: that of this domain, and that of this stream.
    pub identity: StreamIdentity,
    /// Ask for CRC. It is used if either end asks.
    pub crc: bool,
    /// Ask the peer for markers. An interval other than [`Interval::STANDARD`] is used only if the
    /// peer is Sidestep too; any other peer is asked for the standard one.
    pub markers: Option<Interval>,
    /// Initiator: the revision of the request. Responder: it answers in the revision it was asked in.
    pub revision: Revision,
    /// How many reads and atomics of the peer are served at a time.
    pub ird: u16,
    /// How many reads and atomics may be under way towards the peer.
    pub ord: u16,
    /// Agree on the two depths with the peer; otherwise they are as configured, and the programs
    /// above see to it that they match.
    pub negotiate_depths: bool,
    /// Initiator: ask for the peer-to-peer model, in which this end says at once that it is ready, so
    /// that the peer may send first.
    pub peer_to_peer: bool,
    /// The ways of saying "ready to receive" that this end can produce and understand.
    pub rtr: RtrModes,
    /// The size of a TCP segment, from which the greatest FPDU follows.
    pub segment_size: usize,
    /// How many requests, and how many receives, may be posted at a time.
    pub queue_limit: usize,
    /// How long to wait for the frame of the peer in set-up.
    pub setup_timeout: Duration,
    /// How long a close may take without anything moving, and how long to wait for the peer to close its
    /// half after that.
    pub close_timeout: Duration,
    /// Initiator: if the peer has sent nothing this long after the first FPDU, send a write of length
    /// zero, and again with twice the pause, a few times. It wakes a peer that lost the first wake-up:
    /// Linux siw answers the set-up before it listens for FPDUs.
    pub nudge: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            identity: StreamIdentity { domain: DomainId(0), stream: StreamId(0) },
            crc: true,
            markers: None,
            revision: Revision::Two,
            ird: 16,
            ord: 16,
            negotiate_depths: true,
            peer_to_peer: false,
            rtr: RtrModes { send: true, write: true, read: true },
            segment_size: 1460,
            queue_limit: 1024,
            setup_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(10),
            nudge: None,
        }
    }
}
