//! Where objects are: questions about that, calls that are sent elsewhere, and objects that have to be named in another way.

mod peer;
mod raw;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use peer::elsewhere::{LOCATED, located_by};
use peer::{Own, Peer, PeerSkeleton, exercise_calls, serve};
use raw::messages::{id_of, key_of, locate_request, message, reply, request, type_of};
use raw::{Point, Raw};
use sidestep_orb::cdr::{Cdr, CharSet, Decoder, Format};
use sidestep_orb::{
    Completion, Ior, Kind, Object, Orb, Poa, Refusal, Servant, ServantLocator, Stub, SystemException, Version,
};
use sidestep_wire::giop::reply::Status;
use sidestep_wire::giop::{MessageType, Target, header, locate, target};
use sidestep_wire::ior::iiop;

const TYPE_ID: &str = "IDL:sidestep.test/Types/Peer:1.0";

fn server() -> Orb {
    Orb::builder().tcp("127.0.0.1:0").build().unwrap()
}

fn client() -> Orb {
    Orb::builder().build().unwrap()
}

fn seen(object: &Object) -> Peer {
    Peer::from_object(client().string_to_object(&object.ior().to_string()).unwrap())
}

/// Sends everything to another object, or, once that is said to be gone, serves it itself.
struct Elsewhere {
    to: Object,
    gone: AtomicBool,
    own: Arc<dyn Servant>,
}

impl ServantLocator for Elsewhere {
    fn preinvoke(&self, id: &[u8], _: &Poa, _: &str) -> Result<Arc<dyn Servant>, Refusal> {
        match (id, self.gone.load(Ordering::SeqCst)) {
            (b"refused", _) => Err(Refusal::System(Kind::NoPermission.with_minor(5, Completion::No))),
            (_, true) => Ok(self.own.clone()),
            (_, false) => Err(Refusal::Forward(self.to.clone())),
        }
    }
}

/// An object of this broker that is at `to`, and one that may not be called.
fn elsewhere(orb: &Orb, to: &Object) -> (Object, Object, Arc<Elsewhere>) {
    let locator =
        Arc::new(Elsewhere { to: to.clone(), gone: AtomicBool::new(false), own: Arc::new(PeerSkeleton(Own::new())) });
    let poa = located_by(orb, locator.clone());
    let refused = poa.create_reference_with_id(b"refused", TYPE_ID).unwrap();
    (poa.create_reference(TYPE_ID).unwrap(), refused, locator)
}

#[test]
fn calls_of_every_kind_follow_where_they_are_sent() {
    let (near, far) = (server(), server());
    let own = serve(&far).0;
    let (object, ..) = elsewhere(&near, own.object());
    exercise_calls(&seen(&object));
    // Sent before anything is known of the object, and collected elsewhere; small ones, and octets that are not kept in the draft.
    let peer = seen(&object);
    let small: Vec<_> = (0..5).map(|number| peer.begin_a_long(number, 0).unwrap()).collect();
    let octets = vec![7; 50_000];
    let large = peer.begin_some_octets(&octets, &[]).unwrap();
    for (number, call) in small.into_iter().enumerate() {
        assert_eq!(call.collect().unwrap().0, number as i32);
    }
    assert_eq!(large.collect().unwrap().0, octets);
    // The reference knows by now.
    peer.tell("elsewhere").unwrap();
    while own.told().unwrap() != "elsewhere" {
        thread::yield_now();
    }
    // Without a reply nobody says where the object is, but who asks is told.
    let peer = seen(&object);
    assert_eq!(peer.object().locate(), Ok(true));
    peer.tell("asked before").unwrap();
    while own.told().unwrap() != "asked before" {
        thread::yield_now();
    }
    // Within the broker that sends it elsewhere it is the same.
    let local = Peer::from_object(object);
    assert_eq!(local.begin_a_long(6, 0).unwrap().collect().unwrap().0, 6);
    assert_eq!(local.object().locate(), Ok(true));
    near.shutdown();
    far.shutdown();
}

#[test]
fn calls_come_back_from_where_nobody_is() {
    let (near, far) = (server(), server());
    let own = serve(&far).0;
    let (object, _, locator) = elsewhere(&near, own.object());
    let [call, deferred, oneway, located] = [(); 4].map(|()| seen(&object));
    for peer in [&call, &deferred, &oneway, &located] {
        peer.ping().unwrap();
    }
    far.shutdown();
    far.run();
    // As long as it is sent there, there is nobody.
    assert_eq!(call.ping().unwrap_err().kind, Kind::Transient);
    locator.gone.store(true, Ordering::SeqCst);
    call.ping().unwrap();
    deferred.begin_ping().unwrap().collect().unwrap();
    // What is sent into a connection that is closed at that moment is lost, as oneways may be.
    while call.told().unwrap() != "back" {
        let _ = oneway.tell("back");
    }
    assert_eq!(located.object().locate(), Ok(true));
    near.shutdown();
}

