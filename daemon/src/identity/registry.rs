//! The registry: per service its keys, the DTO types it may write and the RPCs it may call.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
    sync::Arc,
};

use domain::{DtoType, ServiceName};
use jsonwebtoken::DecodingKey;
use serde::{Deserialize, Serialize};

use super::PublicKey;
use crate::tls::{SpiffeId, Watched};

/// Why a registry is not accepted. Names the entry.
#[derive(Debug, thiserror::Error)]
#[error("service registry: {0}")]
pub struct RegistryError(String);

/// What the registry grants one service.
pub struct ServiceGrants {
    keys: Vec<DecodingKey>,
    spiffe_ids: Vec<SpiffeId>,
    writes: Vec<DtoType>,
    calls: Vec<String>,
}

impl fmt::Debug for ServiceGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceGrants")
            .field("writes", &self.writes)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl ServiceGrants {
    pub(super) fn keys(&self) -> &[DecodingKey] {
        &self.keys
    }

    pub(super) fn spiffe_ids(&self) -> &[SpiffeId] {
        &self.spiffe_ids
    }

    pub(super) fn writes(&self, dto_type: DtoType) -> bool {
        self.writes.contains(&dto_type)
    }

    pub(super) fn calls(&self, rpc: &str) -> bool {
        self.calls.iter().any(|allowed| allowed == rpc)
    }
}

/// All services. Made from a file, or by `dev` with fresh keys.
#[derive(Debug, Default)]
pub struct Registry {
    services: BTreeMap<ServiceName, Arc<ServiceGrants>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    services: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Base64url Ed25519 public keys; several while a key is being rotated.
    #[serde(default)]
    public_keys: Vec<String>,
    /// SPIFFE ids of its certificates, for mTLS; with them keys are not needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spiffe_ids: Vec<String>,
    #[serde(default)]
    writes: Vec<String>,
    #[serde(default)]
    calls: Vec<String>,
}

impl Registry {
    /// Parses a registry document (TOML).
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let document: Document = toml::from_str(text).map_err(|error| RegistryError(error.to_string()))?;
        let (mut services, mut named) = (BTreeMap::new(), BTreeSet::new());
        for (name, entry) in document.services {
            let wrong = |what: String| RegistryError(format!("{name}: {what}"));
            let service: ServiceName = name.parse().map_err(|error| wrong(format!("{error}")))?;
            let keys = entry
                .public_keys
                .iter()
                .map(|key| key.parse::<PublicKey>().and_then(|key| key.decoding()))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| wrong(format!("public_keys {error}")))?;
            let spiffe_ids = entry
                .spiffe_ids
                .iter()
                .map(|id| id.parse().map_err(|error| wrong(format!("spiffe_ids {id:?} {error}"))))
                .collect::<Result<Vec<SpiffeId>, _>>()?;
            if keys.is_empty() && spiffe_ids.is_empty() {
                return Err(wrong("public_keys must not be empty where there are no spiffe_ids".to_owned()));
            }
            if let Some(id) = spiffe_ids.iter().find(|id| !named.insert((*id).clone())) {
                return Err(wrong(format!("spiffe_ids: {id} is listed twice")));
            }
            let writes = entry
                .writes
                .iter()
                .map(|dto_type| dto_type.parse())
                .collect::<Result<Vec<DtoType>, _>>()
                .map_err(|error| wrong(format!("writes {error}")))?;
            services.insert(service, Arc::new(ServiceGrants { keys, spiffe_ids, writes, calls: entry.calls }));
        }
        Ok(Self { services })
    }

    /// What `service` may do; none when it is not registered.
    pub fn grants(&self, service: ServiceName) -> Option<Arc<ServiceGrants>> {
        self.services.get(&service).cloned()
    }

    /// The service whose certificates carry that id.
    pub(super) fn service_of(&self, id: &SpiffeId) -> Option<ServiceName> {
        self.services.iter().find(|(_, grants)| grants.spiffe_ids.contains(id)).map(|(service, _)| *service)
    }

    /// A registry document in which each of `keys` has its service's standard grants: what `dev` writes and a
    /// production registry starts from.
    pub fn standard_document(keys: &[(ServiceName, PublicKey)]) -> Result<String, RegistryError> {
        let services = keys
            .iter()
            .map(|(service, key)| {
                let (writes, calls) = standard_grants(*service);
                let entry = Entry {
                    public_keys: vec![key.as_str().to_owned()],
                    spiffe_ids: Vec::new(),
                    writes: writes.iter().map(ToString::to_string).collect(),
                    calls: calls.iter().map(|call| (*call).to_owned()).collect(),
                };
                (service.to_string(), entry)
            })
            .collect();
        toml::to_string_pretty(&Document { services }).map_err(|error| RegistryError(error.to_string()))
    }
}

/// Where the registry comes from: fixed, or a file that is read again when it changes.
#[derive(Clone)]
pub struct RegistrySource(Kept);

#[derive(Clone)]
enum Kept {
    Fixed(Arc<Registry>),
    File(Arc<Watched<Registry>>),
}

impl fmt::Debug for RegistrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistrySource")
    }
}

impl From<Arc<Registry>> for RegistrySource {
    fn from(registry: Arc<Registry>) -> Self {
        Self(Kept::Fixed(registry))
    }
}

