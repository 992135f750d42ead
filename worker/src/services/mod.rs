//! The worker services, a folder each. Each says which notifications lead where and what a label's output shall be;
//! the loop around it is `runtime`'s.
//!
//! Deliberately not here: triggers (`triggers`), the studio renderer (not in this build).

use std::sync::Arc;

use domain::ServiceName;

use crate::{ExporterSettings, runtime::Service};

pub(crate) mod ecc_image_render;
pub(crate) mod esl_image_merger;
pub(crate) mod hardware_exporter;

/// The service of that name; none when this build has none.
pub(crate) fn service(name: ServiceName, exporter: &ExporterSettings) -> Option<Arc<dyn Service>> {
    match name {
        ServiceName::EccImageRender => Some(Arc::new(ecc_image_render::EccImageRender::new())),
        ServiceName::EslImageMerger => Some(Arc::new(esl_image_merger::EslImageMerger)),
        ServiceName::HardwareExporter => Some(Arc::new(hardware_exporter::HardwareExporter::new(exporter))),
        ServiceName::StudioRenderer | ServiceName::OperatorGateway | ServiceName::RecordImport => None,
    }
}
