//! A changed alias rule: the index is brought to it in bounded, resumable steps.

use domain::{AliasName, DtoType, Urn};

use super::world::{World, delete, link, put};
use crate::{
    alias::{AliasKey, AliasRules},
    model::Reindexed,
    record::Record,
    reindex,
};

/// Items are not looked up any more, and labels lie under their model by another name.
fn later(dto_type: DtoType, urn: &Urn, record: &Record) -> Vec<AliasKey> {
    let mut aliases = AliasRules::CURRENT.aliases(dto_type, urn, record);
    aliases.retain(|key| key.alias != AliasName::ByItem);
    for key in &mut aliases {
        if key.alias == AliasName::ByEccModel {
            key.base.push_str("-later");
        }
    }
    aliases
}

const LATER: AliasRules = AliasRules { version: 2, derive: later };

async fn a_changed_rule_reaches_every_record(world: &World) {
    reindex(world.store.as_ref()).await.unwrap();
    let urn = |n: usize| format!("t/T/s/S/ecclinks/E{n:02}");
    world.import((0..25).map(|n| put(&urn(n), link("I", "M"))).collect()).await.unwrap();
    world.import(vec![delete(&urn(3))]).await.unwrap();
    assert_eq!(world.store.alias_reindex(AliasRules::CURRENT, 10).await.unwrap(), Reindexed::Current);

    assert_eq!(world.store.alias_reindex(LATER, 10).await.unwrap(), Reindexed::Step(10));
    // Writes between the steps, on both sides of where the walk stands.
    world.import(vec![delete(&urn(0)), delete(&urn(20))]).await.unwrap();
    assert_eq!(world.store.alias_reindex(LATER, 10).await.unwrap(), Reindexed::Step(10));
    assert_eq!(world.store.alias_reindex(LATER, 10).await.unwrap(), Reindexed::Step(3));
    assert_eq!(world.store.alias_reindex(LATER, 10).await.unwrap(), Reindexed::Current);
    let models = ["t/T/s/S/eccmodels/M", "t/T/s/S/eccmodels/M-later"];
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByEccModel, &models).await, [0, 22]);
    assert_eq!(world.list((DtoType::EccLink, AliasName::ByEccModel), &models, 100).await.len(), 22);
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByItem, &["t/T/s/S/items/I"]).await, [0]);
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByStore, &["t/T/s/S"]).await, [22]);

    reindex(world.store.as_ref()).await.unwrap();
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByEccModel, &models).await, [22, 0], "and back");
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByItem, &["t/T/s/S/items/I"]).await, [22]);
}

#[tokio::test]
async fn memory() {
    a_changed_rule_reaches_every_record(&World::memory()).await;
}

#[tokio::test]
async fn sqlite() {
    a_changed_rule_reaches_every_record(&World::sqlite().await).await;
}

#[tokio::test]
async fn postgres() {
    a_changed_rule_reaches_every_record(&World::postgres().await).await;
}
