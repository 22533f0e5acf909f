//! The side that calls.
//!
//! There is no thread behind a client. A caller sends its call and waits; of those that wait, one at a time reads from
//! the transport and hands out the replies, and when it has its own it leaves the reading to another. So a lone caller
//! sleeps and wakes in its own thread, and many share one connection.

mod calls;
mod pending;

pub use pending::Pending;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_wire::oncrpc::{self, Auth, Xid, call, reply};

use self::calls::{Calls, State};
use crate::record::{self, ROOM};
use crate::transport::{self, Transport};
use crate::xdr::{self, Reader, Writer};
use crate::{Address, Credential, Error, MAX_MESSAGE};

/// Makes calls. Clones share one connection, and any number of threads may use it.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

/// Which procedure is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Procedure {
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The number of the procedure.
    pub procedure: u32,
}

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long a call may take, with everything it takes: connecting, sending again, waiting.
    pub timeout: Duration,
    /// Whether calls that are outstanding when a connection ends are sent again over the next one. Only servers that
    /// remember what they have executed, as [`crate::Server`] does, then execute each call once.
    pub resend: bool,
    /// After how long a call is sent again over UDP for the first time; the time doubles.
    pub first_resend: Duration,
    /// What calls say about the user.
    pub credential: Credential,
    /// The greatest length of a message.
    pub max_message: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            timeout: Duration::from_secs(25), // As rpcgen's clients have it.
            resend: false,
            first_resend: Duration::from_millis(500),
            credential: Credential::none(),
            max_message: MAX_MESSAGE,
        }
    }
}

struct Inner {
    address: Address,
    options: ClientOptions,
    /// The same over every connection, and nobody else's.
    identity: u64,
    connection: Mutex<Current>,
    /// Whoever makes a connection holds it; nobody waits for it with another lock held.
    connecting: Mutex<()>,
    calls: Mutex<Calls>,
}

/// The connection in use, if there is one.
struct Current {
    connection: Option<Arc<Connection>>,
    /// How many there were.
    count: u64,
}

struct Connection {
    number: u64,
    transport: Box<dyn Transport>,
    /// Calls without replies that wait to be sent with the next call. Whoever sends holds the lock.
    unsent: Mutex<Vec<u8>>,
}

/// How many bytes of batched calls may wait for the next call.
const BATCH: usize = 8 << 10;

/// The times between two attempts to connect, for calls that are sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Client {
    /// Connects to an address, for example `tcp:127.0.0.1:2049`, `udp:[::1]:2049`, `unix:/run/rpcbind.sock` or, on the
    /// fabric of this host, `shm:store`.
    pub fn connect(address: &str) -> Result<Client, Error> {
        Self::connect_with(&address.parse()?, ClientOptions::default())
    }

    /// Connects with options.
    pub fn connect_with(address: &Address, options: ClientOptions) -> Result<Client, Error> {
        let inner = Inner {
            address: address.clone(),
            options,
            identity: RandomState::new().hash_one(std::process::id()),
            connection: Mutex::new(Current { connection: None, count: 0 }),
            connecting: Mutex::new(()),
            calls: Mutex::new(Calls::new()),
        };
        inner.connection()?;
        Ok(Client { inner: Arc::new(inner) })
    }

    /// Sends a call. Its reply is had from what is returned; if that is dropped, nobody waits for it.
    pub fn begin<T>(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Result<Pending<T>, Error> {
        let inner = &self.inner;
        let deadline = Instant::now() + inner.options.timeout;
        let (slot, xid, mut frame) = inner.calls().begin();
        let pending = Pending::new(self.clone(), slot, deadline, decode);
        inner.frame(&mut frame, xid, procedure, encode)?;
        let sent = inner.send_call(slot, &frame, deadline);
        inner.calls().keep_frame(slot, frame);
        sent.map(|()| pending)
    }

    /// Makes a call and waits for its reply.
    pub fn call<T>(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Result<T, Error> {
        self.begin(procedure, encode, decode)?.wait()
    }

    /// Sends a call that the server does not reply to. It may wait for the next call, or for [`Client::flush`].
    pub fn batch(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
    ) -> Result<(), Error> {
        let inner = &self.inner;
        let deadline = Instant::now() + inner.options.timeout;
        let (slot, xid, mut frame) = inner.calls().begin();
        let framed = inner.frame(&mut frame, xid, procedure, encode);
        let sent = framed.and_then(|()| inner.send_batched(&frame, deadline));
        let mut calls = inner.calls();
        calls.keep_frame(slot, frame);
        calls.end(slot);
        sent
    }

    /// Sends the batched calls that wait.
    pub fn flush(&self) -> Result<(), Error> {
        let inner = &self.inner;
        let connection = inner.connection()?;
        inner.send(&connection, &[], Instant::now() + inner.options.timeout)
    }

    /// Where the calls go.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.inner.address
    }

    /// Ends the connection, as if it were lost; the next call makes another one.
    pub fn disconnect(&self) {
        let current = self.inner.current().connection.clone();
        if let Some(connection) = current {
            self.inner.lost(&connection);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.inner.address).finish_non_exhaustive()
    }
}

