//! The chain of the audit log, its checkpoints, and what their check finds.

use crate::each_port;

each_port!(
    an_untouched_log_is_found_whole,
    old_entries_are_cut_at_a_checkpoint_and_the_rest_is_found_whole,
    filters_hold_together,
);

mod scenario_impl {
    use std::sync::Arc;

    use cqs::{
        AuditFilter, RetentionSettings,
        audit::{AuditSealer, checkpoint, verify::verify},
        model::{AuditOutcome, AuditRow},
    };
    use domain::ManualClock;

    use super::{Sealed, row};
    use crate::world::*;

    pub async fn an_untouched_log_is_found_whole(world: World) {
        let sealed = Sealed::new();
        for n in 0..5 {
            world.store.append_audit(vec![row(n), row(n + 10)]).await.unwrap();
            sealed.sealer(&world).seal().await.unwrap();
        }
        let (checkpoints, _) = checkpoint::read(&sealed.path, sealed.key.public()).unwrap();
        let found = verify(&*world.store, &checkpoints).await.unwrap();
        assert_eq!((found.broken, found.entries, found.head.id, found.sealed_to), (None, 10, 10, 10));
        // What came since is chained, and not signed yet.
        world.store.append_audit(vec![row(99)]).await.unwrap();
        let found = verify(&*world.store, &checkpoints).await.unwrap();
        assert_eq!((found.broken, found.head.id, found.sealed_to), (None, 11, 10));
    }

    pub async fn old_entries_are_cut_at_a_checkpoint_and_the_rest_is_found_whole(world: World) {
        let sealed = Sealed::new();
        let keep = RetentionSettings { audit_ms: 10 * MINUTE, ..RetentionSettings::default() };
        for n in 0..4 {
            let mut entry = row(n);
            entry.at = world.now();
            world.store.append_audit(vec![entry]).await.unwrap();
            sealed.sealer(&world).seal().await.unwrap();
            world.clock.advance_ms(4 * MINUTE);
        }
        sealed.sealer(&world).keeping(keep).cut().await.unwrap();
        let left: Vec<i64> = world.audit(None).await.iter().map(|row| row.id).collect();
        assert_eq!(left, [4, 3], "only what is older than it is kept went");
        // Once more, as after a restart, changes nothing.
        sealed.sealer(&world).keeping(keep).cut().await.unwrap();
        world.store.append_audit(vec![row(9)]).await.unwrap();
        sealed.sealer(&world).seal().await.unwrap();
        let (checkpoints, _) = checkpoint::read(&sealed.path, sealed.key.public()).unwrap();
        let found = verify(&*world.store, &checkpoints).await.unwrap();
        assert_eq!((found.broken, found.entries, found.head.id), (None, 3, 5));
    }

    pub async fn filters_hold_together(world: World) {
        let entry = |n: i64, by: &str, action: &str, outcome| AuditRow {
            at: START.plus_ms(n),
            operator_subject: by.to_owned(),
            action: action.to_owned(),
            outcome,
            ..row(n)
        };
        let rows = vec![
            entry(1, "ann@example", "pause", AuditOutcome::Accepted),
            entry(2, "bob@example", "pause", AuditOutcome::Refused),
            entry(3, "ann@example", "cancel", AuditOutcome::Refused),
            entry(4, "ann@example", "pause", AuditOutcome::Refused),
        ];
        world.store.append_audit(rows).await.unwrap();
        let none = AuditFilter {
            tenants: vec!["T".parse().unwrap()],
            tracking_id: None,
            operator_subject: None,
            action: None,
            outcome: None,
            since: None,
            until: None,
            before: i64::MAX,
            limit: 10,
        };
        let ann = Some("ann@example".to_owned());
        let pause = Some("pause".to_owned());
        let refused = Some(AuditOutcome::Refused);
        let (two, four) = (Some(START.plus_ms(2)), Some(START.plus_ms(4)));
        for (filter, ids) in [
            (none.clone(), vec![4, 3, 2, 1]),
            (AuditFilter { operator_subject: ann.clone(), ..none.clone() }, vec![4, 3, 1]),
            (AuditFilter { action: pause.clone(), ..none.clone() }, vec![4, 2, 1]),
            (AuditFilter { outcome: refused, ..none.clone() }, vec![4, 3, 2]),
            (AuditFilter { since: two, until: four, ..none.clone() }, vec![3, 2]),
            (AuditFilter { operator_subject: ann.clone(), action: pause, outcome: refused, ..none.clone() }, vec![4]),
            (AuditFilter { operator_subject: ann.clone(), before: 4, limit: 1, ..none.clone() }, vec![3]),
            (AuditFilter { operator_subject: ann, until: two, ..none.clone() }, vec![1]),
            (AuditFilter { tracking_id: Some("id-2".parse().unwrap()), outcome: refused, ..none }, vec![2]),
        ] {
            let found = world.store.audit(filter.clone()).await.unwrap();
            assert_eq!(found.iter().map(|sealed| sealed.row.id).collect::<Vec<_>>(), ids, "{filter:?}");
            assert!(found.iter().all(|sealed| sealed.hash.len() == 64));
        }
    }

