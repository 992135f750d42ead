//! Ids: each parsed once, valid ever after.

use std::{fmt, str::FromStr};

/// Longest tenant, store or record id, in bytes. A hardware barcode has 17 characters, a UUID 36; 64 leaves room and
/// keeps every URN under 300 bytes, so index keys stay small.
pub(crate) const ID_MAX_BYTES: usize = 64;
/// Longest tracking id, in bytes (the operator API's published bound).
pub(crate) const TRACKING_ID_MAX_BYTES: usize = 128;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("must not be empty")]
    Empty,
    /// More bytes than the id may have.
    #[error("must be at most {max} bytes long")]
    TooLong {
        /// The bound, in bytes.
        max: usize,
    },
    /// A character outside the allowed set.
    #[error("may hold only {allowed}")]
    Charset {
        /// The allowed set, as an operator reads it.
        allowed: &'static str,
    },
}

fn check(text: &str, max: usize, allowed: &'static str, ok: fn(u8) -> bool) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > max {
        return Err(IdError::TooLong { max });
    }
    // `.` and `..` would change a path's meaning wherever an id becomes part of one.
    if !text.bytes().all(ok) || text == "." || text == ".." {
        return Err(IdError::Charset { allowed });
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $max:expr, $allowed:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                check(text, $max, $allowed, $ok)?;
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

fn record_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn tracking_char(byte: u8) -> bool {
    record_char(byte) || byte == b':'
}

fn queue_char(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

id!(
    /// A retailer. First in every key: no statement, lane or list spans two of them.
    TenantId,
    ID_MAX_BYTES,
    "A-Z a-z 0-9 . _ -",
    record_char
);
id!(
    /// A store of a tenant.
    StoreId,
    ID_MAX_BYTES,
    "A-Z a-z 0-9 . _ -",
    record_char
);
id!(
    /// The last segment of a record's URN: a label, an item, a model … Text, never a number (vendors mix both).
    RecordId,
    ID_MAX_BYTES,
    "A-Z a-z 0-9 . _ -",
    record_char
);
id!(
    /// Names one accepted trigger within its tenant, given by the caller; goes along to every notification it causes.
    TrackingId,
    TRACKING_ID_MAX_BYTES,
    "A-Z a-z 0-9 . _ : -",
    tracking_char
);
id!(
    /// A queue of the change queue service; equals the name of the service that owns it.
    QueueName,
    ID_MAX_BYTES,
    "a-z 0-9 -",
    queue_char
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_refuse_what_breaks_a_urn_or_a_path() {
        for bad in ["", "a/b", "..", ".", "a b", "ä", "a\0", "a%2f", &"x".repeat(65)] {
            assert!(bad.parse::<RecordId>().is_err(), "{bad:?} must be refused");
        }
        assert_eq!("A4631053950916186".parse::<RecordId>().unwrap().as_str(), "A4631053950916186");
    }

    #[test]
    fn tracking_ids_take_colons_and_128_bytes() {
        assert!("CHG-118:store.7_b".parse::<TrackingId>().is_ok());
        assert!("x".repeat(128).parse::<TrackingId>().is_ok());
        assert_eq!("x".repeat(129).parse::<TrackingId>(), Err(IdError::TooLong { max: 128 }));
        assert!("line\nbreak".parse::<TrackingId>().is_err());
    }
}
