//! Why a document is no Studio design, in words its author can act on.

/// Why a design was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// Longer than it may be.
    #[error("the {what} has {bytes} bytes, at most {most} are allowed")]
    TooLong {
        /// `SVG` or `mappings`.
        what: &'static str,
        /// Bytes.
        bytes: usize,
        /// Limit.
        most: usize,
    },
    /// The SVG is not well-formed, or breaks a limit as a whole.
    #[error("the SVG is refused: {0}")]
    Svg(String),
    /// The mappings are not the documented JSON.
    #[error("the mappings cannot be read: {0}")]
    Mappings(String),
    /// One SVG element or its mapping breaks a rule.
    #[error("the design is refused: {element}: {rule}")]
    Element {
        /// The element's id in quotes, or its name and line.
        element: String,
        /// The rule it breaks.
        rule: String,
    },
}
