//! A platform in memory, its records, and ways to wait for what becomes of them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use cqs::{CqsServer, CqsServerParts, CqsStore as _, Wakeups, memory::MemoryCqsStore};
use daemon::{
    identity::{PublicKey, Registry, ServiceCredentials, ServiceKey, Verifier},
    serve,
    shutdown::Shutdown,
};
use domain::{DtoType, ManualClock, SeededIds, ServiceName, Timestamp};
use dtoflow::{DtoFlowServer, DtoFlowServerParts, memory::MemoryDtoStore};
use picture::Picture;
use prost::Message;
use proto::{
    CqsClient, DtoFlowClient, EccTriggersClient, ExporterTriggersClient, StudioTriggersClient, Transport,
    cqs::v1::{AuditEntry, GetOperationRequest, ListAuditRequest, Operation, OperationState},
    dtoflow::v1::{
        DeleteItem, DeleteManyRequest, Dto, GetKey, GetManyRequest, PutItem, PutManyRequest, TouchDtoRequest,
    },
    ecc_image_render::v1::TriggerModelRefreshRequest,
    records::v1 as records,
};
use tonic::service::Routes;

use crate::{
    ExporterSettings, PipelineSettings, RenderEngine, WorkerParts, runtime::Service, trigger_routes,
    worker::start_services,
};

/// Longest wait for anything here, in real time.
const PATIENCE: Duration = Duration::from_secs(20);
/// The lease of workers here unless a test says otherwise, in milliseconds.
pub(super) const LEASE_MS: i32 = 30_000;

pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    pub(super) dir: tempfile::TempDir,
    pub(super) credentials: BTreeMap<ServiceName, ServiceCredentials>,
    /// The lease of its workers, in milliseconds.
    pub(super) lease_ms: i32,
    /// Most items of its workers' batches.
    pub(super) batch_max: i32,
    /// How its renderers draw.
    pub(super) engine: RenderEngine,
    /// How its exporter is set up, but for the folder.
    pub(super) settings: ExporterSettings,
    /// How workers reach the platform.
    pub(super) worker_transport: Transport,
    queues: MemoryCqsStore,
    platform: Transport,
    verifier: Verifier,
}

/// A worker of a [`World`].
pub(super) struct Running(Shutdown);

impl Running {
    /// Asks it to stop and waits until it has.
    pub(super) async fn stop(self) {
        self.0.stop().await;
    }

    /// Ends it in the middle of whatever it does, as a kill would.
    pub(super) async fn kill(self) {
        self.0.hard.cancel();
        self.stop().await;
    }
}

