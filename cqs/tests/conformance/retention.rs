//! What is over is forgotten after its time.

use crate::each_port;

each_port!(
    an_operation_is_kept_with_its_failures_and_its_name_then_forgotten,
    ordinary_failures_are_forgotten_and_their_marks_are_not,
);

mod scenario_impl {
    use cqs::{RetentionSettings, announce::Announce};
    use domain::Outcome;

    use crate::{failures_world::Wanted, world::*};

    const DAY: i64 = 24 * 60 * MINUTE;
    const KEPT: RetentionSettings =
        RetentionSettings { operations_ms: 90 * DAY, failures_ms: 30 * DAY, audit_ms: 400 * DAY };

    async fn retain(world: &World) {
        while world.store.retain(KEPT, world.now()).await.unwrap() {}
    }

    pub async fn an_operation_is_kept_with_its_failures_and_its_name_then_forgotten(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..3))).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &failed("no price")).await;
        // One that never finishes stays, however old.
        world.inject(refresh("op-2")).await.unwrap();

        world.clock.advance_ms(KEPT.operations_ms);
        retain(&world).await;
        assert_eq!(world.failures(Wanted { of: "op-1", ..Wanted::default() }, 10).await.len(), 3);
        let (_, replayed, ..) = world.inject(refresh("op-1")).await.unwrap();
        assert!(replayed, "the name is taken as long as the operation is kept");

        world.clock.advance_ms(1);
        retain(&world).await;
        assert!(world.progress("op-1").await.is_none());
        assert!(world.progress("op-2").await.is_some());
        assert!(world.fates(&["t/T/s/S/ecclinks/E0"]).await.is_empty(), "what failed is forgotten with it");
        // The mark is not: a write that changes nothing is announced.
        let mut told = told("t/T/s/S/ecclinks/E0", world.now());
        told.announce = Announce::OnlyIfUndelivered;
        world.announce(vec![told]).await.unwrap();
        assert_eq!(world.fates(&["t/T/s/S/ecclinks/E0"]).await.len(), 1);
        let (_, replayed, ..) = world.inject(refresh("op-1")).await.unwrap();
        assert!(!replayed, "the name is free again");
        world.progress("op-1").await.unwrap().assert_balanced();
    }

    pub async fn ordinary_failures_are_forgotten_and_their_marks_are_not(mut world: World) {
        const LINK: &str = "t/T/s/S/ecclinks/E1";
        world.write(&[LINK], START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &failed("no price")).await;
        world.clock.advance_ms(KEPT.failures_ms);
        retain(&world).await;
        assert_eq!(world.fates(&[LINK]).await.len(), 1);
        world.clock.advance_ms(1);
        retain(&world).await;
        assert!(world.fates(&[LINK]).await.is_empty());
        let mut quiet = told(LINK, world.now());
        quiet.announce = Announce::OnlyIfUndelivered;
        world.announce(vec![quiet]).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(leased.urns(), [LINK], "announced, because it never was delivered");
        world.complete_all(&leased, &Outcome::Done).await;
    }
}
