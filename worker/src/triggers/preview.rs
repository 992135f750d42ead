//! Previews: what a refresh would do to a sample of its labels, rendered as the refresh would and thrown away.
//!
//! Invariants
//! - Nothing is written, enqueued or reserved.
//! - The sample depends on the links only, so the same preview again shows the same labels.
//! - The pictures are those of the very renderer that the refresh would use, out of the same records.

use daemon::identity::Caller;
use domain::{ErrorCode, OperatorSubject, Refusal, TenantId, Urn};
use proto::{
    cqs::v1::AuditEntry,
    ecc_image_render::v1::{PreviewModelRefreshRequest, TriggerModelRefreshRequest},
    parse_field,
    records::v1::SourceEslImage,
    studio_renderer::v1::{PreviewDesignRefreshRequest, TriggerDesignRefreshRequest},
    triggers::v1::{LabelPreview, PreviewResponse},
};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::{
    ask::{Aim, BREAKDOWN_MAX, Page, TriggerRequest},
    audit::{Denied, platform_failure, refuse},
    calls::Calls,
    run,
};
use crate::{
    runtime::{CallError, Found, LabelRef, Platform, Reads, cause},
    services::rendering::{Drawn, Renderer, Source},
};

/// Labels of a preview at most: what a person looks through.
const SAMPLE_MAX: i32 = 24;
/// Stores a tenant's sample comes from at most: each costs a look-up.
const SAMPLED_STORES_MAX: usize = 8;
/// Links of a store that the sample is chosen from at most: one look-up.
const CHOICE_MAX: i32 = 4_096;
/// Previews rendered at once by one worker: they share the processors with rendering for labels.
const AT_ONCE: usize = 2;

/// The request of one preview.
pub(super) trait PreviewRequest: prost::Message + Default {
    /// The RPC, as the registry names it.
    const RPC: &'static str;
    /// What is asked, for the log.
    const ACTION: &'static str;
    /// Tenant, sample and operator, as they came.
    fn common(&self) -> (&str, i32, &str);
    /// What the refresh would be about.
    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal>;
}

impl PreviewRequest for PreviewModelRefreshRequest {
    const RPC: &'static str = "ecc_image_render.v1.EccImageRenderTriggers/PreviewModelRefresh";
    const ACTION: &'static str = "preview model-refresh";

    fn common(&self) -> (&str, i32, &str) {
        (&self.tenant_id, self.sample, &self.operator_subject)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let (store_id, model_id) = (self.store_id.clone(), self.model_id.clone());
        TriggerModelRefreshRequest { store_id, model_id, ..TriggerModelRefreshRequest::default() }.aim(tenant)
    }
}

impl PreviewRequest for PreviewDesignRefreshRequest {
    const RPC: &'static str = "studio_renderer.v1.StudioRendererTriggers/PreviewDesignRefresh";
    const ACTION: &'static str = "preview design-refresh";

    fn common(&self) -> (&str, i32, &str) {
        (&self.tenant_id, self.sample, &self.operator_subject)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let design_id = self.design_id.clone();
        TriggerDesignRefreshRequest { design_id, ..TriggerDesignRefreshRequest::default() }.aim(tenant)
    }
}

/// The part of a renderer that draws previews. It has a cache of layouts of its own.
pub(super) struct Previews<S: Source> {
    renderer: Renderer<S>,
    platform: Platform,
    slots: Semaphore,
}

impl<S: Source> Previews<S> {
    pub(super) fn new(renderer: Renderer<S>, platform: Platform) -> Self {
        Self { renderer, platform, slots: Semaphore::new(AT_ONCE) }
    }

    /// Answers one call. A preview does nothing, so its refusals are not written to the audit log; only strangers are.
    pub(super) async fn answer<R: PreviewRequest>(
        &self,
        calls: &Calls,
        request: Request<R>,
    ) -> Result<Response<PreviewResponse>, Status> {
        let caller = daemon::identity::caller(&request).map_err(|refusal| proto::status_from_refusal(&refusal))?;
        let request = request.into_inner();
        let answered = self.run(calls, &caller, &request).await;
        answered.map(Response::new).map_err(|denied| match denied {
            Denied::Here(refusal) | Denied::Elsewhere(refusal) => proto::status_from_refusal(&refusal),
        })
    }

