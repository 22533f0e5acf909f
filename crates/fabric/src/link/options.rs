//! How a link behaves.

use std::time::Duration;

use crate::error::{Error, Result};

/// The parameters of links. All but the first are of links between hosts, and others take no notice of them. What the peer wants
/// may differ; see each field for what is agreed then.
#[derive(Debug, Clone, Copy)]
pub struct LinkOptions {
    /// On one host: whether processes of the user with this number may be peers. Asked at each connection, of either side.
    pub admits: fn(u32) -> bool,
    /// Ask for a checksum over every frame. It is used if either end asks.
    pub crc: bool,
    /// Ask the peer for markers so many bytes apart, a multiple of four from 16 to 65532; 512 is the standard. Each
    /// direction has those that its receiver asked for.
    pub markers: Option<u32>,
    /// The most bytes of one frame.
    pub frame: usize,
    /// How long a connection may take to be made.
    pub setup_timeout: Duration,
    /// How long a close may take without anything moving.
    pub close_timeout: Duration,
    /// A peer that vanished without a word, or does not take what is sent, is given up after so long.
    pub silence: Duration,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions {
            admits: sidestep_sys::user::is_own,
            crc: true,
            markers: None,
            frame: FRAME,
            setup_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            silence: Duration::from_secs(20),
        }
    }
}

impl LinkOptions {
    /// Whether they make sense.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(bytes) = self.markers
            && sidestep_iwarp::Interval::new(bytes).is_err()
        {
            let must = "a multiple of four from 16 to 65532";
            return Err(Error::Size { what: "marker interval", must, value: bytes as usize });
        }
        if !(256..=65535).contains(&self.frame) {
            return Err(Error::Size { what: "frame", must: "256 to 65535 bytes", value: self.frame });
        }
        Ok(())
    }
}

/// What a segment of the loopback interface carries, in whole words.
const FRAME: usize = 65480;
