//! Copying into and out of another process through the kernel (cross-memory attach), past a [gate](crate::gate).
//!
//! It serves memory that cannot be mapped by the other side because it is the program's own. It needs the right to trace
//! the other process, so who has it has no secrets from who uses it; and a kernel, a container and a namespace that let it.
//! That is tried, not guessed: [`Attachment::probe`] reads a value through the kernel that both sides know.
//!
//! # Invariants
//!
//! - **A1** The kernel gets iovecs of this process's memory that lie in a [`Span`], which stays while the call runs, and is
//!   touched by the kernel's copy only (M2 of `memory`).
//! - **A2** The remote iovecs lie in the gate. What a hostile owner makes of them are addresses of its own memory.
//! - **A3** The number of a process is given to another one only after all others have been given out. Whoever copies has
//!   read the value again within the last second, so it would have to be held up for as long as that takes between two
//!   instructions, and the stranger would need memory at the same address.

#![allow(unsafe_code)]

use std::{
    fs,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    Memory, Result, Span,
    gate::{Entrant, IOVECS, PROOF, Stretch, Turnstile},
    last_word,
};
use sidestep_sys::clock;

/// Memory of another process that this one copies into and out of.
#[derive(Debug)]
pub struct Attachment {
    process: u32,
    /// The remote iovecs.
    iovecs: Span,
    proof: (u64, u64),
    /// When that was last read.
    proven: AtomicU64,
    entrant: Mutex<Entrant>,
}

/// This process's memory, as far as another one copies into it and out of it.
#[derive(Debug)]
pub struct Gate {
    process: u32,
    turn: AtomicU64,
    turnstile: Mutex<Turnstile>,
}

/// How long a proof holds, in nanoseconds.
const PROVEN: u64 = 1_000_000_000;
/// Looks at a busy gate before the first sleep.
const LOOKS: u32 = 2_000;
const NAP: Duration = Duration::from_micros(100);
/// The most bytes of one call, so that nobody waits long for its end.
const MOST: usize = 1 << 20;
/// Hundredths of a second on a processor that no copy of so many bytes takes.
const TOO_LONG: u64 = 20;

impl Attachment {
    /// The gate of a process at `offset` of its memory, if this process can copy through it.
    pub fn probe(memory: &Memory, offset: usize, process: u32) -> Option<Attachment> {
        let word = |at: usize| Some(memory.word64(offset + at).ok()?.load(Ordering::Acquire));
        let attachment = Attachment {
            process,
            iovecs: memory.span(offset + IOVECS, 32).ok()?,
            proof: (word(PROOF)?, word(PROOF + 8)?),
            proven: AtomicU64::new(0),
            entrant: Mutex::new(Entrant::new(memory, offset).ok()?),
        };
        // Elsewhere the kernel's stores need not be seen in their order, and programs look at the last word only.
        let ordered = cfg!(target_arch = "x86_64");
        (ordered && is_in_same_namespace(process) && attachment.prove()).then_some(attachment)
    }

    /// How often the owner has taken memory back.
    pub fn turn(&self) -> u64 {
        self.entrant().turn()
    }

    /// Copies `len` bytes from `at` on to an address of the other process, if the owner has taken nothing back since
    /// `turn` and `may` says so. The [last word](last_word) is stored last. `false`: not all of it could be.
    pub fn write(&self, (source, at, len): (&Span, usize, usize), to: u64, turn: u64, may: impl Fn() -> bool) -> bool {
        let word = last_word::tail(to.wrapping_add(len as u64) as usize, len);
        self.copy((source, at, len), (to, word as u64), (turn, &may), libc::SYS_process_vm_writev)
    }

    /// Copies `len` bytes from an address of the other process to `at`, likewise.
    pub fn read(&self, (into, at, len): (&Span, usize, usize), from: u64, turn: u64, may: impl Fn() -> bool) -> bool {
        self.copy((into, at, len), (from, 0), (turn, &may), libc::SYS_process_vm_readv)
    }

