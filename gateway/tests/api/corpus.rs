//! The hostile corpus (`tests/corpus`): every case gets the answer that stands beside it, none a 5xx, and each within its
//! memory.

use std::{fs, path::PathBuf, sync::Arc};

use aws_lc_rs::{
    encoding::AsDer as _,
    hmac,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use axum::body::Body;
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use daemon::shutdown::Shutdown;
use domain::{Clock, ManualClock, Timestamp};
use gateway::{
    ClaimNames, Issuer, IssuerSettings, KeySource, OperatorAlgorithm, OperatorVerifier, PublicKeyText, TokenRules,
};
use http::{HeaderValue, Request};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{
    costs::{Costs, Running},
    harness::World,
};

/// Seconds.
const NOW_S: i64 = 1_780_272_000;

fn cases<T: DeserializeOwned>(file: &str, least: usize) -> Vec<T> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases: Vec<T> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= least, "{file} has only {} cases", cases.len());
    cases
}

/// Fails with every case that went wrong, not only the first.
fn verdict(file: &str, costs: &Costs, wrong: &[String]) {
    costs.tell(file);
    assert!(wrong.is_empty(), "{} of {file}:\n{}", wrong.len(), wrong.join("\n"));
}

#[derive(Deserialize)]
struct TokenCase {
    name: String,
    header: String,
    claims: String,
    sign: String,
    form: String,
    accepted: bool,
}

struct Signers {
    good: Ed25519KeyPair,
    stranger: Ed25519KeyPair,
}

impl Signers {
    /// `@N@` stands for seconds from now, `@stranger` for a key that is nobody's.
    fn fill(&self, text: &str) -> String {
        let x = BASE64_URL_SAFE_NO_PAD.encode(self.stranger.public_key().as_ref());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": x}).to_string();
        let text = text.replace("\"@stranger\"", &jwk);
        let (mut filled, mut rest) = (String::new(), text.as_str());
        while let Some((before, after)) = rest.split_once('@') {
            filled.push_str(before);
            let number = after.split_once('@').and_then(|(offset, then)| Some((offset.parse::<i64>().ok()?, then)));
            if let Some((offset, then)) = number {
                filled.push_str(&(NOW_S + offset).to_string());
                rest = then;
            } else {
                filled.push('@');
                rest = after;
            }
        }
        filled.push_str(rest);
        filled
    }

    fn token(&self, case: &TokenCase) -> String {
        let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(self.fill(text));
        let signed = format!("{}.{}", part(&case.header), part(&case.claims));
        let mut signature = match case.sign.as_str() {
            "stranger" => self.stranger.sign(signed.as_bytes()).as_ref().to_vec(),
            "hmac-public" => {
                let public = self.good.public_key().as_der().unwrap();
                let key = hmac::Key::new(hmac::HMAC_SHA256, public.as_ref());
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            "other-part" => self.good.sign(b"other.part").as_ref().to_vec(),
            "empty" => Vec::new(),
            "zeros" => vec![0; 64],
            _ => self.good.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        match case.sign.as_str() {
            "short" => signature.truncate(63),
            "long" => signature.push(0),
            "flipped" => signature[0] ^= 1,
            _ => {}
        }
        let token = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        formed(&token, &case.form)
    }
}

/// The token in another form than the compact one.
fn formed(token: &str, form: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    match form {
        "plain" => token.to_owned(),
        "two-parts" => parts[..2].join("."),
        "four-parts" => format!("{token}.x"),
        "five-parts" => format!("{token}.x.y"),
        "six-parts" => format!("{token}.x.y.z"),
        "json" => json!({"protected": parts[0], "payload": parts[1], "signature": parts[2]}).to_string(),
        "padded" => format!("{token}=="),
        "standard-alphabet" => format!("{}.{}.{}+", parts[0], parts[1], &parts[2][1..]),
        // 64 bytes leave four unused bits in the last character.
        "trailing-bits" => format!("{}{}", &token[..token.len() - 1], if token.ends_with('B') { 'C' } else { 'B' }),
        "space-inside" => format!("{} {}", &token[..20], &token[20..]),
        "newline-inside" => format!("{}\n{}", &token[..20], &token[20..]),
        "leading-dot" => format!(".{token}"),
        "trailing-dot" => format!("{token}."),
        "empty" => String::new(),
        "dots" => "..".to_owned(),
        "quoted" => format!("\"{token}\""),
        "upper" => token.to_ascii_uppercase(),
        "long" => format!("{token}{}", "A".repeat(9_000)),
        "non-ascii" => format!("{token}ä"),
        other => panic!("no form {other}"),
    }
}

#[test]
fn tokens() {
    let signers = Signers { good: Ed25519KeyPair::generate().unwrap(), stranger: Ed25519KeyPair::generate().unwrap() };
    let x = BASE64_URL_SAFE_NO_PAD.encode(signers.good.public_key().as_ref());
    let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "k1", "use": "sig", "alg": "EdDSA"}]});
    let issuer = Issuer::new(IssuerSettings {
        issuer: "https://id.example".to_owned(),
        audience: "operators".to_owned(),
        algorithms: vec![OperatorAlgorithm::EdDsa],
        keys: KeySource::Fixed(vec![PublicKeyText::JwkSet(set.to_string())]),
        claims: ClaimNames::default(),
        rules: TokenRules::own(),
        lifetime_s_max: Some(86_400),
    })
    .unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Timestamp::from_ms(NOW_S * 1_000)));
    let verifier = OperatorVerifier::new(vec![issuer], clock);
    let (mut wrong, mut costs) = (Vec::new(), Costs::default());
    for case in cases::<TokenCase>("jwt.jsonl", 500) {
        let (token, running) = (signers.token(&case), Running::begin());
        let verified = verifier.verify(&token);
        costs.end(&running, &case.name);
        if verified.is_ok() != case.accepted {
            wrong.push(format!("{}: {:?}", case.name, verified.map(|operator| operator.subject().to_string())));
        }
    }
    verdict("jwt.jsonl", &costs, &wrong);
}

