//! What the two renderers share: from a label's link and hardware to its picture.
//!
//! Reading order: [`Source`] (what differs between them), `plan` (which inputs, what to do with them; pure), `layouts`
//! (parsed models and designs by version), `draw`, [`engine`].
//!
//! Invariants
//! - A picture is written with the versions of everything it was computed from, so a stale one never wins.
//! - A label that cannot be rendered fails alone, with the layout and the reason, and keeps its old picture.
//!
//! Deliberately not here: queues, shapes and parents; they are each renderer's own.

pub(crate) mod engine;

mod draw;
mod layouts;
mod plan;

use std::collections::BTreeMap;

use domain::{AliasName, DtoType, SplitItem, Target, Urn};

use crate::runtime::{
    AliasQuery, CallError, Context, Expansion, Label, LabelRef, Platform, Reads, RecordType, Route, Verdict,
};

pub(crate) use draw::Drawn;
use engine::DrawFn;
use layouts::Layouts;
use plan::{Needs, Step};

/// What differs between the renderers: the link, the layout it names, and where the picture goes.
pub(crate) trait Source: Send + Sync + 'static {
    /// The record that links a label to its item and layout.
    type Link: RecordType;
    /// A layout that can be drawn: a model or a design.
    type Layout: Send + Sync + 'static;
    /// The type of the layout's record.
    const LAYOUT: DtoType;
    /// The type of the picture's record.
    const IMAGE: DtoType;
    /// The layout's word in causes.
    const WORD: &'static str;
    /// What a link names.
    fn linked(link: Self::Link) -> Linked;
    /// The layout in a record's payload.
    fn parse(payload: &[u8]) -> Parsed<Self::Layout>;
}

/// What a link names.
pub(crate) struct Linked {
    pub(crate) item_id: String,
    pub(crate) layout_id: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

/// A layout, or why it cannot be drawn.
pub(crate) struct Parsed<L> {
    pub(crate) layout: Result<L, String>,
    /// Bytes of its text: what keeping it costs, roughly.
    pub(crate) bytes: usize,
}

/// The part of a renderer that turns labels into pictures.
pub(crate) struct Renderer<S: Source> {
    layouts: Layouts<S>,
    draw: DrawFn<S::Layout>,
}

impl<S: Source> Renderer<S> {
    pub(crate) fn new(draw: DrawFn<S::Layout>) -> Self {
        Self { layouts: Layouts::new(), draw }
    }

    /// Forgets a layout.
    pub(crate) async fn forget(&self, urn: &Urn) {
        self.layouts.forget(urn).await;
    }

    /// What shall become of each label, in order.
    pub(crate) async fn verdicts(&self, context: Context<'_>, labels: &[Label]) -> Result<Vec<Verdict>, CallError> {
        let names: Vec<&LabelRef> = labels.iter().map(|label| &label.name).collect();
        let drawn = self.drawn(context.platform, &names).await?;
        Ok(draw::verdicts::<S>(labels, drawn))
    }

    /// What is drawn for each label now, in order. Writes nothing.
    pub(crate) async fn drawn(&self, platform: &Platform, labels: &[&LabelRef]) -> Result<Vec<Drawn>, CallError> {
        let link = <S::Link as RecordType>::DTO_TYPE;
        let mut first = Reads::default();
        for label in labels {
            first.want(link, label.record(link));
            first.want(DtoType::StoreEsl, label.record(DtoType::StoreEsl));
        }
        let first = first.fetch(platform).await?;
        let needs: Vec<Result<Needs, String>> = labels.iter().map(|label| Needs::of::<S>(label, &first)).collect();

        let mut second = Reads::default();
        let known = self.layouts.known(needs.iter().flatten().filter_map(Needs::layout)).await;
        for need in needs.iter().flatten() {
            need.want::<S>(&mut second, &known);
        }
        let second = second.fetch(platform).await?;
        let layouts = self.layouts.refresh(known, &second).await?;

        let steps = needs.into_iter().map(|needs| match needs {
            Ok(needs) => needs.step::<S>(&second, &layouts),
            Err(cause) => Step::Broken(cause),
        });
        draw::draw_many::<S>(self.draw, steps.collect()).await
    }
}

/// Where a notification leads that both renderers take the same way: a link or label to itself, an item to its links, a
/// store to all of its links. None: it is the renderer's own.
pub(crate) fn route<S: Source>(item: &SplitItem) -> Option<Route> {
    let link = <S::Link as RecordType>::DTO_TYPE;
    match (&item.target, item.dto_type, item.alias) {
        (Target::Record(urn), dto_type, None) if dto_type == link || dto_type == DtoType::StoreEsl => {
            LabelRef::of(urn).map(Route::Label)
        }
        (Target::Record(urn), DtoType::StoreItemValues, None) => Some(links::<S>(AliasName::ByItem, urn)),
        (Target::Parent(urn @ Urn::Store(_, _)), dto_type, Some(AliasName::ByStore)) if dto_type == link => {
            Some(links::<S>(AliasName::ByStore, urn))
        }
        _ => None,
    }
}

/// The links found under a parent.
pub(crate) fn links<S: Source>(alias: AliasName, parent: &Urn) -> Route {
    let dto_type = <S::Link as RecordType>::DTO_TYPE;
    Route::Split(Expansion::Records(AliasQuery { dto_type, alias, parent: parent.clone() }))
}
