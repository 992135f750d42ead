//! What targets begin with: the hostile corpus and the product's own files.

use std::fs;

use super::INPUT_MAX_BYTES;
use crate::source::workspace_root;
use serde_json::Value;

/// Every case of a file of the corpus.
pub(super) fn cases(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(workspace_root().join("tests/corpus").join(file)).expect("the corpus");
    text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

/// A text of a case.
pub(super) fn field<'c>(case: &'c Value, key: &str) -> &'c str {
    case[key].as_str().expect("a text")
}

/// The bytes of a message of the corpus.
pub(super) fn bytes(case: &Value) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from((byte as char).to_digit(16).expect("hex")).expect("a digit");
    field(case, "bytes").as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Names and contents of the files with that end in a folder of the workspace, in order; not those longer than an input is.
pub(super) fn files(folder: &str, end: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(workspace_root().join(folder)).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == end));
    paths.sort();
    let read = paths.into_iter().map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(path).expect("a file"))
    });
    read.filter(|(_, bytes)| bytes.len() <= INPUT_MAX_BYTES).collect()
}

/// The blocks of that language in a document.
pub(super) fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace_root().join(document)).expect("a document");
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1).filter_map(|rest| rest.split_once("```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}
