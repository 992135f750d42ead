//! Server-sent events of one operation. Every event is a whole snapshot, so what is lost between two of them does no harm.

use std::time::Duration;

use super::{CliError, Exit};

/// Longest silence: the gateway gives a sign of life every 15 seconds, so four of them were lost.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// Largest event, in bytes: as the largest answer.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// What to come back with after a broken stream.
    pub id: String,
    /// Its data.
    pub data: String,
}

/// An open stream.
#[derive(Debug)]
pub struct Events {
    response: reqwest::Response,
    parser: Parser,
}

impl Events {
    pub(super) fn of(response: reqwest::Response) -> Self {
        Self { response, parser: Parser::default() }
    }

    /// The next event; none when the stream ended, broke, or fell silent: whoever wants more comes back.
    pub async fn next(&mut self) -> Result<Option<Event>, CliError> {
        loop {
            if let Some(event) = self.parser.take() {
                return Ok(Some(event));
            }
            match tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => self.parser.push(&chunk)?,
                Ok(Ok(None) | Err(_)) | Err(_) => return Ok(None),
            }
        }
    }
}

/// Bytes of a stream, taken apart at blank lines. The gateway ends lines with a line feed.
#[derive(Debug, Default)]
struct Parser {
    bytes: Vec<u8>,
    /// Bytes in which no end of an event was found, so that none is looked at twice.
    looked_at: usize,
}

impl Parser {
    fn push(&mut self, chunk: &[u8]) -> Result<(), CliError> {
        if self.bytes.len() + chunk.len() > EVENT_BYTES_MAX {
            return Err(CliError::new(Exit::Unexpected, format!("an event has more than {EVENT_BYTES_MAX} bytes")));
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// The next event that has data; comments and hints are passed over.
    fn take(&mut self) -> Option<Event> {
        loop {
            let rest = self.bytes.get(self.looked_at..)?;
            let Some(found) = rest.windows(2).position(|pair| pair == b"\n\n") else {
                self.looked_at = self.bytes.len().saturating_sub(1);
                return None;
            };
            let block: Vec<u8> = self.bytes.drain(..self.looked_at + found + 2).collect();
            self.looked_at = 0;
            let event = event(&String::from_utf8_lossy(&block));
            if !event.data.is_empty() {
                return Some(event);
            }
        }
    }
}

fn event(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut event.id),
            "data" => {
                if !event.data.is_empty() {
                    event.data.push('\n');
                }
                event.data.push_str(value);
            }
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_the_bytes_are_cut() {
        let stream = ": hello\n\nretry: 2000\n\nevent: operation\nid: 7\ndata: {\"a\":\"\u{e4}\"}\n\n: beat\n\nid: 8\ndata: 1\ndata: 2\n\n";
        for size in 1..stream.len() {
            let mut parser = Parser::default();
            let mut found = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                parser.push(chunk).unwrap();
                while let Some(event) = parser.take() {
                    found.push((event.id, event.data));
                }
            }
            let expected = [("7", "{\"a\":\"\u{e4}\"}"), ("8", "1\n2")];
            assert_eq!(found, expected.map(|(id, data)| (id.to_owned(), data.to_owned())), "{size}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; EVENT_BYTES_MAX];
        parser.push(&chunk).unwrap();
        assert!(parser.push(b"y").is_err());
    }
}
