//! What stops or slows an operation, as REST tells it: every cause, ends that come by themselves, the receipt of a
//! cancellation. The test is every service, so nothing moves but what it moves.

use std::collections::BTreeSet;

use daemon::SystemClock;
use domain::{Clock as _, ServiceName, Timestamp};
use proto::{
    CqsClient,
    cqs::v1::{
        ApprovalRequired, CompleteRequest, CreateOrConfigureQueueRequest, DequeueRequest, ItemOutcome, OutcomeKind,
        ParentShape, ReEnqueueRequest, SelfEnqueueRequest, SplitItem, StopWhen, split_item,
    },
    records::v1::Evidence,
};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    cli::Shell,
    rest::Rest,
    source::workspace_root,
    topology::{PlatformAlone, START_LIMIT},
    wait::until,
};

const TENANT: &str = "acme";
const QUEUE: ServiceName = ServiceName::HardwareExporter;
const PICTURES: &str = "eslimage.v1";

fn path(id: &str) -> String {
    format!("/v1/tenants/{TENANT}/operations/{id}")
}

/// The exporter, as far as its queue is concerned.
struct Exporter(CqsClient);

/// Leased rows.
struct Leased {
    generation: i64,
    ids: Vec<i64>,
}

impl Exporter {
    async fn new(platform: &PlatformAlone) -> Self {
        let mut cqs = platform.doors.cqs(QUEUE);
        let shape = ParentShape { dto_type: PICTURES.to_owned(), alias_name: "by_store".to_owned() };
        let queue = CreateOrConfigureQueueRequest {
            queue_name: QUEUE.to_string(),
            shapes: vec![shape],
            ..CreateOrConfigureQueueRequest::default()
        };
        cqs.create_or_configure_queue(queue).await.expect("the queue is made");
        Self(cqs)
    }

    /// An operation over one store, whose labels nobody has looked for yet.
    async fn begin(&mut self, id: &str, more: SelfEnqueueRequest) {
        let parent = SplitItem {
            dto_type: PICTURES.to_owned(),
            alias_name: "by_store".to_owned(),
            urn: Some(split_item::Urn::ParentId(format!("t/{TENANT}/s/{id}"))),
        };
        let request = SelfEnqueueRequest {
            queue_name: QUEUE.to_string(),
            items: vec![parent],
            reason: "INC-4712: shelves blank".to_owned(),
            tracking_id: id.to_owned(),
            operator_subject: "operator@test".to_owned(),
            trigger: "store-reexport".to_owned(),
            scope: format!("t/{TENANT}/s/{id}"),
            ..more
        };
        self.0.self_enqueue(request).await.unwrap_or_else(|status| panic!("{id}: {status}"));
    }

    async fn lease(&mut self, most: i32) -> Option<Leased> {
        let request = DequeueRequest {
            queue_name: QUEUE.to_string(),
            max_items: most,
            wait_ms: 0,
            lease_ms: 60_000,
            worker_id: "test".to_owned(),
            lease_generation: 0,
        };
        let answer = self.0.dequeue(request).await.expect("an answer").into_inner();
        let ids = answer.notifications.iter().map(|row| row.id).collect();
        answer.lease.map(|lease| Leased { generation: lease.generation, ids })
    }

    /// Leases the operation's parent and splits it into so many labels; `rest`: it is not at its end then.
    async fn expand(&mut self, id: &str, (labels, rest): (usize, &str)) {
        let parent = self.lease(1).await.expect("the parent comes");
        let label = |number: usize| SplitItem {
            dto_type: PICTURES.to_owned(),
            alias_name: String::new(),
            urn: Some(split_item::Urn::DtoId(format!("t/{TENANT}/s/{id}/eslimages/E{number}"))),
        };
        let request = ReEnqueueRequest {
            queue_name: QUEUE.to_string(),
            lease_generation: parent.generation,
            notification_id: parent.ids[0],
            items: (0..labels).map(label).collect(),
            next_cursor: rest.to_owned(),
            sla_timestamp: None,
        };
        self.0.re_enqueue(request).await.expect("it is split");
    }

