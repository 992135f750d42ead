//! Why an operator acts: free text that is shown, logged and kept, so it is clean.

use std::{fmt, str::FromStr};

/// Longest reason, in characters: a sentence with a ticket number, not an essay; it stands in every log line.
pub(crate) const REASON_MAX_CHARS: usize = 500;

/// A reason: 1 to 500 characters, trimmed, without control or direction-changing characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(Box<str>);

/// Why a text is not a reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReasonError {
    /// Nothing but white space.
    #[error("must not be empty")]
    Empty,
    /// Too long.
    #[error("must be at most {REASON_MAX_CHARS} characters long")]
    TooLong,
    /// A control, bidirectional or invisible character, which would let a text lie about itself in a log or a list.
    #[error("must not hold control or invisible characters (U+{0:04X})")]
    Character(u32),
}

/// Whether a character may stand in a text that people read in logs, lists and files.
pub(crate) fn is_clean(c: char) -> bool {
    !(c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}'))
}

impl Reason {
    /// The reason as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Reason {
    type Err = ReasonError;

    fn from_str(text: &str) -> Result<Self, ReasonError> {
        let trimmed = text.trim_matches(' ');
        if trimmed.is_empty() {
            return Err(ReasonError::Empty);
        }
        if trimmed.chars().count() > REASON_MAX_CHARS {
            return Err(ReasonError::TooLong);
        }
        match trimmed.chars().find(|c| !is_clean(*c)) {
            Some(c) => Err(ReasonError::Character(u32::from(c))),
            None => Ok(Self(trimmed.into())),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_clean() {
        assert!("CHG-118: Schriftfehler bei „Äpfel“ behoben".parse::<Reason>().is_ok());
        for bad in ["", "   ", "a\nb", "a\u{202E}b", "a\u{0}b", "a\u{200B}", &"x".repeat(501)] {
            assert!(bad.parse::<Reason>().is_err(), "{bad:?}");
        }
    }
}
