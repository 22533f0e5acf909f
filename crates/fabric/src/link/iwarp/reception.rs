//! What comes in on a session: bytes of the stream become frames, which the engine handles one by one; the payload of a
//! large write goes from the stream straight to its place, where nothing behind its headers can make it invalid.

use std::time::Duration;

use rustix::io::Errno;
use sidestep_iwarp::Passage;

use super::{
    input::{Input, WORD},
    session::{Around, Session},
    state::{Delivery, State},
};
use crate::link::Target;

/// Reads of one stream in one poll, so that no peer holds up the others.
const READS_A_POLL: usize = 4;
/// Payload that is still on its way, below which it is not worth while to receive it in its place.
const LEAST_PASSING: usize = 8 * 1024;

impl Session {
    /// Reads, and handles what was read. `true` if there was anything.
    pub(super) fn receive(&self, around: Around<'_>, target: &dyn Target, deliveries: &mut Vec<Delivery>) -> bool {
        let mut input = self.input.lock().expect("no panic while receiving");
        let mut any = false;
        for _ in 0..READS_A_POLL {
            match self.read(&mut input, target) {
                Ok(None) => break,
                Ok(Some(0)) => {
                    self.lock().end_of_stream(around.now, target, deliveries);
                    return true;
                }
                Ok(Some(_)) => any = true,
                Err(errno) => {
                    self.lock().lose(State::reason_of(errno));
                    return true;
                }
            }
            let has_more = input.has_more;
            self.handle(&mut input, around, target, deliveries);
            if !has_more {
                break;
            }
        }
        any
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
    fn handle(&self, input: &mut Input, around: Around<'_>, target: &dyn Target, deliveries: &mut Vec<Delivery>) {
        loop {
            if input.passing.is_some() {
                if !self.finish_passing(input, around.now, target, deliveries) {
                    return;
                }
                self.deliver(deliveries, target);
                continue;
            }
            let mut state = self.lock();
            let rest = input.rest();
            let needed = state.connection.needed(rest);
            if rest.is_empty() || rest.len() < needed {
                let State { connection, table, .. } = &mut *state;
                let large = needed >= rest.len() + LEAST_PASSING && target.lands();
                let Some(passage) = large.then(|| connection.begin_passage(rest, table)).flatten() else {
                    drop(state);
                    input.note_needed(needed);
                    return;
                };
                drop(state);
                return self.begin_passing(input, passage, target);
            }
            let frame = if needed <= 1 { rest } else { &rest[..needed] };
            let taken = state.handle_input(around.now, frame, target);
            state.collect(around.now, target, deliveries);
            drop(state);
            input.consume(taken);
            self.deliver(deliveries, target);
            if taken == 0 {
                return;
            }
        }
    }

    /// Puts the payload that is here to its place; what follows is received there.
    fn begin_passing(&self, input: &mut Input, passage: Passage, target: &dyn Target) {
        let here = &input.rest()[passage.headers..];
        let count = here.len();
        let holder = self.lock().memory.holder(passage.stag);
        if let Some((peer, cookie)) = holder {
            let allowed = target.land(peer, &cookie, (passage.offset, count), &mut |place| {
                // It is as long as what is here.
                let _ = place.copy_in(0, here);
            });
            if let Err(refusal) = allowed {
                self.lock().memory.refuse(passage.stag, refusal);
            }
        }
        input.begin_passing(passage, count);
    }

    /// Ends a write that is passing, once all of it is here. `true` if it has ended.
    fn finish_passing(
        &self,
        input: &mut Input,
        now: Duration,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) -> bool {
        let Some(passing) = input.passing else { return true };
        // Bytes for its place are here only if they may not go there.
        let dropped = passing.front_left().min(input.rest().len());
        input.consume(dropped);
        input.note_passed(dropped);
        if dropped < passing.front_left() || input.rest().len() < passing.rest_len() {
            return false;
        }
        let mut state = self.lock();
        state.finish_passage(now, &passing.passage, &input.rest()[..WORD], target);
        state.collect(now, target, deliveries);
        drop(state);
        input.consume(passing.rest_len());
        input.passing = None;
        true
    }
}
