//! Operator tokens: as they come, and with any header and claims but signed by the right key.

use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{ManualClock, Timestamp};
use gateway::{
    ClaimNames, Issuer, IssuerSettings, KeySource, OperatorAlgorithm, OperatorVerifier, PublicKeyText, TokenRules,
};
use serde_json::{Value, json};

use super::{Target, seeds, text};

/// When it is, in seconds; the corpus counts from there.
const NOW_S: i64 = 1_780_272_000;
/// Seconds for which a token still counts when it is over.
const LEEWAY_S: i64 = 5;
const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "operators";

/// Always the same, so that an input means the same in every run.
fn signer() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key")
}

fn verifier(signer: &Ed25519KeyPair) -> OperatorVerifier {
    let x = BASE64_URL_SAFE_NO_PAD.encode(signer.public_key().as_ref());
    let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "k1", "use": "sig", "alg": "EdDSA"}]});
    let issuer = Issuer::new(IssuerSettings {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        algorithms: vec![OperatorAlgorithm::EdDsa],
        keys: KeySource::Fixed(vec![PublicKeyText::JwkSet(set.to_string())]),
        claims: ClaimNames::default(),
        rules: TokenRules::own(),
        lifetime_s_max: Some(86_400),
    });
    let clock = ManualClock::at(Timestamp::from_ms(NOW_S * 1_000));
    OperatorVerifier::new(vec![issuer.expect("an issuer")], Arc::new(clock))
}

/// `@N@` of a case of the corpus stands for N seconds from now.
fn filled(text: &str) -> String {
    let part = |(number, part): (usize, &str)| match part.parse::<i64>() {
        Ok(offset) if number % 2 == 1 => (NOW_S + offset).to_string(),
        _ => part.to_owned(),
    };
    text.split('@').enumerate().map(part).collect()
}

/// Header and claims of every case of the corpus.
fn parts() -> Vec<(String, String)> {
    let cases = seeds::cases("jwt.jsonl");
    cases.iter().map(|case| (filled(seeds::field(case, "header")), filled(seeds::field(case, "claims")))).collect()
}

fn signed(signer: &Ed25519KeyPair, header: &[u8], claims: &[u8]) -> String {
    let signed = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// Tokens as they come.
pub(super) fn tokens() -> Target {
    let signer = signer();
    let verifier = verifier(&signer);
    let tokens: Vec<String> =
        parts().iter().map(|(header, claims)| signed(&signer, header.as_bytes(), claims.as_bytes())).collect();
    assert!(tokens.iter().any(|token| verifier.verify(token).is_ok()), "some seeds are right");
    let seeds = tokens.iter().map(|token| token.clone().into_bytes()).collect();
    Target::new(seeds, move |bytes| {
        let token = text(bytes);
        if verifier.verify(&token).is_ok() {
            assert!(tokens.iter().any(|signed| *signed == token), "no other text than one signed is accepted");
        }
    })
}

/// Any header and claims, rightly signed. The input is a header, a line's end, and claims.
pub(super) fn claims() -> Target {
    let signer = signer();
    let verifier = verifier(&signer);
    let seeds = parts().iter().map(|(header, claims)| format!("{header}\n{claims}").into_bytes()).collect();
    Target::new(seeds, move |bytes| {
        let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let (header, claims) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
        let Ok(operator) = verifier.verify(&signed(&signer, header, claims)) else { return };
        let read = |part: &[u8]| serde_json::from_slice::<Value>(part).expect("what is accepted is JSON");
        let (header, claims) = (read(header), read(claims));
        assert_eq!(header["alg"], "EdDSA");
        assert_eq!(claims["iss"], ISSUER);
        let audience = &claims["aud"];
        let meant = audience.as_array().map_or_else(|| *audience == AUDIENCE, |list| list.contains(&json!(AUDIENCE)));
        assert!(meant, "a token for others is accepted");
        assert_eq!(claims["sub"], operator.subject().as_str());
        assert!(claims["exp"].as_i64().expect("a whole number") > NOW_S - LEEWAY_S, "an old token is accepted");
    })
}
