//! `/v1/me`

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{Operator, StoreAccess},
    problem::ReadProblems,
};

/// A tenant the token may act on.
#[derive(Serialize, ToSchema)]
pub(crate) struct TenantAccess {
    /// The tenant.
    tenant_id: String,
    /// The only stores; absent: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    stores: Option<Vec<String>>,
    /// The scopes that hold here, where they are not all that the token has; absent: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
}

/// What the token says.
#[derive(Serialize, ToSchema)]
pub(crate) struct Me {
    /// `sub`, as it stands in audit rows.
    subject: String,
    /// The scopes it has, of those this gateway knows, at one of its tenants at least.
    scopes: Vec<String>,
    /// The tenants it may act on.
    tenants: Vec<TenantAccess>,
    /// When it ends, RFC 3339.
    expires_at: String,
}

/// Who the token says you are.
#[utoipa::path(
    get, path = "/v1/me", operation_id = "get_me", tag = "operator",
    security(("operator" = [])),
    responses((status = 200, description = "Subject, scopes, tenants, expiry.", body = Me), ReadProblems)
)]
pub(crate) async fn get_me(operator: Operator) -> Json<Me> {
    let all = operator.scopes().count();
    let tenants = operator
        .access()
        .map(|(tenant, access)| TenantAccess {
            tenant_id: tenant.to_string(),
            stores: match access {
                StoreAccess::All => None,
                StoreAccess::Only(stores) => Some(stores.iter().map(ToString::to_string).collect()),
            },
            scopes: Some(operator.scopes_at(tenant).map(|scope| scope.to_string()).collect::<Vec<_>>())
                .filter(|here| here.len() < all),
        })
        .collect();
    Json(Me {
        subject: operator.subject().to_string(),
        scopes: operator.scopes().map(|scope| scope.to_string()).collect(),
        tenants,
        expires_at: operator.expires_at().to_string(),
    })
}
