//! The compact form of a signed token, taken apart strictly.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::Value;

use super::{TOKEN_MAX_BYTES, verifier::TokenRefusal};

/// A JSON object whose names are all different; serde's own maps keep the last of two.
pub(super) struct UniqueObject(Vec<(String, Value)>);

impl UniqueObject {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value under `name`, or where a JSON pointer (it begins with `/`) leads.
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        let Some(pointer) = name.strip_prefix('/') else { return self.get(name) };
        match pointer.find('/') {
            None => self.get(pointer),
            Some(at) => self.get(pointer.get(..at)?)?.pointer(pointer.get(at..)?),
        }
    }

    /// The text under `name`; `None` when absent, refused when it is not a text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, TokenRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(TokenRefusal::Claim),
        }
    }

    /// The whole number under `name`; `None` when absent, refused when it is anything else.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, TokenRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or(TokenRefusal::Claim),
        }
    }
}

impl<'de> Deserialize<'de> for UniqueObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique;
        impl<'de> Visitor<'de> for Unique {
            type Value = UniqueObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<UniqueObject, M::Error> {
                let mut entries: Vec<(String, Value)> = Vec::new();
                // The token's own bound keeps this list short, so a linear look for duplicates is enough.
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if entries.iter().any(|(known, _)| *known == name) {
                        return Err(M::Error::custom("a name appears twice"));
                    }
                    entries.push((name, value));
                }
                Ok(UniqueObject(entries))
            }
        }
        deserializer.deserialize_map(Unique)
    }
}

/// A token taken apart; nothing of it is verified yet.
pub(super) struct Compact<'t> {
    pub(super) header: UniqueObject,
    pub(super) claims: UniqueObject,
    /// `header.claims`, the bytes that were signed.
    pub(super) signed: &'t str,
    /// Base64url.
    pub(super) signature: &'t str,
}

/// Takes a compact token apart: exactly three canonical base64url parts without padding, two of them JSON objects.
pub(super) fn split(token: &str) -> Result<Compact<'_>, TokenRefusal> {
    if token.len() > TOKEN_MAX_BYTES {
        return Err(TokenRefusal::Form);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenRefusal::Form)?;
    let (header, claims) = signed.split_once('.').ok_or(TokenRefusal::Form)?;
    if claims.contains('.') || signature.is_empty() {
        return Err(TokenRefusal::Form);
    }
    // Refuse non-canonical signatures too: the decoder rejects padding and trailing bits.
    BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenRefusal::Form)?;
    Ok(Compact { header: object(header)?, claims: object(claims)?, signed, signature })
}

fn object(part: &str) -> Result<UniqueObject, TokenRefusal> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenRefusal::Form)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenRefusal::Form)
}