#[test]
fn calls_in_a_circle_are_given_up() {
    let (one, two) = (server(), server());
    let own = serve(&one).0;
    let (second, ..) = elsewhere(&two, own.object());
    let (first, ..) = elsewhere(&one, &second);
    // The second is at the first, which is at the second.
    let poa = two.root_poa().create_poa("circle", LOCATED, None).unwrap();
    let (gone, servant) = (AtomicBool::new(false), Arc::new(PeerSkeleton(Own::new())));
    let back = poa.create_reference(TYPE_ID).unwrap();
    poa.set_servant_locator(Arc::new(Elsewhere { to: back.clone(), gone, own: servant })).unwrap();
    poa.manager().activate().unwrap();
    for (what, leads) in [(&first, true), (&back, false)] {
        let peer = seen(what);
        assert_eq!(peer.ping().is_ok(), leads);
        assert_eq!(peer.begin_ping().unwrap().collect().is_ok(), leads);
        assert_eq!(peer.object().locate().is_ok(), leads);
    }
    one.shutdown();
    two.shutdown();
}

/// The status of a locate reply, and a decoder at its body.
fn located(answer: &[u8]) -> (locate::Status, Decoder<'_>) {
    let format = Format { minor: answer[5], chars: CharSet::Latin1, ..Format::NATIVE };
    let mut decoder = Decoder::new(answer, format);
    decoder.raw(header::LEN).unwrap();
    assert_eq!(type_of(answer), MessageType::LocateReply);
    let reply = locate::Reply::parse(Version::from_minor(answer[5]), &mut decoder).unwrap();
    assert_eq!(reply.request_id, 3);
    (reply.status, decoder)
}

/// Every answer to the question where an object is, in every version.
#[test]
fn questions_where_an_object_is() {
    let (near, far) = (server(), server());
    let own = serve(&far).0;
    let here = serve(&near).0;
    let (object, refused, _) = elsewhere(&near, own.object());
    let keys = [&here, &Peer::from_object(object.clone()), &Peer::from_object(refused.clone())].map(key_of);
    let ask = |version: Version, key: &[u8]| {
        let mut raw = Raw::connect(here.object().ior());
        let mut bytes = locate_request(3, Target::Key(key));
        if version < Version::V1_2 {
            bytes = message(MessageType::LocateRequest, &[&bytes[12..16], &bytes[20..]].concat());
            bytes[5] = version.minor();
        }
        raw.send(&bytes);
        raw.read_message(&mut Vec::new()).expect("an answer")
    };
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        assert_eq!(located(&ask(version, &keys[0])).0, locate::Status::ObjectHere);
        assert_eq!(located(&ask(version, b"nobody")).0, locate::Status::UnknownObject);
        let answer = ask(version, &keys[1]);
        let (status, mut body) = located(&answer);
        assert_eq!(status, locate::Status::ObjectForward);
        assert_eq!(Ior::decode(&mut body).as_ref(), Ok(own.object().ior()));
        let answer = ask(version, &keys[2]);
        let (status, mut body) = located(&answer);
        if version < Version::V1_2 {
            assert_eq!(status, locate::Status::UnknownObject);
            continue;
        }
        assert_eq!(status, locate::Status::SystemException);
        assert_eq!(body.string().unwrap(), "IDL:omg.org/CORBA/NO_PERMISSION:1.0");
        assert_eq!([body.u32(), body.u32()], [Ok(5), Ok(1)]);
    }
    // The same by our own client.
    assert_eq!(seen(here.object()).object().locate(), Ok(true));
    assert_eq!(seen(&object).object().locate(), Ok(true));
    assert_eq!(seen(&refused).object().locate(), Err(Kind::NoPermission.with_minor(5, Completion::No)));
    let id = near.root_poa().reference_to_id(here.object()).unwrap();
    near.root_poa().deactivate_object(&id).unwrap();
    assert_eq!(seen(here.object()).object().locate(), Ok(false));
    near.shutdown();
    far.shutdown();
}

