//! The workspace's own sources as text, for rules that no compiler holds.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

/// One Rust source file, taken apart.
#[derive(Debug)]
pub struct SourceFile {
    /// Path below the workspace root, with forward slashes.
    pub path: String,
    /// Lines before the file's own `#[cfg(test)]` part.
    pub non_test_lines: usize,
    /// The code without comments and without what stands in string literals.
    pub code: String,
    /// What stands in string literals, one a line.
    pub strings: String,
    /// The string literals one by one.
    pub literals: Vec<String>,
}

impl SourceFile {
    fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a source file is UTF-8");
        let (code, literals) = split(&text);
        let strings = literals.iter().flat_map(|literal| [literal.as_str(), "\n"]).collect();
        Self {
            path: path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/"),
            non_test_lines: text.lines().take_while(|line| line.trim() != "#[cfg(test)]").count(),
            code,
            strings,
            literals,
        }
    }

    /// Whether the file holds nothing but tests.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
            || self.path.ends_with("tests.rs")
    }

    /// The identifiers of the code.
    pub fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
    }
}

/// Every Rust file of the workspace, by path.
pub fn sources() -> Vec<SourceFile> {
    let root = workspace_root();
    let mut paths = Vec::new();
    collect(&root, "rs", &mut paths);
    paths.sort();
    paths.iter().map(|path| SourceFile::read(&root, path)).collect()
}

/// Every file below `dir` with that extension. Build output and hidden folders are left out.
pub fn collect(dir: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.expect("a directory entry").path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                collect(&path, extension, into);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
}

/// Code and string contents of a Rust text. Knows line and (nested) block comments, plain, byte and raw strings, and
/// tells character literals from lifetimes; that is all the rules here need.
fn split(text: &str) -> (String, Vec<String>) {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let (mut code, mut literals, mut literal) = (String::new(), Vec::new(), String::new());
    let mut index = 0;
    while index < chars.len() {
        match (at(index), at(index + 1)) {
            ('/', '/') => {
                while index < chars.len() && at(index) != '\n' {
                    index += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                loop {
                    match (at(index), at(index + 1)) {
                        ('/', '*') => (depth, index) = (depth + 1, index + 2),
                        ('*', '/') => (depth, index) = (depth - 1, index + 2),
                        _ => index += 1,
                    }
                    if depth == 0 || index >= chars.len() {
                        break;
                    }
                }
            }
            ('r', '"' | '#') if !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                let hashes = (index + 1..chars.len()).take_while(|next| at(*next) == '#').count();
                if at(index + 1 + hashes) == '"' {
                    index += hashes + 2;
                    while index < chars.len() && !(at(index) == '"' && (1..=hashes).all(|step| at(index + step) == '#'))
                    {
                        literal.push(at(index));
                        index += 1;
                    }
                    literals.push(std::mem::take(&mut literal));
                    code.push_str("\"\"");
                    index += 1 + hashes;
                } else {
                    code.push('r');
                    index += 1;
                }
            }
            ('"', _) => {
                index += 1;
                while index < chars.len() && at(index) != '"' {
                    index += usize::from(at(index) == '\\');
                    literal.push(at(index));
                    index += 1;
                }
                literals.push(std::mem::take(&mut literal));
                code.push_str("\"\"");
                index += 1;
            }
            ('\'', '\\') => {
                index += 2;
                while index < chars.len() && at(index + 1) != '\'' {
                    index += 1;
                }
                index += 2;
            }
            ('\'', _) if at(index + 2) == '\'' => index += 3,
            (c, _) => {
                code.push(c);
                index += 1;
            }
        }
    }
    (code, literals)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn comments_go_and_strings_stand_apart() {
        let (code, literals) = split(
            "let a = \"x // no\"; // gone \"gone\"\nlet b: &'a str = r#\"raw \"q\"\"#; /* a /* b */ c */ let c = '\"'; let r = '\\''; end",
        );
        assert_eq!(literals, ["x // no", "raw \"q\""]);
        assert!(!code.contains("gone") && !code.contains("raw") && !code.contains('c'.to_string().repeat(2).as_str()));
        assert!(code.contains("&'a str") && code.trim_end().ends_with("end"), "{code}");
    }
}
