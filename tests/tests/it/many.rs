//! Several platform servers, gateways and workers over one PostgreSQL: what three workers show of a model refreshed at
//! once, a worker that sleeps beyond its lease, and how each ends and what it says of its readiness.

use std::time::Duration;

use domain::ServiceName;
use proto::{
    cqs::v1::{CompleteRequest, ExtendLeaseRequest, ItemOutcome, OperationState, OutcomeKind},
    dtoflow::v1::{PutItem, PutManyRequest, WriteLease},
};
use tests::{
    data::Shelf,
    grpc::refusal,
    tables::{Lease, Records},
    topology::{Many, Role, START_LIMIT, Shape},
    versions::{Watch, version},
    wait::{moment, until},
};

use crate::{
    kill_many::{pngs, request, write_model},
    model_refresh::MODEL_REFRESH,
};

const TENANT: &str = "acme";
const MODEL: &str = "alpha";
/// How long some hundred labels may take at first, on a machine that runs other tests too.
const LIMIT: Duration = Duration::from_mins(2);

/// Asks for a refresh of the shelf's model until it is accepted.
async fn accepted(many: &Many, gateway: usize, shelf: &Shelf, tracking_id: &str) {
    until("the refresh to be accepted", LIMIT, || async {
        let operator = many.operator(gateway, &[TENANT]);
        let answer = operator.try_post(MODEL_REFRESH, &request(shelf, tracking_id)).await.ok_or("no answer")?;
        // One that went to a worker in its sleep has no answer in time, and is repeated.
        if [200, 202].contains(&answer.status) { Ok(()) } else { Err("not accepted") }
    })
    .await;
}

async fn succeeded(many: &Many, tracking_id: &str) {
    let operation = many.topology.finished(TENANT, tracking_id, LIMIT).await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:#?}");
}

/// Versions of a model written through one server and refreshed at once through either gateway.
const VERSIONS: u32 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_model_written_and_refreshed_at_once_is_what_every_label_shows() {
    let mut many = Many::start(Shape { platforms: 2, gateways: 2, workers: 3, lease_ms: 30_000 }).await;
    let shelf = Shelf::write_store(&many.topology.doors, TENANT, "store-1", &[(MODEL, 150)]).await;
    many.topology.quiet_within(LIMIT).await;
    let labels = pngs(&many, &shelf);
    let watch = Watch::over(labels.clone());
    for new in 2..2 + VERSIONS {
        // No pause between the write and the request: a worker that remembers the model must not believe itself.
        write_model(&many, &shelf, new).await;
        let tracking_id = format!("refresh-{new}");
        accepted(&many, usize::from(new % 2 == 0), &shelf, &tracking_id).await;
        succeeded(&many, &tracking_id).await;
        let old: Vec<_> = labels.iter().filter(|label| version(label) != Ok(new)).collect();
        assert!(old.is_empty(), "{} labels do not show version {new}", old.len());
    }
    let seen = watch.end();
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    assert_eq!(many.topology.assert_pictures(Some(TENANT)).await.equal, labels.len());
    many.topology.assert_exact().await;
    // All three had a part in it.
    for worker in many.of(Role::Worker) {
        assert!(many.program(worker).log().contains("label handled"), "worker {worker} did nothing");
    }
    many.stop().await;
}

