//! How many bytes wait to be read, where a receiving call tells it (TCP_INQ).

use std::sync::atomic::Ordering;

use crate::{
    kernel::{self, messages::Control, signal::Inside},
    streams::{Stage, Stream},
};

/// After a receiving call on a stream: TCP_INQ, if the program wants it. Of a stream that may have left TCP the kernel
/// knows a part of the bytes only.
pub fn tell(control: &mut Control<'_>, stream: &Stream) {
    if stream.stage() == Stage::Carried && stream.tells_unread.load(Ordering::Relaxed) {
        control.set_unread(unread(stream));
    }
}

/// What TCP_INQ tells: the bytes that wait to be read, and one more once the end of the stream has come, so that the
/// program reads on.
fn unread(stream: &Stream) -> i32 {
    let _inside = Inside::enter();
    let bytes = stream.reader_for_call().available(stream).unwrap_or(0);
    let ended = stream.carrier().is_some_and(|carrier| carrier.has_ended())
        // A peer that died has left no word. Who reads on finds the end; who does not must be told of it here.
        || bytes == 0 && kernel::look(stream.fd(), libc::POLLRDHUP) != 0;
    i32::try_from(bytes + usize::from(ended)).unwrap_or(i32::MAX)
}