    /// Copies bytes from an address of the other process, past the gate: its owner has lent them until it is told.
    pub fn fetch(&self, into: &mut [u8], from: u64) -> bool {
        if !self.is_proven() {
            return false;
        }
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let own = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
            let theirs = libc::iovec { iov_base: from.wrapping_add(done as u64) as *mut _, iov_len: rest.len() };
            let process = self.process as libc::pid_t;
            // SAFETY: the kernel writes to `rest` only, which nobody else has; it checks the other address.
            let copied =
                unsafe { libc::syscall(libc::SYS_process_vm_readv, process, &own, 1_usize, &theirs, 1_usize, 0_usize) };
            match usize::try_from(copied) {
                Ok(copied @ 1..) => done += copied,
                _ => return false,
            }
        }
        true
    }

    /// Waits until no thread of this process is at a copy that `may` allowed.
    pub fn settle(&self) {
        drop(self.entrant());
    }

    fn copy(
        &self,
        (local, at, len): (&Span, usize, usize),
        (remote, word): (u64, u64),
        (turn, may): (u64, &dyn Fn() -> bool),
        call: libc::c_long,
    ) -> bool {
        if at.checked_add(len).is_none_or(|end| end > local.len()) || !self.is_proven() {
            return false;
        }
        let mut entrant = self.entrant();
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut done = 0;
        while done < len {
            let count = last_word::first_part(len - done, MOST);
            let last = if done + count == len { word } else { 0 };
            let begin = remote.wrapping_add(done as u64);
            let body = count as u64 - last;
            let stretches: [Stretch; 2] = [(begin, body), (begin.wrapping_add(body), last)];
            let own = libc::iovec { iov_base: local.place(at + done).cast_mut().cast(), iov_len: count };
            let copied = entrant.enter(thread, turn, stretches, || may() && self.call(call, &own, 2) == Some(count));
            if copied != Some(true) {
                return false;
            }
            done += count;
        }
        true
    }

    /// One system call; the remote iovecs lie in the gate. How many bytes it copied.
    fn call(&self, call: libc::c_long, own: &libc::iovec, remote: usize) -> Option<usize> {
        let (theirs, none) = (self.iovecs.place(0).cast::<libc::iovec>(), 0_usize);
        // SAFETY: A1, A2; the kernel checks all it is given.
        let copied = unsafe { libc::syscall(call, self.process as libc::pid_t, own, 1_usize, theirs, remote, none) };
        usize::try_from(copied).ok()
    }

    fn is_proven(&self) -> bool {
        clock::now().wrapping_sub(self.proven.load(Ordering::Relaxed)) < PROVEN || self.prove()
    }

    /// Reads the value that only this process has at that address.
    fn prove(&self) -> bool {
        let mut value = 0_u64;
        let own = libc::iovec { iov_base: (&raw mut value).cast(), iov_len: 8 };
        let theirs = libc::iovec { iov_base: self.proof.0 as *mut _, iov_len: 8 };
        // SAFETY: `value` has eight bytes and lives until the call returns.
        let copied = unsafe {
            let process = self.process as libc::pid_t;
            libc::syscall(libc::SYS_process_vm_readv, process, &own, 1_usize, &theirs, 1_usize, 0_usize)
        };
        let known = copied == 8 && value == self.proof.1 && value != 0;
        if known {
            self.proven.store(clock::now(), Ordering::Relaxed);
        }
        known
    }

    fn entrant(&self) -> std::sync::MutexGuard<'_, Entrant> {
        self.entrant.lock().expect("no panic while copying")
    }
}

impl Gate {
    /// A gate at `offset` of memory that the process maps, which knows it by `value`. `None`: its threads cannot be told
    /// from here.
    pub fn new(memory: &Memory, offset: usize, process: u32, value: u64) -> Result<Option<Gate>> {
        let place = memory.span(offset + PROOF + 8, 8)?.place(0) as u64;
        memory.word64(offset + PROOF)?.store(place, Ordering::Release);
        memory.word64(offset + PROOF + 8)?.store(value, Ordering::Release);
        let turnstile = Mutex::new(Turnstile::new(memory, offset)?);
        let gate = Gate { process, turn: AtomicU64::new(0), turnstile };
        Ok(is_in_same_namespace(process).then_some(gate))
    }

    /// The turn to tell the other process of memory under. Read it before looking whether that memory may be told of.
    #[inline]
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// Takes back everything that the other process was told of. When this returns it copies into none of it, and never
    /// will; what is to remain must be told again.
    pub fn withdraw(&self) {
        let turnstile = self.turnstile.lock().expect("no panic while taking back");
        let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
        let (mut looks, mut used) = (0, None);
        turnstile.withdraw(turn, |thread| {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                return true;
            }
            std::thread::sleep(NAP);
            is_copying(self.process, thread, &mut used)
        });
    }

    /// Whether the other process is there no more, so that nobody can copy.
    pub fn is_abandoned(&self) -> bool {
        !fs::exists(format!("/proc/{}", self.process)).unwrap_or(true)
    }
}

/// Whether threads of that process have here the numbers that they have there.
fn is_in_same_namespace(process: u32) -> bool {
    let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let own = space("self");
    process != 0 && own.is_some() && own == space(&process.to_string())
}

/// Whether a thread that said so may be in the middle of a copy, judged by what the kernel says of it. `used` keeps the time
/// it had used of a processor at the first look, in hundredths of a second.
fn is_copying(process: u32, thread: u32, used: &mut Option<u64>) -> bool {
    let about = |what: &str| fs::read_to_string(format!("/proc/{process}/task/{thread}/{what}"));
    let Ok(stat) = about("stat") else { return false };
    // The name before it can hold anything.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    match fields.next() {
        // Gone, or stopped, which happens outside of a call.
        None | Some("T" | "t" | "X" | "x" | "Z") => return false,
        // A copy does not sleep like that, but for a page of its source that another process provides.
        Some("S" | "I") => return !about("syscall").is_ok_and(|call| !is_copy(&call)),
        _ => {}
    }
    // It runs, wants to, or waits for a page.
    let now = fields.skip(10).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    now - *used.get_or_insert(now) < TOO_LONG
}

/// Whether the line of a sleeping thread names one of the two calls.
fn is_copy(line: &str) -> bool {
    let number = line.split_whitespace().next().and_then(|number| number.parse::<libc::c_long>().ok());
    matches!(number, Some(libc::SYS_process_vm_writev | libc::SYS_process_vm_readv))
}

#[cfg(test)]
mod tests;
