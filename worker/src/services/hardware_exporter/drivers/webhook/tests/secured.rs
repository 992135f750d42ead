//! Systems behind `https://` addresses: one that the configured authorities vouch for gets pictures, any other gets none.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use daemon::tls::{ServerTls, ServerTlsConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

const ANSWER: &str = r#"{"state":"displayed"}"#;

/// A system with a certificate of its own, and the authority that vouches for it.
struct Secured {
    _dir: tempfile::TempDir,
    authority: PathBuf,
    port: u16,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Secured {
    /// Its certificate names `host`.
    async fn naming(host: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new([host.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        for (name, text) in [("ca.pem", authority.pem()), ("own.pem", own.pem()), ("own.key", key.serialize_pem())] {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let config =
            ServerTlsConfig { certificate_file: "own.pem".into(), key_file: "own.key".into(), client_ca_file: None };
        let tls = ServerTls::new(&config, dir.path(), &[b"http/1.1"]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, got) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let heard = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever does not trust the certificate leaves here.
                let Ok(mut stream) = tls.acceptor().accept(stream).await else { continue };
                let mut request = Vec::new();
                while !is_whole(&request) && stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {}
                *heard.lock().unwrap() = request;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", ANSWER.len());
                stream.write_all(format!("{head}{ANSWER}").as_bytes()).await.unwrap();
                let _left = stream.shutdown().await;
            }
        });
        Self { authority: dir.path().join("ca.pem"), _dir: dir, port, got }
    }

    /// What becomes of a picture that is sent to it by `scheme`, trusting `authority`.
    async fn sent(&self, scheme: &str, authority: Option<&PathBuf>) -> Delivered {
        let secret = WebhookSecret::try_from(SECRET.to_owned()).unwrap();
        let settings = WebhookSettings { secret, ca_file: authority.cloned(), callback: None };
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW));
        let driver = WebhookDriver::new(Outbound::new(AllowList::loopback()), &settings, clock);
        let address = format!("{scheme}://localhost:{}/labels", self.port);
        let place = Place { access_point: "t/T/s/S/accesspoints/A".parse().unwrap(), address };
        let shipment = Shipment { place, generation: 7, deliveries: vec![delivery()] };
        driver.send(shipment).await.pop().unwrap()
    }

    fn heard(&self) -> Vec<u8> {
        self.got.lock().unwrap().clone()
    }
}

/// Whether head and body are there.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.unwrap_or(0);
    request.len() >= head.len() + 4 + length
}

#[tokio::test]
async fn a_system_that_the_configured_authorities_vouch_for_gets_its_pictures_over_tls() {
    let system = Secured::naming("localhost").await;
    let answer = system.sent("https", Some(&system.authority)).await;
    assert!(matches!(answer, Delivered::Confirmed { evidence: Evidence::Displayed, .. }), "{answer:?}");
    let heard = system.heard();
    assert!(heard.starts_with(b"POST /labels HTTP/1.1\r\n"));
    assert!(heard.ends_with(&picture().pack().unwrap()), "the packed picture");
}

#[tokio::test]
async fn a_system_that_nobody_known_vouches_for_gets_nothing_and_costs_no_attempt() {
    let (system, other) = (Secured::naming("localhost").await, Secured::naming("localhost").await);
    let misnamed = Secured::naming("labels.example").await;
    let missing = PathBuf::from("/nowhere/ca.pem");
    for (system, authority, scheme) in [
        (&system, Some(&other.authority), "https"),
        (&system, None, "https"),
        (&misnamed, Some(&misnamed.authority), "https"),
        (&system, Some(&system.authority), "http"),
    ] {
        let answer = system.sent(scheme, authority).await;
        assert!(matches!(answer, Delivered::Unreachable { .. }), "{scheme} {authority:?}: {answer:?}");
    }
    let answer = system.sent("https", Some(&missing)).await;
    assert!(!matches!(answer, Delivered::Confirmed { .. } | Delivered::Underway { .. }), "{answer:?}");
    assert_eq!((system.heard().len(), misnamed.heard().len()), (0, 0), "not a byte of a picture");
}
