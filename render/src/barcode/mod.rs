//! Barcodes as whole modules with their quiet zones: EAN-13, EAN-8, Code 128, GS1 DataMatrix, QR.
//!
//! Invariants: every module is the same whole number of pixels; quiet zones are part of the symbol and full; a check
//! digit is computed or verified, never trusted.
//!
//! Deliberately not here: a choice of inks. Bars are black on white, whatever the panel: red reads as white in a
//! scanner's red light.

mod code128;
mod ean;
mod gs1;
mod matrix;

pub(crate) use matrix::Correction;

/// What a value is encoded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbology {
    Ean13,
    Ean8,
    Code128,
    Gs1DataMatrix,
    Qr(Correction),
}

impl Symbology {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ean13 => "EAN-13",
            Self::Ean8 => "EAN-8",
            Self::Code128 => "Code 128",
            Self::Gs1DataMatrix => "GS1 DataMatrix",
            Self::Qr(_) => "QR code",
        }
    }

    /// Whether it is one row of bars, as high as its box.
    pub(crate) const fn is_linear(self) -> bool {
        matches!(self, Self::Ean13 | Self::Ean8 | Self::Code128)
    }
}

/// An encoded value: rows of modules (`true` is black) without quiet zones. A linear symbol has one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) width: usize,
    pub(crate) rows: Vec<Vec<bool>>,
    pub(crate) quiet: Quiet,
    /// The digits or text under the bars, by where they stand.
    pub(crate) readable: Vec<Readable>,
    /// Modules (from, to) whose bars reach down beside the digits.
    pub(crate) guards: Vec<(usize, usize)>,
}

/// Quiet zones in modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiet {
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// Above and below; 0 for linear symbols, which need none there.
    pub(crate) vertical: usize,
}

/// Human-readable characters centred over the modules `from..to`, counted from the left edge of the left quiet zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Readable {
    pub(crate) text: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Most characters of a value: a symbol of more would be larger than any label at 2 px a module, and the search for the
/// shortest encoding takes milliseconds.
const VALUE_CHARS_MAX: usize = 300;

/// The symbol, or why the value cannot be one.
pub(crate) fn encode(symbology: Symbology, value: &str) -> Result<Symbol, String> {
    let chars = value.chars().count();
    if chars > VALUE_CHARS_MAX {
        return Err(format!("it has {chars} characters, at most {VALUE_CHARS_MAX} can be encoded"));
    }
    match symbology {
        Symbology::Ean13 => ean::ean13(value),
        Symbology::Ean8 => ean::ean8(value),
        Symbology::Code128 => code128::encode(value),
        Symbology::Gs1DataMatrix => matrix::data_matrix(&gs1::message(value)?),
        Symbology::Qr(correction) => matrix::qr(value, correction),
    }
}

/// The GS1 check digit (modulo 10, weights 3 and 1 from the right) of ASCII digits.
pub(crate) fn check_digit(digits: &[u8]) -> u8 {
    let sum: u32 = digits
        .iter()
        .rev()
        .zip([3, 1].into_iter().cycle())
        .map(|(digit, weight)| u32::from(digit.wrapping_sub(b'0')) * weight)
        .sum();
    b'0' + u8::try_from((10 - sum % 10) % 10).unwrap_or(0)
}

/// Digits with their check digit: computed when `length - 1` are given, verified when `length` are.
fn with_check_digit(value: &str, length: usize) -> Result<Vec<u8>, String> {
    let bytes = value.as_bytes();
    if !bytes.iter().all(u8::is_ascii_digit) {
        return Err("only digits 0 to 9 can be encoded".to_owned());
    }
    let Some(body) = bytes.get(..length - 1).filter(|_| bytes.len() <= length) else {
        return Err(format!("{} digits given, {} or {length} needed", bytes.len(), length - 1));
    };
    let check = check_digit(body);
    match bytes.get(length - 1) {
        Some(given) if *given != check => {
            Err(format!("its check digit is {}, but {} is right", char::from(*given), char::from(check)))
        }
        _ => Ok(body.iter().copied().chain([check]).collect()),
    }
}

#[cfg(test)]
mod tests;
