//! The hardware address of a tag: parsed once, so nothing else ever becomes part of a path.

use std::{fmt, str::FromStr};

/// Eight bytes, written as 16 upper-case hexadecimal digits; 12 digits stand for six bytes behind two zero bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Mac(u64);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", self.0)
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Printed with or without colons.
        let digits: String = text.chars().filter(|character| *character != ':').collect();
        if !matches!(digits.len(), 12 | 16) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("the hardware address {text:?} is not 12 or 16 hexadecimal digits"));
        }
        u64::from_str_radix(&digits, 16).map(Self).map_err(|error| error.to_string())
    }
}
