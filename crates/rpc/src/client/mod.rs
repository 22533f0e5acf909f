//! The side that calls.
//!
//! There is no thread behind a client. A caller sends its call and waits; of those that wait, one at a time reads from
//! the transport and hands out the replies, and when it has its own it leaves the reading to another. So a lone caller
//! sleeps and wakes in its own thread, and many share one connection.

mod calls;
mod pending;
mod waiting;

pub use pending::Pending;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_wire::oncrpc::{self, Auth, Xid, call};

use self::calls::Calls;
use self::waiting::Reading;
use crate::rdma::{INLINE, inline_size};
use crate::record::{self, ROOM};
use crate::transport::{self, Take, Transport, Wishes};
use crate::xdr::{self, Reader, Writer};
use crate::{Address, Binding, Credential, Error, MAX_MESSAGE};

/// Makes calls. Clones share one connection, and any number of threads may use it.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

/// Which procedure is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
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
    /// Over RDMA: the greatest length of a reply that does not fit inline. The memory for it is offered with every call; zero
    /// offers none.
    pub reply_chunk: usize,
    /// Over RDMA: the longest message that is sent and taken inline, if the server agrees; whole KiB, 1 to 256 of them.
    pub inline: usize,
    /// Over RDMA: which data travel in chunks of their own.
    pub binding: Binding,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            timeout: Duration::from_secs(25), // As rpcgen's clients have it.
            resend: false,
            first_resend: Duration::from_millis(500),
            credential: Credential::none(),
            max_message: MAX_MESSAGE,
            reply_chunk: 68 << 10, // 64 KiB of data, and what is around them.
            inline: INLINE,
            binding: Binding::NONE,
        }
    }
}

struct Inner {
    address: Address,
    options: ClientOptions,
    /// The same over every connection, and nobody else's.
    identity: u64,
    /// Whoever makes a connection holds it; nobody waits for it with another lock held.
    connecting: Mutex<()>,
    calls: Mutex<Calls>,
}

struct Connection {
    number: u64,
    transport: Box<dyn Transport>,
    /// Calls without replies that wait to be sent with the next call. Whoever sends holds the lock.
    unsent: Mutex<Vec<u8>>,
}

