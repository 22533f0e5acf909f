//! Bytes that a program has not read, and that its peer has not sent anew in time, when it executes or starts another one: that
//! finds them in shared memory, at a number below the one where it looks for what it is given, and reads them before everything
//! else. Whoever else holds the socket shares them with it ([`Heirloom`]).
//!
//! Nothing that is found there is trusted: it is a sealed file of memory, of this user or of root, of no more bytes than a
//! carrier and the kernel's buffers hold, and belongs to the socket whose cookie it names.

use std::{
    os::fd::{AsRawFd, IntoRawFd, OwnedFd},
    sync::Arc,
};

use rustix::fs::fstat;
use sidestep_sys::{descriptor, lock::Mutex};

use super::{drop_token, heirloom_words, is_sole_holder, program::is_trusted};
use crate::{
    descriptors::numbers,
    kernel,
    processes::heirloom::{self, Heirloom},
    promotion::leaving,
    streams::{Stream, lock},
};

/// What is left for the next program.
#[derive(Debug)]
struct Rest {
    stream: &'static Stream,
    bytes: Arc<Heirloom>,
    number: i32,
}

static RESTS: Mutex<Vec<Rest>> = Mutex::new(Vec::new());

/// As many sockets have one.
const MOST: i32 = 64;
/// As many bytes: more than a carrier and the kernel's buffers hold.
const MOST_BYTES: usize = 16 << 20;

/// Before a program is executed or started: leaves it what was not read of these.
pub fn leave(streams: &[&'static Stream]) {
    take_back();
    for stream in streams {
        let Ok(cookie) = kernel::cookie(stream.fd()) else { continue };
        let Some(bytes) = unread(stream, cookie) else { continue };
        let file = bytes.file(cookie);
        match file.and_then(|file| (1..=MOST).find_map(|below| place(&file, below))) {
            Some(number) => lock(&RESTS).push(Rest { stream, bytes, number }),
            None => stream.inherit_bytes(bytes),
        }
    }
}

/// The program was not executed after all, or runs in a child: they are read here, too.
pub fn take_back() {
    for rest in std::mem::take(&mut *lock(&RESTS)) {
        drop_token(rest.number);
        rest.stream.inherit_bytes(rest.bytes);
    }
}

/// At the start of a program: the one before has left these for this socket.
pub fn adopt(stream: &Stream, cookie: u64, tally: u32) {
    let Some(highest) = numbers::handed_on() else { return };
    let mut numbers = (1..=MOST).map(|below| highest - below);
    // The first one alone: this process's own copy of the descriptor may have a number below it.
    if let Some((number, bytes)) = numbers.find_map(|number| Some((number, find(number, cookie, tally)?))) {
        let _ = kernel::close(number);
        stream.inherit_bytes(bytes);
    }
}

/// Takes what was not read of a stream: what its holders share; or, if there is one, all that lies here.
fn unread(stream: &'static Stream, cookie: u64) -> Option<Arc<Heirloom>> {
    if !is_sole_holder(cookie) {
        return stream.lend_heirloom();
    }
    if !leaving::has_rest(stream) {
        return None;
    }
    let bytes = leaving::take_rest(stream);
    if bytes.is_empty() {
        return None;
    }
    let copy = Heirloom::copy(&bytes);
    if copy.is_none() {
        // Without memory they are read here, if anywhere.
        stream.reader().put_back(bytes);
    }
    copy
}

/// Puts them below the number where the next program looks.
fn place(file: &OwnedFd, below: i32) -> Option<i32> {
    let number = numbers::handed_on()?.checked_sub(below).filter(|number| *number > 2)?;
    let copy = kernel::copy_at(file.as_raw_fd(), number)?.into_raw_fd();
    let kept_open = kernel::control(copy, libc::F_SETFD, 0).is_ok();
    if !kept_open {
        drop_token(copy);
    }
    kept_open.then_some(copy)
}

fn find(number: i32, cookie: u64, tally: u32) -> Option<Arc<Heirloom>> {
    // Nothing but memory can be sealed. Whatever else has this number is not touched.
    kernel::control(number, libc::F_GET_SEALS, 0).ok().filter(|seals| *seals != 0)?;
    let file = kernel::copy_high(number).ok()?;
    let len = fstat(&file).map_or(0, |status| status.st_size as usize);
    let fits = is_trusted(&file) && (heirloom::HEAD..=heirloom::HEAD + MOST_BYTES).contains(&len);
    let copy = file.as_raw_fd();
    let attach = |file| Heirloom::attach(file, len, cookie, heirloom_words(tally));
    let found = Some(file).filter(|_| fits).and_then(attach);
    if found.is_none() {
        descriptor::closed(copy);
    }
    found
}
