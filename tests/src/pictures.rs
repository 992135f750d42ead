//! Whether every label shows what its records say now: a fresh render against the stored and the exported picture.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use picture::{Palette, Picture, Rotation};
use prost::Message as _;
use proto::records::v1 as records;
use render::{EccInput, EccModel, Panel, StudioDesign};

use crate::tables::{RecordKey, Records};

/// What the comparison covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compared {
    /// Labels whose pixels were compared, and equal.
    pub equal: usize,
    /// Labels that cannot be rendered from their present records.
    pub unrenderable: usize,
}

/// Layouts parsed so far, by type and URN; none where they cannot be.
#[derive(Default)]
struct Layouts {
    models: BTreeMap<(String, String, String), Option<EccModel>>,
    designs: BTreeMap<(String, String), Option<StudioDesign>>,
}

/// Compares, for every label in `records` that has a link, a fresh render with the PNG that `png_of(tenant, store,
/// label)` names: of its Studio link where it has one, else of its ECC link. Gives what differs.
pub fn compare(records: &Records, png_of: impl Fn(&RecordKey) -> std::path::PathBuf) -> Result<Compared, Vec<String>> {
    let mut compared = Compared::default();
    let mut layouts = Layouts::default();
    let mut wrong = Vec::new();
    let linked: BTreeSet<&RecordKey> =
        ["ecclink.v1", "studiolink.v1"].iter().flat_map(|dto_type| records.of(dto_type)).map(|(key, _)| key).collect();
    for key in linked {
        // A label with both links has both pictures, and shows Studio's.
        let ecc =
            records.get("ecclink.v1", &key.tenant, &key.store, &key.id).map(|link| layouts.ecc(records, key, link));
        let studio = records
            .get("studiolink.v1", &key.tenant, &key.store, &key.id)
            .map(|link| layouts.studio(records, key, link));
        if matches!(ecc, Some(None)) || matches!(studio, Some(None)) {
            compared.unrenderable += 1;
            continue;
        }
        let (ecc, studio) = (ecc.flatten(), studio.flatten());
        match check(records, key, (ecc.as_ref(), studio.as_ref()), &png_of(key)) {
            Ok(()) => compared.equal += 1,
            Err(why) => wrong.push(format!("{}/{}: {why}", key.store, key.id)),
        }
    }
    if wrong.is_empty() { Ok(compared) } else { Err(wrong) }
}

/// Whether a label's records and its PNG hold the pictures they should.
fn check(
    records: &Records,
    key: &RecordKey,
    (ecc, studio): (Option<&Picture>, Option<&Picture>),
    png: &Path,
) -> Result<(), String> {
    for (dto_type, fresh) in [("ecceslimage.v1", ecc), ("studioeslimage.v1", studio)] {
        source(records, key, dto_type, fresh)?;
    }
    let (shows, fresh) = match (ecc, studio) {
        (_, Some(studio)) => (records::ImageSource::Studio, studio),
        (Some(ecc), None) => (records::ImageSource::Ecc, ecc),
        (None, None) => return Err("no link gives a picture".to_owned()),
    };
    if shown(png)? != Pixels::of(fresh) {
        return Err("the PNG differs from a fresh render".to_owned());
    }
    delivered(records, key, shows, fresh)
}

impl Layouts {
    /// The picture of a label out of its ECC link; none when its records do not give one.
    fn ecc(&mut self, records: &Records, key: &RecordKey, link: &[u8]) -> Option<Picture> {
        let link = records::EccLink::decode(link).expect("a stored link decodes");
        let name = (key.tenant.clone(), key.store.clone(), link.model_id.clone());
        let model = self.models.entry(name).or_insert_with(|| {
            let record = records.get("eccmodel.v1", &key.tenant, &key.store, &link.model_id)?;
            EccModel::parse(&records::EccModel::decode(record).ok()?.layout).ok()
        });
        let item = item(records, key, &link.item_id)?;
        let input = EccInput { panel: panel(records, key)?, item: &item, parameters: &link.parameters };
        render::render(model.as_ref()?, &input).ok()
    }

