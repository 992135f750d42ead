//! Bytes as text.

use std::fmt::Write as _;

/// Lower-case hexadecimal digits, two a byte.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn each_byte_is_two_lower_case_digits() {
        assert_eq!(hex([0, 9, 0xab, 0xff]), "0009abff");
        assert_eq!(hex([]), "");
    }
}
