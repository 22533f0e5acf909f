use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use super::*;

/// Tests that count or limit the descriptors of the process must not overlap with those that open some.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How many descriptors of this process refer to the same file as `fd`: a leak count that other tests
/// cannot disturb.
fn copies(fd: BorrowedFd<'_>) -> usize {
    let wanted = rustix::fs::fstat(fd).unwrap();
    (0..1024)
        .filter(|&raw| {
            // SAFETY: only asked for its identity; a number that is not open gives EBADF.
            let candidate = unsafe { BorrowedFd::borrow_raw(raw) };
            rustix::fs::fstat(candidate)
                .is_ok_and(|found| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino))
        })
        .count()
}

fn file() -> OwnedFd {
    crate::memfd::create_sealed("passed", 4096).unwrap()
}

/// Asks again for a while: a process that another test starts has copies of all descriptors until its exec,
/// so what was closed here may be open a moment longer.
fn eventually(what: impl Fn() -> bool) -> bool {
    (0..2000).any(|_| {
        let done = what();
        if !done {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        done
    })
}

fn closed(lifeline: &Lifeline) -> bool {
    lifeline.receive(&mut [0; 16], &mut Vec::new()).unwrap() == Received::Closed
}

fn welcome(rendezvous: &Rendezvous) -> Lifeline {
    match rendezvous.accept(|_| true).unwrap() {
        Accepted::Peer(lifeline) => lifeline,
        other => panic!("{other:?}"),
    }
}

fn unique(tag: &str) -> String {
    format!("test-{}-{tag}", std::process::id())
}

#[test]
fn messages_and_descriptors_arrive_together() {
    let _alone = alone();
    let (a, b) = Lifeline::pair().unwrap();
    let passed = file();
    assert!(a.send(b"first", &[]).unwrap());
    let parts = [IoSlice::new(b"sec"), IoSlice::new(b""), IoSlice::new(b"ond")];
    assert!(a.send_parts(&parts, &[passed.as_fd(), passed.as_fd()]).unwrap());
    assert!(a.send(b"third", &[]).unwrap());

    let mut buffer = [0; 64];
    let mut descriptors = Vec::new();
    assert_eq!(b.receive(&mut buffer, &mut descriptors).unwrap(), Received::Message(5));
    assert_eq!((&buffer[..5], descriptors.len()), (&b"first"[..], 0));
    assert_eq!(b.receive(&mut buffer, &mut descriptors).unwrap(), Received::Message(6));
    assert_eq!((&buffer[..6], descriptors.len()), (&b"second"[..], 2));
    for descriptor in &descriptors {
        crate::memfd::check_received(descriptor.as_fd(), 4096).unwrap();
        let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    assert_eq!(b.receive(&mut buffer, &mut descriptors).unwrap(), Received::Message(5));
    assert_eq!(descriptors.len(), 2, "the third message carried none");
    assert_eq!(b.receive(&mut buffer, &mut descriptors).unwrap(), Received::Empty);
    assert_eq!(copies(passed.as_fd()), 3);
    drop(descriptors);
    assert!(eventually(|| copies(passed.as_fd()) == 1));
}

#[test]
fn eight_descriptors_pass_and_nine_are_refused_by_the_sender() {
    let _alone = alone();
    let (a, b) = Lifeline::pair().unwrap();
    let passed = file();
    let nine = [passed.as_fd(); 9];
    assert!(matches!(a.send(b"x", &nine), Err(Error::Size { value: 9, .. })));
    assert!(a.send(b"x", &nine[..8]).unwrap());
    let mut descriptors = Vec::new();
    assert_eq!(b.receive(&mut [0; 8], &mut descriptors).unwrap(), Received::Message(1));
    assert_eq!(descriptors.len(), 8);
}

#[test]
fn a_hostile_message_is_refused_and_leaks_nothing() {
    let _alone = alone();
    let (a, b) = Lifeline::pair().unwrap();
    let passed = file();
    let mut descriptors = vec![file()];

    assert!(a.send(b"longer than the buffer", &[passed.as_fd()]).unwrap());
    assert!(matches!(b.receive(&mut [0; 4], &mut descriptors), Err(Error::Peer(_))));

    for count in [9, 10, 11, 12, 100, 253] {
        let many = vec![passed.as_fd(); count];
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
        rustix::net::sendmsg(&a, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        assert!(matches!(b.receive(&mut [0; 4], &mut descriptors), Err(Error::Peer(_))), "{count}");
    }
    assert_eq!(descriptors.len(), 1, "what the caller had stays");
    assert!(eventually(|| copies(passed.as_fd()) == 1));
    assert!(a.send(b"fine", &[]).unwrap());
    assert_eq!(b.receive(&mut [0; 4], &mut descriptors).unwrap(), Received::Message(4));
}

#[test]
fn a_full_descriptor_table_is_our_limit_and_not_the_peers_fault() {
    let _alone = alone();
    // In a process of its own: the limit counts for every thread.
    if std::env::var_os("SIDESTEP_TEST_FULL_TABLE").is_none() {
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["a_full_descriptor_table_is_our_limit", "--test-threads=1"])
            .env("SIDESTEP_TEST_FULL_TABLE", "1")
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(done.success());
        return;
    }
    let (a, b) = Lifeline::pair().unwrap();
    let passed = file();
    assert!(a.send(b"x", &[passed.as_fd(); 4]).unwrap());
    let next = rustix::io::dup(&passed).unwrap();
    let limit = rustix::process::Rlimit { current: Some(next.as_raw_fd() as u64 + 2), maximum: Some(64) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut descriptors = Vec::new();
    assert_eq!(b.receive(&mut [0; 4], &mut descriptors).unwrap(), Received::Stripped(1));
    assert!(descriptors.is_empty() && eventually(|| copies(passed.as_fd()) == 2));
}

#[test]
fn empty_messages_and_buffers_are_refused() {
    let (a, b) = Lifeline::pair().unwrap();
    assert!(matches!(a.send(b"", &[]), Err(Error::Size { .. })));
    assert!(matches!(a.send_parts(&[], &[]), Err(Error::Size { .. })));
    assert!(matches!(b.receive(&mut [], &mut Vec::new()), Err(Error::Size { .. })));
}

#[test]
fn a_full_lifeline_would_block() {
    let (a, b) = Lifeline::pair().unwrap();
    let mut sent = 0;
    while a.send(&[7; 512], &[]).unwrap() {
        sent += 1;
    }
    assert!(sent > 0);
    assert_eq!(b.receive(&mut [0; 512], &mut Vec::new()).unwrap(), Received::Message(512));
    let mut received = 1;
    while b.receive(&mut [0; 512], &mut Vec::new()).unwrap() != Received::Empty {
        received += 1;
    }
    assert_eq!(sent, received);
    assert!(a.send(&[7; 512], &[]).unwrap());
}

#[test]
fn the_end_comes_after_the_last_message() {
    let (a, b) = Lifeline::pair().unwrap();
    assert!(b.send(b"never read", &[]).unwrap());
    assert!(a.send(b"goodbye", &[]).unwrap());
    drop(a); // With an unread message: a reset, reported ahead of the goodbye.
    let mut hangup = [rustix::event::PollFd::new(&b, rustix::event::PollFlags::empty())];
    rustix::event::poll(&mut hangup, None).unwrap();
    assert_eq!(b.receive(&mut [0; 16], &mut Vec::new()).unwrap(), Received::Message(7));
    assert!(closed(&b));
    assert!(closed(&b), "and stays so");
    let refused = b.send(b"x", &[]).unwrap_err();
    assert!(matches!(refused, Error::System { source: Errno::PIPE | Errno::CONNRESET, .. }), "{refused}");
}

#[test]
fn the_death_of_a_process_is_seen() {
    let (ours, theirs) = Lifeline::pair().unwrap();
    let theirs = theirs.into_fd();
    let mut child = Command::new("sleep").arg("1000").stdin(Stdio::from(theirs)).spawn().unwrap();
    assert_eq!(ours.receive(&mut [0; 16], &mut Vec::new()).unwrap(), Received::Empty);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(eventually(|| closed(&ours)));
}

#[test]
fn processes_meet_by_name() {
    let name = unique("meet");
    assert!(matches!(Lifeline::connect(&name, |_| true), Err(Error::NobodyListens(found)) if found == name));
    let rendezvous = Rendezvous::listen(&name).unwrap();
    assert!(matches!(Rendezvous::listen(&name), Err(Error::NameTaken(found)) if found == name));
    assert!(matches!(rendezvous.accept(|_| true).unwrap(), Accepted::Nobody));
    let client = Lifeline::connect(&name, |_| true).unwrap();
    let server = welcome(&rendezvous);
    assert!(client.send(b"hello", &[]).unwrap());
    assert_eq!(server.receive(&mut [0; 16], &mut Vec::new()).unwrap(), Received::Message(5));
    assert!(server.send(b"hello", &[]).unwrap());
    assert_eq!(client.receive(&mut [0; 16], &mut Vec::new()).unwrap(), Received::Message(5));

    let own = Credentials { pid: std::process::id(), uid: own_uid(), gid: rustix::process::getegid().as_raw() };
    assert_eq!(server.peer().unwrap(), own);
    assert_eq!(client.peer().unwrap(), own);

    drop(rendezvous);
    assert!(eventually(|| matches!(Lifeline::connect(&name, |_| true), Err(Error::NobodyListens(_)))));
    assert!(client.send(b"still there", &[]).unwrap());
    assert!(eventually(|| Rendezvous::listen(&name).is_ok()));
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let long = "n".repeat(108);
    assert!(matches!(Lifeline::connect(&long, |_| true), Err(Error::Size { .. })));
    assert!(matches!(Rendezvous::listen(&long), Err(Error::Size { .. })));
    assert!(matches!(Rendezvous::listen(""), Err(Error::Size { .. })));
    let room = 107 - format!("sidestep-fabric/{}/", own_uid()).len();
    let unique = unique("");
    let longest = format!("{unique}{}", "n".repeat(room - unique.len()));
    Rendezvous::listen(&longest).unwrap();
    assert!(matches!(Rendezvous::listen(&format!("{longest}n")), Err(Error::Size { .. })));
}

#[test]
fn descriptors_are_close_on_exec_and_do_not_block() {
    let name = unique("flags");
    let (a, b) = Lifeline::pair().unwrap();
    let rendezvous = Rendezvous::listen(&name).unwrap();
    let client = Lifeline::connect(&name, |_| true).unwrap();
    let server = welcome(&rendezvous);
    for fd in [a.as_fd(), b.as_fd(), client.as_fd(), server.as_fd(), rendezvous.as_fd()] {
        assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        assert!(rustix::fs::fcntl_getfl(fd).unwrap().contains(rustix::fs::OFlags::NONBLOCK));
    }
    // The flag of the descriptor is not what keeps the calls from blocking.
    rustix::io::ioctl_fionbio(&a, false).unwrap();
    assert_eq!(a.receive(&mut [0; 1], &mut Vec::new()).unwrap(), Received::Empty);
    let again = Lifeline::from_fd(a.into_fd());
    assert!(b.send(b"x", &[]).unwrap());
    assert_eq!(again.receive(&mut [0; 1], &mut Vec::new()).unwrap(), Received::Message(1));
}

#[test]
fn both_sides_know_the_number_of_a_lifeline() {
    let _alone = alone();
    let name = unique("numbers");
    let rendezvous = Rendezvous::listen(&name).unwrap();
    let callers: Vec<Lifeline> = (0..3).map(|_| Lifeline::connect(&name, |_| true).unwrap()).collect();
    let numbers: Vec<_> = callers.iter().map(|caller| caller.caller().unwrap()).collect();
    for number in &numbers {
        assert_eq!(welcome(&rendezvous).caller(), Some(*number));
    }
    // The name is taken for as long as its lifeline lives.
    let thief = socket().unwrap();
    let taken = SocketAddrUnix::new_abstract_name(caller_name(numbers[0]).as_bytes()).unwrap();
    assert_eq!(rustix::net::bind(&thief, &taken), Err(Errno::ADDRINUSE));
}

#[test]
fn numbers_that_are_written_in_another_way_are_none() {
    let _alone = alone();
    let name = unique("odd-numbers");
    let rendezvous = Rendezvous::listen(&name).unwrap();
    for odd in ["sidestep-caller/+00000000000000a", "sidestep-caller/000000000000000A", "sidestep-caller/a", "other"] {
        let caller = socket().unwrap();
        let odd = format!("{odd}{}", if odd == "other" { unique("x") } else { String::new() });
        rustix::net::bind(&caller, &SocketAddrUnix::new_abstract_name(odd.as_bytes()).unwrap()).unwrap();
        rustix::net::connect(&caller, &address(&name).unwrap()).unwrap();
        assert_eq!(welcome(&rendezvous).caller(), None, "{odd}");
    }
}

/// Where the kernel can keep descriptors out, none can be sent to a process that has not looked at its sender.
#[test]
fn descriptors_are_let_in_after_a_look_at_their_sender() {
    let _alone = alone();
    let name = unique("rights");
    let rendezvous = Rendezvous::listen(&name).unwrap();
    let (early, late) = (Lifeline::connect(&name, |_| true).unwrap(), Lifeline::connect(&name, |_| true).unwrap());
    let passed = file();
    let sent = early.send(b"x", &[passed.as_fd()]);
    if rendezvous.guarded {
        assert!(matches!(sent, Err(Error::System { source: Errno::PERM, .. })), "{sent:?}");
    }
    assert!(matches!(rendezvous.accept(|_| false).unwrap(), Accepted::Refused));
    let server = welcome(&rendezvous);
    assert!(late.send(b"x", &[passed.as_fd()]).unwrap());
    let mut descriptors = Vec::new();
    assert_eq!(server.receive(&mut [0; 4], &mut descriptors).unwrap(), Received::Message(1));
    assert_eq!(descriptors.len(), 1);
}

#[test]
fn an_empty_message_with_descriptors_is_a_fault() {
    let _alone = alone();
    let (a, b) = Lifeline::pair().unwrap();
    let passed = file();
    let mut space = [MaybeUninit::uninit(); CONTROL_SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [passed.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    rustix::net::sendmsg(&a, &[IoSlice::new(b"")], &mut control, SendFlags::DONTWAIT).unwrap();
    assert!(matches!(b.receive(&mut [0; 4], &mut Vec::new()), Err(Error::Peer(_))));
    assert!(eventually(|| copies(passed.as_fd()) == 1));
}

#[test]
fn the_end_of_a_named_lifeline_is_told_from_an_empty_message() {
    let _alone = alone();
    let name = unique("end");
    let rendezvous = Rendezvous::listen(&name).unwrap();
    let caller = Lifeline::connect(&name, |_| true).unwrap();
    let server = welcome(&rendezvous);
    rustix::net::send(&caller, b"", SendFlags::empty()).unwrap();
    drop(caller);
    assert!(matches!(server.receive(&mut [0; 4], &mut Vec::new()), Err(Error::Peer(_))));
    assert!(server.wary.load(Ordering::Relaxed));
    // A lifeline is closed elsewhere, too.
    assert!(eventually(|| closed(&server)));
    assert!(!server.wary.load(Ordering::Relaxed));
}
