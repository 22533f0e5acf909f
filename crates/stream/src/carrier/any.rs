//! One of the carriers: the only place that lists them. A new one is a line in each of the three enums here.

use std::io::IoSlice;

use sidestep_fabric::{EventQueue, event::SourceId, queue::Heir};
use sidestep_shm::{byte_ring::Stopper, cached::CachedFile};

use super::{Capabilities, Inbound, Outbound, Result, SharedNews, Watch, Written, loopback, ring, via};
use crate::path::End;

/// The sending half of one of them.
#[derive(Debug)]
// Every message touches the ring: no pointer is followed to it.
#[allow(clippy::large_enum_variant)]
pub enum AnyOutbound {
    /// A ring in memory of the peer.
    Ring(ring::Outbound),
    /// A link.
    Via(via::Outbound),
    /// Memory of this process.
    Loopback(loopback::Outbound),
}

/// The receiving half of one of them.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum AnyInbound {
    /// A ring in memory of this process.
    Ring(ring::Inbound),
    /// A link.
    Via(via::Inbound),
    /// Memory of this process.
    Loopback(loopback::Inbound),
}

/// What to wait for on one of them.
#[derive(Debug)]
pub enum AnyWatch {
    /// The words of two rings.
    Ring(ring::Watch),
    /// A link.
    Via(via::Watch),
    /// Memory of this process.
    Loopback(loopback::Watch),
}

/// Hands each call to the carrier that it is for.
macro_rules! dispatch {
    ($any:ident, $contract:ident,
     $(fn $name:ident(&$self:ident $(, $argument:ident: $type:ty)*) $(-> $answer:ty)?;)*
     $(mut fn $changes:ident(&mut $this:ident $(, $given:ident: $of:ty)*) $(-> $gives:ty)?;)*) => {
        impl $contract for $any {
            $(#[inline(always)]
            fn $name(&$self $(, $argument: $type)*) $(-> $answer)? {
                match $self {
                    $any::Ring(one) => one.$name($($argument),*),
                    $any::Via(one) => one.$name($($argument),*),
                    $any::Loopback(one) => one.$name($($argument),*),
                }
            })*
            $(#[inline(always)]
            fn $changes(&mut $this $(, $given: $of)*) $(-> $gives)? {
                match $this {
                    $any::Ring(one) => one.$changes($($given),*),
                    $any::Via(one) => one.$changes($($given),*),
                    $any::Loopback(one) => one.$changes($($given),*),
                }
            })*
        }
    };
}

dispatch! {
    AnyOutbound, Outbound,
    fn position(&self) -> u64;
    fn may_note(&self) -> bool;
    fn has_arrived(&self, mark: &mut Option<u64>) -> bool;
    fn holds(&self) -> bool;
    fn witness(&self) -> Option<u64>;
    fn written(&self) -> Written;
    mut fn send(&mut self, parts: &[IoSlice<'_>], patient: bool) -> Result<usize>;
    mut fn send_file(&mut self, file: &CachedFile, offset: Option<u64>, count: usize) -> Result<usize>;
    mut fn recall(&mut self) -> Result<Vec<u8>>;
    mut fn space(&mut self) -> usize;
    mut fn set_note(&mut self, which: usize, note: u64) -> Result<()>;
    mut fn set_count(&mut self, count: u64);
    mut fn may_leave(&mut self) -> bool;
    mut fn refuse(&mut self) -> bool;
    mut fn take_back(&mut self) -> Result<Vec<u8>>;
    mut fn is_frozen(&mut self) -> Result<bool>;
    mut fn end(&mut self) -> Result<End>;
    mut fn freeze(&mut self) -> Option<Result<()>>;
    mut fn adopt_larger(&mut self) -> Option<u64>;
    mut fn release(&mut self);
    mut fn stopper(&mut self) -> Option<Stopper>;
}

dispatch! {
    AnyInbound, Inbound,
    fn settle(&self);
    mut fn receive(&mut self, bytes: &mut [u8]) -> Result<usize>;
    mut fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize>;
    mut fn consume(&mut self, count: usize) -> Result<()>;
    mut fn available(&mut self) -> usize;
    mut fn has_news(&mut self) -> bool;
    mut fn position(&mut self) -> u64;
    mut fn testify(&mut self) -> (u64, *const u8);
    mut fn has_known(&mut self) -> bool;
    mut fn set_note(&mut self, note: u64) -> Result<()>;
    mut fn capacity(&mut self) -> usize;
    mut fn grow(&mut self, bytes: usize) -> bool;
    mut fn want(&mut self) -> Option<Result<bool>>;
    mut fn freeze(&mut self) -> Option<Result<()>>;
    mut fn has_end(&mut self) -> bool;
    mut fn is_wanted(&mut self) -> bool;
    mut fn is_taken(&mut self) -> bool;
    mut fn withdraw(&mut self) -> Result<()>;
    mut fn give(&mut self) -> Option<u64>;
    mut fn keep(&mut self);
    mut fn is_over(&mut self) -> bool;
    mut fn heir(&mut self) -> Option<Heir>;
    mut fn skip_to_end(&mut self, end: u64);
}

dispatch! {
    AnyWatch, Watch,
    fn capabilities(&self) -> Capabilities;
    fn written(&self) -> u64;
    fn read(&self) -> u64;
    fn is_frozen(&self) -> bool;
    fn writer_note(&self, which: usize) -> u64;
    fn writer_count(&self) -> u64;
    fn reader_note(&self) -> u64;
    fn returns(&self) -> u64;
    fn peer_core(&self) -> u32;
    fn stands(&self) -> bool;
    fn arm_arrival(&self);
    fn arm_space(&self);
    fn settle(&self);
    fn take_in(&self);
    fn attach(&self, news: &EventQueue, token: u64) -> Vec<SourceId>;
    fn detach(&self, news: &EventQueue, source: SourceId);
    fn may_rest(&self, many: bool) -> bool;
    fn shared_news(&self) -> Option<SharedNews>;
    fn nudge(&self);
    fn set_prompt(&self, prompt: bool);
    fn found_nothing(&self);
    fn has_arrived(&self, mark: &mut Option<u64>) -> bool;
    fn said(&self) -> (u64, u64);
    fn progress(&self, said: (u64, u64)) -> (u64, u64);
    fn filled(&self, pushed: u64) -> u64;
    fn much(&self, capacity: u64) -> u64;
    fn has_space(&self, in_flight: impl FnOnce() -> u64, capacity: u64) -> bool;
    fn has_other_space(&self) -> bool;
    fn is_choked(&self) -> bool;
}
