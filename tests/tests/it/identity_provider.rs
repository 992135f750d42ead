//! Tokens and keys of a real identity provider: the npm package `oidc-provider`, run by node.

use std::{path::PathBuf, sync::Arc};

use daemon::{
    SystemClock, SystemIds, channel,
    identity::ServiceKey,
    shutdown::Shutdown,
    tls::{ClientTls, ClientTlsConfig},
};
use domain::{Clock, ManualClock};
use gateway::{
    ClaimNames, GatewayParts, Issuer, IssuerSettings, KeySource, Login, OperatorAlgorithm, OperatorPolicy,
    OperatorVerifier, PlanKey, TokenRules,
};
use serde_json::Value;
use tests::{
    browser::Browser,
    process::Program,
    rest::Rest,
    source::workspace_root,
    topology::{START_LIMIT, free_ports},
};
use tokio::{net::TcpListener, process::Command};

/// As `gateway`'s rules for published keys say.
const COOLDOWN_MS: i64 = 30_000;
const FRESH_MS: i64 = 300_000;

fn folder() -> PathBuf {
    let folder = workspace_root().join("tests/identity-provider");
    assert!(
        folder.join("node_modules/oidc-provider").is_dir(),
        "the identity provider is missing: npm ci --prefix {}",
        folder.display()
    );
    folder
}

struct Idp {
    issuer: String,
    port: u16,
    program: Program,
    gateway: String,
    clock: Arc<ManualClock>,
    scratch: tempfile::TempDir,
}

/// Starts it; `name` is that of its output's files.
async fn provider(name: &str, port: u16, gateway: &str, scratch: &std::path::Path) -> Program {
    let mut command = Command::new("node");
    command.current_dir(folder()).arg("provider.mjs").arg(port.to_string()).arg(gateway);
    let mut program = Program::start(name, command, scratch);
    program.shows("to listen", START_LIMIT, |text| text.lines().any(|line| line == "listening").then_some(())).await;
    program
}

/// A provider, and a gateway that trusts it. The gateway's platform is nowhere: only tokens matter here.
async fn start() -> Idp {
    let scratch = tempfile::tempdir().expect("a folder");
    let [address] = free_ports();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let gateway = format!("http://{}", listener.local_addr().expect("its address"));
    let program = provider("provider", address.port(), &gateway, scratch.path()).await;
    let issuer = format!("http://127.0.0.1:{}", address.port());
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let shared: Arc<dyn Clock> = clock.clone();
    let tls = ClientTls::new(&ClientTlsConfig::default(), scratch.path(), &[b"http/1.1"]).expect("the system's bundle");
    let settings = IssuerSettings {
        issuer: issuer.clone(),
        audience: "reshelf".to_owned(),
        algorithms: vec![OperatorAlgorithm::Rs256, OperatorAlgorithm::Es256],
        keys: KeySource::Discovered { tls },
        claims: ClaimNames::default(),
        rules: TokenRules::rfc9068(),
        lifetime_s_max: Some(3_600),
    };
    let verifier = OperatorVerifier::new(vec![Issuer::new(settings).expect("an issuer")], Arc::clone(&shared));
    let router = gateway::router(GatewayParts {
        platform: channel::connect(&["http://127.0.0.1:9".to_owned()]).expect("an address"),
        triggers: [].into(),
        operators: verifier,
        plans: PlanKey::new(ServiceKey::generate().expect("a key")).expect("a plan key"),
        policy: OperatorPolicy::default(),
        cors: Vec::new(),
        login: Some(Login {
            client_id: "console".to_owned(),
            authorization_url: format!("{issuer}/auth"),
            token_url: format!("{issuer}/token"),
            parameters: [].into(),
        }),
        webhooks: gateway::Webhooks::default(),
        shutdown: daemon::shutdown::Shutdown::default(),
        rules: gateway::Rules::default(),
        clock: shared,
        ids: Arc::new(SystemIds),
    });
    tokio::spawn(gateway::serve(listener, router, Shutdown::default()));
    Idp { issuer, port: address.port(), program, gateway, clock, scratch }
}

