//! Headers with chunks by chance, sent by clients that have registered memory, and by servers that may write to what was offered.

use std::net::TcpListener;
use std::thread::JoinHandle;

use proptest::prelude::*;
use sidestep_iwarp::Rights;
use sidestep_wire::oncrpc::{Auth, call};

use super::*;
use crate::xdr::{Reader, UNBOUNDED};
use crate::{Binding, Call, Client, ClientOptions, Error, Procedure, Refusal, Service};

/// Gives back the bytes that it takes.
struct Echo;

const ECHO: Procedure = Procedure { program: 7, version: 1, procedure: 1 };

/// The bytes of `ECHO` begin behind their length.
const BINDING: Binding =
    Binding { argument: |_, _| Some(4), result: |_, _| Some(4), result_limit: |_, _| Some(MEMORY as u32) };

impl Service for Echo {
    fn program(&self) -> u32 {
        ECHO.program
    }

    fn version(&self) -> u32 {
        ECHO.version
    }

    fn call(&self, _: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let bytes = input.opaque(UNBOUNDED)?;
        input.finish()?;
        out.opaque(bytes, UNBOUNDED).map_err(Refusal::of_results)
    }
}

/// What a client registers, and what is offered to a server.
const MEMORY: usize = 600;

/// A chunk, in terms of memory that there is: how much of its length each segment has, in 16ths, and whether its handle is right.
#[derive(Debug, Clone)]
struct Chunk(Vec<(u8, bool)>);

impl Chunk {
    fn segments(&self, memory: Segment) -> Vec<Segment> {
        let mut offset = 0;
        let segment = |(share, is_known): &(u8, bool)| {
            let length = memory.length / 16 * u32::from(*share);
            let segment = Segment { handle: memory.handle ^ u32::from(!is_known), length, offset };
            offset += u64::from(length);
            segment
        };
        self.0.iter().map(segment).collect()
    }
}

fn chunk() -> impl Strategy<Value = Chunk> {
    prop::collection::vec((0u8..18, prop::bool::weighted(0.95)), 0..4).prop_map(Chunk)
}

/// The bytes of a call of `ECHO`, or of its reply, with so many bytes of data, of which some are missing at the end.
fn message(is_call: bool, xid: Xid, length: usize, cut: usize) -> Vec<u8> {
    let mut message = Vec::new();
    let mut out = Writer::new(&mut message, 1 << 20);
    let (credential, verifier) = (Auth::NONE, Auth::NONE);
    let Procedure { program, version, procedure } = ECHO;
    if is_call {
        call::Repr { xid, program, version, procedure, credential, verifier }.emit(&mut out).unwrap();
    } else {
        out.fixed(&sidestep_wire::oncrpc::reply::success_header(xid)).unwrap();
    }
    out.opaque(&vec![7; length], UNBOUNDED).unwrap();
    message.truncate(message.len() - cut.min(message.len()));
    message
}

#[derive(Debug, Clone)]
struct Said {
    is_inline: bool,
    credits: u32,
    position: Option<u32>,
    read: Chunk,
    write: Vec<Chunk>,
    reply: Option<Chunk>,
    length: usize,
    cut: usize,
}

prop_compose! {
    fn said()(
        is_inline in prop::bool::weighted(0.7),
        credits in prop_oneof![Just(32u32), 0u32..3, any::<u32>()],
        position in prop::option::of(prop_oneof![Just(0u32), Just(44), Just(28), 0u32..200]),
        read in chunk(),
        write in prop::collection::vec(chunk(), 0..3),
        reply in prop::option::of(chunk()),
        length in prop_oneof![Just(0usize), 1usize..100, Just(4096)],
        cut in prop_oneof![3 => Just(0usize), 1 => 0usize..200],
    ) -> Said {
        Said { is_inline, credits, position, read, write, reply, length, cut }
    }
}

impl Said {
    /// The words of a message that says this of memory for each of the three kinds of chunks.
    fn bytes(&self, is_call: bool, xid: Xid, [read, write, reply]: [Segment; 3]) -> Vec<u8> {
        let position = self.position.unwrap_or(0);
        let read: Vec<_> =
            self.read.segments(read).into_iter().map(|target| ReadSegment { position, target }).collect();
        let write: Vec<_> = self.write.iter().map(|chunk| chunk.segments(write)).collect();
        let write: Vec<&[Segment]> = write.iter().map(Vec::as_slice).collect();
        let reply = self.reply.as_ref().map(|chunk| chunk.segments(reply));
        let header = Repr {
            xid,
            credits: self.credits,
            kind: if self.is_inline { Kind::Msg } else { Kind::NoMsg },
            read: if self.position.is_some() { &read } else { &[] },
            write: &write,
            reply: reply.as_deref(),
        };
        let mut bytes = Vec::new();
        header.emit(&mut Writer::new(&mut bytes, usize::MAX)).unwrap();
        if self.is_inline {
            bytes.extend(message(is_call, xid, self.length, self.cut));
        }
        bytes.truncate(INLINE);
        bytes
    }
}

