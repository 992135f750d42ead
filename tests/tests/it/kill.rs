//! The process killed at random while 1,200 labels are under way, again and again: nothing is lost, nothing is done
//! that the tables do not account for.

use std::{
    env,
    time::{Duration, Instant},
};

use domain::{IdSource, SeededIds};
use proto::cqs::v1::OperationState;
use serde_json::json;
use tests::{
    data::{Shelf, layout},
    topology::{DevOptions, START_LIMIT, Topology},
    wait::{moment, until},
};

use crate::model_refresh::MODEL_REFRESH;

/// Kills of one run. `RESHELF_KILL_ROUNDS=20` is the full run of the issue; the default keeps the suite short.
const ROUNDS: u64 = 6;
/// Stores and labels of each: three refreshes are 1,200 labels.
const STORES: [&str; 3] = ["store-1", "store-2", "store-3"];
const LABELS: usize = 400;
const TENANT: &str = "acme";
/// Bounds of the latest moment of a kill after the refreshes are asked for, in milliseconds. The moment itself is how long
/// three undisturbed refreshes take on this machine, so that most kills hit work whatever its speed.
const LATEST_MS: (u64, u64) = (100, 5_000);

/// How long what all rounds left to do may take: a row that two starts meet in a lease is handled alone.
const DRAIN_LIMIT: Duration = Duration::from_mins(10);
/// Latest moment of a kill after a start, in milliseconds: about how long it takes to answer.
const LATEST_IN_START_MS: u64 = 600;

/// A number from the environment.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_nothing_is_lost() {
    let rounds = number("RESHELF_KILL_ROUNDS", ROUNDS);
    let seed = number("RESHELF_KILL_SEED", 42);
    let random = SeededIds::new(seed);
    let mut topology = Topology::dev(DevOptions { demo: false, ..DevOptions::default() }).await;
    let mut shelves = Vec::new();
    for store in STORES {
        shelves.push(Shelf::write_store(&topology.doors, TENANT, store, &[("alpha", LABELS)]).await);
    }
    topology.quiet().await;

    let latest_ms = undisturbed_ms(&topology, &shelves).await.clamp(LATEST_MS.0, LATEST_MS.1);
    println!("three refreshes take {latest_ms} ms undisturbed");
    let mut tracking_ids = Vec::new();
    let mut under_way = 0;
    for round in 1..=rounds {
        let version = u32::try_from(round).expect("few rounds") + 2;
        for shelf in &shelves {
            shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", version))]).await;
        }
        let new: Vec<(String, String)> =
            STORES.iter().map(|store| ((*store).to_owned(), format!("kill-{round}-{store}"))).collect();
        let after = Duration::from_millis(random.below(latest_ms));
        tokio::join!(ask(&topology, &new), async {
            moment(after).await;
            kill(&topology).await;
        });
        let left = topology.tables().await.rows_by_queue().await;
        println!("seed {seed}, round {round}: killed after {after:?} with {left:?} to do");
        under_way += u64::from(!left.is_empty());
        topology.assert_exact().await;
        // Every other time also in the middle of the start that follows.
        if round % 2 == 0 {
            topology.restart_cut_short(Duration::from_millis(random.below(LATEST_IN_START_MS))).await;
            topology.assert_exact().await;
        }
        topology.restart().await;
        // Whoever had no answer asks again under the same id: done once, whatever the kill cut off.
        for (store, tracking_id) in &new {
            until("the repeated request to be accepted", START_LIMIT, || async {
                let operator = topology.operator(&[TENANT]);
                let answer = operator.try_post(MODEL_REFRESH, &request(store, tracking_id)).await.ok_or("no answer")?;
                if [200, 202].contains(&answer.status) { Ok(()) } else { Err("refused") }
            })
            .await;
        }
        tracking_ids.extend(new.into_iter().map(|(_, tracking_id)| tracking_id));
    }

    assert!(under_way * 2 >= rounds, "at most {under_way} of {rounds} kills hit work: the test proves too little");
    topology.quiet_within(DRAIN_LIMIT).await;
    for tracking_id in &tracking_ids {
        let operation = topology.finished(TENANT, tracking_id, START_LIMIT).await;
        assert_eq!(operation.state(), OperationState::Succeeded, "seed {seed}: {operation:#?}");
        let ecc = tests::topology::stage(&operation, domain::ServiceName::EccImageRender);
        assert_eq!((ecc.parents_done, ecc.enqueued), (1, 400), "seed {seed}: {operation:#?}");
    }
    let compared = topology.assert_pictures(Some(TENANT)).await;
    assert_eq!((compared.equal, compared.unrenderable), (STORES.len() * LABELS, 0));
    topology.assert_exact().await;
    assert_eq!(topology.tables().await.dead().await, 0, "nothing is in the dead letter");
    topology.stop().await;
}

fn request(store: &str, tracking_id: &str) -> serde_json::Value {
    json!({
        "tenant_id": TENANT,
        "store_id": store,
        "model_id": "alpha",
        "reason": "killed at random",
        "tracking_id": tracking_id,
        "dry_run": false,
        // Due now, so that restarts and refreshes of all rounds mix.
        "sla_timestamp": "2020-01-01T00:00:00Z",
    })
}

/// How long version 2 of every model takes from the first request to the last export, in milliseconds.
async fn undisturbed_ms(topology: &Topology, shelves: &[Shelf]) -> u64 {
    for shelf in shelves {
        shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", 2))]).await;
    }
    let refreshes: Vec<_> = STORES.iter().map(|store| ((*store).to_owned(), format!("undisturbed-{store}"))).collect();
    let started = Instant::now();
    ask(topology, &refreshes).await;
    topology.quiet().await;
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Asks for the refreshes; answers that the kill cuts off do not count.
async fn ask(topology: &Topology, refreshes: &[(String, String)]) {
    let operator = topology.operator(&[TENANT]);
    for (store, tracking_id) in refreshes {
        operator.try_post(MODEL_REFRESH, &request(store, tracking_id)).await;
    }
}

/// SIGKILL to the whole product.
pub(crate) async fn kill(topology: &Topology) {
    for id in topology.process_ids() {
        let status = tokio::process::Command::new("kill").arg("-KILL").arg(id.to_string()).status().await;
        assert!(status.is_ok_and(|status| status.success()), "SIGKILL");
    }
}
