//! What the driver must remember of a picture on its way, as the text that the exporter keeps for it.

/// A receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receipt {
    /// The file the upload became over there: `/temp/{address}_{number}.jpg`.
    pub(super) filename: String,
    /// First halves of the hashes that prove the picture.
    pub(super) hashes: Vec<String>,
    /// First half of the hash that the tag reported before.
    pub(super) before: String,
    /// Whether the access point may have compressed it, so that its hash cannot be foretold.
    pub(super) may_be_compressed: bool,
}

/// Three hashes, a file name, marks: all far below the 200 bytes a receipt may have.
const HASHES_MAX: usize = 2;

impl Receipt {
    /// As text.
    pub(super) fn text(&self) -> String {
        let kind = if self.may_be_compressed { "c" } else { "r" };
        format!("1 {kind} {} {} {}", self.before, self.hashes.join(","), self.filename)
    }

    /// From its text; nothing where it is none, e.g. of another driver.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (Some("1"), Some(kind @ ("c" | "r"))) = (words.next(), words.next()) else { return None };
        let (Some(before), Some(hashes), Some(filename), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return None;
        };
        let hashes: Vec<String> = hashes.split(',').map(ToOwned::to_owned).collect();
        let is_hash = |hash: &String| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_plain = filename.starts_with("/temp/")
            && filename.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'.'))
            && !filename.contains("..");
        let before = before.to_owned();
        (hashes.len() <= HASHES_MAX && hashes.iter().all(is_hash) && is_hash(&before) && is_plain).then(|| Self {
            filename: filename.to_owned(),
            hashes,
            before,
            may_be_compressed: kind == "c",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_reads_back_and_fits() {
        let receipt = Receipt {
            filename: "/temp/00000000000012AB_18446744073709551615.jpg".into(),
            hashes: vec!["0123456789abcdef".into(), "fedcba9876543210".into()],
            before: "0000000000000000".into(),
            may_be_compressed: true,
        };
        assert!(receipt.text().len() <= 200);
        assert_eq!(Receipt::read(&receipt.text()), Some(receipt));
    }

    #[test]
    fn a_file_name_that_leads_elsewhere_is_no_receipt() {
        for file in ["/etc/passwd", "/temp/../tagDB.json", "/temp/a b", "/temp/a?x=1", "/temp/a%2e"] {
            assert_eq!(Receipt::read(&format!("1 r 0000000000000000 0123456789abcdef {file}")), None, "{file}");
        }
        assert_eq!(Receipt::read(""), None);
    }
}
