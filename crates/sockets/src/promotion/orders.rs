//! How a process carries out what its user has ordered by hand (`sidestep off`, `on`, `tap`).
//!
//! An order is a word in the registry, and a count that tells that there is one. The count is looked at by every call that is
//! about to sleep, by calls of streams that are on their way to a carrier or off it, and now and then by writers that are busy.
//! A process that sleeps is woken by whoever orders. What is turned off parts with its carrier, as two ends do that want
//! another one: both directions go back to TCP at a byte that both ends know, and nobody waits for the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use sidestep_shm::Word64;
use sidestep_sys::{clock, lock::Mutex};

use crate::{
    kernel::{self, address::Key, signal::Inside, stack},
    promotion::{
        engine::{self, Engine},
        leaving::{self, LEAVE_NS, LOOK},
    },
    registry::{Registry, reason::Reason},
    streams::{Stage, Stream},
    tap,
};

/// What this process knows of orders.
#[derive(Debug)]
pub struct Orders {
    /// How often something was ordered.
    count: Word64,
    /// The count when this process looked last.
    seen: AtomicU64,
    /// Whether something was turned off then.
    any_off: AtomicBool,
    /// Held by the thread that carries orders out.
    busy: Mutex<()>,
}

impl Orders {
    /// Those of a registry, as they are now.
    pub fn of(registry: &Registry) -> Orders {
        let count = registry.orders();
        // What stands already is looked at as what comes.
        let seen = u64::MAX.into();
        Orders { count, seen, any_off: registry.has_off().into(), busy: Mutex::new(()) }
    }

    /// Whether something was ordered since the last look.
    #[inline]
    fn has_news(&self) -> bool {
        self.count.load(Ordering::Relaxed) != self.seen.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Whether a connection of this process stays on TCP by order, as of the last look.
    pub fn is_off(&self, key: &Key) -> bool {
        self.orders.any_off.load(Ordering::Relaxed) && self.registry.is_off(self.process, key)
    }
}

/// Carries out what was ordered since the last look. The thread holds no lock of a stream or a set.
#[inline]
pub fn look(engine: &Engine) {
    if engine.orders.has_news() {
        stack::on_own(|| carry_out(engine));
    }
}

/// The same, for the engine of now.
#[cold]
pub fn look_now() {
    if let Some(engine) = engine::running() {
        look(&engine);
    }
}

/// Called now and then by a stream that is busy on its carrier, under its writer's lock: it sees a tap, and if it was turned off,
/// its next write leaves the carrier. The rest is for a call that holds no lock.
pub fn notice(stream: &Stream) {
    if let Some(place) = stream.known_place()
        && place.engine.orders.has_news()
    {
        tap::changed(&place.engine);
        if place.engine.registry.is_off(place.engine.process, &place.key) {
            stream.carriage.parting.store(true, Ordering::Relaxed);
        }
    }
}

#[cold]
fn carry_out(engine: &Engine) {
    let _inside = Inside::enter();
    // One thread is enough, and the others do not wait for it.
    let Ok(_busy) = engine.orders.busy.try_lock() else { return };
    // Pairs with the Release of whoever ordered: what it wrote before is seen.
    engine.orders.seen.store(engine.orders.count.load(Ordering::Acquire), Ordering::Relaxed);
    engine.orders.any_off.store(engine.registry.has_off(), Ordering::Relaxed);
    // Pairs with the one of a stream that gets its carrier: this sees the carrier, or that sees the order.
    fence(Ordering::SeqCst);
    tap::changed(engine);
    let (mut off, mut leaving) = (Vec::new(), Vec::new());
    for stream in leaving::all_streams() {
        let Some(place) = stream.known_place() else { continue };
        if !engine.is_off(&place.key) {
            stream.turn_on();
        } else if stream.stage() == Stage::Carried {
            stream.part_with_carrier();
            leaving.push(stream);
        } else {
            off.push(stream);
        }
    }
    off.extend(&leaving);
    let deadline = clock::now() + LEAVE_NS;
    loop {
        leaving.retain(|stream| !stream.has_given_back());
        if leaving.is_empty() || clock::now() >= deadline {
            break;
        }
        kernel::pause(LOOK);
    }
    // Those whose peers have not followed yet do the same at a later call.
    off.iter().filter(|stream| stream.stage() == Stage::Offered).for_each(|stream| stream.stay(Reason::TurnedOff));
}
