//! The stored form: a header, then the rows at 1, 2 or 4 bits a pixel, as runs.
//!
//! Layout: `'L' 'P'`, version (1), palette number, width and height (u16, big-endian): [`HEADER_BYTES`] that the
//! digest covers too. Then one coding byte: 0 = the packed rows follow as they are; 1 = runs over the packed rows,
//! each row first XOR-ed with the one above (the upright edges of text, bars and boxes become zeros).
//!
//! Runs: a control byte `c`, then
//! `0..=127`: `c + 1` literal bytes · `128..=254`: the next byte `c - 126` times · `255`: a u16 (big-endian) of zero bytes.
//!
//! Our own few lines instead of a deflate library: the bytes must not change when a library does (a stored picture
//! would differ from the same picture rendered again), and a small label packs in a few microseconds.

use crate::digest::Digest;
use crate::palette::Palette;
use crate::picture::{self, Picture, PictureError};

/// Most bytes a packed picture may have: the limit of an image record.
pub const PACKED_BYTES_MAX: usize = 262_144;

/// Magic, version, palette, width, height.
pub(crate) const HEADER_BYTES: usize = 8;

const MAGIC: [u8; 2] = *b"LP";
const VERSION: u8 = 1;
const CODING_PLAIN: u8 = 0;
const CODING_RUNS: u8 = 1;

/// A control byte from here on repeats the byte that follows.
const REPEAT: usize = 128;
/// The control byte of a long run of zeros.
const ZEROS: u8 = 255;
/// Shortest run worth a control byte.
const RUN_MIN: usize = 3;
/// Longest run of a repeat: control byte 254.
const RUN_MAX: usize = 128;
/// Longest stretch of literals: control byte 127.
const LITERALS_MAX: usize = 128;

/// Why a picture cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// It does not compress enough.
    #[error("the picture packs to {bytes} bytes, the limit is {PACKED_BYTES_MAX}")]
    TooLarge {
        /// Packed size.
        bytes: usize,
    },
}

/// Why bytes are not a packed picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// Longer than any packed picture.
    #[error("a packed picture has at most {PACKED_BYTES_MAX} bytes")]
    TooLong,
    /// Not our header.
    #[error("the bytes are not a packed picture")]
    Header,
    /// Written by a version this one does not know.
    #[error("packed picture version {0} is not known here")]
    Version(u8),
    /// The palette number names none.
    #[error("palette number {0} is not known here")]
    Palette(u8),
    /// The runs end early, run over, or padding bits are set.
    #[error("the packed rows are damaged")]
    Damaged,
    /// Size or an index is out of range.
    #[error(transparent)]
    Picture(#[from] PictureError),
}

/// Magic, version, palette, size.
pub(crate) fn header(picture: &Picture) -> [u8; HEADER_BYTES] {
    // Sides are at most SIDE_MAX and palette numbers at most 5, so neither saturates.
    let [w1, w0] = u16::try_from(picture.width()).unwrap_or(u16::MAX).to_be_bytes();
    let [h1, h0] = u16::try_from(picture.height()).unwrap_or(u16::MAX).to_be_bytes();
    let palette = u8::try_from(picture.palette().number()).unwrap_or(u8::MAX);
    [MAGIC[0], MAGIC[1], VERSION, palette, w1, w0, h1, h0]
}

const fn stride(palette: Palette, width: usize) -> usize {
    (width * palette.bits_per_pixel()).div_ceil(8)
}

