//! The audit log.

use crate::each_port;

each_port!(
    it_is_paged_by_tenant_and_tracking_id,
    it_is_narrowed_by_time_and_outcome,
    the_brake_is_told_to_every_tenant,
    it_is_append_only,
);

mod scenario_impl {
    use cqs::{
        AuditFilter,
        model::{AuditOutcome, AuditRow},
    };
    use domain::ServiceName;

    use crate::world::*;

    fn row(tenant: &str, tracking_id: &str) -> AuditRow {
        AuditRow {
            id: 0,
            at: START,
            service: ServiceName::OperatorGateway,
            operator_subject: "ann@example".to_owned(),
            tenant: Some(tenant.parse().unwrap()),
            action: "touch".to_owned(),
            tracking_id: tracking_id.to_owned(),
            reason: "because \"of\" ' -- that".to_owned(),
            request_digest: "0".repeat(64),
            outcome: AuditOutcome::Refused,
            error_code: "NOT_FOUND".to_owned(),
            detail: "no such model".to_owned(),
        }
    }

    pub async fn it_is_paged_by_tenant_and_tracking_id(world: World) {
        let rows = (0..6).map(|n| row(if n % 2 == 0 { "T" } else { "U" }, &format!("id-{n}"))).collect();
        world.store.append_audit(rows).await.unwrap();
        let page = world.audit(None).await;
        assert_eq!(page.iter().map(|row| row.tracking_id.as_str()).collect::<Vec<_>>(), ["id-4", "id-2", "id-0"]);
        assert!(page.windows(2).all(|pair| pair[0].id > pair[1].id));
        assert_eq!(AuditRow { id: 0, ..page[2].clone() }, row("T", "id-0"));
        let filter = AuditFilter {
            tenants: vec!["T".parse().unwrap(), "U".parse().unwrap()],
            tracking_id: None,
            operator_subject: None,
            action: None,
            outcome: None,
            since: None,
            until: None,
            before: page[0].id,
            limit: 2,
        };
        let rest = world.store.audit(filter).await.unwrap();
        assert_eq!(rest.iter().map(|sealed| sealed.row.tracking_id.as_str()).collect::<Vec<_>>(), ["id-3", "id-2"]);
        assert_eq!(world.audit(Some("id-2")).await.len(), 1);
        assert!(world.audit(Some("id-1")).await.is_empty(), "another tenant's");
    }

    /// The whole log of tenant T.
    fn all() -> AuditFilter {
        AuditFilter {
            tenants: vec!["T".parse().unwrap()],
            tracking_id: None,
            operator_subject: None,
            action: None,
            outcome: None,
            since: None,
            until: None,
            before: i64::MAX,
            limit: 100,
        }
    }

    /// Tracking ids of a part of the log, oldest first.
    async fn found(world: &World, filter: AuditFilter) -> Vec<String> {
        let page = world.store.audit(filter).await.unwrap();
        page.into_iter().rev().map(|sealed| sealed.row.tracking_id).collect()
    }

