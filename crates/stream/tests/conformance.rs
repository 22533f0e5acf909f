//! Every carrier keeps one contract (`carrier/mod.rs`): each line of it is one test, run for every kind.

#[path = "conformance/contract.rs"]
mod contract;
#[path = "conformance/endings.rs"]
mod endings;
#[path = "conformance/fixture.rs"]
mod fixture;

macro_rules! suite {
    ($($kind:ident),*) => {
        $(mod $kind {
            use super::{contract, fixture};

            suite!(@ $kind:
                bytes_arrive_once_and_in_order,
                what_does_not_fit_is_not_taken,
                notes_come_after_the_bytes_before_them,
                an_ended_carrier_gives_each_byte_once,
                either_end_ends_it_by_one_word,
                an_end_outlives_who_made_it,
                what_is_given_back_comes_to_one_of_the_two,
                held_bytes_come_back_or_arrive,
                larger_ones_lose_nothing,
                lent_memory_is_the_callers_again,
                news_wakes,
                what_has_arrived_outlives_the_peer,
                the_end_comes_after_the_last_byte,
                what_was_said_leaves_room,
                a_hostile_peer_harms_itself_only,
            );
        })*
    };
    (@ $kind:ident: $($test:ident),* $(,)?) => {
        $(#[test] fn $test() { contract::$test(fixture::$kind()); })*
    };
}

suite!(ring, via, via_packets, via_far, loopback);

/// Datagrams are no stream of bytes; what does not depend on that holds for them, too.
mod via_datagrams {
    use super::{contract, fixture};

    suite!(@ via_datagrams:
        a_read_gives_one_write,
        either_end_ends_it_by_one_word,
        an_end_outlives_who_made_it,
        what_was_said_leaves_room,
        what_has_arrived_outlives_the_peer,
        the_end_comes_after_the_last_byte,
        a_hostile_peer_harms_itself_only,
    );
}
