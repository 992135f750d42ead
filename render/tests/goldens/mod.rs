//! Golden pictures: exact pixels, kept as PNG files. After a wanted change run with `GOLDEN=write`, look at every picture
//! that changed, and raise `render::BUILD`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{read, read_dir, read_to_string, write};
use std::path::{Path, PathBuf};

use picture::Picture;
use sha2::{Digest as _, Sha256};

/// The golden pictures of one folder.
pub(crate) struct Goldens<C> {
    /// Below the room.
    pub(crate) folder: &'static str,
    pub(crate) cases: fn() -> Vec<C>,
    pub(crate) name: fn(&C) -> &'static str,
    pub(crate) draw: fn(&C) -> Picture,
}

fn writing() -> bool {
    std::env::var("GOLDEN").is_ok_and(|value| value == "write")
}

/// The indices a golden PNG holds.
fn indices(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.color_type, frame.bit_depth), (png::ColorType::Indexed, png::BitDepth::Eight));
    (frame.width, frame.height, pixels)
}

impl<C: Sync> Goldens<C> {
    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder)
    }

    pub(crate) fn assert_equal(&self) {
        let mut wrong = Vec::new();
        for case in (self.cases)() {
            let drawn = (self.draw)(&case);
            let file = self.folder().join(format!("{}.png", (self.name)(&case)));
            if writing() {
                write(&file, drawn.to_png().unwrap()).unwrap();
            }
            let (width, height, pixels) = indices(&read(&file).unwrap());
            if (width, height, pixels.as_slice()) != (drawn.width(), drawn.height(), drawn.indices()) {
                wrong.push((self.name)(&case));
            }
        }
        assert!(wrong.is_empty(), "these differ from {}: {wrong:?}", self.folder);
    }

    /// `BUILD` holds the build and a hash over all pictures.
    pub(crate) fn assert_named_by_build(&self) {
        let mut all = Sha256::new();
        for case in (self.cases)() {
            all.update((self.name)(&case));
            all.update((self.draw)(&case).digest().as_bytes());
        }
        let hash = all.finalize().iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        });
        let file = self.folder().join("BUILD");
        let now = format!("{} {hash}\n", render::BUILD);
        if writing() {
            write(&file, &now).unwrap();
        }
        let told = "pictures changed: raise render::BUILD and write the goldens anew";
        assert_eq!(read_to_string(&file).unwrap(), now, "{told}");
    }

    /// Every case has a name and a file of its own, and no other file lies there.
    pub(crate) fn assert_none_left_over(&self) {
        let cases = (self.cases)();
        let names: BTreeSet<String> = cases.iter().map(|case| format!("{}.png", (self.name)(case))).collect();
        assert_eq!(names.len(), cases.len());
        let files: BTreeSet<String> = read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "BUILD")
            .collect();
        assert_eq!(names, files);
    }

    pub(crate) fn assert_same_whatever_was_drawn_before(&self) {
        let cases = (self.cases)();
        let first: Vec<_> = cases.iter().map(|case| (self.draw)(case).digest()).collect();
        let again = || cases.iter().rev().map(|case| (self.draw)(case).digest()).collect::<Vec<_>>();
        // A fresh thread has a cold glyph cache.
        let cold = std::thread::scope(|scope| scope.spawn(again).join().unwrap());
        assert!(first.iter().eq(cold.iter().rev()));
    }
}
