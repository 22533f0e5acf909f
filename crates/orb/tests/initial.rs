//! How a broker begins: options of a command line, and the services that it knows from the start.

mod peer;

use peer::{Peer, seen_by, serve};
use sidestep_orb::naming::{NameServer, parse_name};
use sidestep_orb::{Completion, Kind, Orb, ResolveError, Stub};

fn arguments(of: &[&str]) -> Vec<String> {
    of.iter().map(|each| (*each).to_owned()).collect()
}

fn server() -> Orb {
    Orb::builder().tcp("127.0.0.1:0").build().unwrap()
}

/// What `HOST:PORT` an object is at.
fn address_of(peer: &Peer) -> String {
    let shown = format!("{:?}", peer.object());
    shown.rsplit("tcp:").next().unwrap().to_owned()
}

#[test]
fn options_are_taken_out_of_the_arguments() {
    let server = server();
    let (own, gate) = serve(&server);
    let path = std::env::temp_dir().join(format!("orb-init-{}", std::process::id()));
    let unix = format!("giop:unix:{}", path.display());
    let service = format!("Service={}", own.object().ior());
    let mut given = arguments(&[
        "program",
        "-ORBInitRef",
        &service,
        "--other",
        "-ORBendPoint",
        "giop:tcp:127.0.0.1:0",
        "-ORBendPoint",
        &unix,
        "-ORBclientCallTimeOutPeriod",
        "20",
        "last",
    ]);
    let orb = Orb::init(&mut given).unwrap();
    assert_eq!(given, ["program", "--other", "last"]);
    assert_eq!(orb.list_initial_services(), ["Service"]);
    let shown = format!("{orb:?}");
    assert!(shown.contains("tcp:127.0.0.1:") && shown.contains(&format!("unix:{}", path.display())), "{shown}");
    // Both are listened on, and the time is that of every call.
    let (other, _) = serve(&orb);
    let client = Orb::init(&mut Vec::new()).unwrap();
    seen_by(&client, &other).ping().unwrap();
    let peer: Peer = orb.resolve_initial_references("Service").unwrap().narrow().unwrap().unwrap();
    assert_eq!(peer.sleep(0), Err(Kind::Timeout.raised(Completion::Maybe)));
    gate.open();
    orb.shutdown();
    server.shutdown();
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for wrong in [
        &["-ORBInitRef"][..],
        &["-ORBInitRef", "NameService"],
        &["-ORBendPoint"],
        &["-ORBendPoint", "tcp:127.0.0.1:0"],
        &["-ORBendPoint", "giop:tcp:nowhere"],
        &["-ORBendPoint", "giop:unix:"],
        &["-ORBclientCallTimeOutPeriod", "soon"],
        &["-ORBclientCallTimeOutPeriod", "-1"],
    ] {
        assert!(Orb::init(&mut arguments(wrong)).is_err(), "{wrong:?}");
    }
}

#[test]
fn an_address_without_a_host_is_every_address() {
    let orb = Orb::init(&mut arguments(&["-ORBendPoint", "giop:tcp::0"])).unwrap();
    let (own, _) = serve(&orb);
    let port = address_of(&own).rsplit(':').next().unwrap().to_owned();
    orb.name_key("Peer", own.object()).unwrap();
    let client = Orb::builder().build().unwrap();
    let peer = client.string_to_object(&format!("corbaloc::127.0.0.1:{port}/Peer")).unwrap();
    Peer::from_object(peer).ping().unwrap();
    orb.shutdown();
}

#[test]
fn services_are_found_by_their_names() {
    let server = server();
    let (own, _) = serve(&server);
    let names = NameServer::start(&server).unwrap();
    names.root().bind(&parse_name("a.b").unwrap(), Some(own.object())).unwrap();
    server.name_key("Peer", own.object()).unwrap();
    let address = address_of(&own);
    let unknown = |orb: &Orb, name: &str| {
        let found = orb.resolve_initial_references(name);
        assert!(matches!(found, Err(ResolveError::InvalidName(ref of)) if of == name), "{found:?}");
    };
    // Told by name; the same through `corbaloc:rir:`, and names below it.
    let reference = format!("NameService={}", names.root().object().ior());
    let orb = Orb::init(&mut arguments(&["-ORBInitRef", &reference])).unwrap();
    let service = orb.resolve_initial_references("NameService").unwrap();
    assert_eq!(service.ior(), names.root().object().ior());
    for same in ["corbaloc:rir:/NameService", "corbaloc:rir:", "corbaname:rir:"] {
        assert_eq!(orb.string_to_object(same).unwrap().ior(), service.ior(), "{same}");
    }
    let found = orb.string_to_object("corbaname:rir:#a.b").unwrap();
    Peer::from_object(found).ping().unwrap();
    assert!(matches!(orb.string_to_object("corbaname:rir:#c"), Err(ResolveError::Naming(_))));
    unknown(&orb, "Trading");
    // By a prefix, of what was not told by name.
    let prefix = format!("corbaloc::{address}");
    let mut given = arguments(&["-ORBDefaultInitRef", &prefix, "-ORBInitRef", &reference]);
    let orb = Orb::init(&mut given).unwrap();
    let peer = orb.resolve_initial_references("Peer").unwrap();
    Peer::from_object(peer).ping().unwrap();
    assert_eq!(orb.resolve_initial_references("NameService").unwrap().ior(), service.ior());
    let nobody = orb.resolve_initial_references("Nobody").unwrap();
    assert_eq!(nobody.non_existent(), Ok(true));
    // By the program itself, which may change it.
    let orb = Orb::builder().initial_reference("Peer", "IOR:nonsense").build().unwrap();
    assert!(matches!(orb.resolve_initial_references("Peer"), Err(ResolveError::Malformed(_))));
    orb.register_initial_reference("Peer", own.object());
    assert_eq!(orb.resolve_initial_references("Peer").unwrap().ior(), own.object().ior());
    server.shutdown();
}

/// Names that stand for each other lead nowhere, and the search for them ends.
#[test]
fn names_that_go_in_a_circle_are_unknown() {
    let circle = ["-ORBInitRef", "A=corbaloc:rir:/B", "-ORBInitRef", "B=corbaloc:rir:/A"];
    let orb = Orb::init(&mut arguments(&circle)).unwrap();
    assert!(matches!(orb.resolve_initial_references("A"), Err(ResolveError::InvalidName(_))));
    assert!(matches!(orb.string_to_object("corbaname:rir:/B#name"), Err(ResolveError::InvalidName(_))));
    let orb = Orb::init(&mut arguments(&["-ORBDefaultInitRef", "corbaloc:rir:"])).unwrap();
    assert!(matches!(orb.resolve_initial_references("Peer"), Err(ResolveError::InvalidName(_))));
}
