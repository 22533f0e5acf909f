//! Waiting for replies.

use std::time::Duration;

use sidestep_sys::clock;
use sidestep_sys::lock::Guard;
use sidestep_wire::oncrpc::{self, reply};

use super::calls::{Calls, State};
use super::route::{Reading, Route};
use super::{Decode, Inner, Outstanding};
use crate::Error;
use crate::transport::after;
use crate::xdr::Reader;

impl Inner {
    /// Waits for the reply of a call, and gives its results.
    #[inline]
    pub(super) fn wait(
        &self,
        mut call: Box<Outstanding>,
        route: Route<'_>,
        decode: &mut Decode<'_>,
    ) -> Result<(), Error> {
        let Route::Reading(reading) = route else {
            drop(route);
            return self.wait_longer(self.calls(), call, decode);
        };
        let mut own = Own::default();
        // Nobody has taken the reply: who sends over a stream takes none before the call is sent.
        if call.resend.is_none() {
            self.read(&mut call, &reading, decode, &mut own);
        }
        let number = reading.connection().map_or(0, |connection| connection.number);
        let mut calls = reading.end();
        if own.has_come {
            self.finish(calls, call);
            return match own.failure {
                None => Ok(()),
                Some(error) => Err(error),
            };
        }
        calls.list_late(&mut call, number);
        self.wait_longer(calls, call, decode)
    }

    /// The same, for one who does not read yet.
    #[inline(never)]
    fn wait_longer<'a>(
        &'a self,
        mut calls: Guard<'a, Calls>,
        mut call: Box<Outstanding>,
        decode: &mut Decode<'_>,
    ) -> Result<(), Error> {
        let timeout = self.options.timeout;
        let outcome = loop {
            // Whoever gets here is listed.
            let slot = call.slot.unwrap_or_default();
            match calls.state(slot) {
                State::Replied => {
                    let reply = calls.take_reply(slot);
                    drop(calls);
                    let value = results(&reply, decode);
                    calls = self.calls();
                    calls.keep_reply(slot, reply);
                    break value;
                }
                State::Lost => {
                    drop(calls);
                    let sent = self.send_again(&mut call, &mut Route::None, self.disconnected(), Duration::ZERO);
                    calls = self.calls();
                    match sent {
                        Ok(()) => continue,
                        Err(error) => break Err(error),
                    }
                }
                State::Free | State::Waiting => {}
            }
            match calls.read_begin() {
                Some(connection) => {
                    drop(calls);
                    let reading = Reading::new(self, connection);
                    let mut own = Own::default();
                    self.read(&mut call, &reading, decode, &mut own);
                    calls = reading.end();
                    if own.has_come {
                        break own.failure.map_or(Ok(()), Err);
                    }
                }
                None => calls = Calls::park(calls, slot, call.until(timeout)),
            }
            if calls.state(slot) != State::Waiting {
                continue;
            }
            let now = clock::now();
            if now >= call.deadline.at(timeout) {
                break Err(Error::TimedOut { address: self.address.to_string(), after: timeout });
            }
            if let Some((at, pause)) = call.resend
                && now >= at
            {
                call.resend = Some((after(pause * 2), pause * 2));
                let connection = calls.connection.clone();
                drop(calls);
                let sent = match &connection {
                    Some(connection) => self.send(connection, &call.frame, &mut call.deadline),
                    None => Err(self.disconnected()),
                };
                calls = self.calls();
                if let Err(error) = sent {
                    break Err(error);
                }
            }
        };
        self.finish(calls, call);
        outcome
    }

    /// Reads once. The call's own reply is decoded where the transport has it; others are given to their calls.
    #[inline(always)]
    fn read(&self, call: &mut Outstanding, reading: &Reading<'_>, decode: &mut Decode<'_>, own: &mut Own) {
        let Some(connection) = reading.connection() else { return };
        let (until, xid) = (call.until(self.options.timeout), call.xid);
        let received = connection.transport.receive(until, &mut |message| {
            if own.has_come {
                self.deliver(message);
            } else if let Some(results) = reply::success(message, xid) {
                own.has_come = true;
                if let Err(error) = decoded(results, decode) {
                    own.failure = Some(error);
                }
            } else if matches!(oncrpc::peek(message), Ok((of, false)) if of == xid) {
                own.has_come = true;
                own.failure = results(message, decode).err();
            } else {
                self.deliver(message);
            }
        });
        if received.is_err() {
            self.lost(connection);
        }
    }

    /// The end of a call, also of one that is given up. Somebody else reads, if somebody must.
    #[inline(always)]
    pub(super) fn finish(&self, mut calls: Guard<'_, Calls>, call: Box<Outstanding>) {
        calls.end(call);
        calls.hand_over();
    }
}

/// What has become of the own reply of one who reads.
#[derive(Default)]
struct Own {
    has_come: bool,
    failure: Option<Error>,
}

impl Outstanding {
    /// How long to wait before something is done about it.
    #[inline]
    fn until(&mut self, timeout: Duration) -> u64 {
        let deadline = self.deadline.at(timeout);
        self.resend.map_or(deadline, |(at, _)| at.min(deadline))
    }
}

/// What a reply says, or the results behind it.
#[inline(never)]
fn results(message: &[u8], decode: &mut Decode<'_>) -> Result<(), Error> {
    let (header, results) = reply::Repr::parse(message).map_err(Error::Reply)?;
    match header.body {
        reply::Body::Accepted { state: reply::Accepted::Success, .. } => decoded(results, decode),
        reply::Body::Accepted { state, .. } => Err(Error::Refused(state)),
        reply::Body::Denied(denied) => Err(Error::Denied(denied)),
    }
}

#[inline]
fn decoded(results: &[u8], decode: &mut Decode<'_>) -> Result<(), Error> {
    let mut input = Reader::new(results);
    decode(&mut input).and_then(|()| input.finish()).map_err(Error::Reply)
}
