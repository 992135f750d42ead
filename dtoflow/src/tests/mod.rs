//! One conformance suite, passed by the memory twin, the SQLite twin, the PostgreSQL twin, and the gRPC client over each of
//! the latter two; the server's own refusals; and the twins against each other under random changes.

mod client;
mod history;
mod refusals;
mod reindex;
mod suite;
mod twins;
mod world;

/// Each case of the suite, on each face of the store.
macro_rules! conformance {
    ($($case:ident),+ $(,)?) => {
        conformance!(@face memory, crate::tests::world::World::memory(), $($case),+);
        conformance!(@face sqlite, crate::tests::world::World::sqlite().await, $($case),+);
        conformance!(@face postgres, crate::tests::world::World::postgres().await, $($case),+);
        conformance!(@face grpc, crate::tests::client::over_grpc(crate::tests::world::World::sqlite().await), $($case),+);
        conformance!(
            @face grpc_postgres,
            crate::tests::client::over_grpc(crate::tests::world::World::postgres().await),
            $($case),+
        );
    };
    (@face $face:ident, $world:expr, $($case:ident),+) => {
        mod $face {
            $(
                #[tokio::test]
                async fn $case() {
                    let world = $world;
                    crate::tests::suite::$case(&world).await;
                }
            )+
        }
    };
}

conformance!(
    versions_only_grow_also_across_deletes,
    a_payload_comes_only_where_it_is_newer,
    a_write_announces_and_an_unchanged_one_does_not,
    an_unchanged_write_announces_what_was_never_delivered,
    stale_inputs_write_nothing,
    aliases_follow_their_records,
    a_listing_runs_over_parents_and_stays_stable,
    stores_of_a_tenants_parent_are_listed_with_counts,
    tenant_scoped_records_are_found_under_their_tenant,
    a_write_under_a_lease_takes_its_lane,
    a_write_under_an_ended_lease_changes_nothing,
    an_operations_tracking_id_needs_its_lease,
    a_touch_announces_once_and_keeps_the_version,
    nothing_of_a_refused_call_is_written,
    a_read_of_more_than_a_message_carries_is_refused,
    another_picture_is_told_with_who_and_why,
    ends_of_deliveries_are_told,
    a_history_is_paged_and_cut_to_its_newest_entries,
    old_entries_are_forgotten_in_bounded_rounds,
);
