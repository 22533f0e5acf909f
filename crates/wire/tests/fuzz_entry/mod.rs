//! What a fuzzer calls: one function per group of headers, from bytes to nothing.
//!
//! Each parses the bytes, uses every accessor, and checks that what can be parsed is emitted and
//! parsed again as the same value. The stored inputs are replayed by the `replay` test; a libFuzzer
//! target includes this file by path and calls one of the functions.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

use sidestep_wire::cdr::{Any, Cdr, CharSet, Decoder, Encoder, Format, Source};
use sidestep_wire::ddp::{tagged, untagged};
use sidestep_wire::giop;
use sidestep_wire::ior::{Ior, corbaloc, iiop};
use sidestep_wire::mpa::marker::{Interval, Spacing};
use sidestep_wire::mpa::{enhanced, fpdu, frame};
use sidestep_wire::rdmap::segment;
use sidestep_wire::xdr::{self, Reader, Writer, Xdr};
use sidestep_wire::{Error, hello, oncrpc, rpcbind, rpcrdma};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub struct Target {
    pub name: &'static str,
    pub entry: fn(&[u8]),
}

/// Every target of this crate.
pub const TARGETS: [Target; 9] = [
    Target { name: "wire_setup", entry: setup },
    Target { name: "wire_fpdu", entry: whole_fpdu },
    Target { name: "wire_segment", entry: ddp_segment },
    Target { name: "wire_rpc", entry: rpc_message },
    Target { name: "wire_rpcrdma", entry: rpcrdma_header },
    Target { name: "wire_giop", entry: giop_message },
    Target { name: "wire_ior", entry: reference },
    Target { name: "wire_any", entry: any_value },
    Target { name: "wire_elsewhere", entry: elsewhere },
];

/// MPA frames, enhanced data and hello.
pub fn setup(data: &[u8]) {
    for reply in [false, true] {
        if let Ok(Some(len)) = frame::expected_len(data, reply) {
            assert!(len <= frame::MAX_LEN);
            assert_eq!(frame::Packet::new_checked(data).is_ok(), data.len() >= len);
        }
    }
    mpa_frame(data);
    if let Ok(repr) = enhanced::Header::new_checked(data).and_then(|h| enhanced::Repr::parse(&h)) {
        let mut out = [0; enhanced::LEN];
        repr.emit(&mut out);
        let again = enhanced::Header::new_checked(out).and_then(|h| enhanced::Repr::parse(&h));
        assert_eq!(again, Ok(repr));
    }
    if let Ok(repr) = hello::Header::new_checked(data).and_then(|h| hello::Repr::parse(&h)) {
        let mut out = [0; hello::LEN];
        repr.emit(&mut out);
        let again = hello::Header::new_checked(out).and_then(|h| hello::Repr::parse(&h));
        assert_eq!(again, Ok(repr));
    }
}

fn mpa_frame(data: &[u8]) {
    let Ok(packet) = frame::Packet::new_checked(data) else {
        return;
    };
    let Ok(repr) = frame::Repr::parse(&packet) else {
        return;
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out);
    let again = frame::Packet::new_checked(&out).expect("what was emitted");
    assert_eq!(frame::Repr::parse(&again).expect("what was emitted"), repr);
    assert!(!repr.to_string().is_empty());
}

/// FPDUs. The first four bytes choose the marker interval and the position in the stream.
pub fn whole_fpdu(data: &[u8]) {
    let Some((choice, data)) = data.split_first_chunk::<4>() else {
        return;
    };
    let interval = Interval::new(u32::from(u16::from_be_bytes([choice[0], choice[1]]))).ok();
    let position = u64::from(u16::from_be_bytes([choice[2], choice[3]])) * 4;
    let spacing = Spacing::new(interval, position);
    let needed = fpdu::needed(data, spacing);
    let packet = match fpdu::Packet::new_checked(data, spacing) {
        Ok(packet) => packet,
        Err(Error::Truncated { needed: by_view, .. }) => {
            assert_eq!(by_view, needed);
            assert!(needed > data.len());
            return;
        }
        Err(other) => panic!("{other}"),
    };
    assert_eq!(packet.wire_len(), needed);
    // Both are only asked for a verdict: reserved bits and padding of valid bytes may differ from ours.
    let _ = (packet.check_crc(), packet.check_markers());
    let mut ulpdu = vec![0; packet.ulpdu_len()];
    assert_eq!(packet.copy_ulpdu(&mut ulpdu), ulpdu.len());
    let repr = fpdu::Repr::parse(&packet).expect("a checked view");
    let mut out = vec![0; repr.buffer_len(spacing)];
    repr.emit(&ulpdu, spacing, &mut out);
    let again = fpdu::Packet::new_checked(&out, spacing).expect("what was emitted");
    again.check_crc().expect("what was emitted");
    again.check_markers().expect("what was emitted");
    assert_eq!(again.wire_len(), needed);
}

