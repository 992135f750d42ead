//! Imported products that every demo shop has: French, English, and Cyrillic (Bulgarian, Ukrainian, Serbian).

use super::{
    Amount::{Grams as G, Millilitres as Ml, Pieces as Pc},
    Product, fresh, packed,
};

pub(super) const PRODUCTS: &[Product] = &[
    packed("Crème fraîche d’Isigny", ["épaisse", "légère", "entière"], "Laiterie Élise", G([200, 400, 100]), 189),
    packed(
        "Pâté de campagne à l’ancienne",
        ["poivre vert", "nature", "aux cèpes"],
        "Maison Lefèvre",
        G([180, 90, 300]),
        329,
    ),
    packed("Moutarde de Dijon", ["forte", "à l’ancienne", "au miel"], "Maison Lefèvre", G([200, 350, 850]), 159),
    packed(
        "Galettes bretonnes pur beurre",
        ["nature", "caramel au beurre salé", "chocolat"],
        "Île aux Goûts",
        G([125, 250, 500]),
        199,
    ),
    packed("Mature Cheddar", ["white", "red", "extra mature"], "Thatcher’s Yard", G([200, 350, 550]), 379),
    packed("Orange Marmalade", ["thick cut", "fine cut", "with ginger"], "Thatcher’s Yard", G([340, 454, 227]), 269),
    packed("Breakfast Tea Bags", ["original", "strong", "decaf"], "Harbour & Sons", Pc([80, 40, 160]), 349),
    fresh("Avocado", ["Hass", "Fuerte", "ready to eat"], 699, "Peru", "Cl. I"),
    packed("Луканка", ["класическа", "телешка", "пикантна"], "Родопски вкус", G([250, 180, 400]), 459),
    packed("Ајвар домаћи", ["благи", "љути", "печени"], "Бакина кухиња", G([330, 550, 690]), 319),
    packed("Гречана крупа", ["ціла", "подрібнена", "зелена"], "Золотий колос", G([800, 400, 1000]), 229),
    packed(
        "Квас хлебный живого брожения",
        ["тёмный", "светлый", "на ржаном солоде"],
        "Старый погреб",
        Ml([1000, 500, 1500]),
        179,
    ),
];
