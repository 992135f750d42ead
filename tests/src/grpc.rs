//! Raw gRPC clients with any service's key: what a service (or an impostor) can do at CQS and DTOflow directly.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use daemon::{
    SystemClock,
    identity::{ServiceCredentials, ServiceKey},
};
use domain::{Clock, ServiceName};
use prost::bytes::{Buf, BufMut, Bytes};
use proto::{
    CqsClient, DtoFlowClient, EccTriggersClient, ExporterTriggersClient, StudioTriggersClient, Transport, cqs_client,
    dtoflow_client, ecc_triggers_client, exporter_triggers_client, refusal_from_status, studio_triggers_client,
};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Ways into the platform and the triggers, and everybody's keys.
#[derive(Debug, Clone)]
pub struct Doors {
    /// To CQS and DTOflow, no credentials attached.
    pub platform: Transport,
    /// To the trigger services of the renderers, no credentials attached.
    pub triggers: Transport,
    /// Private keys by service.
    pub keys: BTreeMap<ServiceName, ServiceKey>,
}

impl Doors {
    /// Reads the keys from a folder of `{service}.key` files.
    pub fn keys_in(folder: &Path) -> BTreeMap<ServiceName, ServiceKey> {
        ServiceName::ALL
            .iter()
            .map(|service| {
                let path = folder.join(format!("{service}.key"));
                (*service, ServiceKey::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
            })
            .collect()
    }

    fn as_service(&self, service: ServiceName, transport: &Transport) -> Transport {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let key = self.keys.get(&service).unwrap_or_else(|| panic!("there is a key of {service}"));
        ServiceCredentials::new(service, key.clone(), clock).attach(transport.clone())
    }

    /// CQS as `service`.
    pub fn cqs(&self, service: ServiceName) -> CqsClient {
        cqs_client(self.as_service(service, &self.platform))
    }

    /// DTOflow as `service`.
    pub fn dtoflow(&self, service: ServiceName) -> DtoFlowClient {
        dtoflow_client(self.as_service(service, &self.platform))
    }

    /// The ECC renderer's triggers as `service`.
    pub fn ecc_triggers(&self, service: ServiceName) -> EccTriggersClient {
        ecc_triggers_client(self.as_service(service, &self.triggers))
    }

    /// The exporter's triggers as `service`.
    pub fn exporter_triggers(&self, service: ServiceName) -> ExporterTriggersClient {
        exporter_triggers_client(self.as_service(service, &self.triggers))
    }

    /// The Studio renderer's triggers as `service`.
    pub fn studio_triggers(&self, service: ServiceName) -> StudioTriggersClient {
        studio_triggers_client(self.as_service(service, &self.triggers))
    }
}

/// A call's refusal as `CODE` or `CODE field`.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
    let status = result.expect_err("the call must be refused");
    let refusal = refusal_from_status(&status);
    if refusal.field.is_empty() { refusal.code.to_string() } else { format!("{} {}", refusal.code, refusal.field) }
}

/// Sends bytes as they are, and looks at no answer.
#[derive(Debug, Clone, Copy)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        from.advance(from.remaining());
        Ok(Some(()))
    }
}
