//! Many processes killed at random while labels are refreshed, and PostgreSQL ended twice as by a power cut: nothing is
//! lost, no label shows an older picture after a newer one, the ledger is exact.
//!
//! `scripts/kill-cluster.sh` runs it in full: 100,000 labels.

use std::{path::PathBuf, time::Duration};

use domain::{IdSource, SeededIds, ServiceName};
use proto::{cqs::v1::OperationState, dtoflow::v1::PutManyRequest};
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    tables::RecordKey,
    topology::{Many, START_LIMIT, Shape, stage},
    versions::{Watch, layout},
    wait::{moment, until},
};

use crate::{kill::number, model_refresh::MODEL_REFRESH};

/// Kills, stores, and labels of each store; the environment asks for more.
const KILLS: u64 = 6;
const STORES: u64 = 3;
const LABELS: u64 = 200;
const TENANT: &str = "acme";
const MODEL: &str = "alpha";
/// A lease of the workers, in milliseconds: a killed one's work comes back so soon.
const LEASE_MS: u32 = 2_000;
/// Latest moment of a kill after so many labels show the new model, in milliseconds: a few batches.
const LATEST_MS: u64 = 150;
/// Up to so many labels the tables are looked at after every kill; a look at more takes too long for that.
const LOOKED_AT_OFTEN: u64 = 5_000;

