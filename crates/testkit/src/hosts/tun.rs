//! A tunnel: an interface whose packets a program sends and receives.
//!
//! # Invariants
//!
//! - T1: the request that the kernel reads is a name of 16 bytes and 24 bytes more, of which it reads the first two.

#![allow(unsafe_code)]

use std::{
    fs::OpenOptions,
    io,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
};

use rustix::ioctl::{Setter, ioctl, opcode};

/// `struct ifreq` of the kernel: the name, then the flags.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

const IFF_TUN: u16 = 1;
const IFF_NO_PI: u16 = 0x1000;
const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);

/// Makes an interface in the namespace of this thread. It goes when the descriptor is closed. Reads do not block.
pub(super) fn open(name: &str) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let tunnel = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    let len = name.len().min(15);
    request.name[..len].copy_from_slice(&name.as_bytes()[..len]);
    // SAFETY: T1: the type of the request is that of TUNSETIFF.
    let setter = unsafe { Setter::<TUNSETIFF, Request>::new(request) };
    // SAFETY: T1, and the descriptor is a tunnel.
    unsafe { ioctl(&tunnel, setter)? };
    Ok(tunnel.into())
}