impl World {
    /// A platform with the records every label here needs, and no worker.
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_ms(1_800_000_000_000)));
        let keys: Vec<(ServiceName, ServiceKey)> =
            ServiceName::ALL.iter().map(|name| (*name, ServiceKey::generate().unwrap())).collect();
        let public: Vec<(ServiceName, PublicKey)> =
            keys.iter().map(|(name, key)| (*name, key.public().clone())).collect();
        let registry = Registry::parse(&Registry::standard_document(&public).unwrap()).unwrap();
        let verifier = Verifier::new(Arc::new(registry), clock.clone());
        let wakeups = Wakeups::default();
        let queues = MemoryCqsStore::new();
        let dtos = MemoryDtoStore::new(queues.clone());
        let cqs_parts =
            CqsServerParts { clock: clock.clone(), ids: Arc::new(SeededIds::new(1)), wakeups: wakeups.clone() };
        let routes = Routes::new(CqsServer::new(Arc::new(queues.clone()), cqs_parts).into_service()).add_service(
            DtoFlowServer::new(Arc::new(dtos), DtoFlowServerParts { clock: clock.clone(), wakeups }).into_service(),
        );
        let platform = serve::in_process(routes, verifier.clone());
        let credentials =
            keys.into_iter().map(|(name, key)| (name, ServiceCredentials::new(name, key, clock.clone()))).collect();
        let worker_transport = platform.clone();
        Self {
            clock,
            dir: tempfile::tempdir().unwrap(),
            credentials,
            lease_ms: LEASE_MS,
            batch_max: PipelineSettings::default().batch_max,
            engine: RenderEngine::default(),
            settings: ExporterSettings::default(),
            worker_transport,
            queues,
            platform,
            verifier,
        }
    }

    pub(super) fn exporter(&self) -> ExporterSettings {
        ExporterSettings { folder: self.dir.path().to_owned(), ..self.settings.clone() }
    }

    fn parts(&self) -> WorkerParts {
        WorkerParts {
            services: vec![
                ServiceName::EccImageRender,
                ServiceName::StudioRenderer,
                ServiceName::EslImageMerger,
                ServiceName::HardwareExporter,
            ],
            platform: self.worker_transport.clone(),
            credentials: self.credentials.clone(),
            exporter: self.exporter(),
            engine: self.engine,
            pipelines: PipelineSettings {
                wait_ms: 200,
                lease_ms: self.lease_ms,
                batch_max: self.batch_max,
                ..PipelineSettings::default()
            },
            clock: self.clock.clone(),
            ids: Arc::new(SeededIds::new(2)),
            shutdown: Shutdown::default(),
        }
    }

    /// A worker with all services.
    pub(super) async fn work(&self) -> Running {
        let services = self.parts().services;
        self.work_with(services.iter().map(|name| self.service(*name)).collect()).await
    }

    /// A service as the program runs it.
    pub(super) fn service(&self, name: ServiceName) -> Arc<dyn Service> {
        crate::services::service(name, &self.exporter(), self.engine, &self.parts().clock).unwrap()
    }

    /// A worker with these services.
    pub(super) async fn work_with(&self, services: Vec<Arc<dyn Service>>) -> Running {
        let parts = self.parts();
        let shutdown = parts.shutdown.clone();
        start_services(parts, services).await.unwrap();
        Running(shutdown)
    }

    pub(super) fn transport(&self, service: ServiceName) -> Transport {
        self.credentials[&service].attach(self.platform.clone())
    }

    pub(super) fn dtoflow(&self, service: ServiceName) -> DtoFlowClient {
        proto::dtoflow_client(self.transport(service))
    }

    pub(super) fn cqs(&self, service: ServiceName) -> CqsClient {
        proto::cqs_client(self.transport(service))
    }

    /// The ECC renderer's triggers, called as `service`.
    pub(super) fn triggers(&self, service: ServiceName) -> EccTriggersClient {
        proto::ecc_triggers_client(self.trigger_transport(service))
    }

    /// The exporter's triggers, called as `service`.
    pub(super) fn exporter_triggers(&self, service: ServiceName) -> ExporterTriggersClient {
        proto::exporter_triggers_client(self.trigger_transport(service))
    }

    /// The Studio renderer's triggers, called as `service`.
    pub(super) fn studio_triggers(&self, service: ServiceName) -> StudioTriggersClient {
        proto::studio_triggers_client(self.trigger_transport(service))
    }

    /// They reach the platform whatever becomes of the workers' way there.
    fn trigger_transport(&self, service: ServiceName) -> Transport {
        let routes = trigger_routes(&WorkerParts { platform: self.platform.clone(), ..self.parts() }).unwrap();
        self.credentials[&service].attach(serve::in_process(routes, self.verifier.clone()))
    }

    pub(super) async fn put(&self, dto_type: DtoType, urn: &str, record: impl Message) {
        self.put_many(vec![(dto_type, urn.to_owned(), record.encode_to_vec())]).await;
    }

    /// Writes records, each given by its type, name and bytes, in one call.
    pub(super) async fn put_many(&self, records: Vec<(DtoType, String, Vec<u8>)>) {
        let item = |(dto_type, dto_id, payload): (DtoType, String, Vec<u8>)| PutItem {
            dto_type: dto_type.to_string(),
            dto_id,
            payload: payload.into(),
            ..PutItem::default()
        };
        let request = PutManyRequest { items: records.into_iter().map(item).collect(), lease: None };
        self.dtoflow(ServiceName::RecordImport).put_many(request).await.unwrap();
    }

    pub(super) async fn delete(&self, dto_type: DtoType, urn: &str) {
        let item = DeleteItem { dto_type: dto_type.to_string(), dto_id: urn.into(), ..DeleteItem::default() };
        let request = DeleteManyRequest { items: vec![item], lease: None };
        self.dtoflow(ServiceName::RecordImport).delete_many(request).await.unwrap();
    }

    pub(super) async fn touch(&self, dto_type: DtoType, urn: &str) {
        let request = TouchDtoRequest {
            dto_type: dto_type.to_string(),
            dto_id: vec![urn.into()],
            reason: "test".into(),
            tracking_id: "touch-1".into(),
            sla_timestamp: None,
            operator_subject: "ops@example".into(),
        };
        self.dtoflow(ServiceName::OperatorGateway).touch_dto(request).await.unwrap();
    }

    /// The store's type and access point, and a model that writes the item's name and `version`.
    pub(super) async fn store(&self) {
        let esl_type = records::EslType { width: 96, height: 32, palette: 1, rotation: 0, name: String::new() };
        self.put(DtoType::EslType, "t/T/esltypes/X", esl_type).await;
        let access_point = records::AccessPoint { driver: "folder".into(), address: String::new() };
        self.put(DtoType::AccessPoint, "t/T/s/S/accesspoints/A", access_point).await;
    }

    pub(super) async fn model(&self, model: &str, version: &str) {
        let layout = format!(
            r#"{{"ecc":1,"name":"{model}","variants":[{{"width":96,"height":32,"elements":[
               {{"kind":"text","id":"name","box":[0,0,96,32],"text":"{{item.name}} {version}","size":12}}]}}]}}"#
        );
        self.put_layout(model, layout).await;
    }

    pub(super) async fn put_layout(&self, model: &str, layout: String) {
        let record = records::EccModel { layout, name: model.into() };
        self.put(DtoType::EccModel, &format!("t/T/s/S/eccmodels/{model}"), record).await;
    }

    pub(super) async fn item(&self, item: &str, name: &str) {
        let values = BTreeMap::from([("name".to_owned(), name.to_owned())]);
        self.put(DtoType::StoreItemValues, &format!("t/T/s/S/items/{item}"), records::StoreItemValues { values }).await;
    }

    pub(super) async fn esl(&self, label: &str) {
        let esl = records::StoreEsl {
            esltype_id: "X".into(),
            accesspoint_id: "A".into(),
            hardware_address: format!("hw-{label}"),
        };
        self.put(DtoType::StoreEsl, &format!("t/T/s/S/esls/{label}"), esl).await;
    }

    pub(super) async fn link(&self, label: &str, item: &str, model: &str) {
        let link = records::EccLink { item_id: item.into(), model_id: model.into(), parameters: BTreeMap::new() };
        self.put(DtoType::EccLink, &format!("t/T/s/S/ecclinks/{label}"), link).await;
    }

    pub(super) async fn read(&self, dto_type: DtoType, urn: &str) -> Dto {
        let key = GetKey { dto_type: dto_type.to_string(), dto_id: urn.into(), known_version: 0 };
        let request = GetManyRequest { keys: vec![key] };
        self.dtoflow(ServiceName::OperatorGateway).get_many(request).await.unwrap().into_inner().dtos.remove(0)
    }

    /// A record of a label; none when absent.
    pub(super) async fn of_label<M: Message + Default>(&self, dto_type: DtoType, label: &str) -> Option<M> {
        let urn = format!("t/T/s/S/{}/{label}", dto_type.collection());
        let dto = self.read(dto_type, &urn).await;
        dto.exists.then(|| M::decode(dto.payload).unwrap())
    }

    pub(super) async fn version(&self, dto_type: DtoType, label: &str) -> i64 {
        self.read(dto_type, &format!("t/T/s/S/{}/{label}", dto_type.collection())).await.version
    }

    pub(super) async fn status(&self, label: &str) -> Option<records::StoreEslStatus> {
        self.of_label(DtoType::StoreEslStatus, label).await
    }

    pub(super) fn file(&self, label: &str) -> PathBuf {
        self.dir.path().join(format!("T/S/{label}.png"))
    }

    /// Whether the label's file shows the text.
    pub(super) fn shows(&self, label: &str, text: &str) -> bool {
        std::fs::read(self.file(label)).is_ok_and(|file| file == png(text))
    }

    /// Waits until the label's file shows the text and its status says confirmed.
    pub(super) async fn shown(&self, label: &str, text: &str) {
        let confirmed = records::DeliveryState::Confirmed;
        eventually(&format!("{label} shows {text}"), async || {
            self.shows(label, text) && self.status(label).await.is_some_and(|status| status.state() == confirmed)
        })
        .await;
    }

    /// Waits until no queue holds anything: what was written so far has no consequences left.
    pub(super) async fn idle(&self) {
        eventually("the queues are empty", async || {
            self.queues.backlogs().await.unwrap().iter().all(|queue| queue.waiting == 0 && queue.leased == 0)
        })
        .await;
    }

    pub(super) fn refresh(model: &str, tracking_id: &str) -> TriggerModelRefreshRequest {
        TriggerModelRefreshRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            model_id: model.into(),
            reason: "CHG-1: test".into(),
            tracking_id: tracking_id.into(),
            operator_subject: "ops@example".into(),
            ..TriggerModelRefreshRequest::default()
        }
    }

    /// Triggers a refresh and waits until its operation is finished.
    pub(super) async fn refreshed(&self, model: &str, tracking_id: &str) -> Operation {
        // An unknown outcome is met as an operator is told to: by the same request again.
        eventually("the trigger is accepted", async || {
            let request = Self::refresh(model, tracking_id);
            match self.triggers(ServiceName::OperatorGateway).trigger_model_refresh(request).await {
                Ok(_) => true,
                Err(status) => {
                    assert_eq!(status.code(), tonic::Code::DeadlineExceeded, "{status}");
                    false
                }
            }
        })
        .await;
        self.finished(tracking_id).await
    }

    pub(super) async fn operation(&self, tracking_id: &str) -> Option<Operation> {
        let request = GetOperationRequest { tenant_id: "T".into(), tracking_id: tracking_id.into() };
        self.cqs(ServiceName::OperatorGateway).get_operation(request).await.ok().map(tonic::Response::into_inner)
    }

    pub(super) async fn finished(&self, tracking_id: &str) -> Operation {
        eventually(&format!("operation {tracking_id} finishes"), async || {
            self.operation(tracking_id).await.is_some_and(|operation| operation.state() != OperationState::Running)
        })
        .await;
        self.operation(tracking_id).await.unwrap()
    }

    /// Whether anything is in hand in any queue.
    pub(super) async fn in_hand(&self) -> bool {
        self.queues.backlogs().await.unwrap().iter().any(|queue| queue.leased > 0)
    }

    /// Whether a service's queue has something that waits and nothing in hand.
    pub(super) async fn waits(&self, service: ServiceName) -> bool {
        let backlogs = self.queues.backlogs().await.unwrap();
        let of_service = backlogs.iter().find(|queue| queue.queue.as_str() == service.as_str());
        of_service.is_some_and(|queue| queue.leased == 0 && queue.waiting > 0)
    }

    /// The audit rows of one kind of action.
    pub(super) async fn audit_of(&self, action: &str) -> Vec<AuditEntry> {
        let mut entries = self.audit("").await;
        entries.retain(|entry| entry.action == action);
        entries
    }

    pub(super) async fn audit(&self, tracking_id: &str) -> Vec<AuditEntry> {
        let request = ListAuditRequest {
            tenant_ids: vec!["T".into()],
            tracking_id: tracking_id.into(),
            ..ListAuditRequest::default()
        };
        self.cqs(ServiceName::OperatorGateway).list_audit(request).await.unwrap().into_inner().entries
    }
}

