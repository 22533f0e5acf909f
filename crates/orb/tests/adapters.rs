//! Object adapters: policies, servants that come when they are called, and how objects end.

mod peer;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use peer::{Gate, Own, Peer, PeerSkeleton};
use sidestep_orb::{
    Call, Completion, Current, IdAssignment, IdUniqueness, Kind, Lifespan, ManagerState, Orb, Poa, PoaError, Policies,
    Refusal, RequestProcessing, Retention, Servant, ServantActivator, ServantLocator, Stub, SystemException,
};

fn server() -> Orb {
    Orb::builder().tcp("127.0.0.1:0").build().unwrap()
}

fn seen(object: &sidestep_orb::Object) -> Peer {
    let client = Orb::builder().build().unwrap();
    Peer::from_object(client.string_to_object(&object.ior().to_string()).unwrap())
}

const USER_IDS: Policies = Policies {
    lifespan: Lifespan::Transient,
    id_assignment: IdAssignment::User,
    id_uniqueness: IdUniqueness::Unique,
    retention: Retention::Retain,
    request_processing: RequestProcessing::ActiveObjectsOnly,
};

const PEER: &str = "IDL:sidestep.test/Types/Peer:1.0";

/// Answers `told` with the id of the object that was called.
struct WhoAmI;

impl Servant for WhoAmI {
    fn type_ids(&self) -> &'static [&'static str] {
        &[PEER]
    }

    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        let current = Current::get().ok_or(Kind::Internal.raised(Completion::No))?;
        let id = String::from_utf8_lossy(&current.object_id).into_owned();
        match call.operation() {
            "told" => call.reply(|encoder| encoder.string(&id)),
            "ping" => call.reply(|_| Ok(())),
            _ => Err(call.unknown_operation()),
        }
    }
}

#[test]
fn policies_that_contradict_each_other_are_refused() {
    let orb = server();
    let create = |policies| orb.root_poa().create_poa("child", policies, None);
    let forgetful = Policies { retention: Retention::NonRetain, ..Policies::default() };
    assert!(matches!(create(forgetful), Err(PoaError::InvalidPolicy(_))));
    let default_servant = Policies { request_processing: RequestProcessing::DefaultServant, ..Policies::default() };
    assert!(matches!(create(default_servant), Err(PoaError::InvalidPolicy(_))));
    create(USER_IDS).unwrap();
    assert_eq!(create(USER_IDS).unwrap_err(), PoaError::AdapterAlreadyExists("child".to_owned()));
    assert!(orb.root_poa().find_poa("child", false).is_ok());
    assert!(orb.root_poa().find_poa("other", true).is_err());
    orb.shutdown();
}

#[test]
fn ids_and_servants_are_unique_where_they_have_to_be() {
    let orb = server();
    let poa = orb.root_poa().create_poa("child", USER_IDS, None).unwrap();
    let servant: Arc<dyn Servant> = Arc::new(WhoAmI);
    poa.activate_object_with_id(b"one", servant.clone()).unwrap();
    assert_eq!(
        poa.activate_object_with_id(b"one", Arc::new(PeerSkeleton(Own::new()))),
        Err(PoaError::ObjectAlreadyActive)
    );
    assert_eq!(poa.activate_object_with_id(b"two", servant.clone()), Err(PoaError::ServantAlreadyActive));
    assert!(matches!(poa.activate_object(servant.clone()), Err(PoaError::WrongPolicy(_))));
    assert_eq!(poa.servant_to_id(&servant).unwrap(), b"one");
    let object = poa.id_to_reference(b"one").unwrap();
    assert_eq!(poa.reference_to_id(&object).unwrap(), b"one");
    assert_eq!(orb.root_poa().reference_to_id(&object), Err(PoaError::WrongAdapter));
    poa.deactivate_object(b"one").unwrap();
    assert_eq!(poa.deactivate_object(b"one"), Err(PoaError::ObjectNotActive));
    poa.activate_object_with_id(b"two", servant).unwrap();
    orb.shutdown();
}

