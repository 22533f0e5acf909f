//! Every interleaving of two to four processes at the two ends of one direction, one shared access at a time.
//!
//! Checked in every state: each byte of a writer is read once and in order. Checked at every rest: all that was written has
//! been read. Checked over the whole graph: from every state an end can be reached.
//!
//! It shows nothing of memory order (the models of `shm` do), of hostile words, of epoll or of signals.

// The sources, not the library: `tests/rules.rs` leaves rules out of this file alone, and everything else is built once.
#[allow(dead_code)]
#[path = "../src/path/mod.rs"]
mod path;
#[path = "explore/search.rs"]
mod search;
#[path = "explore/world.rs"]
mod world;

use world::Setup;

const NOTHING: Setup = Setup {
    name: "",
    bytes: [3, 1],
    opens: 1,
    overflows: 0,
    writer_forks: false,
    reader_forks: false,
    deaths: 0,
    stops: 0,
    gives_back: 0,
    writer_ends: false,
    parts: 0,
    far: false,
    refuses: false,
};

macro_rules! explorations {
    ($($(#[$attribute:meta])* $name:ident { $($field:ident: $value:expr),* $(,)? })*) => {
        $(#[test] $(#[$attribute])* fn $name() {
            search::explore(&Setup { name: stringify!($name), $($field: $value,)* ..NOTHING });
        })*
    };
}

explorations! {
    switches { opens: 2, overflows: 2, bytes: [4, 0] }
    death { opens: 2, overflows: 1, deaths: 1 }
    stop { opens: 2, overflows: 1, stops: 1 }
    writer_fork { writer_forks: true, overflows: 1, bytes: [2, 1] }
    writer_fork_and_death { writer_forks: true, deaths: 1, bytes: [2, 1] }
    reader_fork { reader_forks: true, overflows: 1, bytes: [2, 0] }
    reader_fork_and_death { reader_forks: true, deaths: 1, bytes: [2, 0] }
    give_back { gives_back: 1, overflows: 1, bytes: [3, 0] }
    give_back_and_death { gives_back: 1, deaths: 1, bytes: [3, 0] }
    give_back_with_two_writers { gives_back: 1, writer_forks: true, bytes: [2, 1] }
    asked_to_end { writer_ends: true, gives_back: 2, overflows: 1, bytes: [3, 0] }
    asked_to_end_and_death { writer_ends: true, gives_back: 1, deaths: 1, bytes: [3, 0] }
    asked_to_end_and_fork { writer_ends: true, gives_back: 1, reader_forks: true, bytes: [2, 0] }
    ended_by_the_writer_and_fork { writer_ends: true, writer_forks: true, overflows: 1, bytes: [2, 1] }
    far { far: true, writer_ends: true, opens: 2, overflows: 2, bytes: [4, 0] }
    refusals { refuses: true, opens: 2, overflows: 2, bytes: [4, 0] }
    parting { opens: 2, parts: 2, overflows: 1, bytes: [4, 0] }
    parting_and_give_back { parts: 1, gives_back: 1, bytes: [3, 0] }
    parting_when_asked { writer_ends: true, opens: 2, parts: 2, gives_back: 1, bytes: [3, 0] }
}

/// Minutes rather than seconds: `./test explore` and `./test full` run these.
mod deep {
    use super::*;

    explorations! {
        both_fork { writer_forks: true, reader_forks: true, bytes: [1, 1] }
        reader_fork_with_three_bytes { reader_forks: true, overflows: 1, bytes: [3, 0] }
        give_back_with_two_readers { gives_back: 1, reader_forks: true, bytes: [2, 0] }
        give_back_two_writers_and_death { gives_back: 1, writer_forks: true, deaths: 1, bytes: [2, 1] }
        far_and_parting { far: true, writer_ends: true, opens: 2, parts: 2, overflows: 1, bytes: [4, 0] }
        parting_and_death { opens: 2, parts: 2, overflows: 1, deaths: 1, bytes: [4, 0] }
        writer_fork_and_stop { writer_forks: true, stops: 1, bytes: [2, 1] }
        reader_fork_and_stop { reader_forks: true, stops: 1, bytes: [2, 0] }
    }
}
