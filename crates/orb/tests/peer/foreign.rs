//! Messages as a machine of the other byte order sends them, whole and in fragments.

use std::io::{Read, Write};
use std::net::TcpStream;

use sidestep_orb::Stub;
use sidestep_orb::cdr::{ByteOrder, CharSet, Decoder, Encoder, Format};
use sidestep_wire::giop::{Contexts, MessageType, Target, Version, header, reply, request};
use sidestep_wire::ior::iiop;

use super::Peer;

const ORDER: ByteOrder = match ByteOrder::NATIVE {
    ByteOrder::Big => ByteOrder::Little,
    ByteOrder::Little => ByteOrder::Big,
};

/// Calls `a_double` by bytes of the other order.
pub fn exercise_byte_order(peer: &Peer) {
    let profile = iiop::Repr::parse(&peer.object().ior().profiles[0]).unwrap();
    let mut stream = TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
    let whole = request_message(1, &profile.object_key);
    stream.write_all(&whole).unwrap();
    check_reply(&mut stream, 1);
    let whole = request_message(2, &profile.object_key);
    stream.write_all(&in_fragments(&whole, 2)).unwrap();
    check_reply(&mut stream, 2);
}

fn request_message(request_id: u32, key: &[u8]) -> Vec<u8> {
    let format = Format { order: ORDER, minor: 2, chars: CharSet::Latin1 };
    let mut encoder = Encoder::new(vec![0; header::LEN], format);
    let repr = request::Repr {
        request_id,
        response: request::Response::Target,
        target: Target::Key(key),
        operation: b"a_double",
        contexts: Contexts::EMPTY,
    };
    repr.emit(Version::V1_2, &[], &mut encoder).unwrap();
    request::align_body(Version::V1_2, &mut encoder);
    encoder.f64(1.5);
    encoder.f64(-2.0);
    framed(MessageType::Request, false, encoder.into_bytes())
}

/// Writes the header of a message whose first bytes are kept for it.
fn framed(message_type: MessageType, more_fragments: bool, mut bytes: Vec<u8>) -> Vec<u8> {
    let size = u32::try_from(bytes.len() - header::LEN).unwrap();
    header::Repr { version: Version::V1_2, order: ORDER, more_fragments, message_type, size }.emit(&mut bytes);
    bytes
}

/// The same message in a beginning and two fragments. All but the last are multiples of eight bytes.
fn in_fragments(whole: &[u8], request_id: u32) -> Vec<u8> {
    let id = match ORDER {
        ByteOrder::Big => request_id.to_be_bytes(),
        ByteOrder::Little => request_id.to_le_bytes(),
    };
    let fragment = |more, part: &[u8]| framed(MessageType::Fragment, more, [&[0; header::LEN][..], &id, part].concat());
    let first = framed(MessageType::Request, true, whole[..40].to_vec());
    [first, fragment(true, &whole[40..48]), fragment(false, &whole[48..])].concat()
}

fn check_reply(stream: &mut TcpStream, request_id: u32) {
    let mut bytes = vec![0; header::LEN];
    stream.read_exact(&mut bytes).unwrap();
    let header = header::Repr::parse(&header::Header::new_checked(&bytes).unwrap()).unwrap();
    assert_eq!(header.message_type, MessageType::Reply);
    bytes.resize(header::LEN + header.size as usize, 0);
    stream.read_exact(&mut bytes[header::LEN..]).unwrap();
    let mut decoder = Decoder::new(&bytes, Format { order: header.order, minor: 2, chars: CharSet::Latin1 });
    decoder.raw(header::LEN).unwrap();
    let reply = reply::Repr::parse(Version::V1_2, &mut decoder).unwrap();
    assert_eq!((reply.request_id, reply.status), (request_id, reply::Status::NoException));
    assert_eq!([decoder.f64(), decoder.f64(), decoder.f64()], [Ok(1.5), Ok(1.5), Ok(-2.0)]);
}
