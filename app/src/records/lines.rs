//! A file of records, one JSON object a line; empty lines are skipped.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
};

use super::{Record, RecordError, record_from_json};

/// Longest line, in bytes: a record of 320 KiB whose layout stands in it as an escaped text, with room.
const LINE_MAX_BYTES: u64 = 1024 * 1024;

/// Why a line was not read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Read {
        /// Where.
        line: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The line is too long.
    #[error("line {line}: longer than {LINE_MAX_BYTES} bytes")]
    Long {
        /// Where.
        line: u64,
    },
    /// The line is not a record.
    #[error("line {line}: {source}")]
    Record {
        /// Where.
        line: u64,
        /// Why.
        #[source]
        source: RecordError,
    },
}

/// The records of a file with their line numbers.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    line: u64,
}

impl Lines<BufReader<File>> {
    /// The records of the file at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(BufReader::new(File::open(path)?)))
    }
}

impl<R: BufRead> Lines<R> {
    /// The records that `reader` holds.
    pub fn new(reader: R) -> Self {
        Self { reader, line: 0 }
    }

    fn read_line(&mut self) -> Result<Option<String>, LineError> {
        self.line += 1;
        let line = self.line;
        let mut text = String::new();
        let read = (&mut self.reader)
            .take(LINE_MAX_BYTES + 1)
            .read_line(&mut text)
            .map_err(|source| LineError::Read { line, source })?;
        if read as u64 > LINE_MAX_BYTES {
            return Err(LineError::Long { line });
        }
        Ok((read > 0).then_some(text))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<(u64, Record), LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let text = match self.read_line() {
                Ok(text) => text?,
                Err(error) => return Some(Err(error)),
            };
            if !text.trim().is_empty() {
                let line = self.line;
                let record = record_from_json(text.trim_end()).map_err(|source| LineError::Record { line, source });
                return Some(record.map(|record| (line, record)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_bounded() {
        let good = r#"{"dto_type":"accesspoint.v1","dto_id":"t/T/s/S/accesspoints/A","record":{"driver":"folder"}}"#;
        let text = format!("{good}\n\n{good}\nnonsense\n");
        let read: Vec<_> = Lines::new(text.as_bytes()).collect();
        assert_eq!(read[0].as_ref().unwrap().0, 1);
        assert_eq!(read[1].as_ref().unwrap().0, 3);
        assert!(read[2].as_ref().unwrap_err().to_string().starts_with("line 4: "));
        assert_eq!(read.len(), 3);

        let long = "x".repeat(usize::try_from(LINE_MAX_BYTES).unwrap() + 1);
        assert!(matches!(Lines::new(long.as_bytes()).next(), Some(Err(LineError::Long { line: 1 }))));
    }
}
