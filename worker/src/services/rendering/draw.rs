//! Rendering in parallel, each label by itself: an error or a panic fails its label only.

use std::fmt::Display;

use proto::records::v1::SourceEslImage;
use render::EccInput;

use super::{
    Source,
    engine::DrawFn,
    plan::{Draw, Step},
};
use crate::runtime::{CallError, Input, Label, Verdict, contained, on_cpu};

/// What is drawn for a label.
pub(crate) enum Drawn {
    /// Nothing: an input is absent.
    Absent(Vec<Input>),
    /// A picture, out of these inputs.
    Image(SourceEslImage, Vec<Input>),
    /// It cannot be drawn, for this cause.
    Broken(String),
}

/// What each step draws, in order, off the async threads.
pub(super) async fn draw_many<S: Source>(
    draw: DrawFn<S::Layout>,
    steps: Vec<Step<S::Layout>>,
) -> Result<Vec<Drawn>, CallError> {
    on_cpu(steps, move |step| match step {
        Step::Absent(inputs) => Drawn::Absent(inputs),
        Step::Broken(cause) => Drawn::Broken(cause),
        Step::Draw(inputs) => match image::<S>(draw, &inputs) {
            Ok(image) => Drawn::Image(image, inputs.inputs),
            Err(cause) => Drawn::Broken(cause),
        },
    })
    .await
}

/// A verdict per label, in order.
pub(super) fn verdicts<S: Source>(labels: &[Label], drawn: Vec<Drawn>) -> Vec<Verdict> {
    labels
        .iter()
        .zip(drawn)
        .map(|(label, drawn)| match drawn {
            Drawn::Absent(inputs) => Verdict::delete(label, S::IMAGE, inputs),
            Drawn::Image(image, inputs) => Verdict::put(label, S::IMAGE, &image, inputs),
            Drawn::Broken(cause) => Verdict::failed(cause),
        })
        .collect()
}

fn image<S: Source>(render: DrawFn<S::Layout>, draw: &Draw<S::Layout>) -> Result<SourceEslImage, String> {
    let named = |error: &dyn Display| format!("{} {}: {error}", S::WORD, draw.layout_urn);
    let input = EccInput { panel: draw.panel, item: &draw.item, parameters: &draw.parameters };
    contained(
        || {
            let picture = render(&draw.layout, &input).map_err(|error| named(&error))?;
            let (packed, digest) = picture.pack_with_digest().map_err(|error| named(&error))?;
            Ok(SourceEslImage {
                picture: packed.into(),
                digest: digest.as_bytes().to_vec().into(),
                width: picture.width(),
                height: picture.height(),
                palette: picture.palette().number(),
            })
        },
        || Err(named(&"renderer panicked")),
    )
}
