//! The named triggers: one gRPC service per worker service that has some, one file per trigger.
//!
//! A trigger handler validates scope and parameters, then injects parents into its service's own queue and returns. Only
//! the operator gateway may call; every refusal after that is known is written to the audit log, unless CQS, which
//! audits its own, made it.
//!
//! Deliberately not here: operator tokens and scopes (`gateway` checked them), finding the records (splitting does).

mod audit;
mod calls;
mod model_refresh;

use domain::ServiceName;
use proto::ecc_image_render::v1::{
    TriggerModelRefreshRequest, TriggerModelRefreshResponse,
    ecc_image_render_triggers_server::{EccImageRenderTriggers, EccImageRenderTriggersServer},
};
use tonic::{Request, Response, Status, service::Routes};

use crate::{WorkerError, WorkerParts};

/// The trigger services of the services in `parts`, for a server with the identity layer in front.
pub fn trigger_routes(parts: &WorkerParts) -> Result<Routes, WorkerError> {
    add_trigger_routes(Routes::default(), parts)
}

/// The same, beside the routes of other servers.
pub fn add_trigger_routes(mut routes: Routes, parts: &WorkerParts) -> Result<Routes, WorkerError> {
    if parts.services.contains(&ServiceName::EccImageRender) {
        let name = ServiceName::EccImageRender;
        let credentials = parts.credentials.get(&name).ok_or(WorkerError::NoCredentials(name))?;
        let transport = credentials.attach(parts.platform.clone());
        let server = EccTriggers { calls: calls::Calls::new(&transport) };
        routes = routes.add_service(EccImageRenderTriggersServer::new(server));
    }
    Ok(routes)
}

/// Triggers of the ECC renderer.
struct EccTriggers {
    calls: calls::Calls,
}

#[tonic::async_trait]
impl EccImageRenderTriggers for EccTriggers {
    async fn trigger_model_refresh(
        &self,
        request: Request<TriggerModelRefreshRequest>,
    ) -> Result<Response<TriggerModelRefreshResponse>, Status> {
        let caller = daemon::identity::caller(&request).map_err(|refusal| proto::status_from_refusal(&refusal))?;
        let request = request.into_inner();
        match model_refresh::trigger(&self.calls, &caller, &request).await {
            Ok(response) => Ok(Response::new(response)),
            Err(denied) => Err(audit::refuse(&self.calls, model_refresh::attempt(&request), denied).await),
        }
    }
}
