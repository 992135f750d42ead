//! GS1 element strings: `(01)09521234543213(17)261231(10)A1` to the bytes a DataMatrix carries.

use super::check_digit;

/// Separates a value of variable length from what follows.
const SEPARATOR: u8 = 0x1D;

/// Most characters of a variable value in any application identifier.
const VALUE_MAX: usize = 90;

/// Value lengths fixed by the first two digits of the identifier (GS1 General Specifications, figure 7.8.5-2): the
/// length after the whole identifier; these need no separator. Identifiers 31 to 36 and 41 have 4 and 3 digits.
fn fixed_length(ai: &str) -> Option<usize> {
    match ai.get(..2)? {
        "00" => Some(18),
        "01" | "02" | "03" => Some(14),
        "04" => Some(16),
        "11" | "12" | "13" | "14" | "15" | "16" | "17" | "18" | "19" | "31" | "32" | "33" | "34" | "35" | "36" => {
            Some(6)
        }
        "20" => Some(2),
        "41" => Some(13),
        _ => None,
    }
}

/// The bytes after the leading FNC1.
pub(crate) fn message(value: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut open = false;
    let mut rest = value;
    while !rest.is_empty() {
        let (ai, after) = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'))
            .ok_or("it must read (application identifier)value, repeated")?;
        let end = after.find('(').unwrap_or(after.len());
        let (data, next) = after.split_at(end);
        let data = checked(ai, data)?;
        if open {
            out.push(SEPARATOR);
        }
        out.extend_from_slice(ai.as_bytes());
        out.extend_from_slice(data.as_bytes());
        open = fixed_length(ai).is_none();
        rest = next;
    }
    if out.is_empty() { Err("it is empty".to_owned()) } else { Ok(out) }
}

fn checked(ai: &str, data: &str) -> Result<String, String> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(2..=4).contains(&ai.len()) || !digits(ai) {
        return Err(format!("({ai}) is no application identifier"));
    }
    if data.is_empty() || data.len() > VALUE_MAX {
        return Err(format!("({ai}) has {} characters, 1 to {VALUE_MAX} are allowed", data.len()));
    }
    if let Some(ch) = data.chars().find(|ch| !allowed(*ch)) {
        return Err(format!("({ai}) has the character U+{:04X}, which GS1 does not allow", u32::from(ch)));
    }
    let Some(length) = fixed_length(ai) else { return Ok(data.to_owned()) };
    // A GTIN of 8, 12 or 13 digits stands in 14 with zeros in front.
    let gtin = matches!(ai, "01" | "02" | "03");
    let data = if gtin && matches!(data.len(), 8 | 12 | 13) { format!("{data:0>14}") } else { data.to_owned() };
    if data.len() != length || !digits(&data) {
        return Err(format!("({ai}) needs {length} digits"));
    }
    if gtin || matches!(ai, "00") || ai.starts_with("41") {
        let (body, check) = data.split_at(length - 1);
        let right = char::from(check_digit(body.as_bytes()));
        if !check.starts_with(right) {
            return Err(format!("the check digit of ({ai}) is {check}, but {right} is right"));
        }
    }
    if matches!(ai, "11" | "12" | "13" | "15" | "16" | "17") {
        let (month, day) = (data.get(2..4).unwrap_or_default(), data.get(4..6).unwrap_or_default());
        if !("01"..="12").contains(&month) || day > "31" {
            return Err(format!("({ai}) is no date YYMMDD"));
        }
    }
    Ok(data)
}

/// GS1 AI encodable character set 82.
fn allowed(ch: char) -> bool {
    ch.is_ascii_alphanumeric() || "!\"%&'*+,-./:;<=>?_".contains(ch)
}