impl Idp {
    /// An access token by client credentials, for a resource where one is named.
    async fn token(&self, resource: &str) -> String {
        let body = format!(
            "grant_type=client_credentials&client_id=robot&client_secret=robot-secret&scope=labels%3Aread{resource}"
        );
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = client.post(format!("{}/token", self.issuer));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let answer = request.send().await.expect("an answer").text().await.expect("a body");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["access_token"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
    }

    async fn me(&self, token: &str) -> (u16, Value) {
        let answer = Rest::new(&self.gateway, Some(token)).try_get("/v1/me").await.expect("the gateway answers");
        (answer.status, serde_json::from_str(&answer.text()).expect("JSON"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_real_provider_are_accepted_and_its_keys_rotate() {
    let mut idp = start().await;
    for resource in ["", "&resource=urn%3Areshelf"] {
        let token = idp.token(resource).await;
        let (status, me) = idp.me(&token).await;
        assert_eq!(status, 200, "{me}");
        assert_eq!(
            (&me["subject"], &me["scopes"][0], &me["tenants"][0]["tenant_id"]),
            (&"robot".into(), &"labels:read".into(), &"acme".into())
        );
        let (status, _) = idp.me(&format!("{}x", token.trim_end_matches(|c: char| c.is_ascii()))).await;
        assert_eq!(status, 401);
    }
    let other = idp.token("&resource=urn%3Aother").await;
    assert_eq!(idp.me(&other).await.0, 401, "meant for somebody else");
    let other = idp.token("&resource=urn%3Aother%3Aes256").await;
    assert_eq!(idp.me(&other).await.0, 401, "meant for somebody else, another algorithm");

    // The provider comes back with other keys.
    let old = idp.token("").await;
    idp.program.kill().await;
    idp.program = provider("provider-again", idp.port, &idp.gateway, idp.scratch.path()).await;
    let new = idp.token("").await;
    assert_eq!(idp.me(&new).await.0, 401, "within the cooldown nobody looks");
    idp.clock.advance_ms(COOLDOWN_MS);
    assert_eq!(idp.me(&new).await.0, 200, "its first token after that finds the new key");
    assert_eq!(idp.me(&old).await.0, 401, "and the old one is gone");
    // An outage: the last keys serve.
    idp.program.kill().await;
    idp.clock.advance_ms(FRESH_MS);
    assert_eq!(idp.me(&new).await.0, 200);
}

/// The page logs in as a person would: authorise, log in at the provider, consent, and the token works.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_logs_in_by_authorisation_code_with_pkce() {
    let idp = start().await;
    let browser = Browser::start().await;
    browser.open(&format!("{}/docs/", idp.gateway)).await;
    browser.click(".auth-wrapper .btn.authorize").await;
    // The flow's own form: every scope, then the button of its container.
    browser.click(".modal-ux .scopes h2 a").await;
    browser
        .click(".modal-ux .auth-container .btn.modal-btn.auth.authorize[aria-label='Apply given OAuth2 credentials']")
        .await;
    let page = browser.switch_to_new_window().await;
    browser.type_into("input[name=login]", "ada").await;
    browser.type_into("input[name=password]", "x").await;
    browser.click("button[type=submit]").await;
    browser.text_with("body", |text| text.contains("Authorize").then_some(())).await;
    browser.click("button[type=submit]").await;
    browser.switch_back(&page).await;
    browser.text_with(".modal-ux", |text| text.contains("Logout").then_some(())).await;
    browser.click(".modal-ux .btn-done").await;
    browser.click("#operations-operator-get_me .opblock-summary-control").await;
    browser.click("#operations-operator-get_me .btn.execute").await;
    let shown = browser
        .text_with("#operations-operator-get_me .live-responses-table .highlight-code", |text| {
            text.contains("\"subject\"").then(|| text.to_owned())
        })
        .await;
    assert!(shown.contains("\"ada\"") && shown.contains("labels:read"), "{shown}");
    browser.close().await;
}
