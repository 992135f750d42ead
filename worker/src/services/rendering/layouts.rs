//! Parsed layouts, kept by URN and version: a model or design is read and parsed once, not once a label.

use std::{collections::BTreeMap, sync::Arc};

use domain::Urn;
use moka::future::Cache;

use super::{Parsed, Source};
use crate::runtime::{CallError, Records, contained, on_cpu};

/// Bytes of layout text the cache keeps: a few thousand usual layouts.
const LAYOUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A layout at one version.
pub(super) struct Layout<L> {
    pub(super) version: i64,
    /// Parsed, or why it cannot be.
    pub(super) parsed: Result<Arc<L>, String>,
    bytes: u32,
}

/// Layouts of one batch by URN.
pub(super) type LayoutsByUrn<L> = BTreeMap<Urn, Arc<Layout<L>>>;

/// The cache.
pub(super) struct Layouts<S: Source>(Cache<Urn, Arc<Layout<S::Layout>>>);

impl<S: Source> Layouts<S> {
    pub(super) fn new() -> Self {
        let weigh = |_: &Urn, layout: &Arc<Layout<S::Layout>>| layout.bytes.max(1);
        Self(Cache::builder().max_capacity(LAYOUT_BYTES_MAX).weigher(weigh).build())
    }

    /// What is known of these layouts already. Held by the batch, so an eviction meanwhile does no harm.
    pub(super) async fn known<'a>(&self, urns: impl Iterator<Item = &'a Urn>) -> LayoutsByUrn<S::Layout> {
        let mut known = LayoutsByUrn::new();
        for urn in urns {
            if !known.contains_key(urn)
                && let Some(layout) = self.0.get(urn).await
            {
                known.insert(urn.clone(), layout);
            }
        }
        known
    }

    pub(super) async fn forget(&self, urn: &Urn) {
        self.0.invalidate(urn).await;
    }

    /// The layouts as `read` has them: those with another version parsed, the others as known.
    pub(super) async fn refresh(
        &self,
        mut known: LayoutsByUrn<S::Layout>,
        read: &Records,
    ) -> Result<LayoutsByUrn<S::Layout>, CallError> {
        let mut newer = Vec::new();
        for (urn, dto) in read.of_type(S::LAYOUT) {
            match dto {
                Some(dto) if known.get(urn).is_none_or(|layout| layout.version != dto.version) => {
                    newer.push((urn.clone(), dto.version, dto.payload.clone()));
                }
                Some(_) => {}
                None => {
                    known.remove(urn);
                }
            }
        }
        let parse =
            |(urn, version, payload): (Urn, i64, prost::bytes::Bytes)| (urn, Arc::new(parse::<S>(version, &payload)));
        for (urn, layout) in on_cpu(newer, parse).await? {
            self.0.insert(urn.clone(), Arc::clone(&layout)).await;
            known.insert(urn, layout);
        }
        Ok(known)
    }
}

fn parse<S: Source>(version: i64, payload: &[u8]) -> Layout<S::Layout> {
    let panicked = || Parsed { layout: Err("the layout's reader panicked".to_owned()), bytes: payload.len() };
    let Parsed { layout, bytes } = contained(|| S::parse(payload), panicked);
    Layout { version, parsed: layout.map(Arc::new), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
}
