//! Pictures: PNG files that models bring along, and our own packed form.

use picture::{Palette, Picture};
use render::EccModel;
use serde_json::json;

use super::{Target, seeds};

/// PNG files of each kind that a model may bring along, all of this size.
const SIZE: (u16, u16) = (16, 8);

fn png(color: png::ColorType, depth: png::BitDepth) -> Vec<u8> {
    let (width, height) = SIZE;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width.into(), height.into());
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![0x5a; 3 * 4]);
    }
    let row = (usize::from(width) * color.samples() * usize::from(depth as u8)).div_ceil(8);
    // Indices of a palette of four stay within it.
    let pixels = vec![0x11; row * usize::from(height)];
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels)).expect("encoded");
    bytes
}

/// A layout of one picture, whose PNG is the input: what a model may bring along.
pub(super) fn pngs() -> Target {
    let (width, height) = SIZE;
    let layout = move |bytes: &[u8]| {
        let png = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes);
        let picture = json!({"kind": "picture", "id": "e", "box": [0, 0, width, height], "png": png});
        let variant = json!({"width": width, "height": height, "elements": [picture]});
        json!({"ecc": 1, "name": "fuzz", "variants": [variant]}).to_string()
    };
    let mut seeds: Vec<Vec<u8>> = [
        (png::ColorType::Grayscale, png::BitDepth::One),
        (png::ColorType::Grayscale, png::BitDepth::Sixteen),
        (png::ColorType::GrayscaleAlpha, png::BitDepth::Eight),
        (png::ColorType::Indexed, png::BitDepth::Four),
        (png::ColorType::Rgb, png::BitDepth::Eight),
        (png::ColorType::Rgba, png::BitDepth::Eight),
    ]
    .map(|(color, depth)| png(color, depth))
    .into();
    for seed in &seeds {
        assert!(EccModel::parse(&layout(seed)).is_ok(), "the seeds are read");
    }
    // Others are larger than their box, and refused for it.
    seeds.extend(seeds::files("render/tests/golden", "png").into_iter().map(|(_, bytes)| bytes).take(8));
    Target::new(seeds, move |bytes| drop(EccModel::parse(&layout(bytes))))
}

/// Our own packed form.
pub(super) fn packed() -> Target {
    let seeds = Palette::ALL.map(|palette| {
        let picture = Picture::new(16, 8, palette, vec![1; 128]).expect("a picture");
        picture.pack_with_digest().expect("packed").0
    });
    Target::new(seeds.into(), |bytes| {
        if let Ok(picture) = Picture::unpack(bytes) {
            assert!(picture.to_png().is_ok());
        }
    })
}