/// A call that was sent. It is ended by [`Inner::finish`].
struct Outstanding {
    slot: usize,
    xid: Xid,
    deadline: Instant,
    /// The connection over which it was sent last.
    connection: Option<Arc<Connection>>,
    frame: Vec<u8>,
    /// When it is sent again, and how long that was to wait for, where messages can get lost.
    resend: Option<(Instant, Duration)>,
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
        let (call, _) = self.inner.begin(procedure, encode, false)?;
        Ok(Pending::new(self.clone(), call, decode))
    }

    /// Makes a call and waits for its reply.
    pub fn call<T>(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Result<T, Error> {
        let (call, reading) = self.inner.begin(procedure, encode, true)?;
        self.inner.wait(call, reading, decode)
    }

    /// Sends a call that the server does not reply to. Over RDMA there are none: replies carry the credits. It may wait for the next call, or for [`Client::flush`].
    pub fn batch(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
    ) -> Result<(), Error> {
        let inner = &self.inner;
        if let Address::Rdma(_) = inner.address {
            return Err(Error::Unsupported("batched calls over RDMA"));
        }
        let deadline = Instant::now() + inner.options.timeout;
        let (slot, xid, mut frame) = inner.calls().begin();
        let framed = inner.frame(&mut frame, xid, procedure, encode);
        let sent = framed.and_then(|()| inner.send_batched(&frame, deadline));
        inner.calls().end(slot, frame);
        sent
    }

    /// Sends the batched calls that wait.
    pub fn flush(&self) -> Result<(), Error> {
        let inner = &self.inner;
        let connection = inner.connection()?;
        inner.send(&connection, &[], Instant::now() + inner.options.timeout, &mut None)
    }

    /// Where the calls go.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.inner.address
    }

    /// Ends the connection, as if it were lost; the next call makes another one.
    pub fn disconnect(&self) {
        let current = self.inner.calls().connection.clone();
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
    /// Sends a call. A caller that `waits` for the reply at once is the one who reads, if nobody else does.
    fn begin(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
        waits: bool,
    ) -> Result<(Outstanding, Option<Reading<'_>>), Error> {
        let deadline = Instant::now() + self.options.timeout;
        let mut calls = self.calls();
        let (slot, xid, frame) = calls.begin();
        let connection = calls.connection.clone();
        let mut reading = (waits && calls.read_begin()).then(|| Reading(self));
        drop(calls);
        let mut call = Outstanding { slot, xid, deadline, connection, frame, resend: None };
        let sent = self.frame(&mut call.frame, xid, procedure, encode).and_then(|()| {
            if call.connection.is_none() {
                call.connection = Some(self.connect_for(slot)?);
            }
            self.send_first(&mut call, &mut reading)
        });
        match sent.or_else(|error| self.send_again(&mut call, error, FIRST_PAUSE)) {
            Ok(()) => Ok((call, reading)),
            Err(error) => {
                self.finish(self.calls(), call);
                Err(error)
            }
        }
    }

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

    /// Sends a call over the connection that it knows. Whoever loses that connection sees the call already.
    fn send_first(&self, call: &mut Outstanding, reading: &mut Option<Reading<'_>>) -> Result<(), Error> {
        let Some(connection) = &call.connection else {
            return Err(self.disconnected());
        };
        let pause = self.options.first_resend;
        call.resend = connection.transport.lossy().then(|| (Instant::now() + pause, pause));
        self.send(connection, &call.frame, call.deadline, reading)
    }

    /// Sends a call over a new connection after a pause, if that is wanted after such an error, until its time is over.
    fn send_again(&self, call: &mut Outstanding, mut error: Error, mut pause: Duration) -> Result<(), Error> {
        loop {
            let may_help = matches!(error, Error::Disconnected { .. } | Error::Setup { .. });
            if !may_help || !self.options.resend || Instant::now() + pause >= call.deadline {
                return Err(error);
            }
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            let sent = self.connect_for(call.slot).and_then(|connection| {
                call.connection = Some(connection);
                self.send_first(call, &mut None)
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

    fn send_batched(&self, frame: &[u8], deadline: Instant) -> Result<(), Error> {
        let connection = self.connection()?;
        let mut unsent = lock(&connection.unsent);
        let full = unsent.len() + frame.len() > BATCH;
        if full || connection.transport.lossy() {
            drop(unsent);
            return self.send(&connection, frame, deadline, &mut None);
        }
        unsent.extend_from_slice(frame);
        Ok(())
    }

    /// Sends what waits, then a frame. The one who reads gives that up if somebody else sends, who may wait for what is read.
    fn send(
        &self,
        connection: &Connection,
        frame: &[u8],
        deadline: Instant,
        reading: &mut Option<Reading<'_>>,
    ) -> Result<(), Error> {
        let mut unsent = connection.unsent.try_lock().unwrap_or_else(|_| {
            *reading = None;
            lock(&connection.unsent)
        });
        let reads = reading.is_some();
        let sent = if unsent.is_empty() {
            self.send_bytes(connection, frame, deadline, reads)
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

    fn send_bytes(&self, connection: &Connection, mut bytes: &[u8], deadline: Instant, reads: bool) -> io::Result<()> {
        while !bytes.is_empty() {
            match connection.transport.send(bytes)? {
                0 if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
                0 => {
                    // The server may wait for us to take replies before it takes more calls. Only the one who reads takes
                    // them: another one would wait for what was taken.
                    let reading = (!reads && self.calls().read_begin()).then(|| Reading(self));
                    let mut take = |message: &[u8]| self.deliver(message);
                    let take: Option<&mut Take<'_>> = if reads || reading.is_some() { Some(&mut take) } else { None };
                    connection.transport.wait_sendable(deadline, take)?;
                }
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// The connection in use, made if there is none.
    fn connection(&self) -> Result<Arc<Connection>, Error> {
        let current = self.calls().connection.clone();
        if let Some(connection) = current {
            return Ok(connection);
        }
        let _alone = lock(&self.connecting);
        let current = self.calls().connection.clone();
        if let Some(connection) = current {
            return Ok(connection);
        }
        let ClientOptions { max_message, timeout, reply_chunk, inline, binding, .. } = self.options;
        let inline = inline_size(inline);
        let wishes = Wishes { max_message, timeout, reply_chunk, inline, binding };
        let transport = transport::connect(&self.address, self.identity, wishes)?;
        Ok(self.calls().connected(transport))
    }

    /// Gives up a connection. Whoever has a call outstanding over it is told.
    fn lost(&self, connection: &Connection) {
        self.calls().lost(connection.number);
        connection.transport.close();
    }

    /// Gives a reply to its call. Others are replies to calls that nobody waits for any more.
    fn deliver(&self, message: &[u8]) {
        if let Ok((xid, false)) = oncrpc::peek(message) {
            self.calls().deliver(xid, message);
        }
    }

    fn disconnected(&self) -> Error {
        Error::Disconnected { address: self.address.to_string() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }
}

/// No code of this crate panics with a lock held. Code of the program runs under one only where it decodes a reply, which
/// leaves what the lock protects as it was.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
