//! What people see of programs under Sidestep, and do to them: `stat`, `why`, `doctor`, `top`, metrics, `off`, `tap`.

mod closed;
mod doctor;
mod hostile;
mod many;
mod members;
mod metrics;
mod reasons;
mod stage;
mod tap;
mod terminal;
mod turn;

use std::{
    collections::HashSet,
    fs,
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread,
};

use serde_json::Value;
use sidestep_sockets::reason::Reason;

use stage::{Pair, SIDESTEP, Stage, Two, library, program, static_program, wait_until};
use terminal::Terminal;

#[test]
fn stat_shows_both_ends_of_a_promoted_connection() {
    let stage = Stage::new("stat");
    let pair = stage.pair(&[], &["promoted"]);
    let sockets = stage.sockets(&[&pair.pid]);
    assert_eq!(sockets.len(), 2, "{sockets:?}");
    for socket in &sockets {
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a number in {socket}"));
        assert_eq!(
            (&socket["reads_from"], &socket["writes_to"], &socket["carrier"]),
            (&"ring".into(), &"ring".into(), &"ring".into())
        );
        assert_eq!((&socket["reason"], number(&socket["promotions"])), (&"Promoted".into(), 2), "{socket}");
        assert_eq!((number(&socket["read"]["waiting"]), number(&socket["written"]["waiting"])), (0, 0), "{socket}");
        assert!(number(&socket["read"]["capacity"]) >= 16 << 10 && number(&socket["age_ns"]) > 0, "{socket}");
        assert_eq!(number(&socket["peer"]["pid"]).to_string(), pair.pid, "{socket}");
    }
    let totals: Value = serde_json::from_str(stage.said(&["stat", "--json", "--totals"]).trim()).expect("one object");
    assert_eq!((&totals["sockets"], &totals["promoted_ever"]), (&2.into(), &2.into()), "{totals}");
    let table = stage.said(&["stat", "--sort", "bytes"]);
    assert!(table.contains("PROGRAM") && table.contains("promoted") && table.contains("CARRIED"), "{table}");
    assert_eq!(stage.sockets(&["--filter", &format!("fd={}", pair.fd)]).len(), 1);
    assert_eq!(stage.sockets(&["--filter", "path=tcp"]).len(), 0);
    assert_eq!(stage.sockets(&["--watch=0.1", "--count", "3"]).len(), 6);
    let wrong = stage.sidestep(&["stat", "--filter", "colour=red"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

/// The kernel is told that the registry is only read.
#[test]
fn stat_attaches_the_registry_for_reading_alone() {
    let stage = Stage::new("read-only");
    let _pair = stage.pair(&[], &["promoted"]);
    let log = stage.0.join("calls");
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=shmat,shmget,shmctl", "-o"]).arg(&log).args([SIDESTEP, "stat"]);
    let Ok(output) = command.env("SIDESTEP_DIR", &stage.0).output() else { return eprintln!("left out: no strace") };
    let calls = fs::read_to_string(&log).expect("a log");
    if !output.status.success() || calls.contains("ptrace") {
        return eprintln!("left out: strace may not trace");
    }
    let attached: Vec<&str> = calls.lines().filter(|line| line.contains("shmat(")).collect();
    assert!(!attached.is_empty() && attached.iter().all(|line| line.contains("SHM_RDONLY")), "{calls}");
    assert!(!calls.contains("shmget("), "nothing is made: {calls}");
}

/// Every state of the program has its reason, which `why` and `stat` name.
#[test]
fn why_names_the_reason() {
    let stage = Stage::new("why");
    let states = [
        ("promoted", Reason::Promoted),
        ("young", Reason::Young),
        ("option", Reason::Option),
        ("demoted", Reason::Demoted),
        ("holder", Reason::OtherHolder),
        ("foreign", Reason::ForeignBytes),
        ("passed", Reason::Passed),
        ("overflow", Reason::Overflow),
        ("sandbox", Reason::Sandboxed),
        ("standard", Reason::Standard),
    ];
    for (state, reason) in states {
        let pair = stage.pair(&[], &[state]);
        expect(&stage, &pair, reason);
    }
    for options in [["--rule", "deny:all"], ["--promote", "never"]] {
        expect(&stage, &stage.pair(&options, &["promoted"]), Reason::Rule);
    }
    if let Some(pair) = uring(&stage) {
        expect(&stage, &pair, Reason::UnseenWaits);
    }
}

/// A reason that is added is a reason to add a test: one that expects it by its name in code.
#[test]
fn every_reason_has_a_test() {
    let tests = [
        include_str!("main.rs"),
        include_str!("closed.rs"),
        include_str!("reasons.rs"),
        include_str!("turn.rs"),
        include_str!("../socket_limits.rs"),
    ]
    .concat();
    assert_eq!(unexpected(&tests), [], "no test produces these");
    // It sees one that is missing, whatever else is called so.
    for reason in Reason::ALL {
        let name = format!("Reason::{}", reason.name());
        let without = tests.replace(&name, "") + &format!("\n// {name}\n{name}s; \"{}\"", reason.name());
        assert_eq!(unexpected(&without), [*reason]);
    }
}

/// The reasons that code does not name.
fn unexpected(code: &str) -> Vec<Reason> {
    let lines = code.lines().filter_map(|line| line.split("//").next());
    let words: HashSet<&str> =
        lines.flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric() && letter != ':')).collect();
    let is_named = |reason: &Reason| words.contains(format!("Reason::{}", reason.name()).as_str());
    Reason::ALL.iter().copied().filter(|reason| !is_named(reason)).collect()
}

/// How `why` shows a reason.
fn shown(reason: Reason) -> String {
    format!("{:<10} {} (", "reason", reason.name())
}

fn expect(stage: &Stage, pair: &Pair, reason: Reason) {
    let said = stage.said(&["why", &pair.pid, &pair.fd]);
    assert!(said.contains(&shown(reason)), "not {reason:?}:\n{said}\n{}", stage.said(&["stat"]));
    assert!(said.contains("to change ") && said.contains("other end "), "{said}");
    let of_address = stage.said(&["why", &format!(":{}", pair.port)]);
    assert!(of_address.contains(&format!("descriptor {},", pair.fd)), "{of_address}");
}

/// A program with an io_uring, where the kernel lets it have one.
fn uring(stage: &Stage) -> Option<Pair> {
    let allowed = Command::new(program()).arg("uring").stdin(Stdio::null()).output().expect("it runs").status.success();
    if !allowed {
        eprintln!("left out: the kernel has no io_uring for this user");
    }
    allowed.then(|| stage.pair(&[], &["uring"]))
}

/// A server that does not run under Sidestep: its clients are told so, and it is, too.
#[test]
fn why_knows_programs_that_are_not_under_sidestep() {
    let stage = Stage::new("plain");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut bytes = [0; 64];
            while stream.read_exact(&mut bytes).and_then(|()| stream.write_all(&bytes)).is_ok() {}
        }
    });
    let pair = stage.pair(&[], &["peer", &port]);
    expect(&stage, &pair, Reason::PeerUnknown);
    let own = std::process::id().to_string();
    let said = stage.said(&["why", &pair.pid, &pair.fd]);
    assert!(said.contains(&format!("({own}), which does not run under Sidestep")), "{said}");
    let said = stage.said(&["why", &own]);
    assert!(said.contains("does not run under Sidestep") && said.contains(&shown(Reason::NotLoaded)), "{said}");

    // Started in another way, listening.
    let mut command = Command::new(program());
    command.arg("promoted");
    let plain = stage.start(command);
    let said = stage.said(&["why", &plain.pid, &plain.listener]);
    assert!(said.contains(&shown(Reason::NotLoaded)) && said.contains("listens at"), "{said}");
    let said = stage.said(&["why", &format!("127.0.0.1:{}", plain.port)]);
    assert!(said.contains(&shown(Reason::NotLoaded)), "{said}");
    let said = stage.said(&["why", &plain.pid, "0"]);
    assert!(said.contains(&shown(Reason::SocketType)), "{said}");

    // One with a value that is not allowed.
    let mut command = Command::new(program());
    command.arg("promoted").env("LD_PRELOAD", library()).env("SIDESTEP_CARRIER", "pigeon");
    let wrong = stage.start(command);
    let said = stage.said(&["why", &wrong.pid, &wrong.fd]);
    assert!(said.contains(&shown(Reason::WrongOption)) && said.contains("SIDESTEP_CARRIER=pigeon"), "{said}");

    // One that meets others elsewhere, where nothing but its directory keeps it from being seen.
    let (elsewhere, listening) = (Stage::new("elsewhere"), stage.pair(&[], &["young"]));
    let said = elsewhere.said(&["why", &listening.pid, &listening.fd]);
    assert!(said.contains("another directory") && said.contains("the same --directory"), "{said}");
    // One that has written over its environment, as Redis does, shows no directory.
    let titled = stage.pair(&[], &["titled"]);
    let said = stage.said(&["why", &titled.pid, &titled.listener]);
    assert!(said.contains("are accelerated") && !said.contains("another directory"), "{said}");
    let said = stage.said(&["why", &listening.pid, &listening.listener]);
    assert!(said.contains("are accelerated") && !said.contains("Young"), "{said}");

    // What does not run, what cannot, and what is not there.
    assert!(stage.said(&["why", "sha256sum"]).contains("could be accelerated"));
    let fixed = static_program();
    let said = stage.said(&["why", fixed.to_str().expect("a path of letters")]);
    assert!(said.contains(&shown(Reason::NotLoadable)) && said.contains("is statically linked"), "{said}");
    for nothing in [&["why", "no-such-program"][..], &["why", "2147483646", "3"], &["why", &own, "99999"]] {
        let output = stage.sidestep(nothing);
        assert_eq!(output.status.code(), Some(1), "{nothing:?}: {output:?}");
    }
}

