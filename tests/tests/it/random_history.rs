//! Random histories over the whole product: triggers, changes of items, control by operators and SIGKILL, mixed.
//!
//! After every step each operation, as the REST API shows it, balances, and the tables are exact. What a person stopped
//! stays stopped, also over restarts, and none of its counts moves once what was leased is over. At the end, after
//! re-renders of what was cancelled, every label is right.

use std::time::Duration;

use domain::{IdSource, SeededIds};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    data::{Shelf, layout},
    rest::Rest,
    topology::{DevOptions, START_LIMIT, Topology},
    wait::{moment, until},
};

use crate::{
    kill::{kill, number},
    model_refresh::MODEL_REFRESH,
    two_stage::DESIGN_REFRESH,
};

const TENANT: &str = "acme";
const STORES: [&str; 2] = ["store-1", "store-2"];
/// Labels of model and of design in each store: 240 in all.
const LABELS: usize = 60;
/// Kills, and steps before each. `RESHELF_HISTORY_KILLS` and `RESHELF_KILL_SEED` ask for more, or for other ones.
const KILLS: u64 = 4;
const STEPS: u64 = 8;
/// At most so many times as many kills, where the first ones met too little.
const ROUNDS_MAX: u64 = 3;
/// Operations of the first steps: there is something to control from then on.
const FIRST_TRIGGERS: u64 = 3;
/// Latest moment of a kill after the last step, in milliseconds: a few batches.
const KILL_LATEST_MS: u64 = 200;
/// Labels a second of an operation that shall still be there some steps later.
const SLOW_PER_S: u64 = 8;
/// How long all that was let go may take in the end.
const DRAIN_LIMIT: Duration = Duration::from_mins(3);

/// What a person told an operation last, and was told that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Paused,
    Cancelled,
}

#[derive(Debug)]
struct Followed {
    id: String,
    stop: Option<Stop>,
    /// Its stages since nothing of the stopped operation is leased any more.
    still: Option<Value>,
}

/// What the history met: a run that met too little proves nothing.
#[derive(Debug, Default)]
struct Met {
    paused_over_kills: usize,
    cancelled_with_work: usize,
    refused_on_cancelled: usize,
}

impl Met {
    fn enough(&self) -> bool {
        self.paused_over_kills > 0 && self.cancelled_with_work > 0
    }
}

struct History {
    topology: Topology,
    /// In each store: the labels of the model, and those of the design.
    shelves: Vec<[Shelf; 2]>,
    random: SeededIds,
    operations: Vec<Followed>,
    version: u32,
    met: Met,
}

fn path(id: &str) -> String {
    format!("/v1/tenants/{TENANT}/operations/{id}")
}

/// A count of one kind (labels or parents), summed over the stages.
fn sum(operation: &Value, count: &str) -> i64 {
    let stages = operation["stages"].as_array().expect("stages").iter();
    stages.flat_map(|stage| [&stage["labels"], &stage["parents"]]).map(|counts| of(counts, count)).sum()
}

fn of(counts: &Value, name: &str) -> i64 {
    counts[name].as_i64().unwrap_or_else(|| panic!("{name} of {counts}"))
}

fn is_over(operation: &Value) -> bool {
    operation["state"] == "SUCCEEDED"
}

/// Everything that ever came to a stage is somewhere, at every instant.
fn balances(operation: &Value) {
    for stage in operation["stages"].as_array().expect("stages") {
        for counts in [&stage["labels"], &stage["parents"]] {
            let parts = ["done", "failed", "coalesced", "cancelled", "waiting", "leased"].map(|name| of(counts, name));
            assert!(parts.iter().all(|part| *part >= 0), "{operation}");
            assert_eq!(of(counts, "received"), parts.iter().sum::<i64>(), "{operation}");
        }
    }
}

impl History {
    async fn begin(seed: u64) -> Self {
        let topology = Topology::dev(DevOptions { demo: false, ..DevOptions::default() }).await;
        let mut shelves = Vec::new();
        for store in STORES {
            let model = Shelf::write_store(&topology.doors, TENANT, store, &[("alpha", LABELS)]).await;
            let design = Shelf::write_studio_store(&topology.doors, TENANT, store, &[("poster", LABELS)]).await;
            shelves.push([model, design]);
        }
        let mut history = Self {
            topology,
            shelves,
            random: SeededIds::new(seed),
            operations: Vec::new(),
            version: 0,
            met: Met::default(),
        };
        history.write_design().await;
        history.topology.quiet().await;
        history
    }