/// The rows at the palette's bits per pixel, leftmost pixel in the highest bits, each row on whole bytes.
pub(crate) fn rows(picture: &Picture) -> Vec<u8> {
    let width = picture.width() as usize;
    let bits = picture.palette().bits_per_pixel();
    let mut out = Vec::with_capacity(stride(picture.palette(), width) * picture.height() as usize);
    for row in picture.indices().chunks_exact(width) {
        match bits {
            1 => {
                let (groups, rest) = row.as_chunks::<8>();
                // The multiplication gathers the lowest bit of each byte, first pixel highest.
                out.extend(
                    groups
                        .iter()
                        .map(|group| (u64::from_le_bytes(*group).wrapping_mul(0x8040_2010_0804_0201) >> 56) as u8),
                );
                push_rest(&mut out, rest, bits);
            }
            2 => {
                let (groups, rest) = row.as_chunks::<4>();
                out.extend(groups.iter().map(|[a, b, c, d]| a << 6 | b << 4 | c << 2 | d));
                push_rest(&mut out, rest, bits);
            }
            _ => {
                let (groups, rest) = row.as_chunks::<2>();
                out.extend(groups.iter().map(|[a, b]| a << 4 | b));
                push_rest(&mut out, rest, bits);
            }
        }
    }
    out
}

fn push_rest(out: &mut Vec<u8>, rest: &[u8], bits: usize) {
    if !rest.is_empty() {
        out.push(rest.iter().enumerate().fold(0, |byte, (at, index)| byte | index << (8 - bits * (at + 1))));
    }
}

impl Picture {
    /// The stored form, at most [`PACKED_BYTES_MAX`] bytes.
    pub fn pack(&self) -> Result<Vec<u8>, PackError> {
        pack(self, header(self), &rows(self))
    }

    /// The stored form and the digest, sharing the work.
    pub fn pack_with_digest(&self) -> Result<(Vec<u8>, Digest), PackError> {
        let (header, rows) = (header(self), rows(self));
        Ok((pack(self, header, &rows)?, Digest::over(header, &rows)))
    }

    /// Reads the stored form; safe on any bytes.
    pub fn unpack(bytes: &[u8]) -> Result<Self, UnpackError> {
        if bytes.len() > PACKED_BYTES_MAX {
            return Err(UnpackError::TooLong);
        }
        let Some((&[m0, m1, version, palette, w1, w0, h1, h0, coding], body)) = bytes.split_first_chunk() else {
            return Err(UnpackError::Header);
        };
        if [m0, m1] != MAGIC {
            return Err(UnpackError::Header);
        }
        if version != VERSION {
            return Err(UnpackError::Version(version));
        }
        let palette = Palette::from_number(i32::from(palette)).ok_or(UnpackError::Palette(palette))?;
        let (width, height) = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
        let count = picture::pixels(width.into(), height.into())?;
        let stride = stride(palette, width.into());
        let size = stride * usize::from(height);
        let packed = match coding {
            CODING_PLAIN if body.len() == size => body.to_vec(),
            CODING_RUNS => {
                let mut packed = runs_read(body, size).ok_or(UnpackError::Damaged)?;
                rows_join(&mut packed, stride);
                packed
            }
            _ => return Err(UnpackError::Damaged),
        };
        let indices = indices(&packed, stride, width.into(), palette.bits_per_pixel(), count)?;
        Ok(Self::new(width.into(), height.into(), palette, indices)?)
    }
}

fn pack(picture: &Picture, header: [u8; HEADER_BYTES], rows: &[u8]) -> Result<Vec<u8>, PackError> {
    let differences = rows_differ(rows, stride(picture.palette(), picture.width() as usize));
    let mut out = Vec::with_capacity(HEADER_BYTES + 1 + rows.len() / 2);
    out.extend_from_slice(&header);
    out.push(CODING_RUNS);
    runs_write(&differences, &mut out);
    if out.len() > HEADER_BYTES + 1 + rows.len() {
        out.clear();
        out.extend_from_slice(&header);
        out.push(CODING_PLAIN);
        out.extend_from_slice(rows);
    }
    if out.len() > PACKED_BYTES_MAX {
        return Err(PackError::TooLarge { bytes: out.len() });
    }
    Ok(out)
}

fn rows_differ(rows: &[u8], stride: usize) -> Vec<u8> {
    let (first, rest) = rows.split_at(stride.min(rows.len()));
    let mut out = Vec::with_capacity(rows.len());
    out.extend_from_slice(first);
    out.extend(rest.iter().zip(rows).map(|(below, above)| below ^ above));
    out
}