/// The picture that shows a text, drawn without the services.
fn picture(text: &str) -> Picture {
    let layout = format!(
        r#"{{"ecc":1,"name":"x","variants":[{{"width":96,"height":32,"elements":[
           {{"kind":"text","id":"name","box":[0,0,96,32],"text":"{text}","size":12}}]}}]}}"#
    );
    let model = render::EccModel::parse(&layout).unwrap();
    let panel =
        render::Panel { width: 96, height: 32, palette: picture::Palette::Bw, rotation: picture::Rotation::Deg0 };
    let none = BTreeMap::new();
    render::render(&model, &render::EccInput { panel, item: &none, parameters: &none }).unwrap()
}

/// The digest of the picture that shows a text.
pub(super) fn digest(text: &str) -> picture::Digest {
    picture(text).digest()
}

pub(super) fn png(text: &str) -> Vec<u8> {
    picture(text).to_png().unwrap()
}

/// Waits for a condition; fails when it does not come.
pub(super) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}: did not come about");
}

/// The counts of one service's queue under an operation.
pub(super) fn counts(operation: &Operation, service: ServiceName) -> (i64, i64, i64, i64) {
    operation
        .queues
        .iter()
        .find(|queue| queue.queue_name == service.as_str())
        .map_or((0, 0, 0, 0), |queue| (queue.enqueued, queue.done, queue.unchanged, queue.failed))
}