    async fn run<R: PreviewRequest>(
        &self,
        calls: &Calls,
        caller: &Caller,
        request: &R,
    ) -> Result<PreviewResponse, Denied> {
        if let Err(refusal) = run::called_by_the_gateway(caller, R::RPC) {
            let stranger = AuditEntry { action: R::ACTION.to_owned(), ..AuditEntry::default() };
            refuse(calls, stranger, Denied::Here(refusal.clone())).await;
            return Err(refusal.into());
        }
        let (tenant_id, sample, operator) = request.common();
        let tenant: TenantId = parse_field("tenant_id", tenant_id)?;
        let operator: OperatorSubject = parse_field("operator_subject", operator)?;
        let sample = match sample {
            0 => SAMPLE_MAX,
            1..=SAMPLE_MAX => sample,
            _ => return Err(Refusal::field("sample", format!("must be 1 to {SAMPLE_MAX}")).into()),
        };
        let Ok(_slot) = self.slots.try_acquire() else {
            return Err(Refusal::new(ErrorCode::ResourceExhausted, "too many previews at once; try again").into());
        };
        let aim = request.aim(&tenant)?;
        let labels = run::labels_of(calls, &aim, false).await?;
        let chosen =
            chosen(calls, &aim, usize::try_from(sample).unwrap_or_default()).await.map_err(platform_failure)?;
        tracing::info!(%operator, scope = %aim.scope, labels, sampled = chosen.len(), "{}", R::ACTION);
        let previews = self.previews(&chosen).await.map_err(|error| platform_failure(refusal_of(error)))?;
        Ok(PreviewResponse { labels, previews })
    }

    async fn previews(&self, labels: &[LabelRef]) -> Result<Vec<LabelPreview>, CallError> {
        let mut reads = Reads::default();
        for label in labels {
            reads.want(S::IMAGE, label.record(S::IMAGE));
        }
        let stored = reads.fetch(&self.platform).await?;
        let drawn = self.renderer.drawn(&self.platform, &labels.iter().collect::<Vec<_>>()).await?;
        let preview = |(label, drawn): (&LabelRef, Drawn)| {
            let current: Result<Found<SourceEslImage>, String> = stored.record_as(S::IMAGE, &label.record(S::IMAGE));
            // A stored picture that cannot be read is shown as none; drawing it anew replaces it.
            let current = current.ok().and_then(|found| found.record);
            let mut preview = LabelPreview {
                store_id: label.store.to_string(),
                label_id: label.id.to_string(),
                current: current.as_ref().map(|image| image.picture.clone()).unwrap_or_default(),
                ..LabelPreview::default()
            };
            match drawn {
                Drawn::Absent(_) => preview.changes = current.is_some(),
                Drawn::Image(image, _) => {
                    preview.changes = current.is_none_or(|current| current.digest != image.digest);
                    preview.new = image.picture;
                }
                // It would fail and keep its picture.
                Drawn::Broken(why) => preview.cause = cause(why),
            }
            preview
        };
        Ok(labels.iter().zip(drawn).map(preview).collect())
    }
}

fn refusal_of(error: CallError) -> Refusal {
    match error {
        CallError::Stale => Refusal::internal(),
        CallError::NotNow(refusal) | CallError::Never(refusal) | CallError::Fault(refusal) => refusal,
    }
}

/// Which labels are sampled, by store and label: those whose name has the smallest hash, out of as many stores as
/// [`SAMPLED_STORES_MAX`] allows. Spread evenly, and the same at every call.
async fn chosen(calls: &Calls, aim: &Aim, sample: usize) -> Result<Vec<LabelRef>, Refusal> {
    let parents = if aim.scope.store().is_some() {
        vec![aim.scope.clone()]
    } else {
        let page = Page { size: BREAKDOWN_MAX, token: String::new() };
        let (stores, _) = calls.stores((aim.shape.dto_type, aim.links), &aim.scope, &page).await?;
        let stores = stores.iter().filter_map(|(store, _)| store.parse().ok());
        smallest(stores.map(|store| aim.scope.seen_from(&store)), SAMPLED_STORES_MAX)
    };
    let each = sample.div_ceil(parents.len().max(1));
    let mut labels = Vec::with_capacity(sample);
    for parent in parents {
        let links = calls.first(aim.shape.dto_type, aim.links, &parent, CHOICE_MAX).await?;
        labels.extend(smallest(links, each).iter().filter_map(LabelRef::of));
    }
    labels.truncate(sample);
    labels.sort();
    Ok(labels)
}

/// Those with the smallest hash.
fn smallest(urns: impl IntoIterator<Item = Urn>, most: usize) -> Vec<Urn> {
    let mut all: Vec<([u8; 32], Urn)> =
        urns.into_iter().map(|urn| (Sha256::digest(urn.to_string()).into(), urn)).collect();
    all.sort_by_key(|(hash, _)| *hash);
    all.truncate(most);
    all.into_iter().map(|(_, urn)| urn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_the_same_at_every_call_and_not_just_the_first_ids() {
        let urns: Vec<Urn> = (0..100).map(|n| format!("t/T/s/S/ecclinks/E{n:03}").parse().unwrap()).collect();
        let one = smallest(urns.iter().cloned(), 5);
        let other = smallest(urns.iter().rev().cloned(), 5);
        assert_eq!(one, other);
        assert_eq!(one.len(), 5);
        assert_ne!(one, urns.into_iter().take(5).collect::<Vec<_>>());
    }
}
