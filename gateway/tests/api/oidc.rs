//! Keys that a provider publishes: fetched, kept, rotated, withdrawn; and what its tokens may say.

use std::{collections::BTreeMap, sync::Arc};

use domain::{Clock, ManualClock, OperatorScope, Timestamp};
use gateway::{
    ClaimNames, GroupGrant, Groups, Issuer, IssuerSettings, KeySource, Operator, OperatorAlgorithm, OperatorVerifier,
    TokenRefusal::{self, Claim, Header, NoKeys, Signature},
    TokenRules, TokenType,
};
use http::{HeaderMap, HeaderValue, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    harness::{Changes, World},
    provider::{Keys, Provider, SigningKey, no_tls, set},
};

/// Seconds.
const NOW_S: i64 = 1_780_272_000;
/// As `remote` documents them, in milliseconds.
const FRESH_MS: i64 = 300_000;
const COOLDOWN_MS: i64 = 30_000;
const STALE_MAX_MS: i64 = 3_600_000;

struct Idp {
    provider: Provider,
    clock: Arc<ManualClock>,
    verifier: OperatorVerifier,
}

fn settings(issuer: &str) -> IssuerSettings {
    IssuerSettings {
        issuer: issuer.to_owned(),
        audience: "reshelf".to_owned(),
        algorithms: vec![OperatorAlgorithm::EdDsa],
        keys: KeySource::Discovered { tls: no_tls() },
        claims: ClaimNames::default(),
        rules: TokenRules::rfc9068(),
        lifetime_s_max: None,
    }
}

async fn idp(keys: Keys, change: impl FnOnce(&mut IssuerSettings)) -> Idp {
    let provider = Provider::start(keys).await;
    let clock = Arc::new(ManualClock::at(Timestamp::from_ms(NOW_S * 1000)));
    let mut settings = settings(&provider.issuer());
    change(&mut settings);
    let shared: Arc<dyn Clock> = clock.clone();
    let verifier = OperatorVerifier::new(vec![Issuer::new(settings).unwrap()], shared);
    Idp { provider, clock, verifier }
}

impl Idp {
    fn claims(&self) -> Value {
        let now = self.clock.now().as_ms() / 1000;
        json!({"iss": self.provider.issuer(), "aud": "reshelf", "sub": "ada", "iat": now, "exp": now + 7_200, "jti": "1",
            "client_id": "console", "scope": "labels:read openid", "tenants": ["acme"]})
    }

    fn token(&self, key: &SigningKey) -> String {
        key.sign(&json!({"alg": "EdDSA", "typ": "at+jwt", "kid": key.kid}), &self.claims())
    }

    async fn ask(&self, token: &str) -> Result<Operator, TokenRefusal> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}")).unwrap());
        self.verifier.authenticate(&headers).await
    }

    async fn refused(&self, token: &str) -> TokenRefusal {
        self.ask(token).await.map(|operator| operator.subject().to_string()).unwrap_err()
    }
}

#[tokio::test]
async fn published_keys_are_fetched_once_and_kept() {
    let key = SigningKey::new("a");
    let idp = idp(set(&[&key]), |_| {}).await;
    for _ in 0..50 {
        let operator = idp.ask(&idp.token(&key)).await.unwrap();
        assert_eq!(operator.subject().as_str(), "ada");
        assert_eq!(operator.scopes().collect::<Vec<_>>(), [OperatorScope::LabelsRead]);
    }
    assert_eq!(idp.provider.asked(), 1);
    assert!(idp.verifier.verify(&idp.token(&key)).is_ok(), "by the keys known now");
}

/// 10,000 tokens with random key ids: one look a cooldown, and the good key stays good all the while.
#[tokio::test]
async fn unknown_key_ids_cause_one_fetch_a_cooldown() {
    let key = SigningKey::new("a");
    let idp = idp(set(&[&key]), |_| {}).await;
    assert!(idp.ask(&idp.token(&key)).await.is_ok());
    let stranger = SigningKey::new("stranger");
    for round in 0..10_usize {
        idp.clock.advance_ms(COOLDOWN_MS);
        for number in 0..1_000 {
            let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": format!("{round}-{number}")});
            assert_eq!(idp.refused(&stranger.sign(&header, &idp.claims())).await, Signature);
        }
        assert!(idp.provider.asked() <= round + 2, "{} fetches in round {round}", idp.provider.asked());
        assert!(idp.ask(&idp.token(&key)).await.is_ok());
    }
    // A known key id with a wrong signature is no reason to look at all.
    let before = idp.provider.asked();
    idp.clock.advance_ms(COOLDOWN_MS);
    let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a"});
    assert_eq!(idp.refused(&stranger.sign(&header, &idp.claims())).await, Signature);
    assert_eq!(idp.provider.asked(), before);
}

