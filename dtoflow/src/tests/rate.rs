//! Rough write rates, to be run by hand: `cargo test -p dtoflow --release rate -- --ignored --nocapture`.

use std::time::Instant;

use prost::{Message as _, bytes::Bytes};
use proto::records::v1 as wire;

use super::world::{World, link, put};
use crate::model::Change;

const BATCH: usize = 500;
const BATCHES: usize = 10;

/// A picture of `kib` KiB that does not repeat from label to label or from version to version.
fn picture(kib: usize, seed: usize) -> Bytes {
    let bytes: Vec<u8> = (0..kib * 1024).map(|n| u8::try_from((n * 31 + seed * 7) % 251).unwrap()).collect();
    let record = wire::SourceEslImage {
        picture: bytes.into(),
        digest: vec![u8::try_from(seed % 256).unwrap(); 32].into(),
        width: 296,
        height: 128,
        palette: wire::Palette::Bw.into(),
    };
    record.encode_to_vec().into()
}

async fn rate(world: &World, what: &str, change: impl Fn(usize, usize) -> Change) {
    for round in 0..2 {
        let batches: Vec<Vec<Change>> =
            (0..BATCHES).map(|batch| (0..BATCH).map(|n| change(batch * BATCH + n, round)).collect()).collect();
        let started = Instant::now();
        for batch in batches {
            world.import(batch).await.unwrap();
        }
        let records = u32::try_from(BATCH * BATCHES).unwrap();
        let per_second = f64::from(records) / started.elapsed().as_secs_f64();
        let kind = if round == 0 { "new" } else { "changed" };
        println!("{what}, {kind}, batches of {BATCH}: {per_second:.0} records/s");
    }
}

#[tokio::test]
#[ignore = "a measurement, not a proof"]
async fn write_rate() {
    let world = World::sqlite().await;
    world.renderers_queue().await;
    rate(&world, "links, announced to one queue", |n, round| {
        put(&format!("t/T/s/S/ecclinks/E{n}"), link(&format!("I{n}"), &format!("M{round}")))
    })
    .await;
    for kib in [4, 16] {
        rate(&world, &format!("pictures of {kib} KiB"), |n, round| {
            put(&format!("t/T/s/S{kib}/ecceslimages/E{n}"), picture(kib, n + round))
        })
        .await;
    }
}