impl RegistrySource {
    /// The registry that a file holds, also after it changed. A change that cannot be parsed leaves the last good one.
    pub fn file(path: &Path) -> Result<Self, RegistryError> {
        let named = path.to_path_buf();
        let read = move || {
            let text = fs::read_to_string(&named).map_err(|error| format!("{}: {error}", named.display()))?;
            Registry::parse(&text).map_err(|RegistryError(problem)| format!("{}: {problem}", named.display()))
        };
        let watched = Watched::new("service registry", vec![path.to_path_buf()], read).map_err(RegistryError)?;
        Ok(Self(Kept::File(Arc::new(watched))))
    }

    /// The registry as it is now.
    pub fn now(&self) -> Arc<Registry> {
        match &self.0 {
            Kept::Fixed(registry) => Arc::clone(registry),
            Kept::File(watched) => watched.get(),
        }
    }
}

/// The RPCs every worker service needs.
const WORKER_CALLS: &[&str] = &[
    "cqs.v1.ChangeQueueService/CreateOrConfigureQueue",
    "cqs.v1.ChangeQueueService/Dequeue",
    "cqs.v1.ChangeQueueService/Complete",
    "cqs.v1.ChangeQueueService/ExtendLease",
    "cqs.v1.ChangeQueueService/ReEnqueue",
    "cqs.v1.ChangeQueueService/SelfEnqueue",
    "cqs.v1.ChangeQueueService/GetOperation",
    "cqs.v1.ChangeQueueService/AppendAudit",
    "dtoflow.v1.DtoFlowService/PutMany",
    "dtoflow.v1.DtoFlowService/DeleteMany",
    "dtoflow.v1.DtoFlowService/GetMany",
    "dtoflow.v1.DtoFlowService/ListByAlias",
    "dtoflow.v1.DtoFlowService/CountByAlias",
    "dtoflow.v1.DtoFlowService/ListStoresByAlias",
];

/// The standard grants: least privilege for each service's part in the flow.
fn standard_grants(service: ServiceName) -> (&'static [DtoType], Vec<&'static str>) {
    match service {
        ServiceName::EccImageRender => (&[DtoType::EccEslImage], WORKER_CALLS.to_vec()),
        ServiceName::StudioRenderer => (&[DtoType::StudioEslImage], WORKER_CALLS.to_vec()),
        ServiceName::EslImageMerger => (&[DtoType::EslImage], WORKER_CALLS.to_vec()),
        // Pictures are announced again after an access point was reset.
        ServiceName::HardwareExporter => (
            &[DtoType::StoreEslStatus, DtoType::AccessPointStatus],
            [WORKER_CALLS, &["dtoflow.v1.DtoFlowService/TouchDto"]].concat(),
        ),
        ServiceName::OperatorGateway => (
            &[],
            vec![
                "cqs.v1.ChangeQueueService/GetOperation",
                "cqs.v1.ChangeQueueService/ListOperations",
                "cqs.v1.ChangeQueueService/ControlOperation",
                "cqs.v1.ChangeQueueService/SetBrake",
                "cqs.v1.ChangeQueueService/GetBrake",
                "cqs.v1.ChangeQueueService/GetOverview",
                "cqs.v1.ChangeQueueService/AppendAudit",
                "cqs.v1.ChangeQueueService/ListAudit",
                "cqs.v1.ChangeQueueService/FollowAudit",
                "cqs.v1.ChangeQueueService/ListFailures",
                "cqs.v1.ChangeQueueService/RetryFailures",
                "cqs.v1.ChangeQueueService/GetRecordFates",
                "dtoflow.v1.DtoFlowService/GetMany",
                "dtoflow.v1.DtoFlowService/ListByAlias",
                "dtoflow.v1.DtoFlowService/CountByAlias",
                "dtoflow.v1.DtoFlowService/ListStoresByAlias",
                "dtoflow.v1.DtoFlowService/ListHistory",
                "dtoflow.v1.DtoFlowService/TouchDto",
                "ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh",
                "ecc_image_render.v1.EccImageRenderTriggers/TriggerEccStoreRerender",
                "ecc_image_render.v1.EccImageRenderTriggers/PreviewModelRefresh",
                "studio_renderer.v1.StudioRendererTriggers/TriggerDesignRefresh",
                "studio_renderer.v1.StudioRendererTriggers/TriggerStudioStoreRerender",
                "studio_renderer.v1.StudioRendererTriggers/PreviewDesignRefresh",
                "hardware_exporter.v1.HardwareExporterTriggers/TriggerStoreReexport",
                "hardware_exporter.v1.HardwareExporterTriggers/TriggerAccessPointReexport",
                "hardware_exporter.v1.HardwareExporterTriggers/TriggerLabelReexport",
            ],
        ),
        ServiceName::RecordImport => (
            &[
                DtoType::StoreItemValues,
                DtoType::EslType,
                DtoType::AccessPoint,
                DtoType::StoreEsl,
                DtoType::EccModel,
                DtoType::EccLink,
                DtoType::Design,
                DtoType::StudioLink,
            ],
            vec![
                "dtoflow.v1.DtoFlowService/PutMany",
                "dtoflow.v1.DtoFlowService/DeleteMany",
                "dtoflow.v1.DtoFlowService/GetMany",
            ],
        ),
    }
}
