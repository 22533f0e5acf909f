//! `fork`: the parent keeps its rings, which the child takes over when it wants to; or both have a stream on TCP afterwards, with
//! what was not read of its carrier in memory that both read from. The child begins anew otherwise.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use sidestep_stream::carrier::Still;
use sidestep_sys::{descriptor, lock::MutexGuard, process, procfs};

use crate::{
    descriptors::table::{self, Forking},
    kernel::{
        self,
        signal::{Inside, Quiet},
    },
    processes::{
        custody,
        heirloom::{self, Heirloom},
    },
    promotion::{engine, leaving},
    readiness::{
        jump,
        set::{self, Membership, Set},
        sleep,
    },
    streams::{READ, Retired, Stage, Stream, WRITE, hold_retired},
};

/// Held by the thread that forks, so that the table is whole in the child. No handler runs meanwhile. Given
/// back from the first to the last.
struct Held {
    legacies: Vec<Legacy>,
    /// Descriptors of what they leave.
    inherited: BTreeSet<i32>,
    retired: Option<MutexGuard<'static, Retired>>,
    _timer: Still,
    _table: Forking,
    _quiet: Quiet,
}

thread_local! {
    static HELD: Cell<Option<ManuallyDrop<Held>>> = const { Cell::new(None) };
}

/// What a stream leaves to a child.
#[derive(Debug)]
pub struct Legacy {
    stream: &'static Stream,
    /// How far its carrier was read and written.
    pub carried: [u64; 2],
    /// Whether it has left the carrier.
    pub left: bool,
    /// Bytes that come before those of TCP.
    pub heirloom: Option<Arc<Heirloom>>,
    /// The sets that tell of them.
    memberships: Vec<Membership>,
}

impl Legacy {
    /// Of a stream that keeps its carrier.
    pub fn shared(stream: &'static Stream, heirloom: Arc<Heirloom>) -> Legacy {
        let memberships = set::memberships(stream);
        Legacy { stream, carried: [0; 2], left: false, heirloom: Some(heirloom), memberships }
    }

    /// Of a stream that has left its carrier, or was asked to; `None`: it had none.
    pub fn of(stream: &'static Stream) -> Option<Legacy> {
        let mut legacy =
            Legacy { stream, carried: [0; 2], left: true, heirloom: stream.heirloom(), memberships: Vec::new() };
        if stream.stage() != Stage::Carried {
            // A set that has not waited since the carrier was given up has not left its member to the kernel yet.
            set::given_back(stream);
            legacy.heirloom.as_ref()?;
            legacy.memberships = set::memberships(stream);
            return Some(legacy);
        }
        let carrier = stream.carrier();
        let mut reader = stream.reader();
        // What the family shares already is handed on as it is: another child may be about to read it.
        let shared = stream.inherited_bytes() > 0;
        let bytes = if shared { Vec::new() } else { reader.collect(stream) };
        legacy.left = reader.has_left(stream);
        legacy.carried[READ] = reader.carried();
        drop(reader);
        legacy.carried[WRITE] = stream.writer().carried();
        if !bytes.is_empty() {
            legacy.heirloom = Heirloom::copy(&bytes);
            match legacy.heirloom.clone() {
                Some(heirloom) => {
                    stream.inherit_bytes(heirloom);
                    // Threads that sleep until there is something to read have found nothing since the bytes were collected.
                    stream.edges.stirs.fetch_add(1, Ordering::Relaxed);
                    carrier.iter().for_each(|carrier| carrier.node().wake());
                }
                // Without memory to share they are the parent's, as is all that follows.
                None => {
                    legacy.left = false;
                    stream.reader().put_back(bytes);
                }
            }
        }
        if legacy.left {
            set::given_back(stream);
        }
        if legacy.heirloom.is_some() {
            legacy.memberships = set::memberships(stream);
        }
        Some(legacy)
    }
}

/// The process that the table belongs to; 0 until it is first asked.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Its number.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Before anything is promoted: a child that was made without `fork` (a bare `clone`, `_Fork`) has not been told, and
/// begins anew now.
pub fn check() {
    let now = process::generation();
    if OWNER.load(Ordering::Acquire) == now {
        return;
    }
    if OWNER.swap(now, Ordering::AcqRel) != 0 {
        in_child();
    } else {
        NUMBER.store(kernel::process(), Ordering::Release);
    }
}

/// Whether this is the process that the table belongs to. A child that was made without `fork` has nothing of its own before it
/// [begins anew](check), nor has one with its parent's memory (`clone` with CLONE_VM, past libc). Takes no lock: such a child may have
/// been made while other threads held all of them.
pub fn is_own() -> bool {
    OWNER.load(Ordering::Acquire) == process::generation() && NUMBER.load(Ordering::Acquire) == kernel::process()
}

