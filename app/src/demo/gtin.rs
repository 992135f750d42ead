//! Article numbers that belong to nobody: GTIN-13 from the ranges kept for use inside a company.

/// The weight of the digit at `index` of a GTIN-13, from the left (GS1 General Specifications, check digit).
const fn weight(index: u32) -> u64 {
    if index.is_multiple_of(2) { 1 } else { 3 }
}

/// The GTIN-13 of item `number` (at most 9 digits) of the shop `shop` (0 to 9), in the restricted range 200 to 209,
/// with its check digit.
pub(super) fn restricted_gtin(shop: u32, number: u32) -> String {
    let body = 200_000_000_000_u64 + u64::from(shop % 10) * 1_000_000_000 + u64::from(number) % 1_000_000_000;
    let sum: u64 = (0..12_u32).map(|index| body / 10_u64.pow(11 - index) % 10 * weight(index)).sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digit_is_that_of_the_standard() {
        // Any GTIN-13 sums to a multiple of ten with weights 1, 3, 1, 3 …
        for (shop, number) in [(0, 1), (1, 123_456), (9, 999_999_999), (3, 0)] {
            let gtin = restricted_gtin(shop, number);
            assert_eq!(gtin.len(), 13);
            assert!(gtin.starts_with("20"), "{gtin} must lie in the restricted range");
            let sum: u32 =
                gtin.bytes().enumerate().map(|(i, b)| u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 }).sum();
            assert_eq!(sum % 10, 0, "{gtin}");
        }
        assert_eq!(restricted_gtin(0, 12_345), "2000000123455");
    }
}
