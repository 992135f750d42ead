//! The picture as a PNG file, as the panel would show it.

use crate::picture::Picture;

/// Why no PNG came out. The checked picture leaves no known cause; the encoder's own word is kept.
#[derive(Debug, thiserror::Error)]
#[error("the PNG encoder refused the picture: {0}")]
pub struct PngError(#[from] png::EncodingError);

impl Picture {
    /// An indexed PNG, 8 bits a pixel, with the inks' [`crate::Ink::srgb`]. Deterministic: no time, no text chunks.
    pub fn to_png(&self) -> Result<Vec<u8>, PngError> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width(), self.height());
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(self.palette().inks().iter().flat_map(|ink| ink.srgb()).collect::<Vec<u8>>());
        // A label is long runs: the fast coder is near the thorough one in size, at a tenth of its time.
        encoder.set_compression(png::Compression::Fast);
        // After the compression, which chooses a filter of its own. Indices are not intensities: filters between
        // neighbours only hurt.
        encoder.set_filter(png::Filter::NoFilter);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.indices())?;
        writer.finish()?;
        Ok(out)
    }
}
