//! Clients with the platform's message bounds set, over any transport.

use domain::limits::MESSAGE_MAX_BYTES;

use crate::{
    Transport, cqs::v1::change_queue_service_client::ChangeQueueServiceClient,
    dtoflow::v1::dto_flow_service_client::DtoFlowServiceClient,
    ecc_image_render::v1::ecc_image_render_triggers_client::EccImageRenderTriggersClient,
    hardware_exporter::v1::hardware_exporter_triggers_client::HardwareExporterTriggersClient,
    studio_renderer::v1::studio_renderer_triggers_client::StudioRendererTriggersClient,
};

/// A client of the change queue service.
pub type CqsClient = ChangeQueueServiceClient<Transport>;
/// A client of DTOflow.
pub type DtoFlowClient = DtoFlowServiceClient<Transport>;
/// A client of the ECC renderer's triggers.
pub type EccTriggersClient = EccImageRenderTriggersClient<Transport>;
/// A client of the Studio renderer's triggers.
pub type StudioTriggersClient = StudioRendererTriggersClient<Transport>;
/// A client of the exporter's triggers.
pub type ExporterTriggersClient = HardwareExporterTriggersClient<Transport>;

/// A CQS client over `transport` (already carrying credentials).
pub fn cqs_client(transport: Transport) -> CqsClient {
    ChangeQueueServiceClient::new(transport)
        .max_decoding_message_size(MESSAGE_MAX_BYTES)
        .max_encoding_message_size(MESSAGE_MAX_BYTES)
}

/// A DTOflow client over `transport` (already carrying credentials).
pub fn dtoflow_client(transport: Transport) -> DtoFlowClient {
    DtoFlowServiceClient::new(transport)
        .max_decoding_message_size(MESSAGE_MAX_BYTES)
        .max_encoding_message_size(MESSAGE_MAX_BYTES)
}

/// A client of the ECC renderer's triggers over `transport` (already carrying credentials).
pub fn ecc_triggers_client(transport: Transport) -> EccTriggersClient {
    EccImageRenderTriggersClient::new(transport)
        .max_decoding_message_size(MESSAGE_MAX_BYTES)
        .max_encoding_message_size(MESSAGE_MAX_BYTES)
}

/// A client of the Studio renderer's triggers over `transport` (already carrying credentials).
pub fn studio_triggers_client(transport: Transport) -> StudioTriggersClient {
    StudioRendererTriggersClient::new(transport)
        .max_decoding_message_size(MESSAGE_MAX_BYTES)
        .max_encoding_message_size(MESSAGE_MAX_BYTES)
}

/// A client of the exporter's triggers over `transport` (already carrying credentials).
pub fn exporter_triggers_client(transport: Transport) -> ExporterTriggersClient {
    HardwareExporterTriggersClient::new(transport)
}
