//! The triggers of both renderers and the exporter.

use std::sync::{Arc, Mutex, MutexGuard};

use domain::{DtoType, ErrorCode, Refusal};
use proto::{
    cqs::v1 as cqs,
    ecc_image_render::v1::{
        PreviewModelRefreshRequest, TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse,
        TriggerModelRefreshRequest, TriggerModelRefreshResponse,
        ecc_image_render_triggers_server::EccImageRenderTriggers,
    },
    hardware_exporter::v1::{
        TriggerAccessPointReexportRequest, TriggerAccessPointReexportResponse, TriggerLabelReexportRequest,
        TriggerLabelReexportResponse, TriggerStoreReexportRequest, TriggerStoreReexportResponse,
        hardware_exporter_triggers_server::HardwareExporterTriggers,
    },
    studio_renderer::v1::{
        PreviewDesignRefreshRequest, StoreLabels, TriggerDesignRefreshRequest, TriggerDesignRefreshResponse,
        TriggerStudioStoreRerenderRequest, TriggerStudioStoreRerenderResponse,
        studio_renderer_triggers_server::StudioRendererTriggers,
    },
    triggers::v1::{LabelPreview, PreviewResponse},
};
use tonic::{Request, Response, Status};

use super::{FakeCqs, FakeDtoFlow, Fault, Hold, gate, page, refuse};

/// A request of any trigger, as far as all of them are alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) trigger: domain::Trigger,
    pub(crate) tenant_id: String,
    /// What it is about.
    pub(crate) scope: String,
    pub(crate) reason: String,
    pub(crate) tracking_id: String,
    pub(crate) dry_run: bool,
    pub(crate) operator_subject: String,
    pub(crate) sla_timestamp: Option<prost_types::Timestamp>,
    pub(crate) sla_is_default: bool,
    pub(crate) approval: Option<cqs::ApprovalRequired>,
}

/// An answer of any trigger, as far as all of them are alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    items_enqueued: i32,
    labels: i64,
    sample_label_ids: Vec<String>,
    replayed: bool,
    sla_timestamp: Option<prost_types::Timestamp>,
    accepted_at: Option<prost_types::Timestamp>,
}

#[derive(Default)]
pub(crate) struct TriggerState {
    /// Accepted requests with their first answers.
    pub(crate) accepted: Vec<(Seen, Told)>,
    /// Every request that came, dry runs and refused ones included.
    pub(crate) seen: Vec<Seen>,
    pub(crate) fault: Option<Fault>,
    pub(crate) hold: Option<Hold>,
}

/// The triggers of both renderers and the exporter. Writes the audit rows of its own refusals, as the real ones do.
#[derive(Clone)]
pub(crate) struct FakeTriggers {
    state: Arc<Mutex<TriggerState>>,
    cqs: FakeCqs,
    dtoflow: FakeDtoFlow,
}

/// What a trigger looks for.
struct Look {
    /// The record that must exist; none: a label of the store.
    exists: Option<DtoType>,
    links: (&'static str, &'static str),
    /// The refused field when it does not.
    field: &'static str,
}

const BY_MODEL: Look =
    Look { exists: Some(DtoType::EccModel), links: ("ecclink.v1", "by_eccmodel"), field: "model_id" };
const BY_DESIGN: Look =
    Look { exists: Some(DtoType::Design), links: ("studiolink.v1", "by_design"), field: "design_id" };
const ECC_OF_STORE: Look = Look { exists: None, links: ("ecclink.v1", "by_store"), field: "store_id" };
const STUDIO_OF_STORE: Look = Look { exists: None, links: ("studiolink.v1", "by_store"), field: "store_id" };
const PICTURES_OF_STORE: Look = Look { exists: None, links: ("eslimage.v1", "by_store"), field: "store_id" };
const LABELS_OF_ACCESS_POINT: Look =
    Look { exists: Some(DtoType::AccessPoint), links: ("storeesl.v1", "by_accesspoint"), field: "access_point_id" };
const PICTURE_OF_LABEL: Look =
    Look { exists: Some(DtoType::StoreEsl), links: ("eslimage.v1", "by_storeesl"), field: "label_id" };

/// The fields that every trigger's request has.
macro_rules! seen {
    ($trigger:ident, $request:expr, $scope:expr) => {
        Seen {
            trigger: domain::Trigger::$trigger,
            tenant_id: $request.tenant_id.clone(),
            scope: $scope,
            reason: $request.reason.clone(),
            tracking_id: $request.tracking_id.clone(),
            dry_run: $request.dry_run,
            operator_subject: $request.operator_subject.clone(),
            sla_timestamp: $request.sla_timestamp,
            sla_is_default: $request.sla_is_default,
            approval: $request.approval,
        }
    };
}

/// A response message with the fields that every trigger's has.
macro_rules! told {
    ($message:ident, $told:expr, { $($field:ident: $value:expr),* }) => {
        Ok(Response::new($message {
            items_enqueued: $told.items_enqueued,
            labels: $told.labels,
            sample_label_ids: $told.sample_label_ids,
            replayed: $told.replayed,
            sla_timestamp: $told.sla_timestamp,
            accepted_at: $told.accepted_at,
            $($field: $value),*
        }))
    };
}

