//! Servers and channels on the network: TLS, mTLS, rotation, and peers that hold connections for nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

// Not beside this file: cargo takes each file there for a program of its own.
#[path = "network/floods.rs"]
mod floods;

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use daemon::{
    SystemClock,
    channel::{self, PeerTrust},
    identity::{PublicKey, Registry, RegistrySource, ServiceCredentials, ServiceKey, Verifier, caller},
    serve,
    tls::{ClientTlsConfig, ServerTls, ServerTlsConfig},
};
use domain::{Clock, ErrorCode, ManualClock, ServiceName};
use proto::{
    Transport,
    ecc_image_render::v1::{
        PreviewModelRefreshRequest, TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse,
        TriggerModelRefreshRequest, TriggerModelRefreshResponse,
        ecc_image_render_triggers_server::{EccImageRenderTriggers, EccImageRenderTriggersServer},
    },
    ecc_triggers_client, refusal_from_status, status_from_refusal,
    triggers::v1::PreviewResponse,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, service::Routes};

struct Echo;

#[tonic::async_trait]
impl EccImageRenderTriggers for Echo {
    async fn trigger_model_refresh(
        &self,
        request: Request<TriggerModelRefreshRequest>,
    ) -> Result<Response<TriggerModelRefreshResponse>, Status> {
        let caller = caller(&request).map_err(|refusal| status_from_refusal(&refusal))?;
        let sample = vec![caller.identity().to_string()];
        Ok(Response::new(TriggerModelRefreshResponse { sample_label_ids: sample, ..Default::default() }))
    }

    async fn trigger_ecc_store_rerender(
        &self,
        _: Request<TriggerEccStoreRerenderRequest>,
    ) -> Result<Response<TriggerEccStoreRerenderResponse>, Status> {
        Err(Status::unimplemented("the echo has one trigger"))
    }

    async fn preview_model_refresh(
        &self,
        _: Request<PreviewModelRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        Err(Status::unimplemented("the echo has one trigger"))
    }
}

