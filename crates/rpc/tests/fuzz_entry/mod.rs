//! What a fuzzer calls: streams of records, and calls of services.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

#[path = "../every/mod.rs"]
mod every;
#[path = "../../src/record.rs"]
mod record;

use every::generated::{EveryV1Server, EveryV2Server};
use every::{Echo, PANIC};
use record::Assembler;
use sidestep_rpc::rpcbind::Entry;
use sidestep_rpc::xdr::{self, Reader, Writer, Xdr};
use sidestep_rpc::{Auth, Call, Directory, Peer, Refusal, Service, Xid};
use sidestep_wire::rpcbind::{self, Statistics, procedure};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub struct Target {
    pub name: &'static str,
    pub entry: fn(&[u8]),
}

/// Every target of this crate.
pub const TARGETS: [Target; 2] =
    [Target { name: "rpc_record", entry: record }, Target { name: "rpc_service", entry: service }];

/// The longest message of a stream: short, so that inputs reach it.
const MAX: usize = 64;

/// A stream, which is cut into pieces as long as the first byte says. However it is cut, and whichever way it is taken, its messages
/// are the same, and so is the record that is too long.
pub fn record(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else { return };
    let piece = usize::from(*first) + 1;
    let expected = messages_of(stream);
    let mut found = Vec::new();
    let mut assembler = Assembler::new(MAX);
    let is_too_long = stream.chunks(piece).any(|piece| {
        let whole = if assembler.is_between() { assembler.whole(piece) } else { None };
        match whole {
            Some(message) => found.push(message.to_vec()),
            None => return assembler.feed(piece, |message| found.push(message.to_vec())).is_err(),
        }
        false
    });
    assert_eq!((&found, is_too_long), (&expected.0, expected.1));

    let (mut found, mut is_too_long, mut rest) = (Vec::new(), false, stream);
    let mut assembler = Assembler::new(MAX);
    while !rest.is_empty() && !is_too_long {
        let count = match assembler.rest(piece) {
            Some(space) => {
                let count = space.len().min(rest.len());
                space[..count].copy_from_slice(&rest[..count]);
                assembler.filled(count, |message: &[u8]| found.push(message.to_vec()));
                count
            }
            None => {
                let count = piece.min(rest.len());
                is_too_long = assembler.feed(&rest[..count], |message| found.push(message.to_vec())).is_err();
                count
            }
        };
        rest = &rest[count..];
    }
    assert_eq!((found, is_too_long), expected);
}

/// The messages of a stream, and whether a record is too long behind them, by the letter of RFC 5531 §11.
fn messages_of(mut stream: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let (mut found, mut message) = (Vec::new(), Vec::new());
    while let Some((mark, rest)) = stream.split_first_chunk() {
        let mark = u32::from_be_bytes(*mark);
        let (is_last, length) = (mark >> 31 == 1, (mark & 0x7fff_ffff) as usize);
        if message.len() + length > MAX {
            return (found, true);
        }
        let Some((fragment, behind)) = rest.split_at_checked(length) else { break };
        message.extend_from_slice(fragment);
        stream = behind;
        if is_last {
            found.push(std::mem::take(&mut message));
        }
    }
    (found, false)
}

/// Calls of the service of every type, then of a directory: for each call the numbers of version and procedure, the length of its
/// arguments, and these. No call panics, and results are XDR.
pub fn service(data: &[u8]) {
    let (first, second) = (EveryV1Server(Echo::default()), EveryV2Server(Echo::default()));
    let directory = Directory::default();
    let directories = directory.services();
    let mut rest = data;
    while let [version, procedure, length, behind @ ..] = rest {
        let (arguments, next) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = next;
        let procedure = u32::from(*procedure);
        match version % 5 {
            0 => echo(&first, procedure, arguments),
            1 => drop(call(&second, procedure, arguments)),
            number => drop(call(&directories[usize::from(number) - 2], procedure, arguments)),
        }
    }
    let entries = call(&directories[2], procedure::DUMP, &[]).expect("a list");
    let entries = decoded(&entries, |input| input.list(rpcbind::MAX_ENTRIES, Entry::decode));
    let statistics = call(&directories[2], procedure::GET_STATISTICS, &[]).expect("statistics");
    let statistics: [Statistics; rpcbind::VERSIONS] = decoded(&statistics, |input| input.items(Reader::value));
    let registered: u32 = statistics.iter().map(|version| version.registered).sum();
    assert!(entries.len() <= registered as usize);
}

/// What is echoed is the argument, except for bytes that fill it up; and the echo of that is the same.
fn echo(service: &dyn Service, procedure: u32, arguments: &[u8]) {
    if procedure == 5 && Reader::new(arguments).string(xdr::UNBOUNDED) == Ok(PANIC) {
        return;
    }
    if let Ok(echoed) = call(service, procedure, arguments)
        && !matches!(procedure, 0 | 8 | 9)
    {
        assert_eq!(echoed.len(), arguments.len());
        assert_eq!(call(service, procedure, &echoed), Ok(echoed));
    }
}

fn call(service: &dyn Service, procedure: u32, arguments: &[u8]) -> Result<Vec<u8>, Refusal> {
    let (program, version) = (service.program(), service.version());
    let peer = &Peer::Unix { pid: 1, uid: 1000 };
    let call = Call { xid: Xid(1), program, version, procedure, credential: Auth::NONE, verifier: Auth::NONE, peer };
    let mut out = Vec::new();
    service.call(&call, &mut Reader::new(arguments), &mut Writer::new(&mut out, 1 << 20))?;
    Ok(out)
}

fn decoded<T>(bytes: &[u8], decode: impl FnOnce(&mut Reader<'_>) -> Result<T, xdr::Error>) -> T {
    let mut input = Reader::new(bytes);
    let value = decode(&mut input).expect("results are XDR");
    input.finish().expect("results are all there is");
    value
}
