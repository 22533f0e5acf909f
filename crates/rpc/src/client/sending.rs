//! Sending calls.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use sidestep_sys::clock;

use super::route::{Reading, Route};
use super::{Connection, Deadline, Decode, Encode, Inner, Outstanding, Procedure, lock};
use crate::Error;
use crate::transport::{Space, Take, after};
use crate::xdr::Place;

/// How many bytes of batched calls may wait for the next call.
const BATCH: usize = 8 << 10;

/// The times between two attempts to connect, for calls that are sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Inner {
    /// Makes a call, and waits for its reply.
    pub(super) fn call(
        &self,
        procedure: Procedure,
        encode: &mut Encode<'_>,
        decode: &mut Decode<'_>,
    ) -> Result<(), Error> {
        let (mut call, mut route) = self.begin(true);
        match self.send_call(&mut call, &mut route, procedure, encode) {
            Ok(()) => self.wait(call, route, decode),
            Err(error) => Err(self.not_sent(call, route, error)),
        }
    }

    /// Sends a call whose reply is waited for later.
    pub(super) fn send_new(&self, procedure: Procedure, encode: &mut Encode<'_>) -> Result<Box<Outstanding>, Error> {
        let (mut call, mut route) = self.begin(false);
        match self.send_call(&mut call, &mut route, procedure, encode) {
            Ok(()) => {
                call.deadline.at(self.options.timeout);
                Ok(call)
            }
            Err(error) => Err(self.not_sent(call, route, error)),
        }
    }

    #[cold]
    fn not_sent(&self, call: Box<Outstanding>, route: Route<'_>, error: Error) -> Error {
        drop(route);
        self.finish(self.calls(), call);
        error
    }

    /// A new call, and how it goes. A caller that `waits` for the reply at once is the one who reads, if nobody else does.
    #[inline(always)]
    fn begin(&self, waits: bool) -> (Box<Outstanding>, Route<'_>) {
        let mut calls = self.calls();
        if waits && let Some(connection) = calls.read_begin() {
            return (calls.begin(), Route::Reading(Reading::new(self, connection)));
        }
        let call = calls.begin_listed();
        (call, calls.connection.clone().map_or(Route::None, Route::Over))
    }

    /// Puts a call together and sends it. Whoever loses the connection sees the call already.
    #[inline(always)]
    fn send_call<'a>(
        &'a self,
        call: &mut Outstanding,
        route: &mut Route<'a>,
        procedure: Procedure,
        encode: &mut Encode<'_>,
    ) -> Result<(), Error> {
        let sent = match self.put_together(call, route.connection(), procedure, encode) {
            Ok(true) => Ok(()),
            Ok(false) => self.send_first(call, route),
            Err(error) => Err(error),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(error) => self.send_again(call, route, error, FIRST_PAUSE),
        }
    }

    #[inline(always)]
    fn send_first<'a>(&'a self, call: &mut Outstanding, route: &mut Route<'a>) -> Result<(), Error> {
        if let Route::None = route {
            call.deadline.at(self.options.timeout);
            *route = Route::Over(self.connect_for(call)?);
        }
        self.send_frame(call, route)
    }

    /// Puts a call together: in its frame, or where the transport sends it from. `true`: it was sent from there.
    #[inline(always)]
    fn put_together(
        &self,
        call: &mut Outstanding,
        connection: Option<&Connection>,
        procedure: Procedure,
        encode: &mut Encode<'_>,
    ) -> Result<bool, Error> {
        // What may have to be sent again is kept in the frame.
        let Some(connection) = connection.filter(|connection| !connection.lossy && !self.options.resend) else {
            return self.frame(call, None, procedure, encode);
        };
        let mut place = InPlace { connection, open: None };
        if !self.frame(call, Some(&mut place), procedure, encode)? {
            return Ok(false);
        }
        place.finish(call.frame.end()).map_err(|_| {
            self.lost(connection);
            self.disconnected()
        })
    }

    /// Writes the frame of a call; `true`: all of it but its end lies in the place.
    #[inline(always)]
    pub(super) fn frame(
        &self,
        call: &mut Outstanding,
        place: Option<&mut dyn Place>,
        procedure: Procedure,
        encode: &mut Encode<'_>,
    ) -> Result<bool, Error> {
        let header = (call.xid, procedure, self.options.credential.auth());
        call.frame.fill(header, self.max_call, place, encode).map_err(Error::Arguments)
    }

    /// Sends the frame of a call over a connection.
    #[inline(always)]
    fn send_frame<'a>(&'a self, call: &mut Outstanding, route: &mut Route<'a>) -> Result<(), Error> {
        let Some(connection) = route.connection() else { return Err(self.disconnected()) };
        if connection.lossy {
            let pause = self.options.first_resend;
            call.resend = Some((after(pause), pause));
        }
        // Batched calls go before the next call of their thread.
        if !connection.has_unsent.load(Ordering::Relaxed) {
            // A call that may have to be sent again keeps its frame.
            let sent = if self.options.resend {
                connection.transport.send_whole(&call.frame)
            } else {
                call.frame.give(|bytes| connection.transport.give_whole(bytes))
            };
            match sent {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(_) => {
                    self.lost(connection);
                    return Err(self.disconnected());
                }
            }
        }
        if let Route::Reading(_) = route {
            if let Ok(unsent) = connection.unsent.try_lock() {
                return self.send_alone(connection, unsent, &call.frame, &mut call.deadline, true);
            }
            // Somebody else sends, and may wait for what is read.
            self.leave_reading(call, route);
        }
        self.send_in_turn(call, route)
    }

    #[cold]
    fn leave_reading<'a>(&'a self, call: &mut Outstanding, route: &mut Route<'a>) {
        if let Route::Reading(reading) = std::mem::replace(route, Route::None)
            && let Some(connection) = reading.shared_connection()
        {
            let mut calls = reading.end();
            calls.list_late(call, connection.number);
            calls.hand_over();
            *route = Route::Over(connection);
        }
    }

    #[inline(never)]
    fn send_in_turn(&self, call: &mut Outstanding, route: &Route<'_>) -> Result<(), Error> {
        let Some(connection) = route.connection() else { return Err(self.disconnected()) };
        self.send(connection, &call.frame, &mut call.deadline)
    }

    /// Sends a call over a new connection after a pause, if that is wanted after such an error, until its time is over.
    #[inline(never)]
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
            if !may_help || !self.options.resend || after(pause) >= call.deadline.at(self.options.timeout) {
                return Err(error);
            }
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let sent = match self.connect_for(call) {
                Ok(connection) => {
                    *route = Route::Over(connection);
                    self.send_frame(call, route)
                }
                Err(error) => Err(error),
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(next) => error = next,
            }
        }
    }

    /// The connection over which a call is sent from now on.
    #[inline(never)]
    fn connect_for(&self, call: &mut Outstanding) -> Result<Arc<Connection>, Error> {
        self.connection()?;
        // It may have been lost already.
        self.calls().resume(call).ok_or_else(|| self.disconnected())
    }

    pub(super) fn send_batched(&self, frame: &[u8]) -> Result<(), Error> {
        let connection = self.connection()?;
        let mut unsent = lock(&connection.unsent);
        if unsent.len() + frame.len() <= BATCH && !connection.lossy {
            unsent.extend_from_slice(frame);
            connection.has_unsent.store(true, Ordering::Relaxed);
            return Ok(());
        }
        drop(unsent);
        self.send(&connection, frame, &mut Deadline::default())
    }

    /// Sends what waits, then a frame, when nobody else sends. It is not for one who reads.
    pub(super) fn send(&self, connection: &Connection, frame: &[u8], deadline: &mut Deadline) -> Result<(), Error> {
        self.send_alone(connection, lock(&connection.unsent), frame, deadline, false)
    }

    #[inline(always)]
    fn send_alone(
        &self,
        connection: &Connection,
        unsent: MutexGuard<'_, Vec<u8>>,
        frame: &[u8],
        deadline: &mut Deadline,
        reads: bool,
    ) -> Result<(), Error> {
        // Most frames go at once.
        let at_once = unsent.is_empty() && !frame.is_empty();
        let begun = if at_once { connection.transport.send(frame) } else { Ok(0) };
        match begun {
            Ok(count) if at_once && count == frame.len() => Ok(()),
            begun => self.send_locked(connection, unsent, (frame, begun), deadline, reads),
        }
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
            connection.has_unsent.store(false, Ordering::Relaxed);
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
                0 if clock::now() >= deadline.at(self.options.timeout) => return Err(io::ErrorKind::TimedOut.into()),
                0 => {
                    // The server may wait for us to take replies before it takes more calls. Only the one who reads takes
                    // them: another one would wait for what was taken.
                    let reader = if reads { None } else { self.calls().read_begin_of(connection) };
                    let reading = reader.map(|connection| Reading::new(self, connection));
                    let mut take = |message: &[u8]| self.deliver(message);
                    let take: Option<&mut Take<'_>> = if reads || reading.is_some() { Some(&mut take) } else { None };
                    connection.transport.wait_sendable(deadline.at(self.options.timeout), take)?;
                }
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }
}

/// A call that is put together where the transport sends it from, if that has such a place. From its first byte there on,
/// nobody else sends.
struct InPlace<'a> {
    connection: &'a Connection,
    /// Since the first byte.
    open: Option<(MutexGuard<'a, Vec<u8>>, Space<'a>)>,
}

impl InPlace<'_> {
    /// Sends what is here and the end of the frame. `false`: the end does not fit, and `end` is all of the frame now.
    fn finish(&mut self, end: &mut Vec<u8>) -> io::Result<bool> {
        match &mut self.open {
            Some((_, space)) => space.finish(end),
            None => Ok(false),
        }
    }
}

impl Place for InPlace<'_> {
    fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        if self.open.is_none() {
            // Batched calls that wait go first, and so does whoever sends.
            let alone = self.connection.unsent.try_lock().ok().filter(|unsent| unsent.is_empty());
            self.open = alone.zip(self.connection.transport.space());
        }
        self.open.as_mut().is_some_and(|(_, space)| space.put(parts))
    }

    fn take_back(&mut self, into: &mut Vec<u8>) -> bool {
        self.open.as_mut().is_some_and(|(_, space)| space.take_back(into))
    }
}
