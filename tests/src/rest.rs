//! A client of the REST API that says what it expects.

use std::time::Duration;

use reqwest::{Method, header::HeaderMap};
use serde_json::Value;

/// Longest answer of the gateway in a test; its own limits are below.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The gateway as one operator (or nobody) sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Rest {
    client: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// One answer.
#[derive(Debug)]
pub struct Answer {
    /// What was asked, for failures.
    pub asked: String,
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body as it came.
    pub bytes: Vec<u8>,
}

/// An RFC 9457 problem of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable code, e.g. `INVALID_ARGUMENT`.
    pub code: String,
    /// The wrong field; empty when no single one is.
    pub field: String,
    /// Text for people.
    pub detail: String,
}

impl Rest {
    /// The gateway at `base` (`http://127.0.0.1:PORT`) with a bearer token.
    pub fn new(base: &str, token: Option<&str>) -> Self {
        let client = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build().expect("an HTTP client");
        Self { client, base: base.trim_end_matches('/').to_owned(), token: token.map(str::to_owned) }
    }

    /// The same gateway with another token, or none.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), ..self.clone() }
    }

    /// Its address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The token it shows.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// GET; `None` when there was no answer at all.
    pub async fn try_get(&self, path: &str) -> Option<Answer> {
        self.send(Method::GET, path, None).await.ok()
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// GET, expecting 200 and JSON.
    pub async fn get_json(&self, path: &str) -> Value {
        self.get(path).await.json(200)
    }

    /// POST of a JSON value.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_bytes(path, body.to_string().into_bytes()).await
    }

    /// POST of a JSON value; `None` when there was no answer at all.
    pub async fn try_post(&self, path: &str, body: &Value) -> Option<Answer> {
        self.send(Method::POST, path, Some(body.to_string().into_bytes())).await.ok()
    }

    /// POST of bytes declared as JSON.
    pub async fn post_bytes(&self, path: &str, body: Vec<u8>) -> Answer {
        self.send(Method::POST, path, Some(body)).await.unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// PATCH or PUT of a JSON value.
    pub async fn change(&self, method: Method, path: &str, body: &Value) -> Answer {
        let bytes = Some(body.to_string().into_bytes());
        self.send(method, path, bytes).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// GET of a stream of server-sent events, to its end or to the first event for which `enough` holds. `last` is the
    /// last event one has.
    pub async fn events(&self, path: &str, last: Option<&str>, enough: impl Fn(&Event) -> bool) -> Stream {
        let mut request = self.client.get(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let mut response = request.send().await.unwrap_or_else(|error| panic!("GET {path}: {error}"));
        let mut stream = Stream { status: response.status().as_u16(), events: Vec::new(), ended: true };
        let mut text = String::new();
        while let Some(chunk) = response.chunk().await.unwrap_or_else(|error| panic!("GET {path}: {error}")) {
            text.push_str(&String::from_utf8_lossy(&chunk));
            while let Some((block, rest)) = text.split_once("\n\n") {
                let event = Event::parse(block);
                text = rest.to_owned();
                let Some(event) = event else { continue };
                let last = enough(&event);
                stream.events.push(event);
                if last {
                    stream.ended = false;
                    return stream;
                }
            }
        }
        stream
    }

    async fn send(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Answer, reqwest::Error> {
        let asked = format!("{method} {path}");
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await?;
        Ok(Answer {
            asked,
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            bytes: response.bytes().await?.to_vec(),
        })
    }
}

/// What came of a stream of server-sent events.
#[derive(Debug)]
pub struct Stream {
    /// HTTP status.
    pub status: u16,
    /// What came.
    pub events: Vec<Event>,
    /// Whether the server ended it.
    pub ended: bool,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Value,
}

impl Event {
    /// None for comments.
    fn parse(block: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
        };
        let data = field("data")?;
        Some(Self {
            id: field("id").unwrap_or_default(),
            name: field("event").unwrap_or_default(),
            data: serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}")),
        })
    }
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The JSON body, when the status is the expected one.
    pub fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text());
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{}: {error} in {}", self.asked, self.text()))
    }

    /// The problem, when the status is the expected one.
    pub fn problem(&self, status: u16) -> Problem {
        let body = self.json(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.asked);
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(body["status"].as_u64(), Some(u64::from(status)), "{}: {body}", self.asked);
        Problem { code: text("code"), field: text("field"), detail: text("detail") }
    }
}
