//! How numbers and currencies are written in a place. A small table of our own, after Unicode CLDR's decimal formats;
//! what is not in it is refused rather than guessed.

/// Number and currency conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locale {
    /// Between whole number and fraction.
    pub(crate) decimal: char,
    /// Between groups of digits.
    pub(crate) group: char,
    /// Digits before the first group sign that make grouping worth it: 1 234 is grouped with 1, not with 2.
    pub(crate) group_min: usize,
    /// Groups of two after the first three (India).
    pub(crate) by_two: bool,
    /// The currency stands before the number.
    pub(crate) prefix: bool,
    /// A space stands between currency and number.
    pub(crate) spaced: bool,
}

/// No-break space.
const SPACE: char = '\u{A0}';

const fn after(decimal: char, group: char, group_min: usize) -> Locale {
    Locale { decimal, group, group_min, by_two: false, prefix: false, spaced: true }
}

const fn before(decimal: char, group: char, spaced: bool) -> Locale {
    Locale { decimal, group, group_min: 1, by_two: false, prefix: true, spaced }
}

/// The conventions of a language tag such as `de`, `de-CH`, `pt_BR`; the region matters where it is in the table.
pub(crate) fn locale(tag: &str) -> Option<Locale> {
    let mut parts = tag.split(['-', '_']);
    let language = parts.next()?.to_ascii_lowercase();
    let region = parts.find(|part| part.len() == 2).unwrap_or_default().to_ascii_uppercase();
    Some(match (language.as_str(), region.as_str()) {
        ("de" | "fr" | "it" | "rm", "CH" | "LI") => before('.', '’', true),
        ("de", "AT") => before(',', SPACE, true),
        ("en", "IN") | ("hi", _) => Locale { by_two: true, ..before('.', ',', false) },
        ("en", "ZA") => before(',', SPACE, false),
        ("es", "MX" | "US" | "GT" | "HN" | "NI" | "PA" | "SV" | "DO" | "PR")
        | ("en" | "ga" | "mt" | "ja" | "zh" | "ko" | "th", _) => before('.', ',', false),
        ("pt", "PT") | ("pl" | "bg" | "et" | "lv", _) => after(',', SPACE, 2),
        ("pt" | "nl", _) => before(',', '.', true),
        ("tr", _) => before(',', '.', false),
        ("es" | "ca", _) => after(',', '.', 2),
        (
            "de" | "it" | "el" | "da" | "ro" | "hr" | "sl" | "sr" | "bs" | "mk" | "is" | "vi" | "id" | "gl" | "lb"
            | "az",
            _,
        ) => after(',', '.', 1),
        (
            "fr" | "cs" | "sk" | "ru" | "uk" | "be" | "kk" | "sv" | "nb" | "nn" | "no" | "fi" | "hu" | "lt" | "sq"
            | "ka" | "hy",
            _,
        ) => after(',', SPACE, 1),
        _ => return None,
    })
}

/// Digits after the point that prices in a currency have (ISO 4217), and its sign.
pub(crate) fn currency(code: &str) -> Option<(u8, String)> {
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let decimals = match code {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND" | "VUV"
        | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    };
    let sign = match code {
        "EUR" => "€",
        "USD" | "AUD" | "CAD" | "NZD" | "MXN" => "$",
        "GBP" => "£",
        "JPY" | "CNY" => "¥",
        "PLN" => "zł",
        "CZK" => "Kč",
        "HUF" => "Ft",
        "RON" => "lei",
        "BGN" => "лв.",
        "SEK" | "NOK" | "ISK" => "kr",
        "DKK" => "kr.",
        "TRY" => "₺",
        "UAH" => "₴",
        "RUB" => "₽",
        "INR" => "₹",
        "KRW" => "₩",
        "VND" => "₫",
        "ILS" => "₪",
        "BRL" => "R$",
        code => code,
    };
    Some((decimals, sign.to_owned()))
}
