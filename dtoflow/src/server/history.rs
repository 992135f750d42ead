//! `ListHistory`.

use daemon::identity::caller;
use domain::{DtoType, Refusal};
use proto::{dtoflow::v1 as wire, timestamp_to_wire};
use tonic::Request;

use super::{DtoFlowServer, write::record_urn};
use crate::{
    history::{Digest, HistoryAsk, HistoryCause, HistoryEntry, HistoryEvent},
    limits::{HISTORY_PAGE_DEFAULT, HISTORY_PAGE_MAX},
};

const LIST: &str = "dtoflow.v1.DtoFlowService/ListHistory";

type Result<T> = std::result::Result<T, Refusal>;

impl DtoFlowServer {
    pub(super) async fn history(
        &self,
        request: Request<wire::ListHistoryRequest>,
    ) -> Result<wire::ListHistoryResponse> {
        caller(&request)?.require_rpc(LIST)?;
        let ask = ask(&request.into_inner())?;
        let page = self.store.history_list(ask).await.map_err(|error| error.into_refusal(LIST))?;
        let last = page.entries.last().filter(|_| page.more);
        let next_page_token = last.map(|last| last.position.to_string()).unwrap_or_default();
        Ok(wire::ListHistoryResponse { entries: page.entries.into_iter().map(entry).collect(), next_page_token })
    }
}

fn ask(request: &wire::ListHistoryRequest) -> Result<HistoryAsk> {
    let urn = record_urn("dto_id", DtoType::StoreEsl, &request.dto_id)?;
    let (Some(store), Some(label)) = (urn.store(), urn.record_id()) else {
        return Err(Refusal::field("dto_id", "is not the URN of a label"));
    };
    let limit = match usize::try_from(request.page_size) {
        Ok(0) => HISTORY_PAGE_DEFAULT,
        Ok(size) if size <= HISTORY_PAGE_MAX => size,
        _ => return Err(Refusal::field("page_size", format!("must be 0 to {HISTORY_PAGE_MAX}"))),
    };
    let before = match request.page_token.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|_| Refusal::field("page_token", "is not of an answer to this request"))?),
    };
    Ok(HistoryAsk { tenant: urn.tenant().clone(), store: store.clone(), label: label.clone(), before, limit })
}

fn entry(entry: HistoryEntry) -> wire::HistoryEntry {
    let event = match entry.event {
        HistoryEvent::Picture => wire::HistoryEvent::Picture,
        HistoryEvent::Removed => wire::HistoryEvent::Removed,
        HistoryEvent::Confirmed => wire::HistoryEvent::Confirmed,
        HistoryEvent::Failed => wire::HistoryEvent::Failed,
        HistoryEvent::Lost => wire::HistoryEvent::Lost,
    };
    let digest = |digest: Option<Digest>| digest.map(|digest| digest.to_vec()).unwrap_or_default().into();
    wire::HistoryEntry {
        at: Some(timestamp_to_wire(entry.at)),
        event: event.into(),
        of_operation: entry.cause == HistoryCause::Operation,
        written_by: entry.written_by.to_string(),
        tracking_id: entry.tracking_id.map(|id| id.to_string()).unwrap_or_default(),
        old_digest: digest(entry.old_digest),
        new_digest: digest(entry.new_digest),
        evidence: entry.evidence.into(),
    }
}