impl FakeTriggers {
    pub(crate) fn new(cqs: FakeCqs, dtoflow: FakeDtoFlow) -> Self {
        Self { state: Arc::default(), cqs, dtoflow }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, TriggerState> {
        self.state.lock().unwrap()
    }

    fn refused<T>(&self, asked: &Seen, refusal: &Refusal) -> Result<T, Status> {
        self.cqs.state().audit.push(cqs::AuditEntry {
            service: format!("svc:{}", asked.trigger.service()),
            tenant_id: asked.tenant_id.clone(),
            tracking_id: asked.tracking_id.clone(),
            outcome: cqs::AuditOutcome::Refused.into(),
            error_code: refusal.code.to_string(),
            ..cqs::AuditEntry::default()
        });
        refuse(refusal)
    }

    async fn answer(&self, asked: Seen, look: &Look) -> Result<Told, Status> {
        self.state().seen.push(asked.clone());
        let hold = self.state().hold.clone();
        if let Some(hold) = hold {
            hold.pass().await;
        }
        if let Some(fault) = self.state().fault.clone() {
            return match fault {
                Fault::Refusal(refusal) => self.refused(&asked, &refusal),
                Fault::Status(_) => Err(fault.status()),
            };
        }
        let (known, links) = {
            let records = self.dtoflow.state();
            let known = match look.exists {
                Some(dto_type) => records.records.contains_key(&(dto_type, asked.scope.clone())),
                None => !records.below("storeesl.v1", "by_store", &asked.scope).is_empty(),
            };
            (known, records.below(look.links.0, look.links.1, &asked.scope))
        };
        if !known {
            return self.refused(&asked, &Refusal::new(ErrorCode::NotFound, "no such thing").at(look.field));
        }
        let ids = links.iter().map(|urn| urn.rsplit('/').next().unwrap().to_owned());
        let mut told = Told {
            labels: i64::try_from(links.len()).unwrap(),
            sample_label_ids: ids.take(10).collect(),
            ..Told::default()
        };
        let earlier = self
            .state()
            .accepted
            .iter()
            .find(|(known, _)| known.tenant_id == asked.tenant_id && known.tracking_id == asked.tracking_id)
            .cloned();
        if let Some((known, first)) = earlier {
            let differs = [
                ("items[0].parent_id", known.scope != asked.scope),
                ("trigger", known.trigger != asked.trigger),
                ("reason", known.reason != asked.reason),
                ("operator_subject", known.operator_subject != asked.operator_subject),
                (
                    "sla_timestamp",
                    !(known.sla_is_default && asked.sla_is_default) && known.sla_timestamp != asked.sla_timestamp,
                ),
            ];
            return match differs.iter().find(|(_, differs)| *differs) {
                None if asked.dry_run => Ok(Told { replayed: true, ..told }),
                None => Ok(Told { replayed: true, ..first }),
                Some((field, _)) => {
                    let refusal = Refusal::new(ErrorCode::AlreadyExists, "the tracking id names another request");
                    self.refused(&asked, &refusal.at(*field))
                }
            };
        }
        if asked.dry_run {
            return Ok(told);
        }
        told.items_enqueued = 1;
        told.sla_timestamp = asked.sla_timestamp;
        told.accepted_at = Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 });
        self.state().accepted.push((asked, told.clone()));
        Ok(told)
    }

    /// A preview of two labels: one that changes, one that fails.
    fn previewed(&self, scope: &str, look: &Look) -> Result<Response<PreviewResponse>, Status> {
        let records = self.dtoflow.state();
        if !look.exists.is_some_and(|dto_type| records.records.contains_key(&(dto_type, scope.to_owned()))) {
            return refuse(&Refusal::new(ErrorCode::NotFound, "no such thing").at(look.field));
        }
        let labels = i64::try_from(records.below(look.links.0, look.links.1, scope).len()).unwrap();
        let preview = |label: &str| LabelPreview {
            store_id: "s1".to_owned(),
            label_id: label.to_owned(),
            current: crate::harness::small_picture().pack().unwrap().into(),
            ..LabelPreview::default()
        };
        let blank = picture::Picture::new(8, 4, picture::Palette::Bw, vec![0; 32]).unwrap();
        let changed = LabelPreview { new: blank.pack().unwrap().into(), changes: true, ..preview("E1") };
        let failed = LabelPreview { cause: "price does not fit".to_owned(), ..preview("E2") };
        Ok(Response::new(PreviewResponse { labels, previews: vec![changed, failed] }))
    }

    /// One page of the stores with links to a design.
    fn stores(&self, scope: &str, token: &str) -> Result<(Vec<StoreLabels>, String), Status> {
        let counts = self.dtoflow.state().by_store("studiolink.v1", "by_design", scope);
        let all: Vec<_> = counts.into_iter().map(|(store_id, labels)| StoreLabels { store_id, labels }).collect();
        page(&all, 200, token)
    }
}

