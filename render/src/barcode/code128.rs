//! Code 128 (ISO/IEC 15417): sets B and C. Set A exists for control characters, which labels refuse.

use super::{Quiet, Readable, Symbol};

/// Widths of bar, space, bar, space, bar, space of the symbol characters 0..=105 (105 is start C).
const WIDTHS: [[u8; 6]; 106] = [
    *b"212222", *b"222122", *b"222221", *b"121223", *b"121322", *b"131222", *b"122213", *b"122312", *b"132212",
    *b"221213", *b"221312", *b"231212", *b"112232", *b"122132", *b"122231", *b"113222", *b"123122", *b"123221",
    *b"223211", *b"221132", *b"221231", *b"213212", *b"223112", *b"312131", *b"311222", *b"321122", *b"321221",
    *b"312212", *b"322112", *b"322211", *b"212123", *b"212321", *b"232121", *b"111323", *b"131123", *b"131321",
    *b"112313", *b"132113", *b"132311", *b"211313", *b"231113", *b"231311", *b"112133", *b"112331", *b"132131",
    *b"113123", *b"113321", *b"133121", *b"313121", *b"211331", *b"231131", *b"213113", *b"213311", *b"213131",
    *b"311123", *b"311321", *b"331121", *b"312113", *b"312311", *b"332111", *b"314111", *b"221411", *b"431111",
    *b"111224", *b"111422", *b"121124", *b"121421", *b"141122", *b"141221", *b"112214", *b"112412", *b"122114",
    *b"122411", *b"142112", *b"142211", *b"241211", *b"221114", *b"413111", *b"241112", *b"134111", *b"111242",
    *b"121142", *b"121241", *b"114212", *b"124112", *b"124211", *b"411212", *b"421112", *b"421211", *b"212141",
    *b"214121", *b"412121", *b"111143", *b"111341", *b"131141", *b"114113", *b"114311", *b"411113", *b"411311",
    *b"113141", *b"114131", *b"311141", *b"411131", *b"211412", *b"211214", *b"211232",
];
/// The stop character.
const STOP: &[u8] = b"2331112";

const CODE_B: u8 = 100;
const CODE_C: u8 = 99;
const START_B: u8 = 104;
const START_C: u8 = 105;

/// Most characters: more than fit the widest panel.
const CHARS_MAX: usize = 80;

pub(crate) fn encode(value: &str) -> Result<Symbol, String> {
    if value.is_empty() || value.len() > CHARS_MAX {
        return Err(format!("1 to {CHARS_MAX} characters can be encoded"));
    }
    if let Some(ch) = value.chars().find(|ch| !(' '..='~').contains(ch)) {
        return Err(format!("the character U+{:04X} cannot be encoded, only printable ASCII", u32::from(ch)));
    }
    let characters = characters(value.as_bytes());
    let sum: usize = characters.iter().enumerate().map(|(at, character)| usize::from(*character) * at.max(1)).sum();
    let check = u8::try_from(sum % 103).unwrap_or(0);
    let mut modules = Vec::new();
    for character in characters.into_iter().chain([check]) {
        push(&mut modules, WIDTHS.get(usize::from(character)).map_or(&[], |widths| widths.as_slice()));
    }
    push(&mut modules, STOP);
    let width = modules.len();
    Ok(Symbol {
        width,
        rows: vec![modules],
        quiet: Quiet { left: 10, right: 10, vertical: 0 },
        readable: vec![Readable { text: value.to_owned(), from: 0, to: width + 20 }],
        guards: Vec::new(),
    })
}

fn push(modules: &mut Vec<bool>, widths: &[u8]) {
    for (at, width) in widths.iter().enumerate() {
        modules.extend(std::iter::repeat_n(at % 2 == 0, usize::from(width - b'0')));
    }
}

/// Start and data characters. Set C from four digits on at either end, six in the middle: the specification's rule
/// for the shortest symbol.
fn characters(value: &[u8]) -> Vec<u8> {
    let digits_from = |at: usize| value.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count();
    let mut out = Vec::with_capacity(value.len() + 2);
    let mut at = 0;
    let mut in_c = digits_from(0) >= 4 || (value.len() == 2 && digits_from(0) == 2);
    out.push(if in_c { START_C } else { START_B });
    while let Some(byte) = value.get(at) {
        let digits = digits_from(at);
        if in_c {
            if let Some([tens, ones]) = value.get(at..at + 2).filter(|_| digits >= 2) {
                out.push((tens - b'0') * 10 + (ones - b'0'));
                at += 2;
            } else {
                out.push(CODE_B);
                in_c = false;
            }
            continue;
        }
        let worth = digits >= 6 || (digits >= 4 && at + digits == value.len());
        // An odd run leaves its first digit to set B.
        if worth && digits % 2 == 0 {
            out.push(CODE_C);
            in_c = true;
            continue;
        }
        out.push(byte - b' ');
        at += 1;
    }
    out
}
