//! The REST client: one gateway, one operator, bounded waits.
//!
//! Every request of ours may be repeated: reads by nature, triggers and control actions because they name a tracking id.
//! So an answer that never came, and one that says "later", is asked for again, until [`Patience`] ends.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{CliError, Exit, Settings, TokenSource, events::Events, output::note, token};

/// Longest wait for one answer: the gateway itself gives up earlier.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest life of a stream: the gateway ends it with the token, long before.
const STREAM_TIMEOUT: Duration = Duration::from_hours(24);
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer that is read, in bytes: a page of 200 operations with all their failures stays below a megabyte.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// First wait before trying again when the answer names none; doubled each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
/// Longest single wait before trying again, whatever the answer says: a person is looking.
const BACKOFF_MAX: Duration = Duration::from_secs(15);
/// Most entries of a page that the gateway gives.
const PAGE_SIZE_MAX: usize = 200;
/// Most pages that are followed: 100,000 entries, more than anybody reads.
const PAGES_MAX: usize = 500;

/// How long one request is tried again. A minute is usual: longer than a service needs to restart, shorter than a person
/// waits without wondering.
#[derive(Debug, Clone, Copy)]
pub struct Patience(pub Duration);

/// One gateway, as one operator.
pub struct Client {
    http: reqwest::Client,
    base: String,
    source: TokenSource,
    header: Mutex<Option<HeaderValue>>,
    patience: Patience,
    quiet: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// One request.
#[derive(Debug)]
struct Asked<'a> {
    method: Method,
    path: &'a str,
    query: &'a [(&'a str, String)],
    body: Option<&'a Value>,
}

/// One answer: of success, but for [`Client::look`].
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value, CliError> {
        serde_json::from_slice(&self.body).map_err(|_| {
            CliError::new(Exit::Unexpected, "the gateway's answer is no JSON")
                .advise("check that the url is the gateway's and not another server's")
        })
    }

    /// Seconds after which the gateway wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers)
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// How one attempt ended.
enum Attempt {
    Answered(Answer),
    Refused(CliError),
    /// The token is over or unknown.
    Unauthenticated(CliError),
    /// It may go better later.
    Later(CliError, Option<Duration>),
}

