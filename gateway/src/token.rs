//! Minting operator tokens with the local issuer's key: for `reshelf dev` and `reshelf token`. Production tokens come
//! from an identity provider.

use domain::{OperatorScope, OperatorSubject, StoreId, TenantId, Timestamp};
use jsonwebtoken::{Algorithm, Header, encode};
use serde::Serialize;

use daemon::identity::ServiceKey;

/// `iss` of the local issuer.
pub const LOCAL_ISSUER: &str = "reshelf-dev";
/// `aud` of the local issuer's tokens; never that of service tokens.
pub const LOCAL_AUDIENCE: &str = "reshelf-operators";

/// The token could not be signed.
#[derive(Debug, thiserror::Error)]
#[error("the key could not sign the token")]
pub struct MintError;

/// What a token shall say.
#[derive(Debug, Clone)]
pub struct OperatorClaims {
    /// Whom it names.
    pub subject: OperatorSubject,
    /// What it allows.
    pub scopes: Vec<OperatorScope>,
    /// Where.
    pub tenants: Vec<TenantId>,
    /// The only stores, when given.
    pub stores: Option<Vec<(TenantId, StoreId)>>,
    /// From when on.
    pub issued_at: Timestamp,
    /// For how long, in seconds.
    pub lifetime_s: i64,
}

#[derive(Serialize)]
struct Claims<'c> {
    iss: &'static str,
    aud: &'static str,
    sub: &'c str,
    iat: i64,
    nbf: i64,
    exp: i64,
    scope: String,
    tenants: Vec<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stores: Option<Vec<String>>,
}

/// A token of the local issuer, signed with `key`.
pub fn mint(key: &ServiceKey, claims: &OperatorClaims) -> Result<String, MintError> {
    let issued = claims.issued_at.as_ms().div_euclid(1000);
    let scopes: Vec<&str> = claims.scopes.iter().map(|scope| scope.as_str()).collect();
    let body = Claims {
        iss: LOCAL_ISSUER,
        aud: LOCAL_AUDIENCE,
        sub: claims.subject.as_str(),
        iat: issued,
        nbf: issued,
        exp: issued.saturating_add(claims.lifetime_s),
        scope: scopes.join(" "),
        tenants: claims.tenants.iter().map(TenantId::as_str).collect(),
        stores: claims
            .stores
            .as_ref()
            .map(|stores| stores.iter().map(|(tenant, store)| format!("{tenant}/{store}")).collect()),
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.typ = Some("at+jwt".to_owned());
    encode(&header, &body, key.encoding()).map_err(|_| MintError)
}
