//! Claims: their types, times and scopes.

use domain::OperatorScope;
use gateway::TokenRefusal::{self, Audience, Claim, Form, Lifetime};
use serde_json::{Value, json};

use super::{AUDIENCE, ED, NOW_S, case, check, claims, header, with, without, world};

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
