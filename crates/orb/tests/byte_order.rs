//! A server whose machine has the other byte order: replies of every kind, whole and in fragments.

mod peer;
mod raw;

use std::thread;

use peer::elsewhere::elsewhere;
use peer::{Color, Detailed, Peer, PeerFailError, Small, Tree, serve};
use raw::messages::{begun, id_of, message_in, operation_of};
use raw::{Point, Raw};
use sidestep_orb::cdr::{Any, ByteOrder, Cdr, Encoder, WString};
use sidestep_orb::{Completion, Kind, Orb, Stub, SystemException, Version};
use sidestep_wire::giop::reply::Status;
use sidestep_wire::giop::{Contexts, MessageType, locate, reply, request};

const ORDER: ByteOrder = match ByteOrder::NATIVE {
    ByteOrder::Big => ByteOrder::Little,
    ByteOrder::Little => ByteOrder::Big,
};

fn tree() -> Tree {
    Tree { name: "grüße".to_owned(), children: vec![Tree { name: "leaf".to_owned(), children: Vec::new() }] }
}

fn small(value: f64) -> Small {
    Small { tag: 7, value, flag: true }
}

fn detailed() -> Detailed {
    Detailed { why: "because".to_owned(), code: -42, shade: Color::Blue }
}

fn three<T: Cdr>(value: &T, encoder: &mut Encoder<'_>) {
    (0..3).for_each(|_| value.encode(encoder).unwrap());
}

/// What is answered to an operation.
fn answer(operation: &str, encoder: &mut Encoder<'_>, sends_to: &Peer) -> Status {
    match operation {
        "a_short" => three(&-2i16, encoder),
        "a_longlong" => three(&i64::MIN, encoder),
        "a_float" => three(&1.5f32, encoder),
        "a_double" => three(&-0.25f64, encoder),
        "a_string" => three(&"grüße".to_owned(), encoder),
        "a_wstring" => three(&WString::from("€ und 𝄞"), encoder),
        "a_color" => three(&Color::Green, encoder),
        "a_tree" => three(&tree(), encoder),
        "some_smalls" => three(&vec![small(1.0), small(-2.0)], encoder),
        "an_any" => three(&Any::new(&tree()).unwrap(), encoder),
        "some_octets" => three(&vec![7u8; 40_000], encoder),
        "fail" => {
            detailed().encode(encoder).unwrap();
            return Status::UserException;
        }
        "told" => {
            encoder.string("IDL:omg.org/CORBA/NO_PERMISSION:1.0").unwrap();
            encoder.u32(7);
            encoder.u32(0);
            return Status::SystemException;
        }
        _ => {
            sends_to.object().ior().encode(encoder).unwrap();
            return Status::LocationForward;
        }
    }
    Status::NoException
}

/// A reply in the other order.
fn reply_to(asked: &[u8], sends_to: &Peer) -> Vec<u8> {
    let request_id = id_of(asked);
    let Some(operation) = operation_of(asked) else {
        return message_in(ORDER, MessageType::LocateReply, |encoder| {
            locate::Reply { request_id, status: locate::Status::ObjectForward }.emit(encoder);
            sends_to.object().ior().encode(encoder).unwrap();
        });
    };
    // Which status it is shows when the body is written.
    let mut status = Status::NoException;
    drop(message_in(ORDER, MessageType::Reply, |encoder| status = answer(&operation, encoder, sends_to)));
    message_in(ORDER, MessageType::Reply, |encoder| {
        reply::Repr { request_id, status, contexts: Contexts::EMPTY }.emit(Version::V1_2, encoder).unwrap();
        request::align_body(Version::V1_2, encoder);
        answer(&operation, encoder, sends_to);
    })
}

