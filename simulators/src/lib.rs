//! Simulated hardware: access points and tags that behave like the real ones, faults included, over real sockets.
//!
//! Reading order: [`openepaperlink`] (an access point with its tags), [`opendisplay`] (a tag on the local network).
//!
//! Invariants
//! - What a tag shows comes only from the bytes that arrived, decoded again to pixels; nothing of the sender's types is used.
//! - Time is injected. A simulator does nothing in the background: whatever was due happens, in order, before the next
//!   request or look, so the same calls at the same moments give the same end.
//! - Every surprising behaviour that the hardware is known for is reproduced, also where it looks like a mistake.
//!
//! Deliberately not here: drivers (`worker`); radio (a check-in either happens or does not); anything not known of the
//! hardware, which is left out rather than invented.

pub mod opendisplay;
pub mod openepaperlink;
