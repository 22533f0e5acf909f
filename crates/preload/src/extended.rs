//! The calls of `sidestep.h`: extended sockets for C programs. What each does is said there.
//!
//! Memory of the program is read and written through a buffer of this thread, never by a Rust reference: it may be a registered
//! region, which peers write at any time.

use std::{
    cell::Cell,
    ffi::{c_char, c_int, c_void},
    os::fd::AsRawFd,
    ptr::NonNull,
    sync::Arc,
};

use sidestep_extended::{Error, Memory, Region, Remote, Rights, Socket, in_milliseconds};
use sidestep_sockets::{calls, signal::Inside};

use crate::{engine, errno};

mod posting;
pub mod table;

use posting::queue;
use table::{Table, borrowed, table};

/// `struct ss_imported`.
#[repr(C)]
pub struct CImported {
    tag: u64,
    length: u64,
    rights: i32,
    direct: i32,
}

const _: () = assert!(size_of::<CImported>() == 24);

/// Why a call failed: what the fabric says, or a number that names nothing.
enum Failure {
    Stack(Error),
    /// With an errno.
    Argument(c_int, &'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Stack(error)
    }
}

type Result<T> = std::result::Result<T, Failure>;

const NO_SOCKET: Failure =
    Failure::Argument(libc::ENOTCONN, "the descriptor is not an extended socket; call ss_enable first");
const NO_QUEUE: Failure =
    Failure::Argument(libc::EBADF, "the descriptor is no completion queue; make one by ss_queue_create");
const NO_REGION: Failure = Failure::Argument(libc::EINVAL, "no region has this number, or it was deregistered");
const NO_REMOTE: Failure = Failure::Argument(libc::EINVAL, "no imported region has this number, or it was released");
const TOO_MANY: Failure = Failure::Argument(libc::ENOMEM, "there are too many regions");
const BAD_ARGUMENT: Failure = Failure::Argument(libc::EINVAL, "an argument is null, negative, or not among its values");

/// Room for what `ss_error` says.
const TEXT: usize = 256;
/// Bytes that are moved at a time between memory of the program and memory of a peer.
const CHUNK: usize = 8192;
const SMALL: usize = 128;

thread_local! {
    static SAID: Cell<[u8; TEXT]> = const { Cell::new([0; TEXT]) };
}

