//! Hostile operator tokens: each is accepted or refused exactly as the table says.

use std::sync::Arc;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
    },
};
use axum::body::Body;
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use domain::{Clock, ManualClock, OperatorScope, Timestamp};
use gateway::{
    ClaimNames, Issuer, IssuerSettings, KeySource, OperatorAlgorithm, OperatorVerifier, PublicKeyText,
    TokenRefusal::{self, Audience, Claim, Form, Header, Lifetime, Missing, Signature},
    TokenRules,
};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};

use crate::harness::World;

const ED: &str = "https://ed.example";
const RSA: &str = "https://rsa.example";
const EC: &str = "https://ec.example";
const AUDIENCE: &str = "operators";
/// Seconds.
const NOW_S: i64 = 1_780_000_000;

struct Keys {
    ed: Ed25519KeyPair,
    stranger: Ed25519KeyPair,
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ec_pkcs8: Vec<u8>,
    rsa_pem: String,
}

fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

fn ec_pair(algorithm: &'static EcdsaSigningAlgorithm) -> (EcdsaKeyPair, Vec<u8>) {
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).unwrap().as_ref().to_vec();
    (EcdsaKeyPair::from_pkcs8(algorithm, &pkcs8).unwrap(), pkcs8)
}

fn spki(key: &impl AsDer<PublicKeyX509Der<'static>>) -> Vec<u8> {
    key.as_der().unwrap().as_ref().to_vec()
}

fn settings(issuer: &str, algorithm: OperatorAlgorithm, keys: Vec<PublicKeyText>) -> IssuerSettings {
    IssuerSettings {
        issuer: issuer.to_owned(),
        audience: AUDIENCE.to_owned(),
        algorithms: vec![algorithm],
        keys: KeySource::Fixed(keys),
        claims: ClaimNames::default(),
        rules: TokenRules::own(),
        lifetime_s_max: Some(86_400),
    }
}

fn ed_jwk(key: &Ed25519KeyPair, kid: &str) -> Value {
    let x = BASE64_URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
    json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "use": "sig", "alg": "EdDSA"})
}

fn world() -> (Keys, OperatorVerifier) {
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let (ec, ec_pkcs8) = ec_pair(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let keys = Keys {
        ed: Ed25519KeyPair::generate().unwrap(),
        stranger: Ed25519KeyPair::generate().unwrap(),
        rsa_pem: pem(&spki(rsa.public_key())),
        rsa,
        ec,
        ec_pkcs8,
    };
    let ed_set = json!({"keys": [ed_jwk(&keys.ed, "k1")]}).to_string();
    let pem_of = |pem: String, algorithm| PublicKeyText::Pem { pem, algorithm, kid: None };
    let issuers = vec![
        Issuer::new(settings(ED, OperatorAlgorithm::EdDsa, vec![PublicKeyText::JwkSet(ed_set)])).unwrap(),
        Issuer::new(settings(
            RSA,
            OperatorAlgorithm::Rs256,
            vec![pem_of(keys.rsa_pem.clone(), OperatorAlgorithm::Rs256)],
        ))
        .unwrap(),
        Issuer::new(settings(
            EC,
            OperatorAlgorithm::Es256,
            vec![pem_of(pem(&spki(keys.ec.public_key())), OperatorAlgorithm::Es256)],
        ))
        .unwrap(),
    ];
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Timestamp::from_ms(NOW_S * 1000)));
    (keys, OperatorVerifier::new(issuers, clock))
}

fn b64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn header() -> Value {
    json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "k1"})
}

fn claims() -> Value {
    json!({
        "iss": ED, "aud": AUDIENCE, "sub": "ada", "iat": NOW_S, "nbf": NOW_S, "exp": NOW_S + 600,
        "scope": "labels:read openid unknown:scope", "tenants": ["acme"]
    })
}

fn with(mut value: Value, field: &str, new: Value) -> Value {
    value[field] = new;
    value
}

fn without(mut value: Value, field: &str) -> Value {
    value.as_object_mut().unwrap().remove(field).unwrap();
    value
}

