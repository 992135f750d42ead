//! Path segments, query parameters and pages, each mistake named.

use std::{collections::BTreeMap, fmt::Display, str::FromStr, sync::Arc};

use axum::extract::{FromRequestParts, Path};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::Refusal;
use http::request::Parts;
use serde::{Serialize, de::DeserializeOwned};
use utoipa::{IntoParams, ToSchema};

use crate::{problem::Problem, state::Gateway};

/// Entries of a page when the request names no size.
const PAGE_SIZE_DEFAULT: usize = 50;
/// Most entries of a page: one call to the platform, one answer of well under a megabyte.
pub(crate) const PAGE_SIZE_MAX: usize = 200;
/// Longest page token, in bytes: ours and the platform's stay under 500.
const PAGE_TOKEN_MAX_BYTES: usize = 1_024;

/// Path segments as texts; [`segment`] parses each.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Gateway>> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, gateway).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(_) => Err(Refusal::field("path", "is not valid UTF-8 once decoded").into()),
        }
    }
}

/// Parses one path segment, naming it when it is wrong.
pub(crate) fn segment<T>(name: &str, text: &str) -> Result<T, Problem>
where
    T: FromStr,
    T::Err: Display,
{
    Ok(proto::parse_field(name, text)?)
}

/// Query parameters, no name twice.
pub(crate) struct Parameters(BTreeMap<String, String>);

impl FromRequestParts<Arc<Gateway>> for Parameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Gateway>) -> Result<Self, Problem> {
        let mut known = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            if known.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(Refusal::field(printable(&name), "is given twice").into());
            }
        }
        Ok(Self(known))
    }
}

impl Parameters {
    /// The page asked for, and the named other parameters only.
    pub(crate) fn page(&self, others: &[&str]) -> Result<Page, Problem> {
        let is_known = |name: &str| matches!(name, "page_size" | "page_token") || others.contains(&name);
        if let Some(name) = self.0.keys().find(|name| !is_known(name)) {
            return Err(Refusal::field(printable(name), "is not a parameter of this request").into());
        }
        let size = match self.0.get("page_size") {
            None => PAGE_SIZE_DEFAULT,
            Some(text) => text.parse().ok().filter(|size| (1..=PAGE_SIZE_MAX).contains(size)).ok_or_else(|| {
                Refusal::field("page_size", format!("must be a whole number from 1 to {PAGE_SIZE_MAX}"))
            })?,
        };
        let token = self.0.get("page_token").map(String::as_str).unwrap_or_default();
        Ok(Page { size, token: token_from(token)? })
    }

    /// An optional parameter, parsed.
    pub(crate) fn optional<T>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr,
        T::Err: Display,
    {
        self.0.get(name).map(|text| segment(name, text)).transpose()
    }
}

/// A name as a refusal may repeat it.
pub(crate) fn printable(name: &str) -> String {
    name.chars().take(64).filter(|c| !c.is_control()).collect()
}

/// A list's own token out of a `next_page_token` that [`NextPage`] made; empty for the first page.
pub(crate) fn token_from(text: &str) -> Result<String, Refusal> {
    if text.len() > PAGE_TOKEN_MAX_BYTES {
        return Err(wrong_token());
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong_token())?;
    String::from_utf8(bytes).map_err(|_| wrong_token())
}

fn wrong_token() -> Refusal {
    Refusal::field("page_token", "is not a next_page_token of this list")
}

/// How pages are asked for, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters that `Parameters::page` reads")]
pub(crate) struct PageParams {
    /// Entries per page, 1 to 200; left out: 50.
    #[param(minimum = 1, maximum = 200)]
    page_size: Option<u32>,
    /// `next_page_token` of the page before; left out: the first page.
    page_token: Option<String>,
}

/// The page a request asks for.
pub(crate) struct Page {
    pub(crate) size: usize,
    /// Of whoever made the page before, decoded: the platform's where it pages, else [`Page::over`]'s. Empty for the first.
    pub(crate) token: String,
}

impl Page {
    /// The size as the wire carries it.
    pub(crate) fn wire_size(&self) -> i32 {
        i32::try_from(self.size).unwrap_or(i32::MAX)
    }

    /// One page over `keys` in their order, with the token of the next; for lists that the token itself holds.
    pub(crate) fn over<'k, K>(&self, keys: impl Iterator<Item = &'k K>) -> Result<(Vec<&'k K>, String), Problem>
    where
        K: FromStr + Ord + Display + 'k,
    {
        let after = match self.token.as_str() {
            "" => None,
            token => Some(token.parse::<K>().map_err(|_| wrong_token())?),
        };
        let mut rest = keys.skip_while(|key| after.as_ref().is_some_and(|after| *key <= after)).peekable();
        let mut page = Vec::new();
        while page.len() < self.size
            && let Some(key) = rest.next()
        {
            page.push(key);
        }
        let next = match (rest.peek(), page.last()) {
            (Some(_), Some(last)) => last.to_string(),
            _ => String::new(),
        };
        Ok((page, next))
    }
}

/// The token of the next page; absent on the last.
#[derive(Serialize, ToSchema)]
pub(crate) struct NextPage {
    /// Names the next page; absent on the last one. Opaque.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

impl From<String> for NextPage {
    fn from(token: String) -> Self {
        // Whatever the list's own token is made of, it goes into a URL as it is.
        let next_page_token =
            Some(token).filter(|token| !token.is_empty()).map(|token| BASE64_URL_SAFE_NO_PAD.encode(token));
        Self { next_page_token }
    }
}
