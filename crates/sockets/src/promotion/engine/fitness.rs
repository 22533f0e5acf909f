//! Whether a stream may leave TCP now.

use crate::{
    kernel,
    processes::{custody, fork},
    registry::reason::Reason,
    streams::{Place, READ, Stream, WRITE},
};

/// Whether a stream may be promoted now. `Err(None)`: perhaps later.
pub fn fit(stream: &Stream, place: &Place) -> Result<(), Option<Reason>> {
    let fd = stream.fd();
    if kernel::cookie(fd) != Ok(place.cookie) {
        return Err(Some(Reason::ForeignBytes));
    }
    if place.engine.is_off(&place.key) {
        return Err(Some(Reason::TurnedOff));
    }
    if kernel::state(fd) != Ok(kernel::TCP_ESTABLISHED) {
        return Err(None);
    }
    if !custody::is_sole_holder(place.cookie) || fork::has_lent() {
        stream.set_reason(Reason::OtherHolder);
        return Err(None);
    }
    if stream.is_standard() {
        stream.set_reason(Reason::Standard);
        return Err(None);
    }
    if stream.has_odd_options() {
        return Err(Some(Reason::Option));
    }
    let before = counts(stream);
    let Ok(kernel) = kernel::counts::of(fd) else { return Err(Some(Reason::SocketType)) };
    // Bytes keep coming.
    let Some(kernel) = kernel else { return Err(None) };
    if kernel == before && counts(stream) == before {
        return Ok(());
    }
    let busy = counts(stream) != before
        || stream.try_both().is_none()
        || [READ, WRITE].iter().any(|direction| stream.calls_in_kernel(*direction) != 0);
    Err(if busy { None } else { Some(Reason::ForeignBytes) })
}

fn counts(stream: &Stream) -> (u64, u64) {
    let [read, written] = [READ, WRITE].map(|direction| stream.over_tcp(direction));
    (read, written)
}