    /// The picture of a label out of its Studio link; none when its records do not give one.
    fn studio(&mut self, records: &Records, key: &RecordKey, link: &[u8]) -> Option<Picture> {
        let link = records::StudioLink::decode(link).expect("a stored link decodes");
        let name = (key.tenant.clone(), link.design_id.clone());
        let design = self.designs.entry(name).or_insert_with(|| {
            let record = records::Design::decode(records.get("design.v1", &key.tenant, "", &link.design_id)?).ok()?;
            StudioDesign::parse(&record.svg, &record.mappings).ok()
        });
        let (item, none) = (item(records, key, &link.item_id)?, BTreeMap::new());
        let input = EccInput { panel: panel(records, key)?, item: &item, parameters: &none };
        render::studio_render(design.as_ref()?, &input).ok()
    }
}

fn item(records: &Records, key: &RecordKey, id: &str) -> Option<BTreeMap<String, String>> {
    let record = records.get("storeitemvalues.v1", &key.tenant, &key.store, id)?;
    records::StoreItemValues::decode(record).ok().map(|item| item.values)
}

fn panel(records: &Records, key: &RecordKey) -> Option<Panel> {
    let esl = records::StoreEsl::decode(records.get("storeesl.v1", &key.tenant, &key.store, &key.id)?).ok()?;
    let kind = records::EslType::decode(records.get("esltype.v1", &key.tenant, "", &esl.esltype_id)?).ok()?;
    Some(Panel {
        width: kind.width,
        height: kind.height,
        palette: Palette::from_number(kind.palette)?,
        rotation: Rotation::from_degrees(i32::try_from(kind.rotation).ok()?)?,
    })
}

/// Whether a renderer's own record holds that picture, or there is none where there is no link.
fn source(records: &Records, key: &RecordKey, dto_type: &str, fresh: Option<&Picture>) -> Result<(), String> {
    let stored = records.get(dto_type, &key.tenant, &key.store, &key.id);
    let (stored, fresh) = match (stored, fresh) {
        (None, None) => return Ok(()),
        (Some(_), None) => return Err(format!("there is a {dto_type} without a link")),
        (None, Some(_)) => return Err(format!("there is no {dto_type}")),
        (Some(stored), Some(fresh)) => (stored, fresh),
    };
    let source = records::SourceEslImage::decode(stored).map_err(|error| error.to_string())?;
    let unpacked = Picture::unpack(&source.picture).map_err(|error| error.to_string())?;
    if unpacked != *fresh || source.digest[..] != fresh.digest().as_bytes()[..] {
        return Err(format!("the picture of its {dto_type} differs from a fresh render"));
    }
    Ok(())
}

/// Whether the merger chose that picture and the exporter had it confirmed.
fn delivered(records: &Records, key: &RecordKey, shows: records::ImageSource, fresh: &Picture) -> Result<(), String> {
    let payload = |dto_type: &str| {
        records.get(dto_type, &key.tenant, &key.store, &key.id).ok_or_else(|| format!("there is no {dto_type}"))
    };
    let digest = fresh.digest();
    let image = records::EslImage::decode(payload("eslimage.v1")?).map_err(|error| error.to_string())?;
    if image.source() != shows || image.digest[..] != digest.as_bytes()[..] {
        return Err(format!("eslimage.v1 does not name the picture of {shows:?}: {image:?}"));
    }
    let status = records::StoreEslStatus::decode(payload("storeeslstatus.v1")?).map_err(|error| error.to_string())?;
    if status.confirmed_digest != image.digest {
        return Err(format!("its status confirms another digest: {status:?}"));
    }
    Ok(())
}

/// Pixels as one sees them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rgb: Vec<[u8; 3]>,
}

impl Pixels {
    fn of(picture: &Picture) -> Self {
        let inks = picture.palette().inks();
        let rgb = picture.indices().iter().map(|index| inks[usize::from(*index)].srgb()).collect();
        Self { width: picture.width(), height: picture.height(), rgb }
    }
}

/// Decodes a PNG file.
pub(crate) fn shown(path: &Path) -> Result<Pixels, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let mut buffer = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let info = reader.next_frame(&mut buffer).map_err(|error| error.to_string())?;
    let bytes = buffer.get(..info.buffer_size()).unwrap_or_default();
    let step = info.color_type.samples();
    let rgb = bytes
        .chunks_exact(step)
        .map(|pixel| match pixel {
            [grey] | [grey, _] => [*grey; 3],
            [red, green, blue, ..] => [*red, *green, *blue],
            [] => [0; 3],
        })
        .collect();
    Ok(Pixels { width: info.width, height: info.height, rgb })
}
