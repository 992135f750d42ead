//! Logging in on the page at `/docs`: authorisation code with PKCE at the identity provider, as a public client.
//!
//! The document served then also names the provider's flow; the committed one does not, since it is the same everywhere.
//! The gateway takes no part in the login: the browser gets the token and shows it like any other.

use domain::OperatorScope;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa_swagger_ui::oauth;

/// The name of the flow among the document's security schemes.
const SCHEME: &str = "login";

/// Where the page logs in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The public client registered for the page; its redirect address is `{gateway}/docs/oauth2-redirect.html`.
    pub client_id: String,
    /// The provider's authorisation endpoint.
    pub authorization_url: String,
    /// The provider's token endpoint; it must let this page's origin call it.
    pub token_url: String,
    /// What the provider wants to be told beside the API's scopes, e.g. `audience` (Auth0) or `resource`.
    #[serde(default)]
    pub parameters: std::collections::BTreeMap<String, String>,
}

/// Scheme, host and port of an address; none when it has no such.
fn origin(url: &str) -> Option<&str> {
    let scheme_end = url.find("://")? + 3;
    let host_end = url.get(scheme_end..)?.find(['/', '?', '#']).map_or(url.len(), |at| scheme_end + at);
    let origin = url.get(..host_end)?;
    let sound =
        origin.len() > scheme_end && origin.bytes().all(|byte| byte.is_ascii_graphic() && !b";,'\"@".contains(&byte));
    (matches!(url.get(..scheme_end), Some("https://" | "http://")) && sound).then_some(origin)
}

impl Login {
    /// What is wrong with it: the key, and why.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        [(&self.authorization_url, "authorization_url"), (&self.token_url, "token_url")]
            .into_iter()
            .find(|(url, _)| origin(url).is_none())
            .map(|(_, key)| key)
    }

    /// The document with this flow as another way to authorise every operation that needs a token.
    pub(crate) fn decorated(&self, mut document: Value) -> Value {
        let scopes: Map<String, Value> =
            OperatorScope::ALL.iter().map(|scope| (scope.to_string(), Value::from(""))).collect();
        document["components"]["securitySchemes"][SCHEME] = json!({
            "type": "oauth2",
            "description": "Log in at the identity provider.",
            "flows": {"authorizationCode": {
                "authorizationUrl": self.authorization_url, "tokenUrl": self.token_url, "scopes": scopes
            }}
        });
        let items = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
        for operation in items.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
            if let Some(needs) = operation["security"][0].get("operator").cloned()
                && let Some(ways) = operation["security"].as_array_mut()
            {
                ways.push(json!({SCHEME: needs}));
            }
        }
        document
    }

    /// How the page asks.
    pub(crate) fn oauth(&self) -> oauth::Config {
        let parameters = self.parameters.clone().into_iter().collect();
        oauth::Config::new()
            .client_id(&self.client_id)
            .use_pkce_with_authorization_code_grant(true)
            .additional_query_string_params(parameters)
    }

    /// The page's content security policy: it also calls the token endpoint's origin.
    pub(crate) fn policy(&self, base: &'static str) -> HeaderValue {
        let also = origin(&self.token_url).unwrap_or_default();
        let policy = base.replace("connect-src 'self'", &format!("connect-src 'self' {also}"));
        HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_addresses_have_an_origin() {
        assert_eq!(origin("https://id.example/realms/x/token?y"), Some("https://id.example"));
        assert_eq!(origin("http://127.0.0.1:3000/token"), Some("http://127.0.0.1:3000"));
        assert_eq!(origin("https://id.example"), Some("https://id.example"));
        for bad in [
            "",
            "id.example",
            "ftp://id.example/",
            "https://",
            "https:///x",
            "https://a b/",
            "https://a;b/",
            "https://a'b/",
            "https://u@h/",
        ] {
            assert_eq!(origin(bad), None, "{bad}");
        }
    }
}
