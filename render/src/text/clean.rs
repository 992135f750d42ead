//! Which characters may reach a label, and in which form.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::error::Cause;

/// Most characters of one text after its values are put in: a large label full of 12 px text has about as many.
pub(crate) const CHARS_MAX: usize = 1_000;

/// NFC without invisible characters, or why the text must not be shown. `newlines`: whether U+000A is a line break
/// (in a layout's own words) or a control character (in values).
pub(crate) fn clean(text: &str, newlines: bool) -> Result<Cow<'_, str>, Cause> {
    let chars = text.chars().count();
    if chars > CHARS_MAX {
        return Err(Cause::TooLong { chars, most: CHARS_MAX });
    }
    if text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        return Ok(Cow::Borrowed(text));
    }
    for ch in text.chars() {
        if let Some(what) = forbidden(ch).filter(|_| !(newlines && ch == '\n')) {
            return Err(Cause::Forbidden { ch, what, value: text.to_owned() });
        }
    }
    let normal = match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfc().collect::<String>()),
    };
    Ok(if normal.chars().any(invisible) {
        Cow::Owned(normal.chars().filter(|ch| !invisible(*ch)).collect())
    } else {
        normal
    })
}

/// The kind of a character that is refused.
fn forbidden(ch: char) -> Option<&'static str> {
    match u32::from(ch) {
        0..=0x1F | 0x7F..=0x9F => Some("a control character"),
        0x2028 | 0x2029 => Some("a line separator"),
        0x061C | 0x200E | 0x200F | 0x202A..=0x202E | 0x2066..=0x2069 => Some("a direction control"),
        0xFFF9..=0xFFFB | 0xE0000..=0xE0FFF => Some("an annotation or tag character"),
        // Shown left to right they would read wrong, so they are refused rather than shown wrong.
        0x0590..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFE | 0x10800..=0x10FFF | 0x1E800..=0x1EFFF => {
            Some("right-to-left script, which is not supported")
        }
        _ => None,
    }
}

/// Soft hyphen, zero-width spaces and joiners, byte order mark, variation selectors: nothing to show.
fn invisible(ch: char) -> bool {
    matches!(u32::from(ch), 0xAD | 0x200B..=0x200D | 0x2060 | 0xFEFF | 0xFE00..=0xFE0F)
}
