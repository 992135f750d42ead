//! Splitting: the next page of what a notification expands to becomes its children, in one `ReEnqueue` each.

use std::collections::BTreeMap;

use domain::{
    DtoType, IdSource, Notification, Outcome, QueueName, SplitItem, StoreId, Target, Timestamp, Urn,
    limits::SPLIT_CHILDREN_MAX,
};

use super::{AliasQuery, CallError, Context, Expansion, Platform, Service, backoff::persist};

/// `ReEnqueue` calls in flight of one batch: they share the platform's group commit.
const CALLS_AT_ONCE: usize = 16;

/// One page of children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) children: Vec<SplitItem>,
    /// Where the split goes on; empty when this page is the last.
    pub(crate) next_cursor: String,
    /// When the lane is due that parents open where they leave an ordinary change; none: as the change.
    pub(crate) lane_sla: Option<Timestamp>,
}

/// What came of splitting one notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Split {
    /// Re-enqueued; CQS completed it or put it back at its cursor.
    ReEnqueued,
    /// Nothing lies under it, or it cannot be split: the caller reports this.
    Report(Outcome),
}

/// What splitting is done with.
#[derive(Clone, Copy)]
pub(crate) struct Splitter<'a> {
    pub(crate) service: &'a dyn Service,
    pub(crate) context: Context<'a>,
    pub(crate) ids: &'a dyn IdSource,
}

impl Splitter<'_> {
    /// Splits every notification by one page; results in order. Errors only with a lost lease. Each call is repeated by
    /// itself while the platform is away (a repeated `ReEnqueue` is a no-op), so that progress is kept.
    pub(crate) async fn split_many(self, splits: &[(Notification, Expansion)]) -> Result<Vec<Split>, CallError> {
        let mut done = Vec::with_capacity(splits.len());
        let mut ahead = splits.iter().zip(self.pages_or_causes(splits).await?);
        loop {
            let calls: Vec<_> = ahead
                .by_ref()
                .take(CALLS_AT_ONCE)
                .map(|((notification, expansion), page)| self.split(notification, expansion, page))
                .collect();
            if calls.is_empty() {
                return Ok(done);
            }
            done.extend(futures::future::try_join_all(calls).await?);
        }
    }

    /// A page each; where one cannot be read, what is reported for it.
    async fn pages_or_causes(
        self,
        splits: &[(Notification, Expansion)],
    ) -> Result<Vec<Result<Page, Outcome>>, CallError> {
        match persist(self.ids, "a look-up", || pages(self.context.platform, splits)).await {
            Ok(pages) => return Ok(pages.into_iter().map(Ok).collect()),
            Err(CallError::Stale) => return Err(CallError::Stale),
            Err(error) => tracing::error!(%error, "a look-up for all failed; looking up one by one"),
        }
        let mut pages = Vec::with_capacity(splits.len());
        for (notification, expansion) in splits {
            let page = persist(self.ids, "a look-up", || alone(self.context.platform, notification, expansion)).await;
            pages.push(reported(page)?);
        }
        Ok(pages)
    }

    async fn split(
        self,
        notification: &Notification,
        expansion: &Expansion,
        page: Result<Page, Outcome>,
    ) -> Result<Split, CallError> {
        let page = match page {
            Ok(page) => page,
            Err(outcome) => return Ok(Split::Report(outcome)),
        };
        let Context { platform, lease, .. } = self.context;
        let queue = &lease.queue;
        if page.children.is_empty() && page.next_cursor.is_empty() && notification.cursor.is_empty() {
            log(queue, notification, expansion, (0, 0), "nothing found");
            return Ok(Split::Report(Outcome::Done));
        }
        let before = || self.service.before_children(self.context, notification, &page.children);
        if let Err(outcome) = reported(persist(self.ids, "what comes before a split", before).await)? {
            return Ok(Split::Report(outcome));
        }
        let call = || platform.re_enqueue(lease, notification.id, &page);
        match reported(persist(self.ids, "a split", call).await)? {
            Err(outcome) => Ok(Split::Report(outcome)),
            Ok(response) => {
                let state = if page.next_cursor.is_empty() { "split" } else { "split, more to come" };
                log(queue, notification, expansion, (response.items_enqueued, response.items_coalesced), state);
                Ok(Split::ReEnqueued)
            }
        }
    }
}

/// What is reported where a call fails for good; only a lost lease stays an error.
fn reported<T>(result: Result<T, CallError>) -> Result<Result<T, Outcome>, CallError> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(CallError::Stale) => Err(CallError::Stale),
        Err(CallError::Never(refusal)) => Ok(Err(Outcome::Failed { cause: refusal.to_string() })),
        Err(error) => Ok(Err(Outcome::Retry { cause: error.to_string() })),
    }
}

fn log(
    queue: &QueueName,
    notification: &Notification,
    expansion: &Expansion,
    (enqueued, coalesced): (i32, i32),
    state: &str,
) {
    let (into, of) = match expansion {
        Expansion::Records(query) => ("records", query.dto_type),
        Expansion::Stores(query) => ("stores", query.dto_type),
        Expansion::Parent { parent, .. } => ("a parent", parent.dto_type),
    };
    let tracking_id = notification.tracking_id.as_ref().map(domain::TrackingId::as_str).unwrap_or_default();
    // A real parent is rare and worth a line; a changed item is not, unless someone follows it.
    if notification.item.target.is_parent() || !tracking_id.is_empty() {
        tracing::info!(
            queue = %queue, tracking_id, urn = %notification.item.target.urn(),
            %of, into, enqueued, coalesced, "{state}"
        );
    } else {
        tracing::debug!(urn = %notification.item.target.urn(), %of, into, enqueued, coalesced, "{state}");
    }
}

