//! The side that calls.
//!
//! There is no thread behind a client. A caller sends its call and waits; of those that wait, one at a time reads from
//! the transport and hands out the replies, and when it has its own it leaves the reading to another. So a lone caller
//! sleeps and wakes in its own thread, and many share one connection.

mod calls;
mod frame;
mod pending;
mod route;
mod sending;
mod waiting;

pub use pending::Pending;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sidestep_sys::lock::{Guard, Lock};
use sidestep_wire::oncrpc::{self, Xid};

use self::calls::Calls;
use self::frame::Frame;
use crate::rdma::{INLINE, inline_size};
use crate::transport::{self, MAX_DATAGRAM, Transport, Wishes, after};
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

/// Appends the arguments of a call, once. What calls have in common is compiled once for all kinds of arguments and results.
type Encode<'a> = dyn FnMut(&mut Writer<'_>) -> Result<(), xdr::Error> + 'a;

/// Takes the results of a call, once.
type Decode<'a> = dyn FnMut(&mut Reader<'_>) -> Result<(), xdr::Error> + 'a;

struct Inner {
    address: Address,
    options: ClientOptions,
    /// The same over every connection, and nobody else's.
    identity: u64,
    /// The greatest length of a call.
    max_call: usize,
    /// Whoever makes a connection holds it; nobody waits for it with another lock held.
    connecting: Mutex<()>,
    calls: Lock<Calls>,
}

struct Connection {
    number: u64,
    transport: Box<dyn Transport>,
    /// Calls without replies that wait to be sent with the next call. Whoever sends holds the lock.
    unsent: Mutex<Vec<u8>>,
    /// There are such calls, or were a moment ago.
    has_unsent: AtomicBool,
    /// What the transport says.
    lossy: bool,
}

/// A call. It is ended by [`Inner::finish`], and its memory used for another one.
struct Outstanding {
    /// Where the calls have it; nowhere while its caller is the one who reads.
    slot: Option<usize>,
    xid: Xid,
    deadline: Deadline,
    /// What is sent again if need be; a part of it may have been put together elsewhere where that cannot be.
    frame: Frame,
    /// When it is sent again, and how long that was to wait for, where messages can get lost.
    resend: Option<(u64, Duration)>,
}

impl Outstanding {
    fn new() -> Self {
        Self { slot: None, xid: Xid(0), deadline: Deadline::default(), frame: Frame::default(), resend: None }
    }

    #[inline]
    fn begin(&mut self, xid: Xid) {
        (self.xid, self.deadline, self.resend) = (xid, Deadline::default(), None);
    }
}

/// When a call must have ended. The time runs from the first look at it: a call that is sent at once looks at no clock before
/// its server has work.
#[derive(Default)]
struct Deadline(Option<u64>);

impl Deadline {
    #[inline]
    fn at(&mut self, timeout: Duration) -> u64 {
        *self.0.get_or_insert_with(|| after(timeout))
    }
}

impl Client {
    /// Connects to an address, for example `tcp:127.0.0.1:2049`, `udp:[::1]:2049`, `unix:/run/rpcbind.sock` or, on the
    /// fabric of this host, `shm:store`.
    pub fn connect(address: &str) -> Result<Client, Error> {
        Self::connect_with(&address.parse()?, ClientOptions::default())
    }

    /// Connects with options.
    pub fn connect_with(address: &Address, options: ClientOptions) -> Result<Client, Error> {
        let max_call = match address {
            Address::Udp(_) => MAX_DATAGRAM.min(options.max_message),
            _ => options.max_message,
        };
        let inner = Inner {
            address: address.clone(),
            options,
            max_call,
            identity: RandomState::new().hash_one(std::process::id()),
            connecting: Mutex::new(()),
            calls: Lock::new(Calls::new()),
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
        let mut encode = Some(encode);
        let call = self.inner.send_new(procedure, &mut |out| encode.take().map_or(Ok(()), |encode| encode(out)))?;
        Ok(Pending::new(self.clone(), call, decode))
    }

    /// Makes a call and waits for its reply.
    pub fn call<T>(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>,
        decode: fn(&mut Reader<'_>) -> Result<T, xdr::Error>,
    ) -> Result<T, Error> {
        let (mut encode, mut value) = (Some(encode), None);
        let encode = &mut |out: &mut Writer<'_>| encode.take().map_or(Ok(()), |encode| encode(out));
        self.inner.call(procedure, encode, &mut |results| decode(results).map(|results| value = Some(results)))?;
        value.ok_or_else(|| self.inner.disconnected())
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
        let mut call = inner.calls().begin_listed();
        let mut encode = Some(encode);
        let encode = &mut |out: &mut Writer<'_>| encode.take().map_or(Ok(()), |encode| encode(out));
        let framed = inner.frame(&mut call, None, procedure, encode);
        let sent = framed.and_then(|_| inner.send_batched(&call.frame));
        inner.calls().end(call);
        sent
    }

    /// Sends the batched calls that wait.
    pub fn flush(&self) -> Result<(), Error> {
        let connection = self.inner.connection()?;
        self.inner.send(&connection, &[], &mut Deadline::default())
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

    #[inline]
    fn calls(&self) -> Guard<'_, Calls> {
        self.calls.lock()
    }
}

/// No code of this crate panics with a lock held. Code of the program runs under one only where it decodes a reply, which
/// leaves what the lock protects as it was.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
