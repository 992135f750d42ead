//! EAN-13 and EAN-8 (GS1 General Specifications, section 5.2).

use super::{Quiet, Readable, Symbol, with_check_digit};

/// Widths of the four elements of digits 0..=9 in number set A (space, bar, space, bar).
const WIDTHS: [[u8; 4]; 10] = [
    [3, 2, 1, 1],
    [2, 2, 2, 1],
    [2, 1, 2, 2],
    [1, 4, 1, 1],
    [1, 1, 3, 2],
    [1, 2, 3, 1],
    [1, 1, 1, 4],
    [1, 3, 1, 2],
    [1, 2, 1, 3],
    [3, 1, 1, 2],
];

/// Which of the left six digits are in set B, by the first digit of an EAN-13; the highest bit is the first of the six.
const FIRST: [u8; 10] =
    [0b00_0000, 0b00_1011, 0b00_1101, 0b00_1110, 0b01_0011, 0b01_1001, 0b01_1100, 0b01_0101, 0b01_0110, 0b01_1010];

/// How a digit's widths become modules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberSet {
    /// As they stand, beginning with a space.
    A,
    /// C mirrored.
    B,
    /// A inverted: beginning with a bar.
    C,
}

fn digit(digit: u8, set: NumberSet) -> impl Iterator<Item = bool> {
    let mut widths = WIDTHS.get(usize::from(digit - b'0')).copied().unwrap_or_default();
    if set == NumberSet::B {
        widths.reverse();
    }
    let first = set == NumberSet::C;
    let bars = [first, !first, first, !first];
    widths.into_iter().zip(bars).flat_map(|(width, black)| std::iter::repeat_n(black, width.into()))
}

const GUARD: [bool; 3] = [true, false, true];
const CENTRE: [bool; 5] = [false, true, false, true, false];

fn text(digits: &[u8]) -> String {
    digits.iter().map(|digit| char::from(*digit)).collect()
}

/// Guards around and between two halves; `sets` are those of the left half.
fn modules(left: &[u8], sets: impl Iterator<Item = NumberSet>, right: &[u8]) -> Vec<bool> {
    let left = left.iter().zip(sets).flat_map(|(ch, set)| digit(*ch, set));
    let right = right.iter().flat_map(|ch| digit(*ch, NumberSet::C));
    GUARD.into_iter().chain(left).chain(CENTRE).chain(right).chain(GUARD).collect()
}

pub(crate) fn ean13(value: &str) -> Result<Symbol, String> {
    let digits = with_check_digit(value, 13)?;
    let (Some((first, rest)), 13) = (digits.split_first(), digits.len()) else { return Err(String::new()) };
    let (left, right) = rest.split_at(6);
    let in_b = FIRST.get(usize::from(first - b'0')).copied().unwrap_or(0);
    let sets = (0..6).map(|at| if in_b >> (5 - at) & 1 == 1 { NumberSet::B } else { NumberSet::A });
    let modules = modules(left, sets, right);
    Ok(Symbol {
        width: modules.len(),
        rows: vec![modules],
        quiet: Quiet { left: 11, right: 7, vertical: 0 },
        readable: vec![
            Readable { text: text(&[*first]), from: 0, to: 9 },
            Readable { text: text(left), from: 11 + 3, to: 11 + 45 },
            Readable { text: text(right), from: 11 + 50, to: 11 + 92 },
        ],
        guards: vec![(0, 3), (46, 49), (92, 95)],
    })
}

pub(crate) fn ean8(value: &str) -> Result<Symbol, String> {
    let digits = with_check_digit(value, 8)?;
    let (left, right) = digits.split_at(4);
    let modules = modules(left, std::iter::repeat(NumberSet::A), right);
    Ok(Symbol {
        width: modules.len(),
        rows: vec![modules],
        quiet: Quiet { left: 7, right: 7, vertical: 0 },
        readable: vec![
            Readable { text: text(left), from: 7 + 3, to: 7 + 31 },
            Readable { text: text(right), from: 7 + 36, to: 7 + 64 },
        ],
        guards: vec![(0, 3), (32, 35), (64, 67)],
    })
}