/// The same message in pieces of at most so many bytes, which are multiples of eight.
fn in_fragments(whole: Vec<u8>, piece: usize) -> Vec<u8> {
    if whole.len() <= piece {
        return whole;
    }
    let id = whole[12..16].to_vec();
    let (first, rest) = whole.split_at(piece);
    let mut bytes = begun(with_size(first.to_vec()));
    let mut parts = rest.chunks(piece).peekable();
    while let Some(part) = parts.next() {
        let fragment = message_in(ORDER, MessageType::Fragment, |encoder| {
            encoder.raw(&id);
            encoder.raw(part);
        });
        bytes.extend(if parts.peek().is_some() { begun(fragment) } else { fragment });
    }
    bytes
}

fn with_size(mut message: Vec<u8>) -> Vec<u8> {
    let size = (message.len() - 12) as u32;
    message[8..12].copy_from_slice(&match ORDER {
        ByteOrder::Big => size.to_be_bytes(),
        ByteOrder::Little => size.to_le_bytes(),
    });
    message
}

fn serve_connection(mut raw: Raw, piece: usize, sends_to: &Peer) {
    let mut kept = Vec::new();
    while let Some(asked) = raw.read_message(&mut kept) {
        raw.send(&in_fragments(reply_to(&asked, sends_to), piece));
    }
}

#[test]
fn replies_in_the_other_order_are_understood() {
    let server = Orb::builder().tcp("127.0.0.1:0").build().unwrap();
    let (own, _) = serve(&server);
    let far = Peer::from_object(elsewhere(&server, own.object()));
    for on in ["tcp", "fabric", "via"] {
        // In fragments, messages are put together first.
        for piece in [usize::MAX, 16_000, 64] {
            let point = Point::new(on, &raw::name_of(on));
            let ior = point.reference("IDL:sidestep.test/Types/Peer:1.0").to_string();
            let sends_to = far.clone();
            thread::spawn(move || {
                (0..2).for_each(|_| serve_connection(point.accept(), piece, &sends_to));
            });
            let orb = Orb::builder().build().unwrap();
            let peer = Peer::from_object(orb.string_to_object(&ior).unwrap());
            exercise(&peer);
            orb.disconnect();
            // Calls and questions that are sent elsewhere.
            let again = Peer::from_object(orb.string_to_object(&ior).unwrap());
            assert_eq!(again.object().locate(), Ok(true));
            assert_eq!(peer.ping(), Ok(()));
            orb.shutdown();
        }
    }
    server.shutdown();
}

fn exercise(peer: &Peer) {
    assert_eq!(peer.a_short(0, 0), Ok((-2, -2, -2)));
    assert_eq!(peer.a_longlong(0, 0), Ok((i64::MIN, i64::MIN, i64::MIN)));
    assert_eq!(peer.a_float(0.0, 0.0), Ok((1.5, 1.5, 1.5)));
    assert_eq!(peer.a_double(0.0, 0.0), Ok((-0.25, -0.25, -0.25)));
    // The reference names no code set, so text is ISO 8859-1.
    assert_eq!(peer.a_string("", "").unwrap().2, "gr\u{c3}\u{bc}\u{c3}\u{9f}e");
    assert_eq!(peer.a_wstring(&"".into(), &"".into()).unwrap().2, WString::from("€ und 𝄞"));
    assert_eq!(peer.a_color(Color::Red, Color::Red), Ok((Color::Green, Color::Green, Color::Green)));
    let (result, _, out) = peer.a_tree(&tree(), &tree()).unwrap();
    assert_eq!((result.children.len(), out.children[0].name.as_str()), (1, "leaf"));
    assert_eq!(peer.some_smalls(&[], &[]).unwrap().2, [small(1.0), small(-2.0)]);
    let any = peer.an_any(&Any::default(), &Any::default()).unwrap().2;
    assert_eq!(any.get::<Tree>().unwrap().unwrap().children.len(), 1);
    assert_eq!(peer.some_octets(&[], &[]).unwrap().2, vec![7; 40_000]);
    assert_eq!(peer.fail(0), Err(PeerFailError::Detailed(detailed())));
    assert_eq!(peer.told(), Err::<String, SystemException>(Kind::NoPermission.with_minor(7, Completion::Yes)));
}
