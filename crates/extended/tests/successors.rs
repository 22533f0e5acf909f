//! What becomes of extended sockets when their process forks or executes another program.

// It forks, as a program does.
#![allow(unsafe_code)]

mod pair;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use pair::{
    Provider,
    far::{End, connect, enabled, start},
    outcome_of,
    provider::{beside_the_stream, on_every_provider},
    soon, take,
};
use sidestep_extended::{Error, Kind, Piece, Remote, Result, Rights, Stack};
use sidestep_testkit::process::{self, Role};

#[test]
fn role() {
    process::enter(&[
        ("forks", forks),
        ("forks_twice", forks_twice),
        ("executes", executes),
        ("executes_nothing", executes_nothing),
    ]);
}

on_every_provider!(a_child_has_nothing_of_its_parents_and_disturbs_nothing, a_failed_exec_changes_nothing);

mod stream {
    use super::{
        Provider, a_child_extends_connections_of_its_own, beside_the_stream,
        exec_ends_the_extension_and_leaves_the_stream,
    };

    beside_the_stream!(a_child_extends_connections_of_its_own, exec_ends_the_extension_and_leaves_the_stream);
}

/// Does something in a forked child, and says whether it ended well.
fn in_child(act: impl FnOnce()) -> bool {
    // SAFETY: a role's process has no thread that holds a lock which the child could want: the others sleep in the fabric.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A panic ends the process (`process::enter`).
        act();
        // SAFETY: it ends the child, and runs nothing of the parent's.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is this function's own.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    ended == child && status == 0
}

/// Everything that a process does with extended sockets, and how it went.
fn all_calls(end: &End, remote: &Remote, pieces: &[Piece]) -> Vec<(&'static str, Result<()>)> {
    let (socket, stack, some) = (&end.socket, &end.stack, || pieces.to_vec());
    vec![
        ("get", socket.get(remote, 0, &mut [0; 8])),
        ("put", socket.put(remote, 8, &[7; 8])),
        ("compare_swap", socket.compare_swap(remote, 8, 0, 9).map(drop)),
        ("fetch_add", socket.fetch_add(remote, 8, 9).map(drop)),
        ("post_put", socket.post_put(remote, 8, some(), 1)),
        ("post_get", socket.post_get(remote, 8, some(), 1)),
        ("post_send", socket.post_send(some(), 1)),
        ("post_recv", socket.post_recv(some(), 1)),
        ("notify", socket.notify(1)),
        ("fence", socket.fence()),
        ("import", socket.import(Some(soon())).map(drop)),
        ("register", stack.register(4096, Rights::ALL).map(drop)),
        ("completion_queue", stack.completion_queue().map(drop)),
        ("enable", stack.enable(end.stream.as_fd(), &end.queue, soon()).map(drop)),
    ]
}

/// A child tries everything and drops everything; then the parent goes on.
fn forks(role: Role) {
    let end = enabled(&role);
    let remote = end.socket.import(Some(soon())).unwrap();
    let region = end.stack.register(4096, Rights::ALL).unwrap();
    end.socket.export(&region, Rights::ALL, 5).unwrap();
    end.socket.put(&remote, 0, &1u64.to_le_bytes()).unwrap();
    let pieces = [region.piece(0, 8).unwrap()];
    end.socket.post_recv(pieces.to_vec(), 1).unwrap();
    let mut all = Some((end, remote, region));
    let ended = in_child(|| {
        let (end, remote, region) = all.take().unwrap();
        for (call, outcome) in all_calls(&end, &remote, &pieces) {
            assert_eq!(outcome, Err(Error::Forked), "{call}");
        }
        assert_eq!(end.socket.export(&region, Rights::ALL, 6), Err(Error::Forked));
        end.stack.progress();
        // Also not what had come before.
        assert_eq!(end.queue.poll(&mut Vec::new(), 8), 0);
        assert_eq!(end.queue.wait(&mut Vec::new(), 8, Some(soon())), Err(Error::Forked));
        assert_eq!(end.queue.descriptor().map(drop), Err(Error::Forked));
        drop((end, remote, region));
    });
    assert!(ended, "the child");
    let (end, remote, _region) = all.take().unwrap();
    end.socket.put(&remote, 0, &2u64.to_le_bytes()).unwrap();
    end.socket.notify(2).unwrap();
    // The far end says that it has seen it.
    let told = take(&end.queue, 1);
    assert_eq!(outcome_of(&told[0]), (Kind::Receive, 1, Ok(8)));
}

fn a_child_has_nothing_of_its_parents_and_disturbs_nothing(provider: &Provider) {
    let (mut child, stream) = start(provider, "forks", &[]);
    let end = End::enable(stream, provider.stack());
    let region = end.stack.register(4096, Rights::ALL).unwrap();
    end.socket.export(&region, Rights::ALL, 1).unwrap();
    let theirs = end.socket.import(Some(soon())).unwrap();
    let notice = take(&end.queue, 1);
    assert_eq!(outcome_of(&notice[0]), (Kind::Notice, 2, Ok(0)), "nothing came of the child");
    let mut word = [0; 16];
    region.read(0, &mut word).unwrap();
    assert_eq!(u128::from_le_bytes(word), 2, "the child has put nothing");
    end.socket.put(&theirs, 8, &[3; 8]).unwrap();
    end.socket.post_send(vec![region.piece(0, 8).unwrap()], 3).unwrap();
    child.wait_success();
}

