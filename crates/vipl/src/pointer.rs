//! Pointers of C, checked for null, and the way back to a return code.

use std::{
    ffi::{CStr, c_char, c_ulong},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
};

use sidestep_vi::{Code, Error, NetAddress, Result, clock};

use crate::types;

/// Runs the body of a call and turns its outcome into a return code. A panic is a lack of resources to C.
#[inline]
pub(crate) fn answer(body: impl FnOnce() -> Result<Code>) -> types::Return {
    // An error becomes a code where it arises: behind the boundary of the panic, every outcome would be put together first.
    let code = || match body() {
        Ok(code) => code as types::Return,
        Err(error) => refused(error) as types::Return,
    };
    catch_unwind(AssertUnwindSafe(code)).unwrap_or(Code::ErrorResource as types::Return)
}

/// The code of an outcome, for what is done with it while something else is held: a code is moved about in a register.
#[inline]
pub(crate) fn code_of(outcome: Result<()>) -> Code {
    match outcome {
        Ok(()) => Code::Success,
        Err(error) => refused(error),
    }
}

/// Out of line, so that a call that succeeds moves no error about.
#[cold]
#[inline(never)]
fn refused(error: Error) -> Code {
    error.code()
}

/// A pointer that must not be null.
#[inline]
pub(crate) fn some<T>(pointer: *const T) -> Result<NonNull<T>> {
    NonNull::new(pointer.cast_mut()).ok_or(Error::Invalid("a null pointer"))
}

/// Reads a structure.
pub(crate) fn read<T: Copy>(pointer: *const T) -> Result<T> {
    let pointer = some(pointer)?;
    // SAFETY: C1.
    Ok(unsafe { pointer.as_ptr().read_unaligned() })
}

/// Writes an answer. The pointer was checked before anything was done.
#[inline]
pub(crate) fn write<T>(pointer: NonNull<T>, value: T) {
    // SAFETY: C1.
    unsafe { pointer.as_ptr().write_unaligned(value) };
}

/// Writes an answer that the caller may not want.
pub(crate) fn write_if<T>(pointer: *mut T, value: T) {
    if let Some(pointer) = NonNull::new(pointer) {
        write(pointer, value);
    }
}

/// A string.
pub(crate) fn string(pointer: *const c_char) -> Result<String> {
    let pointer = some(pointer)?;
    // SAFETY: C1.
    let text = unsafe { CStr::from_ptr(pointer.as_ptr()) };
    text.to_str().map(str::to_owned).map_err(|_| Error::Invalid("a string that is not UTF-8"))
}

/// An address.
pub(crate) fn address(pointer: *const types::NetAddress) -> Result<NetAddress> {
    let pointer = some(pointer)?.as_ptr();
    // SAFETY: C1.
    let host = unsafe { (*pointer).host_len } as usize;
    // SAFETY: C1.
    let discriminator = unsafe { (*pointer).discriminator_len } as usize;
    // SAFETY: C1: the field lies within the structure.
    let first = unsafe { std::ptr::addr_of!((*pointer).bytes) }.cast::<u8>();
    // SAFETY: C1: the structure has as many bytes as its lengths say.
    let bytes = unsafe { std::slice::from_raw_parts(first, host + discriminator) };
    Ok(NetAddress::new(&bytes[..host], &bytes[host..]))
}

/// Writes an address; the caller has room for it.
pub(crate) fn write_address(pointer: *mut types::NetAddress, address: &NetAddress) {
    let Some(pointer) = NonNull::new(pointer) else { return };
    let (host, discriminator) = (&address.host, &address.discriminator);
    // SAFETY: C1.
    unsafe { (*pointer.as_ptr()).host_len = host.len() as u16 };
    // SAFETY: C1.
    unsafe { (*pointer.as_ptr()).discriminator_len = discriminator.len() as u16 };
    // SAFETY: C1: the field lies within the structure.
    let first = unsafe { std::ptr::addr_of_mut!((*pointer.as_ptr()).bytes) }.cast::<u8>();
    for (at, byte) in host.iter().chain(discriminator).enumerate() {
        // SAFETY: C1: the caller has allocated room.
        let place = unsafe { first.add(at) };
        // SAFETY: as above.
        unsafe { place.write(*byte) };
    }
}

/// A time-out in milliseconds as a deadline.
pub(crate) fn deadline(milliseconds: c_ulong) -> Option<u64> {
    // Programs of the 32-bit age write the infinite as 32 ones.
    if milliseconds == c_ulong::MAX || milliseconds == u32::MAX as c_ulong {
        return None;
    }
    Some(clock::now().saturating_add(milliseconds.saturating_mul(1_000_000)))
}