    impl Sealed {
        pub(super) fn sealer(&self, world: &World) -> AuditSealer {
            let opened = checkpoint::Checkpoints::open(&self.path, self.key.clone()).unwrap();
            AuditSealer::new(Arc::clone(&world.store), Arc::<ManualClock>::clone(&world.clock), opened)
        }
    }
}

use cqs::{
    audit::{
        checkpoint::{self, CheckpointError},
        verify::{Broken, verify},
    },
    model::{AuditOutcome, AuditRow},
};
use daemon::identity::ServiceKey;
use domain::ServiceName;

use crate::world::*;

/// A file of checkpoints and its key.
struct Sealed {
    key: ServiceKey,
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl Sealed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit/checkpoints.jsonl");
        Self { key: ServiceKey::generate().unwrap(), path, _folder: folder }
    }
}

fn row(n: i64) -> AuditRow {
    AuditRow {
        id: 0,
        at: START,
        service: ServiceName::OperatorGateway,
        operator_subject: "ann@example".to_owned(),
        tenant: Some("T".parse().unwrap()),
        action: "touch".to_owned(),
        tracking_id: format!("id-{n}"),
        reason: "because".to_owned(),
        request_digest: String::new(),
        outcome: AuditOutcome::Accepted,
        error_code: String::new(),
        detail: String::new(),
    }
}

