//! Reading and writing calls.

use crate::{kernel, streams::Stream};

mod file;
mod peek;
mod receive;
mod send;
mod wait;
mod young;

pub use file::{send_file, splice_in, splice_out};
pub use receive::receive;
pub use send::send;

/// Bytes that the kernel is given at a time by calls that wait.
const KERNEL_PIECE: usize = 256 << 10;

/// What a call waits for may come without waking it: it looks that often.
const NAP_NS: u64 = 1_000_000;

/// Whether an error has come, which waits for the next call: not for the next piece of this one.
fn has_failed(stream: &Stream) -> bool {
    kernel::look(stream.fd(), 0) & libc::POLLERR != 0
}