/// As in `sidestep why PROGRAM | head -1`.
#[test]
fn tools_end_quietly_when_nobody_reads() {
    for tool in [&["why", "sh"][..], &["doctor"], &["stat"], &["completions", "bash"], &["bench", "list"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(SIDESTEP);
        let output = command.args(tool).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{tool:?}");
    }
}

/// In a real terminal of 80 columns and 24 lines.
#[test]
fn top_works_in_a_terminal() {
    let stage = Stage::new("top");
    let pair = stage.pair(&[], &["promoted"]);
    let Some(terminal) = Terminal::start(&stage, 80, 24, "top --interval 0.2") else { return };
    let shown = terminal.wait_for("2 sockets of 1 processes, 2 on carriers");
    assert!(shown.contains(&pair.pid) && shown.contains("Promoted") && shown.contains("q quit"), "{shown}");
    terminal.press(&["h"]);
    terminal.wait_for("type a filter");
    terminal.press(&["h"]);
    terminal.press(&["/fd=1", "Enter"]);
    terminal.wait_for("0 sockets of 0 processes");
    terminal.press(&["q"]);
    terminal.wait_for_end();
}

/// In a wide terminal of 160 columns and 50 lines, where bytes move all the time: each line has bars of what it moved lately.
#[test]
fn top_shows_what_moved_lately() {
    let stage = Stage::new("lately");
    let two = Two::start(&stage, &[], "duplex");
    let Some(terminal) = Terminal::start(&stage, 160, 50, "top --interval 0.1") else { return };
    terminal.wait_for("LAST LOOKS");
    wait_until("bars in its line", || {
        let screen = terminal.screen();
        let mut lines = screen.lines();
        lines.any(|line| line.contains(&two.server) && line.contains('█') && line.contains("promoted"))
    });
    terminal.press(&["p"]);
    let screen = terminal.wait_for("BY CARRIER");
    assert!(screen.lines().any(|line| line.contains(&two.server) && line.contains('█')), "{screen}");
    terminal.press(&["q"]);
    terminal.wait_for_end();
    two.end();
}

/// In a terminal `stat` shows the columns that there is room for, and all of them where it is asked to, or printed to a file.
#[test]
fn stat_fits_into_a_terminal() {
    let stage = Stage::new("width");
    let pair = stage.pair(&[], &["promoted"]);
    let heads = ["LOCAL", "SLEEPS", "MSGS IN", "UNREAD", "PROM"];
    assert!(heads.iter().all(|head| stage.said(&["stat"]).contains(head)));
    for (columns, arguments, fits) in [(80, "", 0), (120, "", 2), (250, "", 5), (80, "--wide ", 5)] {
        let Some(terminal) = Terminal::start(&stage, columns, 30, &format!("stat --watch=0.2 {arguments}")) else {
            return;
        };
        let screen = terminal.wait_for("MESSAGES");
        assert!(screen.contains(&pair.pid), "{screen}");
        let found = heads.iter().filter(|head| screen.replace('\n', "").contains(*head)).count();
        assert!(found >= fits && (fits > 0 || found <= 1), "{found} of {heads:?} in {columns}:\n{screen}");
        let line = screen.lines().find(|line| line.contains(&pair.pid)).expect("a line");
        assert!(!arguments.is_empty() || line.ends_with("promoted"), "{screen}");
    }
}