/// How long that many labels may take, on a machine that does other things too: 20 ms each.
fn limit(labels: u64) -> Duration {
    2 * START_LIMIT + Duration::from_millis(20 * labels)
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one course of events, told in order")]
async fn many_processes_and_postgres_killed_at_random_nothing_is_lost() {
    let kills = number("RESHELF_CLUSTER_KILLS", KILLS);
    let stores = number("RESHELF_CLUSTER_STORES", STORES);
    let labels = number("RESHELF_CLUSTER_LABELS", LABELS);
    let (all, seed) = (stores * labels, number("RESHELF_KILL_SEED", 42));
    let random = SeededIds::new(seed);
    let mut many = Many::start(Shape { platforms: 2, gateways: 2, workers: 3, lease_ms: LEASE_MS }).await;
    let mut shelves = Vec::new();
    for store in 0..stores {
        let count = usize::try_from(labels).expect("few");
        let name = format!("store-{store:03}");
        shelves.push(Shelf::write_store(&many.topology.doors, TENANT, &name, &[(MODEL, count)]).await);
    }
    many.topology.quiet_within(limit(all)).await;
    let watch = Watch::over(shelves.iter().flat_map(|shelf| pngs(&many, shelf)).collect());

    // All of it once, and in every round one store once more, so that older and newer work is under way together.
    let mut asked: Vec<(usize, String)> = Vec::new();
    for (index, shelf) in shelves.iter().enumerate() {
        write_model(&many, shelf, 2).await;
        asked.push((index, format!("wave-{index}")));
    }
    for (index, tracking_id) in &asked {
        ask(&many, &random, &shelves[*index], tracking_id).await;
    }
    let mut under_way = 0;
    for round in 0..kills {
        let store = usize::try_from(round % stores).expect("few");
        let bump = (store, format!("bump-{round}"));
        write_model(&many, &shelves[store], u32::try_from(round).expect("few") + 3).await;
        let from = usize::try_from(all * round / (kills + 1)).expect("few");
        until(&format!("{from} labels to show the new model"), limit(all), || async {
            let seen = watch.seen();
            assert!(seen.wrong.is_empty(), "seed {seed}: {:#?}", seen.wrong);
            let new = seen.at_least(2);
            if new >= from { Ok(()) } else { Err(format!("{new} do")) }
        })
        .await;
        let after = Duration::from_millis(random.below(LATEST_MS));
        let victims = victims(&many, &random, round);
        let postgres = round == kills / 3 || round == 2 * kills / 3;
        // Whoever asks meanwhile may get no answer.
        let operator = many.operator(usize::try_from(random.below(2)).expect("few"), &[TENANT]);
        let body = request(&shelves[store], &bump.1);
        let asking = tokio::spawn(async move { operator.try_post(MODEL_REFRESH, &body).await.is_some() });
        if round % 2 == 1 {
            // Every other time it is under way for certain.
            ask(&many, &random, &shelves[store], &bump.1).await;
        }
        moment(after).await;
        for victim in &victims {
            many.program(*victim).kill().await;
        }
        if postgres {
            many.stop_postgres();
            many.start_postgres();
        }
        let answered = asking.await.expect("asking ends");
        let left = many.topology.rows_by_queue().await;
        println!(
            "seed {seed}, round {round}: {victims:?}{} after {after:?}, {answered}, left {left:?}",
            if postgres { " and PostgreSQL" } else { "" }
        );
        under_way += u64::from(!left.is_empty());
        if postgres || all <= LOOKED_AT_OFTEN {
            many.topology.assert_exact().await;
        }
        for victim in victims {
            many.start_again(victim);
        }
        many.ready(limit(all)).await;
        asked.push(bump);
    }
    // Whoever had no answer asks again under the same id: done once, whatever the kills cut off.
    for (index, tracking_id) in &asked {
        ask(&many, &random, &shelves[*index], tracking_id).await;
    }
    assert!(
        under_way > kills / 2,
        "seed {seed}: only {under_way} of {kills} kills met work: the test proves too little"
    );

    many.topology.quiet_within(limit(all)).await;
    for (index, tracking_id) in &asked {
        let operation = many.topology.finished(TENANT, tracking_id, START_LIMIT).await;
        assert_eq!(operation.state(), OperationState::Succeeded, "seed {seed}: {operation:#?}");
        let ecc = stage(&operation, ServiceName::EccImageRender);
        let labels = i64::try_from(labels).expect("few");
        assert_eq!((ecc.parents_done, ecc.enqueued), (1, labels), "seed {seed}, store {index}: {operation:#?}");
    }
    let compared = many.topology.assert_pictures(Some(TENANT)).await;
    assert_eq!((compared.equal as u64, compared.unrenderable), (all, 0), "seed {seed}");
    let seen = watch.end();
    assert!(seen.wrong.is_empty(), "seed {seed}: {:#?}", seen.wrong);
    assert_eq!(seen.at_least(2) as u64, all, "seed {seed}: labels with an old model");
    assert!(seen.forward > all, "seed {seed}: {} steps forward were seen", seen.forward);
    many.topology.assert_exact().await;
    let dead = many.tables().await.dead_by_cause().await;
    assert!(dead.is_empty(), "seed {seed}: nothing is in the dead letter: {dead:?}");
    many.stop().await;
}

/// Where the labels of a shelf show their pictures.
pub(crate) fn pngs(many: &Many, shelf: &Shelf) -> Vec<PathBuf> {
    let key =
        |id: &String| RecordKey { tenant: shelf.tenant.to_string(), store: shelf.store.to_string(), id: id.clone() };
    shelf.labels.values().flatten().map(|id| many.topology.png_of(&key(id))).collect()
}

/// All in the first round; in each other one, each with a probability of a half, and one at least.
fn victims(many: &Many, random: &SeededIds, round: u64) -> Vec<usize> {
    if round == 0 {
        return (0..many.count()).collect();
    }
    let certain = random.below(many.count() as u64);
    (0..many.count()).filter(|index| *index as u64 == certain || random.below(2) == 0).collect()
}

/// Writes a version of the model, however often that takes: a write repeated is the same write.
pub(crate) async fn write_model(many: &Many, shelf: &Shelf, version: u32) {
    until("the model to be written", START_LIMIT, || async {
        let mut client = many.topology.doors.dtoflow(ServiceName::RecordImport);
        let items = vec![shelf.model(MODEL, layout(MODEL, version))];
        client.put_many(PutManyRequest { items, lease: None }).await.map(drop)
    })
    .await;
}

/// Asks for a refresh at either gateway until it is accepted.
async fn ask(many: &Many, random: &SeededIds, shelf: &Shelf, tracking_id: &str) {
    until("the refresh to be accepted", START_LIMIT, || async {
        let operator = many.operator(usize::try_from(random.below(2)).expect("few"), &[TENANT]);
        let answer = operator.try_post(MODEL_REFRESH, &request(shelf, tracking_id)).await.ok_or("no answer")?;
        if [200, 202].contains(&answer.status) { Ok(()) } else { Err("refused") }
    })
    .await;
}

pub(crate) fn request(shelf: &Shelf, tracking_id: &str) -> Value {
    json!({
        "tenant_id": TENANT,
        "store_id": shelf.store.as_str(),
        "model_id": MODEL,
        "reason": "killed at random",
        "tracking_id": tracking_id,
        "dry_run": false,
        // Due now, so that older and newer refreshes mix.
        "sla_timestamp": "2020-01-01T00:00:00Z",
    })
}
