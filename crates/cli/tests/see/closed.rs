//! Processes that the one who asks may not look into, and what is said of them; and subjects that are not what they seem.

use std::{
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    process::{Command, Output},
};

use sidestep_sockets::reason::Reason;

use super::{
    shown,
    stage::{SIDESTEP, Stage, program},
};

const USER: u32 = 65533;
const OTHER: u32 = 65532;

/// What `sidestep` answers to a user.
fn asked(stage: &Stage, user: u32, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(SIDESTEP);
    let Output { status, stdout, stderr } =
        command.args(arguments).env("SIDESTEP_DIR", &stage.0).uid(user).gid(user).output().expect("it runs");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Nobody but its user and root can know whether a process has the library: nothing else is said.
#[test]
fn of_processes_of_other_users_nothing_is_claimed() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("left out: only root can be another user");
    }
    let stage = Stage::new("foreign");
    let accelerated = stage.pair(&[], &["promoted"]);
    let mut command = Command::new(program());
    command.arg("promoted");
    let plain = stage.start(command);
    for pair in [&accelerated, &plain] {
        let port = format!(":{}", pair.port);
        for question in [&["why", &port][..], &["why", &pair.pid], &["why", &pair.pid, &pair.fd]] {
            let (answered, said) = asked(&stage, OTHER, question);
            assert!(said.contains("belongs to another user") && said.contains("root (0)"), "{question:?}: {said}");
            let is_remedied =
                said.contains("Ask as that user or as root") || said.contains("ask as that user or as root");
            assert!(is_remedied && !said.contains("NotLoad") && !said.contains("accelerated."), "{question:?}: {said}");
            assert_eq!(answered, question.len() == 2, "{said}");
        }
    }
    let (ordered, said) = asked(&stage, OTHER, &["off", &format!(":{}", accelerated.port)]);
    assert!(!ordered && said.contains("nothing was turned off: no program of this user"), "{said}");
    // Root is told which is which.
    assert!(stage.said(&["why", &format!(":{}", accelerated.port)]).contains(&shown(Reason::Promoted)));
    assert!(stage.said(&["why", &format!(":{}", plain.port)]).contains(&shown(Reason::NotLoaded)));
}

/// A program can keep its own user from looking into it.
#[test]
fn of_closed_processes_nothing_is_claimed() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("left out: only root can be another user");
    }
    let stage = Stage::new("closed");
    let mut command = Command::new(program());
    command.arg("closed").uid(USER).gid(USER);
    let closed = stage.start(command);
    let (answered, said) = asked(&stage, USER, &["why", &closed.pid]);
    assert!(answered && said.contains("does not let this user see") && said.contains("Ask as root."), "{said}");
    let (answered, said) = asked(&stage, USER, &["why", &closed.pid, &closed.fd]);
    assert!(!answered && said.contains("is closed to its own user: ask as root"), "{said}");
    let (answered, said) = asked(&stage, USER, &["why", &format!(":{}", closed.port)]);
    assert!(answered && said.contains("is in no process that can be looked into from here"), "{said}");
    assert!(stage.said(&["why", &closed.pid]).contains(&shown(Reason::NotLoaded)), "root can tell");
}

/// Threads of the kernel run no program.
#[test]
fn threads_of_the_kernel_load_nothing() {
    let is_shown = std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
    if !is_shown || !rustix::process::geteuid().is_root() {
        return eprintln!("left out: threads of the kernel are not shown here, or only root can look at them");
    }
    let said = Stage::new("kernel").said(&["why", "2"]);
    assert!(said.contains("is a thread of the kernel") && !said.contains("NotLoaded"), "{said}");
}

/// A connection that no program has accepted yet is in no process.
#[test]
fn connections_that_nobody_has_are_told() {
    let stage = Stage::new("waiting");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let end = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let own = end.local_addr().expect("an address");
    let said = stage.said(&["why", &own.to_string()]);
    let (_, of_listener) = said.split_once("a connection, ").expect(&said);
    assert!(of_listener.contains("has not been taken by its program yet"), "{said}");
}

/// Names of hosts, ports that look like processes, and what has no port.
#[test]
fn subjects_are_resolved_or_it_is_said_what_is_wanted() {
    let stage = Stage::new("subjects");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let said = stage.said(&["why", &format!("localhost:{port}")]);
    assert!(said.contains("which listens at 127.0.0.1:") && said.contains(&shown(Reason::NotLoaded)), "{said}");
    let failed = |arguments: &[&str]| {
        let output = stage.sidestep(arguments);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // Where no process has the number of the port.
    if std::fs::metadata(format!("/proc/{port}")).is_err() {
        let said = failed(&["why", &port.to_string()]);
        assert!(
            said.contains(&format!("there is no process {port}; for the port {port}, ask `sidestep why :{port}`")),
            "{said}"
        );
    }
    for (wrong, part) in [
        ("2147483646", "a port is written :2147483646"),
        ("127.0.0.1", "ADDRESS:PORT"),
        (":http", "1 to 65535"),
        ("localhost:http", "a number from 0 to 65535"),
        ("no-such-program", "a port :PORT"),
    ] {
        let said = failed(&["why", wrong]);
        assert!(said.contains(part), "{wrong}: {said}");
    }
    assert!(failed(&["stat", "--metrics", "9464"]).contains("HOST:PORT"));
}
