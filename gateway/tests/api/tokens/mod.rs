//! Hostile operator tokens: each is accepted or refused exactly as the table says.

mod claims;
mod form;
mod signatures;

use std::sync::Arc;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
        RsaEncoding, RsaKeyPair,
    },
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use domain::{Clock, ManualClock, Timestamp};
use gateway::{
    ClaimNames, Issuer, IssuerSettings, KeySource, OperatorAlgorithm, OperatorVerifier, PublicKeyText, TokenRefusal,
    TokenRules,
};
use serde_json::{Value, json};

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
