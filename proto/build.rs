//! Compiles the `.proto` files with protox: no system protoc is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 7] = [
    "cqs/v1/cqs.proto",
    "dtoflow/v1/dtoflow.proto",
    "records/v1/records.proto",
    "triggers/v1/triggers.proto",
    "ecc_image_render/v1/ecc_image_render.proto",
    "studio_renderer/v1/studio_renderer.proto",
    "hardware_exporter/v1/hardware_exporter.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // Maps are ordered, so that equal records have equal bytes.
    let mut config = tonic_prost_build::Config::new();
    config.btree_map(["."]);
    config.bytes(["."]);
    tonic_prost_build::configure().compile_fds_with_config(descriptors, config)?;
    Ok(())
}
