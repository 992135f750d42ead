//! Standard Webhooks: `webhook-signature: v1,<base64 of HMAC-SHA256 over "id.timestamp.body">`.

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};

/// A shared secret, 24 to 64 bytes.
pub(super) struct Secret(hmac::Key);

impl Secret {
    /// From `whsec_` and base64.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text.strip_prefix("whsec_")?).ok()?;
        (24..=64).contains(&bytes.len()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The header's value.
    pub(super) fn sign(&self, id: &str, timestamp_s: i64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{id}.{timestamp_s}.{body}").as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(tag.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_signs_as_the_standards_own_example() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        for wrong in ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***"] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