/// The next page of every notification: those at their start share look-ups, as changed items come by the hundred.
async fn pages(platform: &Platform, splits: &[(Notification, Expansion)]) -> Result<Vec<Page>, CallError> {
    let mut groups = BTreeMap::<_, Vec<(usize, &AliasQuery)>>::new();
    for (index, (notification, expansion)) in splits.iter().enumerate() {
        if let Expansion::Records(query) = expansion
            && notification.cursor.is_empty()
        {
            groups.entry((query.dto_type, query.alias)).or_default().push((index, query));
        }
    }
    let mut shared: Vec<Option<Page>> = vec![None; splits.len()];
    // One alone gains nothing from sharing, and a large one would be looked up twice.
    for ((dto_type, _), members) in groups.into_iter().filter(|(_, members)| members.len() > 1) {
        let (indices, queries): (Vec<usize>, Vec<&AliasQuery>) = members.into_iter().unzip();
        let answer = platform.list_by_alias(&queries, SPLIT_CHILDREN_MAX, "").await?;
        let entries = answer.entries.iter().map(|entry| (entry.parent_index, entry.dto_id.as_str()));
        let whole = whole_pages(dto_type, queries.len(), entries, answer.next_page_token.is_empty())?;
        for (index, page) in indices.into_iter().zip(whole) {
            if let Some(slot) = shared.get_mut(index) {
                *slot = page;
            }
        }
    }
    let mut pages = Vec::with_capacity(splits.len());
    for (page, (notification, expansion)) in shared.into_iter().zip(splits) {
        pages.push(match page {
            Some(page) => page,
            None => alone(platform, notification, expansion).await?,
        });
    }
    Ok(pages)
}

async fn alone(platform: &Platform, notification: &Notification, expansion: &Expansion) -> Result<Page, CallError> {
    let cursor = &notification.cursor;
    match expansion {
        Expansion::Records(query) => {
            let answer = platform.list_by_alias(&[query], SPLIT_CHILDREN_MAX, cursor).await?;
            let children =
                answer.entries.iter().map(|entry| child(query.dto_type, &entry.dto_id)).collect::<Result<_, _>>()?;
            Ok(Page { children, next_cursor: answer.next_page_token, lane_sla: None })
        }
        Expansion::Stores(query) => {
            let answer = platform.list_stores(query, SPLIT_CHILDREN_MAX, cursor).await?;
            let children =
                answer.stores.iter().map(|store| in_store(query, &store.store_id)).collect::<Result<_, _>>()?;
            Ok(Page { children, next_cursor: answer.next_page_token, lane_sla: None })
        }
        Expansion::Parent { parent, allowance_ms } => Ok(Page {
            children: vec![parent.clone()],
            next_cursor: String::new(),
            lane_sla: Some(notification.sla.plus_ms(*allowance_ms)),
        }),
    }
}

/// The parent of `query` seen from a store.
fn in_store(query: &AliasQuery, store_id: &str) -> Result<SplitItem, CallError> {
    let store: StoreId = store_id.parse().map_err(|error| CallError::answer(&format!("store {store_id:?} {error}")))?;
    let parent = Target::Parent(query.parent.seen_from(&store));
    Ok(SplitItem { dto_type: query.dto_type, target: parent, alias: Some(query.alias) })
}

/// Per parent its page, or none where the shared page may have cut it: when more is to come, that is the last parent
/// seen and all after it.
fn whole_pages<'a>(
    dto_type: DtoType,
    parents: usize,
    entries: impl Iterator<Item = (i32, &'a str)>,
    complete: bool,
) -> Result<Vec<Option<Page>>, CallError> {
    let mut pages: Vec<Option<Page>> = vec![Some(Page::default()); parents];
    let mut last = 0;
    for (parent, dto_id) in entries {
        last = usize::try_from(parent).unwrap_or(usize::MAX);
        let page = pages.get_mut(last).and_then(Option::as_mut);
        page.ok_or_else(|| CallError::answer("an alias look-up answered a parent that was not asked for"))?
            .children
            .push(child(dto_type, dto_id)?);
    }
    if !complete {
        for page in pages.iter_mut().skip(last) {
            *page = None;
        }
    }
    Ok(pages)
}

fn child(dto_type: DtoType, dto_id: &str) -> Result<SplitItem, CallError> {
    let urn = Urn::record(dto_type, dto_id).map_err(|error| CallError::answer(&format!("{dto_id} {error}")))?;
    Ok(SplitItem { dto_type, target: Target::Record(urn), alias: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages_of(complete: bool) -> Vec<Option<usize>> {
        let entries = [(0, "t/T/s/S/ecclinks/A"), (0, "t/T/s/S/ecclinks/B"), (2, "t/T/s/S/ecclinks/C")];
        whole_pages(DtoType::EccLink, 4, entries.into_iter(), complete)
            .unwrap()
            .into_iter()
            .map(|page| page.map(|page| page.children.len()))
            .collect()
    }

    #[test]
    fn a_shared_page_serves_every_parent_it_holds_whole() {
        assert_eq!(pages_of(true), [Some(2), Some(0), Some(1), Some(0)]);
        assert_eq!(pages_of(false), [Some(2), Some(0), None, None]);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_a_fault() {
        let strange = [(7, "t/T/s/S/ecclinks/A")];
        assert!(whole_pages(DtoType::EccLink, 1, strange.into_iter(), true).is_err());
        let other = [(0, "t/T/s/S/esls/A")];
        assert!(whole_pages(DtoType::EccLink, 1, other.into_iter(), true).is_err());
    }
}
