//! What comes in on a session: bytes of the stream become frames, which the engine handles one by one; the payload of a
//! large write goes from the stream straight to its place, where nothing behind its headers can make it invalid.

use sidestep_sys::lock::MutexGuard;

use rustix::io::Errno;
use sidestep_iwarp::Passage;

use super::{
    input::{Input, WORD},
    memory::Memory,
    session::{Around, Session},
    state::{Delivery, State},
};
use crate::link::Target;

/// Reads of one stream in one poll, so that no peer holds up the others.
const READS_A_POLL: usize = 4;
/// Payload that is still on its way, below which it is not worth while to receive it in its place.
const LEAST_PASSING: usize = 8 * 1024;

impl Session {
    /// Reads, and handles what was read. Whether there was anything; and the state, if it is locked.
    pub(super) fn receive<'a>(
        &'a self,
        around: Around<'_>,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) -> (bool, Option<MutexGuard<'a, State>>) {
        let mut input = self.input.lock().expect("no panic while receiving");
        let mut state = None;
        let mut any = false;
        for _ in 0..READS_A_POLL {
            // Requests go out while this thread reads.
            drop(state.take());
            match self.read(&mut input, target) {
                Ok(None) => break,
                Ok(Some(0)) => {
                    self.lock().end_of_stream(around, target, deliveries);
                    return (true, None);
                }
                Ok(Some(_)) => any = true,
                Err(errno) => {
                    self.lock().lose(State::reason_of(errno));
                    return (true, None);
                }
            }
            let has_more = input.has_more;
            state = Some(self.handle(&mut input, around, target, deliveries));
            if !has_more {
                break;
            }
        }
        (any, state)
    }

    /// Reads into the place of a write that is passing, or behind what is left.
    fn read(&self, input: &mut Input, target: &dyn Target) -> Result<Option<usize>, Errno> {
        let Some(passing) = input.passing.filter(|passing| passing.front_left() > 0) else {
            return input.fill(&self.socket);
        };
        let stag = passing.passage.stag;
        let Some((peer, cookie)) = self.lock().memory.holder(stag) else {
            // It was refused: what comes for it is dropped.
            return input.fill(&self.socket);
        };
        let mut read = Ok(None);
        let place = (passing.next(), passing.front_left());
        let allowed = target.land(peer, &cookie, place, &mut |place| read = input.fill_place(&self.socket, place));
        if let Err(refusal) = allowed {
            self.lock().memory.refuse(stag, refusal);
            return input.fill(&self.socket);
        }
        read
    }

    /// Handles frames, one by one.
    fn handle(
        &self,
        input: &mut Input,
        around: Around<'_>,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) -> MutexGuard<'_, State> {
        let now = around.now();
        let mut state = self.lock();
        loop {
            if let Some(passing) = input.passing {
                if !input.has_passed() {
                    return state;
                }
                state.finish_passage(now, &passing.passage, &input.rest()[..WORD], target);
                state.collect(around, target, deliveries);
                input.end_passing();
            } else {
                let rest = input.rest();
                let needed = state.connection.needed(rest);
                if rest.is_empty() || rest.len() < needed {
                    let State { connection, table, memory, .. } = &mut *state;
                    let large = needed >= rest.len() + LEAST_PASSING && target.lands();
                    match large.then(|| connection.begin_passage(rest, table)).flatten() {
                        Some(passage) => begin_passing(input, memory, passage, target),
                        None => input.note_needed(needed),
                    }
                    return state;
                }
                let frame = if needed <= 1 { rest } else { &rest[..needed] };
                let taken = state.handle_input(now, frame, target);
                state.collect(around, target, deliveries);
                input.consume(taken);
                input.note_whole();
                if taken == 0 {
                    return state;
                }
            }
            if !deliveries.is_empty() {
                drop(state);
                self.deliver(deliveries, target);
                state = self.lock();
            }
        }
    }
}

/// Puts the payload that is here to its place; what follows is received there.
fn begin_passing(input: &mut Input, memory: &mut Memory, passage: Passage, target: &dyn Target) {
    let here = &input.rest()[passage.headers..];
    let count = here.len();
    if let Some((peer, cookie)) = memory.holder(passage.stag) {
        let allowed = target.land(peer, &cookie, (passage.offset, count), &mut |place| {
            // It is as long as what is here.
            let _ = place.copy_in(0, here);
        });
        if let Err(refusal) = allowed {
            memory.refuse(passage.stag, refusal);
        }
    }
    input.begin_passing(passage, count);
}
