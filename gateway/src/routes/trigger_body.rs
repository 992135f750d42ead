//! The body of a trigger: the fields that every trigger has, what it is about, and the one call that is its own.

use domain::{RecordId, Refusal, StoreId, Trigger};
use serde::de::DeserializeOwned;

use super::{
    control_view::{Limits, StopWhen},
    trigger_call::{Answer, Asked},
};
use crate::{backend::CallError, state::Gateway};

/// The body of one trigger. `trigger_body!` makes it with the common fields.
pub(super) trait TriggerBody: CommonFields + DeserializeOwned + Send + Sync {
    /// The trigger.
    const TRIGGER: Trigger;
    /// The field that names what it is about; an unknown one and one outside the token give the same answer.
    const NAMED: &'static str;
    /// What it is about.
    fn place(&self) -> Result<Place, Refusal>;
    /// `next_page_token` of triggers whose dry run answers pages; else none.
    fn page_token(&self) -> Option<&str> {
        None
    }
    /// Calls the service; `asked.dry_run` says how.
    fn call(gateway: &Gateway, asked: &Asked) -> impl Future<Output = Result<Answer, CallError>> + Send;
}

/// A body with the fields that every trigger has.
pub(super) trait CommonFields {
    /// Those fields.
    fn common(&self) -> Common<'_>;
}

/// The fields that every trigger has, as they came.
pub(super) struct Common<'a> {
    pub(super) tenant_id: &'a str,
    pub(super) reason: &'a str,
    pub(super) tracking_id: &'a str,
    pub(super) dry_run: bool,
    pub(super) sla_timestamp: Option<&'a str>,
    /// The plan to hold the run to, and how far it may differ.
    pub(super) plan: (Option<&'a str>, Option<i64>),
    /// How the operation shall run.
    pub(super) terms: (Option<Limits>, Option<StopWhen>),
}

/// What a trigger is about, below its tenant.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// Its store; none for what is the tenant's.
    pub(super) store: Option<StoreId>,
    /// Its model, design, access point or label; none for a whole store.
    pub(super) record: Option<RecordId>,
}

/// A documented body: `tenant_id`, the fields that say what it is about, the common ones where `..` stands, and those
/// after it.
macro_rules! trigger_body {
    (
        $(#[$about:meta])*
        pub(crate) struct $name:ident {
            $($(#[$named_about:meta])* $named:ident: String,)*
            ..
            $($(#[$more_about:meta])* $more:ident: Option<String>,)*
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Deserialize, utoipa::ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// The tenant.
            #[schema(example = "demo")]
            tenant_id: String,
            $($(#[$named_about])* $named: String,)*
            /// Why, 1 to 500 characters without control characters. Stands in the audit log.
            #[schema(min_length = 1, max_length = 500)]
            reason: String,
            /// Names the operation within its tenant. Repeating a request with the same id repeats its answer.
            #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
            tracking_id: String,
            /// True: validate and count, enqueue nothing. Never assumed.
            dry_run: bool,
            /// When it should be done, RFC 3339. Left out: now plus the trigger's bulk allowance, if it has one, so that ordinary
            /// changes go first.
            sla_timestamp: Option<String>,
            /// `plan_id` of a dry run's answer: the run is held to what that counted.
            plan_id: Option<String>,
            /// Labels that may have come or gone since the plan, summed over stores. Left out: none. With `plan_id` only.
            #[schema(minimum = 0)]
            #[serde(default, deserialize_with = "crate::body::whole_or_none")]
            max_drift: Option<i64>,
            /// How fast it may go; left out: as fast as there are workers.
            #[schema(value_type = Option<$crate::routes::control_view::Limits>)]
            limits: Option<$crate::body::Object<$crate::routes::control_view::Limits>>,
            /// When it stops itself; left out: never.
            #[schema(value_type = Option<$crate::routes::control_view::StopWhen>)]
            stop_when: Option<$crate::body::Object<$crate::routes::control_view::StopWhen>>,
            $($(#[$more_about])* $more: Option<String>,)*
        }

        impl $crate::routes::trigger_body::CommonFields for $name {
            fn common(&self) -> $crate::routes::trigger_body::Common<'_> {
                $crate::routes::trigger_body::Common {
                    tenant_id: &self.tenant_id,
                    reason: &self.reason,
                    tracking_id: &self.tracking_id,
                    dry_run: self.dry_run,
                    sla_timestamp: self.sla_timestamp.as_deref(),
                    plan: (self.plan_id.as_deref(), self.max_drift),
                    terms: (self.limits.as_ref().map(|limits| limits.0), self.stop_when.as_ref().map(|stop| stop.0)),
                }
            }
        }
    };
}
pub(super) use trigger_body;
