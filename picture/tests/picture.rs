//! The picture through its public surface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use picture::{Digest, Ink, PACKED_BYTES_MAX, PackError, Palette, Picture, PictureError, Rotation, UnpackError};
use proptest::prelude::*;

fn any_picture() -> impl Strategy<Value = Picture> {
    (1_u32..70, 1_u32..40, 0_usize..5).prop_flat_map(|(width, height, palette)| {
        let palette = Palette::ALL[palette];
        let inks = u8::try_from(palette.inks().len()).unwrap();
        // Long runs and noise both occur.
        let run = (0..inks, 1_usize..90);
        proptest::collection::vec(run, (width * height) as usize).prop_map(move |runs| {
            let indices = runs.into_iter().flat_map(|(index, count)| std::iter::repeat_n(index, count / 3 + 1));
            Picture::new(width, height, palette, indices.take((width * height) as usize).collect()).unwrap()
        })
    })
}

proptest! {
    #[test]
    fn unpack_gives_back_what_was_packed(picture in any_picture()) {
        let (packed, digest) = picture.pack_with_digest().unwrap();
        prop_assert_eq!(&packed, &picture.pack().unwrap());
        prop_assert_eq!(digest, picture.digest());
        prop_assert_eq!(Picture::unpack(&packed).unwrap(), picture);
    }

    #[test]
    fn hostile_bytes_are_refused_or_read(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), head in any::<bool>()) {
        if head && bytes.len() > 9 {
            let header = [b'L', b'P', 1, bytes[3] % 6, 0, bytes[5], 0, bytes[7], bytes[8] % 2];
            bytes[..9].copy_from_slice(&header);
        }
        if let Ok(picture) = Picture::unpack(&bytes) {
            // What reads at all is a whole picture.
            prop_assert_eq!(picture.indices().len(), (picture.width() * picture.height()) as usize);
        }
    }

    #[test]
    fn a_flipped_byte_never_reads_as_another_size_of_pixels(picture in any_picture(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let mut packed = picture.pack().unwrap();
        let at = at.index(packed.len());
        packed[at] ^= flip;
        if let Ok(other) = Picture::unpack(&packed) {
            prop_assert_eq!(other.indices().len(), (other.width() * other.height()) as usize);
        }
    }

    #[test]
    fn four_quarter_turns_are_none(picture in any_picture()) {
        let turned = picture.clone().rotated(Rotation::Deg90);
        prop_assert_eq!(turned.at(picture.height() - 1, 0), picture.at(0, 0));
        prop_assert_eq!(turned.clone().rotated(Rotation::Deg90), picture.clone().rotated(Rotation::Deg180));
        prop_assert_eq!(turned.clone().rotated(Rotation::Deg180), picture.clone().rotated(Rotation::Deg270));
        prop_assert_eq!(turned.rotated(Rotation::Deg270), picture);
    }
}

#[test]
fn the_constructor_checks_size_count_and_indices() {
    let bw = Palette::Bw;
    assert!(matches!(Picture::new(0, 4, bw, vec![]), Err(PictureError::Size { .. })));
    assert!(matches!(Picture::new(4_097, 1, bw, vec![0; 4_097]), Err(PictureError::Size { .. })));
    assert!(matches!(Picture::new(4_096, 4_096, bw, vec![]), Err(PictureError::Size { .. })));
    assert_eq!(Picture::new(2, 2, bw, vec![0; 3]), Err(PictureError::Count { got: 3, want: 4 }));
    assert_eq!(Picture::new(2, 2, bw, vec![0, 1, 2, 0]), Err(PictureError::Index { at: 2, index: 2, palette: bw }));
}

#[test]
fn digest_covers_size_and_palette() {
    let blank = |width, height, palette| Picture::new(width, height, palette, vec![0; 32]).unwrap().digest();
    let all =
        [blank(8, 4, Palette::Bw), blank(4, 8, Palette::Bw), blank(8, 4, Palette::Bwr), blank(8, 4, Palette::Grey4)];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn digest_text_reads_back() {
    let digest = Picture::new(1, 1, Palette::Bw, vec![1]).unwrap().digest();
    assert_eq!(digest.to_string().parse::<Digest>(), Ok(digest));
    assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err());
    assert!("00".parse::<Digest>().is_err());
    // The stored form and the digest are contracts: this value changes only with a new format version.
    assert_eq!(digest.to_string(), "cf928a4a4beef55fff6cdf4fa689ec32185cb4ce5f0509a64778b1707b829a6f");
}

#[test]
fn noise_beyond_the_limit_is_refused_and_dithered_spectra_fits() {
    let noise = |width: u32, height: u32| {
        let mut state = 1_u32;
        let indices = (0..width * height).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(state >> 24).unwrap() % 6
        });
        Picture::new(width, height, Palette::Spectra6, indices.collect()).unwrap()
    };
    assert!(noise(800, 480).pack().unwrap().len() <= PACKED_BYTES_MAX);
    assert!(matches!(noise(1_024, 576).pack(), Err(PackError::TooLarge { bytes }) if bytes > PACKED_BYTES_MAX));
}

#[test]
fn a_small_file_cannot_claim_a_large_picture() {
    let claim = |width: u16, height: u16| {
        let ([w1, w0], [h1, h0]) = (width.to_be_bytes(), height.to_be_bytes());
        Picture::unpack(&[b'L', b'P', 1, 1, w1, w0, h1, h0, 1, 255, 0, 9])
    };
    assert!(matches!(claim(4_096, 4_096), Err(UnpackError::Picture(PictureError::Size { .. }))));
    assert_eq!(claim(296, 128), Err(UnpackError::Damaged));
    assert_eq!(Picture::unpack(b"LP"), Err(UnpackError::Header));
    assert_eq!(Picture::unpack(b"LP\x02\x01\0\x01\0\x01\0\0"), Err(UnpackError::Version(2)));
    assert_eq!(Picture::unpack(b"LP\x01\x09\0\x01\0\x01\0\0"), Err(UnpackError::Palette(9)));
    // A set bit in a row's padding would be a second form of the same picture.
    assert_eq!(Picture::unpack(b"LP\x01\x01\0\x01\0\x01\0\x01"), Err(UnpackError::Damaged));
    assert_eq!(Picture::unpack(&vec![0; PACKED_BYTES_MAX + 1]), Err(UnpackError::TooLong));
}

#[test]
fn wire_names_and_numbers_read_back() {
    for palette in Palette::ALL {
        assert_eq!(Palette::from_name(palette.name()), Some(palette));
        assert_eq!(Palette::from_number(palette.number()), Some(palette));
        assert_eq!(palette.index_of(Ink::White), Some(0));
    }
    let numbers: Vec<i32> = Palette::ALL.into_iter().map(Palette::number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!((Palette::from_number(0), Palette::from_name("BW")), (None, None));
    for rotation in Rotation::ALL {
        assert_eq!(Rotation::from_degrees(rotation.degrees()), Some(rotation));
    }
    assert_eq!(Rotation::from_degrees(360), None);
    for ink in Ink::ALL {
        assert_eq!(Ink::from_name(ink.name()), Some(ink));
    }
}

#[test]
fn png_shows_the_inks() {
    let picture = Picture::new(3, 1, Palette::Bwr, vec![0, 1, 2]).unwrap();
    let bytes = picture.to_png().unwrap();
    let mut decoder = png::Decoder::new(std::io::Cursor::new(&bytes));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!(pixels, [Ink::White.srgb(), Ink::Black.srgb(), Ink::Red.srgb()].concat());
    assert_eq!(bytes, picture.to_png().unwrap());
}
