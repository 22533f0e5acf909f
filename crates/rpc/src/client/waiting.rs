//! Waiting for replies.

use std::time::{Duration, Instant};

use sidestep_sys::lock::Guard;
use sidestep_wire::oncrpc::{self, reply};

use super::calls::{Calls, State};
use super::route::{Reading, Route};
use super::{Inner, Outstanding};
use crate::Error;
use crate::xdr::{self, Reader};

impl Inner {
    /// Waits for the reply of a call, and gives its results.
    pub(super) fn wait<T>(
        &self,
        mut call: Outstanding,
        route: Route<'_>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Result<T, Error> {
        let mut calls = match route {
            // Nobody has taken the reply: who sends over a stream takes none before the call is sent.
            Route::Reading(reading) if call.resend.is_none() => {
                let (calls, own) = self.read(&mut call, reading, decode);
                if let Some(value) = own {
                    self.finish(calls, call);
                    return value;
                }
                calls
            }
            Route::Reading(reading) => reading.end(),
            Route::None | Route::Over(_) => {
                drop(route);
                self.calls()
            }
        };
        let outcome = loop {
            match calls.state(call.slot) {
                State::Replied => {
                    let reply = calls.take_reply(call.slot);
                    drop(calls);
                    let value = results(&reply, decode);
                    calls = self.calls();
                    calls.keep_reply(call.slot, reply);
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
                    let (locked, own) = self.read(&mut call, Reading::new(self, connection), decode);
                    calls = locked;
                    if let Some(value) = own {
                        break value;
                    }
                }
                None => calls = Calls::park(calls, call.slot, call.until()),
            }
            if calls.state(call.slot) != State::Waiting {
                continue;
            }
            let now = Instant::now();
            if now >= call.deadline.at() {
                let after = self.options.timeout;
                break Err(Error::TimedOut { address: self.address.to_string(), after });
            }
            if let Some((at, pause)) = call.resend
                && now >= at
            {
                call.resend = Some((now + pause * 2, pause * 2));
                let mut route = calls.connection.clone().map_or(Route::None, Route::Over);
                drop(calls);
                let sent = self.send(&mut route, &call.frame, &mut call.deadline);
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
    fn read<'a, T>(
        &'a self,
        call: &mut Outstanding,
        reading: Reading<'a>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> (Guard<'a, Calls>, Option<Result<T, Error>>) {
        let mut own = None;
        if let Some(connection) = reading.connection() {
            let received = connection.transport.receive(call.until(), &mut |message| {
                if own.is_none() && matches!(oncrpc::peek(message), Ok((xid, false)) if xid == call.xid) {
                    own = Some(results(message, decode));
                } else {
                    self.deliver(message);
                }
            });
            if received.is_err() {
                self.lost(connection);
            }
        }
        (reading.end(), own)
    }

    /// The end of a call, also of one that is given up. Somebody else reads, if somebody must.
    pub(super) fn finish(&self, mut calls: Guard<'_, Calls>, call: Outstanding) {
        calls.end(call.slot, call.frame);
        calls.hand_over();
    }
}

impl Outstanding {
    /// How long to wait before something is done about it.
    fn until(&mut self) -> Instant {
        let deadline = self.deadline.at();
        self.resend.map_or(deadline, |(at, _)| at.min(deadline))
    }
}

/// What a reply says, or the results behind it.
fn results<T>(message: &[u8], decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>) -> Result<T, Error> {
    let (header, results) = reply::Repr::parse(message).map_err(Error::Reply)?;
    match header.body {
        reply::Body::Accepted { state: reply::Accepted::Success, .. } => {
            let mut input = Reader::new(results);
            let value = decode(&mut input).map_err(Error::Reply)?;
            input.finish().map_err(Error::Reply)?;
            Ok(value)
        }
        reply::Body::Accepted { state, .. } => Err(Error::Refused(state)),
        reply::Body::Denied(denied) => Err(Error::Denied(denied)),
    }
}
