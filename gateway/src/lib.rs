//! The operator gateway: REST for people and scripts, gRPC to the platform. It owns nothing.
//!
//! Read in this order: [`router()`] (one page), `routes/` (one file per resource), `auth/` (who may do what), `problem`
//! (every refusal), `serve` (bounds that do not depend on the client).
//!
//! Invariants
//! - Who acts comes only from a verified operator token; no body or path can set it.
//! - Another tenant's object and an unknown object give the same answer.
//! - A refusal of a trigger call after authentication leaves exactly one audit row: the trigger service's when it
//!   refused, ours otherwise.
//! - The gateway has no queue and no way to put anything into one: it calls named triggers.
//! - The document at `/openapi.json` is made from the routes; no route is undocumented.
//!
//! Deliberately not here: storage, policy of the triggers themselves.

mod audit;
mod auth;
mod backend;
mod body;
mod config;
mod document;
mod edge;
mod follow;
mod gauges;
mod login;
mod metering;
mod notify;
mod parameters;
mod plan;
mod problem;
mod query;
mod rates;
mod router;
mod routes;
mod serve;
mod state;
pub mod token;
mod wire;

pub use auth::{
    ClaimNames, GroupError, GroupGrant, Groups, Issuer, IssuerError, IssuerSettings, KeySource, Operator,
    OperatorAlgorithm, OperatorVerifier, PublicKeyText, TokenRefusal, TokenRules, TokenType,
};
pub use config::{ConfigProblem, GatewayConfig, IssuerConfig, KeyConfig, LogFormatName, listen_allowed};
pub use login::Login;
pub use notify::{EndpointConfig, WebhookProblem, Webhooks, WebhooksConfig};
pub use plan::{PlanKey, PlanKeyError};
pub use problem::Problem;
pub use rates::{Rule, Rules};
pub use router::{openapi_json, router};
pub use serve::{serve, serve_over};
pub use state::{GatewayParts, OperatorPolicy};
