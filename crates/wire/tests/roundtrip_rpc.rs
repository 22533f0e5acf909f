//! For every header of RPC and every value of rpcbind: what is emitted is parsed as the same value, and nothing panics on any bytes.

mod fuzz_entry;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sidestep_wire::oncrpc::reply::{Accepted, AuthError, Body, Denied};
use sidestep_wire::oncrpc::{Auth, AuthSys, Xid, call, record, reply};
use sidestep_wire::rpcbind::{Entry, Forwarded, Listing, Lookup, Mapping, Statistics};
use sidestep_wire::rpcrdma::header::{Header, Kind, Repr};
use sidestep_wire::rpcrdma::{ReadSegment, Segment, private};
use sidestep_wire::xdr::{Error, Quadruple, Reader, UNBOUNDED, Writer, Xdr};

const LIMIT: usize = 1 << 20;

fn emitted(emit: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>) -> Vec<u8> {
    let mut out = Vec::new();
    emit(&mut Writer::new(&mut out, LIMIT)).unwrap();
    assert_eq!(out.len() % 4, 0);
    out
}

/// The value comes back, takes all of its bytes, and fails without the last of them.
fn returns<T: Xdr + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = emitted(|out| value.encode(out));
    let mut input = Reader::new(&bytes);
    assert_eq!(input.value::<T>().as_ref(), Ok(value));
    assert_eq!(input.finish(), Ok(()));
    assert!(Reader::new(&bytes[..bytes.len() - 1]).value::<T>().is_err());
}

fn auth() -> impl Strategy<Value = (u32, Vec<u8>)> {
    (any::<u32>(), vec(any::<u8>(), 0..=400))
}

fn borrowed((flavor, body): &(u32, Vec<u8>)) -> Auth<'_> {
    Auth { flavor: *flavor, body }
}

fn outcome() -> impl Strategy<Value = Result<Accepted, Denied>> {
    let accepted = prop_oneof![
        Just(Accepted::Success),
        Just(Accepted::ProgramUnavailable),
        any::<(u32, u32)>().prop_map(|(low, high)| Accepted::ProgramMismatch { low, high }),
        Just(Accepted::ProcedureUnavailable),
        Just(Accepted::GarbageArguments),
        Just(Accepted::SystemError),
    ];
    let denied = prop_oneof![
        any::<(u32, u32)>().prop_map(|(low, high)| Denied::RpcMismatch { low, high }),
        any::<u32>().prop_map(|number| Denied::AuthError(AuthError::from_number(number))),
    ];
    prop_oneof![accepted.prop_map(Ok), denied.prop_map(Err)]
}

prop_compose! {
    fn segment()(handle: u32, length: u32, offset: u64) -> Segment {
        Segment { handle, length, offset }
    }
}

prop_compose! {
    fn read_segment()(position: u32, target in segment()) -> ReadSegment {
        ReadSegment { position, target }
    }
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..20).prop_map(String::from_iter)
}

prop_compose! {
    fn lookup()(program: u32, version: u32, found: u32, missed: u32, network in text()) -> Lookup {
        Lookup { program, version, found, missed, network }
    }
}

prop_compose! {
    fn forwarded()(
        (program, version, procedure) in any::<(u32, u32, u32)>(),
        (replied, failed, indirect) in any::<(u32, u32, u32)>(),
        network in text(),
    ) -> Forwarded {
        Forwarded { program, version, procedure, replied, failed, indirect, network }
    }
}