/// Lease of the workers in the test of a sleeping one, in milliseconds.
const SHORT_LEASE_MS: u32 = 3_000;
/// What was on its way when a worker was put to sleep arrives within this.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_slept_beyond_its_lease_changes_nothing() {
    let mut many = Many::start(Shape { platforms: 2, gateways: 1, workers: 2, lease_ms: SHORT_LEASE_MS }).await;
    let workers = many.of(Role::Worker);
    let (sleeper, other) = (workers[0], workers[1]);
    let shelf = Shelf::write_store(&many.topology.doors, TENANT, "store-1", &[(MODEL, 150)]).await;
    many.topology.quiet_within(LIMIT).await;
    let old = many.tables().await.records(Some(TENANT)).await;
    many.program(other).stop(START_LIMIT).await;
    let watch = Watch::over(pngs(&many, &shelf));

    // Put to sleep until it holds labels to render in its sleep.
    write_model(&many, &shelf, 2).await;
    let held = fall_asleep(&mut many, sleeper, &shelf).await;

    // Its lease lapses, the other worker does its work, and a newer model comes.
    many.start_again(other);
    for (version, tracking_id) in [(2, "meanwhile-2"), (3, "meanwhile-3")] {
        write_model(&many, &shelf, version).await;
        accepted(&many, 0, &shelf, tracking_id).await;
        succeeded(&many, tracking_id).await;
    }
    many.topology.quiet_within(LIMIT).await;
    let leases = many.tables().await.leases().await;
    assert!(leases.is_empty(), "all lapsed: {leases:?}");
    let new = many.tables().await.records(Some(TENANT)).await;
    assert_eq!(watch.seen().at_least(3), shelf.label_count());

    // What the sleeper may say when it wakes, said in its name: each is refused.
    for lease in &held {
        late_words_are_refused(&many, &shelf, &old, lease).await;
    }
    // And it itself.
    many.program(sleeper).signal("CONT").await;
    let generations: Vec<String> = held.iter().map(|lease| format!("\"generation\":{}", lease.generation)).collect();
    let dropped = |text: &str| {
        let lines = || text.lines().filter(|line| line.contains("the lease is over; batch dropped"));
        generations.iter().any(|generation| lines().any(|line| line.contains(generation))).then_some(())
    };
    many.program(sleeper).shows("to drop what it held", START_LIMIT, dropped).await;
    // It goes on with what comes.
    many.program(other).stop(START_LIMIT).await;
    many.topology.quiet_within(LIMIT).await;
    assert_eq!(many.tables().await.records(Some(TENANT)).await, new, "nothing it did late was taken");
    many.topology.assert_exact().await;
    write_model(&many, &shelf, 4).await;
    accepted(&many, 0, &shelf, "afterwards").await;
    succeeded(&many, "afterwards").await;
    assert_eq!(many.topology.assert_pictures(Some(TENANT)).await.equal, shelf.label_count());
    let seen = watch.end();
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    many.stop().await;
}

/// Stops a worker with SIGSTOP while it holds a lease of the renderer's queue; the leases it holds.
async fn fall_asleep(many: &mut Many, worker: usize, shelf: &Shelf) -> Vec<Lease> {
    for attempt in 0..50 {
        accepted(many, 0, shelf, &format!("asleep-{attempt}")).await;
        moment(Duration::from_millis(10 * attempt)).await;
        many.program(worker).signal("STOP").await;
        moment(ON_ITS_WAY).await;
        let held = many.tables().await.leases().await;
        if held.iter().any(|lease| lease.queue == ServiceName::EccImageRender.as_str()) {
            return held;
        }
        many.program(worker).signal("CONT").await;
        many.topology.quiet_within(LIMIT).await;
    }
    panic!("the worker never held anything when it was stopped");
}