#[tokio::test]
async fn keys_rotate_and_a_withdrawn_key_is_refused_within_the_stated_time() {
    let (old, new) = (SigningKey::new("old"), SigningKey::new("new"));
    let idp = idp(set(&[&old]), |_| {}).await;
    assert!(idp.ask(&idp.token(&old)).await.is_ok());
    idp.provider.publish(&[&old, &new]);
    assert_eq!(idp.refused(&idp.token(&new)).await, Signature, "within the cooldown nobody looks");
    idp.clock.advance_ms(COOLDOWN_MS);
    assert!(idp.ask(&idp.token(&new)).await.is_ok(), "a new key is found by its first token");
    assert!(idp.ask(&idp.token(&old)).await.is_ok());
    idp.provider.publish(&[&new]);
    idp.clock.advance_ms(FRESH_MS);
    assert_eq!(idp.refused(&idp.token(&old)).await, Signature, "withdrawn");
    assert!(idp.ask(&idp.token(&new)).await.is_ok());
}

#[tokio::test]
async fn the_last_keys_serve_an_outage_for_a_bounded_time() {
    let key = SigningKey::new("a");
    let idp = idp(set(&[&key]), |_| {}).await;
    assert!(idp.ask(&idp.token(&key)).await.is_ok());
    idp.provider.change(|state| state.keys = Keys::Answer(StatusCode::INTERNAL_SERVER_ERROR, vec![], vec![]));
    for _ in 0..STALE_MAX_MS / FRESH_MS - 1 {
        idp.clock.advance_ms(FRESH_MS);
        assert!(idp.ask(&idp.token(&key)).await.is_ok());
    }
    idp.clock.advance_ms(FRESH_MS);
    assert_eq!(idp.refused(&idp.token(&key)).await, NoKeys);
    idp.provider.publish(&[&key]);
    idp.clock.advance_ms(COOLDOWN_MS);
    assert!(idp.ask(&idp.token(&key)).await.is_ok(), "and it comes back by itself");
}

