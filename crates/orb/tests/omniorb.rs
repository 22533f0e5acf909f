//! Calls to and from omniORB: every type as in, out, inout and result, exceptions, oneway, any, forwarding and naming.
//!
//! The peer is `omniorb/peer.cc`. Without omniidl and a C++ compiler these tests say that they are left out.

mod peer;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use peer::elsewhere::elsewhere;
use peer::foreign::exercise_byte_order;
use peer::{Peer, exercise_anys, exercise_calls, exercise_types, exercise_wide, serve};
use sidestep_orb::cdr::WChar;
use sidestep_orb::naming::{NameServer, cos_naming::NamingContext, parse_name, resolve};
use sidestep_orb::{Completion, Kind, Orb, Stub, Version};

/// The peer, built once for all tests; `None` if the tools are missing.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (idl, code) = (sources.join("types.idl"), sources.join("omniorb/peer.cc"));
    // One folder for each state of the sources, so that it is built once and not for every process.
    let state = [&idl, &code].map(|path| std::fs::read(path).expect("a source")).concat();
    let hash = state
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("omniorb-{hash:016x}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("peer");
    // Other test processes may be building it at this moment.
    let lock = std::fs::File::create(folder.join("lock")).expect("a lock");
    lock.lock().expect("a lock");
    if program.exists() {
        return Some(program);
    }
    let idl_compiled = Command::new("omniidl").args(["-bcxx", "-Wba"]).arg(&idl).current_dir(&folder).output();
    let Ok(idl_compiled) = idl_compiled else {
        eprintln!("left out: omniidl is not installed");
        return None;
    };
    assert!(idl_compiled.status.success(), "{}", String::from_utf8_lossy(&idl_compiled.stderr));
    let built = Command::new("c++")
        .args(["-O0", "-I."])
        .arg("-o")
        .arg(folder.join("peer.new"))
        .arg(&code)
        .args(["typesSK.cc", "typesDynSK.cc", "-lomniORB4", "-lomniDynamic4", "-lomnithread"])
        .current_dir(&folder)
        .output();
    let Ok(built) = built else {
        eprintln!("left out: there is no C++ compiler");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::rename(folder.join("peer.new"), &program).expect("renamed");
    Some(program)
}

/// A running peer.
struct Omni {
    child: Child,
    references: Vec<String>,
}

impl Omni {
    /// Starts the peer; with a target it also has an object that passes calls on, before the one that is elsewhere.
    fn start(options: &[&str], target: Option<&Peer>) -> Option<Self> {
        let mut command = Command::new(program()?);
        command.args(options).stdout(Stdio::piped()).env("OMNIORB_CONFIG", "/dev/null");
        command.args(target.map(|target| target.object().ior().to_string()));
        let mut child = command.spawn().expect("the peer");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let count = 2 + usize::from(target.is_some());
        let references: Vec<_> = lines.take(count).map(|line| line.expect("a reference")).collect();
        assert_eq!(references.len(), count, "the peer ended");
        Some(Self { child, references })
    }

    fn peer(&self, orb: &Orb, which: usize) -> Peer {
        let object = orb.string_to_object(&self.references[which]).expect("a reference");
        object.narrow().expect("reachable").expect("a Peer")
    }
}

impl Drop for Omni {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LOOPBACK: [&str; 2] = ["-ORBendPoint", "giop:tcp:127.0.0.1:"];

fn exercise(peer: &Peer) {
    exercise_types(peer);
    exercise_wide(peer);
    exercise_anys(peer);
    exercise_calls(peer);
}

fn server() -> Orb {
    Orb::builder().tcp("127.0.0.1:0").build().unwrap()
}

#[test]
fn we_call_omniorb_and_omniorb_calls_us() {
    let orb = server();
    let (own, _) = serve(&orb);
    let Some(omni) = Omni::start(&LOOPBACK, Some(&own)) else { return };
    exercise(&omni.peer(&orb, 0));
    exercise(&omni.peer(&orb, 1));
    exercise_byte_order(&omni.peer(&orb, 0));
    orb.shutdown();
}

#[test]
fn omniorb_calls_us_in_older_versions() {
    let orb = server();
    let (own, _) = serve(&orb);
    for version in ["1.0", "1.1"] {
        let options = [LOOPBACK[0], LOOPBACK[1], "-ORBmaxGIOPVersion", version];
        let Some(omni) = Omni::start(&options, Some(&own)) else { return };
        let proxy = omni.peer(&orb, 1);
        exercise_calls(&proxy);
        exercise_types(&proxy);
        exercise_anys(&proxy);
    }
    orb.shutdown();
}

#[test]
fn we_call_omniorb_in_older_versions() {
    let Some(omni) = Omni::start(&LOOPBACK, None) else { return };
    let older = |version| Orb::builder().giop(version).tcp("127.0.0.1:0").build().unwrap();
    for version in [Version::V1_0, Version::V1_1] {
        let orb = older(version);
        let peer = omni.peer(&orb, 0);
        exercise_types(&peer);
        exercise_anys(&peer);
        exercise_calls(&peer);
        orb.shutdown();
    }
}

/// Either of us sends calls elsewhere: to the target of the proxy, to its own object, and to objects of the other one.
#[test]
fn calls_are_sent_elsewhere_both_ways() {
    for version in ["1.2", "1.1", "1.0"] {
        let (orb, far) = (server(), server());
        let (own, _) = serve(&far);
        let options = [LOOPBACK[0], LOOPBACK[1], "-ORBmaxGIOPVersion", version];
        // They send us to an object of their own, and to one of ours.
        let Some(omni) = Omni::start(&options, None) else { return };
        follow(&omni, &orb, 1, version);
        let omni = Omni::start(&options, Some(&own)).unwrap();
        follow(&omni, &orb, 2, version);
        // We send them to an object of ours, and to one of theirs; they ask where it is before the first call.
        let theirs = omni.peer(&orb, 0);
        for to in [own.object(), theirs.object()] {
            let object = Peer::from_object(elsewhere(&orb, to));
            let omni = Omni::start(&options, Some(&object)).unwrap();
            exercise_calls(&omni.peer(&orb, 1));
        }
        orb.shutdown();
        far.shutdown();
    }
}

/// Calls of every kind to an object that is elsewhere.
fn follow(omni: &Omni, orb: &Orb, which: usize, version: &str) {
    let again = || Peer::from_object(orb.string_to_object(&omni.references[which]).unwrap());
    exercise_calls(&again());
    let peer = again();
    let deferred = peer.begin_a_long(5, 0).unwrap().collect().map(|(result, ..)| result);
    match version {
        "1.2" => assert_eq!(deferred, Ok(5)),
        // What was written behind one header does not fit behind another: the next call goes there.
        _ => assert_eq!(deferred, Err(Kind::Transient.raised(Completion::No))),
    }
    assert_eq!(peer.begin_a_long(6, 0).unwrap().collect().unwrap().0, 6);
    // omniORB says that it has such an object, and only a call learns more.
    assert_eq!(again().object().locate(), Ok(true));
}

/// omniORB does not agree on code sets before GIOP 1.2, also not with itself.
#[test]
fn omniorb_takes_no_wide_text_in_older_versions() {
    let orb = Orb::builder().build().unwrap();
    let options = [LOOPBACK[0], LOOPBACK[1], "-ORBmaxGIOPVersion", "1.1"];
    let Some(old) = Omni::start(&options, None) else { return };
    let old = old.peer(&orb, 0);
    let Some(new) = Omni::start(&LOOPBACK, Some(&old)) else { return };
    let (wide, narrow) = (WChar('ß'), "narrow");
    assert_eq!(old.a_wchar(wide, wide).unwrap_err().kind, Kind::BadParam);
    assert_eq!(new.peer(&orb, 1).a_wchar(wide, wide).unwrap_err().kind, Kind::InvObjref);
    old.a_string(narrow, narrow).unwrap();
}

#[test]
fn unix_sockets_are_shared_with_omniorb() {
    let path = std::env::temp_dir().join(format!("sidestep-omni-{}", std::process::id()));
    let orb = Orb::builder().unix(path.to_str().unwrap()).build().unwrap();
    let (own, _) = serve(&orb);
    let theirs = path.with_extension("omni");
    let end_point = format!("giop:unix:{}", theirs.display());
    let Some(omni) = Omni::start(&["-ORBendPoint", &end_point], Some(&own)) else { return };
    exercise_calls(&omni.peer(&orb, 0));
    exercise_calls(&omni.peer(&orb, 1));
    orb.shutdown();
}

#[test]
fn the_death_of_omniorb_is_a_broken_connection() {
    let Some(mut omni) = Omni::start(&LOOPBACK, None) else { return };
    let orb = Orb::builder().build().unwrap();
    let peer = omni.peer(&orb, 0);
    let waiting = peer.begin_sleep(60_000).unwrap();
    omni.child.kill().unwrap();
    assert_eq!(waiting.collect().unwrap_err().kind, Kind::CommFailure);
    // Its listening socket may be closed later than its connections.
    omni.child.wait().unwrap();
    assert_eq!(peer.ping().unwrap_err().kind, Kind::Transient);
}

#[test]
fn their_naming_service_knows_our_objects() {
    let Some(_) = program() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let port = sidestep_testkit::ports::free_port();
    let end_point = format!("giop:tcp:127.0.0.1:{port}");
    let mut command = Command::new("omniNames");
    command.args(["-start", &port.to_string(), "-always", "-logdir"]).arg(&folder);
    command.args(["-ORBendPoint", &end_point]).env("OMNIORB_CONFIG", "/dev/null");
    let Ok(mut names) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        eprintln!("left out: omniNames is not installed");
        return;
    };
    let orb = server();
    let (own, _) = serve(&orb);
    let service = orb.string_to_object(&format!("corbaname::127.0.0.1:{port}")).unwrap();
    let context = NamingContext::from_object(service.clone());
    while service.non_existent() != Ok(false) {
        assert_eq!(names.try_wait().unwrap(), None, "omniNames ended");
        std::thread::yield_now();
    }
    context.bind_new_context(&parse_name("folder").unwrap()).unwrap();
    context.bind(&parse_name("folder/peer.test").unwrap(), Some(own.object())).unwrap();
    let found = orb.string_to_object(&format!("corbaname::127.0.0.1:{port}#folder/peer.test")).unwrap();
    Peer::from_object(found).ping().unwrap();
    assert!(resolve(&service, "folder/other").is_err());
    let (bindings, rest) = context.list(10).unwrap();
    assert_eq!((bindings.len(), rest), (1, None));
    names.kill().unwrap();
    names.wait().unwrap();
    orb.shutdown();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn our_naming_service_serves_their_client() {
    let Some(_) = program() else { return };
    let orb = server();
    let (own, _) = serve(&orb);
    let names = NameServer::start(&orb).unwrap();
    names.root().bind(&parse_name("a.b").unwrap(), Some(own.object())).unwrap();
    let reference = names.root().object().ior().to_string();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("nameclt");
        command.env("OMNIORB_CONFIG", "/dev/null").args(["-ior", &reference]).args(arguments);
        command.output().ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(listed) = run(&["list"]) else {
        eprintln!("left out: nameclt is not installed");
        return;
    };
    assert!(listed.contains("a.b"), "{listed}");
    run(&["bind_new_context", "folder"]);
    run(&["bind", "folder/peer", &own.object().ior().to_string()]);
    let found = resolve(names.root().object(), "folder/peer").unwrap();
    Peer::from_object(found).ping().unwrap();
    assert!(run(&["resolve", "folder/peer"]).unwrap().contains("IOR:"));
    run(&["remove_object", "folder/peer"]);
    run(&["unbind", "folder/peer"]);
    assert!(resolve(names.root().object(), "folder/peer").is_err());
    orb.shutdown();
}
