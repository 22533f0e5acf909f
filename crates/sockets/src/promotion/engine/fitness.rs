//! Whether a stream may leave TCP now.

use crate::{
    kernel,
    processes::{custody, fork},
    registry::reason::Reason,
    streams::{Place, Stream},
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
    match stream.counts_all_bytes() {
        Ok(Some(true)) => Ok(()),
        Ok(Some(false)) => Err(Some(Reason::ForeignBytes)),
        Ok(None) => Err(None),
        Err(_) => Err(Some(Reason::SocketType)),
    }
}
