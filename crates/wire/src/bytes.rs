//! Big-endian integers at named ranges of a buffer.
//!
//! Every caller has checked the length of its buffer, and every range is a constant of the right
//! width, so none of these can fail on bytes from a peer.

use std::ops::Range;

pub(crate) fn u16_at(data: &[u8], field: Range<usize>) -> u16 {
    u16::from_be_bytes(array(data, field))
}

pub(crate) fn u32_at(data: &[u8], field: Range<usize>) -> u32 {
    u32::from_be_bytes(array(data, field))
}

pub(crate) fn u64_at(data: &[u8], field: Range<usize>) -> u64 {
    u64::from_be_bytes(array(data, field))
}

pub(crate) fn array<const N: usize>(data: &[u8], field: Range<usize>) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&data[field]);
    value
}

pub(crate) fn put_u16(data: &mut [u8], field: Range<usize>, value: u16) {
    data[field].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_u32(data: &mut [u8], field: Range<usize>, value: u32) {
    data[field].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_u64(data: &mut [u8], field: Range<usize>, value: u64) {
    data[field].copy_from_slice(&value.to_be_bytes());
}
