//! Which ids and files are accepted.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rcgen::{CertificateParams, KeyPair, SanType};

use super::*;

#[test]
fn only_the_canonical_form_is_an_id() {
    for good in ["spiffe://shop/reshelf/operator-gateway", "spiffe://prod.example/a", "spiffe://td_1/A.b-c_d"] {
        assert_eq!(good.parse::<SpiffeId>().unwrap().to_string(), good);
    }
    for bad in [
        "",
        "spiffe://",
        "spiffe://td",
        "spiffe://td/",
        "spiffe:///path",
        "SPIFFE://td/a",
        "spiffe://TD/a",
        "spiffe://td/a/",
        "spiffe://td//a",
        "spiffe://td/./a",
        "spiffe://td/a/../b",
        "spiffe://td/%2e",
        "spiffe://td/a%2fb",
        "spiffe://td/ä",
        "spiffe://user@td/a",
        "spiffe://td:443/a",
        "spiffe://td/a?x=1",
        "spiffe://td/a#f",
        "spiffe://td/a b",
        "https://td/a",
        " spiffe://td/a",
        "spiffe://td/a\n",
        "spiffe://t d/a",
        "spiffe://td/a\0",
    ] {
        assert_eq!(bad.parse::<SpiffeId>(), Err(SpiffeError::Form), "{bad:?}");
    }
    let long = format!("spiffe://td/{}", "a".repeat(2_048));
    assert_eq!(long.parse::<SpiffeId>(), Err(SpiffeError::Form));
}

#[test]
fn a_certificate_names_a_service_by_exactly_one_uri() {
    let uri = |text: &str| SanType::URI(text.try_into().unwrap());
    let dns = |text: &str| SanType::DnsName(text.try_into().unwrap());
    let id = "spiffe://td/reshelf/studio-renderer";
    for (names, expected) in [
        (vec![uri(id)], Ok(id)),
        (vec![dns("worker.example"), uri(id)], Ok(id)),
        (vec![uri(id), uri("spiffe://td/reshelf/operator-gateway")], Err(SpiffeError::Names)),
        (vec![uri(id), uri(id)], Err(SpiffeError::Names)),
        (vec![dns("studio-renderer")], Err(SpiffeError::Names)),
        (vec![], Err(SpiffeError::Names)),
        (vec![uri("https://td/reshelf/studio-renderer")], Err(SpiffeError::Form)),
    ] {
        let mut params = CertificateParams::default();
        params.subject_alt_names.clone_from(&names);
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let found = SpiffeId::of_certificate(made.der()).map(|id| id.to_string());
        assert_eq!(found.as_deref().map_err(|error| *error), expected, "{names:?}");
    }
    assert_eq!(SpiffeId::of_certificate(&vec![0x30, 0x03, 1, 1, 1].into()), Err(SpiffeError::Certificate));
}

fn written(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn files_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pair = KeyPair::generate().unwrap();
    let made = CertificateParams::new(["here.example".to_owned()]).unwrap().self_signed(&pair).unwrap();
    written(folder, "own.pem", &made.pem(), 0o644);
    written(folder, "own.key", &pair.serialize_pem(), 0o600);
    written(folder, "open.key", &pair.serialize_pem(), 0o644);
    written(folder, "other.key", &KeyPair::generate().unwrap().serialize_pem(), 0o600);
    written(folder, "empty.pem", "", 0o600);
    written(folder, "text.pem", "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n", 0o600);
    let server = |certificate: &str, key: &str, ca: Option<&str>| {
        let config = ServerTlsConfig {
            certificate_file: certificate.into(),
            key_file: key.into(),
            client_ca_file: ca.map(PathBuf::from),
        };
        ServerTls::new(&config, folder, &[b"h2"]).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(server("own.pem", "own.key", None), Ok(()));
    assert_eq!(server("own.pem", "own.key", Some("own.pem")), Ok(()));
    for (certificate, key, ca, says) in [
        ("missing.pem", "own.key", None, "missing.pem"),
        ("empty.pem", "own.key", None, "holds no certificate"),
        ("text.pem", "own.key", None, "text.pem"),
        ("own.key", "own.key", None, "holds no certificate"),
        ("own.pem", "open.key", None, "chmod 600"),
        ("own.pem", "own.pem", None, "own.pem"),
        ("own.pem", "other.key", None, "key"),
        ("own.pem", "own.key", Some("empty.pem"), "holds no certificate"),
    ] {
        let problem = server(certificate, key, ca).expect_err(key);
        assert!(problem.contains(says), "{certificate} {key}: {problem:?} does not say {says:?}");
    }
    let half = ClientTlsConfig { certificate_file: Some("own.pem".into()), ..ClientTlsConfig::default() };
    assert!(ClientTls::new(&half, folder, &[b"h2"]).unwrap_err().to_string().contains("belong together"));
}
