//! What an issuer's tokens must say beyond who, for whom and until when.

use serde::Deserialize;

use super::{ClaimNames, Groups, jws::UniqueObject, verifier::TokenRefusal};

/// Which `typ` marks an access token of an issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum TokenType {
    /// `at+jwt` (RFC 9068), as it should be.
    #[default]
    #[serde(rename = "at+jwt")]
    AccessToken,
    /// `JWT`, for providers that cannot mark access tokens (Entra). What only other tokens carry is refused instead.
    #[serde(rename = "JWT")]
    Plain,
}

/// Claims that stand in ID tokens and logout tokens only (Core 2 and 3.3.2.11, Back-Channel Logout 2.4 of the
/// `OpenID` Connect standards).
const NOT_OF_ACCESS_TOKENS: [&str; 4] = ["nonce", "at_hash", "c_hash", "events"];

impl TokenType {
    /// Whether a token of this (lower-case) `typ` is taken for an access token.
    pub(super) fn takes(self, typ: &str) -> bool {
        match self {
            Self::AccessToken => matches!(typ, "at+jwt" | "application/at+jwt"),
            Self::Plain => typ == "jwt",
        }
    }
}

/// What an issuer's tokens must say.
#[derive(Debug, Clone)]
pub struct TokenRules {
    /// How its access tokens are marked.
    pub token_type: TokenType,
    /// Claims that must be there, whatever they say.
    pub required: Vec<String>,
    /// The only clients whose tokens are accepted; empty for all of the issuer's.
    pub clients: Vec<String>,
    /// What groups grant; not empty: scopes and tenants come from groups only.
    pub groups: Groups,
}

impl TokenRules {
    /// For issuers with configured keys, such as our own: `nbf` is required.
    pub fn own() -> Self {
        Self::requiring(&["nbf"])
    }

    /// For providers: what RFC 9068 requires.
    pub fn rfc9068() -> Self {
        Self::requiring(&["iat", "jti", "client_id"])
    }

    fn requiring(names: &[&str]) -> Self {
        Self {
            token_type: TokenType::default(),
            required: names.iter().map(|name| (*name).to_owned()).collect(),
            clients: Vec::new(),
            groups: Groups::default(),
        }
    }

    pub(super) fn check(&self, claims: &UniqueObject, names: &ClaimNames) -> Result<(), TokenRefusal> {
        let missing = self.required.iter().any(|name| claims.get(name).is_none());
        // A claim of that name says what the token is for where the header cannot (Keycloak: Bearer, ID, Refresh).
        let other = self.token_type == TokenType::Plain
            && (NOT_OF_ACCESS_TOKENS.iter().any(|name| claims.get(name).is_some())
                || claims.text("typ")?.is_some_and(|typ| !typ.eq_ignore_ascii_case("bearer")));
        if missing || other {
            return Err(TokenRefusal::Claim);
        }
        if self.clients.is_empty() {
            return Ok(());
        }
        let client = claims.find(&names.client).and_then(serde_json::Value::as_str).ok_or(TokenRefusal::Claim)?;
        if self.clients.iter().any(|known| known == client) { Ok(()) } else { Err(TokenRefusal::Claim) }
    }
}
