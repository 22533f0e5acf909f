//! Programs that this process executes or starts, or has been executed as: sockets go with them, and what is known of those.
//!
//! The next program is a holder of its own, *expected* until it says that it is there: one that does not run under the library
//! never does, and nobody sees when it ends. What it is given is the open file that has its byte of the table locked, at a
//! descriptor number that depends on nothing but a limit which programs inherit. The position of that open file says which
//! holder it is, and in which process. All else is in the table.
//!
//! Nothing that is found there is trusted: it is a sealed file of memory of the right length and layout, of this user or of
//! root, in the name of this very process, and a socket is taken for the one of a record by its SO_COOKIE.

use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, IntoRawFd, OwnedFd},
    sync::atomic::Ordering::Relaxed,
};

use rustix::fs::{OFlags, fstat};
use sidestep_sys::{descriptor, lock::Mutex, process, procfs, user};

use super::{EXPECTED, SELF, TABLE, TOKEN, Table, UNKNOWN, claim, drop_token, given_away, known, list, myself, rest};
use crate::{
    descriptors::{numbers, table},
    kernel,
    streams::{READ, Stream, WRITE, lock},
};

/// Where a program is about to be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this process, in place of the present program.
    Here,
    /// In a child, whose number is not known before (`posix_spawn`, `system`, `popen`).
    Child,
}

/// A program that is about to be executed.
#[derive(Debug)]
struct Next {
    place: Place,
    holder: u64,
    token: i32,
    /// The sockets that it will have, and is listed for.
    cookies: Vec<u64>,
}

static NEXT: Mutex<Option<Next>> = Mutex::new(None);

/// Bits of the position that are the holder's number; those above are the process's.
const NUMBER_BITS: u32 = 40;
/// Among the bits of the number: the process is the parent of the one that is meant.
const OF_PARENT: u64 = 1 << (NUMBER_BITS - 1);

/// Before this process executes or starts a program that will have these streams, all of which are on TCP. Under the lock of the
/// descriptors. There is one place for what a program is given: while another thread starts one, this one's is not listed.
pub fn hand_on(streams: &[&Stream], place: Place) {
    let starts = lock(&NEXT).as_ref().is_some_and(|next| next.place == Place::Child);
    if !starts {
        take_back();
    }
    if streams.is_empty() {
        return;
    }
    let me = myself();
    let mut next = if me == UNKNOWN || starts { None } else { expect(place) };
    for stream in streams {
        let Ok(cookie) = kernel::cookie(stream.fd()) else { continue };
        let listed = match (&mut next, stream.carried_before_program()) {
            (Some(next), Some(former)) if list(cookie, me) && list(cookie, next.holder | EXPECTED) => {
                next.cookies.push(cookie);
                stream.count_in_family(cookie);
                note_former(cookie, former)
            }
            _ => false,
        };
        if !listed {
            given_away(cookie);
        }
    }
    if !starts {
        *lock(&NEXT) = next;
    }
}

/// A child has been started: it alone has what was opened for it.
pub fn started() {
    let next = lock(&NEXT).take();
    next.into_iter().for_each(|next| drop_token(next.token));
}

/// The program was not executed after all: the sockets are this process's.
pub fn take_back() {
    let Some(next) = lock(&NEXT).take() else { return };
    if let Some(table) = known() {
        next.cookies.iter().for_each(|cookie| table.strike(*cookie, next.holder | EXPECTED));
    }
    drop_token(next.token);
}

/// A holder to be, and its open file where the next program looks for it.
fn expect(place: Place) -> Option<Next> {
    let (holder, token) = claim()?;
    let copy = numbers::handed_on().and_then(|number| kernel::copy_at(token, number));
    drop_token(token);
    let token = copy?.into_raw_fd();
    let of_parent = if place == Place::Child { OF_PARENT } else { 0 };
    let position = (i64::from(kernel::process()) << NUMBER_BITS) | (holder | of_parent) as i64;
    let placed = kernel::seek_to(token, position).is_ok() && kernel::control(token, libc::F_SETFD, 0).is_ok();
    if !placed {
        drop_token(token);
    }
    placed.then_some(Next { place, holder, token, cookies: Vec::new() })
}

fn note_former(cookie: u64, former: [u64; 2]) -> bool {
    let Some((table, tally)) = known().and_then(|table| Some((table, table.tally(cookie)?))) else { return false };
    [READ, WRITE].iter().for_each(|direction| table.set_former(tally, *direction, former[*direction]));
    true
}

/// At the start of a program: the sockets that it was executed with are streams, if the program before has said what it knew.
pub fn adopt() {
    let Some((found, holder, token)) = find() else { return };
    if TABLE.set(Some(found)).is_err() {
        return drop_token(token);
    }
    SELF.store(holder, Relaxed);
    TOKEN.store(token, Relaxed);
    let Some(custody) = known() else { return };
    let _change = table::change();
    let mut adopted: BTreeMap<u64, &'static Stream> = BTreeMap::new();
    for fd in numbers::open() {
        let Some(cookie) = kernel::cookie(fd).ok().filter(|_| kernel::is_tcp(fd)) else { continue };
        if let Some(stream) = adopted.get(&cookie) {
            if table::put_stream(fd, stream) {
                stream.add_number(fd);
            }
        } else if custody.places(cookie).any(|place| place.replace(holder | EXPECTED, holder))
            && let Some(tally) = custody.tally(cookie)
            && let Some(stream) = table::new_stream()
        {
            stream.adopt(fd, tally, [READ, WRITE].map(|direction| custody.former(tally, direction)));
            rest::adopt(stream, cookie, tally);
            match table::put_stream(fd, stream) {
                true => drop(adopted.insert(cookie, stream)),
                false => table::recycle_stream(stream),
            }
        }
    }
}

/// What the program before has left for this one.
fn find() -> Option<(Table, u64, i32)> {
    let number = numbers::handed_on()?;
    // Nothing but memory can be sealed. Whatever else has this number is not touched.
    kernel::control(number, libc::F_GET_SEALS, 0).ok().filter(|seals| *seals != 0)?;
    let position = kernel::seek_by(number, 0).ok()?;
    let holder = position as u64 & (OF_PARENT - 1);
    let named = if position as u64 & OF_PARENT == 0 { kernel::process() } else { kernel::parent() };
    if position >> NUMBER_BITS != i64::from(named) || process::is_privileged() {
        return None;
    }
    numbers::choose();
    let token = kernel::copy_high(number).ok()?;
    let table = is_trusted(&token).then(|| procfs::open_again(&token, OFlags::RDWR | OFlags::CLOEXEC).ok()).flatten();
    let table = table.and_then(|file| Table::attach(descriptor::keep(file)));
    let found = table.filter(|table| table.has_given_out(holder) && kernel::lock_byte(token.as_raw_fd(), holder));
    match found {
        Some(table) => {
            let _ = kernel::close(number);
            Some((table, holder, token.into_raw_fd()))
        }
        None => {
            drop_token(token.into_raw_fd());
            None
        }
    }
}

/// Whether a file is this user's, or root's.
pub(super) fn is_trusted(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|status| status.st_uid == 0 || Some(status.st_uid) == user::own())
}