#[tonic::async_trait]
impl EccImageRenderTriggers for FakeTriggers {
    async fn trigger_model_refresh(
        &self,
        request: Request<TriggerModelRefreshRequest>,
    ) -> Result<Response<TriggerModelRefreshResponse>, Status> {
        gate(&request, "ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}/eccmodels/{}", asked.tenant_id, asked.store_id, asked.model_id);
        let told = self.answer(seen!(ModelRefresh, asked, scope), &BY_MODEL).await?;
        told!(TriggerModelRefreshResponse, told, {})
    }

    async fn trigger_ecc_store_rerender(
        &self,
        request: Request<TriggerEccStoreRerenderRequest>,
    ) -> Result<Response<TriggerEccStoreRerenderResponse>, Status> {
        gate(&request, "ecc_image_render.v1.EccImageRenderTriggers/TriggerEccStoreRerender")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}", asked.tenant_id, asked.store_id);
        let told = self.answer(seen!(EccStoreRerender, asked, scope), &ECC_OF_STORE).await?;
        told!(TriggerEccStoreRerenderResponse, told, {})
    }

    async fn preview_model_refresh(
        &self,
        request: Request<PreviewModelRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        gate(&request, "ecc_image_render.v1.EccImageRenderTriggers/PreviewModelRefresh")?;
        let asked = request.into_inner();
        self.previewed(&format!("t/{}/s/{}/eccmodels/{}", asked.tenant_id, asked.store_id, asked.model_id), &BY_MODEL)
    }
}

#[tonic::async_trait]
impl StudioRendererTriggers for FakeTriggers {
    async fn trigger_design_refresh(
        &self,
        request: Request<TriggerDesignRefreshRequest>,
    ) -> Result<Response<TriggerDesignRefreshResponse>, Status> {
        gate(&request, "studio_renderer.v1.StudioRendererTriggers/TriggerDesignRefresh")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/designs/{}", asked.tenant_id, asked.design_id);
        let told = self.answer(seen!(DesignRefresh, asked, scope.clone()), &BY_DESIGN).await?;
        let (stores, next_page_token) =
            if asked.dry_run { self.stores(&scope, &asked.page_token)? } else { (Vec::new(), String::new()) };
        let store_count =
            i64::try_from(self.dtoflow.state().by_store("studiolink.v1", "by_design", &scope).len()).unwrap();
        told!(TriggerDesignRefreshResponse, told, {
            stores: stores, next_page_token: next_page_token, store_count: store_count
        })
    }

    async fn trigger_studio_store_rerender(
        &self,
        request: Request<TriggerStudioStoreRerenderRequest>,
    ) -> Result<Response<TriggerStudioStoreRerenderResponse>, Status> {
        gate(&request, "studio_renderer.v1.StudioRendererTriggers/TriggerStudioStoreRerender")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}", asked.tenant_id, asked.store_id);
        let told = self.answer(seen!(StudioStoreRerender, asked, scope), &STUDIO_OF_STORE).await?;
        told!(TriggerStudioStoreRerenderResponse, told, {})
    }

    async fn preview_design_refresh(
        &self,
        request: Request<PreviewDesignRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        gate(&request, "studio_renderer.v1.StudioRendererTriggers/PreviewDesignRefresh")?;
        let asked = request.into_inner();
        self.previewed(&format!("t/{}/designs/{}", asked.tenant_id, asked.design_id), &BY_DESIGN)
    }
}

#[tonic::async_trait]
impl HardwareExporterTriggers for FakeTriggers {
    async fn trigger_store_reexport(
        &self,
        request: Request<TriggerStoreReexportRequest>,
    ) -> Result<Response<TriggerStoreReexportResponse>, Status> {
        gate(&request, "hardware_exporter.v1.HardwareExporterTriggers/TriggerStoreReexport")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}", asked.tenant_id, asked.store_id);
        let told = self.answer(seen!(StoreReexport, asked, scope), &PICTURES_OF_STORE).await?;
        told!(TriggerStoreReexportResponse, told, {})
    }

    async fn trigger_access_point_reexport(
        &self,
        request: Request<TriggerAccessPointReexportRequest>,
    ) -> Result<Response<TriggerAccessPointReexportResponse>, Status> {
        gate(&request, "hardware_exporter.v1.HardwareExporterTriggers/TriggerAccessPointReexport")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}/accesspoints/{}", asked.tenant_id, asked.store_id, asked.access_point_id);
        let told = self.answer(seen!(AccessPointReexport, asked, scope), &LABELS_OF_ACCESS_POINT).await?;
        told!(TriggerAccessPointReexportResponse, told, {})
    }

    async fn trigger_label_reexport(
        &self,
        request: Request<TriggerLabelReexportRequest>,
    ) -> Result<Response<TriggerLabelReexportResponse>, Status> {
        gate(&request, "hardware_exporter.v1.HardwareExporterTriggers/TriggerLabelReexport")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}/esls/{}", asked.tenant_id, asked.store_id, asked.label_id);
        let told = self.answer(seen!(LabelReexport, asked, scope), &PICTURE_OF_LABEL).await?;
        told!(TriggerLabelReexportResponse, told, {})
    }
}
