//! The key that signs plans.

use std::collections::BTreeMap;

use daemon::identity::ServiceKey;
use domain::{ErrorCode, Refusal, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};

use super::{Counted, PLAN_LIFETIME_MS, Plan, PlanScope};

/// `typ` of a plan: never that of an operator's or a service's token, though the key may be a service's.
const TYPE: &str = "plan+jwt";
/// `iss` of a plan.
const ISSUER: &str = "svc:operator-gateway";
/// `aud` of a plan.
const AUDIENCE: &str = "reshelf-plans";
/// Longest plan, in bytes: 200 stores of the longest ids with their counts, signed.
const PLAN_MAX_BYTES: usize = 32 * 1024;

/// The key is no key that can sign and verify.
#[derive(Debug, thiserror::Error)]
#[error("the key cannot verify what it signs")]
pub struct PlanKeyError;

/// Signs plans and reads them again. All gateways of a platform have the same one.
pub struct PlanKey {
    key: ServiceKey,
    public: DecodingKey,
}

impl std::fmt::Debug for PlanKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PlanKey")
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    /// Milliseconds.
    made_ms: i64,
    /// Milliseconds.
    expires_ms: i64,
    scope: String,
    labels: i64,
    stores: BTreeMap<String, i64>,
    more: bool,
}

impl PlanKey {
    /// A key that signs with `key`: the gateway's own, or one for plans alone.
    pub fn new(key: ServiceKey) -> Result<Self, PlanKeyError> {
        let public = key.public().decoding().map_err(|_| PlanKeyError)?;
        Ok(Self { key, public })
    }

    /// A plan of what was counted, and when it ends.
    pub(crate) fn sign(
        &self,
        scope: &PlanScope<'_>,
        counted: Counted,
        now: Timestamp,
    ) -> Result<(String, Timestamp), Refusal> {
        let expires_at = now.plus_ms(PLAN_LIFETIME_MS);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            made_ms: now.as_ms(),
            expires_ms: expires_at.as_ms(),
            scope: scope.digest(),
            labels: counted.labels,
            stores: counted.stores,
            more: counted.more_stores,
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(TYPE.to_owned());
        let text = encode(&header, &claims, self.key.encoding()).map_err(|error| {
            tracing::error!(%error, "a plan could not be signed");
            Refusal::internal()
        })?;
        Ok((text, expires_at))
    }

    /// The plan of `scope` that `text` is. Refused, naming `plan_id`: what we did not sign, what is of another scope,
    /// and what has ended.
    pub(crate) fn read(&self, text: &str, scope: &PlanScope<'_>, now: Timestamp) -> Result<Plan, Refusal> {
        let unknown = || Refusal::field("plan_id", "is not a plan of this gateway: use plan_id of a dry run's answer");
        if text.len() > PLAN_MAX_BYTES {
            return Err(unknown());
        }
        let header = decode_header(text).map_err(|_| unknown())?;
        if header.typ.as_deref() != Some(TYPE) {
            return Err(unknown());
        }
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[AUDIENCE]);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["aud", "iss"]);
        // Lifetimes are checked below, against the injected clock.
        validation.validate_exp = false;
        let claims = decode::<Claims>(text, &self.public, &validation).map_err(|_| unknown())?.claims;
        let plan = Plan {
            scope_digest: claims.scope,
            counted: Counted { labels: claims.labels, stores: claims.stores, more_stores: claims.more },
            made_at: Timestamp::from_ms(claims.made_ms),
            expires_at: Timestamp::from_ms(claims.expires_ms),
        };
        if plan.scope_digest != scope.digest() {
            return Err(Refusal::field("plan_id", "is a plan of another trigger or scope"));
        }
        if now >= plan.expires_at {
            let message = format!("was made at {} and ended at {}; make a new dry run", plan.made_at, plan.expires_at);
            return Err(Refusal::new(ErrorCode::FailedPrecondition, message).at("plan_id"));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use domain::{TenantId, Trigger};

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn counted() -> Counted {
        Counted { labels: 7, stores: [("s1".to_owned(), 7)].into(), more_stores: false }
    }

    #[test]
    fn a_plan_is_read_by_its_key_for_its_scope_until_it_ends() {
        let key = PlanKey::new(ServiceKey::generate().unwrap()).unwrap();
        let (tenant, other): (TenantId, TenantId) = ("acme".parse().unwrap(), "rival".parse().unwrap());
        let store = "s1".parse().unwrap();
        let scope =
            PlanScope { trigger: Trigger::EccStoreRerender, tenant: &tenant, store: Some(&store), record: None };
        let (text, expires_at) = key.sign(&scope, counted(), NOW).unwrap();
        assert_eq!(expires_at, NOW.plus_ms(86_400_000));
        assert_eq!(key.read(&text, &scope, NOW).unwrap().counted, counted());
        assert!(key.read(&text, &scope, expires_at.plus_ms(-1)).is_ok());

        let refused = |key: &PlanKey, text: &str, scope: &PlanScope<'_>, now| {
            let refusal = key.read(text, scope, now).unwrap_err();
            assert_eq!(refusal.field, "plan_id");
            refusal.code
        };
        assert_eq!(refused(&key, &text, &scope, expires_at), ErrorCode::FailedPrecondition);
        for elsewhere in [
            PlanScope { trigger: Trigger::StudioStoreRerender, ..scope },
            PlanScope { tenant: &other, ..scope },
            PlanScope { store: None, ..scope },
        ] {
            assert_eq!(refused(&key, &text, &elsewhere, NOW), ErrorCode::InvalidArgument);
        }
        let stranger = PlanKey::new(ServiceKey::generate().unwrap()).unwrap();
        assert_eq!(refused(&stranger, &text, &scope, NOW), ErrorCode::InvalidArgument);
        let forged = text.replace('.', "x.");
        for text in ["", "a.b.c", forged.as_str(), &"x".repeat(PLAN_MAX_BYTES + 1)] {
            assert_eq!(refused(&key, text, &scope, NOW), ErrorCode::InvalidArgument);
        }
    }
}
