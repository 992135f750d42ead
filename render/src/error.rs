//! Why a label cannot be rendered, in words an operator can act on.

/// Why a label was not rendered. The text names the element, the value and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The model has no layout for the panel.
    #[error(
        "the model has no variant of {width} × {height} pixels (it has {have}); the panel needs one after rotation"
    )]
    NoVariant {
        /// Pixels needed, as the layout is turned.
        width: u32,
        /// Pixels needed, as the layout is turned.
        height: u32,
        /// The sizes the model has.
        have: String,
    },
    /// The design's size is not the panel's.
    #[error("the design is {have_width} × {have_height} pixels; the panel needs {width} × {height} after rotation")]
    DesignSize {
        /// Pixels needed, as the design is turned.
        width: u32,
        /// Pixels needed, as the design is turned.
        height: u32,
        /// The design's pixels.
        have_width: u32,
        /// The design's pixels.
        have_height: u32,
    },
    /// The panel's size is out of range.
    #[error("the panel cannot be drawn: {0}")]
    Panel(String),
    /// The layout asks for more text fitting than a label may cost.
    #[error("the layout is too costly: fitting its texts takes more than {0} character-pixels")]
    TooCostly(u64),
    /// One element cannot be drawn.
    #[error("element \"{element}\": {cause}")]
    Element {
        /// The element's id.
        element: String,
        /// Why.
        cause: Cause,
    },
}

/// Why one element cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// A value the element needs is absent and the layout gives no default.
    #[error("{key} has no value, and the layout gives no default or condition")]
    Missing {
        /// `item.KEY` or `param.KEY`.
        key: String,
    },
    /// A value is longer than a label can show.
    #[error("the text has {chars} characters, at most {most} can be shown")]
    TooLong {
        /// Characters.
        chars: usize,
        /// Limit.
        most: usize,
    },
    /// No embedded font has the character.
    #[error("no embedded font has the character {ch} (U+{:04X})", u32::from(*.ch))]
    MissingGlyph {
        /// The character.
        ch: char,
    },
    /// A character that must not reach a label.
    #[error("the character U+{:04X} ({what}) is not allowed in \"{}\"", u32::from(*.ch), .value.escape_debug())]
    Forbidden {
        /// The character.
        ch: char,
        /// Its kind.
        what: &'static str,
        /// The value it is in.
        value: String,
    },
    /// Too large for its box even at the smallest size.
    #[error("\"{value}\" does not fit its {width} × {height} px box at the smallest size, {floor} px")]
    DoesNotFit {
        /// What should be shown.
        value: String,
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
        /// Pixels per em.
        floor: u16,
    },
    /// A price, or something it needs, does not read as such.
    #[error("\"{value}\" is no price: {why}")]
    Price {
        /// The value.
        value: String,
        /// Why.
        why: String,
    },
    /// The ink equals what lies beneath, so it could not be read.
    #[error("\"{value}\" would not be visible: what lies beneath has the same ink, {ink}")]
    Invisible {
        /// What should be shown.
        value: String,
        /// The ink.
        ink: picture::Ink,
    },
    /// Another element was drawn over a price or a barcode.
    #[error("a later element draws over it")]
    Covered,
    /// The value cannot be encoded.
    #[error("\"{value}\" is no {symbology}: {why}")]
    Barcode {
        /// The value.
        value: String,
        /// The symbology's name.
        symbology: &'static str,
        /// Why.
        why: String,
    },
    /// The symbol with its quiet zones is larger than the box at the smallest module.
    #[error(
        "the {symbology} of \"{value}\" needs {need_width} × {need_height} px with quiet zones at {module} px a module, its box has {width} × {height}"
    )]
    BarcodeDoesNotFit {
        /// The symbology's name.
        symbology: &'static str,
        /// The value.
        value: String,
        /// Pixels needed.
        need_width: u32,
        /// Pixels needed.
        need_height: u32,
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
        /// Pixels a module.
        module: u32,
    },
    /// A value is no date.
    #[error("\"{value}\" is no date: {why}")]
    Date {
        /// The value.
        value: String,
        /// Why.
        why: String,
    },
    /// A value is no picture that can be shown.
    #[error("the picture cannot be shown: {why}")]
    Picture {
        /// Why.
        why: String,
    },
    /// A condition compares something that is no decimal.
    #[error("condition on {key}: \"{value}\" is no decimal number")]
    Condition {
        /// `item.KEY` or `param.KEY`.
        key: String,
        /// The value.
        value: String,
    },
    /// The budget for fitting texts is used up; reported as [`RenderError::TooCostly`].
    #[error("fitting the texts takes too long")]
    Budget,
}
