//! Writes records in large calls: `PutMany` checks and writes each batch in one transaction.

use std::collections::HashSet;

use domain::{Refusal, Urn, limits};
use proto::{
    DtoFlowClient,
    dtoflow::v1::{PutItem, PutManyRequest, WriteStatus},
    refusal_from_status,
};

use super::Record;

/// Payload bytes of one call: half of the largest message, so that names and framing never reach it.
const CALL_BYTES_MAX: usize = limits::MESSAGE_MAX_BYTES / 2;
/// Records of one call: one transaction of well under a second, so that the services' own writes get between.
const CALL_RECORDS_MAX: usize = 2_000;

/// Why records were not written. Batches before the refused one are written.
#[derive(Debug, thiserror::Error)]
#[error("{refusal}")]
pub struct WriteError {
    /// What DTOflow said.
    pub refusal: Refusal,
    /// Position of the record at fault among those given, when it is about one.
    pub position: Option<usize>,
    /// What was written before.
    pub written: Written,
}

/// What became of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// New or changed.
    pub written: u64,
    /// The same as before.
    pub unchanged: u64,
}

impl Written {
    /// Records handled.
    pub fn total(self) -> u64 {
        self.written + self.unchanged
    }
}

/// Writes as `svc:record-import`.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    dtoflow: DtoFlowClient,
    tracking_id: String,
    batch: Vec<Record>,
    batch_bytes: usize,
    batch_urns: HashSet<Urn>,
    given: usize,
    written: Written,
}

impl RecordWriter {
    /// A writer over a client that carries the importer's credentials. `tracking_id` goes on to every notification; with
    /// one, every label that follows is logged.
    pub fn new(dtoflow: DtoFlowClient, tracking_id: Option<&domain::TrackingId>) -> Self {
        Self {
            dtoflow,
            tracking_id: tracking_id.map(ToString::to_string).unwrap_or_default(),
            batch: Vec::new(),
            batch_bytes: 0,
            batch_urns: HashSet::new(),
            given: 0,
            written: Written::default(),
        }
    }

    /// Takes a record; writes the batch when it is full or holds the record's name already (a call may not name one twice).
    pub async fn push(&mut self, record: Record) -> Result<(), WriteError> {
        let full = self.batch.len() >= CALL_RECORDS_MAX
            || self.batch_bytes + record.payload.len() > CALL_BYTES_MAX
            || self.batch_urns.contains(&record.urn);
        if full {
            self.flush().await?;
        }
        self.batch_bytes += record.payload.len();
        self.batch_urns.insert(record.urn.clone());
        self.batch.push(record);
        Ok(())
    }

    /// Writes what is left; says what became of all.
    pub async fn finish(mut self) -> Result<Written, WriteError> {
        self.flush().await?;
        Ok(self.written)
    }

    async fn flush(&mut self) -> Result<(), WriteError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let first = self.given;
        let items: Vec<PutItem> = self.batch.drain(..).map(|record| put_item(record, &self.tracking_id)).collect();
        self.given += items.len();
        self.batch_urns.clear();
        self.batch_bytes = 0;
        let answer = self.dtoflow.put_many(PutManyRequest { items, lease: None }).await;
        let results = answer.map_err(|status| {
            let refusal = refusal_from_status(&status);
            let position = item_index(&refusal.field).map(|index| first + index);
            WriteError { refusal, position, written: self.written }
        })?;
        for result in results.into_inner().results {
            match result.status() {
                WriteStatus::Unchanged => self.written.unchanged += 1,
                _ => self.written.written += 1,
            }
        }
        Ok(())
    }
}

fn put_item(record: Record, tracking_id: &str) -> PutItem {
    PutItem {
        dto_type: record.dto_type.to_string(),
        dto_id: record.urn.to_string(),
        payload: record.payload,
        inputs: Vec::new(),
        sla_timestamp: None,
        tracking_id: tracking_id.to_owned(),
    }
}

/// The index in a field path such as `items[17].payload`.
fn item_index(field: &str) -> Option<usize> {
    field.strip_prefix("items[")?.split(']').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_is_read_from_the_refused_field() {
        assert_eq!(item_index("items[17].payload"), Some(17));
        assert_eq!(item_index("items"), None);
        assert_eq!(item_index("lease.generation"), None);
    }
}
