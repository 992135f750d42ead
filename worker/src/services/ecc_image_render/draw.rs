//! Rendering in parallel, each label by itself: an error or a panic fails its label only.

use std::fmt::Display;

use domain::DtoType;
use picture::Picture;
use proto::records::v1::SourceEslImage;
use render::{EccInput, EccModel, RenderError};

use super::plan::{Draw, Step};
use crate::runtime::{CallError, Input, Label, Verdict, contained, on_cpu};

/// Values in, picture out: `render::render`, or a test's own.
pub(crate) type RenderFn = fn(&EccModel, &EccInput<'_>) -> Result<Picture, RenderError>;

/// What became of a step, off the async threads.
enum Drawn {
    Absent(Vec<Input>),
    Image(SourceEslImage, Vec<Input>),
    Broken(String),
}

/// A verdict per label, in order.
pub(super) async fn draw_many(render: RenderFn, labels: &[Label], steps: Vec<Step>) -> Result<Vec<Verdict>, CallError> {
    let drawn = on_cpu(steps, move |step| match step {
        Step::Absent(inputs) => Drawn::Absent(inputs),
        Step::Broken(cause) => Drawn::Broken(cause),
        Step::Draw(draw) => match image(render, &draw) {
            Ok(image) => Drawn::Image(image, draw.inputs),
            Err(cause) => Drawn::Broken(cause),
        },
    })
    .await?;
    Ok(labels
        .iter()
        .zip(drawn)
        .map(|(label, drawn)| match drawn {
            Drawn::Absent(inputs) => Verdict::delete(label, DtoType::EccEslImage, inputs),
            Drawn::Image(image, inputs) => Verdict::put(label, DtoType::EccEslImage, &image, inputs),
            Drawn::Broken(cause) => Verdict::failed(cause),
        })
        .collect())
}

fn image(render: RenderFn, draw: &Draw) -> Result<SourceEslImage, String> {
    let named = |error: &dyn Display| format!("model {}: {error}", draw.model_urn);
    let input = EccInput { panel: draw.panel, item: &draw.item, parameters: &draw.parameters };
    contained(
        || {
            let picture = render(&draw.model, &input).map_err(|error| named(&error))?;
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