impl Stranger {
    /// Sends bytes, then a null call of a program that is not here: whether that is replied to.
    fn is_heard_after(&mut self, bytes: Vec<u8>) -> bool {
        self.line.send(bytes).unwrap();
        let last = Xid(u32::MAX);
        let call = [&words(&Repr::inline(last, 1))[..], &[last.0, 0, 2, 99, 1, 0, 0, 0, 0, 0]].concat();
        let mut answer = self.say(&call);
        while let Some(bytes) = &answer {
            if Header::new_checked(bytes).unwrap().xid == last {
                return true;
            }
            answer = self.hear();
        }
        false
    }
}

/// Answers every call with what is said, then in a way that ends it.
fn answer(listener: TcpListener, said: Vec<Said>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        let connection = Connection::respond(config(PATIENCE, &socket), Duration::ZERO);
        let mut stranger =
            Stranger { line: Line::new(socket, connection, INLINE).unwrap(), bell: EventFd::new().unwrap() };
        let mut said = said.iter().cycle();
        loop {
            let end = stranger.line.advance();
            match stranger.line.poll_event() {
                Some(Event::Requested { .. }) => {
                    stranger.line.connection().accept(&private_data(INLINE)).unwrap();
                    continue;
                }
                Some(Event::Established { .. }) | None => {}
                Some(_) => return,
            }
            match stranger.line.poll_received() {
                Ok(Some(Received::Message(message))) => {
                    let header = Header::new_checked(&message).unwrap();
                    let nowhere = Segment { handle: 1, length: 100, offset: 0 };
                    let of = |offered: Option<Segment>| offered.unwrap_or(nowhere);
                    let write = of(header.write_chunks().next().and_then(|chunk| chunk.iter().next()));
                    let reply = of(header.reply_chunk().and_then(|chunk| chunk.iter().next()));
                    let strange = said.next().unwrap().bytes(false, header.xid, [nowhere, write, reply]);
                    let last = Repr { kind: Kind::ChunkError, ..Repr::inline(header.xid, 32) };
                    let last = words(&last).iter().flat_map(|word| word.to_be_bytes()).collect();
                    if stranger.line.send(strange).is_err() || stranger.line.send(last).is_err() {
                        return;
                    }
                }
                Ok(Some(Received::Done(_))) => {}
                Ok(None) if end.is_ok() => stranger.wait(),
                _ => return,
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a client says, the server answers it or ends this connection, and serves others.
    #[test]
    fn servers_survive_strange_clients(said in prop::collection::vec(said(), 1..6)) {
        let server = Server::builder().service(Echo).binding(BINDING).rdma("127.0.0.1:0").unwrap().start().unwrap();
        let mut stranger = Stranger::connect(&server);
        for (number, said) in said.iter().enumerate() {
            let xid = Xid(number as u32);
            let rights = [Rights::READ, Rights::WRITE, Rights::WRITE];
            // A chunk at position zero is the call.
            let content = message(true, xid, 200, said.cut);
            let memory = rights.map(|rights| {
                let mut bytes = content.clone();
                bytes.resize(MEMORY, 0);
                let stag = stranger.line.register(bytes, rights).unwrap();
                stranger.line.segment(stag)
            });
            if !stranger.is_heard_after(said.bytes(true, xid, memory)) {
                break;
            }
        }
        let client = Client::connect(&format!("rdma:{}", server.addresses().next().unwrap())).unwrap();
        let echo = client.call(ECHO, |out| out.opaque(b"hello", 9), |input| Ok(input.opaque(9)?.to_vec()));
        prop_assert_eq!(echo.unwrap(), b"hello");
    }

    /// Whatever a server says, a call ends, and the reply is taken only if it is one.
    #[test]
    fn clients_survive_strange_servers(said in prop::collection::vec(said(), 1..6)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("rdma:{}", listener.local_addr().unwrap()).parse().unwrap();
        let calls = said.len();
        let answering = answer(listener, said);
        let options =
            ClientOptions { timeout: PATIENCE, reply_chunk: MEMORY, binding: BINDING, ..ClientOptions::default() };
        let client = Client::connect_with(&address, options).unwrap();
        for _ in 0..calls {
            let result = client.call(ECHO, |out| out.opaque(b"hello", 9), |input| Ok(input.opaque(UNBOUNDED)?.len()));
            match result {
                Ok(length) => prop_assert!(length <= INLINE.max(MEMORY)),
                Err(Error::Refused(_) | Error::Denied(_) | Error::Reply(_)) => {}
                // There is nobody to connect to again.
                Err(Error::Disconnected { .. }) => break,
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
        drop(client);
        answering.join().unwrap();
    }
}
