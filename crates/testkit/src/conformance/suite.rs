//! The list of all bullets, from which the tests are made.

/// Makes a module of tests, one for each bullet of each contract, for the links that a fixture makes.
#[macro_export]
macro_rules! conformance_suite {
    ($name:ident, $fixture:expr) => {
        mod $name {
            $crate::conformance_tests! {
                $fixture;
                link: [
                    connect_reaches_who_listens_or_says_that_nobody_does,
                    a_name_has_one_listener,
                    a_live_peer_of_a_name_is_used_again,
                    peers_outlive_the_name_they_came_by,
                    posts_arrive_whole_once_and_in_order,
                    requests_take_effect_in_the_order_asked,
                    a_request_ends_once,
                    a_close_ends_requests_once,
                    closing_ends_own_requests_once,
                    a_put_takes_its_bytes_at_the_call,
                    a_refused_request_changes_nothing_and_says_why,
                    a_close_is_reported_once_after_all_posts,
                    a_death_is_reported_once_after_all_posts,
                    news_wakes_a_sleeper,
                    a_new_peer_wakes_a_sleeper,
                    poll_never_blocks,
                ]
                cookie: [
                    a_genuine_cookie_is_honoured,
                    cookies_are_the_same_until_revoked,
                    a_cookie_survives_the_wire,
                    another_key_is_forged,
                    other_rights_are_forged,
                    another_length_is_forged,
                    another_generation_is_refused,
                    another_region_is_refused,
                    a_revoked_cookie_is_refused,
                    an_expired_cookie_is_refused,
                    insufficient_rights_are_refused,
                    a_range_outside_is_refused,
                    an_unaligned_atomic_is_refused,
                    the_cookie_of_a_dropped_region_is_refused,
                ]
                region: [
                    a_region_begins_as_zeros,
                    the_owner_stays_inside,
                    own_memory_is_target_and_source,
                    caller_memory_is_target_and_source,
                    caller_memory_is_local_end_of_transfers,
                    a_read_in_one_step_finds_what_is_mapped,
                    revoking_keeps_the_content,
                    a_peer_keeps_the_old_pages_only,
                    a_dropped_region_is_out_of_reach,
                    shared_pages_open_while_the_owner_is_busy,
                    shared_pages_can_be_revoked,
                    a_number_used_again_is_another_region,
                ]
                revocation: [
                    no_put_lands_after_a_revocation,
                    no_fresh_pages_are_granted_for_an_old_cookie,
                ]
                caller_memory: [
                    transfers_reach_memory_of_the_program,
                    atomics_are_in_order_with_transfers,
                    watched_memory_of_the_program_fires,
                    nothing_lands_after_a_revocation,
                    nothing_lands_after_the_end_of_a_region,
                    other_memory_stays_reachable,
                ]
                read_only: [
                    reads_need_nothing_of_the_owner,
                    a_reader_has_no_way_to_write,
                    reads_are_in_order,
                    a_reader_loses_access_at_the_revocation,
                    a_reader_of_a_dropped_region_is_told,
                    a_lifetime_keeps_pages_from_readers,
                    the_first_pages_decide_how_a_region_is_mapped,
                    pages_sent_ahead_are_read_at_once,
                    a_read_fires_a_read_tripwire,
                    a_read_of_words_armed_again_fires_again,
                    a_death_ends_reads,
                ]
                aperture: [
                    pages_are_mapped_for_writing_with_all_rights_only,
                    opening_waits_for_the_owner,
                    a_refusal_is_reported,
                    an_aperture_is_opened_once,
                    stores_outside_or_without_right_are_refused,
                    word_stores_are_aligned,
                    stores_are_seen_in_order,
                    a_large_store_arrives_whole,
                    flush_reports_a_refused_store,
                    a_dead_peer_ends_its_apertures,
                ]
                tripwire: [
                    an_unarmed_word_does_not_fire,
                    once_means_once,
                    repeating_fires_again_when_noticed,
                    every_write_fires,
                    a_read_fires_a_read_tripwire,
                    words_are_watched_one_by_one,
                    a_write_of_nothing_fires_nothing,
                    two_tripwires_on_one_word,
                    a_range_fires_for_any_of_its_words,
                    a_group_of_ranges_is_one_tripwire,
                    a_bound_wait_ends_with_its_peer,
                    a_dropped_tripwire_watches_no_more,
                    caller_memory_is_watched,
                    the_owners_writes_fire_nothing,
                    a_tripwire_is_inside_its_region,
                    a_wait_ends_at_its_deadline,
                    no_wake_up_is_lost,
                    no_wake_up_is_lost_between_threads,
                ]
                event_queue: [
                    one_entry_per_source,
                    first_come_first_served,
                    detaching_drops_the_event,
                    a_detached_number_names_nothing,
                    a_repeating_tripwire_reports,
                    a_detached_tripwire_is_silent,
                    an_rdma_queue_reports,
                    an_endpoint_reports,
                    an_endpoint_reports_what_is_there_already,
                    a_listener_reports,
                    a_wait_ends_with_an_event_or_its_deadline,
                    the_descriptor_tells_of_events,
                    a_new_descriptor_tells_of_old_events,
                    two_queues_have_their_own_descriptors,
                    the_descriptor_is_quiet_after_a_backlog,
                    a_polled_queue_only_looks,
                    many_events_a_call,
                    whoever_polls_takes_in_for_all,
                    a_thousand_sources,
                ]
                rdma: [
                    a_write_arrives,
                    a_read_fetches,
                    atomics_tell_what_was_there,
                    a_queue_is_in_order,
                    an_immediate_comes_after_its_write,
                    ids_wrap,
                    a_full_queue_says_so,
                    a_failure_flushes_what_follows,
                    impossible_requests_are_refused_at_once,
                    a_result_needs_room,
                    a_transfer_of_nothing_ends,
                    a_small_request_overtakes_a_large_one,
                    atomics_of_two_peers_add_up,
                    a_death_ends_requests,
                    a_queue_is_shared_by_threads,
                ]
                rdma_group: [
                    a_gather_list_arrives_as_one,
                    a_scatter_list_is_filled,
                    a_group_is_in_order,
                    a_group_is_posted_whole,
                    a_failure_flushes_the_rest_of_a_group,
                    a_group_is_served_in_one_turn,
                ]
                endpoint: [
                    messages_are_whole_and_in_order,
                    a_large_message_is_refused,
                    an_inbox_is_bounded,
                    a_wait_for_a_message_ends,
                    a_close_is_told_with_the_on_close_message,
                    a_drop_is_a_close,
                    a_death_delivers_the_on_close_message,
                    an_end_wakes_a_sleeper,
                    connections_end_one_by_one,
                    a_slot_is_used_again_under_another_session,
                    resources_live_until_both_sides_have_closed,
                    resources_of_a_request_live_until_it_is_answered,
                    an_answer_that_is_not_sent_keeps_nothing,
                    resources_are_given_back_when_the_peer_dies,
                    stale_and_foreign_messages_are_dropped,
                    a_broken_message_ends_its_own_connection,
                ]
                listener: [
                    accepting_exchanges_private_data,
                    connecting_and_accepting_wait,
                    refusing_is_told_with_private_data,
                    a_dropped_request_is_refused,
                    a_dropped_listener_refuses_who_waits,
                    nobody_listens,
                    private_data_has_a_limit,
                    names_have_a_form,
                    a_name_is_taken_while_someone_listens,
                    giving_up_tells_the_other_side,
                    waits_end_at_their_deadline,
                    requests_wait_in_order,
                ]
                node: [
                    the_scheme_picks_the_link,
                    an_unknown_scheme_is_a_clear_error,
                    peers_of_all_links_report_to_one_event_queue,
                    all_links_carry_messages_at_once,
                    a_sleeper_is_woken_by_every_link,
                    a_death_on_one_link_leaves_the_others,
                    a_busy_link_hides_no_death,
                ]
                sleepers: [
                    sleepers_of_all_kinds_are_woken,
                    who_gets_up_leaves_the_others_asleep,
                ]
                stream: [
                    bytes_arrive_in_order,
                    a_full_ring_takes_no_more,
                    one_publish_covers_many,
                    peeking_takes_nothing,
                    no_byte_is_slept_over,
                    waits_end_at_their_deadline,
                    bytes_before_the_end_are_received,
                    a_death_ends_waits,
                    a_ring_grows,
                    a_freeze_is_the_end_for_both,
                    a_sender_freezes,
                    an_end_wakes_a_sender_without_space,
                    the_descriptor_wakes_a_sleeper,
                    bytes_on_the_way_are_not_slept_over,
                    a_queue_fits_its_region,
                ]
                in_place: [
                    a_view_shows_what_has_arrived,
                    a_reservation_is_sent_when_committed,
                    impossible_views_and_reservations_are_refused,
                    a_wait_for_many_bytes_ends_when_they_are_there,
                    a_wait_for_bytes_ends_with_the_connection,
                    a_view_reaches_into_a_larger_ring,
                ]
                queue_events: [
                    a_receiver_reports_arrivals,
                    a_receiver_reports_what_is_there_already,
                    a_sender_reports_space,
                    queues_report_the_end,
                    a_detached_queue_is_silent,
                    no_arrival_and_no_space_is_slept_over,
                ]
                channel: [
                    channels_are_made_without_waiting,
                    a_channel_being_made_reports,
                    a_channel_that_is_not_made_says_why,
                    a_channel_grows,
                    a_try_finds_the_larger_ring,
                    notes_are_found_at_the_other_side,
                    many_channels_report_to_one_queue,
                    slots_do_not_grow,
                    a_full_link_sets_a_deadline,
                ]
                message_queue: [
                    messages_arrive_whole,
                    a_large_message_is_refused,
                    a_small_buffer_loses_nothing,
                    a_full_queue_takes_no_more,
                    one_publish_covers_many,
                    each_direction_has_its_kind,
                    a_channel_carries_private_data,
                    a_request_for_something_else_is_refused,
                    blocks_are_used_again_clean,
                ]
                program: [
                    memories_are_what_the_oracle_says,
                ]
            }
        }
    };
}

