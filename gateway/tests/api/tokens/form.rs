//! A token's form and header, and where it stands in a request.

use axum::body::Body;
use gateway::TokenRefusal::{Form, Header, Missing, Signature};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::{Case, assemble, b64, case, check, claims, ed_jwk, header, with, without, world};
use crate::harness::World;

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
