//! Who says so: HMAC-SHA-256 over everything that matters, with the time it was made.

use aws_lc_rs::hmac;
use domain::Timestamp;
use http::{HeaderName, HeaderValue, Method};

use super::WebhookSecret;

/// Shortest secret, in bytes: the strength of the hash.
pub(super) const SECRET_BYTES_MIN: usize = 32;
/// How far a signature's time may lie from ours, in milliseconds: clocks differ, and replays must end.
pub(super) const FRESH_MS: i64 = 5 * 60 * 1_000;

pub(super) const TIMESTAMP: HeaderName = HeaderName::from_static("reshelf-timestamp");
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("reshelf-signature");
/// Header fields that are signed, in this order; an absent one counts as empty.
const SIGNED: [&str; 5] =
    ["reshelf-label", "reshelf-hardware-address", "reshelf-digest", "reshelf-generation", "reshelf-callback"];

/// The shared secret.
#[derive(Clone)]
pub(super) struct Secret(hmac::Key);

/// What is signed.
pub(super) struct Signed<'a> {
    pub(super) method: &'a Method,
    /// Path and query.
    pub(super) path: &'a str,
    pub(super) headers: &'a [(HeaderName, HeaderValue)],
    pub(super) body: &'a [u8],
}

impl Secret {
    pub(super) fn new(secret: &WebhookSecret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// The header fields that prove a request.
    pub(super) fn sign(&self, signed: &Signed<'_>, now: Timestamp) -> [(HeaderName, HeaderValue); 2] {
        let tag = hmac::sign(&self.0, &text(signed, now.as_ms()));
        let hex = format!("v1={}", domain::hex(tag));
        // Hexadecimal digits are always a header's value.
        let value = HeaderValue::from_str(&hex).unwrap_or(HeaderValue::from_static(""));
        [(TIMESTAMP, HeaderValue::from(now.as_ms())), (SIGNATURE, value)]
    }

    /// Whether a request is signed with this secret and fresh.
    pub(super) fn proves(&self, signed: &Signed<'_>, now: Timestamp) -> bool {
        let header = |wanted: &HeaderName| {
            signed.headers.iter().find(|(name, _)| name == wanted).and_then(|(_, value)| value.to_str().ok())
        };
        let Some(made) = header(&TIMESTAMP).and_then(|digits| digits.parse::<i64>().ok()) else { return false };
        let Some(tag) = header(&SIGNATURE).and_then(|text| bytes(text.strip_prefix("v1=")?)) else { return false };
        now.ms_since(Timestamp::from_ms(made)).saturating_abs() <= FRESH_MS
            && hmac::verify(&self.0, &text(signed, made), &tag).is_ok()
    }
}

/// Method, path, time and the signed header fields, a line each, then the body.
fn text(signed: &Signed<'_>, made_ms: i64) -> Vec<u8> {
    let mut text = format!("v1\n{}\n{}\n{made_ms}\n", signed.method, signed.path).into_bytes();
    for wanted in SIGNED {
        if let Some((_, value)) = signed.headers.iter().find(|(name, _)| name.as_str() == wanted) {
            text.extend_from_slice(value.as_bytes());
        }
        text.push(b'\n');
    }
    text.extend_from_slice(signed.body);
    text
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    hex.as_bytes().as_chunks::<2>().0.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