fn assemble(header: &str, claims: &str, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let signed = format!("{}.{}", b64(header), b64(claims));
    let signature = sign(signed.as_bytes());
    format!("{signed}.{}", b64(signature))
}

impl Keys {
    fn ed(&self, header: &Value, claims: &Value) -> String {
        self.ed_text(&header.to_string(), &claims.to_string())
    }

    fn ed_text(&self, header: &str, claims: &str) -> String {
        assemble(header, claims, |bytes| self.ed.sign(bytes).as_ref().to_vec())
    }

    fn rsa(&self, alg: &str, padding: &'static dyn RsaEncoding) -> String {
        let header = json!({"alg": alg, "typ": "at+jwt"}).to_string();
        assemble(&header, &with(claims(), "iss", json!(RSA)).to_string(), |bytes| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(padding, &SystemRandom::new(), bytes, &mut signature).unwrap();
            signature
        })
    }
}

fn es256(sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let header = json!({"alg": "ES256", "typ": "at+jwt"}).to_string();
    assemble(&header, &with(claims(), "iss", json!(EC)).to_string(), sign)
}

fn ecdsa(pair: &EcdsaKeyPair) -> impl Fn(&[u8]) -> Vec<u8> + '_ {
    |bytes| pair.sign(&SystemRandom::new(), bytes).unwrap().as_ref().to_vec()
}

type Case = (String, String, Result<(), TokenRefusal>);

fn case(name: impl Into<String>, token: String, expected: Result<(), TokenRefusal>) -> Case {
    (name.into(), token, expected)
}

fn check(verifier: &OperatorVerifier, cases: Vec<Case>) {
    for (name, token, expected) in cases {
        let shown = verifier.verify(&token).map(|_| ());
        assert_eq!(shown, expected, "{name}");
    }
}

#[test]
fn algorithms_cannot_be_confused() {
    let (keys, verifier) = world();
    let mut cases = vec![
        case("Ed25519", keys.ed(&header(), &claims()), Ok(())),
        case("RS256", keys.rsa("RS256", &RSA_PKCS1_SHA256), Ok(())),
        case("ES256", es256(ecdsa(&keys.ec)), Ok(())),
        case("PS256 signature under RS256", keys.rsa("RS256", &RSA_PSS_SHA256), Err(Signature)),
        case("PS256", keys.rsa("PS256", &RSA_PSS_SHA256), Err(Header)),
        case("ES256 r = s = 0", es256(|_| vec![0; 64]), Err(Signature)),
        case(
            "ES256 as DER",
            {
                let der = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &keys.ec_pkcs8).unwrap();
                es256(ecdsa(&der))
            },
            Err(Signature),
        ),
        case("ES256 by P-384", es256(ecdsa(&ec_pair(&ECDSA_P384_SHA384_FIXED_SIGNING).0)), Err(Signature)),
        case("ES256 by another key", es256(ecdsa(&ec_pair(&ECDSA_P256_SHA256_FIXED_SIGNING).0)), Err(Signature)),
        case(
            "EdDSA key of another",
            {
                assemble(&header().to_string(), &claims().to_string(), |bytes| {
                    keys.stranger.sign(bytes).as_ref().to_vec()
                })
            },
            Err(Signature),
        ),
        case("issuer of another key", keys.ed(&header(), &with(claims(), "iss", json!(RSA))), Err(Signature)),
        case(
            "truncated signature",
            {
                assemble(&header().to_string(), &claims().to_string(), |bytes| {
                    keys.ed.sign(bytes).as_ref()[..61].to_vec()
                })
            },
            Err(Signature),
        ),
        case(
            "lengthened signature",
            {
                assemble(&header().to_string(), &claims().to_string(), |bytes| {
                    [keys.ed.sign(bytes).as_ref(), &[0; 3]].concat()
                })
            },
            Err(Signature),
        ),
        case(
            "changed claims",
            {
                let token = keys.ed(&header(), &claims());
                let parts: Vec<&str> = token.split('.').collect();
                format!("{}.{}.{}", parts[0], b64(with(claims(), "sub", json!("eve")).to_string()), parts[2])
            },
            Err(Signature),
        ),
    ];
    for alg in ["none", "None", "nOnE", "", "HS256", "HS384", "HS512", "RS512", "ES384", "Ed25519", "eddsa", "EdDSA "] {
        cases.push(case(format!("alg {alg:?}"), keys.ed(&with(header(), "alg", json!(alg)), &claims()), Err(Header)));
    }
    for alg in ["RS256", "ES256"] {
        let token = keys.ed(&with(header(), "alg", json!(alg)), &claims());
        cases.push(case(format!("{alg} for an Ed25519 issuer"), token, Err(Signature)));
    }
    for alg in [json!(null), json!(7), json!(["EdDSA"])] {
        cases.push(case(format!("alg {alg}"), keys.ed(&with(header(), "alg", alg), &claims()), Err(Header)));
    }
    cases.push(case("alg missing", keys.ed(&without(header(), "alg"), &claims()), Err(Header)));
    for secret in [keys.rsa_pem.clone(), keys.rsa_pem.trim_end().to_owned()] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        for alg in ["HS256", "RS256"] {
            let header = json!({"alg": alg, "typ": "at+jwt"}).to_string();
            let token = assemble(&header, &with(claims(), "iss", json!(RSA)).to_string(), |bytes| {
                hmac::sign(&key, bytes).as_ref().to_vec()
            });
            let expected = if alg == "HS256" { Header } else { Signature };
            cases.push(case(format!("{alg} by HMAC over the public key"), token, Err(expected)));
        }
    }
    check(&verifier, cases);
}