/// Carries out a call: inside the engine, so that no handler interrupts it, and with `errno` as C has it.
#[inline]
fn answer<T>(failed: T, call: impl FnOnce(&'static Table) -> Result<T>) -> T {
    let before = errno::Kept::new();
    let outcome = {
        let _inside = Inside::enter();
        call(table())
    };
    match outcome {
        Ok(value) => {
            before.restore();
            value
        }
        Err(failure) => {
            say(&failure);
            failed
        }
    }
}

#[cold]
fn say(failure: &Failure) {
    let _inside = Inside::enter();
    let (number, text) = match failure {
        Failure::Stack(error) => (error.errno(), error.to_string()),
        Failure::Argument(number, text) => (*number, (*text).to_string()),
    };
    let mut said = [0; TEXT];
    let len = text.len().min(TEXT - 1);
    said[..len].copy_from_slice(&text.as_bytes()[..len]);
    SAID.with(|place| place.set(said));
    errno::set(number);
}

fn unit(call: impl FnOnce(&'static Table) -> Result<()>) -> c_int {
    answer(-1, |table| call(table).map(|()| 0))
}

fn socket(table: &Table, fd: c_int) -> Result<Arc<Socket>> {
    table.entries().socket(fd).cloned().ok_or(NO_SOCKET)
}

/// An operation on a remote region. One on mapped memory is done with the table locked: it takes less time than to keep what it
/// needs from going away.
#[inline]
fn on_remote<T>(
    table: &Table,
    (fd, remote, length): (c_int, u64, usize),
    act: impl FnOnce(&Socket, &Remote) -> std::result::Result<T, Error>,
) -> Result<T> {
    let entries = table.entries();
    let (socket, remote) = (entries.socket(fd).ok_or(NO_SOCKET)?, entries.remotes.get(remote).ok_or(NO_REMOTE)?);
    if remote.is_mapped() && length <= SMALL && socket.is_idle() {
        return Ok(act(socket, remote)?);
    }
    // It may wait for the owner, or take its time.
    let (socket, remote) = (socket.clone(), remote.clone());
    drop(entries);
    Ok(act(&socket, &remote)?)
}

fn rights(bits: c_int) -> Result<Rights> {
    let known = [(1, Rights::READ), (2, Rights::WRITE), (4, Rights::ATOMIC)];
    if bits & !7 != 0 {
        return Err(BAD_ARGUMENT);
    }
    let held = known.iter().filter(|(bit, _)| bits & bit != 0);
    Ok(held.fold(Rights::NONE, |all, (_, right)| all.and(*right)))
}

fn bits(rights: Rights) -> i32 {
    let known = [(1, Rights::READ), (2, Rights::WRITE), (4, Rights::ATOMIC)];
    known.iter().filter(|(_, right)| rights.allow(*right)).map(|(bit, _)| bit).sum()
}

fn deadline(timeout_ms: c_int) -> Option<u64> {
    u64::try_from(timeout_ms).ok().map(in_milliseconds)
}

fn offset(offset: u64) -> Result<usize> {
    usize::try_from(offset).map_err(|_| BAD_ARGUMENT)
}

/// Whether the connections of this process are extended in place.
fn in_place() -> bool {
    let _inside = Inside::enter();
    table().stack().is_ok_and(|stack| stack.options().in_place)
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_enable(fd: c_int, queue_fd: c_int, timeout_ms: c_int) -> c_int {
    let before = errno::Kept::new();
    if engine::has(fd) && in_place() {
        // The connection goes to somebody else, whole, and is no stream any more, whatever comes of it.
        engine::leave_whole(fd);
        if calls::has_rest(fd) {
            return unit(|_| Err(Error::Unread.into()));
        }
        engine::forget(fd);
    }
    before.restore();
    unit(|table| {
        let queue = queue(table, queue_fd)?;
        if table.entries().socket(fd).is_some() {
            return Err(Failure::Argument(libc::EBUSY, "the socket is extended already; ss_disable ends that"));
        }
        let descriptor = borrowed(fd).ok_or(Failure::Argument(libc::EBADF, "no descriptor has this number"))?;
        let socket = table.stack()?.enable(descriptor, &queue, deadline(timeout_ms).unwrap_or(u64::MAX))?;
        table.add_socket(descriptor.as_raw_fd(), socket);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_disable(fd: c_int) -> c_int {
    let known = unit(|table| socket(table, fd).map(drop));
    if known == 0 {
        table::closed(fd);
    }
    known
}

/// # Safety
/// `address .. address + length` is readable and writable until the region is deregistered, or `address` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_register(address: *mut c_void, length: usize, bits: c_int) -> u64 {
    answer(0, |table| {
        let (stack, rights) = (table.stack()?, rights(bits)?);
        if length == 0 || length > isize::MAX as usize {
            return Err(BAD_ARGUMENT);
        }
        let region = match NonNull::new(address.cast::<u8>()) {
            None => stack.register(length, rights)?,
            Some(base) => {
                // SAFETY: as for this function.
                let memory = unsafe { Memory::from_raw(base, length) };
                stack.register_over(memory, rights)?
            }
        };
        table.entries().regions.insert(region).ok_or(TOO_MANY)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_address(region: u64) -> *mut c_void {
    answer(std::ptr::null_mut(), |table| with_region(table, region, |region| Ok(region.base().as_ptr().cast())))
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_revoke(region: u64) -> c_int {
    unit(|table| with_region(table, region, |region| Ok(region.revoke()?)))
}

fn with_region<T>(table: &Table, number: u64, act: impl FnOnce(&Region) -> Result<T>) -> Result<T> {
    let region = table.entries().regions.get(number).cloned().ok_or(NO_REGION)?;
    act(&region)
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_deregister(number: u64) -> c_int {
    unit(|table| {
        let mut entries = table.entries();
        if entries.regions.get(number).ok_or(NO_REGION)?.is_used() {
            return Err(Error::Busy.into());
        }
        let region = entries.regions.remove(number);
        // Its peers are told without the lock; then it is gone.
        drop(entries);
        drop(region);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_export(fd: c_int, region: u64, bits: c_int, tag: u64) -> c_int {
    unit(|table| {
        let (socket, rights) = (socket(table, fd)?, rights(bits)?);
        with_region(table, region, |region| Ok(socket.export(region, rights, tag)?))
    })
}

/// # Safety
/// P1: `about` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_import(fd: c_int, about: *mut CImported, timeout_ms: c_int) -> u64 {
    answer(0, |table| {
        let remote = socket(table, fd)?.import(deadline(timeout_ms))?;
        if !about.is_null() {
            let direct = i32::from(remote.reads_directly());
            let rights = bits(remote.rights());
            // SAFETY: P1.
            unsafe { about.write(CImported { tag: remote.tag(), length: remote.len() as u64, rights, direct }) };
        }
        table.entries().remotes.insert(Arc::new(remote)).ok_or(TOO_MANY)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_release(remote: u64) -> c_int {
    unit(|table| {
        let gone = table.entries().remotes.remove(remote);
        gone.map(drop).ok_or(NO_REMOTE)
    })
}

/// # Safety
/// P1: `from` is valid for `length` reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_put(fd: c_int, remote: u64, at: u64, from: *const c_void, length: usize) -> c_int {
    unit(|table| {
        let at = offset(at)?;
        if from.is_null() && length > 0 {
            return Err(BAD_ARGUMENT);
        }
        on_remote(table, (fd, remote, length), |socket, remote| {
            socket.check_range(remote, at, length)?;
            in_parts(length, |done, part| {
                let source = from.cast::<u8>().wrapping_add(done);
                // SAFETY: P1: as many bytes from `done` on are the caller's; the part is this thread's.
                unsafe { std::ptr::copy_nonoverlapping(source, part.as_mut_ptr(), part.len()) };
                socket.put(remote, at.saturating_add(done), part)
            })
        })
    })
}

/// # Safety
/// P1: `into` is valid for `length` writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_get(fd: c_int, remote: u64, at: u64, into: *mut c_void, length: usize) -> c_int {
    unit(|table| {
        let at = offset(at)?;
        if into.is_null() && length > 0 {
            return Err(BAD_ARGUMENT);
        }
        on_remote(table, (fd, remote, length), |socket, remote| {
            socket.check_range(remote, at, length)?;
            in_parts(length, |done, part| {
                socket.get(remote, at.saturating_add(done), part)?;
                let target = into.cast::<u8>().wrapping_add(done);
                // SAFETY: P1: as many bytes from `done` on are the caller's; the part is this thread's.
                unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), target, part.len()) };
                Ok(())
            })
        })
    })
}

/// Calls `act` for every part of a transfer, with where it begins and a buffer as long as it is. No part: an empty one.
#[inline]
fn in_parts(
    length: usize,
    mut act: impl FnMut(usize, &mut [u8]) -> std::result::Result<(), Error>,
) -> std::result::Result<(), Error> {
    if length <= SMALL {
        // Clearing a large buffer would take longer than the operation.
        return act(0, &mut [0; SMALL][..length]);
    }
    let mut buffer = [0; CHUNK];
    (0..length).step_by(CHUNK).try_for_each(|done| act(done, &mut buffer[..(length - done).min(CHUNK)]))
}

/// # Safety
/// P1: `old` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_compare_swap(
    fd: c_int,
    remote: u64,
    at: u64,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> c_int {
    unit(|table| {
        let at = offset(at)?;
        let held =
            on_remote(table, (fd, remote, 8), |socket, remote| socket.compare_swap(remote, at, expected, desired))?;
        // SAFETY: P1.
        unsafe { give(old, held) };
        Ok(())
    })
}

/// # Safety
/// P1: `old` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_fetch_add(fd: c_int, remote: u64, at: u64, value: u64, old: *mut u64) -> c_int {
    unit(|table| {
        let at = offset(at)?;
        let held = on_remote(table, (fd, remote, 8), |socket, remote| socket.fetch_add(remote, at, value))?;
        // SAFETY: P1.
        unsafe { give(old, held) };
        Ok(())
    })
}

/// # Safety
/// `place` is null or valid for a write.
unsafe fn give(place: *mut u64, value: u64) {
    if !place.is_null() {
        // SAFETY: as for this function.
        unsafe { place.write(value) };
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_notify(fd: c_int, value: u64) -> c_int {
    unit(|table| Ok(socket(table, fd)?.notify(value)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_fence(fd: c_int) -> c_int {
    unit(|table| Ok(socket(table, fd)?.fence()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_progress() -> c_int {
    unit(|table| {
        table.stack()?.progress();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_error() -> *const c_char {
    SAID.with(|said| said.as_ptr().cast_const().cast())
}
