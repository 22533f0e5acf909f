//! Set-up as it happens: the frames that come and go, and the answer of the program above.

use crate::connection::{Connection, Phase};
use crate::error::Error;
use crate::event::{Event, SetupFailure};
use crate::setup::{self, Agreement, PeerFrame};
use sidestep_wire::mpa::frame::{self, Revision};
use std::time::Duration;

impl Connection {
    /// Responder: takes the peer up on its request.
    pub fn accept(&mut self, private_data: &[u8]) -> Result<(), Error> {
        let Phase::Deciding(request) = &self.phase else {
            return Err(Error::NothingToAnswer);
        };
        let (reply, agreement) = setup::accept(&self.config, request, private_data)?;
        self.frame = Some(reply);
        self.rx.expects_ready_send = agreement.peer_to_peer && self.config.rtr.send;
        self.begin(agreement, Vec::new());
        Ok(())
    }

    /// Responder: refuses the peer's request.
    pub fn reject(&mut self, now: Duration, private_data: &[u8]) -> Result<(), Error> {
        let Phase::Deciding(request) = &self.phase else {
            return Err(Error::NothingToAnswer);
        };
        self.frame = Some(setup::reject(&self.config, request, private_data)?);
        self.flush();
        self.phase = Phase::Ending;
        self.deadline = Some(now + self.config.close_timeout);
        Ok(())
    }

    /// Handles a set-up frame, once it is all there.
    pub(crate) fn handle_frame(&mut self, now: Duration, input: &[u8], initiator: bool) -> usize {
        let parsed = match frame::expected_len(input, initiator) {
            Ok(Some(len)) if input.len() >= len => frame::Packet::new_checked(&input[..len])
                .and_then(|packet| {
                    let expect_hello = !initiator || setup::says_hello(&self.config);
                    Ok(PeerFrame::new(&frame::Repr::parse(&packet)?, expect_hello))
                })
                .map(|peer| (peer, len)),
            Ok(_) => return 0,
            Err(error) => Err(error),
        };
        match parsed {
            Ok((peer, len)) => {
                self.deadline = None;
                if initiator {
                    self.handle_reply(now, peer);
                } else {
                    self.handle_request(peer);
                }
                len
            }
            Err(error) => {
                self.events.push_back(Event::SetupFailed(SetupFailure::Frame(error)));
                self.finish(false);
                input.len()
            }
        }
    }

    fn handle_request(&mut self, request: PeerFrame) {
        self.events.push_back(Event::Requested {
            private_data: request.private_data.clone(),
            revision: request.revision,
            depths: request.depths(),
            peer_to_peer: request.peer_to_peer(),
        });
        self.phase = Phase::Deciding(Box::new(request));
    }

    fn handle_reply(&mut self, now: Duration, reply: PeerFrame) {
        if self.config.revision == Revision::Two && reply.revision == Revision::One {
            self.events.push_back(Event::FallBack { revision: Revision::One });
            return self.finish(false);
        }
        if reply.rejected {
            let depths = reply.depths();
            self.events.push_back(Event::Rejected { private_data: reply.private_data, depths });
            return self.finish(false);
        }
        let (agreement, signal) = setup::agree(&self.config, &reply);
        match signal {
            Ok(signal) => {
                if let Some(signal) = signal {
                    self.tx.signal_ready(signal);
                }
                self.begin(agreement, reply.private_data);
                self.tx.open = true;
            }
            Err(fault) => {
                self.tx.begin(&agreement, self.config.segment_size);
                self.tx.open = true;
                self.fail(now, fault, None);
            }
        }
    }

    fn begin(&mut self, agreement: Agreement, private_data: Vec<u8>) {
        self.tx.begin(&agreement, self.config.segment_size);
        self.rx.begin(&agreement);
        self.phase = Phase::Operating;
        self.events.push_back(Event::Established { private_data, agreement });
    }
}