impl Client {
    /// A client of the gateway that the settings name.
    pub fn new(settings: &Settings) -> Result<Self, CliError> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("reshelf/", env!("CARGO_PKG_VERSION")))
            .timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            // A token goes to the address it was given for and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| CliError::new(Exit::Unexpected, format!("no HTTP client: {}", causes(&error))))?;
        Ok(Self {
            http,
            base: settings.url.clone(),
            source: settings.token.clone(),
            header: Mutex::new(None),
            patience: settings.patience,
            quiet: settings.output.quiet,
        })
    }

    /// The same, giving up after another time.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Address of the gateway.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// GET.
    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Answer, CliError> {
        self.send(&Asked { method: Method::GET, path, query, body: None }).await
    }

    /// GET without a token, once: whatever the answer is, it is the answer.
    pub async fn look(&self, path: &str) -> Result<Answer, CliError> {
        let response = self.http.get(format!("{}{path}", self.base)).send().await;
        let response = response.map_err(|error| self.no_answer(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = limited(response).await.map_err(|error| self.no_answer(&error))?.unwrap_or_default();
        Ok(Answer { status, headers, body })
    }

    /// Opens a stream of events, with those after `last`; none when it is over.
    pub async fn events(&self, path: &str, last: &str) -> Result<Option<Events>, CliError> {
        let mut request = self
            .http
            .get(format!("{}{path}", self.base))
            .timeout(STREAM_TIMEOUT)
            .header(header::AUTHORIZATION, self.authorization().await?)
            .header(header::ACCEPT, "text/event-stream");
        if !last.is_empty() {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.map_err(|error| self.no_answer(&error))?;
        match response.status().as_u16() {
            200 => Ok(Some(Events::of(response))),
            204 => Ok(None),
            status => {
                let body = limited(response).await.map_err(|error| self.no_answer(&error))?;
                Err(CliError::from_answer(status, &body.unwrap_or_default()))
            }
        }
    }

    /// GET of a JSON answer.
    pub async fn get_json(&self, path: &str) -> Result<Value, CliError> {
        self.get(path, &[]).await?.json()
    }

    /// A request with a JSON body.
    pub async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Answer, CliError> {
        self.send(&Asked { method, path, query: &[], body: Some(body) }).await
    }

    /// The entries of a list, over its pages, `limit` at most. `key` names the list in each page.
    pub async fn list(
        &self,
        path: &str,
        query: &[(&str, String)],
        key: &str,
        limit: usize,
    ) -> Result<Vec<Value>, CliError> {
        let mut entries = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_MAX {
            let mut query = query.to_vec();
            query.push(("page_size", limit.saturating_sub(entries.len()).clamp(1, PAGE_SIZE_MAX).to_string()));
            if !token.is_empty() {
                query.push(("page_token", token));
            }
            let page = self.get(path, &query).await?.json()?;
            let Some(found) = page.get(key).and_then(Value::as_array) else {
                return Err(CliError::new(Exit::Unexpected, format!("the gateway's list lacks {key:?}")));
            };
            entries.extend(found.iter().take(limit.saturating_sub(entries.len())).cloned());
            token = super::output::at(&page, "/next_page_token");
            if token.is_empty() || entries.len() >= limit {
                break;
            }
        }
        Ok(entries)
    }

    /// Tries until there is an answer that trying again would not change, or patience ends.
    async fn send(&self, asked: &Asked<'_>) -> Result<Answer, CliError> {
        let end = Instant::now() + self.patience.0;
        let mut backoff = BACKOFF_FIRST;
        let mut renewed = false;
        loop {
            let (error, wait) = match self.attempt(asked).await? {
                Attempt::Answered(answer) => return Ok(answer),
                Attempt::Refused(error) => return Err(error),
                // A file may have been written anew since, a command gives a fresh one.
                Attempt::Unauthenticated(error) if renewed || matches!(self.source, TokenSource::Environment(_)) => {
                    return Err(error);
                }
                Attempt::Unauthenticated(_) => {
                    renewed = true;
                    *self.header.lock().await = None;
                    continue;
                }
                Attempt::Later(error, wait) => (error, wait),
            };
            let wait = wait.unwrap_or(backoff).min(BACKOFF_MAX);
            backoff = (backoff * 2).min(BACKOFF_MAX);
            if Instant::now() + wait >= end {
                return Err(error);
            }
            if !self.quiet {
                note(&format!("{}; trying again in {} ms", error.message, wait.as_millis()));
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, asked: &Asked<'_>) -> Result<Attempt, CliError> {
        let mut request = self
            .http
            .request(asked.method.clone(), format!("{}{}", self.base, asked.path))
            .query(asked.query)
            .header(header::AUTHORIZATION, self.authorization().await?);
        if let Some(body) = asked.body {
            request = request.json(body);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Ok(Attempt::Later(self.no_answer(&error), None)),
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = match limited(response).await {
            Ok(Some(body)) => body,
            Ok(None) => {
                let text = format!("the answer has more than {ANSWER_BYTES_MAX} bytes");
                return Ok(Attempt::Refused(CliError::new(Exit::Unexpected, text)));
            }
            Err(error) => return Ok(Attempt::Later(self.no_answer(&error), None)),
        };
        Ok(match status {
            200..=299 => Attempt::Answered(Answer { status, headers, body }),
            401 => Attempt::Unauthenticated(CliError::from_answer(status, &body)),
            404 => Attempt::Refused(CliError::from_answer(status, &body).naming(asked.path)),
            429 | 502..=504 => {
                let error = CliError::from_answer(status, &body);
                let error = if asked.method == Method::GET { error.of_a_read() } else { error };
                Attempt::Later(error, retry_after(&headers))
            }
            _ => Attempt::Refused(CliError::from_answer(status, &body)),
        })
    }

    /// The token's header, read at the first request and again once it was refused.
    async fn authorization(&self) -> Result<HeaderValue, CliError> {
        let mut header = self.header.lock().await;
        if let Some(known) = &*header {
            return Ok(known.clone());
        }
        let fresh = token::bearer(&self.source.read().await?)?;
        Ok(header.insert(fresh).clone())
    }

    fn no_answer(&self, error: &reqwest::Error) -> CliError {
        CliError::new(Exit::Unavailable, format!("no answer from {}: {}", self.base, causes(error))).advise(
            "check that the gateway runs and that the address is right; repeating with the same tracking id is safe",
        )
    }
}

/// The body; none when it is larger than what is read.
async fn limited(mut response: reqwest::Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// What went wrong at the bottom: the text of a request's error repeats the address and hides the cause.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
