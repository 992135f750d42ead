//! The twins under random changes: same answers, same records, and counts that equal a scan.

use domain::{AliasName, DtoType};
use proptest::prelude::*;

use super::world::{World, delete, link, put, studio_link};

#[derive(Debug, Clone)]
enum Step {
    Put { place: usize, item: u8, parent: u8, input: Option<i64> },
    Delete { place: usize },
    Touch { place: usize },
}

/// Records of two stores and two types, few enough to meet again.
const PLACES: [&str; 8] = [
    "t/T/s/S1/ecclinks/A",
    "t/T/s/S1/ecclinks/B",
    "t/T/s/S2/ecclinks/A",
    "t/T/s/S2/ecclinks/B",
    "t/T/s/S1/studiolinks/A",
    "t/T/s/S1/studiolinks/B",
    "t/T/s/S2/studiolinks/A",
    "t/T/s/S2/studiolinks/B",
];

fn step() -> impl Strategy<Value = Step> {
    let place = 0..PLACES.len();
    prop_oneof![
        5 => (place.clone(), 0..2u8, 0..3u8, proptest::option::weighted(0.3, 0..3i64))
            .prop_map(|(place, item, parent, input)| Step::Put { place, item, parent, input }),
        2 => place.clone().prop_map(|place| Step::Delete { place }),
        1 => place.prop_map(|place| Step::Touch { place }),
    ]
}

/// Batches: no record twice in one.
fn batches() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let batch = proptest::collection::vec(step(), 1..6).prop_map(|mut steps| {
        let mut seen = [false; PLACES.len()];
        steps.retain(|step| {
            let (Step::Put { place, .. } | Step::Delete { place } | Step::Touch { place }) = step;
            !std::mem::replace(&mut seen[*place], true)
        });
        steps
    });
    proptest::collection::vec(batch, 1..12)
}

async fn run(world: &World, batch: &[Step]) -> Vec<String> {
    let mut answers = Vec::new();
    let mut changes = Vec::new();
    for step in batch {
        match step {
            Step::Put { place, item, parent, input } => {
                let urn = PLACES[*place];
                let payload = if urn.contains("ecclinks") {
                    link(&format!("I{item}"), &format!("M{parent}"))
                } else {
                    studio_link(&format!("I{item}"), &format!("D{parent}"))
                };
                let change = put(urn, payload);
                changes.push(match input {
                    Some(version) => change.of_input(PLACES[0], *version),
                    None => change,
                });
            }
            Step::Delete { place } => changes.push(delete(PLACES[*place])),
            Step::Touch { place } => {
                let dto_type = if *place < 4 { DtoType::EccLink } else { DtoType::StudioLink };
                answers.push(format!("{:?}", world.touch(dto_type, &[PLACES[*place]], "touch").await));
            }
        }
    }
    if !changes.is_empty() {
        answers.push(format!("{:?}", world.import(changes).await));
    }
    world.clock.advance_ms(7);
    answers
}

/// Everything that can be seen, and whether counts equal listings.
async fn seen(world: &World) -> Vec<String> {
    let mut seen = Vec::new();
    for urn in PLACES {
        seen.push(format!("{urn} {:?}", world.get(urn).await));
    }
    for (dto_type, alias, base) in [
        (DtoType::EccLink, AliasName::ByEccModel, "eccmodels/M"),
        (DtoType::EccLink, AliasName::ByItem, "items/I"),
        (DtoType::StudioLink, AliasName::ByDesign, "designs/D"),
        (DtoType::StudioLink, AliasName::ByItem, "items/I"),
    ] {
        let parents: Vec<String> =
            ["S1", "S2"].iter().flat_map(|store| (0..3).map(move |n| format!("t/T/s/{store}/{base}{n}"))).collect();
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let counts = world.counts(dto_type, alias, &parents).await;
        let listed = world.list((dto_type, alias), &parents, 2).await;
        for (index, count) in counts.iter().enumerate() {
            let scanned = listed.iter().filter(|(parent, _)| *parent == index).count();
            assert_eq!(usize::try_from(*count), Ok(scanned), "{dto_type} {alias} {}", parents[index]);
        }
        seen.push(format!("{dto_type} {alias} {listed:?}"));
    }
    let designs = ["t/T/designs/D0", "t/T/designs/D1", "t/T/designs/D2"];
    seen.push(format!("{:?}", world.counts(DtoType::StudioLink, AliasName::ByDesign, &designs).await));
    seen.push(format!("{:?}", world.counts(DtoType::EccLink, AliasName::ByStore, &["t/T"]).await));
    let mut told = world.drain().await;
    told.sort();
    seen.push(format!("{told:?}"));
    seen
}

/// The counts table against the index itself, and the index against what the records note.
async fn counts_equal_a_scan(world: &World) {
    const DRIFT: &str = "
        SELECT (SELECT count(*) FROM (
            SELECT tenant, dto_type, alias, base, store, count(*) FROM dto_alias GROUP BY 1, 2, 3, 4, 5
            EXCEPT SELECT tenant, dto_type, alias, base, store, entries FROM dto_alias_count))
             + (SELECT count(*) FROM (
            SELECT tenant, dto_type, alias, base, store, entries FROM dto_alias_count
            EXCEPT SELECT tenant, dto_type, alias, base, store, count(*) FROM dto_alias GROUP BY 1, 2, 3, 4, 5))
             + abs((SELECT count(*) FROM dto_alias) - (SELECT coalesce(sum(json_array_length(aliases)), 0) FROM dto))";
    const DRIFT_OF_POSTGRES: &str = "
        SELECT (SELECT count(*) FROM (
            SELECT tenant, dto_type, alias, base, store, count(*) FROM dto_alias GROUP BY 1, 2, 3, 4, 5
            EXCEPT SELECT tenant, dto_type, alias, base, store, entries FROM dto_alias_count) AS more)
             + (SELECT count(*) FROM (
            SELECT tenant, dto_type, alias, base, store, entries FROM dto_alias_count
            EXCEPT SELECT tenant, dto_type, alias, base, store, count(*) FROM dto_alias GROUP BY 1, 2, 3, 4, 5) AS less)
             + abs((SELECT count(*) FROM dto_alias)
                - (SELECT coalesce(sum(json_array_length(aliases::json)), 0)::bigint FROM dto))";
    let drift: Result<i64, db::DbError> = if let Some((db, _)) = &world.postgres {
        db.read(|conn, _| Box::pin(async move { Ok(sqlx::query_scalar(DRIFT_OF_POSTGRES).fetch_one(conn).await?) }))
            .await
    } else {
        let db = world.db.clone().unwrap();
        db.read(|conn| Box::pin(async move { Ok(sqlx::query_scalar(DRIFT).fetch_one(conn).await?) })).await
    };
    assert_eq!(drift.unwrap(), 0);
}

/// The memory twin and that one do the same.
async fn agrees(twin: &World, batches: &[Vec<Step>]) {
    let memory = World::memory();
    memory.renderers_queue().await;
    twin.renderers_queue().await;
    for batch in batches {
        assert_eq!(run(&memory, batch).await, run(twin, batch).await);
        assert_eq!(seen(&memory).await, seen(twin).await);
    }
    counts_equal_a_scan(twin).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_twins_agree(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sqlite = World::sqlite().await;
            agrees(&sqlite, &batches).await;
            sqlite.db.unwrap().close().await.unwrap();
        });
    }
}

proptest! {
    // Fewer: each has a database of its own and every statement goes to another process.
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_twins_agree_on_postgres(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { agrees(&World::postgres().await, &batches).await });
    }
}