#[test]
fn managers_decide_what_gets_through() {
    let orb = server();
    let poa = orb.root_poa().create_poa("child", USER_IDS, None).unwrap();
    poa.activate_object_with_id(b"one", Arc::new(WhoAmI)).unwrap();
    let peer = seen(&poa.id_to_reference(b"one").unwrap());
    assert_eq!(poa.manager().state(), ManagerState::Holding);
    let held = peer.begin_told().unwrap();
    assert!(!held.is_ready());
    poa.manager().activate().unwrap();
    assert_eq!(held.collect().as_deref(), Ok("one"));
    poa.manager().discard_requests().unwrap();
    assert_eq!(peer.ping().unwrap_err().kind, Kind::Transient);
    poa.manager().activate().unwrap();
    peer.ping().unwrap();
    poa.manager().deactivate();
    assert_eq!(peer.ping().unwrap_err().kind, Kind::ObjAdapter);
    assert!(poa.manager().activate().is_err());
    orb.shutdown();
}

#[test]
fn a_request_that_is_held_does_not_keep_the_broker_alive() {
    let orb = server();
    let poa = orb.root_poa().create_poa("child", USER_IDS, None).unwrap();
    poa.activate_object_with_id(b"one", Arc::new(WhoAmI)).unwrap();
    let peer = seen(&poa.id_to_reference(b"one").unwrap());
    let held = peer.begin_told().unwrap();
    assert!(!held.is_ready());
    orb.shutdown();
    orb.run();
    assert!(held.collect().is_err());
}

#[test]
fn persistent_references_outlive_their_process() {
    let policies = Policies { lifespan: Lifespan::Persistent, ..USER_IDS };
    let start = |address: &str| {
        let orb = Orb::builder().tcp(address).build().unwrap();
        let poa = orb.root_poa().create_poa("lasting", policies, None).unwrap();
        poa.activate_object_with_id(b"one", Arc::new(WhoAmI)).unwrap();
        poa.manager().activate().unwrap();
        orb.root_poa().manager().activate().unwrap();
        let transient: Peer = orb.root_poa().activate(PeerSkeleton(Own::new())).unwrap();
        (poa.id_to_reference(b"one").unwrap(), transient, orb)
    };
    let (lasting, transient, first) = start("127.0.0.1:0");
    let (lasting, transient) = (seen(&lasting), seen(transient.object()));
    lasting.ping().unwrap();
    transient.ping().unwrap();
    let shown = format!("{:?}", lasting.object());
    let address = shown.rsplit("tcp:").next().unwrap().to_owned();
    first.shutdown();
    let (_, _, second) = start(&address);
    assert_eq!(lasting.told().as_deref(), Ok("one"));
    assert_eq!(transient.ping().unwrap_err().kind, Kind::ObjectNotExist);
    second.shutdown();
}

#[test]
fn a_default_servant_serves_every_object() {
    let orb = server();
    let policies = Policies {
        id_uniqueness: IdUniqueness::Multiple,
        request_processing: RequestProcessing::DefaultServant,
        ..USER_IDS
    };
    let poa = orb.root_poa().create_poa("child", policies, None).unwrap();
    poa.manager().activate().unwrap();
    let object = |id: &str| seen(&poa.create_reference_with_id(id.as_bytes(), PEER).unwrap());
    assert_eq!(object("a").told().unwrap_err().kind, Kind::ObjAdapter);
    poa.set_servant(Arc::new(WhoAmI)).unwrap();
    assert_eq!(object("a").told().as_deref(), Ok("a"));
    assert_eq!(object("b").told().as_deref(), Ok("b"));
    orb.shutdown();
}

/// Makes servants, and counts them.
#[derive(Default)]
struct Maker {
    made: AtomicUsize,
    taken_back: Mutex<Vec<(Vec<u8>, bool)>>,
    gate: Arc<Gate>,
}

impl ServantActivator for Maker {
    fn incarnate(&self, id: &[u8], _: &Poa) -> Result<Arc<dyn Servant>, Refusal> {
        if id == b"refused" {
            return Err(Kind::NoPermission.raised(Completion::No).into());
        }
        self.made.fetch_add(1, Ordering::SeqCst);
        let mut own = Own::new();
        own.gate = self.gate.clone();
        Ok(Arc::new(PeerSkeleton(own)))
    }

    fn etherealize(&self, id: &[u8], _: &Poa, _: Arc<dyn Servant>, cleanup: bool, remaining: bool) {
        assert!(!remaining);
        self.taken_back.lock().unwrap().push((id.to_vec(), cleanup));
    }
}

