//! The hardware address of a tag.

use std::{fmt, str::FromStr};

/// Eight bytes, written as 16 upper-case hexadecimal digits; 12 digits stand for six bytes behind two zero bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(u64);

/// The text is neither 12 nor 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacError;

impl Mac {
    /// From its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", self.0)
    }
}

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        if !matches!(text.len(), 12 | 16) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(MacError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| MacError)
    }
}

impl fmt::Display for MacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hardware address is 12 or 16 hexadecimal digits")
    }
}

impl std::error::Error for MacError {}