/// Writes, reports and extensions under a lease that is over.
async fn late_words_are_refused(many: &Many, shelf: &Shelf, old: &Records, lease: &Lease) {
    let service = lease.owner.parse::<ServiceName>().expect("a service");
    let (queue_name, lease_generation) = (lease.queue.clone(), lease.generation);
    let outcome = ItemOutcome { id: 1, outcome: OutcomeKind::Done.into(), ..ItemOutcome::default() };
    let complete = CompleteRequest { queue_name: queue_name.clone(), lease_generation, outcomes: vec![outcome] };
    assert_eq!(refusal(many.topology.doors.cqs(service).complete(complete).await), "STALE_LEASE", "{lease:?}");
    let extend = ExtendLeaseRequest { queue_name: queue_name.clone(), lease_generation, lease_ms: 30_000 };
    assert_eq!(refusal(many.topology.doors.cqs(service).extend_lease(extend).await), "STALE_LEASE", "{lease:?}");
    if service == ServiceName::EccImageRender {
        let label = shelf.labels[MODEL].first().expect("a label");
        let picture = old.get("ecceslimage.v1", TENANT, shelf.store.as_str(), label).expect("its old picture");
        let item = PutItem {
            dto_type: "ecceslimage.v1".to_owned(),
            dto_id: format!("t/{TENANT}/s/{}/ecceslimages/{label}", shelf.store),
            payload: picture.to_vec().into(),
            tracking_id: lease.tracking_id.clone(),
            ..PutItem::default()
        };
        let lease = WriteLease { queue_name, generation: lease_generation };
        let write = PutManyRequest { items: vec![item], lease: Some(lease) };
        assert_eq!(refusal(many.topology.doors.dtoflow(service).put_many(write).await), "STALE_LEASE");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_tells_the_truth_of_everything_behind_a_gateway() {
    let mut many = Many::start(Shape { platforms: 2, gateways: 2, workers: 2, lease_ms: 30_000 }).await;
    let (platforms, workers) = (many.of(Role::Platform), many.of(Role::Worker));
    // One of each is enough, also for connections that were to the other.
    many.program(platforms[0]).kill().await;
    many.program(workers[0]).kill().await;
    says(&many, 200, &[]).await;
    many.program(platforms[1]).kill().await;
    says(&many, 503, &["cqs", "dtoflow"]).await;
    many.start_again(platforms[0]);
    says(&many, 200, &[]).await;
    many.program(workers[1]).kill().await;
    says(&many, 503, &["ecc-image-render-service", "studio-renderer"]).await;
    many.start_again(workers[0]);
    says(&many, 200, &[]).await;
    many.stop_postgres();
    says(&many, 503, &["cqs", "dtoflow"]).await;
    many.start_postgres();
    says(&many, 200, &[]).await;

    // A platform server that starts while the database is down waits for it.
    many.stop_postgres();
    many.program(platforms[0]).kill().await;
    many.start_again(platforms[0]);
    let waits = |text: &str| text.contains("waiting for the database").then_some(());
    many.program(platforms[0]).shows("waiting", START_LIMIT, waits).await;
    says(&many, 503, &["cqs", "dtoflow"]).await;
    many.start_postgres();
    says(&many, 200, &[]).await;
    // Told to stop meanwhile, it does. The other one: what the first showed before would be taken for its word now.
    many.stop_postgres();
    many.program(platforms[0]).kill().await;
    many.start_again(platforms[1]);
    many.program(platforms[1]).shows("waiting", START_LIMIT, waits).await;
    assert_eq!(many.program(platforms[1]).stop(START_LIMIT).await, Some(0));
    many.start_postgres();
}

/// Waits until both gateways say so.
async fn says(many: &Many, status: u16, down: &[&str]) {
    let what = format!("both gateways to say {status} {down:?}");
    until(&what, START_LIMIT, || async {
        for gateway in 0..2 {
            let (found, text) = many.readiness(gateway).await.ok_or("no answer")?;
            if found != status || !down.iter().all(|name| text.contains(&format!("\"{name}\""))) {
                return Err(format!("gateway {gateway}: {found} {text}"));
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_program_ends_in_order_in_the_midst_of_work_and_leaves_no_lease() {
    let mut many = Many::start(Shape { platforms: 2, gateways: 2, workers: 3, lease_ms: 60_000 }).await;
    let shelf = Shelf::write_store(&many.topology.doors, TENANT, "store-1", &[(MODEL, 150)]).await;
    many.topology.quiet_within(LIMIT).await;
    let watch = Watch::over(pngs(&many, &shelf));
    write_model(&many, &shelf, 2).await;
    accepted(&many, 0, &shelf, "drained").await;
    until("some labels to be done", START_LIMIT, || async {
        if watch.seen().at_least(2) > 0 { Ok(()) } else { Err("none") }
    })
    .await;

    // A worker finishes what it has in hand. Leases last a minute, so none that is left behind would go unseen.
    for worker in many.of(Role::Worker) {
        assert_eq!(many.program(worker).stop(START_LIMIT).await, Some(0));
    }
    let mut tables = many.tables().await;
    assert!(tables.leases().await.is_empty(), "a lease was left behind");
    assert_eq!(tables.dead().await, 0);
    many.topology.assert_exact().await;

    // A platform server and a gateway go; the others serve on, and the work is finished.
    let (platforms, gateways) = (many.of(Role::Platform), many.of(Role::Gateway));
    let worker = many.of(Role::Worker)[0];
    many.start_again(worker);
    for ended in [platforms[0], gateways[0]] {
        assert_eq!(many.program(ended).stop(START_LIMIT).await, Some(0));
    }
    until("the other gateway to be ready", START_LIMIT, || async {
        match many.readiness(1).await {
            Some((200, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    succeeded(&many, "drained").await;
    assert_eq!(many.topology.assert_pictures(Some(TENANT)).await.equal, shelf.label_count());
    let seen = watch.end();
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    many.topology.assert_exact().await;
}
