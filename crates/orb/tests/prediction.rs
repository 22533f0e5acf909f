//! Requests that are like the one before are led to the servant without asking the adapter: whatever has changed meanwhile counts
//! all the same.

use std::sync::{Arc, Weak};

use sidestep_orb::cdr::Cdr;
use sidestep_orb::{
    Call, Current, IdAssignment, Kind, Lifespan, Object, Orb, Poa, Policies, Servant, SystemException, Version,
};

/// Answers with a number, and ends its object if it is told so.
struct Number(u32);

impl Servant for Number {
    fn type_ids(&self) -> &'static [&'static str] {
        &["IDL:sidestep.test/Number:1.0"]
    }

    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        let add = call.arguments(|decoder| decoder.u32())?;
        match call.operation() {
            "plus" => {}
            "minus" => return call.reply(|encoder| self.0.wrapping_sub(add).encode(encoder)),
            "leave" => {
                let current = Current::get().expect("a request is served");
                current.poa.deactivate_object(&current.object_id).expect("it is active");
            }
            "fail" => panic!("as it was told"),
            _ => return Err(call.unknown_operation()),
        }
        call.reply(|encoder| self.0.wrapping_add(add).encode(encoder))
    }
}

fn call(object: &Object, operation: &str, value: u32) -> Result<u32, Kind> {
    let outcome: Result<u32, SystemException> =
        object.call(operation, |encoder| value.encode(encoder), |decoder| decoder.u32());
    outcome.map_err(|exception| exception.kind)
}

const ID: &[u8] = b"one";

fn activate(poa: &Poa, number: u32) -> Weak<Number> {
    let servant = Arc::new(Number(number));
    let weak = Arc::downgrade(&servant);
    poa.activate_object_with_id(ID, servant).unwrap();
    weak
}

/// A server, its adapter, and its object as a client sees it.
fn pair(server: Orb, version: Version) -> (Orb, Poa, Object) {
    let policies =
        Policies { lifespan: Lifespan::Persistent, id_assignment: IdAssignment::User, ..Policies::default() };
    let poa = server.root_poa().create_poa("numbers", policies, None).unwrap();
    poa.manager().activate().unwrap();
    let reference = poa.create_reference_with_id(ID, "IDL:sidestep.test/Number:1.0").unwrap();
    let client = Orb::builder().giop(version).build().unwrap();
    let object = client.string_to_object(&reference.ior().to_string()).unwrap();
    (server, poa, object)
}

fn fabric(test: &str) -> Orb {
    Orb::builder().fabric(&format!("shm:{test}-{}", std::process::id())).build().unwrap()
}

#[test]
fn an_object_that_was_replaced_is_not_called_again() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let (server, poa, object) = pair(fabric("replaced"), version);
        let first = activate(&poa, 10);
        assert_eq!((1..4).map(|value| call(&object, "plus", value)).collect::<Vec<_>>(), [Ok(11), Ok(12), Ok(13)]);
        poa.deactivate_object(ID).unwrap();
        assert!(first.upgrade().is_none(), "nobody keeps the servant");
        assert_eq!(call(&object, "plus", 1), Err(Kind::ObjectNotExist));
        let second = activate(&poa, 20);
        assert_eq!((call(&object, "plus", 1), call(&object, "plus", 1)), (Ok(21), Ok(21)));
        // It deactivates itself: this call is finished, and no other begins.
        assert_eq!(call(&object, "leave", 2), Ok(22));
        assert_eq!(call(&object, "leave", 2), Err(Kind::ObjectNotExist));
        assert!(second.upgrade().is_none());
        activate(&poa, 30);
        assert_eq!((call(&object, "plus", 1), call(&object, "plus", 2)), (Ok(31), Ok(32)));
        poa.destroy(true);
        assert_eq!(call(&object, "plus", 1), Err(Kind::ObjectNotExist));
        server.shutdown();
        server.run();
    }
}

#[test]
fn the_manager_decides_about_every_request() {
    let (server, poa, object) = pair(fabric("managed"), Version::V1_2);
    activate(&poa, 1);
    for _ in 0..3 {
        assert_eq!((call(&object, "plus", 1), call(&object, "plus", 2)), (Ok(2), Ok(3)));
        poa.manager().discard_requests().unwrap();
        assert_eq!((call(&object, "plus", 1), call(&object, "plus", 1)), (Err(Kind::Transient), Err(Kind::Transient)));
        poa.manager().activate().unwrap();
    }
    poa.manager().deactivate();
    assert_eq!(call(&object, "plus", 1), Err(Kind::ObjAdapter));
    server.shutdown();
}

#[test]
fn operations_that_take_turns_are_told_apart() {
    let (server, poa, object) = pair(fabric("turns"), Version::V1_2);
    activate(&poa, 100);
    for value in 0..5 {
        assert_eq!(call(&object, "plus", value), Ok(100 + value));
        assert_eq!(call(&object, "minus", value), Ok(100 - value));
        assert_eq!(call(&object, "other", value), Err(Kind::BadOperation));
        assert_eq!(call(&object, "fail", value), Err(Kind::Unknown));
        assert!(!object.non_existent().unwrap());
        // Without its argument, and with more than that.
        let short: Result<u32, SystemException> = object.call("plus", |_| Ok(()), |decoder| decoder.u32());
        assert_eq!(short.unwrap_err().kind, Kind::Marshal);
        let long: Result<u32, SystemException> =
            object.call("plus", |encoder| encoder.octets(&[0; 9000]), |decoder| decoder.u32());
        assert_eq!(long, Ok(9100));
        object.oneway("plus", |encoder| value.encode(encoder)).unwrap();
        let later =
            object.begin::<u32, SystemException>("plus", |encoder| value.encode(encoder), |decoder| decoder.u32());
        assert_eq!(call(&object, "plus", 1), Ok(101));
        assert_eq!(later.unwrap().collect(), Ok(100 + value));
    }
    server.shutdown();
}

#[test]
fn a_name_may_come_to_stand_for_another_object() {
    let server = fabric("named");
    server.root_poa().manager().activate().unwrap();
    let objects = [1, 2].map(|number| server.root_poa().activate::<Object>(Number(number)).unwrap());
    let name = format!("fabric-{}", std::process::id());
    server.name_key(&name, &objects[0]).unwrap();
    let mut ior = objects[0].ior().clone();
    let mut profile = sidestep_wire::ior::iiop::Repr::parse(&ior.profiles[0]).unwrap();
    profile.object_key = name.clone().into_bytes();
    ior.profiles[0] = profile.emit().unwrap();
    let object = Orb::builder().build().unwrap().string_to_object(&ior.to_string()).unwrap();
    assert_eq!((call(&object, "plus", 1), call(&object, "plus", 1)), (Ok(2), Ok(2)));
    server.name_key(&name, &objects[1]).unwrap();
    assert_eq!((call(&object, "plus", 1), call(&object, "plus", 1)), (Ok(3), Ok(3)));
    server.shutdown();
}
