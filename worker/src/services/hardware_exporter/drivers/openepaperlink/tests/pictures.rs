//! Whether the tag shows exactly these pixels.

use super::*;

async fn shown(bench: &Bench, tag: usize, picture: &Picture) -> Picture {
    let pending = bench.sent(tag, picture).await;
    bench.pass(CHECK_IN_S);
    let answer = bench.look(&pending).await;
    assert!(is_confirmed(&answer), "{answer:?}");
    bench.screen(tag).unwrap()
}

/// OEPL #48, #221, #55: JPEG harms pictures. Not with whole colours and no dithering, whatever the picture.
#[tokio::test]
async fn noise_in_every_set_of_inks_arrives_pixel_for_pixel() {
    // White black; and red; and yellow; the other order of these; white black yellow; six inks.
    let panels = [0x40, 0x33, 0x90, 0xBB, 0x3C, 0xC2];
    let bench = Bench::new(&panels).await;
    for (tag, panel) in panels.into_iter().enumerate() {
        let picture = noise(panel, u64::from(panel));
        assert_eq!(shown(&bench, tag, &picture).await, picture, "{panel:02X}");
    }
}

/// Boards without PSRAM reduce colours to eight bits.
#[tokio::test]
async fn an_access_point_with_little_memory_shows_the_same_pixels() {
    let bench = Bench::with(&[0x33, 0xC2], |settings| settings.has_psram = false).await;
    for (tag, panel) in [0x33, 0xC2].into_iter().enumerate() {
        let picture = noise(panel, 7);
        assert_eq!(shown(&bench, tag, &picture).await, picture, "{panel:02X}");
    }
}

/// Where the access point compresses, the hash cannot be foretold: the bytes that it delivered are read back.
#[tokio::test]
async fn a_compressed_picture_is_confirmed_by_reading_it_back() {
    let bench = Bench::with(&[0x33], |settings| settings.tag_version = 0x27).await;
    let picture = noise(0x33, 1);
    assert_eq!(shown(&bench, 0, &picture).await, picture);
    // The bytes are still there when the tag has lost them; then they prove nothing.
    let pending = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    bench.control(Control::RebootTag(mac(0)));
    bench.pass(CHECK_IN_S);
    assert!(is_lost(&bench.look(&pending).await, "reports no picture"));
    // Nor does a count that a broken transfer left behind, once the tag has checked in long enough.
    bench.control(Control::Transfer(mac(0), TransferFault::Lost));
    let mut pending = bench.sent(0, &noise(0x33, 2)).await;
    pending.sent_at = bench.clock.now();
    bench.pass(CHECK_IN_S);
    assert!(is_underway(&bench.look(&pending).await, DeliveryState::Queued));
    bench.pass(1_800);
    assert!(is_lost(&bench.look(&pending).await, "broke off"));
}

/// The same where nothing can be read back: the tag's hash changed, and nobody else uploaded.
#[tokio::test]
async fn a_compressed_picture_that_cannot_be_read_back_is_confirmed_by_the_change() {
    let bench = Bench::with(&[0x33], |settings| {
        settings.tag_version = 0x27;
        settings.keeps_delivered = false;
    })
    .await;
    let picture = noise(0x33, 1);
    assert_eq!(shown(&bench, 0, &picture).await, picture);
    // A reboot in between changes no hash: nothing is confirmed by it.
    let pending = bench.sent(0, &noise(0x33, 2)).await;
    bench.control(Control::Reboot);
    bench.pass(31 + CHECK_IN_S);
    assert!(is_lost(&bench.look(&pending).await, "reports another picture"));
}

/// HA #232: the background is dithered grey instead of clear white.
#[tokio::test]
async fn the_dither_flag_reaches_the_access_point_and_white_stays_white() {
    let bench = Bench::new(&[0x33]).await;
    let white = Picture::new(384, 168, Palette::Bwr, vec![0; 384 * 168]).unwrap();
    assert_eq!(shown(&bench, 0, &white).await, white);
    assert_eq!(bench.access_point.traffic().dithered, 0);
}

/// OEPL #335, #522, HA #354: yellow and red change places on panels that count their inks in another order.
#[tokio::test]
async fn each_ink_by_itself_arrives_on_panels_of_both_orders() {
    let bench = Bench::new(&[0x07, 0xBB]).await;
    for index in 0..4 {
        for tag in 0..2 {
            let picture = Picture::new(296, 128, Palette::Bwry, vec![index; 296 * 128]).unwrap();
            // A panel that has shown nothing yet may hold a plain picture by chance; noise in between makes it a change.
            shown(&bench, tag, &noise(0x07, u64::from(index))).await;
            assert_eq!(shown(&bench, tag, &picture).await, picture, "ink {index} on tag {tag}");
        }
    }
}

/// HA #50, #52: the last line is missing on turned panels. OEPL #333: mirrored pictures.
#[tokio::test]
async fn panels_turned_every_way_show_first_and_last_lines_where_they_belong() {
    let panels = [0x02, 0x01, 0x2E, 0x06];
    let bench = Bench::new(&panels).await;
    for (tag, number) in panels.into_iter().enumerate() {
        let panel = Panel::of(number).unwrap();
        assert_eq!(usize::from(panel.quarter_turns), tag);
        let (width, height) = (panel.width as usize, panel.height as usize);
        let mut indices = vec![0; width * height];
        // Top line, left half of the bottom line, right column.
        indices[..width].fill(1);
        indices[width * (height - 1)..width * height - width / 2].fill(2);
        indices.chunks_mut(width).for_each(|row| row[width - 1] = 1);
        let picture = Picture::new(panel.width, panel.height, panel.inks.palette(), indices).unwrap();
        assert_eq!(shown(&bench, tag, &picture).await, picture, "{number:02X}");
    }
}

/// HA #300: the preview shows something else than the tag. What is on the tag counts.
#[tokio::test]
async fn a_tag_that_shows_another_picture_is_not_confirmed() {
    let bench = Bench::new(&[0x33]).await;
    let (mine, other) = (noise(0x33, 1), noise(0x33, 2));
    let pending = bench.sent(0, &mine).await;
    // Somebody uploads by hand.
    let another = bench.sent(0, &other).await;
    bench.pass(CHECK_IN_S);
    assert!(is_lost(&bench.look(&pending).await, "something else was uploaded"));
    assert!(is_confirmed(&bench.look(&another).await));
}

/// OEPL #269: red is not as red after an update with the short waveform. A coloured picture takes the full one.
#[test]
fn a_coloured_picture_asks_for_the_full_waveform() {
    use super::super::upload::{Upload, has_colour};
    let body = |picture: &Picture| {
        let upload = Upload { mac: "0000021A00000000".parse().unwrap(), jpeg: b"", has_colour: has_colour(picture) };
        String::from_utf8(upload.body().to_vec()).unwrap()
    };
    let part = |value: &str| format!("name=\"lut\"\r\n\r\n{value}\r\n");
    assert!(body(&noise(0x33, 1)).contains(&part("1")));
    assert!(body(&noise(0x40, 1)).contains(&part("0")));
}
