//! The configuration file: the example is accepted, everything unknown or unsafe is not.

#![expect(clippy::unwrap_used, reason = "a test's own helpers: a failure is the test's")]

use std::{fs, path::Path};

use daemon::identity::ServiceKey;
use daemon::shutdown::Shutdown;
use gateway::{GatewayConfig, listen_allowed};
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../gateway.example.toml");

/// A folder with what the example names.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let key = ServiceKey::generate().unwrap();
    key.write(&folder.path().join("operator-gateway.key")).unwrap();
    let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{}"}}]}}"#, key.public().as_str());
    fs::write(folder.path().join("operators.jwks.json"), set).unwrap();
    folder
}

fn parts(text: &str, folder: &Path) -> Result<(), String> {
    let file = folder.join("gateway.toml");
    fs::write(&file, text).unwrap();
    let config: GatewayConfig = daemon::config::read(&file).map_err(|error| error.to_string())?;
    config.parts(folder, Shutdown::default()).map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_example_is_accepted() {
    assert_eq!(parts(EXAMPLE, folder().path()), Ok(()));
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let folder = folder();
    for (from, to, says) in [
        ("listen =", "listne =", "listne"),
        ("operator-gateway.key", "nowhere.key", "nowhere.key: No such file"),
        ("127.0.0.1:8080", "everywhere", "listen"),
        ("operator-gateway.key", "missing.key", "service_key"),
        ("[\"http://127.0.0.1:7400\"]", "[]", "platform"),
        ("http://127.0.0.1:7400", "not an address", "platform"),
        ("ecc-image-render-service", "ecc-renderer", "triggers.ecc-renderer"),
        ("cors_origins = []", "cors_origins = [\"*\"]", "cors_origins[0]"),
        ("cors_origins = []", "cors_origins = [\"https://ops.example/path/\"]", "cors_origins[0]"),
        ("[\"EdDSA\"]", "[\"HS256\"]", "issuers[0].algorithms"),
        ("[\"EdDSA\"]", "[\"RS256\"]", "issuers[0]"),
        ("operators.jwks.json", "missing.json", "issuers[0].keys[0].jwks_file"),
        ("[{ jwks_file", "[{ ed25519 = \"AAAA\", jwks_file", "issuers[0].keys[0]"),
        ("[{ jwks_file = \"operators.jwks.json\" }", "[{ ed25519 = \"AAAA\" }", "issuers[0].keys[0].ed25519"),
        ("[{ jwks_file = \"operators.jwks.json\" }", "[", "1 to 32 keys"),
        ("scopes = \"scope\"", "scope = \"scope\"", "scope"),
        ("log = \"text\"", "log = \"xml\"", "log"),
    ] {
        assert!(EXAMPLE.contains(from), "{from}");
        let problem = parts(&EXAMPLE.replacen(from, to, 1), folder.path()).expect_err(to);
        assert!(problem.contains(says), "{to}: {problem:?} does not name {says}");
    }
    let twice = format!("{EXAMPLE}\n[[issuers]]{}", EXAMPLE.split("[[issuers]]").nth(1).unwrap());
    assert!(parts(&twice, folder.path()).unwrap_err().contains("issuers[1].issuer"));
    let none = EXAMPLE.split("[[issuers]]").next().unwrap().replace("[triggers]", "issuers = []\n[triggers]");
    assert!(parts(&none, folder.path()).unwrap_err().contains("issuers"));
}

#[test]
fn beyond_loopback_needs_to_be_asked_for() {
    for (listen, insecure, allowed) in [
        ("127.0.0.1:8080", false, true),
        ("127.8.0.1:8080", false, true),
        ("[::1]:8080", false, true),
        ("0.0.0.0:8080", false, false),
        ("[::]:8080", false, false),
        ("192.0.2.7:8080", false, false),
        ("0.0.0.0:8080", true, true),
    ] {
        assert_eq!(listen_allowed(listen.parse().unwrap(), insecure), allowed, "{listen}");
    }
}
