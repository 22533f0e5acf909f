//! Rings that nobody has used for a while give their pages back.
//!
//! The writer of a ring does that, since what is free in a ring is the writer's. It is done by calls of the process that are
//! about to sleep, at most once in a while for all of its rings, so a process that sleeps for ever keeps what its last calls
//! have touched.

use std::sync::atomic::{AtomicU64, Ordering};

use sidestep_sys::{budget, clock};

use crate::{descriptors::table, kernel::signal::Inside, promotion::engine};

/// Between two sweeps. A ring is idle if nothing was written to it from one to the next.
const SWEEP_NS: u64 = 1_000_000_000;

static SWEPT: AtomicU64 = AtomicU64::new(0);

/// Sweeps, if it is time to. The caller holds no lock.
#[inline]
pub fn sweep_if_due() {
    let (now, last) = (clock::now(), SWEPT.load(Ordering::Relaxed));
    if now.wrapping_sub(last) >= SWEEP_NS
        && SWEPT.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    {
        sweep();
    }
}

#[cold]
fn sweep() {
    let _inside = Inside::enter();
    // A process that has shut itself in makes no calls of ours. Where memory is short, pages that are given back may not be
    // there when they are needed.
    if engine::is_disabled() || engine::running().is_none() || !budget::may_touch_later() {
        return;
    }
    for stream in table::numbers(0, u32::MAX).filter_map(table::stream) {
        if let Some(mut writer) = stream.try_writer() {
            writer.sweep();
        }
    }
}
