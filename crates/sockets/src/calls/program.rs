//! Programs that are executed in place of this one, or started in a child: what they will have goes back to TCP before.

use crate::{
    descriptors::table,
    kernel::signal::Inside,
    processes::{
        custody::{self, program::Place},
        fork,
    },
    promotion::leaving,
    streams::Stream,
};

use super::{give_away, is_set, streams};

/// The program is about to execute another one, which will have these descriptors.
pub fn executing(fds: &[i32]) {
    let _inside = Inside::enter();
    fork::hold_promotions();
    hand_on(fds, Place::Here);
}

/// The program is about to start another one in a child, which will have these descriptors, too.
pub fn starting(fds: &[i32]) {
    let _inside = Inside::enter();
    // Once the child is listed, nobody promotes what it has.
    fork::hold_promotions();
    hand_on(fds, Place::Child);
    fork::take_back();
}

/// That has been done, or it has failed.
pub fn started(succeeded: bool) {
    let _inside = Inside::enter();
    let _change = table::change();
    custody::rest::take_back();
    if succeeded { custody::program::started() } else { custody::program::take_back() }
}

fn hand_on(fds: &[i32], place: Place) {
    let streams = streams(fds);
    leaving::leave_to_program(&streams);
    leaving::await_parting(&streams);
    streams.iter().for_each(|stream| stream.withdraw());
    let has_sets = fds.iter().any(|fd| is_set(*fd));
    if has_sets {
        // Who waits on them elsewhere is not known.
        return give_away(fds);
    }
    let _change = table::change();
    let once: Vec<&'static Stream> = fds
        .iter()
        .zip(&streams)
        .filter(|(fd, stream)| is_first(**fd, stream, fds))
        .map(|(_, stream)| *stream)
        .collect();
    custody::rest::leave(&once);
    custody::program::hand_on(&once, place);
}

/// Whether no number before this one leads to the same stream.
fn is_first(fd: i32, stream: &Stream, fds: &[i32]) -> bool {
    let same = |other: &i32| table::slot(*other).is_some_and(|slot| slot.is(stream));
    fds.iter().find(|other| same(other)) == Some(&fd)
}

/// It was not executed.
pub fn stays() {
    let _inside = Inside::enter();
    let _change = table::change();
    custody::program::take_back();
    custody::rest::take_back();
    fork::take_back();
}
