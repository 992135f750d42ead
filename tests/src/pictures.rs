//! Whether every label shows what its records say now: a fresh render against the stored and the exported picture.

use std::{collections::BTreeMap, fs, path::Path};

use picture::{Palette, Picture, Rotation};
use prost::Message as _;
use proto::records::v1 as records;
use render::{EccInput, EccModel, Panel};

use crate::tables::{RecordKey, Records};

/// What the comparison covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compared {
    /// Labels whose pixels were compared, and equal.
    pub equal: usize,
    /// Labels that cannot be rendered from their present records.
    pub unrenderable: usize,
}

/// Compares, for every ECC link in `records`, a fresh render with the PNG that `png_of(tenant, store, label)` names.
/// Gives what differs.
pub fn compare(records: &Records, png_of: impl Fn(&RecordKey) -> std::path::PathBuf) -> Result<Compared, Vec<String>> {
    let mut compared = Compared::default();
    let mut models: BTreeMap<(String, String, String), Option<EccModel>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (key, record) in records.of("ecclink.v1") {
        let link = records::EccLink::decode(record.payload.as_slice()).expect("a stored link decodes");
        let Some(fresh) = render_fresh(records, key, &link, &mut models) else {
            compared.unrenderable += 1;
            continue;
        };
        match shown(&png_of(key)) {
            Ok(pixels) if pixels == Pixels::of(&fresh) => match stored(records, key, &fresh) {
                Ok(()) => compared.equal += 1,
                Err(why) => wrong.push(format!("{}: {why}", key.id)),
            },
            Ok(_) => wrong.push(format!("{}: the PNG differs from a fresh render", key.id)),
            Err(why) => wrong.push(format!("{}: {why}", key.id)),
        }
    }
    if wrong.is_empty() { Ok(compared) } else { Err(wrong) }
}

/// The picture of a label out of its present records; none when they do not give one.
fn render_fresh(
    records: &Records,
    key: &RecordKey,
    link: &records::EccLink,
    models: &mut BTreeMap<(String, String, String), Option<EccModel>>,
) -> Option<Picture> {
    let in_store = |dto_type: &str, id: &str| records.get(dto_type, &key.tenant, &key.store, id);
    let item = records::StoreItemValues::decode(in_store("storeitemvalues.v1", &link.item_id)?).ok()?;
    let esl = records::StoreEsl::decode(in_store("storeesl.v1", &key.id)?).ok()?;
    let kind = records::EslType::decode(records.get("esltype.v1", &key.tenant, "", &esl.esltype_id)?).ok()?;
    let name = (key.tenant.clone(), key.store.clone(), link.model_id.clone());
    let model = models.entry(name).or_insert_with(|| {
        let record = records::EccModel::decode(in_store("eccmodel.v1", &link.model_id)?).ok()?;
        EccModel::parse(&record.layout).ok()
    });
    let panel = Panel {
        width: kind.width,
        height: kind.height,
        palette: Palette::from_number(kind.palette)?,
        rotation: Rotation::from_degrees(i32::try_from(kind.rotation).ok()?)?,
    };
    let input = EccInput { panel, item: &item.values, parameters: &link.parameters };
    render::render(model.as_ref()?, &input).ok()
}

/// Whether the label's image records hold that picture too.
fn stored(records: &Records, key: &RecordKey, fresh: &Picture) -> Result<(), String> {
    let payload = |dto_type: &str| {
        records.get(dto_type, &key.tenant, &key.store, &key.id).ok_or_else(|| format!("there is no {dto_type}"))
    };
    let source = records::SourceEslImage::decode(payload("ecceslimage.v1")?).map_err(|error| error.to_string())?;
    let unpacked = Picture::unpack(&source.picture).map_err(|error| error.to_string())?;
    if unpacked != *fresh {
        return Err("the stored picture differs from a fresh render".to_owned());
    }
    let image = records::EslImage::decode(payload("eslimage.v1")?).map_err(|error| error.to_string())?;
    if image.digest != source.digest {
        return Err("eslimage.v1 names another digest".to_owned());
    }
    let status = records::StoreEslStatus::decode(payload("storeeslstatus.v1")?).map_err(|error| error.to_string())?;
    if status.confirmed_digest != source.digest {
        return Err(format!("its status confirms another digest: {status:?}"));
    }
    Ok(())
}

/// Pixels as one sees them.
#[derive(Debug, PartialEq, Eq)]
struct Pixels {
    width: u32,
    height: u32,
    rgb: Vec<[u8; 3]>,
}

impl Pixels {
    fn of(picture: &Picture) -> Self {
        let inks = picture.palette().inks();
        let rgb = picture.indices().iter().map(|index| inks[usize::from(*index)].srgb()).collect();
        Self { width: picture.width(), height: picture.height(), rgb }
    }
}

/// Decodes a PNG file.
fn shown(path: &Path) -> Result<Pixels, String> {
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