#[derive(Deserialize)]
struct RequestCase {
    name: String,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    expect: Vec<u16>,
}

#[tokio::test]
async fn requests() {
    let world = World::new();
    let (mut wrong, mut costs) = (Vec::new(), Costs::default());
    let not_found = world.get(&world.token(), "/v1/tenants/nobody/stores").await.bytes;
    for case in cases::<RequestCase>("requests.jsonl", 700) {
        // Rates are tried elsewhere.
        world.clock.advance_ms(1_000);
        let token = world.token();
        let mut request = Request::builder().method(case.method.as_str()).uri(&case.target);
        request = request.header("authorization", format!("Bearer {token}"));
        for (name, value) in &case.headers {
            request = request.header(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let Ok(request) = request.body(Body::empty()) else {
            // Not even a request: nothing of ours would see it.
            continue;
        };
        let running = Running::begin();
        let answer = world.raw(request).await;
        costs.end(&running, &case.name);
        if !case.expect.contains(&answer.status.as_u16()) {
            wrong.push(format!("{}: {} {}", case.name, answer.status, answer.text()));
        } else if answer.status == 404 && answer.bytes != not_found && !case.target.starts_with("/docs") {
            wrong.push(format!("{}: a 404 of its own: {}", case.name, answer.text()));
        }
    }
    verdict("requests.jsonl", &costs, &wrong);
}

#[derive(Deserialize)]
struct BodyCase {
    name: String,
    body: String,
    content_type: String,
    path: String,
    expect: u16,
    field: Option<String>,
}

#[tokio::test]
async fn bodies() {
    let world = World::new();
    let (mut wrong, mut costs) = (Vec::new(), Costs::default());
    for case in cases::<BodyCase>("bodies.jsonl", 600) {
        world.clock.advance_ms(1_000);
        let request = Request::post(&case.path)
            .header("authorization", format!("Bearer {}", world.token()))
            .header("content-type", &case.content_type)
            .body(Body::from(BASE64_STANDARD.decode(&case.body).unwrap()))
            .unwrap();
        let running = Running::begin();
        let answer = world.raw(request).await;
        costs.end(&running, &case.name);
        if answer.status != case.expect {
            wrong.push(format!("{}: {} {}", case.name, answer.status, answer.text()));
        } else if let Some(field) = &case.field
            && answer.problem().1 != *field
        {
            wrong.push(format!("{}: names {:?}, not {field:?}", case.name, answer.problem().1));
        }
    }
    verdict("bodies.jsonl", &costs, &wrong);
}

#[derive(Deserialize)]
struct RawCase {
    name: String,
    bytes: String,
    /// Statuses it may get; 0 for a connection closed without an answer.
    expect: Vec<u16>,
}

#[tokio::test]
async fn raw_http() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(gateway::serve(listener, world.router.clone(), Shutdown::default()));
    let (mut wrong, mut costs) = (Vec::new(), Costs::default());
    for case in cases::<RawCase>("raw-http.jsonl", 60) {
        let running = Running::begin();
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close before it has taken everything; then there is nothing more to write.
        let _ = stream.write_all(&BASE64_STANDARD.decode(&case.bytes).unwrap()).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        // A reset instead of an end is an end too.
        let _ = stream.read_to_end(&mut answer).await;
        costs.end(&running, &case.name);
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0_u16);
        if !case.expect.contains(&status) {
            wrong.push(format!("{}: {status} {answer}", case.name));
        }
    }
    verdict("raw-http.jsonl", &costs, &wrong);
}