    pub async fn it_is_narrowed_by_time_and_outcome(world: World) {
        // Some are dated before one that stands before them, since they took longer; after "c" and "e" there is a gap.
        let dated = [
            ("a", 0, AuditOutcome::Accepted),
            ("b", 10_000, AuditOutcome::Refused),
            ("c", 9_000, AuditOutcome::Accepted),
            ("d", 1_000_000, AuditOutcome::Accepted),
            ("e", 999_000, AuditOutcome::Refused),
            ("f", 2_000_000, AuditOutcome::Replayed),
        ];
        let of = |tenant, (id, ms, outcome): (&str, i64, AuditOutcome)| AuditRow {
            at: START.plus_ms(ms),
            outcome,
            ..row(tenant, id)
        };
        let rows = dated.into_iter().flat_map(|dated| [of("T", dated), of("U", dated)]).collect();
        world.store.append_audit(rows).await.unwrap();
        let at = |ms: Option<i64>| ms.map(|ms| START.plus_ms(ms));
        for (since, until, ids) in [
            (None, None, "abcdef"),
            (Some(999_500), None, "df"),
            (Some(999_000), None, "def"),
            (Some(9_500), None, "bdef"),
            (Some(500_000), None, "def"),
            (Some(3_000_000), None, ""),
            (None, Some(9_500), "ac"),
            (None, Some(999_500), "abce"),
            (None, Some(1_000_000), "abce"),
            (None, Some(0), ""),
            (Some(9_000), Some(10_000), "c"),
            (Some(9_000), Some(1_000_001), "bcde"),
        ] {
            let filter = AuditFilter { since: at(since), until: at(until), ..all() };
            assert_eq!(found(&world, filter.clone()).await.concat(), ids, "{since:?} to {until:?}");
            let refused = AuditFilter { outcome: Some(AuditOutcome::Refused), ..filter };
            let expected: String = ids.chars().filter(|id| "be".contains(*id)).collect();
            assert_eq!(found(&world, refused).await.concat(), expected, "{since:?} to {until:?}, refused");
        }
        // Page by page, narrowed.
        let first = AuditFilter { since: at(Some(9_500)), limit: 2, ..all() };
        let page = world.store.audit(first.clone()).await.unwrap();
        assert_eq!(found(&world, first.clone()).await, ["e", "f"]);
        assert_eq!(found(&world, AuditFilter { before: page[1].row.id, ..first }).await, ["b", "d"]);
    }

    pub async fn the_brake_is_told_to_every_tenant(world: World) {
        let of_all = |action: &str, id: &str, outcome| AuditRow {
            tenant: None,
            action: action.to_owned(),
            tracking_id: String::new(),
            detail: id.to_owned(),
            outcome,
            ..row("T", "")
        };
        let rows = vec![
            of_all("brake on", "on", AuditOutcome::Accepted),
            of_all("brake on", "refused", AuditOutcome::Refused),
            of_all("touch", "of nobody", AuditOutcome::Accepted),
            AuditRow { detail: "own".to_owned(), ..row("T", "id-1") },
            of_all("brake off", "again", AuditOutcome::Replayed),
        ];
        world.store.append_audit(rows).await.unwrap();
        let told = async |filter: AuditFilter| {
            let page = world.store.audit(filter).await.unwrap();
            page.into_iter().map(|sealed| sealed.row.detail).collect::<Vec<_>>()
        };
        assert_eq!(told(all()).await, ["again", "own", "on"]);
        assert_eq!(told(AuditFilter { tenants: vec!["U".parse().unwrap()], ..all() }).await, ["again", "on"]);
        assert_eq!(told(AuditFilter { limit: 2, ..all() }).await, ["again", "own"]);
        assert_eq!(told(AuditFilter { action: Some("brake on".to_owned()), ..all() }).await, ["on"]);
        assert_eq!(told(AuditFilter { action: Some("touch".to_owned()), ..all() }).await, ["own"]);
        assert_eq!(told(AuditFilter { outcome: Some(AuditOutcome::Refused), ..all() }).await, ["own"]);
        assert_eq!(told(AuditFilter { outcome: Some(AuditOutcome::Replayed), ..all() }).await, ["again"]);
        let of_ann = AuditFilter { operator_subject: Some("ann@example".to_owned()), ..all() };
        assert_eq!(told(of_ann).await, ["again", "own", "on"]);
        assert_eq!(told(AuditFilter { tracking_id: Some("id-1".parse().unwrap()), ..all() }).await, ["own"]);
    }

    pub async fn it_is_append_only(world: World) {
        world.store.append_audit(vec![row("T", "id-1")]).await.unwrap();
        // The memory twin has no way to change a row at all.
        let Some(db) = world.db() else { return };
        for statement in ["UPDATE cqs_audit SET reason = ''", "DELETE FROM cqs_audit"] {
            let changed: Result<(), db::DbError> = db
                .write(move |conn| {
                    Box::pin(async move {
                        sqlx::query(statement).execute(conn).await?;
                        Ok(())
                    })
                })
                .await;
            assert!(changed.unwrap_err().to_string().contains("append-only"), "{statement}");
        }
        assert_eq!(world.audit(None).await.len(), 1);
    }
}
