//! A page of the index over many parents, written once for both SQL twins.

use std::future::Future;

use crate::{
    model::{AliasFound, AliasListAsk, AliasLook, Page},
    store::Result,
};
use domain::Parent;

/// What a page is read with; each is one or two statements.
pub(crate) trait AliasIndex: Send {
    /// How many entries lie under each parent, over all stores where it names none.
    fn count(&mut self, look: &AliasLook, parents: &[Parent]) -> impl Future<Output = Result<Vec<i64>>> + Send;
    /// At most `most` entries of one parent, after an id.
    fn part(
        &mut self,
        ask: &AliasListAsk,
        from: (usize, &str),
        most: usize,
    ) -> impl Future<Output = Result<Vec<AliasFound>>> + Send;
    /// Everything under parents, the first of which is the ask's parent number `first`.
    fn whole(
        &mut self,
        ask: &AliasListAsk,
        first: usize,
        parents: &[Parent],
    ) -> impl Future<Output = Result<Vec<AliasFound>>> + Send;
}

/// Counts say which parents fit whole, so that one statement reads those and no statement reads more than the page: the
/// rest of the parent where the page begins, the whole ones, the beginning of the one it ends in.
pub(crate) async fn list<I: AliasIndex>(index: &mut I, ask: AliasListAsk) -> Result<Page<AliasFound>> {
    let wanted = ask.limit + 1;
    let mut entries = Vec::new();
    let mut next = 0;
    if let Some(after) = &ask.after {
        entries = index.part(&ask, (after.parent, after.id.as_str()), wanted).await?;
        next = after.parent + 1;
    }
    let counts = index.count(&ask.look, ask.parents.get(next..).unwrap_or_default()).await?;
    let mut room = wanted.saturating_sub(entries.len());
    let mut whole = 0;
    for count in counts {
        let Ok(count) = usize::try_from(count) else { break };
        if count > room {
            break;
        }
        room -= count;
        whole += 1;
    }
    if let Some(parents) = ask.parents.get(next..next + whole)
        && !parents.is_empty()
    {
        entries.extend(index.whole(&ask, next, parents).await?);
    }
    if room > 0 && next + whole < ask.parents.len() {
        entries.extend(index.part(&ask, (next + whole, ""), room).await?);
    }
    Ok(Page::cut(entries, ask.limit))
}
