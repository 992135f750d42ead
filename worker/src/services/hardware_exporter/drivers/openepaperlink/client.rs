//! The access point's HTTP interface, as far as it is needed. No answer is taken at its word: see `mod`.

use std::time::Duration;

use bytes::Bytes;
use daemon::outbound::{HttpAnswer, HttpCall, Outbound, OutboundError, Peer};
use http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    mac::Mac,
    upload::{BOUNDARY, Upload},
};

/// How long an answer may take. Uploads of 30 kB to a busy access point take a few seconds; 30 s is what others allow.
const WITHIN: Duration = Duration::from_secs(30);
/// Longest answer: the database of an access point with 1,000 tags, or a picture.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// A page's position is kept in eight bits over there: beyond this one pages repeat.
const POSITION_MAX: usize = 255;

/// Content of a record: from outside, from outside by another name, another access point's.
const MODE_EXTERNAL: u8 = 24;
const MODE_EXTERNAL_HOME: u8 = 25;
const MODE_ELSEWHERE: u8 = 12;

/// What an access point says of a tag.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TagRecord {
    pub(super) mac: String,
    #[serde(default)]
    pub(super) hash: String,
    /// When the tag checked in last, in seconds since 1970 by the access point's clock.
    #[serde(default, rename = "lastseen")]
    pub(super) last_seen_s: i64,
    #[serde(default)]
    pub(super) pending: u32,
    #[serde(default, rename = "contentMode")]
    mode: u8,
    #[serde(default, rename = "hwType")]
    pub(super) panel: u8,
    #[serde(default, rename = "modecfgjson")]
    source: String,
    #[serde(default, rename = "ver")]
    pub(super) version: u32,
}

#[derive(Deserialize)]
struct Source {
    #[serde(default)]
    filename: String,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    tags: Vec<TagRecord>,
    continu: Option<usize>,
}

#[derive(Deserialize)]
struct FileFacts {
    #[serde(default)]
    filesize: u64,
}

impl TagRecord {
    /// The file the tag's picture comes from; empty when there is none.
    pub(super) fn filename(&self) -> String {
        serde_json::from_str::<Source>(&self.source).map(|source| source.filename).unwrap_or_default()
    }

    /// Whether it shows what comes from outside, as an upload leaves it.
    pub(super) const fn is_external(&self) -> bool {
        matches!(self.mode, MODE_EXTERNAL | MODE_EXTERNAL_HOME)
    }

    /// Whether another access point has the tag.
    pub(super) const fn is_elsewhere(&self) -> bool {
        self.mode == MODE_ELSEWHERE
    }

    /// The half of its hash that counts.
    pub(super) fn half_hash(&self) -> String {
        format!("{:0>16}", self.hash.get(..16).unwrap_or_default())
    }

    /// Whether the tag reports no picture at all.
    pub(super) fn shows_nothing(&self) -> bool {
        self.hash.bytes().all(|digit| digit == b'0')
    }
}

/// One access point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) outbound: &'a Outbound,
    pub(super) peer: &'a Peer,
}

impl Client<'_> {
    /// The tag's record; `None`: the access point does not know it.
    pub(super) async fn record(&self, mac: Mac) -> Result<Option<TagRecord>, OutboundError> {
        let page: Page = self.json(&format!("/get_db?mac={mac}")).await?;
        let wanted = mac.to_string();
        Ok(page.tags.into_iter().find(|tag| tag.mac.eq_ignore_ascii_case(&wanted)))
    }

    /// All records. Pages stop being told apart after 255 tags; then the whole database is asked for at once.
    pub(super) async fn records(&self) -> Result<Vec<TagRecord>, OutboundError> {
        let mut found = Vec::new();
        let mut position = 0;
        loop {
            let page: Page = self.json(&format!("/get_db?pos={position}")).await?;
            found.extend(page.tags);
            match page.continu {
                None => return Ok(found),
                Some(next) if next > position && next <= POSITION_MAX => position = next,
                Some(_) => return self.json("/backup_db").await,
            }
        }
    }

    /// Uploads a picture. The status proves nothing either way.
    pub(super) async fn upload(&self, upload: &Upload<'_>) -> Result<StatusCode, OutboundError> {
        let kind = HeaderValue::from_static(BOUNDARY.content_type);
        Ok(self.post("/imgupload", kind, upload.body()).await?.status)
    }

    /// Drops what waits for the tag.
    pub(super) async fn clear(&self, mac: Mac) -> Result<StatusCode, OutboundError> {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        Ok(self.post("/tag_cmd", kind, Bytes::from(format!("mac={mac}&cmd=clear"))).await?.status)
    }

    /// Whether a file lies there.
    pub(super) async fn has_file(&self, path: &str) -> Result<bool, OutboundError> {
        let facts: FileFacts = self.json(&format!("/check_file?path={path}")).await?;
        Ok(facts.filesize > 0)
    }

    /// The bytes last delivered to the tag, if they were kept.
    pub(super) async fn delivered(&self, mac: Mac) -> Result<Option<Bytes>, OutboundError> {
        // Behind a query no cache on the way knows it: the answer may be kept for days.
        self.bytes(&format!("/current/{mac}.raw?fresh")).await
    }

    /// The bytes that wait for the tag under the first half of a hash.
    pub(super) async fn queued(&self, mac: Mac, half_hash: &str) -> Result<Option<Bytes>, OutboundError> {
        // Asked for byte by byte from behind.
        let reversed = u64::from_str_radix(half_hash, 16).unwrap_or(0).swap_bytes();
        self.bytes(&format!("/getdata?mac={mac}&md5={reversed:016x}")).await
    }

    async fn bytes(&self, path: &str) -> Result<Option<Bytes>, OutboundError> {
        let answer = self.get(path).await?;
        Ok((answer.status == StatusCode::OK && !answer.body.is_empty()).then_some(answer.body))
    }

    async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, OutboundError> {
        let answer = self.get(path).await?;
        let broken = |cause: String| OutboundError::Broken { host: self.peer.to_string(), cause };
        if answer.status != StatusCode::OK {
            return Err(broken(format!("status {}", answer.status.as_u16())));
        }
        serde_json::from_slice(&answer.body).map_err(|error| broken(format!("an answer that cannot be read: {error}")))
    }

    async fn get(&self, path: &str) -> Result<HttpAnswer, OutboundError> {
        self.call(Method::GET, path, Vec::new(), Bytes::new()).await
    }

    async fn post(&self, path: &str, kind: HeaderValue, body: Bytes) -> Result<HttpAnswer, OutboundError> {
        self.call(Method::POST, path, vec![(header::CONTENT_TYPE, kind)], body).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        headers: Vec<(header::HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<HttpAnswer, OutboundError> {
        let (peer, within, answer_bytes_max) = (self.peer, WITHIN, ANSWER_BYTES_MAX);
        self.outbound.http(HttpCall { peer, method, path, headers, body, within, answer_bytes_max }).await
    }
}
