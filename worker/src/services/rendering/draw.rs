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

/// What became of a step, off the async threads.
enum Drawn {
    Absent(Vec<Input>),
    Image(SourceEslImage, Vec<Input>),
    Broken(String),
}

/// A verdict per label, in order.
pub(super) async fn draw_many<S: Source>(
    draw: DrawFn<S::Layout>,
    labels: &[Label],
    steps: Vec<Step<S::Layout>>,
) -> Result<Vec<Verdict>, CallError> {
    let drawn = on_cpu(steps, move |step| match step {
        Step::Absent(inputs) => Drawn::Absent(inputs),
        Step::Broken(cause) => Drawn::Broken(cause),
        Step::Draw(inputs) => match image::<S>(draw, &inputs) {
            Ok(image) => Drawn::Image(image, inputs.inputs),
            Err(cause) => Drawn::Broken(cause),
        },
    })
    .await?;
    Ok(labels
        .iter()
        .zip(drawn)
        .map(|(label, drawn)| match drawn {
            Drawn::Absent(inputs) => Verdict::delete(label, S::IMAGE, inputs),
            Drawn::Image(image, inputs) => Verdict::put(label, S::IMAGE, &image, inputs),
            Drawn::Broken(cause) => Verdict::failed(cause),
        })
        .collect())
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
