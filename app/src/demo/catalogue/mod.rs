//! The products of the demo shops: a fixed list, so that every start on every machine writes the same records.

mod german;
mod greek;
mod international;
mod polish;

/// How a product is sold: in three sizes, the first being the one the price is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    /// Grams; the unit price is per kilogram.
    Grams([u32; 3]),
    /// Millilitres; the unit price is per litre.
    Millilitres([u32; 3]),
    /// Pieces; the unit price is per piece.
    Pieces([u32; 3]),
}

/// A line of the catalogue. With three variants in three sizes it stands for nine items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    /// Name as it stands on the label, without variant and size.
    pub(super) name: &'static str,
    /// What tells the variants apart; may be empty.
    pub(super) variants: [&'static str; 3],
    /// Brand; empty for loose goods.
    pub(super) brand: &'static str,
    /// Sizes.
    pub(super) amount: Amount,
    /// Price of the first size in euro cents.
    pub(super) cents: u32,
    /// Where it comes from; empty where nobody must say so.
    pub(super) origin: &'static str,
    /// Quality class of fruit and vegetables; empty otherwise.
    pub(super) class: &'static str,
}

/// A packaged product.
const fn packed(
    name: &'static str,
    variants: [&'static str; 3],
    brand: &'static str,
    amount: Amount,
    cents: u32,
) -> Product {
    Product { name, variants, brand, amount, cents, origin: "", class: "" }
}

/// Loose fruit or vegetables: with origin and class, without brand, sold by weight.
const fn fresh(
    name: &'static str,
    variants: [&'static str; 3],
    cents: u32,
    origin: &'static str,
    class: &'static str,
) -> Product {
    Product { name, variants, brand: "", amount: Amount::Grams([1000, 500, 2000]), cents, origin, class }
}

/// The language a shop mostly speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// German.
    German,
    /// Polish.
    Polish,
    /// Greek.
    Greek,
}

/// The products of a shop: those in its own language, then the imported ones that every shop has.
pub(super) fn products(language: Language) -> impl Iterator<Item = &'static Product> {
    let own: &'static [Product] = match language {
        Language::German => german::PRODUCTS,
        Language::Polish => polish::PRODUCTS,
        Language::Greek => greek::PRODUCTS,
    };
    own.iter().chain(international::PRODUCTS)
}
