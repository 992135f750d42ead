//! Who is let through, and who is not.

use std::sync::Arc;

use domain::{DtoType, ManualClock, ServiceName, Timestamp};
use jsonwebtoken::{Algorithm, Header, encode};
use serde_json::json;

use super::{Registry, ServiceKey, TOKEN_LIFETIME_MS, TokenError, Verifier, token::mint};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

struct World {
    key: ServiceKey,
    clock: Arc<ManualClock>,
    verifier: Verifier,
}

fn world() -> World {
    let key = ServiceKey::generate().unwrap();
    let document = Registry::standard_document(&[(ServiceName::EccImageRender, key.public().clone())]).unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    let verifier = Verifier::new(Arc::new(Registry::parse(&document).unwrap()), clock.clone());
    World { key, clock, verifier }
}

#[test]
fn a_minted_token_names_its_service_and_grants() {
    let World { key, verifier, .. } = world();
    let token = mint(ServiceName::EccImageRender, &key, NOW).unwrap();
    let caller = verifier.verify(&token).unwrap();
    assert_eq!(caller.identity().to_string(), "svc:ecc-image-render-service");
    assert!(caller.may_write(DtoType::EccEslImage));
    assert!(!caller.may_write(DtoType::EccLink));
    assert!(caller.require_rpc("cqs.v1.ChangeQueueService/Dequeue").is_ok());
    assert!(caller.require_rpc("cqs.v1.ChangeQueueService/ListAudit").is_err());
    assert!(caller.require_queue(&"esl-image-merger".parse().unwrap()).is_err());
}

#[test]
fn a_token_ends_also_when_it_was_verified_before() {
    let World { key, clock, verifier } = world();
    let token = mint(ServiceName::EccImageRender, &key, NOW).unwrap();
    assert!(verifier.verify(&token).is_ok());
    clock.advance_ms(TOKEN_LIFETIME_MS + 6_000);
    assert_eq!(verifier.verify(&token).unwrap_err(), TokenError::Lifetime);
}

#[test]
fn other_keys_services_types_and_lifetimes_are_refused() {
    let World { key, verifier, .. } = world();
    let stranger = ServiceKey::generate().unwrap();
    let refused = |token: &str| verifier.verify(token).unwrap_err();
    assert_eq!(refused(&mint(ServiceName::EccImageRender, &stranger, NOW).unwrap()), TokenError::Invalid);
    assert_eq!(refused(&mint(ServiceName::EslImageMerger, &key, NOW).unwrap()), TokenError::Invalid);
    assert_eq!(refused("not.a.token"), TokenError::Invalid);
    let seconds = NOW.as_ms() / 1000;
    let good = json!({"sub": "svc:ecc-image-render-service", "iss": "svc:ecc-image-render-service",
        "aud": "reshelf-services", "iat": seconds, "exp": seconds + 300});
    let sign = |header: &Header, claims: &serde_json::Value| encode(header, claims, key.encoding()).unwrap();
    let mut header = Header::new(Algorithm::EdDSA);
    assert_eq!(refused(&sign(&header, &good)), TokenError::Invalid, "typ is required");
    header.typ = Some("svc+jwt".to_owned());
    assert!(verifier.verify(&sign(&header, &good)).is_ok());
    for (claim, value) in [
        ("aud", json!("reshelf-operators")),
        ("iss", json!("svc:operator-gateway")),
        ("sub", json!("operator-1")),
        ("sub", json!(7)),
        ("exp", json!("never")),
    ] {
        let mut claims = good.clone();
        claims[claim] = value;
        assert_eq!(refused(&sign(&header, &claims)), TokenError::Invalid, "{claim}");
    }
    for (claim, value) in [("exp", seconds + 100_000), ("iat", seconds + 60), ("exp", seconds - 60)] {
        let mut claims = good.clone();
        claims[claim] = json!(value);
        assert_eq!(refused(&sign(&header, &claims)), TokenError::Lifetime, "{claim}");
    }
}

#[test]
fn a_registry_names_the_entry_that_is_wrong() {
    for (text, part) in [
        ("[services.nobody]\npublic_keys = []", "nobody"),
        ("[services.esl-image-merger]\npublic_keys = []", "public_keys"),
        ("[services.esl-image-merger]\npublic_keys = [\"AAAA\"]", "public_keys"),
        ("[services.esl-image-merger]\npublic_keys = []\nwrite = []", "write"),
    ] {
        let error = Registry::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