#[tokio::test]
async fn what_is_no_key_set_gives_no_keys() {
    let key = SigningKey::new("a");
    // Where a redirect or a foreign jwks_uri would lead: nobody may come.
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let lure = format!("http://{}/keys", elsewhere.local_addr().unwrap());
    let many: Vec<Value> = (0..129).map(|number| SigningKey::new(&number.to_string()).jwk()).collect();
    let ok = StatusCode::OK;
    for (name, keys) in [
        ("404", Keys::Answer(StatusCode::NOT_FOUND, vec![], vec![])),
        ("500", Keys::Answer(StatusCode::INTERNAL_SERVER_ERROR, vec![], vec![])),
        ("a redirect", Keys::Answer(StatusCode::FOUND, vec![("location", lure.clone())], vec![])),
        (
            "a redirect to metadata",
            Keys::Answer(
                StatusCode::TEMPORARY_REDIRECT,
                vec![("location", "http://169.254.169.254/".to_owned())],
                vec![],
            ),
        ),
        ("HTML", Keys::Answer(ok, vec![("content-type", "text/html".to_owned())], b"<html>".to_vec())),
        ("nothing", Keys::Answer(ok, vec![], vec![])),
        ("too much", Keys::Answer(ok, vec![], vec![b' '; 300 * 1024])),
        ("no keys", Keys::Set(json!({"keys": []}))),
        ("no list", Keys::Set(json!({"keys": {"a": 1}}))),
        ("too many keys", Keys::Set(json!({"keys": many}))),
        ("two keys of one kid", Keys::Set(json!({"keys": [key.jwk(), SigningKey::new("a").jwk()]}))),
    ] {
        let idp = idp(keys, |_| {}).await;
        assert_eq!(idp.refused(&idp.token(&key)).await, NoKeys, "{name}");
        assert_eq!(idp.refused(&idp.token(&key)).await, NoKeys, "{name}");
        assert_eq!(idp.provider.asked(), 1, "{name}: one fetch a cooldown also while there is nothing");
    }
    let idp = idp(set(&[&key]), |_| {}).await;
    for discovery in [
        json!({"issuer": "https://other.example", "jwks_uri": format!("{}/jwks", idp.provider.issuer())}),
        json!({"issuer": format!("{}/", idp.provider.issuer()), "jwks_uri": format!("{}/jwks", idp.provider.issuer())}),
        json!({"issuer": idp.provider.issuer(), "jwks_uri": lure}),
        json!({"issuer": idp.provider.issuer(), "jwks_uri": "file:///etc/passwd"}),
        json!({"issuer": idp.provider.issuer(), "jwks_uri": "http://169.254.169.254/keys"}),
        json!({"issuer": idp.provider.issuer()}),
        json!([]),
    ] {
        idp.provider.change(|state| state.discovery = Some(discovery.clone()));
        assert_eq!(idp.refused(&idp.token(&key)).await, NoKeys, "{discovery}");
        idp.clock.advance_ms(COOLDOWN_MS);
    }
    assert_eq!(idp.provider.asked(), 0);
    let came = tokio::select! { biased; came = elsewhere.accept() => Some(came), () = std::future::ready(()) => None };
    assert!(came.is_none(), "somebody followed where a document led");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_is_given_up() {
    let key = SigningKey::new("a");
    let idp = idp(Keys::Never, |_| {}).await;
    assert_eq!(idp.refused(&idp.token(&key)).await, NoKeys);
}

/// Keys for other uses are passed over; those beside them serve.
#[tokio::test]
async fn unusable_published_keys_are_passed_over() {
    let key = SigningKey::new("a");
    let (mut private, mut encryption) = (SigningKey::new("p").jwk(), SigningKey::new("e").jwk());
    private["d"] = json!("AAAA");
    encryption["use"] = json!("enc");
    let rsa = |bytes: usize, e: &str| {
        use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
        json!({"kty": "RSA", "kid": format!("rsa-{bytes}-{e}"), "n": BASE64_URL_SAFE_NO_PAD.encode(vec![0xff_u8; bytes]), "e": e})
    };
    let keys = json!({"keys": [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "a2"}, {"kty": "EC", "crv": "P-521", "kid": "ec"}, {}, [], null, "key",
        private, encryption, rsa(64, "AQAB"), rsa(128, "AQAB"), rsa(2_048, "AQAB"), rsa(256, "AQ"), rsa(256, "AQAC"),
        rsa(256, ""), key.jwk()
    ]});
    let idp = idp(Keys::Set(keys), |settings| settings.algorithms.push(OperatorAlgorithm::Rs256)).await;
    assert!(idp.ask(&idp.token(&key)).await.is_ok());
    for kid in ["a2", "p", "e", "rsa-256-AQ"] {
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid});
        assert_eq!(idp.refused(&key.sign(&header, &idp.claims())).await, Signature, "{kid}");
    }
}

#[tokio::test]
async fn access_tokens_say_what_rfc_9068_requires() {
    let key = SigningKey::new("a");
    let idp = idp(set(&[&key]), |settings| settings.rules.clients = vec!["console".to_owned()]).await;
    let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a"});
    let signed = |change: &dyn Fn(&mut Value)| {
        let mut claims = idp.claims();
        change(&mut claims);
        key.sign(&header, &claims)
    };
    assert!(idp.ask(&signed(&|_| {})).await.is_ok());
    for name in ["iss", "aud", "sub", "exp", "iat", "jti", "client_id"] {
        let without = signed(&|claims| drop(claims.as_object_mut().unwrap().remove(name)));
        assert_eq!(idp.refused(&without).await, Claim, "{name}");
    }
    assert_eq!(idp.refused(&signed(&|claims| claims["client_id"] = json!("other"))).await, Claim);
    assert_eq!(idp.refused(&signed(&|claims| claims["sub"] = json!("svc:operator-gateway"))).await, Claim);
    let id_token = key.sign(&json!({"alg": "EdDSA", "typ": "JWT", "kid": "a"}), &idp.claims());
    assert_eq!(idp.refused(&id_token).await, Header);
}

