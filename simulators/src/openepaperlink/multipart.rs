//! An upload's body, read the way the access point reads it.

use super::station::Parameters;

/// Parts read at most; an upload of ours has eight.
const PARTS_MAX: usize = 64;

/// What stood in a body: the parameters before the first file, and that file. Later parameters are lost, as they are
/// there: the file is dealt with before they are read.
pub(super) fn read(body: &[u8], boundary: &str) -> (Parameters, Option<Vec<u8>>) {
    let mut parameters = Parameters::default();
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let mut rest = find(body, &delimiter).and_then(|at| body.get(at + delimiter.len()..)).unwrap_or_default();
    let next = [b"\r\n", delimiter.as_slice()].concat();
    for _ in 0..PARTS_MAX {
        let Some(part) = rest.strip_prefix(b"\r\n") else { break };
        let Some(end) = find(part, &next) else { break };
        let (content, after) = part.split_at(end);
        rest = after.get(next.len()..).unwrap_or_default();
        let Some(head_end) = find(content, b"\r\n\r\n") else { break };
        let head = String::from_utf8_lossy(content.get(..head_end).unwrap_or_default()).into_owned();
        let data = content.get(head_end + 4..).unwrap_or_default();
        // A part that names a file, or its type, is a file.
        let is_file = quoted(&head, "filename").is_some() || head.to_ascii_lowercase().contains("content-type:");
        if is_file {
            return (parameters, Some(data.to_vec()));
        }
        if let Some(name) = quoted(&head, "name") {
            parameters.0.push((name, String::from_utf8_lossy(data).into_owned()));
        }
    }
    (parameters, None)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn quoted(head: &str, name: &str) -> Option<String> {
    let after = head.split(&format!(" {name}=\"")).nth(1)?;
    after.split_once('"').map(|(value, _)| value.to_owned())
}