/// A server that wants objects to be named by their profiles, or by whole references, gets them so.
#[test]
fn servers_may_choose_how_objects_are_named() {
    for mode in [target::PROFILE, target::REFERENCE] {
        let point = Point::new("tcp", "");
        let ior = point.reference(TYPE_ID);
        thread::spawn(move || {
            let mut raw = point.accept();
            let mut kept = Vec::new();
            while let Some(asked) = raw.read_message(&mut kept) {
                let mode_at = if type_of(&asked) == MessageType::Request { 20 } else { 16 };
                let named = u16::from_ne_bytes(asked[mode_at..mode_at + 2].try_into().unwrap());
                let answer = match (type_of(&asked), named == mode) {
                    (MessageType::Request, true) => reply(id_of(&asked), Status::NoException, |_| {}),
                    (MessageType::Request, false) => {
                        reply(id_of(&asked), Status::NeedsAddressingMode, |encoder| encoder.u16(mode))
                    }
                    (_, true) => located_message(&asked, locate::Status::ObjectHere, &[]),
                    (_, false) => located_message(&asked, locate::Status::NeedsAddressingMode, &mode.to_ne_bytes()),
                };
                raw.send(&answer);
            }
        });
        let orb = client();
        let reference = || Peer::from_object(orb.string_to_object(&ior.to_string()).unwrap());
        let peer = reference();
        assert_eq!(peer.ping(), Ok(()));
        assert_eq!(peer.ping(), Ok(()));
        assert_eq!(reference().begin_ping().unwrap().collect(), Ok(()));
        assert_eq!(reference().object().locate(), Ok(true));
        orb.shutdown();
    }
}

fn located_message(asked: &[u8], status: locate::Status, body: &[u8]) -> Vec<u8> {
    message(MessageType::LocateReply, &[&asked[12..16], &(status as u32).to_ne_bytes(), body].concat())
}

/// A server that is never content with how an object is named, or wants what is not a way, is given up.
#[test]
fn servers_that_are_never_content_are_given_up() {
    for modes in [[target::KEY; 2], [target::PROFILE; 2], [target::PROFILE, target::REFERENCE], [77, 77]] {
        let point = Point::new("tcp", "");
        let ior = point.reference(TYPE_ID).to_string();
        thread::spawn(move || {
            let (mut raw, mut kept) = (point.accept(), Vec::new());
            for mode in modes.into_iter().cycle() {
                let Some(asked) = raw.read_message(&mut kept) else { return };
                raw.send(&reply(id_of(&asked), Status::NeedsAddressingMode, |encoder| encoder.u16(mode)));
            }
        });
        let orb = client();
        let peer = Peer::from_object(orb.string_to_object(&ior).unwrap());
        assert_eq!(peer.ping(), Err(Kind::NoImplement.raised(Completion::No)), "{modes:?}");
        let deferred: Result<(), SystemException> = peer.begin_ping().unwrap().collect();
        assert!(deferred.is_err());
        orb.shutdown();
    }
}

/// Our server takes every way of naming an object, and asks for the key instead of a profile that is not of IIOP.
#[test]
fn our_server_takes_every_name() {
    let orb = server();
    let own = serve(&orb).0;
    let ior = own.object().ior();
    let mut raw = Raw::connect(ior);
    let mut kept = Vec::new();
    let profile = iiop::Repr::parse(&ior.profiles[0]).unwrap().emit().unwrap();
    let targets = [
        (Target::Profile { tag: profile.tag, data: &profile.data }, locate::Status::ObjectHere),
        (Target::Reference { selected: 0, ior }, locate::Status::ObjectHere),
        (Target::Profile { tag: 1, data: &[0; 8] }, locate::Status::NeedsAddressingMode),
        (Target::Profile { tag: profile.tag, data: &[0xff; 3] }, locate::Status::NeedsAddressingMode),
    ];
    for (target, expected) in targets {
        raw.send(&locate_request(3, target));
        let answer = raw.read_message(&mut kept).expect("an answer");
        let (status, mut body) = located(&answer);
        assert_eq!(status, expected);
        if status == locate::Status::NeedsAddressingMode {
            assert_eq!(body.u16(), Ok(target::KEY));
        }
        raw.send(&raw::messages::request_of(5, target, "ping", |_| {}));
        let answer = raw.read_message(&mut kept).expect("an answer");
        let status = u32::from_ne_bytes(answer[16..20].try_into().unwrap());
        let wanted =
            if expected == locate::Status::ObjectHere { Status::NoException } else { Status::NeedsAddressingMode };
        assert_eq!(status, wanted as u32);
    }
    // And by its key the connection goes on.
    raw.send(&request(5, &key_of(&own), "ping", |_| {}));
    assert_eq!(id_of(&raw.read_message(&mut kept).expect("an answer")), 5);
    orb.shutdown();
}