/// One test for each listed function.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($fixture:expr; $($module:ident: [$($test:ident),* $(,)?])*) => {
        $(
            mod $module {
                $(
                    #[test]
                    fn $test() {
                        $crate::conformance::$module::$test($fixture);
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    /// A bullet that is written and not listed would never be tested.
    #[test]
    fn every_bullet_is_listed() {
        let list = include_str!("suite.rs");
        let files = [
            include_str!("link.rs"),
            include_str!("cookie.rs"),
            include_str!("region.rs"),
            include_str!("revocation.rs"),
            include_str!("caller_memory.rs"),
            include_str!("read_only.rs"),
            include_str!("aperture.rs"),
            include_str!("tripwire.rs"),
            include_str!("event_queue.rs"),
            include_str!("rdma.rs"),
            include_str!("rdma_group.rs"),
            include_str!("endpoint.rs"),
            include_str!("listener.rs"),
            include_str!("node.rs"),
            include_str!("stream.rs"),
            include_str!("in_place.rs"),
            include_str!("queue_events.rs"),
            include_str!("channel.rs"),
            include_str!("message_queue.rs"),
            include_str!("program.rs"),
        ];
        let mut missing = Vec::new();
        for line in files.iter().flat_map(|file| file.lines()) {
            let name = line.strip_prefix("pub fn ").and_then(|rest| rest.split_once("(fixture: Fixture)"));
            if let Some((name, _)) = name
                && !list.contains(&format!(" {name},"))
            {
                missing.push(name);
            }
        }
        assert!(missing.is_empty(), "not in the list: {missing:?}");
    }
}