#[test]
fn an_activator_makes_servants_and_takes_them_back() {
    let orb = server();
    let policies = Policies { request_processing: RequestProcessing::ServantManager, ..USER_IDS };
    let poa = orb.root_poa().create_poa("child", policies, None).unwrap();
    let maker = Arc::new(Maker::default());
    poa.set_servant_activator(maker.clone()).unwrap();
    poa.manager().activate().unwrap();
    let object = |id: &[u8]| seen(&poa.create_reference_with_id(id, PEER).unwrap());
    let peer = object(b"one");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| object(b"one").ping().unwrap());
        }
    });
    assert_eq!((maker.made.load(Ordering::SeqCst), peer.calls().unwrap()), (1, 4));
    assert_eq!(object(b"refused").ping().unwrap_err().kind, Kind::NoPermission);
    // An object that is deactivated while it serves is taken back when it is done.
    let busy = peer.begin_sleep(0).unwrap();
    while maker.gate.waiting() == 0 {
        std::thread::yield_now();
    }
    poa.deactivate_object(b"one").unwrap();
    assert!(maker.taken_back.lock().unwrap().is_empty());
    maker.gate.open();
    busy.collect().unwrap();
    while maker.taken_back.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(object(b"one").calls().unwrap(), 0);
    object(b"two").ping().unwrap();
    poa.destroy(true);
    let mut taken_back = maker.taken_back.lock().unwrap().clone();
    taken_back.sort();
    assert_eq!(taken_back, [(b"one".to_vec(), false), (b"one".to_vec(), true), (b"two".to_vec(), true)]);
    assert_eq!(object(b"two").ping().unwrap_err().kind, Kind::ObjectNotExist);
    orb.shutdown();
}

#[derive(Default)]
struct Finder(Mutex<Vec<String>>);

impl ServantLocator for Finder {
    fn preinvoke(&self, _: &[u8], _: &Poa, operation: &str) -> Result<Arc<dyn Servant>, Refusal> {
        self.0.lock().unwrap().push(format!("before {operation}"));
        Ok(Arc::new(WhoAmI))
    }

    fn postinvoke(&self, _: &[u8], _: &Poa, operation: &str, _: Arc<dyn Servant>) {
        self.0.lock().unwrap().push(format!("after {operation}"));
    }
}

#[test]
fn a_locator_is_asked_at_every_request() {
    let orb = server();
    let policies =
        Policies { retention: Retention::NonRetain, request_processing: RequestProcessing::ServantManager, ..USER_IDS };
    let poa = orb.root_poa().create_poa("child", policies, None).unwrap();
    let finder = Arc::new(Finder::default());
    poa.set_servant_locator(finder.clone()).unwrap();
    assert!(poa.set_servant_activator(Arc::new(Maker::default())).is_err());
    assert!(poa.activate_object_with_id(b"one", Arc::new(WhoAmI)).is_err());
    poa.manager().activate().unwrap();
    let object = poa.create_reference_with_id(b"one", PEER).unwrap();
    // Within the process, so that the reply comes after `postinvoke`.
    let peer = Peer::from_object(object);
    assert_eq!(peer.told().as_deref(), Ok("one"));
    peer.ping().unwrap();
    assert_eq!(*finder.0.lock().unwrap(), ["before told", "after told", "before ping", "after ping"]);
    orb.shutdown();
}

#[test]
fn adapters_are_made_when_they_are_asked_for() {
    let orb = server();
    let policies = Policies { lifespan: Lifespan::Persistent, ..USER_IDS };
    let first = orb.root_poa().create_poa("folder", policies, None).unwrap();
    let object = seen(&first.create_reference_with_id(b"one", PEER).unwrap());
    first.destroy(false);
    assert_eq!(object.ping().unwrap_err().kind, Kind::ObjectNotExist);
    orb.root_poa().set_adapter_activator(move |parent, name| {
        let Ok(poa) = parent.create_poa(name, policies, None) else { return false };
        poa.activate_object_with_id(b"one", Arc::new(WhoAmI)).is_ok() && poa.manager().activate().is_ok()
    });
    assert_eq!(object.told().as_deref(), Ok("one"));
    orb.shutdown();
}
