//! Bytes that a program has not read, and that its peer has not sent anew in time, when it executes another one: that finds them
//! in a file of memory, at a number below the one where it looks for what it is given, and reads them before everything else.
//!
//! Nothing that is found there is trusted: it is a sealed file of memory, of this user or of root, of no more bytes than a
//! carrier and the kernel's buffers hold, and belongs to the socket whose cookie it names.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, memfd_create},
    io::{pread, write},
};
use sidestep_sys::lock::Mutex;
use sidestep_wire::cursor::little::{Reader, Writer};

use super::{drop_token, is_sole_holder, program::is_trusted};
use crate::{
    descriptors::numbers,
    kernel,
    processes::heirloom::Heirloom,
    promotion::leaving,
    streams::{Stream, lock},
};

/// What is left for the next program.
#[derive(Debug)]
struct Rest {
    stream: &'static Stream,
    bytes: Vec<u8>,
    number: i32,
}

static RESTS: Mutex<Vec<Rest>> = Mutex::new(Vec::new());

/// As many sockets have one.
const MOST: i32 = 64;
/// As many bytes: more than a carrier and the kernel's buffers hold.
const MOST_BYTES: usize = 16 << 20;
/// Two words before the bytes: what shows that this is such a file, and the cookie.
const HEAD: usize = 16;
const MARK: u64 = 0x7369_6465_7374_7201;

/// Before a program is executed: leaves it what was not read of these, as far as nobody else could read that.
pub fn leave(streams: &[&'static Stream]) {
    take_back();
    for stream in streams {
        let alone = |cookie: &u64| is_sole_holder(*cookie);
        let Some(cookie) = kernel::cookie(stream.fd()).ok().filter(alone) else { continue };
        if !leaving::has_rest(stream) {
            continue;
        }
        let bytes = leaving::take_rest(stream);
        if bytes.is_empty() {
            continue;
        }
        let mut rests = lock(&RESTS);
        match (1..=MOST).find_map(|below| place(cookie, &bytes, below)) {
            Some(number) => rests.push(Rest { stream, bytes, number }),
            None => keep(stream, &bytes),
        }
    }
}

/// The program was not executed after all: they are read here.
pub fn take_back() {
    for rest in std::mem::take(&mut *lock(&RESTS)) {
        drop_token(rest.number);
        keep(rest.stream, &rest.bytes);
    }
}

/// At the start of a program: the one before has left these for this socket.
pub fn adopt(stream: &Stream, cookie: u64) {
    let Some(highest) = numbers::handed_on() else { return };
    for number in (1..=MOST).map(|below| highest - below) {
        if let Some(bytes) = find(number, cookie) {
            let _ = kernel::close(number);
            keep(stream, &bytes);
        }
    }
}

fn keep(stream: &Stream, bytes: &[u8]) {
    // Without memory they are lost, as the program would be.
    if let Some(heirloom) = Heirloom::copy(bytes) {
        stream.inherit_bytes(heirloom);
    }
}

fn place(cookie: u64, bytes: &[u8], below: i32) -> Option<i32> {
    let number = numbers::handed_on()?.checked_sub(below).filter(|number| *number > 2)?;
    let file = memfd_create("sidestep-rest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?;
    let mut head = [0; HEAD];
    Writer::new(&mut head[..]).u64(MARK).u64(cookie);
    let all = [&head[..], bytes].concat();
    let mut done = 0;
    while done < all.len() {
        done += write(&file, &all[done..]).ok().filter(|count| *count > 0)?;
    }
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL).ok()?;
    let copy = kernel::copy_at(file.as_raw_fd(), number)?.into_raw_fd();
    let kept_open = kernel::control(copy, libc::F_SETFD, 0).is_ok();
    if !kept_open {
        drop_token(copy);
    }
    kept_open.then_some(copy)
}

fn find(number: i32, cookie: u64) -> Option<Vec<u8>> {
    let seals = kernel::control(number, libc::F_GET_SEALS, 0).ok()?;
    let sealed = (libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE) as usize;
    if seals & sealed != sealed {
        return None;
    }
    let file: OwnedFd = kernel::copy_high(number).ok().filter(is_trusted)?;
    let len = fstat(&file).ok()?.st_size as usize;
    let mut bytes = vec![0; Some(len).filter(|len| (HEAD..=HEAD + MOST_BYTES).contains(len))?];
    let mut done = 0;
    while done < len {
        done += pread(&file, &mut bytes[done..], done as u64).ok().filter(|count| *count > 0)?;
    }
    let mut head = Reader::new(&bytes[..HEAD]);
    let found = head.u64() == Ok(MARK) && head.u64() == Ok(cookie);
    drop_token(file.into_raw_fd());
    found.then(|| bytes.split_off(HEAD))
}
