//! What the routes share.

use std::{collections::BTreeMap, fmt, sync::Arc};

use daemon::shutdown::Shutdown;
use domain::{Clock, IdSource, ServiceName};
use http::HeaderValue;
use proto::{CqsClient, DtoFlowClient, EccTriggersClient, ExporterTriggersClient, StudioTriggersClient, Transport};
use tokio::sync::Semaphore;

use crate::{
    auth::OperatorVerifier,
    edge::CSP_DOCS,
    follow::Follows,
    gauges::Gauges,
    login::Login,
    metering::Metering,
    notify::Webhooks,
    plan::PlanKey,
    rates::{Rates, Rules},
};

/// Requests in hand at once; more are shed with 503. Each costs a few platform calls at most, and operators are few.
const CONCURRENCY_MAX: usize = 256;

/// What a gateway is composed of.
pub struct GatewayParts {
    /// To CQS and DTOflow, already showing the identity of `operator-gateway`.
    pub platform: Transport,
    /// To the trigger RPCs of each service, already showing the identity of `operator-gateway`.
    pub triggers: BTreeMap<ServiceName, Transport>,
    /// Whose operator tokens are accepted.
    pub operators: OperatorVerifier,
    /// Signs plans and reads them again; all gateways of a platform have the same one.
    pub plans: PlanKey,
    /// What operators may do by themselves.
    pub policy: OperatorPolicy,
    /// Origins whose pages may call the API; empty for none.
    pub cors: Vec<HeaderValue>,
    /// Where the page at `/docs` logs in; none: tokens are pasted.
    pub login: Option<Login>,
    /// How much one operator, tenant and address may ask for.
    pub rules: Rules,
    /// Whom to tell what happens to operations.
    pub webhooks: Webhooks,
    /// Ends what runs beside the requests: streams and deliveries.
    pub shutdown: Shutdown,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Request ids.
    pub ids: Arc<dyn IdSource>,
}

impl fmt::Debug for GatewayParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayParts").field("triggers", &self.triggers.keys()).finish_non_exhaustive()
    }
}

/// What operators may do by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorPolicy {
    /// An operation over more labels than this waits for a second operator's approval.
    pub approval_above_labels: i64,
}

impl Default for OperatorPolicy {
    /// 50,000 labels: more than any one store has, so what concerns a single store never waits for a second person and
    /// what concerns many stores does.
    fn default() -> Self {
        Self { approval_above_labels: 50_000 }
    }
}

/// The state behind every route.
pub(crate) struct Gateway {
    cqs: CqsClient,
    dtoflow: DtoFlowClient,
    platform: Transport,
    triggers: BTreeMap<ServiceName, Transport>,
    pub(crate) operators: OperatorVerifier,
    pub(crate) plans: PlanKey,
    pub(crate) policy: OperatorPolicy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) metering: Metering,
    pub(crate) gauges: Gauges,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) follows: Arc<Follows>,
    pub(crate) webhooks: Webhooks,
    pub(crate) shutdown: Shutdown,
    pub(crate) rates: Rates,
    /// The content security policy of the page at `/docs`.
    pub(crate) docs_policy: HeaderValue,
}

impl Gateway {
    pub(crate) fn new(parts: GatewayParts) -> (Self, Vec<HeaderValue>) {
        let gateway = Self {
            cqs: proto::cqs_client(parts.platform.clone()),
            dtoflow: proto::dtoflow_client(parts.platform.clone()),
            platform: parts.platform,
            triggers: parts.triggers,
            operators: parts.operators,
            docs_policy: parts
                .login
                .as_ref()
                .map_or(HeaderValue::from_static(CSP_DOCS), |login| login.policy(CSP_DOCS)),
            rates: Rates::new(parts.rules, Arc::clone(&parts.clock)),
            plans: parts.plans,
            policy: parts.policy,
            clock: parts.clock,
            ids: parts.ids,
            metering: Metering::new(),
            gauges: Gauges::default(),
            follows: Arc::default(),
            webhooks: parts.webhooks,
            shutdown: parts.shutdown,
            slots: Arc::new(Semaphore::new(CONCURRENCY_MAX)),
        };
        (gateway, parts.cors)
    }

    /// A CQS client for one call.
    pub(crate) fn cqs(&self) -> CqsClient {
        self.cqs.clone()
    }

    /// A DTOflow client for one call.
    pub(crate) fn dtoflow(&self) -> DtoFlowClient {
        self.dtoflow.clone()
    }

    /// To CQS and DTOflow, for calls that are neither's.
    pub(crate) fn platform(&self) -> Transport {
        self.platform.clone()
    }

    /// A client of the ECC renderer's triggers; none when no address is configured.
    pub(crate) fn ecc_triggers(&self) -> Option<EccTriggersClient> {
        self.triggers.get(&ServiceName::EccImageRender).cloned().map(proto::ecc_triggers_client)
    }

    /// A client of the Studio renderer's triggers; none when no address is configured.
    pub(crate) fn studio_triggers(&self) -> Option<StudioTriggersClient> {
        self.triggers.get(&ServiceName::StudioRenderer).cloned().map(proto::studio_triggers_client)
    }

    /// A client of the exporter's triggers; none when no address is configured.
    pub(crate) fn exporter_triggers(&self) -> Option<ExporterTriggersClient> {
        self.triggers.get(&ServiceName::HardwareExporter).cloned().map(proto::exporter_triggers_client)
    }

    /// Every configured trigger service.
    pub(crate) fn trigger_services(&self) -> impl Iterator<Item = (ServiceName, &Transport)> {
        self.triggers.iter().map(|(service, transport)| (*service, transport))
    }
}
