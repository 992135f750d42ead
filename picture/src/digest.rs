//! What identifies a picture's content.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::pack::{self, HEADER_BYTES};
use crate::picture::Picture;

/// SHA-256 over the picture's content: palette number, width, height, and the rows at the palette's bits per pixel,
/// uncompressed. So it does not depend on how the picture is stored, and equal digests mean equal pixels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of given bytes, as they come from a record.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Over a header and packed rows.
    pub(crate) fn over(header: [u8; HEADER_BYTES], rows: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(header);
        hasher.update(rows);
        Self(hasher.finalize().into())
    }
}

impl Picture {
    /// The digest of this picture. Where the packed bytes are needed too, [`Picture::pack_with_digest`] is cheaper.
    pub fn digest(&self) -> Digest {
        Digest::over(pack::header(self), &pack::rows(self))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(DigestError),
        };
        if text.len() != 64 {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            if let [high, low] = pair {
                *byte = nibble(*high)? << 4 | nibble(*low)?;
            }
        }
        Ok(Self(bytes))
    }
}
