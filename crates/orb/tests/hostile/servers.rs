//! Hostile servers of our client.

use std::thread;

use sidestep_orb::cdr::Cdr;
use sidestep_orb::{Completion, Kind, Orb, Stub, SystemException};
use sidestep_wire::giop::{MessageType, reply::Status};

use crate::panics;
use crate::peer::Peer;
use crate::raw::messages::{begun, id_of, message, message_of_size, reply, request};
use crate::raw::{Point, Raw, TRANSPORTS, name_of};

const TYPE_ID: &str = "IDL:sidestep.test/Types/Peer:1.0";

/// What a server answers to the request with an id, and what its caller has to be told.
struct Answer {
    what: &'static str,
    bytes: fn(u32) -> Vec<u8>,
    told: Result<(), SystemException>,
    /// Whether the connection is of use afterwards.
    goes_on: bool,
}

fn lost() -> Result<(), SystemException> {
    Err(Kind::CommFailure.raised(Completion::Maybe))
}

fn malformed() -> Result<(), SystemException> {
    Err(Kind::Marshal.raised(Completion::Yes))
}

fn good(id: u32) -> Vec<u8> {
    reply(id, Status::NoException, |_| {})
}

fn changed(id: u32, at: usize, value: u8) -> Vec<u8> {
    let mut bytes = good(id);
    bytes[at] = value;
    bytes
}

fn answers() -> Vec<Answer> {
    let answer = |what, bytes, told, goes_on| Answer { what, bytes, told, goes_on };
    vec![
        answer("another protocol", |_| b"HTTP/1.0 400 Bad Request\r\n\r\n".to_vec(), lost(), false),
        answer("GIOP 2.0", |id| changed(id, 4, 2), lost(), false),
        answer("an unknown type", |id| changed(id, 7, 9), lost(), false),
        answer("a status that is none", |id| changed(id, 16, 77), lost(), false),
        answer("contexts that are not there", |id| changed(id, 23, 0x7f), lost(), false),
        answer("a size beyond the limit", |_| message_of_size(MessageType::Reply, u32::MAX, &[]), lost(), false),
        answer("a reply of no bytes", |_| message(MessageType::Reply, &[]), lost(), false),
        answer(
            "a reply that ends within its header",
            |id| message(MessageType::Reply, &id.to_ne_bytes()),
            lost(),
            false,
        ),
        answer("a request", |id| request(id, b"key", "ping", |_| {}), lost(), false),
        answer("a cancelled request", |id| message(MessageType::CancelRequest, &id.to_ne_bytes()), lost(), false),
        answer(
            "a locate reply",
            |id| message(MessageType::LocateReply, &[id.to_ne_bytes(), [0; 4]].concat()),
            lost(),
            false,
        ),
        answer("a fragment of nothing", |id| message(MessageType::Fragment, &id.to_ne_bytes()), lost(), false),
        answer("MessageError", |_| message(MessageType::MessageError, &[]), lost(), false),
        answer("a reply that is cut", |id| good(id)[..20].to_vec(), lost(), false),
        answer(
            "a large reply that is cut",
            |id| {
                let mut bytes = message_of_size(MessageType::Reply, 100_000, &good(id)[12..]);
                bytes.resize(50_000, 0);
                bytes
            },
            lost(),
            false,
        ),
        answer(
            "fragments beyond the limit",
            |id| {
                let part = [&id.to_ne_bytes()[..], &[0; 60_000]].concat();
                let fragment = begun(message(MessageType::Fragment, &part));
                [begun(good(id)), fragment.repeat(4)].concat()
            },
            lost(),
            false,
        ),
        answer(
            "many messages that begin and do not end",
            |_| (100..200).flat_map(|id| begun(reply(id, Status::NoException, |_| {}))).collect(),
            lost(),
            false,
        ),
        answer(
            "another reference that is none",
            |id| {
                reply(id, Status::LocationForward, |encoder| {
                    encoder.u32(0x7fff_ffff);
                })
            },
            malformed(),
            true,
        ),
        answer("an exception without a name", |id| reply(id, Status::SystemException, |_| {}), malformed(), true),
        answer(
            "an exception that the operation does not have",
            |id| {
                reply(id, Status::UserException, |encoder| {
                    encoder.string("IDL:other:1.0").unwrap();
                })
            },
            Err(Kind::Unknown.with_minor(0x4f4d_0001, Completion::Yes)),
            true,
        ),
        answer(
            "a nil reference",
            |id| {
                reply(id, Status::LocationForward, |encoder| {
                    sidestep_orb::Ior { type_id: String::new(), profiles: Vec::new() }.encode(encoder).unwrap();
                })
            },
            Err(Kind::InvObjref.raised(Completion::No)),
            true,
        ),
        answer(
            "replies of others",
            |id| {
                [reply(id + 7, Status::NoException, |_| {}), reply(id + 8, Status::UserException, |_| {}), good(id)]
                    .concat()
            },
            Ok(()),
            true,
        ),
        answer("the same twice", |id| [good(id), good(id)].concat(), Ok(()), true),
        answer("more than was asked for", |id| reply(id, Status::NoException, |encoder| encoder.u32(5)), Ok(()), true),
    ]
}

