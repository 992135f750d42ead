//! How fast one thread renders, without anything around it: layout or design read once, every label's values new,
//! packing and digest included.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use picture::{Palette, Picture, Rotation};
use proto::records::v1::StoreItemValues;
use render::{EccInput, EccModel, Panel, RenderError, StudioDesign};

use super::{figures::per_second, progress, shop::Shop};

/// What is rendered to measure rendering alone.
const RENDERED_FOR: Duration = Duration::from_secs(3);
/// The panel of every picture.
const PANEL: Panel = Panel { width: 296, height: 128, palette: Palette::Bwr, rotation: Rotation::Deg0 };

/// Labels a second by the demo's standard ECC model.
pub(super) async fn ecc(shop: &Shop) -> anyhow::Result<f64> {
    let model = EccModel::parse(&shop.layout)?;
    rate("ECC", &shop.items, move |input| render::render(&model, input)).await
}

/// Labels a second by one of the demo's Studio designs, its static layers rasterised beforehand, as the service caches
/// them.
pub(super) async fn studio(shop: &Shop) -> anyhow::Result<f64> {
    let (svg, mappings) = shop.design_parts()?;
    let design = StudioDesign::parse(&svg, &mappings)?;
    rate("Studio", &shop.items, move |input| render::studio_render(&design, input)).await
}

async fn rate(
    renderer: &'static str,
    items: &[StoreItemValues],
    draw: impl Fn(&EccInput<'_>) -> Result<Picture, RenderError> + Send + 'static,
) -> anyhow::Result<f64> {
    let items = items.to_vec();
    tokio::task::spawn_blocking(move || {
        let parameters = BTreeMap::new();
        let (started, mut rendered, mut refused) = (Instant::now(), 0_u64, 0_u64);
        while started.elapsed() < RENDERED_FOR {
            for item in &items {
                match draw(&EccInput { panel: PANEL, item: &item.values, parameters: &parameters }) {
                    Ok(picture) => {
                        std::hint::black_box(picture.pack_with_digest()?);
                        rendered += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        anyhow::ensure!(refused <= rendered / 10, "{renderer} refused {refused} pictures and rendered {rendered}");
        let rate = per_second(rendered, started.elapsed());
        progress(format!("{renderer} rendering alone: {rate} labels/s on one thread"));
        Ok(rate)
    })
    .await?
}