#[test]
fn header_parameters_are_refused_or_ignored() {
    let (keys, verifier) = world();
    let token = |field: &str, value: Value| keys.ed(&with(header(), field, value), &claims());
    let mut cases = vec![
        case("kid missing", keys.ed(&without(header(), "kid"), &claims()), Ok(())),
        case("typ missing", keys.ed(&without(header(), "typ"), &claims()), Err(Header)),
        case(
            "alg twice",
            keys.ed_text(r#"{"alg":"EdDSA","alg":"EdDSA","typ":"at+jwt"}"#, &claims().to_string()),
            Err(Form),
        ),
        case(
            "kid twice",
            keys.ed_text(r#"{"alg":"EdDSA","kid":"x","kid":"k1","typ":"at+jwt"}"#, &claims().to_string()),
            Err(Form),
        ),
    ];
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        cases.push(case(format!("typ {typ}"), token("typ", json!(typ)), Ok(())));
    }
    for typ in ["JWT", "jwt", "dpop+jwt", "logout+jwt", "svc+jwt", "", "at+jwt "] {
        cases.push(case(format!("typ {typ:?}"), token("typ", json!(typ)), Err(Header)));
    }
    for kid in ["", "K1", "../../dev/null", "' OR 1=1--", "|sleep 5", "k1\u{0}"] {
        cases.push(case(format!("kid {kid:?}"), token("kid", json!(kid)), Err(Signature)));
    }
    for kid in [json!(["k1"]), json!(1), json!(null)] {
        cases.push(case(format!("kid {kid}"), token("kid", kid), Err(Header)));
    }
    for (field, value) in [
        ("crit", json!(["exp"])),
        ("crit", json!([])),
        ("b64", json!(false)),
        ("b64", json!(true)),
        ("zip", json!("DEF")),
        ("cty", json!("JWT")),
        ("enc", json!("A256GCM")),
    ] {
        cases.push(case(format!("{field} {value}"), token(field, value), Err(Header)));
    }
    // A key the token brings along is not looked at: ours decides.
    let own = ed_jwk(&keys.stranger, "k1");
    for (field, value) in [
        ("jku", json!("http://127.0.0.1:9/keys")),
        ("x5u", json!("http://127.0.0.1:9/x")),
        ("jwk", own.clone()),
        ("x5c", json!(["AAAA"])),
    ] {
        cases.push(case(format!("{field} ignored"), token(field, value), Ok(())));
    }
    let brought = with(header(), "jwk", own).to_string();
    cases.push(case(
        "signed by the key it brings",
        assemble(&brought, &claims().to_string(), |bytes| keys.stranger.sign(bytes).as_ref().to_vec()),
        Err(Signature),
    ));
    check(&verifier, cases);
}

#[test]
fn only_the_compact_form_is_read() {
    let (keys, verifier) = world();
    let good = keys.ed(&header(), &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let [header_part, claims_part, signature] = parts.as_slice() else { panic!("{good}") };
    let last = signature.chars().last().unwrap();
    // Another last character that decodes to the same bytes in a lenient decoder.
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']).collect();
    let place = alphabet.iter().position(|c| *c == last).unwrap();
    let sloppy = format!("{}{}", &signature[..signature.len() - 1], alphabet[place ^ 1]);
    let padded = format!("{good}==");
    let empty_signature = format!("{header_part}.{claims_part}.");
    let json_form = json!({"payload": claims_part, "protected": header_part, "signature": signature}).to_string();
    let mut cases: Vec<Case> = [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c",
        header_part,
        &format!("{header_part}.{claims_part}"),
        &empty_signature,
        &format!("{good}.{signature}"),
        &format!("{good}.a.b"),
        &padded,
        &format!(" {good}"),
        &format!("{good}\r\n"),
        &format!("{header_part}.{claims_part}.{sloppy}"),
        &format!("{header_part}.{claims_part}.+/{}", &signature[2..]),
        &json_form,
        &format!("{}.{claims_part}.{signature}", b64("null")),
        &format!("{}.{claims_part}.{signature}", b64("[1]")),
        &format!("{}.{claims_part}.{signature}", b64([0xFF, 0xFE])),
        &keys.ed_text(&header().to_string(), &format!("{} x", claims())),
        &keys.ed_text(&header().to_string(), &"[".repeat(3_000)),
    ]
    .into_iter()
    .map(|token| case(token, token.to_owned(), Err(Form)))
    .collect();
    let filler = |bytes: usize| keys.ed(&header(), &with(claims(), "filler", json!("f".repeat(bytes))));
    cases.push(case("a long but bounded token", filler(5_000), Ok(())));
    cases.push(case("more than 8 KiB", filler(9_000), Err(Form)));
    check(&verifier, cases);
}

#[test]
fn claims_have_exact_types() {
    let (keys, verifier) = world();
    let token = |claims: &Value| keys.ed(&header(), claims);
    let mut cases = Vec::new();
    for (field, refusal) in [("iss", Claim), ("sub", Claim), ("aud", Claim), ("exp", Claim), ("nbf", Claim)] {
        cases.push(case(format!("{field} missing"), token(&without(claims(), field)), Err(refusal)));
    }
    for field in ["iat", "scope", "tenants"] {
        cases.push(case(format!("{field} missing"), token(&without(claims(), field)), Ok(())));
    }
    for field in ["exp", "nbf", "iat"] {
        for value in [
            "\"never\"",
            "\"1790000000\"",
            "null",
            "true",
            "1e308",
            "1.5",
            "1790000000.0",
            "9223372036854775808",
            "18446744073709551616",
            "[]",
        ] {
            let text = with(claims(), field, json!("VALUE")).to_string().replace("\"VALUE\"", value);
            // 1e308 is a float, 2^63 and 2^64 are beyond a signed number: all refused as what they are.
            cases.push(case(format!("{field} {value}"), keys.ed_text(&header().to_string(), &text), Err(Claim)));
        }
    }
    for (field, value, refusal) in [
        ("exp", json!(0), Lifetime),
        ("exp", json!(-1), Lifetime),
        ("exp", json!(i64::MIN), Lifetime),
        ("exp", json!(i64::MAX), Lifetime),
        ("exp", json!(NOW_S + 86_401), Lifetime),
        ("nbf", json!(i64::MAX), Lifetime),
        ("nbf", json!(NOW_S + 3_600), Lifetime),
        ("iat", json!(NOW_S + 3_600), Lifetime),
        ("aud", json!("Operators"), Audience),
        ("aud", json!("reshelf-services"), Audience),
        ("aud", json!([]), Audience),
        ("aud", json!(["others"]), Audience),
        ("aud", json!([7, AUDIENCE]), Claim),
        ("aud", json!(7), Claim),
        ("aud", json!(null), Claim),
        ("iss", json!("https://ed.example/"), TokenRefusal::Issuer),
        ("iss", json!("https://ED.example"), TokenRefusal::Issuer),
        ("iss", json!("https://еd.example"), TokenRefusal::Issuer),
        ("iss", json!(""), TokenRefusal::Issuer),
        ("iss", json!([ED]), Claim),
        ("sub", json!(""), Claim),
        ("sub", json!("  "), Claim),
        ("sub", json!(7), Claim),
        ("sub", json!("a\u{0}b"), Claim),
        ("sub", json!("a\u{202e}b"), Claim),
        ("sub", json!("s".repeat(256)), Claim),
        ("tenants", json!("acme"), Claim),
        ("tenants", json!("*"), Claim),
        ("tenants", json!(["*"]), Claim),
        ("tenants", json!(["acme", 7]), Claim),
        ("tenants", json!(["аcme"]), Claim),
        ("tenants", json!({"acme": true}), Claim),
        ("stores", json!(["rival/s1"]), Claim),
        ("stores", json!(["s1"]), Claim),
        ("stores", json!(["acme/s1/x"]), Claim),
        ("stores", json!(null), Claim),
        ("scope", json!(7), Claim),
        ("cnf", json!({"jkt": "x"}), Claim),
    ] {
        cases.push(case(format!("{field} {value}"), token(&with(claims(), field, value)), Err(refusal)));
    }
    cases.push(case("aud among others", token(&with(claims(), "aud", json!(["others", AUDIENCE]))), Ok(())));
    cases.push(case("scope as array", token(&with(claims(), "scope", json!(["labels:read"]))), Ok(())));
    for text in [
        claims().to_string().replacen('{', "{\"sub\":\"eve\",", 1),
        claims().to_string().replacen('{', "{\"tenants\":[\"rival\"],", 1),
        format!("{},\"sub\":\"eve\"}}", claims().to_string().trim_end_matches('}')),
    ] {
        cases.push(case("a claim twice", keys.ed_text(&header().to_string(), &text), Err(Form)));
    }
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(2_000), "]".repeat(2_000));
    cases.push(case("deep nesting", keys.ed_text(&header().to_string(), &deep), Err(Form)));
    check(&verifier, cases);
}

#[test]
fn times_have_five_seconds_of_leeway() {
    let (keys, verifier) = world();
    let token = |field: &str, second: i64| keys.ed(&header(), &with(claims(), field, json!(second)));
    let early = |second: i64| {
        let claims = with(with(claims(), "exp", json!(second)), "nbf", json!(NOW_S - 600));
        keys.ed(&header(), &claims)
    };
    check(
        &verifier,
        vec![
            case("exp now - 4", early(NOW_S - 4), Ok(())),
            case("exp now - 5", early(NOW_S - 5), Err(Lifetime)),
            case("exp now - 6", early(NOW_S - 6), Err(Lifetime)),
            case("nbf now + 4", token("nbf", NOW_S + 4), Ok(())),
            case("nbf now + 5", token("nbf", NOW_S + 5), Ok(())),
            case("nbf now + 6", token("nbf", NOW_S + 6), Err(Lifetime)),
            case("iat now + 5", token("iat", NOW_S + 5), Ok(())),
            case("iat now + 6", token("iat", NOW_S + 6), Err(Lifetime)),
        ],
    );
}

#[test]
fn unknown_scopes_grant_nothing() {
    let (keys, verifier) = world();
    let operator = verifier.verify(&keys.ed(&header(), &claims())).unwrap();
    assert_eq!(operator.scopes().collect::<Vec<_>>(), [OperatorScope::LabelsRead]);
    assert_eq!(operator.subject().as_str(), "ada");
}

#[test]
fn exactly_one_bearer_header_is_read() {
    let (keys, verifier) = world();
    let good = keys.ed(&header(), &claims());
    let ask = |values: &[String]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        futures::executor::block_on(verifier.authenticate(&headers)).map(|_| ())
    };
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(ask(&[format!("{scheme} {good}")]), Ok(()));
    }
    for values in [
        vec![],
        vec![good.clone()],
        vec![format!("Basic {good}")],
        vec![format!("Bearer\t{good}")],
        vec!["Bearer".to_owned()],
        vec!["Bearer ä".to_owned()],
        vec![format!("Bearer {good}"), format!("Bearer {good}")],
        vec![format!("Bearer {good}"), "Basic eDp5".to_owned()],
    ] {
        assert_eq!(ask(&values), Err(Missing), "{values:?}");
    }
    assert_eq!(ask(&[format!("Bearer  {good}")]), Err(Form));
    assert_eq!(ask(&[format!("Bearer {good},{good}")]), Err(Form));
}

