//! The audit log.

use crate::each_port;

each_port!(it_is_paged_by_tenant_and_tracking_id, it_is_append_only);

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
