//! What a design may cost. Every figure is far above what a label needs, and together they keep the worst design that
//! is accepted to well under a second and a few megabytes.

/// Longest SVG, bytes.
pub const SVG_BYTES_MAX: usize = 262_144;
/// Longest mappings, bytes.
pub const MAPPINGS_BYTES_MAX: usize = 65_536;
/// Most mapped elements, as in an ECC layout.
pub const MAPPED_MAX: usize = 200;

/// Deepest nesting of elements, those reached through `use` counted where they are used.
pub(crate) const DEPTH_MAX: usize = 32;
/// Most tags of a document.
pub(crate) const TAGS_MAX: usize = 10_000;
/// Most attributes of a tag: an XML reader compares them pairwise.
pub(crate) const ATTRIBUTES_MAX: usize = 64;
/// Most namespaces declared: an XML reader carries them along to every element.
pub(crate) const NAMESPACES_MAX: usize = 64;
/// Most elements visited, those reached through `use` counted each time.
pub(crate) const VISITS_MAX: usize = 20_000;
/// Most bytes of attributes and texts read, those reached through `use` counted each time.
pub(crate) const READ_BYTES_MAX: usize = 2_097_152;
/// Most shapes and texts painted.
pub(crate) const PAINTED_MAX: usize = 2_000;
/// Most path segments and points, glyph outlines of turned text included, stroked ones
/// three times. Filling costs up to the square of it.
pub(crate) const SEGMENTS_MAX: usize = 6_000;
/// Most characters of static text.
pub(crate) const TEXT_CHARS_MAX: usize = 4_000;
/// Largest coordinate, length or factor.
pub(crate) const NUMBER_MAX: f64 = 16_384.0;
/// Most different colours.
pub(crate) const COLOURS_MAX: usize = 64;
/// Most numbers of a dash pattern.
pub(crate) const DASHES_MAX: usize = 16;
/// Shortest dash or gap, pixels.
pub(crate) const DASH_MIN: f64 = 1.0;
/// Most dashes of a design.
pub(crate) const DASHES_DRAWN_MAX: f64 = 20_000.0;
/// Most pixels painted over by static shapes, summed over shapes' bounds.
pub(crate) const PAINTED_PIXELS_MAX: u64 = 128_000_000;
/// Most pixels of all static layers together, each as large as the design.
pub(crate) const LAYER_PIXELS_MAX: u64 = 64_000_000;
/// Most runs of pixels kept for the static layers, 8 bytes each.
pub(crate) const SPANS_MAX: usize = 400_000;
/// Longest picture given as a value: 64 KiB of PNG in base64.
pub(crate) const PICTURE_VALUE_BYTES_MAX: usize = 87_384;
