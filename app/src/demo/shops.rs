//! The three shops of the demo tenant, and what differs between them: language, currency, words.

use super::catalogue::Language;

/// A shop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shop {
    /// Id of the store.
    pub(crate) id: &'static str,
    /// Digit that keeps article numbers of the shops apart.
    pub(super) digit: u32,
    /// Language of most products.
    pub(super) language: Language,
    /// BCP 47.
    pub(super) locale: &'static str,
    /// ISO 4217.
    pub(super) currency: &'static str,
    /// IANA name.
    pub(super) time_zone: &'static str,
    /// Price level: hundredths of the currency per euro cent.
    pub(super) cents_per_euro_cent: u32,
    /// What stands on a promotion.
    pub(super) promotions: [&'static str; 3],
    /// Units a unit price is for: kilogram, litre, piece.
    pub(super) units: [&'static str; 3],
    /// Size texts: grams, kilograms, millilitres, litres, pieces.
    pub(super) sizes: [&'static str; 5],
    /// Decimal sign in size texts.
    pub(super) decimal_sign: char,
}

/// The shops, in the order they are written.
pub(crate) const SHOPS: &[Shop] = &[
    Shop {
        id: "berlin",
        digit: 0,
        language: Language::German,
        locale: "de-DE",
        currency: "EUR",
        time_zone: "Europe/Berlin",
        cents_per_euro_cent: 1,
        promotions: ["Aktion", "Nur diese Woche", "Tiefpreis für Frühaufsteher"],
        units: ["kg", "l", "Stück"],
        sizes: ["g", "kg", "ml", "l", "Stück"],
        decimal_sign: ',',
    },
    Shop {
        id: "krakow",
        digit: 1,
        language: Language::Polish,
        locale: "pl-PL",
        currency: "PLN",
        time_zone: "Europe/Warsaw",
        cents_per_euro_cent: 4,
        promotions: ["Promocja", "Tylko w tym tygodniu", "Łap okazję"],
        units: ["kg", "l", "szt."],
        sizes: ["g", "kg", "ml", "l", "szt."],
        decimal_sign: ',',
    },
    Shop {
        id: "athina",
        digit: 2,
        language: Language::Greek,
        locale: "el-GR",
        currency: "EUR",
        time_zone: "Europe/Athens",
        cents_per_euro_cent: 1,
        promotions: ["Προσφορά", "Μόνο αυτή την εβδομάδα", "Τιμή έκπληξη"],
        units: ["κιλό", "λτ", "τεμ."],
        sizes: ["γρ.", "κιλά", "ml", "λίτρα", "τεμ."],
        decimal_sign: ',',
    },
];
