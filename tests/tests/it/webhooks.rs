//! Webhooks: what happens to operations is told, signed, in order, and not lost while no gateway runs.

use std::{collections::BTreeMap, fs, sync::Arc};

use daemon::{SystemClock, SystemIds, identity::ServiceCredentials, shutdown::Shutdown};
use domain::{Clock as _, OperatorScope, ServiceName};
use gateway::{
    GatewayParts, Issuer, OperatorPolicy, OperatorVerifier, PlanKey, Rules, Webhooks, WebhooksConfig,
    token::OperatorClaims,
};
use serde_json::Value;
use tests::{
    data::Shelf,
    topology::{START_LIMIT, Topology},
    wait::until,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Mutex,
};

use crate::{
    control::large,
    model_refresh::{MODEL_REFRESH, refresh},
};

/// `whsec_` and 32 bytes.
pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// One call that came.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
}

/// What an endpoint was told so far.
pub(crate) type Inbox = Arc<Mutex<Vec<Told>>>;

/// An endpoint that answers its first call with 503 and all others with 204.
pub(crate) async fn endpoint() -> (String, Inbox) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let inbox = Inbox::default();
    let told = Arc::clone(&inbox);
    tokio::spawn(async move {
        let mut refused = false;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let (head, body) = loop {
                stream.read_buf(&mut bytes).await.expect("the request comes");
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if length == Some(body.len()) {
                    break (head.to_owned(), body.to_owned());
                }
            };
            let answer = if refused { "204 No Content" } else { "503 Service Unavailable" };
            if refused {
                let headers = head.lines().filter_map(|line| line.split_once(": "));
                let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                let text = body;
                let body = serde_json::from_str(&text).expect("JSON");
                told.lock().await.push(Told { headers, body, text });
            }
            refused = true;
            let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("the answer goes");
        }
    });
    (format!("http://{address}/reshelf?from=test"), inbox)
}

/// A gateway that does nothing but tell that endpoint.
fn telling(topology: &Topology, url: &str) -> Shutdown {
    fs::write(topology.folder().join("pager.secret"), SECRET).expect("the secret is written");
    let config = serde_json::json!({
        "allow": ["127.0.0.0/8"],
        "endpoints": [{"name": "pager", "url": url, "secret_file": "pager.secret", "tenants": ["acme"]}],
    });
    let config: WebhooksConfig = serde_json::from_value(config).expect("a section");
    let webhooks: Webhooks = config.webhooks(topology.folder()).expect("endpoints");
    let key = topology.doors.keys[&ServiceName::OperatorGateway].clone();
    let clock: Arc<dyn domain::Clock> = Arc::new(SystemClock);
    let credentials = ServiceCredentials::new(ServiceName::OperatorGateway, key.clone(), Arc::clone(&clock));
    let issuer = Issuer::local(key.public()).expect("an issuer");
    let shutdown = Shutdown::default();
    let _router = gateway::router(GatewayParts {
        platform: credentials.attach(topology.doors.platform.clone()),
        triggers: BTreeMap::new(),
        operators: OperatorVerifier::new(vec![issuer], Arc::clone(&clock)),
        plans: PlanKey::new(key).expect("a plan key"),
        policy: OperatorPolicy::default(),
        cors: Vec::new(),
        login: None,
        rules: Rules::default(),
        webhooks,
        shutdown: shutdown.clone(),
        clock,
        ids: Arc::new(SystemIds),
    });
    shutdown
}

/// Waits for so many calls.
async fn told(inbox: &Inbox, count: usize) -> Vec<Told> {
    until(&format!("{count} calls"), START_LIMIT, || async {
        let told = inbox.lock().await.clone();
        if told.len() >= count { Ok(told) } else { Err(format!("{told:?}")) }
    })
    .await
}

