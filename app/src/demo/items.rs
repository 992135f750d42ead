//! Items of a shop: the catalogue multiplied by variants and sizes, with prices, promotions and gaps.

use std::collections::BTreeMap;

use super::{
    ITEMS_PER_STORE,
    catalogue::{Amount, Product, products},
    gtin::restricted_gtin,
    shops::Shop,
};

/// Every how many items one is on promotion.
const PROMOTION_EVERY: u32 = 7;
/// Every how many items one has no price yet: a real catalogue has such gaps, and a label must show that.
const PRICELESS_EVERY: u32 = 61;

/// An item with its values, as `storeitemvalues.v1` holds them.
pub(super) struct Item {
    /// Id of the record.
    pub(super) id: String,
    /// Values by property name.
    pub(super) values: BTreeMap<String, String>,
}

/// The items of `shop`, always the same.
pub(super) fn items(shop: &'static Shop) -> impl Iterator<Item = Item> {
    // Sizes outermost, so that neighbouring labels show different products, as on a shelf walk.
    (0..3_usize)
        .flat_map(|size| (0..3_usize).map(move |variant| (size, variant)))
        .flat_map(move |(size, variant)| products(shop.language).map(move |product| (product, size, variant)))
        .zip(1_u32..)
        .map(move |((product, size, variant), number)| item(shop, product, Choice { size, variant, number }))
        .take(ITEMS_PER_STORE as usize)
}

/// Which of a product's nine items, and its running number in the shop.
#[derive(Clone, Copy)]
struct Choice {
    size: usize,
    variant: usize,
    number: u32,
}

fn item(shop: &Shop, product: &Product, choice: Choice) -> Item {
    let Choice { size, variant, number } = choice;
    let mut values = BTreeMap::new();
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            values.insert(name.to_owned(), value);
        }
    };
    let variant = product.variants.get(variant).copied().unwrap_or_default();
    let gtin = restricted_gtin(shop.digit, 10_000 + number * 7);
    set("name", format!("{} {variant}", product.name).trim_end().to_owned());
    set("brand", product.brand.to_owned());
    set("content", content(shop, product.amount, size));
    set("origin", product.origin.to_owned());
    set("class", product.class.to_owned());
    set("locale", shop.locale.to_owned());
    set("currency", shop.currency.to_owned());
    set("time_zone", shop.time_zone.to_owned());
    set("url", format!("https://shop.example/01/0{gtin}"));
    set("gtin", gtin);
    if number % PRICELESS_EVERY != 0 {
        let price = price(shop, product, size);
        let (unit, unit_price) = unit_price(shop, product.amount, size, price);
        set("price", decimal(price));
        set("unit", unit.to_owned());
        set("unit_price", decimal(unit_price));
        if number % PROMOTION_EVERY == 0 {
            let text = shop.promotions.get((number / PROMOTION_EVERY) as usize % 3).copied().unwrap_or_default();
            set("promo_text", text.to_owned());
            set("old_price", decimal(nine_ending(price * 5 / 4 + 10)));
        }
    }
    Item { id: format!("art-{number:05}"), values }
}

fn sizes(amount: Amount) -> [u32; 3] {
    match amount {
        Amount::Grams(sizes) | Amount::Millilitres(sizes) | Amount::Pieces(sizes) => sizes,
    }
}

/// Price in hundredths of the currency: in proportion to the size, a little less for more, ending in nine.
fn price(shop: &Shop, product: &Product, size: usize) -> u32 {
    let sizes = sizes(product.amount);
    let [first, ..] = sizes;
    let chosen = sizes.get(size).copied().unwrap_or(first);
    let proportional = product.cents * shop.cents_per_euro_cent * chosen / first;
    nine_ending(if chosen > first { proportional * 92 / 100 } else { proportional })
}

/// The next amount that ends in nine, as prices do.
fn nine_ending(cents: u32) -> u32 {
    cents / 10 * 10 + 9
}

/// Unit text and price per kilogram, litre or piece, in hundredths, rounded half up.
fn unit_price(shop: &Shop, amount: Amount, size: usize, price: u32) -> (&'static str, u32) {
    let [kilogram, litre, piece] = shop.units;
    let chosen = sizes(amount).get(size).copied().unwrap_or(1).max(1);
    match amount {
        Amount::Grams(_) => (kilogram, (price * 1000 + chosen / 2) / chosen),
        Amount::Millilitres(_) => (litre, (price * 1000 + chosen / 2) / chosen),
        Amount::Pieces(_) => (piece, (price + chosen / 2) / chosen),
    }
}

/// The size as the label says it: `250 g`, `1,5 l`, `6 Stück`.
fn content(shop: &Shop, amount: Amount, size: usize) -> String {
    let [gram, kilogram, millilitre, litre, piece] = shop.sizes;
    let chosen = sizes(amount).get(size).copied().unwrap_or_default();
    match amount {
        Amount::Pieces(_) => format!("{chosen} {piece}"),
        Amount::Grams(_) if chosen < 1000 => format!("{chosen} {gram}"),
        Amount::Grams(_) => format!("{} {kilogram}", thousandths(chosen, shop.decimal_sign)),
        Amount::Millilitres(_) if chosen < 1000 => format!("{chosen} {millilitre}"),
        Amount::Millilitres(_) => format!("{} {litre}", thousandths(chosen, shop.decimal_sign)),
    }
}

/// `1500` as `1,5`.
fn thousandths(value: u32, decimal_sign: char) -> String {
    let text = format!("{}{decimal_sign}{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches(decimal_sign).to_owned()
}

/// Hundredths as the decimal text that records hold: `199` as `1.99`.
fn decimal(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::shops::SHOPS;

    #[test]
    fn every_shop_has_its_items_with_the_gaps_and_scripts_of_a_real_one() {
        for shop in SHOPS {
            let items: Vec<Item> = items(shop).collect();
            assert_eq!(items.len(), ITEMS_PER_STORE as usize);
            let with = |name: &str| items.iter().filter(|item| item.values.contains_key(name)).count();
            assert!(with("price") < items.len() && with("price") > items.len() * 9 / 10);
            assert!(with("promo_text") > 40);
            assert!(with("origin") > 20);
            let longest = items.iter().map(|item| item.values["name"].chars().count()).max().unwrap();
            assert!(longest >= 80, "{longest}");
            let names: String = items.iter().map(|item| item.values["name"].as_str()).collect();
            assert!(names.contains("Квас"), "Cyrillic is missing in {}", shop.id);
            assert!(names.contains("à l’ancienne"), "French is missing in {}", shop.id);
        }
    }

    #[test]
    fn texts_and_prices_are_as_people_write_them() {
        let berlin = &SHOPS[0];
        assert_eq!(content(berlin, Amount::Millilitres([1500, 1, 1]), 0), "1,5 l");
        assert_eq!(content(berlin, Amount::Grams([250, 1, 1]), 0), "250 g");
        assert_eq!(content(berlin, Amount::Grams([2000, 1, 1]), 0), "2 kg");
        assert_eq!(decimal(1009), "10.09");
        assert_eq!(unit_price(berlin, Amount::Grams([250, 1, 1]), 0, 239), ("kg", 956));
    }
}