impl Inner {
    fn frame(
        &self,
        frame: &mut Vec<u8>,
        xid: Xid,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
    ) -> Result<(), Error> {
        let Procedure { program, version, procedure } = procedure;
        let credential = self.options.credential.auth();
        let header = call::Repr { xid, program, version, procedure, credential, verifier: Auth::NONE };
        frame.clear();
        frame.extend([0; ROOM]);
        let limit = match self.address {
            Address::Udp(_) => transport::MAX_DATAGRAM.min(self.options.max_message),
            _ => self.options.max_message,
        };
        let mut out = Writer::new(frame, ROOM + limit);
        header.emit(&mut out).and_then(|()| encode(&mut out)).map_err(Error::Arguments)?;
        record::mark(frame);
        Ok(())
    }

    /// Sends a call over the connection there is, or a new one.
    fn send_call(&self, slot: usize, frame: &[u8], deadline: Instant) -> Result<(), Error> {
        let mut pause = FIRST_PAUSE;
        loop {
            let sent = self.connection().and_then(|connection| {
                self.calls().sent_over(slot, connection.number, Instant::now() + self.options.first_resend);
                self.send(&connection, frame, deadline)
            });
            match sent {
                Err(Error::Disconnected { .. } | Error::Setup { .. })
                    if self.options.resend && Instant::now() + pause < deadline =>
                {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    fn send_batched(&self, frame: &[u8], deadline: Instant) -> Result<(), Error> {
        let connection = self.connection()?;
        let mut unsent = lock(&connection.unsent);
        let full = unsent.len() + frame.len() > BATCH;
        if full || connection.transport.lossy() {
            drop(unsent);
            return self.send(&connection, frame, deadline);
        }
        unsent.extend_from_slice(frame);
        Ok(())
    }

    /// Sends what waits, then a frame.
    fn send(&self, connection: &Arc<Connection>, frame: &[u8], deadline: Instant) -> Result<(), Error> {
        let mut unsent = lock(&connection.unsent);
        let sent = if unsent.is_empty() {
            self.send_bytes(connection, frame, deadline)
        } else {
            unsent.extend_from_slice(frame);
            let sent = self.send_bytes(connection, &unsent, deadline);
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

    fn send_bytes(&self, connection: &Connection, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match connection.transport.send(bytes)? {
                0 if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
                0 => {
                    // The server may wait for us to take replies before it takes more calls.
                    connection.transport.wait_sendable(deadline, &mut |message| self.deliver(message))?;
                }
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// The connection in use, made if there is none.
    fn connection(&self) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = &self.current().connection {
            return Ok(connection.clone());
        }
        let _alone = lock(&self.connecting);
        if let Some(connection) = &self.current().connection {
            return Ok(connection.clone());
        }
        let transport =
            transport::connect(&self.address, self.identity, self.options.max_message, self.options.timeout)?;
        let mut current = self.current();
        current.count += 1;
        let connection = Arc::new(Connection { number: current.count, transport, unsent: Mutex::default() });
        current.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Gives up a connection. Whoever has a call outstanding over it is told.
    fn lost(&self, connection: &Arc<Connection>) {
        let mut current = self.current();
        if current.connection.as_ref().is_some_and(|current| current.number == connection.number) {
            current.connection = None;
        }
        drop(current);
        connection.transport.close();
        self.calls().lost(connection.number);
    }

    /// Gives a reply to its call. Others are replies to calls that nobody waits for any more.
    fn deliver(&self, message: &[u8]) {
        if let Ok((xid, false)) = oncrpc::peek(message) {
            self.calls().deliver(xid, message);
        }
    }

    /// Waits for the reply of a call, and gives its bytes.
    fn wait(&self, slot: usize, deadline: Instant) -> Result<Vec<u8>, Error> {
        let mut calls = self.calls();
        let outcome = loop {
            let now = Instant::now();
            match calls.state(slot) {
                State::Replied => break Ok(calls.take_reply(slot)),
                State::Lost if !self.options.resend => break Err(self.disconnected()),
                State::Lost => {
                    let (locked, sent) = self.resend(calls, slot, deadline);
                    calls = locked;
                    match sent {
                        Ok(()) => continue,
                        Err(error) => break Err(error),
                    }
                }
                State::Free | State::Waiting => {}
            }
            if now >= deadline {
                let after = self.options.timeout;
                break Err(Error::TimedOut { address: self.address.to_string(), after });
            }
            let mut until = deadline;
            let current = self.current().connection.clone();
            let Some(connection) = current else {
                // It was lost before the call knew of it.
                let number = calls.connection_of(slot);
                calls.lost(number);
                continue;
            };
            if connection.number != calls.connection_of(slot) {
                let number = calls.connection_of(slot);
                calls.lost(number);
                continue;
            }
            if connection.transport.lossy() {
                let (resend_at, pause) = calls.resend_at(slot);
                if now >= resend_at {
                    calls.set_resend(slot, now + pause * 2, pause * 2);
                    let frame = calls.take_frame(slot);
                    drop(calls);
                    let sent = self.send(&connection, &frame, deadline);
                    calls = self.calls();
                    calls.keep_frame(slot, frame);
                    if let Err(error) = sent {
                        break Err(error);
                    }
                    continue;
                }
                until = until.min(resend_at);
            }
            if calls.read_begin() {
                drop(calls);
                let received = connection.transport.receive(until, &mut |message| self.deliver(message));
                if received.is_err() {
                    self.lost(&connection);
                }
                calls = self.calls();
                calls.read_end();
            } else {
                calls = Calls::park(calls, slot, until - now);
            }
        };
        calls.hand_over();
        outcome
    }

    fn resend<'a>(
        &'a self,
        mut calls: MutexGuard<'a, Calls>,
        slot: usize,
        deadline: Instant,
    ) -> (MutexGuard<'a, Calls>, Result<(), Error>) {
        let frame = calls.take_frame(slot);
        calls.wait_again(slot);
        drop(calls);
        let sent = self.send_call(slot, &frame, deadline);
        let mut calls = self.calls();
        calls.keep_frame(slot, frame);
        (calls, sent)
    }

    fn disconnected(&self) -> Error {
        Error::Disconnected { address: self.address.to_string() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        lock(&self.connection)
    }
}

/// What a reply says, and the results behind it.
fn results(message: &[u8]) -> Result<&[u8], Error> {
    let (header, results) = reply::Repr::parse(message).map_err(Error::Reply)?;
    match header.body {
        reply::Body::Accepted { state: reply::Accepted::Success, .. } => Ok(results),
        reply::Body::Accepted { state, .. } => Err(Error::Refused(state)),
        reply::Body::Denied(denied) => Err(Error::Denied(denied)),
    }
}

/// No code of this crate panics with a lock held; code of the program does not run under one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