    fn operator(&self) -> Rest {
        self.topology.operator(&[TENANT])
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound.try_into().expect("few"))).expect("few")
    }

    async fn write_design(&mut self) {
        self.version += 1;
        let shelf = &self.shelves[0][1];
        shelf.import(&self.topology.doors, vec![shelf.design("poster", self.version)]).await;
    }

    /// One random step.
    async fn step(&mut self, number: u64) {
        let choice = if number <= FIRST_TRIGGERS { 0 } else { self.random.below(10) };
        match choice {
            0 | 1 => self.trigger().await,
            2 | 3 => self.prices().await,
            4 | 5 => self.control("pause").await,
            6 => self.control("resume").await,
            7 => self.control("cancel").await,
            8 => self.control("limits").await,
            _ => self.control(if self.below(2) == 0 { "pause" } else { "resume" }).await,
        }
    }

    /// An operation over labels whose model or design is a new one, slow or not.
    async fn trigger(&mut self) {
        let id = format!("history-{}", self.operations.len());
        let (store, kind) = (self.below(STORES.len()), self.below(4));
        let mut body = json!({"tenant_id": TENANT, "reason": "a random step", "tracking_id": id, "dry_run": false});
        if self.below(4) > 0 {
            body["limits"] = json!({"throttle_per_s": SLOW_PER_S});
        }
        if kind == 1 {
            self.write_design().await;
            body["design_id"] = "poster".into();
        } else {
            body["store_id"] = STORES[store].into();
        }
        if kind == 0 {
            self.version += 1;
            let shelf = &self.shelves[store][0];
            shelf.import(&self.topology.doors, vec![shelf.model("alpha", layout("alpha", self.version))]).await;
            body["model_id"] = "alpha".into();
        }
        let trigger =
            [MODEL_REFRESH, DESIGN_REFRESH, "/v1/triggers/ecc-store-rerender", "/v1/triggers/studio-store-rerender"]
                [kind];
        println!("{id}: {trigger} {}", body["limits"]);
        self.operator().post(trigger, &body).await.json(202);
        self.operations.push(Followed { id, stop: None, still: None });
    }

    /// New prices of every few labels of one kind in one store.
    async fn prices(&mut self) {
        let shelf = &self.shelves[self.below(STORES.len())][self.below(2)];
        let price = format!("{}.{:02}", 1 + self.below(90), self.below(100));
        let every = 3 + self.below(5);
        let changed = shelf.labels.values().flatten().step_by(every).map(|id| shelf.item(id, &price)).collect();
        println!("{price} on every {every}th label of {}", shelf.store);
        shelf.import(&self.topology.doors, changed).await;
    }

    /// A control action on a random operation.
    async fn control(&mut self, action: &str) {
        let (operator, index) = (self.operator(), self.below(self.operations.len()));
        let per_s = [0, SLOW_PER_S][self.below(2)];
        let followed = &mut self.operations[index];
        let path = path(&followed.id);
        let answer = if action == "limits" {
            let body = json!({"reason": "a random step", "throttle_per_s": per_s});
            operator.change(Method::PATCH, &path, &body).await
        } else {
            operator.post(&format!("{path}/{action}"), &json!({"reason": "a random step"})).await
        };
        println!("{}: {action} on {:?}: {}", followed.id, followed.stop, answer.status);
        if answer.status == 409 {
            let found = operator.get_json(&path).await;
            self.met.refused_on_cancelled += usize::from(followed.stop == Some(Stop::Cancelled));
            assert!(is_over(&found) || followed.stop == Some(Stop::Cancelled), "{action}: {} {found}", answer.text());
            return;
        }
        let body = answer.json(200);
        let told = match (action, followed.stop) {
            ("cancel", _) | (_, Some(Stop::Cancelled)) => Some(Stop::Cancelled),
            ("pause", _) => Some(Stop::Paused),
            ("resume", _) => None,
            (_, before) => before,
        };
        if action == "cancel" && followed.stop != told {
            let receipt = &body["receipt"];
            let stopped = of(receipt, "not_started") + of(receipt, "unexpanded_parents");
            self.met.cancelled_with_work += usize::from(stopped > 0);
        }
        if followed.stop != told {
            (followed.stop, followed.still) = (told, None);
        }
    }

    /// What holds after every step.
    async fn check(&mut self) {
        let operator = self.operator();
        for followed in &mut self.operations {
            let shown = operator.get_json(&path(&followed.id)).await;
            balances(&shown);
            assert_eq!(sum(&shown, "failed"), 0, "{shown}");
            let state = shown["state"].as_str().expect("a state");
            match followed.stop {
                None => assert!(["RUNNING", "SUCCEEDED"].contains(&state), "{shown}"),
                // What was leased when it was paused may have been the last of it.
                Some(Stop::Paused) => assert!(state == "PAUSED" || is_over(&shown), "{shown}"),
                Some(Stop::Cancelled) => {
                    assert!(["CANCELLING", "CANCELLED"].contains(&state), "{shown}");
                    assert_eq!(sum(&shown, "waiting"), 0, "cancelled ones count at once: {shown}");
                }
            }
            if followed.stop.is_some() && sum(&shown, "leased") == 0 {
                let still = followed.still.get_or_insert_with(|| shown["stages"].clone());
                assert_eq!(*still, shown["stages"], "{} is stopped: nothing of it begins", followed.id);
            }
        }
        self.topology.assert_exact().await;
    }

    /// SIGKILL at a random moment, and a new start.
    async fn kill(&mut self) {
        moment(Duration::from_millis(self.random.below(KILL_LATEST_MS))).await;
        kill(&self.topology).await;
        self.topology.assert_exact().await;
        self.topology.restart().await;
        println!("killed and started again");
        let operator = self.operator();
        for followed in &self.operations {
            let paused = operator.get_json(&path(&followed.id)).await["state"] == "PAUSED";
            self.met.paused_over_kills += usize::from(paused);
        }
    }

    /// Lets everything go that may, and waits for it.
    async fn let_go(&mut self) {
        let operator = self.operator();
        for followed in &mut self.operations {
            if followed.stop == Some(Stop::Cancelled) {
                continue;
            }
            let path = path(&followed.id);
            let free = json!({"reason": "let go", "throttle_per_s": 0});
            for answer in [
                operator.change(Method::PATCH, &path, &free).await,
                operator.post(&format!("{path}/resume"), &json!({"reason": "let go"})).await,
            ] {
                assert!([200, 409].contains(&answer.status), "{}", answer.text());
            }
            (followed.stop, followed.still) = (None, None);
        }
        self.topology.quiet_within(DRAIN_LIMIT).await;
        self.check().await;
        for followed in &self.operations {
            let wanted = if followed.stop == Some(Stop::Cancelled) { "CANCELLED" } else { "SUCCEEDED" };
            until(&format!("{} to be {wanted}", followed.id), START_LIMIT, || async {
                let shown = operator.get_json(&path(&followed.id)).await;
                if shown["state"] == wanted { Ok(()) } else { Err(shown.to_string()) }
            })
            .await;
        }
    }

    /// What cancelled operations left undone, wherever they left it: re-renders do it.
    async fn do_again(&mut self) {
        let operator = self.operator();
        for trigger in ["ecc-store-rerender", "studio-store-rerender"] {
            for store in STORES {
                let id = format!("last-{trigger}-{store}");
                let body = json!({"tenant_id": TENANT, "store_id": store, "reason": "after the cancellations",
                                  "tracking_id": id, "dry_run": false});
                operator.post(&format!("/v1/triggers/{trigger}"), &body).await.json(202);
                self.operations.push(Followed { id, stop: None, still: None });
            }
            self.let_go().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_every_step_of_a_random_history_counts_are_exact_and_what_is_stopped_stays_so() {
    let (kills, seed) = (number("RESHELF_HISTORY_KILLS", KILLS), number("RESHELF_KILL_SEED", 42));
    println!("seed {seed}");
    let mut history = History::begin(seed).await;
    // Chance decides what a history meets: it goes on until it met what it is about.
    for round in 0..kills * ROUNDS_MAX {
        if round >= kills && history.met.enough() {
            break;
        }
        for step in 1..=STEPS {
            history.step(round * STEPS + step).await;
            history.check().await;
        }
        history.kill().await;
        history.check().await;
    }
    println!("{:?}", history.met);
    assert!(
        history.met.enough(),
        "no pause met a kill, or nothing under way was cancelled: the test proves too little"
    );
    history.let_go().await;
    history.do_again().await;
    let all = STORES.len() * 2 * LABELS;
    let compared = history.topology.assert_pictures(Some(TENANT)).await;
    assert_eq!((compared.equal, compared.unrenderable), (all, 0), "seed {seed}");
    assert_eq!(history.topology.tables().await.dead().await, 0, "nothing is in the dead letter");
    history.topology.stop().await;
}