/// A child that has made a stack of its own, and a connection with it, beside those of its parent.
fn forks_twice(role: Role) {
    let end = enabled(&role);
    let remote = end.socket.import(Some(soon())).unwrap();
    let address = role.arguments[2].clone();
    let options = *end.stack.options();
    let ended = in_child(|| {
        let stream = TcpStream::connect(address).unwrap();
        let own = End::enable(stream, Stack::with(options).unwrap());
        let remote = own.socket.import(Some(soon())).unwrap();
        own.socket.put(&remote, 0, &7u64.to_le_bytes()).unwrap();
        own.socket.notify(7).unwrap();
        // It is dropped here: the other end hears the notice before the end.
    });
    assert!(ended, "the child");
    end.socket.put(&remote, 0, &8u64.to_le_bytes()).unwrap();
    end.socket.notify(8).unwrap();
}

fn a_child_extends_connections_of_its_own(provider: &Provider) {
    let listener: TcpListener = provider.listen();
    let (mut child, stream) = start(provider, "forks_twice", &[&listener.local_addr().unwrap().to_string()]);
    let stack = provider.stack();
    let serve = |stream, value: u64| {
        let end = End::enable(stream, stack.clone());
        let region = end.stack.register(4096, Rights::ALL).unwrap();
        end.socket.export(&region, Rights::ALL, 1).unwrap();
        (end, region, value)
    };
    let parent = serve(stream, 8);
    let child_of_it = serve(listener.accept().unwrap().0, 7);
    for (end, region, value) in [child_of_it, parent] {
        assert_eq!(outcome_of(&take(&end.queue, 1)[0]), (Kind::Notice, value, Ok(0)));
        let mut word = [0; 8];
        region.read(0, &mut word).unwrap();
        assert_eq!(u64::from_le_bytes(word), value);
    }
    child.wait_success();
}

/// Becomes a program that knows nothing of this, with the connection as its input and output.
fn executes(role: Role) {
    let mut end = enabled(&role);
    let region = end.stack.register(4096, Rights::READ).unwrap();
    end.socket.export(&region, Rights::READ, 1).unwrap();
    end.socket.notify(1).unwrap();
    // The other end has imported it.
    end.stream.read_exact(&mut [0]).unwrap();
    let [input, output] = [(); 2].map(|()| OwnedFd::from(end.stream.try_clone().unwrap()));
    let error = Command::new("cat").stdin(input).stdout(output).exec();
    panic!("cat: {error}");
}

fn exec_ends_the_extension_and_leaves_the_stream(provider: &Provider) {
    let (mut child, stream) = start(provider, "executes", &[]);
    let mut end = End::enable(stream, provider.stack());
    let remote = end.socket.import(Some(soon())).unwrap();
    let local = end.stack.register(4096, Rights::NONE).unwrap();
    end.socket.post_recv(vec![local.piece(0, 64).unwrap()], 2).unwrap();
    end.stream.write_all(b"x").unwrap();
    let told = take(&end.queue, 3);
    let told: Vec<_> = told.iter().map(outcome_of).collect();
    let reset = Err(libc::ECONNRESET);
    assert_eq!(told, [(Kind::Notice, 1, Ok(0)), (Kind::Receive, 2, reset), (Kind::Closed, 0, reset)]);
    assert_eq!(end.socket.get(&remote, 0, &mut [0; 8]).unwrap_err().errno(), libc::ECONNRESET);
    // The program that came after it has the stream.
    let mut echoed = [0; 5];
    end.stream.write_all(b"bytes").unwrap();
    end.stream.read_exact(&mut echoed).unwrap();
    assert_eq!(&echoed, b"bytes");
    end.stream.shutdown(std::net::Shutdown::Write).unwrap();
    child.wait_success();
}

/// A program that is not there cannot be executed: this one goes on.
fn executes_nothing(role: Role) {
    let (stream, options) = connect(&role);
    let end = End::enable(stream, Stack::with(options).unwrap());
    let remote = end.socket.import(Some(soon())).unwrap();
    let error = Command::new("/no/such/program").exec();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    end.socket.put(&remote, 0, &5u64.to_le_bytes()).unwrap();
    end.socket.notify(5).unwrap();
}

fn a_failed_exec_changes_nothing(provider: &Provider) {
    let (mut child, stream) = start(provider, "executes_nothing", &[]);
    let end = End::enable(stream, provider.stack());
    let region = end.stack.register(4096, Rights::ALL).unwrap();
    end.socket.export(&region, Rights::ALL, 1).unwrap();
    assert_eq!(outcome_of(&take(&end.queue, 1)[0]), (Kind::Notice, 5, Ok(0)));
    let mut word = [0; 8];
    region.read(0, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 5);
    child.wait_success();
}
