//! The driver against a small system of a customer, over real sockets.

mod secured;

use std::sync::Mutex;

use axum::{
    Router,
    body::Bytes as Body,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::IntoResponse as _,
    routing::any,
};
use daemon::outbound::AllowList;
use domain::{ManualClock, Timestamp};
use picture::{Palette, Picture};
use proto::records::v1::{DeliveryState, Evidence};

use super::{super::Place, *};

const NOW: Timestamp = Timestamp::from_ms(1_780_000_000_000);
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// What the system got, and what it answers next.
#[derive(Default)]
struct System {
    got: Mutex<Vec<(Method, String, HeaderMap, Body)>>,
    next: Mutex<(u16, &'static str)>,
}

async fn answer(
    State(system): State<Arc<System>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> axum::response::Response {
    system.got.lock().unwrap().push((method, uri.to_string(), headers, body));
    let (status, text) = *system.next.lock().unwrap();
    let location = [(header::LOCATION, "http://169.254.169.254/")];
    (StatusCode::from_u16(status).unwrap(), location, text).into_response()
}

struct Bench {
    system: Arc<System>,
    address: String,
    driver: WebhookDriver,
    clock: Arc<ManualClock>,
}

impl Bench {
    async fn new() -> Self {
        let system = Arc::new(System::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/labels?of=berlin", listener.local_addr().unwrap());
        let router = Router::new().route("/labels", any(answer)).with_state(Arc::clone(&system));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let clock = Arc::new(ManualClock::at(NOW));
        let driver = driver(&clock);
        Self { system, address, driver, clock }
    }

    /// The worker ends, with every callback it had, and another begins.
    fn restart(&mut self) {
        self.driver = driver(&self.clock);
    }

    fn answers(&self, status: u16, text: &'static str) {
        *self.system.next.lock().unwrap() = (status, text);
    }

    fn place(&self) -> Place {
        Place { access_point: "t/T/s/S/accesspoints/A".parse().unwrap(), address: self.address.clone() }
    }

    async fn send(&self) -> Delivered {
        let shipment = Shipment { place: self.place(), generation: 7, deliveries: vec![delivery()] };
        self.driver.send(shipment).await.pop().unwrap()
    }

    async fn look(&self) -> Delivered {
        let pending = Pending {
            label: LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap(),
            hardware_address: "0000021A".to_owned(),
            digest: picture().digest(),
            receipt: "n17".to_owned(),
            state: DeliveryState::Accepted,
            sent_at: NOW,
        };
        self.driver.look(Survey { place: self.place(), pending: vec![pending] }).await.pop().unwrap()
    }

    /// The system calls back; the answer's status.
    async fn call_back(&self, secret: &str, body: &'static str) -> u16 {
        let to = self.driver.callback_address().await.unwrap();
        let peer = Peer::parse(&to.to_string(), 80).unwrap();
        let secret = Secret::new(&WebhookSecret::try_from(secret.to_owned()).unwrap());
        let mut headers = vec![
            (HeaderName::from_static("reshelf-label"), HeaderValue::from_static("t/T/s/S/esls/E")),
            (HeaderName::from_static("reshelf-digest"), picture().digest().to_string().parse().unwrap()),
        ];
        let signed = Signed { method: &Method::POST, path: "/back", headers: &headers, body: body.as_bytes() };
        headers.extend(secret.sign(&signed, NOW));
        let call = HttpCall {
            peer: &peer,
            method: Method::POST,
            path: "/back",
            headers,
            body: Bytes::from_static(body.as_bytes()),
            within: WITHIN,
            answer_bytes_max: 100,
        };
        Outbound::new(AllowList::loopback()).http(call).await.unwrap().status.as_u16()
    }
}

fn driver(clock: &Arc<ManualClock>) -> WebhookDriver {
    let callback = CallbackSettings { listen: ([127, 0, 0, 1], 0).into(), url: "http://worker.example/back".into() };
    let secret = WebhookSecret::try_from(SECRET.to_owned()).unwrap();
    let settings = WebhookSettings { secret, ca_file: None, callback: Some(callback) };
    WebhookDriver::new(Outbound::new(AllowList::loopback()), &settings, Arc::clone(clock) as Arc<dyn Clock>)
}

fn delivery() -> Delivery {
    let picture = picture();
    Delivery {
        label: LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap(),
        hardware_address: "0000021A".to_owned(),
        digest: picture.digest(),
        picture,
        encoded: bytes::Bytes::new(),
        replaces: None,
    }
}

fn picture() -> Picture {
    Picture::new(16, 8, Palette::Bwr, vec![2; 16 * 8]).unwrap()
}

#[tokio::test]
async fn the_packed_picture_arrives_signed_with_all_that_identifies_it() {
    let bench = Bench::new().await;
    bench.answers(200, r#"{"state":"displayed"}"#);
    let answer = bench.send().await;
    assert!(matches!(answer, Delivered::Confirmed { evidence: Evidence::Displayed, .. }), "{answer:?}");
    let got = bench.system.got.lock().unwrap();
    let [(method, uri, headers, body)] = &got[..] else { panic!("one call") };
    assert_eq!((method, uri.as_str()), (&Method::POST, "/labels?of=berlin"));
    assert_eq!(Picture::unpack(body).unwrap(), picture());
    assert_eq!(headers["reshelf-label"], "t/T/s/S/esls/E");
    assert_eq!(headers["reshelf-hardware-address"], "0000021A");
    assert_eq!(headers["reshelf-generation"], "7");
    assert_eq!(headers["reshelf-callback"], "http://worker.example/back");
    assert_eq!(headers["reshelf-digest"], picture().digest().to_string());
    let listed: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let secret = Secret::new(&WebhookSecret::try_from(SECRET.to_owned()).unwrap());
    let signed = |body| Signed { method, path: "/labels?of=berlin", headers: &listed, body };
    assert!(secret.proves(&signed(body), NOW));
    assert!(!secret.proves(&signed(b"another picture"), NOW));
    assert!(!secret.proves(&signed(body), NOW.plus_ms(signature::FRESH_MS + 1)));
}

#[tokio::test]
async fn each_answer_means_what_the_contract_says() {
    let bench = Bench::new().await;
    bench.answers(202, r#"{"state":"accepted","id":"n17"}"#);
    assert!(matches!(
        bench.send().await,
        Delivered::Underway { state: DeliveryState::Accepted, receipt, .. } if receipt == "n17"
    ));
    bench.answers(409, r#"{"cause":"seen 8"}"#);
    assert_eq!(bench.send().await, Delivered::Superseded { cause: "seen 8".to_owned() });
    bench.answers(422, r#"{"cause":"no red here"}"#);
    assert_eq!(bench.send().await, Delivered::Permanent { cause: "no red here".to_owned() });
    for (status, text) in [(200, "thanks"), (202, "{}"), (429, ""), (500, "<html>")] {
        bench.answers(status, text);
        assert!(matches!(bench.send().await, Delivered::Retryable { .. }), "{status}");
    }
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let bench = Bench::new().await;
    bench.answers(307, "");
    let answer = bench.send().await;
    assert!(matches!(&answer, Delivered::Permanent { cause } if cause.contains("redirects")), "{answer:?}");
    assert_eq!(bench.system.got.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_signed_callback_confirms_without_a_question() {
    let bench = Bench::new().await;
    assert_eq!(bench.call_back(SECRET, r#"{"state":"transferred"}"#).await, 204);
    assert!(matches!(bench.look().await, Delivered::Confirmed { evidence: Evidence::Transferred, .. }));
    assert!(bench.system.got.lock().unwrap().is_empty());
    // It was taken out: from then on the system is asked.
    bench.answers(404, "");
    assert!(matches!(bench.look().await, Delivered::Lost { .. }));
}

#[tokio::test]
async fn callbacks_that_are_forged_old_or_empty_count_for_nothing() {
    let bench = Bench::new().await;
    assert_eq!(bench.call_back("another secret of thirty-two byte", r#"{"state":"displayed"}"#).await, 401);
    assert_eq!(bench.call_back(SECRET, "{}").await, 400);
    bench.clock.advance_ms(signature::FRESH_MS + 1);
    assert_eq!(bench.call_back(SECRET, r#"{"state":"displayed"}"#).await, 401);
    bench.answers(200, r#"{"state":"queued"}"#);
    let answer = bench.look().await;
    assert!(
        matches!(&answer, Delivered::Underway { state: DeliveryState::Queued, receipt, .. } if receipt == "n17"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_system_that_takes_no_questions_is_waited_for() {
    let bench = Bench::new().await;
    bench.answers(405, "");
    assert!(matches!(bench.look().await, Delivered::Underway { state: DeliveryState::Accepted, .. }));
}

#[tokio::test]
async fn a_callback_that_was_lost_in_a_restart_is_asked_for() {
    let mut bench = Bench::new().await;
    assert_eq!(bench.call_back(SECRET, r#"{"state":"displayed"}"#).await, 204);
    bench.restart();
    bench.answers(200, r#"{"state":"queued"}"#);
    assert!(matches!(bench.look().await, Delivered::Underway { state: DeliveryState::Queued, .. }));
    bench.answers(200, r#"{"state":"displayed"}"#);
    assert!(matches!(bench.look().await, Delivered::Confirmed { evidence: Evidence::Displayed, .. }));
    let got = bench.system.got.lock().unwrap();
    assert!(got.iter().all(|(method, ..)| method == Method::GET) && got.len() == 2);
}

#[tokio::test]
async fn a_callback_lost_in_a_restart_of_a_system_without_answers_leads_to_another_sending_in_time() {
    let mut bench = Bench::new().await;
    assert_eq!(bench.call_back(SECRET, r#"{"state":"displayed"}"#).await, 204);
    bench.restart();
    bench.answers(405, "");
    bench.clock.advance_ms(answer::CALLBACK_MS_MAX);
    assert!(matches!(bench.look().await, Delivered::Underway { .. }), "in time");
    bench.clock.advance_ms(1);
    assert!(matches!(bench.look().await, Delivered::Lost { .. }), "never confirmed, and sent again");
}

#[tokio::test]
async fn a_callback_about_an_earlier_sending_confirms_no_later_one() {
    let bench = Bench::new().await;
    assert_eq!(bench.call_back(SECRET, r#"{"state":"displayed"}"#).await, 204);
    bench.answers(202, r#"{"state":"accepted"}"#);
    assert!(matches!(bench.send().await, Delivered::Underway { .. }));
    bench.answers(200, r#"{"state":"queued"}"#);
    assert!(matches!(bench.look().await, Delivered::Underway { state: DeliveryState::Queued, .. }));
}

#[test]
fn addresses_of_other_kinds_and_short_secrets_are_refused() {
    for address in ["ftp://a/b", "ftp://a", "a", "/a", "http://user:word@a/", ""] {
        assert!(target(address).is_err(), "{address}");
    }
    assert!(WebhookSecret::try_from("short".to_owned()).is_err());
    assert!(!format!("{:?}", WebhookSecret::try_from(SECRET.to_owned())).contains("0123"));
}
