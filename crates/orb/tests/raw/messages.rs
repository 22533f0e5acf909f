//! Messages of GIOP 1.2, whole and wrong.

use sidestep_orb::cdr::{ByteOrder, CharSet, Decoder, Encoder, Format};
use sidestep_orb::{Stub, Version};
use sidestep_wire::giop::{Contexts, MessageType, Target, header, locate, reply, request};
use sidestep_wire::ior::iiop;

const VERSION: Version = Version::V1_2;

/// The key of an object, from its reference.
pub fn key_of(stub: &impl Stub) -> Vec<u8> {
    iiop::Repr::parse(&stub.object().ior().profiles[0]).unwrap().object_key
}

/// A message with this body, whose header says that it is so long.
pub fn message_of_size(message_type: MessageType, size: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header::LEN];
    let order = ByteOrder::NATIVE;
    header::Repr { version: VERSION, order, more_fragments: false, message_type, size }.emit(&mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

/// A message with this body.
pub fn message(message_type: MessageType, body: &[u8]) -> Vec<u8> {
    message_of_size(message_type, body.len() as u32, body)
}

/// The same message, which goes on in fragments.
pub fn begun(mut message: Vec<u8>) -> Vec<u8> {
    message[6] |= 2;
    message
}

/// A message whose body is what `write` writes, in a byte order.
pub fn message_in(order: ByteOrder, message_type: MessageType, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let format = Format { order, minor: VERSION.minor(), chars: CharSet::Utf8 };
    let mut encoder = Encoder::new(vec![0; header::LEN], format);
    write(&mut encoder);
    let mut bytes = encoder.into_bytes();
    let size = (bytes.len() - header::LEN) as u32;
    header::Repr { version: VERSION, order, more_fragments: false, message_type, size }.emit(&mut bytes);
    bytes
}

fn written(message_type: MessageType, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    message_in(ByteOrder::NATIVE, message_type, write)
}

/// A request whose body is what `body` writes.
pub fn request(request_id: u32, key: &[u8], operation: &str, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    request_of(request_id, Target::Key(key), operation, body)
}

/// The same for an object that is named in another way.
pub fn request_of(
    request_id: u32,
    target: Target<'_>,
    operation: &str,
    body: impl FnOnce(&mut Encoder<'_>),
) -> Vec<u8> {
    written(MessageType::Request, |encoder| {
        let (response, contexts) = (request::Response::Target, Contexts::EMPTY);
        let repr = request::Repr { request_id, response, target, operation: operation.as_bytes(), contexts };
        repr.emit(VERSION, &[], encoder).unwrap();
        let written = request::emit_body(VERSION, encoder, |encoder| {
            body(encoder);
            Ok::<(), ()>(())
        });
        written.unwrap();
    })
}

/// A reply whose body is what `body` writes.
pub fn reply(request_id: u32, status: reply::Status, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    written(MessageType::Reply, |encoder| {
        reply::Repr { request_id, status, contexts: Contexts::EMPTY }.emit(VERSION, encoder).unwrap();
        let written = request::emit_body(VERSION, encoder, |encoder| {
            body(encoder);
            Ok::<(), ()>(())
        });
        written.unwrap();
    })
}

/// The question where an object is.
pub fn locate_request(request_id: u32, target: Target<'_>) -> Vec<u8> {
    written(MessageType::LocateRequest, |encoder| {
        locate::Request { request_id, target }.emit(VERSION, encoder).unwrap();
    })
}

/// The id of a request or a reply.
pub fn id_of(message: &[u8]) -> u32 {
    u32::from_ne_bytes(message[header::LEN..header::LEN + 4].try_into().unwrap())
}

/// What a message is.
pub fn type_of(message: &[u8]) -> MessageType {
    header::Repr::parse(&header::Header::new_checked(message).unwrap()).unwrap().message_type
}

/// The operation of a request; `None` if it is a question where an object is.
pub fn operation_of(message: &[u8]) -> Option<String> {
    if type_of(message) != MessageType::Request {
        return None;
    }
    let mut decoder =
        Decoder::new(message, Format { minor: VERSION.minor(), chars: CharSet::Latin1, ..Format::NATIVE });
    decoder.raw(header::LEN).unwrap();
    let request = request::Repr::parse(VERSION, &mut decoder).unwrap();
    Some(String::from_utf8(request.operation.to_vec()).unwrap())
}
