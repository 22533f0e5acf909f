//! Messages of an endpoint. An endpoint keeps so many that nobody has taken; so now and then one is confirmed.

use anyhow::{Result, bail};
use sidestep_fabric::Endpoint;

use super::super::control::Peer;
use super::super::exercise::Exercise;
use super::super::hosts;
use super::super::path::{End, Offer, Opening};
use super::{CRC, attach_pair, open_pair};

/// Opens messages.
pub fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (endpoint, ..) = open_pair(opening, CRC.node()?, &hosts::iwarp_name())?;
    Ok(Box::new(SendEnd { endpoint, peer: opening.peer(), unconfirmed: 0, received: 0 }))
}

/// Attaches to them.
pub fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let (endpoint, ..) = attach_pair(&offer, CRC.node()?)?;
    Ok(Box::new(SendEnd { endpoint, peer: offer.peer, unconfirmed: 0, received: 0 }))
}

struct SendEnd {
    endpoint: Endpoint,
    peer: Peer,
    unconfirmed: usize,
    received: usize,
}

impl SendEnd {
    fn message(&mut self) -> Result<Vec<u8>> {
        let mut spin = self.peer.spin();
        loop {
            match self.endpoint.poll_message()? {
                Some(message) if message.is_empty() => self.unconfirmed -= CONFIRMED,
                Some(message) => return Ok(message),
                None => spin.turn()?,
            }
        }
    }

    fn post(&self, bytes: &[u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        loop {
            match self.endpoint.post(bytes) {
                Err(sidestep_fabric::Error::Full { .. }) => {
                    self.endpoint.node().progress();
                    spin.turn()?;
                }
                outcome => return Ok(outcome?),
            }
        }
    }
}

impl End for SendEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        while self.unconfirmed >= 2 * CONFIRMED {
            let mut spin = self.peer.spin();
            match self.endpoint.poll_message()? {
                Some(message) if message.is_empty() => self.unconfirmed -= CONFIRMED,
                Some(_) => bail!("a message that was not asked for"),
                None => spin.turn()?,
            }
        }
        self.unconfirmed += 1;
        self.post(payload)
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        payload.copy_from_slice(&self.message()?);
        self.received += 1;
        if self.received % CONFIRMED == 0 {
            self.post(b"")?;
        }
        Ok(())
    }
}

/// Messages that one confirmation stands for; two such lots fit into an inbox.
const CONFIRMED: usize = 64;