fn kinds(told: &[Told]) -> Vec<&str> {
    told.iter().filter_map(|told| told.body["type"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_told_signed_in_order_and_also_what_happened_meanwhile() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", 3)]).await;
    topology.quiet().await;
    let operator = topology.operator(&["acme"]);
    let (url, inbox) = endpoint().await;
    let gateway = telling(&topology, &url);
    // It is told once the gateway follows; what was before is not.
    until("the gateway follows", START_LIMIT, || async {
        match topology.tables().await.audit_readers().await {
            0 => Err("nobody follows"),
            _ => Ok(()),
        }
    })
    .await;
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "told-1", false)).await.json(202);
    let first = told(&inbox, 1).await;
    assert_eq!(kinds(&first), ["operation.finished"], "the first call was answered 503 and made again");
    let data = &first[0].body["data"];
    assert_eq!(
        (&data["tenant_id"], &data["tracking_id"], &data["state"]),
        (&"acme".into(), &"told-1".into(), &"SUCCEEDED".into())
    );
    assert_eq!((&data["labels"], &data["failed"], &data["operator"]), (&3.into(), &0.into(), &"operator@test".into()));
    for header in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        assert!(first[0].headers.contains_key(header), "{header} in {first:?}");
    }
    assert!(first[0].headers["webhook-signature"].starts_with("v1,"));

    // While no gateway tells, a brake is put on and an operation finishes with a failure.
    gateway.stop().await;
    let brake = |on: bool| serde_json::json!({"on": on, "reason": "INC-7: wrong prices"});
    operator.change(reqwest::Method::PUT, "/v1/brake", &brake(true)).await.json(200);
    operator.change(reqwest::Method::PUT, "/v1/brake", &brake(false)).await.json(200);
    shelf.import(&topology.doors, vec![shelf.item("alpha-0001", "no price")]).await;
    topology.quiet().await;
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "told-2", false)).await.json(202);
    topology.finished("acme", "told-2", START_LIMIT).await;
    assert_eq!(inbox.lock().await.len(), 1, "nobody told");

    let gateway = telling(&topology, &url);
    let all = told(&inbox, 4).await;
    assert_eq!(kinds(&all), ["operation.finished", "brake.on", "brake.off", "operation.failed"]);
    assert_eq!(all[3].body["data"]["failed"], 1, "{all:?}");
    let ids: std::collections::BTreeSet<&String> = all.iter().map(|told| &told.headers["webhook-id"]).collect();
    assert_eq!(ids.len(), 4, "each event has an id of its own");
    let now_s = SystemClock.now().as_ms() / 1000;
    let sent_s: i64 = all[3].headers["webhook-timestamp"].parse().expect("seconds");
    assert!((now_s - 60..=now_s).contains(&sent_s), "the time is that of the call");

    // A second operator decides.
    shelf.import(&topology.doors, vec![shelf.item("alpha-0001", "1.49")]).await;
    topology.quiet().await;
    let claims = topology.claims(&["acme"], &[OperatorScope::OperationsApprove, OperatorScope::OperationsRead]);
    let second = topology.operator_as(&OperatorClaims { subject: "second@test".parse().expect("a subject"), ..claims });
    let mut renderer = topology.doors.cqs(ServiceName::EccImageRender);
    let decided = [
        ("large", "approve", ["operation.approval_needed", "operation.approved", "operation.finished"], "SUCCEEDED"),
        ("vain", "decline", ["operation.approval_needed", "operation.declined", "operation.finished"], "CANCELLED"),
    ];
    let mut so_far = all.len();
    for (id, decision, events, state) in decided {
        let asked = renderer.self_enqueue(large(&shelf, id)).await;
        asked.unwrap_or_else(|status| panic!("{status}"));
        let path = format!("/v1/tenants/acme/operations/{id}");
        let waits = second.get_json(&path).await;
        let mut body = serde_json::json!({"reason": "CHG-121: looked at"});
        if decision == "approve" {
            body["labels"] = waits["controls"]["approval"]["labels"].clone();
            body["plan"] = waits["plan"].clone();
        }
        second.post(&format!("{path}/{decision}"), &body).await.json(200);
        let all = told(&inbox, so_far + events.len()).await;
        let new = &all[so_far..];
        assert_eq!(kinds(new), events, "{new:?}");
        let decision = &new[1].body["data"];
        assert_eq!(
            (&decision["tracking_id"], &decision["operator"], &decision["reason"]),
            (&id.into(), &"second@test".into(), &"CHG-121: looked at".into())
        );
        assert_eq!(new[2].body["data"]["state"], state, "{new:?}");
        so_far = all.len();
    }
    gateway.stop().await;
    topology.stop().await;
}