/// A token elsewhere than in the header is no token; every 401 has one body.
#[tokio::test]
async fn every_refusal_is_the_same_401() {
    let world = World::new();
    let token = world.token();
    let path = format!("/v1/me?access_token={token}&token={token}");
    let request = Request::get(path).header("cookie", format!("token={token}")).body(Body::empty()).unwrap();
    let in_query = world.raw(request).await;
    assert_eq!(in_query.status, StatusCode::UNAUTHORIZED);
    assert_eq!(in_query.headers["www-authenticate"], "Bearer");
    for bad in ["x", "a.b.c", &token[..token.len() - 8], &format!("{token}=")] {
        let answer = world.get(bad, "/v1/me").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{bad}");
        assert_eq!(answer.bytes, in_query.bytes);
        assert_eq!(answer.problem(), ("UNAUTHENTICATED".to_owned(), String::new()));
    }
    let bad_trigger = world.post("x", "/v1/triggers/model-refresh", "{}").await;
    assert_eq!(bad_trigger.bytes, in_query.bytes);
    assert_eq!(world.audit_rows(), 0, "nobody is known before authentication");
}

#[test]
fn bad_keys_are_refused_at_start() {
    let (keys, _) = world();
    let jwks = |keys: Value| vec![PublicKeyText::JwkSet(json!({"keys": keys}).to_string())];
    let ed = ed_jwk(&keys.ed, "k1");
    let refused = |algorithm, keys| Issuer::new(settings(ED, algorithm, keys)).unwrap_err().problem;
    let ed_only = OperatorAlgorithm::EdDsa;
    let small = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let modulus = AsRef::<[u8]>::as_ref(&small.public_key().modulus().big_endian_without_leading_zero()).to_vec();
    let rsa = |n: &[u8]| json!([{"kty": "RSA", "n": b64(n), "e": "AQAB"}]);
    assert!(Issuer::new(settings(ED, OperatorAlgorithm::Rs256, jwks(rsa(&modulus)))).is_ok());
    for (algorithm, keys, says) in [
        (ed_only, vec![], "1 to 32 keys"),
        (ed_only, jwks(json!([])), "1 to 32 keys"),
        (ed_only, vec![PublicKeyText::JwkSet("<html>".to_owned())], "JWK set"),
        (ed_only, jwks(json!([{"kty": "oct", "k": "AAAA"}])), "kind or curve"),
        (ed_only, jwks(json!([with(ed.clone(), "use", json!("enc"))])), "not for signatures"),
        (ed_only, jwks(json!([with(ed.clone(), "alg", json!("RS256"))])), "alg"),
        (ed_only, jwks(json!([with(ed.clone(), "d", json!("AAAA"))])), "private"),
        (ed_only, jwks(json!([with(ed.clone(), "crv", json!("Ed448"))])), "kind or curve"),
        (ed_only, jwks(json!([ed.clone(), ed.clone()])), "same kid"),
        (OperatorAlgorithm::Rs256, jwks(json!([ed.clone()])), "do not list"),
        (OperatorAlgorithm::Rs256, jwks(rsa(&modulus[..128])), "2,048 bits"),
        (
            OperatorAlgorithm::Es256,
            vec![PublicKeyText::Pem { pem: keys.rsa_pem.clone(), algorithm: OperatorAlgorithm::Es256, kid: None }],
            "PEM",
        ),
    ] {
        let problem = refused(algorithm, keys);
        assert!(problem.contains(says), "{problem:?} does not say {says:?}");
    }
}