    async fn report(&mut self, leased: Leased, outcome: OutcomeKind, due_at: Option<Timestamp>) {
        let report = |id| ItemOutcome {
            id,
            outcome: outcome.into(),
            cause: if outcome == OutcomeKind::Done { String::new() } else { "no radio".to_owned() },
            due_at: due_at.map(proto::timestamp_to_wire),
            handed_over: None,
            evidence: Evidence::Unspecified.into(),
        };
        self.complete(leased.generation, leased.ids.into_iter().map(report).collect()).await;
    }

    /// What access points took, or did not, is looked after the next day.
    async fn follow(&mut self, leased: (i64, &[i64]), handed_over: bool) {
        self.follow_until(leased, (handed_over, SystemClock.now().plus_ms(86_400_000))).await;
    }

    async fn follow_until(&mut self, (generation, ids): (i64, &[i64]), (handed_over, until): (bool, Timestamp)) {
        let report = |id: &i64| ItemOutcome {
            id: *id,
            outcome: OutcomeKind::Defer.into(),
            cause: "on its way".to_owned(),
            due_at: Some(proto::timestamp_to_wire(until)),
            handed_over: Some(handed_over),
            evidence: Evidence::Unspecified.into(),
        };
        self.complete(generation, ids.iter().map(report).collect()).await;
    }

    async fn complete(&mut self, lease_generation: i64, outcomes: Vec<ItemOutcome>) {
        let request = CompleteRequest { queue_name: QUEUE.to_string(), lease_generation, outcomes };
        self.0.complete(request).await.expect("it is reported");
    }
}

fn causes(operation: &Value) -> Vec<&str> {
    operation["blocked_on"].as_array().expect("a list").iter().filter_map(|one| one["cause"].as_str()).collect()
}

/// Every cause that the document names, but the one for causes that this gateway does not know.
fn documented() -> BTreeSet<String> {
    let text = std::fs::read_to_string(workspace_root().join("openapi/openapi.json")).expect("the document");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let schema = &document["components"]["schemas"]["BlockedCause"];
    let listed = schema["enum"].as_array().expect("an enumeration").iter().filter_map(Value::as_str);
    listed.filter(|cause| *cause != "OTHER").map(str::to_owned).collect()
}

/// The causes that an operation is told to wait for; noted in `met`.
async fn seen(operator: &Rest, id: &str, met: &mut BTreeSet<String>) -> Value {
    let operation = operator.get_json(&path(id)).await;
    met.extend(causes(&operation).into_iter().map(str::to_owned));
    // An estimate, or why there is none.
    assert!(operation["eta"]["seconds"].is_i64() != operation["eta"]["reason"].is_string(), "{operation}");
    operation
}

