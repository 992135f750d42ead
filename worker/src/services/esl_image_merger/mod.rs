//! esl-image-merger: one image per label out of the two sources; where both exist, Studio wins.
//!
//! Deliberately not here: pixels. The image names its source; who wants the picture reads that.

use domain::{DtoType, ParentShape, ServiceName, SplitItem, Target};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1::{EslImage, ImageSource, SourceEslImage};

use crate::runtime::{CallError, Context, Found, Label, LabelRef, Reads, Records, Route, Service, Verdict};

const SUBSCRIPTIONS: &[DtoType] = &[DtoType::EccEslImage, DtoType::StudioEslImage];
/// It splits nothing: no trigger is its own.
const SHAPES: &[ParentShape] = &[];

/// The service.
pub(crate) struct EslImageMerger;

impl Service for EslImageMerger {
    fn name(&self) -> ServiceName {
        ServiceName::EslImageMerger
    }

    fn subscriptions(&self) -> &'static [DtoType] {
        SUBSCRIPTIONS
    }

    fn shapes(&self) -> &'static [ParentShape] {
        SHAPES
    }

    fn route(&self, item: &SplitItem) -> Route {
        match (&item.target, item.dto_type, item.alias) {
            (Target::Record(urn), DtoType::EccEslImage | DtoType::StudioEslImage, None) => {
                LabelRef::of(urn).map_or(Route::Unknown, Route::Label)
            }
            _ => Route::Unknown,
        }
    }

    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        async move {
            let mut reads = Reads::default();
            for label in labels {
                for dto_type in SUBSCRIPTIONS {
                    reads.want(*dto_type, label.name.record(*dto_type));
                }
            }
            let read = reads.fetch(context.platform).await?;
            Ok(labels.iter().map(|label| verdict(label, &read).unwrap_or_else(Verdict::failed)).collect())
        }
        .boxed()
    }
}

fn verdict(label: &Label, read: &Records) -> Result<Verdict, String> {
    let source = |dto_type| read.record_as::<SourceEslImage>(dto_type, &label.name.record(dto_type));
    let Found { input: ecc_input, record: ecc } = source(DtoType::EccEslImage)?;
    let Found { input: studio_input, record: studio } = source(DtoType::StudioEslImage)?;
    let inputs = vec![ecc_input, studio_input];
    Ok(match merge(ecc.as_ref(), studio.as_ref()) {
        Some(image) => Verdict::put(label, DtoType::EslImage, &image, inputs),
        None => Verdict::delete(label, DtoType::EslImage, inputs),
    })
}

/// The merge rule.
fn merge(ecc: Option<&SourceEslImage>, studio: Option<&SourceEslImage>) -> Option<EslImage> {
    let (source, image) = match (ecc, studio) {
        (_, Some(studio)) => (ImageSource::Studio, studio),
        (Some(ecc), None) => (ImageSource::Ecc, ecc),
        (None, None) => return None,
    };
    Some(EslImage {
        source: source.into(),
        digest: image.digest.clone(),
        width: image.width,
        height: image.height,
        palette: image.palette,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(byte: u8) -> SourceEslImage {
        SourceEslImage {
            picture: vec![byte].into(),
            digest: vec![byte; 32].into(),
            width: 296,
            height: 128,
            palette: 1,
        }
    }

    #[test]
    fn studio_wins_where_both_exist() {
        let (ecc, studio) = (image(1), image(2));
        let shown = |ecc, studio| merge(ecc, studio).map(|image| (image.source(), image.digest.to_vec()));
        assert_eq!(shown(Some(&ecc), Some(&studio)), Some((ImageSource::Studio, vec![2; 32])));
        assert_eq!(shown(None, Some(&studio)), Some((ImageSource::Studio, vec![2; 32])));
        assert_eq!(shown(Some(&ecc), None), Some((ImageSource::Ecc, vec![1; 32])));
        assert_eq!(shown(None, None), None);
    }
}