/// DDP segments with their RDMAP headers.
pub fn ddp_segment(data: &[u8]) {
    if let Ok(repr) = tagged::Header::new_checked(data).and_then(|h| tagged::Repr::parse(&h)) {
        let mut out = [0; tagged::LEN];
        repr.emit(&mut out);
        let again = tagged::Header::new_checked(out).and_then(|h| tagged::Repr::parse(&h));
        assert_eq!(again, Ok(repr));
    }
    if let Ok(repr) = untagged::Header::new_checked(data).and_then(|h| untagged::Repr::parse(&h)) {
        let mut out = [0; untagged::LEN];
        repr.emit(&mut out);
        let again = untagged::Header::new_checked(out).and_then(|h| untagged::Repr::parse(&h));
        assert_eq!(again, Ok(repr));
    }
    let Ok(header) = segment::Header::new_checked(data, data.len()) else {
        return;
    };
    match segment::Repr::parse(&header) {
        Ok(repr) => {
            let mut out = vec![0; repr.buffer_len()];
            repr.emit(&mut out);
            let header = segment::Header::new_checked(&out, out.len()).expect("what was emitted");
            assert_eq!(segment::Repr::parse(&header), Ok(repr));
            assert!(!repr.to_string().is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// RPC calls and replies, credentials, and the values of rpcbind.
pub fn rpc_message(data: &[u8]) {
    let _ = oncrpc::peek(data);
    if let Ok((repr, arguments)) = oncrpc::call::Repr::parse(data) {
        let out = emitted(|out| repr.emit(out));
        assert_eq!(oncrpc::call::Repr::parse(&out), Ok((repr, [].as_slice())));
        assert!(!repr.to_string().is_empty());
        xdr_values(arguments);
        if let Ok(sys) = oncrpc::AuthSys::parse(repr.credential.body) {
            assert_eq!(oncrpc::AuthSys::parse(&emitted(|out| sys.emit(out))), Ok(sys));
        }
    }
    if let Ok((repr, results)) = oncrpc::reply::Repr::parse(data) {
        let out = emitted(|out| repr.emit(out));
        assert_eq!(oncrpc::reply::Repr::parse(&out), Ok((repr, [].as_slice())));
        assert!(!repr.to_string().is_empty());
        // The short way to the results of most replies.
        let (verifier, state) = (oncrpc::Auth::NONE, oncrpc::reply::Accepted::Success);
        let is_plain = repr.body == oncrpc::reply::Body::Accepted { verifier, state };
        assert_eq!(oncrpc::reply::success(data, repr.xid), Some(results).filter(|_| is_plain));
        xdr_values(results);
    }
    xdr_values(data);
}

fn xdr_values(data: &[u8]) {
    fn tree(input: &mut Reader<'_>) -> Result<u32, xdr::Error> {
        let branches = input.array(100, |input| input.nested(tree))?;
        Ok(branches.into_iter().fold(1, u32::wrapping_add))
    }
    let _ = tree(&mut Reader::new(data));
    if let Ok(entries) = Reader::new(data).list(rpcbind::MAX_ENTRIES, rpcbind::Entry::decode) {
        let out = emitted(|out| out.list(&entries, |out, entry| entry.encode(out)));
        assert_eq!(Reader::new(&out).list(rpcbind::MAX_ENTRIES, rpcbind::Entry::decode), Ok(entries));
    }
    if let Ok(statistics) = rpcbind::Statistics::decode(&mut Reader::new(data)) {
        let out = emitted(|out| statistics.encode(out));
        assert_eq!(rpcbind::Statistics::decode(&mut Reader::new(&out)), Ok(statistics));
    }
    if let Ok(listings) = Reader::new(data).list(rpcbind::MAX_ENTRIES, rpcbind::Listing::decode) {
        let out = emitted(|out| out.list(&listings, |out, listing| listing.encode(out)));
        assert_eq!(Reader::new(&out).list(rpcbind::MAX_ENTRIES, rpcbind::Listing::decode), Ok(listings));
    }
    if let Ok(items) = Reader::new(data).array(xdr::UNBOUNDED, |input| input.string(8)) {
        let out = emitted(|out| out.array(&items, xdr::UNBOUNDED, |out, item| out.string(item, 8)));
        assert_eq!(Reader::new(&out).array(xdr::UNBOUNDED, |input| input.string(8)), Ok(items));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Some(address) = rpcbind::socket_address(text)
    {
        assert_eq!(rpcbind::socket_address(&rpcbind::universal_address(address)), Some(address));
    }
}

/// Headers of RPC-over-RDMA.
pub fn rpcrdma_header(data: &[u8]) {
    use rpcrdma::header::{Header, Repr};
    use rpcrdma::private;
    if let Some(private) = private::Repr::parse(data) {
        assert_eq!(private::Repr::parse(&private.emit()), Some(private));
    }
    let Ok(header) = Header::new_checked(data) else {
        return;
    };
    let read: Vec<_> = header.read_segments().collect();
    let write: Vec<Vec<_>> = header.write_chunks().map(|chunk| chunk.iter().collect()).collect();
    let write: Vec<&[_]> = write.iter().map(Vec::as_slice).collect();
    let reply: Option<Vec<_>> = header.reply_chunk().map(|chunk| chunk.iter().collect());
    let repr = Repr {
        xid: header.xid,
        credits: header.credits,
        kind: header.kind,
        read: &read,
        write: &write,
        reply: reply.as_deref(),
    };
    assert_eq!(emitted(|out| repr.emit(out)), data[..data.len() - header.rest().len()]);
    assert!(!header.to_string().is_empty());
}

fn emitted(emit: impl FnOnce(&mut Writer<'_>) -> Result<(), xdr::Error>) -> Vec<u8> {
    let mut out = Vec::new();
    emit(&mut Writer::new(&mut out, usize::MAX)).expect("what was parsed");
    out
}

/// Messages of GIOP, with the header of their type.
pub fn giop_message(data: &[u8]) {
    use giop::MessageType as M;
    let Ok(header) = giop::header::Header::new_checked(data) else {
        return;
    };
    let Ok(repr) = giop::header::Repr::parse(&header) else {
        return;
    };
    let mut out = [0; giop::header::LEN];
    repr.emit(&mut out);
    assert_eq!(giop::header::Header::new_checked(out).and_then(|h| giop::header::Repr::parse(&h)), Ok(repr));
    assert!(!repr.to_string().is_empty());
    let version = repr.version;
    let format = Format { order: repr.order, minor: version.minor(), chars: CharSet::Latin1 };
    let mut decoder = Decoder::new(data, format);
    decoder.raw(giop::header::LEN).expect("a header");
    let mut encoder = giop::begin(Vec::new(), version, CharSet::Latin1, repr.message_type);
    let native = encoder.format();
    match repr.message_type {
        M::Request => {
            let Ok(request) = giop::request::Repr::parse(version, &mut decoder) else { return };
            let _ = (request.target.key(), request.to_string());
            request.emit(version, &[], &mut encoder).expect("a request");
            let bytes = giop::finish(encoder).expect("short");
            let again = giop::request::Repr::parse(version, &mut body(&bytes, native));
            let again = again.expect("what was emitted");
            assert_eq!((again.request_id, again.target), (request.request_id, request.target));
            assert_eq!((again.operation, again.contexts), (request.operation, request.contexts));
        }
        M::Reply => {
            let Ok(reply) = giop::reply::Repr::parse(version, &mut decoder) else { return };
            reply.emit(version, &mut encoder).expect("a reply");
            let bytes = giop::finish(encoder).expect("short");
            assert_eq!(giop::reply::Repr::parse(version, &mut body(&bytes, native)), Ok(reply));
        }
        M::LocateRequest => {
            let Ok(request) = giop::locate::Request::parse(version, &mut decoder) else { return };
            let _ = request.target.key();
            request.emit(version, &mut encoder).expect("a request");
            let bytes = giop::finish(encoder).expect("short");
            assert_eq!(giop::locate::Request::parse(version, &mut body(&bytes, native)), Ok(request));
        }
        M::LocateReply => {
            let Ok(reply) = giop::locate::Reply::parse(version, &mut decoder) else { return };
            reply.emit(&mut encoder);
            let bytes = giop::finish(encoder).expect("short");
            assert_eq!(giop::locate::Reply::parse(version, &mut body(&bytes, native)), Ok(reply));
        }
        M::CancelRequest => drop(giop::request::parse_cancel(&mut decoder)),
        M::Fragment => drop(giop::fragment::parse(version, &mut decoder)),
        M::CloseConnection | M::MessageError => {}
    }
}

fn body(bytes: &[u8], format: Format) -> Decoder<'_> {
    let mut decoder = Decoder::new(bytes, format);
    decoder.raw(giop::header::LEN).expect("a header");
    decoder
}

/// References: as text, and their profiles.
pub fn reference(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        if let Ok(location) = text.parse::<corbaloc::Location>() {
            let again = location.to_string().parse::<corbaloc::Location>();
            if !location.addresses.contains(&corbaloc::Address::Initial) && !location.key.is_empty() {
                let again = again.expect("what was shown");
                assert_eq!((again.key, again.name), (location.key.clone(), location.name.clone()));
            }
            location.to_ior().expect("short");
        }
        if let Ok(ior) = text.parse::<Ior>() {
            assert_eq!(ior.to_string().parse::<Ior>().as_ref(), Ok(&ior));
        }
    }
    let Ok(mut decoder) = Decoder::of_encapsulation(data, Format::NATIVE) else {
        return;
    };
    let Ok(ior) = Ior::decode(&mut decoder) else {
        return;
    };
    assert_eq!(ior.to_string().parse::<Ior>().as_ref(), Ok(&ior));
    for profile in &ior.profiles {
        if let Ok(repr) = iiop::Repr::parse(profile) {
            let emitted = repr.emit().expect("short");
            assert_eq!(iiop::Repr::parse(&emitted), Ok(repr));
        }
    }
}

/// Values with their type. The first octet chooses the byte order, the code set and the version.
pub fn any_value(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let format = Format {
        order: sidestep_wire::cdr::ByteOrder::from_flag(*choice),
        minor: 1 + (choice >> 1 & 1),
        chars: if choice & 4 == 0 { CharSet::Latin1 } else { CharSet::Utf8 },
    };
    let Ok(any) = Any::decode(&mut Decoder::new(data, format)) else {
        return;
    };
    let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
    any.encode(&mut encoder).expect("what was decoded");
    let again = Any::decode(&mut Decoder::new(encoder.bytes(), Format::NATIVE)).expect("what was emitted");
    // A number that is not one is not equal to itself, so the bytes are compared.
    let mut twice = Encoder::new(Vec::new(), Format::NATIVE);
    again.encode(&mut twice).expect("what was decoded");
    assert_eq!(encoder.bytes(), twice.bytes());
}

/// Where the rest of a message lies: as it is, or different each time that it is looked at.
struct Far<'a> {
    bytes: &'a [u8],
    changes: std::cell::Cell<u8>,
    step: u8,
}

impl Source for Far<'_> {
    fn copy_out(&self, at: usize, into: &mut [u8]) -> bool {
        let Some(bytes) = self.bytes.get(at..).and_then(|rest| rest.get(..into.len())) else {
            return false;
        };
        let change = self.changes.replace(self.changes.get().wrapping_add(self.step));
        into.iter_mut().zip(bytes).for_each(|(to, from)| *to = from ^ change);
        true
    }

    fn append_to(&self, at: usize, count: usize, into: &mut Vec<u8>) -> bool {
        // No length is believed before it was checked.
        assert!(count <= self.bytes.len());
        let begin = into.len();
        into.resize(begin + count, 0);
        self.copy_out(at, &mut into[begin..])
    }
}

/// A message of which the first octet says how much is at hand. What lies elsewhere gives the same values, or has to be fetched;
/// what changes while it is read gives some values, or none.
pub fn elsewhere(data: &[u8]) {
    let Some((near, data)) = data.split_first() else {
        return;
    };
    type Values = (Vec<u8>, u64, String, Vec<u32>, Vec<String>, Any);
    let decode = |decoder: &mut Decoder<'_>| -> Result<Values, sidestep_wire::cdr::Error> {
        let values = (Cdr::decode(decoder)?, decoder.u64()?, decoder.string()?, Cdr::decode(decoder)?);
        Ok((values.0, values.1, values.2, values.3, Cdr::decode(decoder)?, Any::decode(decoder)?))
    };
    let whole = decode(&mut Decoder::new(data, Format::NATIVE));
    for step in [0, 1, 85] {
        let far = Far { bytes: data, changes: std::cell::Cell::new(0), step };
        let near = usize::from(*near).min(data.len());
        let mut decoder = Decoder::new(&data[..near], Format::NATIVE).with_rest(&far, data.len());
        let found = decode(&mut decoder);
        if step == 0 && found != Err(sidestep_wire::cdr::Error::Elsewhere) {
            // A number that is not one is not equal to itself.
            assert_eq!(format!("{found:?}"), format!("{whole:?}"));
        }
    }
}