async fn limit(operator: &Rest, id: &str, limits: Value) -> Value {
    let mut body = limits;
    body["reason"] = "CHG-1: a test".into();
    operator.change(Method::PATCH, &path(id), &body).await.json(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cause_for_which_an_operation_waits_is_told() {
    let platform = PlatformAlone::open().await;
    let operator = platform.operator(&[TENANT]).await;
    let mut exporter = Exporter::new(&platform).await;
    let mut met = BTreeSet::new();
    exporter.begin("slow", SelfEnqueueRequest::default()).await;
    let silent = seen(&operator, "slow", &mut met).await;
    assert_eq!(causes(&silent), ["NO_WORKER"], "{silent}");
    assert_eq!(silent["blocked_on"][0]["service"], QUEUE.as_str());
    exporter.expand("slow", (6, "")).await;
    assert_eq!(causes(&seen(&operator, "slow", &mut met).await), [""; 0], "its worker asked, and may ask again");

    limit(&operator, "slow", json!({"throttle_per_s": 1})).await;
    let one = exporter.lease(4).await.expect("one label");
    assert_eq!(one.ids.len(), 1, "a slow one is leased label by label");
    let throttled = seen(&operator, "slow", &mut met).await;
    assert_eq!(causes(&throttled), ["THROTTLED"], "{throttled}");
    assert!(throttled["blocked_on"][0]["until"].is_string() && exporter.lease(4).await.is_none(), "{throttled}");
    limit(&operator, "slow", json!({"throttle_per_s": 0, "max_in_flight": 1})).await;
    let full = seen(&operator, "slow", &mut met).await;
    assert_eq!(causes(&full), ["IN_FLIGHT_LIMIT"], "{full}");
    assert!(exporter.lease(4).await.is_none(), "the one in hand is all that may be");
    exporter.report(one, OutcomeKind::Done, None).await;

    limit(&operator, "slow", json!({"max_in_flight": 0})).await;
    let rest = exporter.lease(10).await.expect("the others");
    let tomorrow = SystemClock.now().plus_ms(86_400_000);
    exporter.report(rest, OutcomeKind::Defer, Some(tomorrow)).await;
    let put_off = seen(&operator, "slow", &mut met).await;
    assert_eq!((causes(&put_off), &put_off["blocked_on"][0]["until"]), (vec!["NOT_DUE"], &tomorrow.to_string().into()));

    // All that hold at once are told at once.
    operator.change(Method::PUT, "/v1/brake", &json!({"on": true, "reason": "INC-9: a test"})).await.json(200);
    operator.post(&format!("{}/pause", path("slow")), &json!({"reason": "INC-9: look"})).await.json(200);
    let stopped = seen(&operator, "slow", &mut met).await;
    assert_eq!(causes(&stopped), ["BRAKE", "PAUSED", "NOT_DUE"], "{stopped}");
    assert!(stopped["eta"]["reason"].as_str().is_some_and(|why| why.contains("INC-9")), "{stopped}");
    operator.change(Method::PUT, "/v1/brake", &json!({"on": false, "reason": "INC-9: over"})).await.json(200);

    let stop_when = Some(StopWhen { failure_ratio_percent: 0, min_sample: 1 });
    exporter.begin("failing", SelfEnqueueRequest { stop_when, ..SelfEnqueueRequest::default() }).await;
    exporter.expand("failing", (3, "")).await;
    let one = exporter.lease(1).await.expect("a label");
    exporter.report(one, OutcomeKind::Failed, None).await;
    assert_eq!(causes(&seen(&operator, "failing", &mut met).await), ["HELD"]);
    let expires_at = Some(proto::timestamp_to_wire(tomorrow));
    let approval = Some(ApprovalRequired { label_count: 118_204, expires_at });
    exporter.begin("large", SelfEnqueueRequest { approval, ..SelfEnqueueRequest::default() }).await;
    assert_eq!(causes(&seen(&operator, "large", &mut met).await), ["AWAITING_APPROVAL"]);
    assert_eq!(met, documented(), "every documented cause was met");
    platform.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_and_limits_end_when_they_were_set_to() {
    let platform = PlatformAlone::open().await;
    let operator = platform.operator(&[TENANT]).await;
    let mut exporter = Exporter::new(&platform).await;
    exporter.begin("slow", SelfEnqueueRequest::default()).await;
    exporter.expand("slow", (3, "")).await;
    // An end soon after the answer, so that the test need not wait.
    let soon = || SystemClock.now().plus_ms(1_500).to_string();
    let limited = limit(&operator, "slow", json!({"throttle_per_s": 1, "max_in_flight": 2, "until": soon()})).await;
    assert_eq!(limited["controls"]["limits"], json!({"throttle_per_s": 1, "max_in_flight": 2}), "{limited}");
    let pause = json!({"reason": "CHG-1: look at the prices", "until": soon()});
    let paused = operator.post(&format!("{}/pause", path("slow")), &pause).await.json(200);
    assert_eq!((&paused["state"], &paused["controls"]["paused_until"]), (&json!("PAUSED"), &pause["until"]));
    assert_eq!(paused["blocked_on"][0]["until"], pause["until"], "{paused}");
    assert!(exporter.lease(3).await.is_none());

    let ended = until("pause and limits have ended", START_LIMIT, || async {
        let shown = operator.get_json(&path("slow")).await;
        let over = shown["state"] == "RUNNING" && shown["controls"]["limits"].is_null();
        if over { Ok(shown) } else { Err(shown.to_string()) }
    })
    .await;
    assert_eq!((&ended["controls"]["paused"], &ended["controls"]["limited"]), (&Value::Null, &Value::Null), "{ended}");
    assert_eq!(exporter.lease(3).await.expect("all of them").ids.len(), 3);
    let audit = operator.get_json("/v1/audit?tracking_id=slow").await;
    for action in ["pause ended", "limits ended"] {
        let row = audit["entries"].as_array().expect("entries").iter().find(|row| row["action"] == action);
        assert_eq!(row.map(|row| &row["operator"]), Some(&json!("")), "{action}: nobody did it, in {audit}");
    }
    platform.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_it_will_be_through_is_told_once_a_rate_was_measured() {
    let platform = PlatformAlone::open().await;
    let operator = platform.operator(&[TENANT]).await;
    let mut exporter = Exporter::new(&platform).await;
    exporter.begin("steady", SelfEnqueueRequest::default()).await;
    let counting = operator.get_json(&path("steady")).await;
    assert!(counting["eta"]["reason"].as_str().is_some_and(|why| !why.is_empty()), "{counting}");
    exporter.expand("steady", (1_000, "")).await;
    let expanded = operator.get_json(&path("steady")).await;
    assert_eq!(expanded["eta"]["seconds"], Value::Null, "nothing was measured yet: {expanded}");
    // One label after the other, until enough time has passed for a rate.
    let told = until("a rate was measured", START_LIMIT, || async {
        let mut exporter = Exporter(platform.doors.cqs(QUEUE));
        if let Some(one) = exporter.lease(1).await {
            exporter.report(one, OutcomeKind::Done, None).await;
        }
        let shown = operator.get_json(&path("steady")).await;
        if shown["eta"]["seconds"].is_i64() { Ok(shown) } else { Err(shown.to_string()) }
    })
    .await;
    let stages = told["funnel"].as_array().expect("a funnel");
    let exported = stages.iter().find(|stage| stage["stage"] == "exported").expect("the stage that has them");
    let (rate, left) = (exported["labels_per_second"].as_f64(), exported["waiting"].as_f64());
    let seconds = left.expect("labels") / rate.expect("a rate");
    assert_eq!(told["eta"]["seconds"].as_f64(), Some(seconds.ceil()), "what is left at that rate: {told}");
    platform.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_cancellation_tells_what_was_not_begun_what_finishes_and_what_is_done() {
    let platform = PlatformAlone::open().await;
    let operator = platform.operator(&[TENANT]).await;
    let mut exporter = Exporter::new(&platform).await;
    exporter.begin("wrong", SelfEnqueueRequest::default()).await;
    exporter.expand("wrong", (6, "E6")).await;
    // The rest of the parent comes before the labels: it is put off.
    let parent = exporter.lease(1).await.expect("the parent again");
    exporter.report(parent, OutcomeKind::Defer, Some(SystemClock.now().plus_ms(86_400_000))).await;
    let two = exporter.lease(2).await.expect("two labels");
    exporter.report(two, OutcomeKind::Done, None).await;
    let one = exporter.lease(1).await.expect("a label");

    let cancel = format!("{}/cancel", path("wrong"));
    let because = json!({"reason": "INC-9: the wrong store"});
    let cancelled = operator.post(&cancel, &because).await.json(200);
    let receipt = &cancelled["receipt"];
    let counts = |receipt: &Value| {
        ["not_started", "in_flight", "already_effective", "unexpanded_parents"].map(|name| receipt[name].as_i64())
    };
    assert_eq!(counts(receipt), [Some(3), Some(1), Some(2), Some(1)], "{cancelled}");
    assert!(receipt["quiet_by"].is_string(), "as long as the lease at most: {receipt}");
    assert_eq!(cancelled["operation"]["state"], "CANCELLING", "{cancelled}");
    assert_eq!(cancelled["operation"]["expansion_complete"], false, "{cancelled}");
    assert_eq!(cancelled["operation"]["percent"], Value::Null, "{cancelled}");

    // What was in hand finishes; then nothing more happens.
    exporter.report(one, OutcomeKind::Done, None).await;
    let again = operator.post(&cancel, &because).await.json(200);
    assert_eq!(counts(&again["receipt"]), [Some(3), Some(0), Some(3), Some(1)], "{again}");
    assert_eq!((&again["operation"]["state"], &again["receipt"]["quiet_by"]), (&json!("CANCELLED"), &Value::Null));
    assert!(exporter.lease(10).await.is_none(), "nothing of it is handed out any more");
    platform.close().await;
}

/// Exported and confirmed: of the summary; done and waiting of both stages of the funnel.
fn sent(operation: &Value) -> [Option<i64>; 6] {
    let summary = &operation["summary"];
    let stage = |name: &str| {
        operation["funnel"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|stage| stage["stage"] == name)
            .unwrap_or(&Value::Null)
    };
    let (exported, confirmed) = (stage("exported"), stage("confirmed"));
    [
        &summary["exported"],
        &summary["confirmed"],
        &exported["done"],
        &exported["waiting"],
        &confirmed["done"],
        &confirmed["waiting"],
    ]
    .map(Value::as_i64)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_access_points_took_is_exported_before_it_is_confirmed() {
    let platform = PlatformAlone::open().await;
    let operator = platform.operator(&[TENANT]).await;
    let mut exporter = Exporter::new(&platform).await;
    exporter.begin("sent", SelfEnqueueRequest::default()).await;
    exporter.expand("sent", (4, "")).await;
    let Leased { generation, ids } = exporter.lease(10).await.expect("the labels");
    let [one, two, three, last] = ids[..] else { panic!("four labels") };
    exporter.follow((generation, &[two, three]), true).await;
    exporter.report(Leased { generation, ids: vec![one] }, OutcomeKind::Done, None).await;
    let partly = operator.get_json(&path("sent")).await;
    assert_eq!(sent(&partly), [3, 1, 3, 1, 1, 2].map(Some), "{partly}");
    assert_eq!(partly["stages"][0]["handed_over"], 2, "{partly}");

    let home = tempfile::tempdir().expect("a folder");
    let shell = Shell::new(&operator, home.path());
    let wait = async |until: &str| {
        let line =
            ["operations", "wait", "sent", "--tenant", TENANT, "--until", until, "--timeout", "1s", "-o", "json"];
        shell.run(&line).await
    };
    wait("exported").await.ended(124);
    exporter.follow((generation, &[last]), true).await;
    let exported = wait("exported").await.ended(0).json();
    assert_eq!(sent(&exported), [4, 1, 4, 0, 1, 3].map(Some), "{exported}");
    wait("confirmed").await.ended(124);
    let streamed = operator.events(&format!("{}/events", path("sent")), None, |_| true).await;
    assert_eq!(sent(&streamed.events[0].data), sent(&exported), "the stream tells the same");
    let shown = shell.run(&["operations", "show", "sent", "--tenant", TENANT]).await.ended(0);
    let line =
        |name: &str| shown.out.lines().find(|line| line.starts_with(name)).map(str::to_owned).unwrap_or_default();
    assert!(line("exported").ends_with('4') && line("confirmed").ends_with('1'), "{shown:?}");

    // Cancelled: they may still show what their access points took, so nobody says they were not begun.
    let because = json!({"reason": "INC-9: the wrong store"});
    let cancelled = operator.post(&format!("{}/cancel", path("sent")), &because).await.json(200);
    let receipt = json!({
        "not_started": 0, "in_flight": 0, "handed_over": 3, "already_effective": 1, "unexpanded_parents": 0,
        "quiet_by": null
    });
    assert_eq!(cancelled["receipt"], receipt, "{cancelled}");
    assert_eq!(sent(&cancelled["operation"]), [4, 1, 4, 0, 1, 0].map(Some), "nothing waits any more: {cancelled}");
    platform.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_are_counted_by_evidence_and_failures_by_whether_access_points_had_taken_them() {
    let platform = PlatformAlone::open().await;
    let operator = platform.operator(&[TENANT]).await;
    let mut exporter = Exporter::new(&platform).await;
    exporter.begin("proved", SelfEnqueueRequest::default()).await;
    exporter.expand("proved", (7, "")).await;
    let Leased { generation, ids } = exporter.lease(10).await.expect("the labels");
    let outcome = |id: i64, outcome: OutcomeKind, evidence: Evidence| ItemOutcome {
        id,
        outcome: outcome.into(),
        evidence: evidence.into(),
        ..ItemOutcome::default()
    };
    let proved = vec![
        outcome(ids[0], OutcomeKind::Done, Evidence::Displayed),
        outcome(ids[1], OutcomeKind::Unchanged, Evidence::Transferred),
        outcome(ids[2], OutcomeKind::Done, Evidence::Transferred),
        outcome(ids[3], OutcomeKind::Done, Evidence::Unspecified),
    ];
    exporter.complete(generation, proved).await;
    exporter.follow_until((generation, &ids[4..6]), (true, SystemClock.now())).await;
    exporter.report(Leased { generation, ids: vec![ids[6]] }, OutcomeKind::Failed, None).await;
    let taken = exporter.lease(10).await.expect("what access points have");
    exporter.report(Leased { ids: vec![taken.ids[0]], ..taken }, OutcomeKind::Failed, None).await;

    let told = operator.get_json(&path("proved")).await;
    assert_eq!(sent(&told), [5, 3, 6, 0, 4, 1].map(Some), "{told}");
    let stage = |operation: &Value, name: &str| {
        let funnel = operation["funnel"].as_array().expect("a funnel").clone();
        funnel.into_iter().find(|stage| stage["stage"] == name).expect("the stage")
    };
    let by = json!({"written": 0, "transferred": 2, "displayed": 1, "none": 1});
    assert_eq!(stage(&told, "confirmed")["confirmed_by"], by, "{told}");
    assert_eq!((&stage(&told, "exported")["failed"], &stage(&told, "confirmed")["failed"]), (&json!(1), &json!(1)));
    assert_eq!((&told["failures"][0]["count"], &told["failures"][0]["handed_over"]), (&json!(2), &json!(1)), "{told}");
    let failures = operator.get_json(&format!("{}/failures", path("proved"))).await;
    let taken: Vec<_> = failures["failures"].as_array().into_iter().flatten().map(|one| &one["handed_over"]).collect();
    assert_eq!(taken, [&json!(false), &json!(true)], "{failures}");

    let streamed = operator.events(&format!("{}/events", path("proved")), None, |_| true).await;
    assert_eq!(stage(&streamed.events[0].data, "confirmed")["confirmed_by"], by, "the stream tells the same");
    let home = tempfile::tempdir().expect("a folder");
    let shell = Shell::new(&operator, home.path());
    let shown = shell.run(&["operations", "show", "proved", "--tenant", TENANT]).await.ended(0);
    assert!(shown.out.contains("1 displayed, 2 transferred, 1 none"), "{shown:?}");

    // What a retry took over is the retry's, with its totals.
    let asked = json!({"reason": "INC-4712: radio is back", "tracking_id": "again"});
    operator.post(&format!("{}/retry-failed", path("proved")), &asked).await.json(202);
    let again = exporter.lease(10).await.expect("the failures");
    let shown = again.ids.iter().map(|id| outcome(*id, OutcomeKind::Done, Evidence::Displayed)).collect();
    exporter.complete(again.generation, shown).await;
    let whole = operator.get_json(&path("proved")).await;
    assert_eq!((&whole["failures"][0]["retried"], &whole["failures_open"]), (&json!(2), &json!(0)), "{whole}");
    let totals = &whole["totals"];
    let by = json!({"written": 0, "transferred": 2, "displayed": 3, "none": 1});
    assert_eq!(stage(totals, "confirmed")["confirmed_by"], by, "{totals}");
    assert_eq!(sent(totals), [6, 5, 7, 0, 6, 1].map(Some), "one is still on its way: {totals}");
    assert_eq!(stage(totals, "confirmed")["failed"], 0, "{totals}");
    platform.close().await;
}