/// Before.
pub fn before() {
    let quiet = Quiet::enter();
    check();
    let table = table::forking();
    // From here on nothing is promoted.
    custody::forking();
    let inside = Inside::enter();
    let legacies = leaving::leave_to_family();
    drop(inside);
    let timer = Still::hold();
    // Now: in the child another thread may have the locks.
    let heirlooms = legacies.iter().filter_map(|legacy| legacy.heirloom.as_ref());
    let inherited = heirlooms.flat_map(|heirloom| heirloom.descriptors()).collect();
    let held = Held { legacies, inherited, retired: Some(hold_retired()), _timer: timer, _table: table, _quiet: quiet };
    HELD.set(Some(ManuallyDrop::new(held)));
}

/// Children that run in a thread's place, and programs that are about to.
static LENT: AtomicU32 = AtomicU32::new(0);

/// Nothing is promoted from here on, until [`take_back`].
pub fn hold_promotions() {
    LENT.fetch_add(1, Ordering::SeqCst);
}

/// Before a child runs in this thread's place.
pub fn lend() {
    let _inside = Inside::enter();
    hold_promotions();
    let _change = table::change();
    leaving::lend();
}

/// After it has.
pub fn take_back() {
    LENT.fetch_sub(1, Ordering::SeqCst);
}

/// Whether one does.
pub fn has_lent() -> bool {
    LENT.load(Ordering::SeqCst) != 0
}

/// After, in the parent.
pub fn in_parent() {
    custody::has_forked();
    let held = HELD.take().map(ManuallyDrop::into_inner);
    let kept = held.as_ref().is_some_and(|held| held.legacies.iter().any(|legacy| legacy.left));
    drop(held);
    if kept && let Some(engine) = engine::running() {
        // Who sleeps in a set whose members were left to the kernel looks at their carriers again.
        engine.node.wake();
    }
}

/// After, in the child. Other threads of the parent may have been anywhere: nothing that they could have locked is
/// touched.
pub fn in_child() {
    OWNER.store(process::generation(), Ordering::Release);
    NUMBER.store(kernel::process(), Ordering::Release);
    let mut held = HELD.take().map(ManuallyDrop::into_inner);
    if let Some(mut retired) = held.as_mut().and_then(|held| held.retired.take()) {
        retired.forget();
    }
    descriptor::after_fork();
    engine::after_fork();
    sleep::after_fork();
    jump::after_fork();
    LENT.store(0, Ordering::Relaxed);
    heirloom::after_fork();
    table::forget_free();
    // One new stream for each old one, however many numbers lead to it; and one new set.
    let legacies = held.as_mut().map_or(Vec::new(), |held| std::mem::take(&mut held.legacies));
    let legacy_of: BTreeMap<u32, &Legacy> = legacies.iter().map(|legacy| (legacy.stream.index, legacy)).collect();
    let mut renewed: BTreeMap<u32, &'static Stream> = BTreeMap::new();
    let mut renewed_sets: BTreeMap<u32, &'static Set> = BTreeMap::new();
    for fd in table::numbers(0, u32::MAX) {
        if let Some(old) = table::set(fd) {
            table::clear(fd);
            if let Some(new) = renewed_sets.get(&old.index) {
                new.add_number();
                table::put_set(fd, new);
            } else if let Some(new) = table::new_set() {
                new.inherit(fd);
                table::put_set(fd, new);
                renewed_sets.insert(old.index, new);
            }
            continue;
        }
        let Some(old) = table::stream(fd) else { continue };
        if let Some(new) = renewed.get(&old.index) {
            new.add_number(fd);
            table::put_stream(fd, new);
            continue;
        }
        table::clear(fd);
        if let Some(new) = table::new_stream() {
            new.inherit(old, fd, legacy_of.get(&old.index).copied());
            table::put_stream(fd, new);
            renewed.insert(old.index, new);
        }
    }
    for legacy in &legacies {
        for membership in &legacy.memberships {
            let of_child = (renewed.get(&legacy.stream.index), renewed_sets.get(&membership.set));
            if let (Some(stream), Some(set)) = of_child {
                set.inherit_member(stream, *membership);
            }
        }
    }
    custody::forked();
    // The parent's lifelines and doorbells would keep it alive in the eyes of its peers.
    let inherited = held.as_mut().map_or(BTreeSet::new(), |held| std::mem::take(&mut held.inherited));
    let is_needed = |fd: &i32| procfs::is_kept(*fd) || custody::keeps(*fd) || inherited.contains(fd);
    let kept: Vec<i32> = descriptor::all_kept().filter(|fd| !is_needed(fd)).collect();
    for fd in kept {
        descriptor::closed(fd);
        let _ = kernel::close(fd);
    }
    drop(held);
}
