//! The manual pages of the C calls list every error that this crate can give to them.

use std::{collections::HashSet, fs, path::Path};

use sidestep_fabric::{self as fabric, CloseReason, Refusal, Rights};
use sidestep_shm as shm;

use super::Error;

/// Calls that make the stack if there is none yet.
const STACK: &[&str] = &["ss_queue_create", "ss_enable", "ss_register", "ss_progress"];
/// Operations on memory of the other end.
const REMOTE: &[&str] = &["ss_put", "ss_get", "ss_compare_swap", "ss_fetch_add", "ss_post_put", "ss_post_get"];
/// What is queued to be sent.
const SENT: &[&str] = &["ss_export", "ss_post_send", "ss_notify"];
/// Calls that take memory or descriptors of the system.
const MEMORY: &[&str] = &["ss_revoke", "ss_export", "ss_import"];
/// Calls that find out that the connection is over.
const CONNECTED: &[&str] = &["ss_enable", "ss_import", "ss_post_recv", "ss_fence", "completion"];

fn all(parts: &[&[&'static str]]) -> Vec<&'static str> {
    parts.concat()
}

/// The calls that an error comes from, as far as this crate makes it. No arm is for several: who adds an error says where it comes from.
fn given_by(error: &Error) -> Vec<&'static str> {
    match error {
        Error::NotConnected { .. }
        | Error::Elsewhere
        | Error::Unread
        | Error::Spent
        | Error::Unanswered
        | Error::Unproven
        | Error::Version
        | Error::Taken => all(&[&["ss_enable"]]),
        Error::Port(_) | Error::InPlace(_) => all(&[STACK]),
        // In C a child's table is empty: no number names what is the parent's.
        Error::Forked => Vec::new(),
        Error::Busy => all(&[&["ss_deregister"]]),
        Error::Rights { .. } => all(&[&["ss_export"]]),
        Error::OtherSocket => all(&[REMOTE]),
        Error::TooLong { .. } => all(&[&["ss_post_send", "completion"]]),
        Error::Full { .. } => all(&[SENT, &["ss_post_put", "ss_post_get", "ss_post_recv"]]),
        Error::Cancelled => all(&[&["completion"]]),
        Error::Fabric(error) => given_by_fabric(error),
    }
}

fn given_by_fabric(error: &fabric::Error) -> Vec<&'static str> {
    match error {
        fabric::Error::Cookie(Refusal::Rights { .. } | Refusal::Forged) => all(&[REMOTE, &["ss_import", "completion"]]),
        fabric::Error::Cookie(Refusal::Range { .. }) => all(&[REMOTE, &["completion"]]),
        fabric::Error::Cookie(_) => all(&[REMOTE, &["ss_import", "completion"]]),
        fabric::Error::Size { .. } => all(&[&["ss_register", "ss_import", "ss_post_put", "ss_post_get"]]),
        fabric::Error::Closed(_) => all(&[REMOTE, SENT, CONNECTED]),
        fabric::Error::TimedOut(_) => all(&[&["ss_import", "ss_enable"]]),
        fabric::Error::Full { .. } => all(&[REMOTE, &["completion"]]),
        fabric::Error::Unsupported(_) => all(&[REMOTE, &["ss_enable", "completion"]]),
        fabric::Error::Memory(shm::Error::Range { .. } | shm::Error::Size { .. }) => {
            all(&[REMOTE, &["ss_register", "ss_post_send", "ss_post_recv"]])
        }
        fabric::Error::Memory(shm::Error::System { .. } | shm::Error::Limit { .. }) => all(&[STACK, MEMORY]),
        fabric::Error::Memory(_) => all(&[REMOTE, SENT, CONNECTED]),
        fabric::Error::Flushed(_) => all(&[&["completion"]]),
        // They are asked again, or turned into another error.
        fabric::Error::Refused { .. } | fabric::Error::NobodyListens(_) => Vec::new(),
        // A peer can freeze a ring.
        _ => all(&[REMOTE, SENT, CONNECTED]),
    }
}

/// One of each kind, and of those whose number depends on what they hold one of each number.
fn examples() -> Vec<Error> {
    let system = |errno| shm::Error::from_errno("", rustix::io::Errno::from_raw_os_error(errno));
    let closes = [CloseReason::Peer, CloseReason::Died, CloseReason::Violation(""), CloseReason::Link("")];
    let fabric = closes.map(fabric::Error::Closed).into_iter().chain([
        fabric::Error::Cookie(Refusal::Rights { held: Rights::READ, wanted: Rights::WRITE }),
        fabric::Error::Cookie(Refusal::Forged),
        fabric::Error::Cookie(Refusal::Range { offset: 0, len: 1 }),
        fabric::Error::Cookie(Refusal::Revoked),
        fabric::Error::Size { what: "", must: "", value: 0 },
        fabric::Error::TimedOut(""),
        fabric::Error::Full { what: "", limit: 0 },
        fabric::Error::Unsupported(""),
        fabric::Error::Flushed(0),
        fabric::Error::Refused { private: Vec::new() },
        fabric::Error::NobodyListens(String::new()),
        fabric::Error::Frozen,
        fabric::Error::Memory(shm::Error::Size { what: "", must: "", value: 0 }),
        fabric::Error::Memory(shm::Error::Peer("")),
        fabric::Error::Memory(shm::Error::Foreign("")),
        fabric::Error::Memory(shm::Error::Held),
        fabric::Error::Memory(system(libc::EMFILE)),
        fabric::Error::Memory(system(libc::ENFILE)),
        fabric::Error::Memory(system(libc::ETOOMANYREFS)),
        fabric::Error::Memory(system(libc::ENOMEM)),
        fabric::Error::Memory(system(libc::ENOSPC)),
    ]);
    let connected = [libc::ENOTCONN, libc::ENOTSOCK, libc::EBADF, libc::EPROTONOSUPPORT];
    let connected = connected.map(|errno| Error::NotConnected { fd: 0, errno });
    fabric
        .map(Error::Fabric)
        .chain(connected)
        .chain([
            Error::Elsewhere,
            Error::Port(String::new()),
            Error::InPlace(String::new()),
            Error::Unread,
            Error::Spent,
            Error::Unanswered,
            Error::Unproven,
            Error::Version,
            Error::Taken,
            Error::Forked,
            Error::Busy,
            Error::Rights { held: Rights::READ, wanted: Rights::WRITE },
            Error::OtherSocket,
            Error::TooLong { len: 1, room: 0 },
            Error::Full { what: "", limit: 0 },
            Error::Cancelled,
        ])
        .collect()
}

/// The errors on the pages, as `CALL NUMBER`.
fn listed() -> HashSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/man/errors.txt");
    let text = fs::read_to_string(path).unwrap();
    let (mut calls, mut listed) = (Vec::new(), HashSet::new());
    for line in text.lines().take_while(|line| *line != "texts").filter(|line| !line.starts_with('#')) {
        match line.split_once(' ') {
            Some(("call", names)) => calls = names.split(' ').collect(),
            _ => {
                let number = line.split([' ', '-']).next().unwrap_or_default();
                listed.extend(calls.iter().map(|call| format!("{call} {number}")));
            }
        }
    }
    listed
}

#[test]
fn the_manual_lists_every_error_of_every_call() {
    let listed = listed();
    assert!(listed.contains("ss_deregister EBUSY"));
    let numbers = [
        (libc::EACCES, "EACCES"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::EBADF, "EBADF"),
        (libc::EBUSY, "EBUSY"),
        (libc::ECANCELED, "ECANCELED"),
        (libc::ECONNABORTED, "ECONNABORTED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::EINVAL, "EINVAL"),
        (libc::EIO, "EIO"),
        (libc::EMFILE, "EMFILE"),
        (libc::EMSGSIZE, "EMSGSIZE"),
        (libc::ENFILE, "ENFILE"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ENOTSOCK, "ENOTSOCK"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EPROTO, "EPROTO"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::ESTALE, "ESTALE"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
    ];
    for error in examples() {
        for call in given_by(&error) {
            let number = numbers.iter().find(|(number, _)| *number == error.errno());
            let (_, name) = number.unwrap_or_else(|| panic!("{error:?}: {}", error.errno()));
            assert!(listed.contains(&format!("{call} {name}")), "{call} can give {name} ({error:?})");
        }
    }
}
