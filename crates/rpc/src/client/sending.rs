//! Sending calls.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_wire::oncrpc::{Auth, Xid, call};

use super::route::{Reading, Route};
use super::{Connection, Deadline, Inner, Outstanding, Procedure, lock};
use crate::record::{self, ROOM};
use crate::transport::{self, Space, Take};
use crate::xdr::{self, Place, Writer};
use crate::{Address, Error};

/// How many bytes of batched calls may wait for the next call.
const BATCH: usize = 8 << 10;

/// The times between two attempts to connect, for calls that are sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Inner {
    /// Sends a call. A caller that `waits` for the reply at once is the one who reads, if nobody else does.
    pub(super) fn begin(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
        waits: bool,
    ) -> Result<(Outstanding, Route<'_>), Error> {
        let mut calls = self.calls();
        let (slot, xid, frame) = calls.begin();
        let reader = if waits { calls.read_begin() } else { None };
        let mut route = match (reader, &calls.connection) {
            (Some(connection), _) => Route::Reading(Reading::new(self, connection)),
            (None, Some(connection)) => Route::Over(connection.clone()),
            (None, None) => Route::None,
        };
        drop(calls);
        let mut call = Outstanding { slot, xid, deadline: self.deadline(), frame, resend: None };
        let mut sent = self.send_new(&mut call, &mut route, procedure, encode);
        if let Err(error) = sent {
            sent = self.send_again(&mut call, &mut route, error, FIRST_PAUSE);
        }
        match sent {
            Ok(()) => Ok((call, route)),
            Err(error) => {
                drop(route);
                self.finish(self.calls(), call);
                Err(error)
            }
        }
    }

    /// Puts a call together and sends it. Whoever loses the connection sees the call already.
    fn send_new<'a>(
        &'a self,
        call: &mut Outstanding,
        route: &mut Route<'a>,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
    ) -> Result<(), Error> {
        if self.put_together(call, route.connection(), procedure, encode)? {
            return Ok(());
        }
        if let Route::None = route {
            call.deadline.at();
            *route = Route::Over(self.connect_for(call.slot)?);
        }
        self.send_frame(call, route)
    }

    /// Puts a call together: in its frame, or where the transport sends it from. `true`: it was sent from there.
    fn put_together(
        &self,
        call: &mut Outstanding,
        connection: Option<&Connection>,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
    ) -> Result<bool, Error> {
        // What may have to be sent again is kept in the frame.
        let once = connection.filter(|connection| !connection.lossy && !self.options.resend);
        let Some(mut place) = once.and_then(InPlace::new) else {
            return self.frame(&mut call.frame, None, call.xid, procedure, encode);
        };
        let placed = self.frame(&mut call.frame, Some(&mut place), call.xid, procedure, encode)?;
        let sent = if placed { place.space.finish(&mut call.frame) } else { Ok(false) };
        sent.map_err(|_| {
            self.lost(place.connection);
            self.disconnected()
        })
    }

    /// Writes the frame of a call; `true`: all of it but its end lies in the place.
    pub(super) fn frame(
        &self,
        frame: &mut Vec<u8>,
        place: Option<&mut dyn Place>,
        xid: Xid,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
    ) -> Result<bool, Error> {
        let Procedure { program, version, procedure } = procedure;
        let credential = self.options.credential.auth();
        let header = call::Repr { xid, program, version, procedure, credential, verifier: Auth::NONE };
        frame.clear();
        frame.extend_from_slice(&[0; ROOM]);
        let limit = match self.address {
            Address::Udp(_) => transport::MAX_DATAGRAM.min(self.options.max_message),
            _ => self.options.max_message,
        };
        let place = place.map(|place| place as &mut dyn Place);
        let mut out = Writer::with_place(frame, ROOM + limit, place);
        header.emit(&mut out).and_then(|()| encode(&mut out)).map_err(Error::Arguments)?;
        let placed = out.placed() > 0;
        if !placed {
            record::mark(frame);
        }
        Ok(placed)
    }

    /// Sends the frame of a call over a connection.
    fn send_frame<'a>(&'a self, call: &mut Outstanding, route: &mut Route<'a>) -> Result<(), Error> {
        if route.connection().is_some_and(|connection| connection.lossy) {
            let pause = self.options.first_resend;
            call.resend = Some((Instant::now() + pause, pause));
        }
        self.send(route, &call.frame, &mut call.deadline)
    }

    /// Sends a call over a new connection after a pause, if that is wanted after such an error, until its time is over.
    pub(super) fn send_again<'a>(
        &'a self,
        call: &mut Outstanding,
        route: &mut Route<'a>,
        mut error: Error,
        mut pause: Duration,
    ) -> Result<(), Error> {
        *route = Route::None;
        loop {
            let may_help = matches!(error, Error::Disconnected { .. } | Error::Setup { .. });
            if !may_help || !self.options.resend || Instant::now() + pause >= call.deadline.at() {
                return Err(error);
            }
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let sent = self.connect_for(call.slot).and_then(|connection| {
                *route = Route::Over(connection);
                self.send_frame(call, route)
            });
            match sent {
                Ok(()) => return Ok(()),
                Err(next) => error = next,
            }
        }
    }

    /// The connection over which a call is sent from now on.
    fn connect_for(&self, slot: usize) -> Result<Arc<Connection>, Error> {
        self.connection()?;
        // It may have been lost already.
        self.calls().resume(slot).ok_or_else(|| self.disconnected())
    }

    pub(super) fn send_batched(&self, frame: &[u8]) -> Result<(), Error> {
        let connection = self.connection()?;
        let mut unsent = lock(&connection.unsent);
        if unsent.len() + frame.len() <= BATCH && !connection.lossy {
            unsent.extend_from_slice(frame);
            return Ok(());
        }
        drop(unsent);
        self.send(&mut Route::Over(connection), frame, &mut self.deadline())
    }

    /// Sends what waits, then a frame. The one who reads leaves that to others if somebody else sends, who may wait for what
    /// is read.
    pub(super) fn send<'a>(
        &'a self,
        route: &mut Route<'a>,
        frame: &[u8],
        deadline: &mut Deadline,
    ) -> Result<(), Error> {
        let reads = matches!(route, Route::Reading(_));
        let Some(connection) = route.connection() else { return Err(self.disconnected()) };
        if let Ok(unsent) = connection.unsent.try_lock() {
            // Nobody else sends, and most frames go at once.
            let at_once = unsent.is_empty() && !frame.is_empty();
            let begun = if at_once { connection.transport.send(frame) } else { Ok(0) };
            return match begun {
                Ok(count) if at_once && count == frame.len() => Ok(()),
                begun => self.send_locked(connection, unsent, (frame, begun), deadline, reads),
            };
        }
        route.leave_reading();
        let Some(connection) = route.connection() else { return Err(self.disconnected()) };
        self.send_locked(connection, lock(&connection.unsent), (frame, Ok(0)), deadline, false)
    }

    /// Sends what waits, and what is left of a frame that was begun if nothing waits.
    #[inline(never)]
    fn send_locked(
        &self,
        connection: &Connection,
        mut unsent: MutexGuard<'_, Vec<u8>>,
        (frame, begun): (&[u8], io::Result<usize>),
        deadline: &mut Deadline,
        reads: bool,
    ) -> Result<(), Error> {
        let sent = if unsent.is_empty() {
            begun.and_then(|count| self.send_bytes(connection, &frame[count..], deadline, reads))
        } else {
            unsent.extend_from_slice(frame);
            let sent = self.send_bytes(connection, &unsent, deadline, reads);
            unsent.clear();
            sent
        };
        drop(unsent);
        sent.map_err(|_| {
            // A frame that was sent in part cannot be taken back.
            self.lost(connection);
            self.disconnected()
        })
    }

    fn send_bytes(
        &self,
        connection: &Connection,
        mut bytes: &[u8],
        deadline: &mut Deadline,
        reads: bool,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            match connection.transport.send(bytes)? {
                0 if Instant::now() >= deadline.at() => return Err(io::ErrorKind::TimedOut.into()),
                0 => {
                    // The server may wait for us to take replies before it takes more calls. Only the one who reads takes
                    // them: another one would wait for what was taken.
                    let reader = if reads { None } else { self.calls().read_begin_of(connection) };
                    let reading = reader.map(|connection| Reading::new(self, connection));
                    let mut take = |message: &[u8]| self.deliver(message);
                    let take: Option<&mut Take<'_>> = if reads || reading.is_some() { Some(&mut take) } else { None };
                    connection.transport.wait_sendable(deadline.at(), take)?;
                }
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }
}

/// A call that is put together where the transport sends it from. From its first byte there on, nobody else sends.
struct InPlace<'a> {
    connection: &'a Connection,
    alone: Option<MutexGuard<'a, Vec<u8>>>,
    space: Space<'a>,
}

impl<'a> InPlace<'a> {
    /// If the transport has such a place.
    #[inline]
    fn new(connection: &'a Connection) -> Option<Self> {
        let space = connection.transport.space()?;
        Some(Self { connection, alone: None, space })
    }
}

impl Place for InPlace<'_> {
    fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        if self.alone.is_none() {
            // Batched calls that wait go first, and so does whoever sends.
            self.alone = self.connection.unsent.try_lock().ok().filter(|unsent| unsent.is_empty());
        }
        self.alone.is_some() && self.space.put(parts)
    }

    fn take_back(&mut self, into: &mut Vec<u8>) -> bool {
        self.space.take_back(into)
    }
}