/// Entra marks access tokens with `JWT`: then what only ID tokens carry is refused.
#[tokio::test]
async fn a_provider_that_cannot_mark_access_tokens_is_held_to_their_claims() {
    let key = SigningKey::new("a");
    let idp = idp(set(&[&key]), |settings| {
        settings.rules.token_type = TokenType::Plain;
        settings.claims.scopes = "/realm_access/roles".to_owned();
        settings.claims.tenants = "https://reshelf.example/tenants".to_owned();
    })
    .await;
    let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": "a"});
    let mut claims = idp.claims();
    claims["realm_access"] = json!({"roles": ["audit:read", "offline_access"]});
    claims["https://reshelf.example/tenants"] = json!(["acme", "rival"]);
    let operator = idp.ask(&key.sign(&header, &claims)).await.unwrap();
    assert_eq!(operator.scopes().collect::<Vec<_>>(), [OperatorScope::AuditRead]);
    assert_eq!(operator.tenants().count(), 2);
    for (name, value) in [
        ("nonce", json!("n")),
        ("at_hash", json!("h")),
        ("c_hash", json!("h")),
        ("events", json!({})),
        ("typ", json!("ID")),
        ("typ", json!("Refresh")),
    ] {
        let mut other = claims.clone();
        other[name] = value;
        assert_eq!(idp.refused(&key.sign(&header, &other)).await, Claim, "{name}");
    }
    assert!(idp.ask(&idp.token(&key)).await.is_err(), "and one marked otherwise is not taken");
}

fn grant(scopes: &[&str], tenants: &[&str], stores: &[&str]) -> GroupGrant {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    GroupGrant { scopes: texts(scopes), tenants: texts(tenants), stores: texts(stores) }
}