/// Serves one connection after the other: each hostile answer to the first request of one, and a good one to all that follow.
fn serve(point: &Point, answers: &[Answer]) {
    for answer in answers {
        let mut raw = point.accept();
        let mut kept = Vec::new();
        let asked = raw.read_message(&mut kept).expect("a request");
        raw.send(&(answer.bytes)(id_of(&asked)));
        match (answer.goes_on, answer.what.ends_with("cut")) {
            (true, _) => serve_well(&mut raw, &mut kept),
            (false, true) => drop(raw),
            (false, false) => {
                let said = raw.read_to_end();
                let is_error = said.is_empty() || said[4..] == message(MessageType::MessageError, &[])[4..];
                assert!(is_error, "{} is answered with {said:02x?}", answer.what);
            }
        }
    }
}

/// Answers until the client closes the connection.
fn serve_well(raw: &mut Raw, kept: &mut Vec<u8>) {
    while let Some(asked) = raw.read_message(kept) {
        raw.send(&good(id_of(&asked)));
    }
}

fn attack(on: &str) {
    panics::watch();
    let point = Point::new(on, &name_of(on));
    let ior = point.reference(TYPE_ID).to_string();
    let server = thread::spawn(move || serve(&point, &answers()));
    for Answer { what, told, goes_on, .. } in answers() {
        let client = Orb::builder().message_limit(200_000).build().unwrap();
        let peer = Peer::from_object(client.string_to_object(&ior).unwrap());
        assert_eq!(peer.ping(), told, "{what}, over {on}");
        if goes_on {
            assert_eq!(peer.ping(), Ok(()), "after {what}, over {on}");
        }
        client.shutdown();
    }
    server.join().unwrap();
    assert_eq!(panics::count(), 0);
}

#[test]
fn every_answer_over_every_transport() {
    TRANSPORTS.into_iter().for_each(attack);
}

/// A server that closes every connection properly, over and over: the call is given up.
#[test]
fn a_server_that_always_closes() {
    let point = Point::new("fabric", &name_of("always-closes"));
    let ior = point.reference(TYPE_ID).to_string();
    thread::spawn(move || {
        loop {
            let mut raw = point.accept();
            raw.read_message(&mut Vec::new()).expect("a request");
            raw.send(&message(MessageType::CloseConnection, &[]));
            raw.read_to_end();
        }
    });
    let client = Orb::builder().build().unwrap();
    let peer = Peer::from_object(client.string_to_object(&ior).unwrap());
    assert_eq!(peer.ping(), Err(Kind::Transient.raised(Completion::No)));
    client.shutdown();
}