const GATEWAY_ID: &str = "spiffe://shop.example/reshelf/operator-gateway";
const ECC_ID: &str = "spiffe://shop.example/reshelf/ecc-image-render-service";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes `{name}.pem` and `{name}.key`: a certificate of `authority` with these names.
fn issue(folder: &Path, name: &str, authority: &Authority, change: impl FnOnce(&mut CertificateParams)) {
    let mut params = CertificateParams::default();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let made = params.signed_by(&key, authority).unwrap();
    let path = folder.join(format!("{name}.key"));
    fs::write(&path, key.serialize_pem()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.join(format!("{name}.pem")), made.pem()).unwrap();
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

fn local(params: &mut CertificateParams) {
    params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
}

/// A server with a registry file, and what its clients need.
struct World {
    folder: TempDir,
    authority: Authority,
    gateway_key: ServiceKey,
    address: SocketAddr,
    _stop: tokio_util::sync::DropGuard,
}

fn registry(gateway: &PublicKey, spiffe: &[&str]) -> String {
    let document = Registry::standard_document(&[(ServiceName::OperatorGateway, gateway.clone())]).unwrap();
    let list: Vec<String> = spiffe.iter().map(|id| format!("\"{id}\"")).collect();
    document.replace("writes =", &format!("spiffe_ids = [{}]\nwrites =", list.join(", ")))
}

async fn world(tls: bool, spiffe: &[&str]) -> World {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let authority = authority();
    issue(path, "server", &authority, local);
    fs::write(path.join("ca.pem"), authority.pem()).unwrap();
    let gateway_key = ServiceKey::generate().unwrap();
    gateway_key.write(&path.join("gateway.key")).unwrap();
    fs::write(path.join("registry.toml"), registry(gateway_key.public(), spiffe)).unwrap();
    let verifier = Verifier::new(RegistrySource::file(&path.join("registry.toml")).unwrap(), Arc::new(SystemClock));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = ServerTlsConfig {
        certificate_file: "server.pem".into(),
        key_file: "server.key".into(),
        client_ca_file: Some("ca.pem".into()),
    };
    let tls = tls.then(|| ServerTls::new(&config, path, &[b"h2"]).unwrap());
    let stop = CancellationToken::new();
    let routes = Routes::new(EccImageRenderTriggersServer::new(Echo));
    tokio::spawn(serve::grpc_over(listener, tls, (routes, verifier), stop.clone()));
    World { folder, authority, gateway_key, address, _stop: stop.drop_guard() }
}

impl World {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A fresh channel that trusts the world's authority and shows `{shown}.pem`.
    fn channel(&self, shown: Option<&str>) -> Transport {
        self.channel_trusting("ca.pem", shown)
    }

    fn channel_trusting(&self, ca: &str, shown: Option<&str>) -> Transport {
        let tls = ClientTlsConfig {
            ca_file: Some(ca.into()),
            certificate_file: shown.map(|name| format!("{name}.pem").into()),
            key_file: shown.map(|name| format!("{name}.key").into()),
        };
        let trust = PeerTrust { tls: &tls, folder: self.path() };
        channel::connect_over(&[format!("https://{}", self.address)], trust).unwrap()
    }

    fn credentials(&self) -> ServiceCredentials {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        ServiceCredentials::new(ServiceName::OperatorGateway, self.gateway_key.clone(), clock)
    }
}

/// Who the server says is calling, or the refusal.
async fn who(transport: Transport) -> Result<String, ErrorCode> {
    match ecc_triggers_client(transport).trigger_model_refresh(TriggerModelRefreshRequest::default()).await {
        Ok(answer) => Ok(answer.into_inner().sample_label_ids.concat()),
        Err(status) => Err(refusal_from_status(&status).code),
    }
}

/// Whether the server let the call in; none when it never came to that.
async fn arrived(transport: Transport) -> Option<bool> {
    match who(transport).await {
        Ok(_) => Some(true),
        Err(ErrorCode::Unauthenticated | ErrorCode::PermissionDenied) => Some(false),
        Err(_) => None,
    }
}

#[tokio::test]
async fn a_certificate_of_the_registry_is_an_identity() {
    let world = world(true, &[GATEWAY_ID]).await;
    let show = |name: &str, names: Vec<SanType>| {
        issue(world.path(), name, &world.authority, |params| params.subject_alt_names = names);
        world.channel(Some(name))
    };
    assert_eq!(who(show("gateway-cert", vec![uri(GATEWAY_ID)])).await.as_deref(), Ok("svc:operator-gateway"));
    for (name, names) in [
        ("unknown", vec![uri("spiffe://shop.example/reshelf/studio-renderer")]),
        ("other-domain", vec![uri("spiffe://evil.example/reshelf/operator-gateway")]),
        ("two", vec![uri(GATEWAY_ID), uri(ECC_ID)]),
        ("upper", vec![uri("spiffe://shop.example/reshelf/OPERATOR-GATEWAY")]),
        ("dots", vec![uri("spiffe://shop.example/reshelf/x/../operator-gateway")]),
        ("slash", vec![uri("spiffe://shop.example/reshelf/operator-gateway/")]),
        ("dns", vec![SanType::DnsName("operator-gateway".try_into().unwrap())]),
        ("none", vec![]),
    ] {
        let channel = show(name, names);
        assert_eq!(who(channel).await, Err(ErrorCode::Unauthenticated), "{name}");
    }
    // A token beside the certificate must be of the same service; elsewhere it is worth nothing.
    assert_eq!(
        who(world.credentials().attach(world.channel(Some("gateway-cert")))).await.as_deref(),
        Ok("svc:operator-gateway")
    );
    assert_eq!(
        who(world.credentials().attach(world.channel(Some("none")))).await,
        Ok("svc:operator-gateway".to_owned())
    );
    assert_eq!(who(world.credentials().attach(world.channel(Some("unknown")))).await, Err(ErrorCode::Unauthenticated));
}

#[tokio::test]
async fn connections_of_strangers_do_not_come_to_be() {
    let world = world(true, &[GATEWAY_ID]).await;
    let names = |params: &mut CertificateParams| params.subject_alt_names = vec![uri(GATEWAY_ID)];
    let stranger = authority();
    fs::write(world.path().join("stranger-ca.pem"), stranger.pem()).unwrap();
    issue(world.path(), "good", &world.authority, names);
    issue(world.path(), "stranger", &stranger, names);
    issue(world.path(), "expired", &world.authority, |params| {
        names(params);
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    issue(world.path(), "server-only", &world.authority, |params| {
        names(params);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    issue(world.path(), "an-authority", &world.authority, |params| {
        names(params);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    for shown in [None, Some("stranger"), Some("expired"), Some("server-only"), Some("an-authority")] {
        // The client may hear of it only after its first bytes (TLS 1.3), so the error is one of several.
        assert_eq!(arrived(world.channel(shown)).await, None, "{shown:?}");
        let with_token = world.credentials().attach(world.channel(shown));
        assert_eq!(arrived(with_token).await, None, "{shown:?} with a token");
    }
    let distrustful = world.channel_trusting("stranger-ca.pem", Some("good"));
    assert_eq!(arrived(distrustful).await, None, "a server of another authority");
    let plain = channel::connect(&[format!("http://{}", world.address)]).unwrap();
    assert_eq!(arrived(world.credentials().attach(plain)).await, None, "without TLS");
    assert!(channel::connect(&[format!("https://{}", world.address)]).is_err(), "https without trust");
    assert_eq!(who(world.channel(Some("good"))).await.as_deref(), Ok("svc:operator-gateway"));
}

/// Waits until `look` says so: a changed file is seen within a second.
async fn until(mut look: impl AsyncFnMut() -> bool) {
    tokio::time::timeout(std::time::Duration::from_secs(30), async {
        while !look().await {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn certificates_rotate_without_a_restart() {
    let world = world(true, &[GATEWAY_ID]).await;
    let names = |params: &mut CertificateParams| params.subject_alt_names = vec![uri(GATEWAY_ID)];
    issue(world.path(), "old", &world.authority, names);
    assert!(who(world.channel(Some("old"))).await.is_ok());
    // A half-written key does not end the service.
    let new = authority();
    fs::write(world.path().join("server.key"), "half a k").unwrap();
    assert!(who(world.channel(Some("old"))).await.is_ok());
    issue(world.path(), "server", &new, local);
    fs::write(world.path().join("ca.pem"), new.pem()).unwrap();
    issue(world.path(), "new", &new, names);
    until(async || who(world.channel(Some("new"))).await.is_ok()).await;
    fs::write(world.path().join("both.pem"), format!("{}{}", world.authority.pem(), new.pem())).unwrap();
    let withdrawn = world.channel_trusting("both.pem", Some("old"));
    assert_eq!(arrived(withdrawn).await, None, "the old authority is not trusted any more");
}

#[tokio::test]
async fn service_keys_rotate_without_a_restart() {
    let world = world(false, &[]).await;
    let plain = || channel::connect(&[format!("http://{}", world.address)]).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let old = world.credentials();
    assert!(who(old.attach(plain())).await.is_ok());
    let next = ServiceKey::generate().unwrap();
    let with_next = ServiceCredentials::new(ServiceName::OperatorGateway, next.clone(), Arc::clone(&clock));
    assert_eq!(who(with_next.attach(plain())).await, Err(ErrorCode::Unauthenticated));
    // A registry that cannot be parsed changes nothing.
    let file = world.path().join("registry.toml");
    fs::write(&file, "[services").unwrap();
    assert!(who(old.attach(plain())).await.is_ok());
    fs::write(&file, registry(next.public(), &[])).unwrap();
    until(async || who(with_next.attach(plain())).await.is_ok()).await;
    assert_eq!(who(old.attach(plain())).await, Err(ErrorCode::Unauthenticated), "also for a token verified before");
}

/// Guessing costs the server no cryptography beyond a burst, and shuts nobody out whose token was right lately.
#[tokio::test]
async fn wrong_tokens_of_an_address_are_not_looked_at_beyond_a_burst() {
    let world = world(false, &[]).await;
    let plain = || channel::connect(&[format!("http://{}", world.address)]).unwrap();
    let line = plain();
    let honest = world.credentials().attach(line.clone());
    assert!(who(honest.clone()).await.is_ok());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let stranger = ServiceCredentials::new(ServiceName::OperatorGateway, ServiceKey::generate().unwrap(), clock);
    let guessing = stranger.attach(plain());
    let mut looked_at = 0;
    while who(guessing.clone()).await == Err(ErrorCode::Unauthenticated) {
        looked_at += 1;
        assert!(looked_at < 1_000, "every guess is looked at");
    }
    assert!(looked_at >= 60, "only {looked_at} wrong tokens were looked at");
    assert_eq!(who(guessing).await, Err(ErrorCode::ResourceExhausted));
    assert!(who(honest).await.is_ok(), "a token that was right lately");
    // Tokens are renewed every four minutes: another one, on the connection that showed right ones only.
    let renewed = || {
        let clock = ManualClock::at(SystemClock.now().plus_ms(-30_000));
        ServiceCredentials::new(ServiceName::OperatorGateway, world.gateway_key.clone(), Arc::new(clock))
    };
    assert_eq!(who(renewed().attach(plain())).await, Err(ErrorCode::ResourceExhausted), "on a connection that is new");
    assert!(who(renewed().attach(line.clone())).await.is_ok(), "a new token of a service at the same address");
    // One wrong token, and the connection counts like any other.
    assert_eq!(who(stranger.attach(line.clone())).await, Err(ErrorCode::Unauthenticated));
    assert_eq!(who(stranger.attach(line)).await, Err(ErrorCode::ResourceExhausted));
    assert_eq!(who(plain()).await, Err(ErrorCode::Unauthenticated), "no token costs nothing to refuse");
}

/// 1,100 connections that say nothing, or half of what they should: the next honest one is served at once.
#[tokio::test]
async fn silent_connections_give_way() {
    let world = world(false, &[]).await;
    let mut silent = Vec::new();
    for number in 0..1_100_usize {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let start = b"PRI * HTTP/2.0\r\n";
        stream.write_all(&start[..number % 3 * 8]).await.unwrap();
        silent.push(stream);
    }
    let plain = channel::connect(&[format!("http://{}", world.address)]).unwrap();
    assert_eq!(who(world.credentials().attach(plain)).await.as_deref(), Ok("svc:operator-gateway"));
}
