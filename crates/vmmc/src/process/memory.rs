//! The memory of processes, as the card process has it: mapped, and locked page by page.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_shm::{Memory, Span};

use crate::card::Job;
use crate::driver::{PinFault, Pinning};
use crate::id::{Frame, PAGE, Page, ProcessId};

/// Which frame is which page, shared by the card, which copies, and the driver's thread, which pins.
#[derive(Debug, Clone, Default)]
pub(super) struct Frames {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    memory: HashMap<ProcessId, Span>,
    frames: Vec<Option<(Span, Page)>>,
    free: Vec<Frame>,
}

impl Frames {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic with frames")
    }

    /// A process has brought its memory.
    pub(super) fn attach(&self, process: ProcessId, memory: &Memory) -> sidestep_shm::Result<()> {
        let span = memory.span(0, memory.len())?;
        self.state().memory.insert(process, span);
        Ok(())
    }

    /// It has gone; what was locked of it was given back.
    pub(super) fn detach(&self, process: ProcessId) {
        self.state().memory.remove(&process);
    }

    /// Copies into a frame, or out of it.
    pub(super) fn copy(&self, frame: Frame, offset: usize, job: Job) -> Option<Vec<u8>> {
        let (span, page) = self.state().frames.get(frame.0 as usize).cloned().flatten()?;
        let at = page.0 as usize * PAGE + offset;
        match job {
            Job::Read(len) => {
                let mut bytes = vec![0; len];
                span.copy_out(at, &mut bytes).ok()?;
                Some(bytes)
            }
            Job::Write(bytes) => {
                // Within the frame, as the card has cut it.
                let _ = span.copy_in(at, &bytes);
                None
            }
        }
    }
}

impl Pinning for Frames {
    fn pin(&mut self, process: ProcessId, first: Page, count: usize) -> Vec<Result<Frame, PinFault>> {
        let Some(span) = self.state().memory.get(&process).cloned() else {
            return vec![Err(PinFault::Unmapped); count];
        };
        let pages = (span.len() / PAGE) as u64;
        let there = pages.saturating_sub(first.0).min(count as u64) as usize;
        let mut outcome = vec![Err(PinFault::Unmapped); count];
        // All at once; one by one if that is more than the limit allows.
        let whole = there > 0 && span.pin(first.0 as usize * PAGE, there * PAGE).is_ok();
        for (at, outcome) in outcome.iter_mut().enumerate().take(there) {
            let page = Page(first.0 + at as u64);
            if !whole && span.pin(page.0 as usize * PAGE, PAGE).is_err() {
                *outcome = Err(PinFault::Limit);
                continue;
            }
            let mut state = self.state();
            let frame = state.free.pop().unwrap_or(Frame(state.frames.len() as u32));
            if state.frames.len() <= frame.0 as usize {
                state.frames.push(None);
            }
            state.frames[frame.0 as usize] = Some((span.clone(), page));
            *outcome = Ok(frame);
        }
        outcome
    }

    fn unpin(&mut self, _process: ProcessId, _page: Page, frame: Frame) {
        let mut state = self.state();
        let Some((span, page)) = state.frames.get_mut(frame.0 as usize).and_then(Option::take) else { return };
        state.free.push(frame);
        drop(state);
        // A mapping that is gone has no locks.
        let _ = span.unpin(page.0 as usize * PAGE, PAGE);
    }
}