/// Runs statements past every trigger, as somebody with the whole database could.
async fn tamper(world: &World, statements: &[&'static str]) {
    let statements: Vec<&'static str> = ["DROP TRIGGER cqs_audit_no_update", "DROP TRIGGER cqs_audit_no_delete"]
        .into_iter()
        .chain(statements.iter().copied())
        .collect();
    let done: Result<(), db::DbError> = world
        .db()
        .unwrap()
        .write(move |conn| {
            Box::pin(async move {
                for statement in statements {
                    sqlx::query(statement).execute(&mut *conn).await?;
                }
                Ok(())
            })
        })
        .await;
    done.unwrap();
}

#[tokio::test]
async fn every_manipulation_is_found() {
    let manipulations: [(&str, &[&'static str], Broken); 8] = [
        ("an edit", &["UPDATE cqs_audit SET reason = 'other' WHERE id = 3"], Broken::Entry { id: 3 }),
        ("a deletion in the midst", &["DELETE FROM cqs_audit WHERE id = 3"], Broken::Missing { id: 3 }),
        ("a deletion at the beginning", &["DELETE FROM cqs_audit WHERE id = 1"], Broken::Missing { id: 1 }),
        ("a truncation", &["DELETE FROM cqs_audit WHERE id >= 5"], Broken::Missing { id: 5 }),
        (
            "a reorder",
            &[
                "UPDATE cqs_audit SET id = 100 WHERE id = 2",
                "UPDATE cqs_audit SET id = 2 WHERE id = 3",
                "UPDATE cqs_audit SET id = 3 WHERE id = 100",
            ],
            Broken::Entry { id: 2 },
        ),
        (
            "an insertion at the end",
            &["INSERT INTO cqs_audit SELECT 7, at, service, operator_subject, tenant, action, tracking_id, reason,
                request_digest, outcome, error_code, detail, hash FROM cqs_audit WHERE id = 6"],
            Broken::Entry { id: 7 },
        ),
        ("an entry without a hash", &["UPDATE cqs_audit SET hash = '' WHERE id = 4"], Broken::Foreign { id: 4 }),
        (
            "a forged cut",
            &[
                "INSERT INTO cqs_audit_anchor SELECT 'cut', id, hash FROM cqs_audit WHERE id = 2",
                "DELETE FROM cqs_audit WHERE id <= 2",
            ],
            Broken::Cut { id: 2 },
        ),
    ];
    for (name, statements, broken) in manipulations {
        let world = World::new(Port::Sqlite).await;
        let sealed = Sealed::new();
        for n in 0..6 {
            world.store.append_audit(vec![row(n)]).await.unwrap();
        }
        sealed.sealer(&world).seal().await.unwrap();
        let (checkpoints, _) = checkpoint::read(&sealed.path, sealed.key.public()).unwrap();
        assert_eq!(verify(&*world.store, &checkpoints).await.unwrap().broken, None);
        tamper(&world, statements).await;
        assert_eq!(verify(&*world.store, &checkpoints).await.unwrap().broken, Some(broken), "{name}");
    }
}

#[tokio::test]
async fn a_log_made_anew_is_found_and_never_signed() {
    let world = World::new(Port::Sqlite).await;
    let sealed = Sealed::new();
    world.store.append_audit((0..4).map(row).collect()).await.unwrap();
    sealed.sealer(&world).seal().await.unwrap();
    // The same ids with other contents, every hash right: only the signature tells.
    tamper(&world, &["DELETE FROM cqs_audit", "DELETE FROM cqs_audit_anchor"]).await;
    world.store.append_audit((10..14).map(row).collect()).await.unwrap();
    let (checkpoints, _) = checkpoint::read(&sealed.path, sealed.key.public()).unwrap();
    let found = verify(&*world.store, &checkpoints).await.unwrap();
    assert_eq!(found.broken, Some(Broken::Checkpoint { id: 4 }));
    assert!(sealed.sealer(&world).seal().await.is_err(), "signing it would cover it up");
}

#[tokio::test]
async fn entries_from_before_the_chain_are_held_by_its_genesis() {
    let world = World::new(Port::Sqlite).await;
    let sealed = Sealed::new();
    tamper(
        &world,
        &["INSERT INTO cqs_audit (id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest,
                outcome, error_code, detail)
            VALUES (3, 1, 'operator-gateway', 'ann', 'T', 'touch', 'a', '', '', 'accepted', '', ''),
                (5, 2, 'operator-gateway', 'ann', 'T', 'touch', 'b', '', '', 'accepted', '', '')"],
    )
    .await;
    world.store.append_audit(vec![row(1)]).await.unwrap();
    sealed.sealer(&world).seal().await.unwrap();
    let (checkpoints, _) = checkpoint::read(&sealed.path, sealed.key.public()).unwrap();
    let found = verify(&*world.store, &checkpoints).await.unwrap();
    assert_eq!((found.broken, found.entries, found.head.id), (None, 3, 6));
    let changed: Result<(), db::DbError> = world
        .db()
        .unwrap()
        .write(|conn| {
            Box::pin(async move {
                sqlx::query("UPDATE cqs_audit SET reason = 'other' WHERE id = 3").execute(conn).await?;
                Ok(())
            })
        })
        .await;
    changed.unwrap();
    let found = verify(&*world.store, &checkpoints).await.unwrap();
    assert_eq!(found.broken, Some(Broken::Entry { id: 5 }), "found at the end of the old entries");
}

#[tokio::test]
async fn a_file_of_checkpoints_that_was_touched_is_not_trusted() {
    let world = World::new(Port::Sqlite).await;
    let sealed = Sealed::new();
    for n in 0..3 {
        world.store.append_audit(vec![row(n)]).await.unwrap();
        sealed.sealer(&world).seal().await.unwrap();
    }
    let good = std::fs::read_to_string(&sealed.path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let joined = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    let other = good.replacen("\"id\":1", "\"id\":2", 1);
    assert_ne!(other, good);
    for (name, text, line) in [
        ("a changed line", other, 2),
        ("a line taken out", joined(&[lines[0], lines[2], lines[3]]), 2),
        ("lines swapped", joined(&[lines[0], lines[2], lines[1], lines[3]]), 2),
        ("something else", joined(&[lines[0], "{}"]), 2),
    ] {
        std::fs::write(&sealed.path, text).unwrap();
        let error = checkpoint::read(&sealed.path, sealed.key.public()).unwrap_err();
        assert!(matches!(error, CheckpointError::Broken { line: at, .. } if at == line), "{name}: {error}");
    }
    // Signed by somebody else.
    std::fs::write(&sealed.path, &good).unwrap();
    assert!(checkpoint::read(&sealed.path, ServiceKey::generate().unwrap().public()).is_err());
    // Cut short by a crash: the line that was not finished is taken off, the others hold.
    std::fs::write(&sealed.path, &good[..good.len() - 10]).unwrap();
    let (_, found) = checkpoint::Checkpoints::open(&sealed.path, sealed.key.clone()).unwrap();
    assert_eq!(found.len(), lines.len() - 1);
}
