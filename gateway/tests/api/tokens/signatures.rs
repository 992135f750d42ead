//! Signatures, the algorithms they are by, and the keys.

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
    },
};
use gateway::{
    Issuer, OperatorAlgorithm, PublicKeyText,
    TokenRefusal::{Header, Signature},
};
use serde_json::{Value, json};

use super::{EC, ED, RSA, assemble, b64, case, check, claims, ec_pair, ed_jwk, header, settings, with, without, world};

fn es256(sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let header = json!({"alg": "ES256", "typ": "at+jwt"}).to_string();
    assemble(&header, &with(claims(), "iss", json!(EC)).to_string(), sign)
}

fn ecdsa(pair: &EcdsaKeyPair) -> impl Fn(&[u8]) -> Vec<u8> + '_ {
    |bytes| pair.sign(&SystemRandom::new(), bytes).unwrap().as_ref().to_vec()
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
