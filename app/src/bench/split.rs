//! Splitting against its lower bound: the same rows put into the same table by a plain multi-row insert.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::{AliasName, DtoType, SplitItem, Target, limits::SPLIT_CHILDREN_MAX};
use futures::FutureExt as _;
use proto::{CqsClient, cqs::v1::SelfEnqueueRequest, split_item_to_wire};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{
    TENANT,
    figures::{Times, per_second, ratio},
    null::NullService,
    platform::Bench,
    progress,
};

/// Times that each is done, in turn.
const ROUNDS: u32 = 40;
/// Rows of one plain statement: its 15 values a row stay below SQLite's bound of 32,766.
const PLAIN_ROWS: usize = 512;
/// A queue that does not exist, for the plain rows.
const NO_QUEUE: i64 = -1;

/// Measures both, turn by turn, in an otherwise idle platform.
pub(super) async fn measure(
    bench: &Bench,
    service: &mut NullService,
    cqs: &mut CqsClient,
) -> anyhow::Result<(Value, Option<f64>)> {
    let (mut split, mut plain) = (Times::default(), Times::default());
    for round in 0..ROUNDS {
        let parent = format!("t/{TENANT}/s/S0000/designs/split-{round}");
        let children: Vec<SplitItem> = (0..SPLIT_CHILDREN_MAX)
            .map(|label| {
                let urn = format!("t/{TENANT}/s/S0000/studiolinks/R{round:02}{label:06}").parse()?;
                Ok(SplitItem { dto_type: DtoType::StudioLink, target: Target::Record(urn), alias: None })
            })
            .collect::<anyhow::Result<_>>()?;
        cqs.self_enqueue(injection(&parent, &format!("bench-split-{round}"))?).await?;
        let (generation, rows) = service.dequeue((1, 1_000)).await?.context("the parent did not come")?;
        let row = rows.first().context("a lease without rows")?;
        let items = children.iter().map(split_item_to_wire).collect();
        split.push(service.re_enqueue((generation, row.id), items, String::new()).await?);
        if let Some(taken) = insert_plain(bench, &children).await? {
            plain.push(taken);
        }
        service.claim_and_complete(SPLIT_CHILDREN_MAX as u64, 2_000).await?;
    }
    let rate = |times: &Times| {
        let median = Duration::from_secs_f64(times.quantile_ms(0.5)? / 1e3);
        Some(per_second(SPLIT_CHILDREN_MAX as u64, median))
    };
    let (split_rate, plain_rate) = (rate(&split), rate(&plain));
    progress(format!("split {split_rate:?} children/s, plain insert {plain_rate:?} rows/s"));
    let figures = json!({
        "children_per_s": split_rate, "plain_rows_per_s": plain_rate, "split": split.to_json(), "plain": plain.to_json(),
    });
    Ok((figures, ratio(split_rate, plain_rate)))
}

/// The injection of one parent under its own tracking id, at the default SLA.
pub(super) fn injection(parent: &str, tracking_id: &str) -> anyhow::Result<SelfEnqueueRequest> {
    let urn: domain::Urn = parent.parse()?;
    let alias = urn.store().is_some().then_some(AliasName::ByDesign);
    let item = SplitItem { dto_type: DtoType::StudioLink, target: Target::Parent(urn), alias };
    Ok(SelfEnqueueRequest {
        queue_name: domain::ServiceName::StudioRenderer.to_string(),
        items: vec![split_item_to_wire(&item)],
        reason: "benchmark".to_owned(),
        tracking_id: tracking_id.to_owned(),
        ..SelfEnqueueRequest::default()
    })
}

/// Inserts rows as they are after a split, commits, and takes them away again; the time of insert and commit.
async fn insert_plain(bench: &Bench, children: &[SplitItem]) -> anyhow::Result<Option<Duration>> {
    let urns: Vec<String> = children.iter().map(|child| child.target.urn().to_string()).collect();
    let Some(database) = bench.database.sqlite() else { return Ok(None) };
    let started = Instant::now();
    database
        .write(move |conn| {
            async move {
                for urns in urns.chunks(PLAIN_ROWS) {
                    let values = vec!["(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"; urns.len()].join(",");
                    let sql = format!(
                        "INSERT INTO cqs_waiting (id, queue, lane, store, is_parent, dto_type, urn, alias, sla, \
                         tracking_id, attempts, due_at, alone, lapses_alone, cursor) VALUES {values}"
                    );
                    let mut query = sqlx::query(AssertSqlSafe(sql));
                    for urn in urns {
                        query = query.bind(None::<i64>).bind(NO_QUEUE).bind(1_i64).bind("").bind(0_i64);
                        query = query.bind(DtoType::StudioLink.as_str()).bind(urn).bind("").bind(1_700_000_000_000_i64);
                        query = query.bind("bench-split-0").bind(0_i64).bind(None::<i64>).bind(0_i64).bind(0_i64);
                        query = query.bind("");
                    }
                    query.execute(&mut *conn).await?;
                }
                Ok::<(), db::DbError>(())
            }
            .boxed()
        })
        .await?;
    let taken = started.elapsed();
    database
        .write(|conn| {
            async move {
                sqlx::query("DELETE FROM cqs_waiting WHERE queue = ?1").bind(NO_QUEUE).execute(conn).await?;
                Ok::<(), db::DbError>(())
            }
            .boxed()
        })
        .await?;
    Ok(Some(taken))
}