fn rows_join(rows: &mut [u8], stride: usize) {
    let mut at = stride;
    while at < rows.len() {
        let (above, below) = rows.split_at_mut(at);
        for (below, above) in below.iter_mut().zip(above.iter().skip(at - stride)).take(stride) {
            *below ^= above;
        }
        at += stride;
    }
}

/// How many bytes from the start equal the first; eight at a time, since most of a label is long runs.
fn run_length(bytes: &[u8]) -> usize {
    let Some(first) = bytes.first() else { return 0 };
    let pattern = [*first; 8];
    let (groups, _) = bytes.as_chunks::<8>();
    let whole = groups.iter().take_while(|group| **group == pattern).count() * 8;
    whole + bytes.iter().skip(whole).take_while(|byte| *byte == first).count()
}

fn runs_write(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    let mut literals: &[u8] = &[];
    let mut literal_from = bytes;
    while let Some(first) = rest.first() {
        let run = run_length(rest);
        if run < RUN_MIN {
            rest = rest.get(run..).unwrap_or_default();
            literals = literal_from.get(..literal_from.len() - rest.len()).unwrap_or_default();
            continue;
        }
        literals_write(literals, out);
        let taken = if *first == 0 && run > RUN_MAX {
            let taken = run.min(usize::from(u16::MAX));
            out.push(ZEROS);
            out.extend_from_slice(&u16::try_from(taken).unwrap_or(u16::MAX).to_be_bytes());
            taken
        } else {
            let taken = run.min(RUN_MAX);
            // A repeat of n has control byte n + 126, at most 254.
            out.push(u8::try_from(taken + REPEAT - 2).unwrap_or(ZEROS - 1));
            out.push(*first);
            taken
        };
        rest = rest.get(taken..).unwrap_or_default();
        literal_from = rest;
        literals = &[];
    }
    literals_write(literals, out);
}

fn literals_write(literals: &[u8], out: &mut Vec<u8>) {
    for part in literals.chunks(LITERALS_MAX) {
        out.push(u8::try_from(part.len() - 1).unwrap_or(127));
        out.extend_from_slice(part);
    }
}

/// Exactly `size` bytes, or `None`; never grows beyond `size`.
fn runs_read(mut body: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    while let Some((&control, rest)) = body.split_first() {
        let count = match usize::from(control) {
            _ if control == ZEROS => {
                let (count, after) = rest.split_first_chunk::<2>()?;
                body = after;
                let count = usize::from(u16::from_be_bytes(*count));
                out.resize((out.len() + count).min(size + 1), 0);
                count
            }
            repeat if repeat >= REPEAT => {
                let (byte, after) = rest.split_first()?;
                body = after;
                out.resize((out.len() + repeat + 2 - REPEAT).min(size + 1), *byte);
                repeat
            }
            literal => {
                let (bytes, after) = rest.split_at_checked(literal + 1)?;
                body = after;
                if out.len() + bytes.len() > size {
                    return None;
                }
                out.extend_from_slice(bytes);
                literal + 1
            }
        };
        if out.len() > size || count == 0 {
            return None;
        }
    }
    (out.len() == size).then_some(out)
}

fn indices(packed: &[u8], stride: usize, width: usize, bits: usize, count: usize) -> Result<Vec<u8>, UnpackError> {
    let per_byte = 8 / bits;
    let mask = u8::try_from((1_u16 << bits) - 1).unwrap_or(u8::MAX);
    let mut out = Vec::with_capacity(count + per_byte);
    for row in packed.chunks_exact(stride) {
        let end = out.len() + width;
        for byte in row {
            out.extend((1..=per_byte).map(|at| byte >> (8 - bits * at) & mask));
        }
        // One picture has one packed form: bits beyond the row's end are zero.
        if out.iter().skip(end).any(|index| *index != 0) {
            return Err(UnpackError::Damaged);
        }
        out.truncate(end);
    }
    Ok(out)
}
