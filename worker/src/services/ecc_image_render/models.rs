//! Parsed models, kept by URN and version: a model is read and parsed once, not once a label.

use std::{collections::BTreeMap, sync::Arc};

use domain::{DtoType, Urn};
use moka::future::Cache;
use proto::records::v1 as records;
use render::EccModel;

use crate::runtime::{CallError, Records, contained, on_cpu};

/// Bytes of layout text the cache keeps: a few thousand usual layouts.
const LAYOUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A model at one version.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) version: i64,
    /// Parsed, or why it cannot be.
    pub(super) parsed: Result<EccModel, String>,
    layout_bytes: u32,
}

/// Models of one batch by URN.
pub(super) type ModelsByUrn = BTreeMap<Urn, Arc<Model>>;

/// The cache.
pub(super) struct Models(Cache<Urn, Arc<Model>>);

impl Models {
    pub(super) fn new() -> Self {
        let weigh = |_: &Urn, model: &Arc<Model>| model.layout_bytes.max(1);
        Self(Cache::builder().max_capacity(LAYOUT_BYTES_MAX).weigher(weigh).build())
    }

    /// What is known of these models already. Held by the batch, so an eviction meanwhile does no harm.
    pub(super) async fn known<'a>(&self, urns: impl Iterator<Item = &'a Urn>) -> ModelsByUrn {
        let mut known = ModelsByUrn::new();
        for urn in urns {
            if !known.contains_key(urn)
                && let Some(model) = self.0.get(urn).await
            {
                known.insert(urn.clone(), model);
            }
        }
        known
    }

    pub(super) async fn forget(&self, urn: &Urn) {
        self.0.invalidate(urn).await;
    }

    /// The models as `read` has them: those with another version parsed, the others as known.
    pub(super) async fn refresh(&self, mut known: ModelsByUrn, read: &Records) -> Result<ModelsByUrn, CallError> {
        let mut newer = Vec::new();
        for (urn, dto) in read.of_type(DtoType::EccModel) {
            match dto {
                Some(dto) if known.get(urn).is_none_or(|model| model.version != dto.version) => {
                    newer.push((urn.clone(), dto.version, dto.payload.clone()));
                }
                Some(_) => {}
                None => {
                    known.remove(urn);
                }
            }
        }
        for (urn, model) in on_cpu(newer, |(urn, version, payload)| (urn, Arc::new(parse(version, &payload)))).await? {
            self.0.insert(urn.clone(), Arc::clone(&model)).await;
            known.insert(urn, model);
        }
        Ok(known)
    }
}

fn parse(version: i64, payload: &[u8]) -> Model {
    let record: Result<records::EccModel, _> = prost::Message::decode(payload);
    let (parsed, bytes) = match record {
        Ok(record) => {
            let parsed = contained(
                || EccModel::parse(&record.layout).map_err(|error| error.to_string()),
                || Err("the layout's reader panicked".to_owned()),
            );
            (parsed, record.layout.len())
        }
        Err(error) => (Err(error.to_string()), payload.len()),
    };
    Model { version, parsed, layout_bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
}
