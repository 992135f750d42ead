use super::*;

#[test]
fn check_digits_are_computed_and_verified() {
    assert_eq!(check_digit(b"400638133393"), b'1');
    assert_eq!(ean::ean13("400638133393"), ean::ean13("4006381333931"));
    assert_eq!(ean::ean13("4006381333932").unwrap_err(), "its check digit is 2, but 1 is right");
    assert_eq!(ean::ean8("9638507"), ean::ean8("96385074"));
    for bad in ["", "12", "40063813339311", "40063813339a", "４００６３８１３３３９３"] {
        assert!(ean::ean13(bad).is_err(), "{bad}");
        assert!(ean::ean8(bad).is_err(), "{bad}");
    }
}

#[test]
fn widths_and_quiet_zones_are_the_specifications() {
    let ean13 = encode(Symbology::Ean13, "4006381333931").unwrap();
    assert_eq!((ean13.width, ean13.quiet.left, ean13.quiet.right), (95, 11, 7));
    let ean8 = encode(Symbology::Ean8, "96385074").unwrap();
    assert_eq!((ean8.width, ean8.quiet.left, ean8.quiet.right), (67, 7, 7));
    // Start, four characters of two digits, check: 6 × 11 modules, and the stop's 13.
    let code128 = encode(Symbology::Code128, "12345678").unwrap();
    assert_eq!((code128.width, code128.quiet.left, code128.quiet.right), (6 * 11 + 13, 10, 10));
}

#[test]
fn gs1_values_are_checked() {
    assert_eq!(gs1::message("(01)9521234543213(17)261231(10)A1").unwrap(), b"01095212345432131726123110A1");
    assert_eq!(gs1::message("(10)A1(17)261231").unwrap(), b"10A1\x1D17261231");
    for (bad, why) in [
        ("", "empty"),
        ("0109521234543213", "application identifier"),
        ("(01)9521234543210", "check digit"),
        ("(17)261331", "date"),
        ("(17)2612", "6 digits"),
        ("(10)", "1 to 90"),
        ("(10)a b", "U+0020"),
        ("(1x)1", "no application identifier"),
        ("(10", "application identifier"),
    ] {
        let error = gs1::message(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn what_cannot_be_encoded_says_why() {
    assert!(encode(Symbology::Code128, "Größe").unwrap_err().contains("U+00F6"));
    assert!(encode(Symbology::Code128, &"x".repeat(81)).is_err());
    assert!(encode(Symbology::Qr(Correction::High), &"x".repeat(300)).is_ok());
    assert!(encode(Symbology::Qr(Correction::High), &"x".repeat(301)).unwrap_err().contains("at most 300"));
    assert!(encode(Symbology::Qr(Correction::High), &"€".repeat(300)).unwrap_err().contains("too long"));
    assert!(encode(Symbology::Gs1DataMatrix, &format!("(10){}", "A".repeat(91))).is_err());
}