#[tokio::test]
async fn groups_grant_scopes_and_tenants_and_never_more_than_they_say() {
    let groups = BTreeMap::from([
        ("/acme/ops".to_owned(), grant(&["labels:read", "trigger:touch"], &["acme"], &[])),
        ("/acme/read".to_owned(), grant(&["labels:read"], &["acme"], &[])),
        ("/rival/read".to_owned(), grant(&["labels:read"], &["rival"], &[])),
        ("/rival/s1".to_owned(), grant(&["labels:read"], &[], &["rival/s1"])),
        ("auditors".to_owned(), grant(&["audit:read"], &[], &[])),
        ("everywhere".to_owned(), grant(&[], &["acme", "rival"], &[])),
    ]);
    let parsed = Groups::parse(&groups).unwrap();
    let key = SigningKey::new("a");
    let idp = idp(set(&[&key]), |settings| settings.rules.groups = parsed).await;
    let ask = async |held: Value| {
        let mut claims = idp.claims();
        claims["groups"] = held;
        let token = key.sign(&json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a"}), &claims);
        idp.ask(&token).await.map(|operator| {
            let scopes: Vec<String> = operator.scopes().map(|scope| scope.to_string()).collect();
            let tenants: Vec<String> = operator.tenants().map(ToString::to_string).collect();
            (scopes.join(" "), tenants.join(" "))
        })
    };
    let both = |scopes: &str, tenants: &str| Ok((scopes.to_owned(), tenants.to_owned()));
    assert_eq!(ask(json!(["/acme/read", "strangers"])).await, both("labels:read", "acme"));
    assert_eq!(ask(json!(["/acme/read", "/rival/read"])).await, both("labels:read", "acme rival"));
    assert_eq!(ask(json!(["/acme/read", "/acme/ops"])).await, both("trigger:touch labels:read", "acme"));
    assert_eq!(ask(json!(["/acme/read", "auditors"])).await, both("labels:read audit:read", "acme"));
    assert_eq!(ask(json!(["auditors", "everywhere"])).await, both("audit:read", "acme rival"));
    assert_eq!(ask(json!(["/rival/s1", "/rival/read"])).await, both("labels:read", "rival"));
    assert_eq!(ask(json!(["strangers"])).await, both("", ""));
    assert_eq!(ask(json!([])).await, both("", ""));
    assert_eq!(ask(json!(["/acme/ops", "/rival/read"])).await, both("trigger:touch labels:read", "acme rival"));
    assert_eq!(ask(json!("/acme/ops")).await, Err(Claim));
    // Scopes and tenants that the token itself names count for nothing once groups decide.
    assert_eq!(ask(Value::Null).await, Err(Claim));
    for (name, wrong) in [
        ("scope", grant(&["labels:write"], &["acme"], &[])),
        ("tenant", grant(&[], &["*"], &[])),
        ("store", grant(&[], &[], &["acme"])),
    ] {
        assert!(Groups::parse(&BTreeMap::from([("g".to_owned(), wrong)])).unwrap_err().to_string().contains(name));
    }
}

/// Whoever acts at one tenant and reads at another does each where a group says so, and neither elsewhere.
#[tokio::test]
async fn scopes_hold_where_their_group_says() {
    let groups = BTreeMap::from([
        ("acme-ops".to_owned(), grant(&["labels:read", "operations:read", "trigger:touch"], &["acme"], &[])),
        ("rival-readers".to_owned(), grant(&["labels:read"], &["rival"], &[])),
        ("rival-s1-touchers".to_owned(), grant(&["trigger:touch"], &[], &["rival/s1"])),
    ]);
    let key = SigningKey::new("a");
    let provider = Provider::start(set(&[&key])).await;
    let mut settings = settings(&provider.issuer());
    settings.rules.groups = Groups::parse(&groups).unwrap();
    let world = World::with(Changes { issuers: vec![settings], ..Changes::default() });
    let now = world.clock.now().as_ms() / 1000;
    let token = |held: &[&str]| {
        let claims = json!({"iss": provider.issuer(), "aud": "reshelf", "sub": "ada", "iat": now, "exp": now + 600,
            "jti": "1", "client_id": "console", "groups": held});
        key.sign(&json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a"}), &claims)
    };
    let touch = |urn: &str| json!({"records": [{"dto_type": "eccmodel.v1", "dto_id": urn}], "reason": "r", "tracking_id": "t", "dry_run": true});
    let two = token(&["acme-ops", "rival-readers"]);
    for tenant in ["acme", "rival"] {
        let read = world.get(&two, &format!("/v1/tenants/{tenant}/stores/s1/labels")).await;
        assert_eq!(read.status, StatusCode::OK, "{tenant}");
    }
    let own = world.post_json(&two, "/v1/triggers/touch", &touch("t/acme/s/s1/eccmodels/M")).await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.text());
    let lacking = world.post_json(&two, "/v1/triggers/touch", &touch("t/rival/s/s1/eccmodels/M")).await;
    assert_eq!(lacking.problem().0, "PERMISSION_DENIED");
    assert!(lacking.json()["detail"].as_str().unwrap().contains("trigger:touch"));
    let unknown = world.post_json(&two, "/v1/triggers/touch", &touch("t/nobody/s/s1/eccmodels/M")).await;
    assert_eq!(unknown.problem().0, "NOT_FOUND", "outside the token nothing exists");
    let operations = world.get(&two, "/v1/operations").await.json();
    let tenants: Vec<&Value> =
        operations["operations"].as_array().unwrap().iter().map(|operation| &operation["tenant_id"]).collect();
    assert_eq!(tenants, ["acme", "acme"], "operations are read at acme only");
    let me = world.get(&two, "/v1/me").await.json();
    assert_eq!(me["tenants"][0], json!({"tenant_id": "acme"}));
    assert_eq!(me["tenants"][1], json!({"tenant_id": "rival", "scopes": ["labels:read"]}));

    // Within one tenant: read everywhere, touch in one store.
    let narrow = token(&["rival-readers", "rival-s1-touchers"]);
    for (urn, code) in [("t/rival/s/s1/eccmodels/M", None), ("t/rival/s/s2/eccmodels/M", Some("PERMISSION_DENIED"))] {
        let answer = world.post_json(&narrow, "/v1/triggers/touch", &touch(urn)).await;
        match code {
            None => assert_eq!(answer.status, StatusCode::OK, "{urn}"),
            Some(code) => assert_eq!(answer.problem().0, code, "{urn}"),
        }
    }
}

/// Outside: while no keys can be had the answer says so, and readiness names the issuer.
#[tokio::test]
async fn an_issuer_without_keys_is_told_apart_from_a_bad_token() {
    let key = SigningKey::new("a");
    let provider = Provider::start(set(&[&key])).await;
    provider.change(|state| state.keys = Keys::Answer(StatusCode::BAD_GATEWAY, vec![], vec![]));
    let world = World::with(Changes { issuers: vec![settings(&provider.issuer())], ..Changes::default() });
    let now = world.clock.now().as_ms() / 1000;
    let claims = json!({"iss": provider.issuer(), "aud": "reshelf", "sub": "ada", "iat": now, "exp": now + 600, "jti": "1",
        "client_id": "console", "scope": "labels:read", "tenants": ["acme"]});
    let token = key.sign(&json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a"}), &claims);
    let answer = world.get(&token, "/v1/me").await;
    assert_eq!(answer.problem().0, "UNAVAILABLE");
    assert!(answer.headers.contains_key("retry-after"));
    let ready = world.get("", "/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ready.json()["down"], json!([format!("keys of {}", provider.issuer())]));
    assert_eq!(world.get(&world.token(), "/v1/me").await.status, StatusCode::OK, "the local issuer is not affected");
    provider.publish(&[&key]);
    world.clock.advance_ms(COOLDOWN_MS);
    assert_eq!(world.get("", "/readyz").await.status, StatusCode::OK);
    let me = world.get(&token, "/v1/me").await.json();
    assert_eq!(me["subject"], "ada");
}
