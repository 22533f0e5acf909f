//! Who may change files through the module: its own user, root and those it was told of, as the kernel shows them.

mod site;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    thread,
};

use rustix::{process::Uid, thread::set_thread_uid};
use sidestep_cache::{
    Error, Module,
    module::{self, Author, Users},
};
use site::folder;

/// Two users without a name.
const USER: u32 = 65532;
const OTHER: u32 = 65533;

fn module_for(users: Users, folder: &Path) -> String {
    let module = Module::bind_for(users, folder, "127.0.0.1:0").unwrap();
    let address = module.address().unwrap().to_string();
    thread::spawn(move || module.serve());
    address
}

/// Does something in a thread that belongs to another user.
fn as_user<T: Send>(user: u32, act: impl FnOnce() -> T + Send) -> T {
    let other = || {
        set_thread_uid(Uid::from_raw(user)).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(other).join().unwrap())
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("left out: only root can act for another user");
    }
    root
}

#[test]
fn other_users_change_nothing() {
    if !is_root() {
        return;
    }
    let folder = folder("users");
    let module = module_for(Users::also(&[USER]), &folder);
    module::update(&module, "/a", b"one").unwrap();
    // Root's module is trusted by all: it is the module that refuses.
    for length in [3, 4 << 20] {
        let refused = as_user(OTHER, || module::update(&module, "/a", &vec![b'x'; length])).unwrap_err();
        assert!(matches!(&refused, Error::Refused(why) if why.contains("65533 may not")), "{length}: {refused}");
    }
    assert!(matches!(as_user(OTHER, || module::delete(&module, "/a")), Err(Error::Refused(_))));
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"one");
    as_user(USER, || module::update(&module, "/a", b"two")).unwrap();
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"two");
    as_user(USER, || module::delete(&module, "/a")).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
}

/// Whoever listens at the module's address is not sent files, unless it is the right user.
#[test]
fn a_module_of_another_user_is_sent_nothing() {
    if !is_root() {
        return;
    }
    let folder = folder("owner");
    fs::write(folder.join("a"), "one").unwrap();
    rustix::fs::chown(&folder, Some(Uid::from_raw(USER)), None).unwrap();
    // Its sockets are made by a thread of that user.
    let module = as_user(USER, || module_for(Users::default(), &folder));
    for change in [module::update(&module, "/a", b"two"), module::delete(&module, "/a")] {
        assert!(matches!(change, Err(Error::OtherUser { owner: USER, .. })), "{change:?}");
    }
    assert!(matches!(Author::new(&module, Some(OTHER)).delete("/a"), Err(Error::OtherUser { .. })));
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"one");
    Author::new(&module, Some(USER)).update("/a", b"two").unwrap();
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"two");
}

/// The TCP port, which any user of any host may reach, changes nothing.
#[test]
fn nothing_is_changed_over_tcp() {
    let folder = folder("tcp");
    fs::write(folder.join("a"), "one").unwrap();
    let module = module_for(Users::default(), &folder);
    for question in ["UPDATE /a 3\nnew", "DELETE /a\n", "POST / HTTP/1.1\r\nHost: x\r\n\r\nDELETE /a\n"] {
        let mut stream = TcpStream::connect(&module).unwrap();
        stream.write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        assert!(answer.starts_with("ERROR "), "{question:?}: {answer:?}");
    }
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"one");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}
