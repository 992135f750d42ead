//! Two-dimensional symbols, encoded by well-kept libraries.

use datamatrix::{DataMatrix, SymbolList};
use qrcodegen::{QrCode, QrCodeEcc, QrSegment, Version};
use serde::Deserialize;

use super::{Quiet, Symbol};

/// How much of a QR code may be lost: about 7, 15, 25, 30 percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Correction {
    Low,
    #[default]
    Medium,
    Quartile,
    High,
}

/// Largest QR version drawn: 97 modules, more than a label can show at 2 px a module beside anything else.
const QR_VERSION_MAX: u8 = 20;

/// A square DataMatrix that begins with FNC1.
pub(crate) fn data_matrix(message: &[u8]) -> Result<Symbol, String> {
    let code = DataMatrix::encode_gs1(message, SymbolList::default().enforce_square())
        .map_err(|_| "it is too long".to_owned())?;
    let bitmap = code.bitmap();
    let width = bitmap.width();
    let rows = bitmap.bits().chunks_exact(width.max(1)).map(<[bool]>::to_vec).collect();
    Ok(Symbol {
        width,
        rows,
        quiet: Quiet { left: 1, right: 1, vertical: 1 },
        readable: Vec::new(),
        guards: Vec::new(),
    })
}

pub(crate) fn qr(value: &str, correction: Correction) -> Result<Symbol, String> {
    if value.is_empty() {
        return Err("it is empty".to_owned());
    }
    let level = match correction {
        Correction::Low => QrCodeEcc::Low,
        Correction::Medium => QrCodeEcc::Medium,
        Correction::Quartile => QrCodeEcc::Quartile,
        Correction::High => QrCodeEcc::High,
    };
    let segments = QrSegment::make_segments(value);
    let (least, most) = (Version::MIN, Version::new(QR_VERSION_MAX));
    let code = QrCode::encode_segments_advanced(&segments, level, least, most, None, true)
        .map_err(|_| "it is too long".to_owned())?;
    let side = 0..code.size();
    let rows = side.clone().map(|y| side.clone().map(|x| code.get_module(x, y)).collect()).collect();
    let width = usize::try_from(code.size()).unwrap_or(0);
    Ok(Symbol {
        width,
        rows,
        quiet: Quiet { left: 4, right: 4, vertical: 4 },
        readable: Vec::new(),
        guards: Vec::new(),
    })
}
