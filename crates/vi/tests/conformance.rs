//! The provider between two nodes, over every kind of link: one function a property, one test a link.

#[path = "conformance/completion.rs"]
mod completion;
#[path = "conformance/connecting.rs"]
mod connecting;
#[path = "conformance/extensions.rs"]
mod extensions;
#[path = "conformance/failing.rs"]
mod failing;
#[path = "conformance/messages.rs"]
mod messages;
#[path = "conformance/pair.rs"]
mod pair;
#[path = "conformance/rdma.rs"]
mod rdma;

macro_rules! suite {
    ($name:ident, $fixture:expr) => {
        mod $name {
            suite!(@tests $fixture;
                messages: [sizes_arrive_whole_and_in_order, segments_are_joined, immediate_data_travels,
                    empty_messages_arrive, receives_may_come_before_the_connection, a_token_may_be_used_again_at_once,
                    sizes_alternate_in_order, both_directions_at_once],
                failing: [unreliable_drops, delivery_ends_the_connection, reception_tells_both,
                    too_long_is_a_length_error, unreliable_survives_a_length_error, sends_without_connection_are_flushed,
                    disconnecting_flushes, wrong_memory_is_refused, memory_may_go_while_posted,
                    a_bad_receive_fails_the_message_that_meets_it, a_bad_receive_is_flushed, formats_are_checked,
                    queues_are_bounded, a_killed_peer_is_noticed, a_killed_peer_is_noticed_while_sends_wait],
                rdma: [writes_land, the_last_word_comes_last, writes_with_immediate_take_a_receive,
                    immediate_data_without_a_receive_end_it_the_same_way, reads_come_back, fences_wait_for_reads,
                    rights_are_checked, memory_of_the_program_is_reached, completions_keep_the_order_of_posting, changed_rights_count],
                connecting: [one_that_nobody_finishes_holds_up_no_other, rejection_is_told, reliability_must_agree, nobody_is_no_match, an_answer_may_time_out,
                    peers_meet, peers_may_time_out, a_vi_connects_again, states_are_checked],
                completion: [one_queue_serves_many, sends_complete_there_too, waiting_threads_are_woken,
                    waits_see_the_end, callbacks_are_called, errors_are_reported, lost_rdma_is_reported,
                    a_descriptor_tells],
                extensions: [asynchronous_sends_wait_for_receives, nonblocking_sends_are_refused,
                    blocking_sends_wait, messages_are_split, a_vi_moves_to_another_queue]);
        }
    };
    (@tests $fixture:expr; $($module:ident: [$($test:ident),* $(,)?]),* $(,)?) => {
        $($(#[test] fn $test() { super::$module::$test($fixture); })*)*
    };
}

suite!(shm, sidestep_testkit::conformance::fixture::shm);
suite!(iwarp, sidestep_testkit::conformance::fixture::iwarp);
suite!(sim_proxied, sidestep_testkit::conformance::fixture::sim_proxied);
suite!(sim_mapped, sidestep_testkit::conformance::fixture::sim_mapped);
suite!(traced_shm_seeing_all, sidestep_testkit::conformance::fixture::traced_shm_seeing_all);
