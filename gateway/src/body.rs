//! Request bodies: JSON, bounded, strict, and every mistake named by its field.

use std::{collections::BTreeSet, fmt, marker::PhantomData, time::Duration};

use axum::{body::Bytes, extract::Request};
use domain::{ErrorCode, Refusal};
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

use crate::{parameters, problem::Problem};

/// Longest request body, in bytes, unless a route says otherwise: the published bound of every trigger.
pub(crate) const BODY_MAX_BYTES: usize = 64 * 1024;
/// Longest wait for a body, well below the time limit of a request: a client that stalls is refused as one (and the
/// refusal audited), before the request's own limit would cut it off as an action of unknown outcome. 64 KiB in this
/// time needs 52 kbit/s.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest name of a field in a refusal, in characters: longer than any of ours.
const FIELD_MAX_CHARS: usize = 64;

/// Reads a body that says it is JSON, of at most [`BODY_MAX_BYTES`].
pub(crate) async fn read(request: Request) -> Result<Bytes, Problem> {
    read_up_to(request, BODY_MAX_BYTES).await
}

/// Reads a body that says it is JSON, of at most `bytes_max`.
pub(crate) async fn read_up_to(request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    // No action has query parameters: all it is asked for stands in its body.
    parameters::only(&parts.uri, &BTreeSet::new())?;
    check_media_type(&parts.headers)?;
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect());
    let Ok(collected) = collected.await else {
        let message = format!("did not arrive within {} seconds", BODY_TIMEOUT.as_secs());
        return Err(Refusal::field("body", message).into());
    };
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("must be at most {bytes_max} bytes long");
            Err(Refusal { code: ErrorCode::PayloadTooLarge, field: "body".to_owned(), message }.into())
        }
        Err(_) => Err(Refusal::field("body", "could not be read to its end").into()),
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let utf8 = parameters.trim().is_empty()
        || matches!(parameters.trim().to_ascii_lowercase().as_str(), "charset=utf-8" | "charset=\"utf-8\"");
    if !essence.trim().eq_ignore_ascii_case("application/json") || !utf8 {
        return Err(Problem::unsupported_media("content-type", "must be application/json"));
    }
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(Problem::unsupported_media("content-encoding", "must be left out: bodies come uncompressed"));
    }
    Ok(())
}

/// Parses a body as `T`, which must deny unknown fields.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    // serde would take a JSON array for a struct, its values by position: fields without names.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(Refusal::field("body", "must be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value: T = serde_path_to_error::deserialize(&mut json).map_err(|error| refusal(&error))?;
    json.end().map_err(|_| Refusal::field("body", "has something after the JSON object"))?;
    Ok(value)
}

/// A struct within a body, read from a JSON object only; serde would take an array for it as well, see [`parse`].
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FromMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FromMap<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Object<T>, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(FromMap(PhantomData))
    }
}

/// A whole number. JSON knows no other kind of number, so `6.0` is one too; serde would refuse that.
pub(crate) fn whole<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    struct Whole<T>(PhantomData<T>);
    impl<T: TryFrom<i64>> Visitor<'_> for Whole<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number that is not too large")
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            let signed = i64::try_from(number).ok().and_then(|number| T::try_from(number).ok());
            signed.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
            #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53, where both hold every number")]
            let whole = (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0).then_some(number as i64);
            let fits = whole.and_then(|number| T::try_from(number).ok());
            fits.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
        }
    }
    deserializer.deserialize_any(Whole(PhantomData))
}

/// [`whole`], or nothing.
pub(crate) fn whole_or_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    struct Number<T>(T);
    impl<'de, T: TryFrom<i64>> Deserialize<'de> for Number<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            whole(deserializer).map(Self)
        }
    }
    Ok(Option::<Number<T>>::deserialize(deserializer)?.map(|number| number.0))
}

/// serde says which field in its text or in the path, depending on the mistake; we always say it in `field`.
fn refusal(error: &serde_path_to_error::Error<serde_json::Error>) -> Refusal {
    // A name that somebody made up may be anything, a token too: it goes into answers, logs and the audit log.
    let path: String = error.path().to_string().chars().filter(|c| !c.is_control()).take(FIELD_MAX_CHARS).collect();
    let path = if path == "." { String::new() } else { path };
    let inner = error.inner();
    if !inner.is_data() {
        return Refusal::field("body", format!("is not JSON: {inner}"));
    }
    let text = inner.to_string();
    // " at line 1 column 2" helps nobody once the field is named.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    for (prefix, message) in [
        ("missing field `", "is required"),
        ("unknown field `", "is not a field of this request"),
        ("duplicate field `", "is given twice"),
    ] {
        if let Some((name, _)) = text.strip_prefix(prefix).and_then(|rest| rest.split_once('`')) {
            return Refusal::field(below(&path, name), message);
        }
    }
    // serde quotes the value before it says what it expected; a value is nothing for a log.
    let message =
        text.rsplit_once(", expected ").map_or(text.to_owned(), |(_, expected)| format!("must be {expected}"));
    Refusal::field(if path.is_empty() { "body" } else { &path }, message)
}

/// The path of `name` below `path`, which may already end in it.
fn below(path: &str, name: &str) -> String {
    let name: String = name.chars().take(FIELD_MAX_CHARS).filter(|c| !c.is_control()).collect();
    if path.is_empty() || path == name {
        name
    } else if path.ends_with(&format!(".{name}")) {
        path.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