proptest! {
    #[test]
    fn calls(
        (xid, program, version, procedure) in any::<(u32, u32, u32, u32)>(),
        credential in auth(),
        verifier in auth(),
        arguments in vec(any::<u8>(), 0..100),
    ) {
        let (credential, verifier) = (borrowed(&credential), borrowed(&verifier));
        let repr = call::Repr { xid: Xid(xid), program, version, procedure, credential, verifier };
        let mut message = emitted(|out| repr.emit(out));
        prop_assert!(call::Repr::parse(&message[..message.len() - 1]).is_err());
        message.extend_from_slice(&arguments);
        prop_assert_eq!(call::Repr::parse(&message), Ok((repr, arguments.as_slice())));
    }

    #[test]
    fn replies(xid: u32, verifier in auth(), outcome in outcome(), results in vec(any::<u8>(), 0..100)) {
        let body = match outcome {
            Ok(state) => Body::Accepted { verifier: borrowed(&verifier), state },
            Err(denied) => Body::Denied(denied),
        };
        let repr = reply::Repr { xid: Xid(xid), body };
        let mut message = emitted(|out| repr.emit(out));
        message.extend_from_slice(&results);
        prop_assert_eq!(reply::Repr::parse(&message), Ok((repr, results.as_slice())));
    }

    #[test]
    fn credentials(
        stamp: u32,
        machine in vec(any::<u8>(), 0..=255),
        (uid, gid) in any::<(u32, u32)>(),
        groups in vec(any::<u32>(), 0..=16),
    ) {
        let repr = AuthSys::new(stamp, &machine, uid, gid, &groups);
        prop_assert_eq!(repr.groups(), &groups[..]);
        let body = emitted(|out| repr.emit(out));
        prop_assert_eq!(AuthSys::parse(&body), Ok(repr));
    }

    #[test]
    fn records(last: bool, length in 0usize..1 << 31) {
        let repr = record::Repr { last, length };
        let mut mark = [0; record::LEN];
        repr.emit(&mut mark);
        prop_assert_eq!(record::Header::new_checked(mark).and_then(|header| record::Repr::parse(&header)), Ok(repr));
    }

    #[test]
    fn headers_of_rpc_over_rdma(
        (xid, credits) in any::<(u32, u32)>(),
        is_inline: bool,
        read in vec(read_segment(), 0..5),
        write in vec(vec(segment(), 0..4), 0..4),
        reply in option::of(vec(segment(), 0..4)),
        rest in vec(any::<u8>(), 0..60),
    ) {
        let write: Vec<&[Segment]> = write.iter().map(Vec::as_slice).collect();
        let kind = if is_inline { Kind::Msg } else { Kind::NoMsg };
        let repr = Repr { xid: Xid(xid), credits, kind, read: &read, write: &write, reply: reply.as_deref() };
        let mut message = emitted(|out| repr.emit(out));
        message.extend_from_slice(&rest);
        let header = Header::new_checked(&message).unwrap();
        prop_assert_eq!((header.xid, header.credits, header.kind), (Xid(xid), credits, kind));
        prop_assert_eq!(header.rest(), &rest[..]);
        prop_assert!(header.read_segments().eq(read.iter().copied()));
        let chunks: Vec<Vec<Segment>> = header.write_chunks().map(|chunk| chunk.iter().collect()).collect();
        prop_assert_eq!(chunks, write.iter().map(|chunk| chunk.to_vec()).collect::<Vec<_>>());
        prop_assert_eq!(header.reply_chunk().map(|chunk| chunk.iter().collect::<Vec<_>>()), reply);
    }

    #[test]
    fn private_data_of_rpc_over_rdma(remote_invalidation: bool, send in 1usize..=256, receive in 1usize..=256) {
        let repr = private::Repr { remote_invalidation, send: send << 10, receive: receive << 10 };
        prop_assert_eq!(private::Repr::parse(&repr.emit()), Some(repr));
    }

    #[test]
    fn values_of_rpcbind(
        (program, version, protocol, port) in any::<(u32, u32, u32, u32)>(),
        (network, address, owner, family, name) in (text(), text(), text(), text(), text()),
        semantics: u32,
        (calls, registered, taken_back) in any::<([u32; 13], u32, u32)>(),
        lookups in vec(lookup(), 0..4),
        forwarded in vec(forwarded(), 0..4),
    ) {
        returns(&Mapping { program, version, protocol, port });
        returns(&Listing { address: address.clone(), network: network.clone(), semantics, family, protocol: name });
        returns(&Entry { program, version, network, address, owner });
        returns(&Statistics { calls, registered, taken_back, lookups, forwarded });
    }

    #[test]
    fn items(
        (int, unsigned, hyper, long) in any::<(i32, u32, i64, u64)>(),
        (tiny, byte, short, word) in any::<(i8, u8, i16, u16)>(),
        (single, double, flag) in any::<(f32, f64, bool)>(),
        bytes in vec(any::<u8>(), 0..40),
        string in text(),
        numbers in vec(any::<u32>(), 0..20),
        maybe: Option<u32>,
        quadruple: [u8; 16],
    ) {
        let message = emitted(|out| {
            out.i32(int)?;
            out.u32(unsigned)?;
            out.i64(hyper)?;
            out.u64(long)?;
            out.i8(tiny)?;
            out.u8(byte)?;
            out.i16(short)?;
            out.u16(word)?;
            out.f32(single)?;
            out.f64(double)?;
            out.bool(flag)?;
            out.fixed(&bytes)?;
            out.opaque(&bytes, UNBOUNDED)?;
            out.string(&string, UNBOUNDED)?;
            out.array(&numbers, UNBOUNDED, |out, number| out.u32(*number))?;
            out.list(&numbers, |out, number| out.nested(|out| out.u32(*number)))?;
            out.optional(maybe.as_ref(), |out, number| out.u32(*number))?;
            out.value(&Quadruple(quadruple))
        });
        let mut input = Reader::new(&message);
        prop_assert_eq!((input.i32(), input.u32(), input.i64(), input.u64()), (Ok(int), Ok(unsigned), Ok(hyper), Ok(long)));
        prop_assert_eq!((input.i8(), input.u8(), input.i16(), input.u16()), (Ok(tiny), Ok(byte), Ok(short), Ok(word)));
        prop_assert_eq!(input.f32().map(f32::to_bits), Ok(single.to_bits()));
        prop_assert_eq!(input.f64().map(f64::to_bits), Ok(double.to_bits()));
        prop_assert_eq!(input.bool(), Ok(flag));
        prop_assert_eq!((input.fixed(bytes.len()), input.opaque(UNBOUNDED)), (Ok(&bytes[..]), Ok(&bytes[..])));
        prop_assert_eq!(input.string(UNBOUNDED), Ok(string.as_str()));
        prop_assert_eq!(input.array(UNBOUNDED, Reader::u32), Ok(numbers.clone()));
        prop_assert_eq!(input.list(UNBOUNDED, |input| input.nested(Reader::u32)), Ok(numbers));
        prop_assert_eq!((input.optional(Reader::u32), input.value()), (Ok(maybe), Ok(Quadruple(quadruple))));
        prop_assert_eq!(input.finish(), Ok(()));
    }

    #[test]
    fn no_bytes_make_it_panic(data in vec(any::<u8>(), 0..200)) {
        fuzz_entry::rpc_message(&data);
        fuzz_entry::rpcrdma_header(&data);
    }

    /// Words as small as lengths, booleans and discriminants are lead further into a message.
    #[test]
    fn no_small_words_make_it_panic(words in vec(prop_oneof![9 => 0u32..5, 1 => any::<u32>()], 0..60)) {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        fuzz_entry::rpc_message(&data);
        fuzz_entry::rpcrdma_header(&data);
    }
}
