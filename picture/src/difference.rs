//! Where two pictures differ, for people to look at.

use crate::{palette::Palette, picture::Picture};

/// Index of an unchanged white pixel in a difference: white of [`Palette::Bwr`].
const SAME_BLANK: u8 = 0;
/// Index of an unchanged pixel of any other ink: black.
const SAME_INK: u8 = 1;
/// Index of a pixel that differs: red.
const DIFFERENT: u8 = 2;

/// Where two pictures differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What is the same in black and white, what differs in red.
    pub picture: Picture,
    /// How many pixels differ.
    pub pixels: u64,
}

impl Picture {
    /// Where `other` differs from this one; none when they have another size or other inks, and so no pixel in common.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if (self.width(), self.height(), self.palette()) != (other.width(), other.height(), other.palette()) {
            return None;
        }
        let mut pixels = 0;
        let indices = self
            .indices()
            .iter()
            .zip(other.indices())
            .map(|(one, other)| match (one == other, *one) {
                (true, 0) => SAME_BLANK,
                (true, _) => SAME_INK,
                (false, _) => {
                    pixels += 1;
                    DIFFERENT
                }
            })
            .collect();
        let picture = Self::new(self.width(), self.height(), Palette::Bwr, indices).ok()?;
        Some(Difference { picture, pixels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, palette: Palette, indices: &[u8]) -> Picture {
        Picture::new(width, u32::try_from(indices.len()).unwrap() / width, palette, indices.to_vec()).unwrap()
    }

    #[test]
    fn what_differs_is_red_and_counted() {
        let one = picture(2, Palette::Bwr, &[0, 1, 2, 0]);
        let other = picture(2, Palette::Bwr, &[0, 1, 1, 2]);
        let difference = one.difference(&other).unwrap();
        assert_eq!(difference.pixels, 2);
        assert_eq!(difference.picture, picture(2, Palette::Bwr, &[0, 1, 2, 2]));
        assert_eq!(one.difference(&one).unwrap().pixels, 0);
    }

    #[test]
    fn pictures_of_other_sizes_or_inks_have_no_difference_to_show() {
        let one = picture(2, Palette::Bw, &[0, 1, 1, 0]);
        assert_eq!(one.difference(&picture(4, Palette::Bw, &[0, 1, 1, 0])), None);
        assert_eq!(one.difference(&picture(2, Palette::Bwr, &[0, 1, 1, 0])), None);
    }
}
