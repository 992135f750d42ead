//! From verified claims to an [`Operator`].

use std::collections::{BTreeMap, BTreeSet};

use domain::{OperatorScope, OperatorSubject, StoreId, TenantId, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{
    LEEWAY_S, Operator, StoreAccess, TENANTS_MAX, groups,
    jws::UniqueObject,
    operator::{Granted, Tenants},
    rules::TokenRules,
    verifier::TokenRefusal,
};

/// Under which names an issuer puts what the gateway needs. A name that begins with `/` is a JSON pointer, for claims
/// within claims (`/realm_access/roles`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimNames {
    /// Scopes: one text separated by spaces, or an array of texts.
    pub scopes: String,
    /// Tenants the token may act on: an array of ids.
    pub tenants: String,
    /// Optional: the only stores it may act on, an array of `tenant/store`.
    pub stores: String,
    /// Groups of the operator, an array of texts; read only when groups are mapped.
    pub groups: String,
    /// The client the token was issued to; read only when the clients are listed.
    pub client: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self {
            scopes: "scope".to_owned(),
            tenants: "tenants".to_owned(),
            stores: "stores".to_owned(),
            groups: "groups".to_owned(),
            client: "client_id".to_owned(),
        }
    }
}

/// What of an issuer decides over claims.
pub(super) struct ClaimPolicy<'i> {
    pub(super) audience: &'i str,
    pub(super) names: &'i ClaimNames,
    pub(super) rules: &'i TokenRules,
    /// Longest span from `nbf` to `exp`, in seconds.
    pub(super) lifetime_s_max: Option<i64>,
}

impl ClaimPolicy<'_> {
    /// The operator that these (already authentic) claims name.
    pub(super) fn operator(&self, claims: &UniqueObject, now: Timestamp) -> Result<Operator, TokenRefusal> {
        self.check_audience(claims)?;
        let expires_s = self.check_lifetime(claims, now)?;
        // A token bound to a client key or certificate proves nothing without that proof, and we cannot check it.
        if claims.get("cnf").is_some() {
            return Err(TokenRefusal::Claim);
        }
        self.rules.check(claims, self.names)?;
        let subject: OperatorSubject =
            claims.text("sub")?.ok_or(TokenRefusal::Claim)?.parse().map_err(|_| TokenRefusal::Claim)?;
        let granted = if self.rules.groups.is_empty() {
            Granted::everywhere(self.scopes(claims)?, self.tenants(claims)?)
        } else {
            let held = claims.find(&self.names.groups).map(texts).transpose()?.unwrap_or_default();
            groups::granted(&self.rules.groups, &held)?
        };
        Ok(Operator::new(subject, granted, Timestamp::from_ms(expires_s.saturating_mul(1000))))
    }

    fn check_audience(&self, claims: &UniqueObject) -> Result<(), TokenRefusal> {
        let meant = match claims.get("aud") {
            Some(Value::String(audience)) => audience == self.audience,
            Some(Value::Array(list)) => {
                if !list.iter().all(Value::is_string) {
                    return Err(TokenRefusal::Claim);
                }
                list.iter().any(|audience| audience.as_str() == Some(self.audience))
            }
            _ => return Err(TokenRefusal::Claim),
        };
        if meant { Ok(()) } else { Err(TokenRefusal::Audience) }
    }

    /// `exp`, once all times are right: `nbf − leeway ≤ now < exp + leeway`, and `iat` not in the future. Without `nbf`
    /// (where the rules do not ask for it) the lifetime begins at `iat`.
    fn check_lifetime(&self, claims: &UniqueObject, now: Timestamp) -> Result<i64, TokenRefusal> {
        let expires = claims.integer("exp")?.ok_or(TokenRefusal::Claim)?;
        let (not_before, issued) = (claims.integer("nbf")?, claims.integer("iat")?);
        let begins = not_before.or(issued).ok_or(TokenRefusal::Claim)?;
        let begun = |second: i64| now.as_ms() >= second.saturating_sub(LEEWAY_S).saturating_mul(1000);
        let over = now.as_ms() >= expires.saturating_add(LEEWAY_S).saturating_mul(1000);
        let short_enough = self.lifetime_s_max.is_none_or(|max| expires.saturating_sub(begins) <= max);
        if begun(begins) && !over && issued.is_none_or(begun) && short_enough {
            Ok(expires)
        } else {
            Err(TokenRefusal::Lifetime)
        }
    }

    /// The scopes we know; others belong to other systems and are ignored.
    fn scopes(&self, claims: &UniqueObject) -> Result<BTreeSet<OperatorScope>, TokenRefusal> {
        match claims.find(&self.names.scopes) {
            None => Ok(BTreeSet::new()),
            Some(Value::String(text)) => Ok(text.split(' ').filter_map(|scope| scope.parse().ok()).collect()),
            Some(list) => Ok(texts(list)?.into_iter().filter_map(|scope| scope.parse().ok()).collect()),
        }
    }

    fn tenants(&self, claims: &UniqueObject) -> Result<Tenants, TokenRefusal> {
        let Some(list) = claims.find(&self.names.tenants) else { return Ok(BTreeMap::new()) };
        let list = texts(list)?;
        if list.len() > TENANTS_MAX {
            return Err(TokenRefusal::Claim);
        }
        let mut tenants = BTreeMap::new();
        for text in list {
            tenants.insert(text.parse().map_err(|_| TokenRefusal::Claim)?, StoreAccess::All);
        }
        let Some(stores) = claims.find(&self.names.stores) else { return Ok(tenants) };
        // Named stores are the only ones: tenants without a named store drop out.
        let mut narrowed: BTreeMap<TenantId, BTreeSet<StoreId>> = BTreeMap::new();
        for text in texts(stores)? {
            let (tenant, store) = text.split_once('/').ok_or(TokenRefusal::Claim)?;
            let tenant: TenantId = tenant.parse().map_err(|_| TokenRefusal::Claim)?;
            if !tenants.contains_key(&tenant) {
                return Err(TokenRefusal::Claim);
            }
            narrowed.entry(tenant).or_default().insert(store.parse().map_err(|_| TokenRefusal::Claim)?);
        }
        Ok(narrowed.into_iter().map(|(tenant, stores)| (tenant, StoreAccess::Only(stores))).collect())
    }
}

fn texts(value: &Value) -> Result<Vec<&str>, TokenRefusal> {
    let Value::Array(list) = value else { return Err(TokenRefusal::Claim) };
    list.iter().map(|entry| entry.as_str().ok_or(TokenRefusal::Claim)).collect()
}
