//! The named triggers: one gRPC service per worker service that has some, one file per trigger.
//!
//! A trigger handler validates scope and parameters, then injects parents into its service's own queue and returns. Only
//! the operator gateway may call; every refusal after that is known is written to the audit log, unless CQS, which
//! audits its own, made it.
//!
//! Reading order: [`ask`] (a request, and what each trigger says of its own), [`run`] (the way all of them take), a file
//! per trigger, [`preview`] (a sample, rendered and thrown away), `calls`, `audit`.
//!
//! Deliberately not here: operator tokens and scopes (`gateway` checked them), finding the records (splitting does).

mod access_point_reexport;
mod ask;
mod audit;
mod calls;
mod design_refresh;
mod ecc_store_rerender;
mod label_reexport;
mod model_refresh;
mod preview;
mod run;
mod store_reexport;
mod studio_store_rerender;

use domain::ServiceName;
use proto::{
    ecc_image_render::v1::{
        PreviewModelRefreshRequest, TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse,
        TriggerModelRefreshRequest, TriggerModelRefreshResponse,
        ecc_image_render_triggers_server::{EccImageRenderTriggers, EccImageRenderTriggersServer},
    },
    hardware_exporter::v1::{
        TriggerAccessPointReexportRequest, TriggerAccessPointReexportResponse, TriggerLabelReexportRequest,
        TriggerLabelReexportResponse, TriggerStoreReexportRequest, TriggerStoreReexportResponse,
        hardware_exporter_triggers_server::{HardwareExporterTriggers, HardwareExporterTriggersServer},
    },
    studio_renderer::v1::{
        PreviewDesignRefreshRequest, TriggerDesignRefreshRequest, TriggerDesignRefreshResponse,
        TriggerStudioStoreRerenderRequest, TriggerStudioStoreRerenderResponse,
        studio_renderer_triggers_server::{StudioRendererTriggers, StudioRendererTriggersServer},
    },
    triggers::v1::PreviewResponse,
};
use tonic::{Request, Response, Status, service::Routes};

use crate::{
    WorkerError, WorkerParts,
    runtime::Platform,
    services::{ecc_image_render::Ecc, rendering::Renderer, studio_renderer::Studio},
};
use calls::Calls;
use preview::Previews;

/// The trigger services of the services in `parts`, for a server with the identity layer in front.
pub fn trigger_routes(parts: &WorkerParts) -> Result<Routes, WorkerError> {
    add_trigger_routes(Routes::default(), parts)
}

/// The same, beside the routes of other servers.
pub fn add_trigger_routes(mut routes: Routes, parts: &WorkerParts) -> Result<Routes, WorkerError> {
    let calls_as = |name: ServiceName| {
        let credentials = parts.credentials.get(&name).ok_or(WorkerError::NoCredentials(name))?;
        Ok(Calls::new(&credentials.attach(parts.platform.clone())))
    };
    let platform_as = |name: ServiceName| {
        let credentials = parts.credentials.get(&name).ok_or(WorkerError::NoCredentials(name))?;
        let queue = name.queue().ok_or(WorkerError::UnknownService(name))?;
        Ok(Platform::new(credentials.attach(parts.platform.clone()), queue))
    };
    if parts.services.contains(&ServiceName::EccImageRender) {
        let name = ServiceName::EccImageRender;
        let previews = Previews::new(Renderer::new(parts.engine.ecc), platform_as(name)?);
        let server = EccTriggers { calls: calls_as(name)?, previews };
        routes = routes.add_service(EccImageRenderTriggersServer::new(server));
    }
    if parts.services.contains(&ServiceName::StudioRenderer) {
        let name = ServiceName::StudioRenderer;
        let previews = Previews::new(Renderer::new(parts.engine.studio), platform_as(name)?);
        let server = StudioTriggers { calls: calls_as(name)?, previews };
        routes = routes.add_service(StudioRendererTriggersServer::new(server));
    }
    if parts.services.contains(&ServiceName::HardwareExporter) {
        let server = ExporterTriggers(calls_as(ServiceName::HardwareExporter)?);
        routes = routes.add_service(HardwareExporterTriggersServer::new(server));
    }
    Ok(routes)
}

/// Triggers of the ECC renderer.
struct EccTriggers {
    calls: Calls,
    previews: Previews<Ecc>,
}

/// Triggers of the Studio renderer.
struct StudioTriggers {
    calls: Calls,
    previews: Previews<Studio>,
}

/// Triggers of the exporter.
struct ExporterTriggers(Calls);

#[tonic::async_trait]
impl EccImageRenderTriggers for EccTriggers {
    async fn trigger_model_refresh(
        &self,
        request: Request<TriggerModelRefreshRequest>,
    ) -> Result<Response<TriggerModelRefreshResponse>, Status> {
        run::answer(&self.calls, request).await
    }

    async fn trigger_ecc_store_rerender(
        &self,
        request: Request<TriggerEccStoreRerenderRequest>,
    ) -> Result<Response<TriggerEccStoreRerenderResponse>, Status> {
        run::answer(&self.calls, request).await
    }

    async fn preview_model_refresh(
        &self,
        request: Request<PreviewModelRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        self.previews.answer(&self.calls, request).await
    }
}

#[tonic::async_trait]
impl StudioRendererTriggers for StudioTriggers {
    async fn trigger_design_refresh(
        &self,
        request: Request<TriggerDesignRefreshRequest>,
    ) -> Result<Response<TriggerDesignRefreshResponse>, Status> {
        run::answer(&self.calls, request).await
    }

    async fn trigger_studio_store_rerender(
        &self,
        request: Request<TriggerStudioStoreRerenderRequest>,
    ) -> Result<Response<TriggerStudioStoreRerenderResponse>, Status> {
        run::answer(&self.calls, request).await
    }

    async fn preview_design_refresh(
        &self,
        request: Request<PreviewDesignRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        self.previews.answer(&self.calls, request).await
    }
}

#[tonic::async_trait]
impl HardwareExporterTriggers for ExporterTriggers {
    async fn trigger_store_reexport(
        &self,
        request: Request<TriggerStoreReexportRequest>,
    ) -> Result<Response<TriggerStoreReexportResponse>, Status> {
        run::answer(&self.0, request).await
    }

    async fn trigger_access_point_reexport(
        &self,
        request: Request<TriggerAccessPointReexportRequest>,
    ) -> Result<Response<TriggerAccessPointReexportResponse>, Status> {
        run::answer(&self.0, request).await
    }

    async fn trigger_label_reexport(
        &self,
        request: Request<TriggerLabelReexportRequest>,
    ) -> Result<Response<TriggerLabelReexportResponse>, Status> {
        run::answer(&self.0, request).await
    }
}
