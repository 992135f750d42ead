//! The worker services, a folder each. Each says which notifications lead where and what a label's output shall be;
//! the loop around it is `runtime`'s.
//!
//! `rendering` is what the two renderers share.
//!
//! Deliberately not here: triggers (`triggers`).

use std::sync::Arc;

use domain::{Clock, ServiceName};

use crate::{ExporterSettings, RenderEngine, runtime::Service};

pub(crate) mod ecc_image_render;
pub(crate) mod esl_image_merger;
pub(crate) mod hardware_exporter;
pub(crate) mod rendering;
pub(crate) mod studio_renderer;

/// The service of that name; none when this build has none.
pub(crate) fn service(
    name: ServiceName,
    exporter: &ExporterSettings,
    engine: RenderEngine,
    clock: &Arc<dyn Clock>,
) -> Option<Arc<dyn Service>> {
    match name {
        ServiceName::EccImageRender => Some(Arc::new(ecc_image_render::EccImageRender::new(engine.ecc))),
        ServiceName::StudioRenderer => Some(Arc::new(studio_renderer::StudioRenderer::new(engine.studio))),
        ServiceName::EslImageMerger => Some(Arc::new(esl_image_merger::EslImageMerger)),
        ServiceName::HardwareExporter => Some(Arc::new(hardware_exporter::HardwareExporter::new(exporter, clock))),
        ServiceName::OperatorGateway | ServiceName::RecordImport => None,
    }
}
