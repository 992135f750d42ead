//! What a document may hold at all: elements, attributes and references by name, checked everywhere, also where nothing is
//! painted. Everything not named here is refused.

use std::collections::BTreeMap;

use resvg::usvg::roxmltree::{Attribute, Document, Node};

use super::colour::Colours;
use super::error::DesignError;
use super::geometry::{length, short};
use super::style::Style;

const SVG: &str = "http://www.w3.org/2000/svg";
const XLINK: &str = "http://www.w3.org/1999/xlink";
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// What drawing programs keep for themselves; skipped.
const EDITORS: [&str; 6] = [
    "http://www.inkscape.org/namespaces/inkscape",
    "http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://creativecommons.org/ns#",
    "http://purl.org/dc/elements/1.1/",
    "http://www.serif.com/",
];

/// The one form in which a picture may be in a design.
pub(crate) const PNG_URI: &str = "data:image/png;base64,";

pub(crate) fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.tag_name().namespace() == Some(SVG) && node.tag_name().name() == name
}

/// `"id"`, or the tag and its line.
pub(crate) fn label(node: Node<'_, '_>) -> String {
    let tag = short(node.tag_name().name());
    if let Some(id) = node.attribute("id") {
        return format!("<{tag}> \"{}\"", short(id));
    }
    let line = node.document().text_pos_at(node.range().start).row;
    format!("<{tag}> in line {line}")
}

pub(crate) fn broken(node: Node<'_, '_>, rule: String) -> DesignError {
    DesignError::Element { element: label(node), rule }
}

/// Attributes of each element that is understood, besides those any may have; `None`: the element is not.
fn attributes(tag: &str) -> Option<&'static [&'static str]> {
    Some(match tag {
        "svg" => &["width", "height", "viewBox", "version", "baseProfile", "preserveAspectRatio"],
        "g" | "defs" | "title" | "desc" | "metadata" => &[],
        "use" => &["x", "y", "href"],
        "rect" => &["x", "y", "width", "height", "rx", "ry"],
        "circle" => &["cx", "cy", "r"],
        "ellipse" => &["cx", "cy", "rx", "ry"],
        "line" => &["x1", "y1", "x2", "y2"],
        "polyline" | "polygon" => &["points"],
        "path" => &["d"],
        "text" | "tspan" => &["x", "y"],
        "image" => &["x", "y", "width", "height", "href", "preserveAspectRatio"],
        _ => return None,
    })
}

/// Whether the element is an editor's own, with all it holds.
pub(crate) fn skipped(node: Node<'_, '_>) -> bool {
    node.tag_name().namespace().is_some_and(|namespace| EDITORS.contains(&namespace))
        || node.ancestors().any(|above| is(above, "metadata"))
}

/// Checks every element, also those never painted, and finds ids.
pub(crate) fn vet<'a, 'input>(
    document: &'a Document<'input>,
    initial: &Style,
    colours: &mut Colours,
) -> Result<BTreeMap<&'a str, Node<'a, 'input>>, DesignError> {
    let mut ids = BTreeMap::new();
    for node in document.descendants().filter(Node::is_element) {
        if skipped(node) && !is(node, "metadata") {
            continue;
        }
        let fail = |rule: String| broken(node, rule);
        let known = (node.tag_name().namespace() == Some(SVG)).then(|| attributes(node.tag_name().name())).flatten();
        let Some(known) = known else {
            return Err(fail("this element is not supported".to_owned()));
        };
        for attribute in node.attributes() {
            vet_attribute(node, attribute, known, initial, colours).map_err(fail)?;
        }
        if let Some(id) = node.attribute("id")
            && ids.insert(id, node).is_some()
        {
            return Err(fail("another element has the same id".to_owned()));
        }
    }
    Ok(ids)
}

fn vet_attribute(
    node: Node<'_, '_>,
    attribute: Attribute<'_, '_>,
    known: &[&str],
    initial: &Style,
    colours: &mut Colours,
) -> Result<(), String> {
    let (name, value) = (attribute.name(), attribute.value());
    match attribute.namespace() {
        Some(namespace) if EDITORS.contains(&namespace) => return Ok(()),
        Some(XML) if ["space", "lang"].contains(&name) => return Ok(()),
        Some(XLINK) if name == "href" && known.contains(&"href") => {}
        None => {}
        Some(_) => return Err(format!("its attribute {} is not supported", short(name))),
    }
    match name {
        "id" | "lang" | "style" | "transform" => {}
        "href" if is(node, "use") && value.starts_with('#') => {}
        "href" if is(node, "image") && value.starts_with(PNG_URI) => {}
        "href" if known.contains(&name) => {
            return Err(format!(
                "it refers to \"{}\"; a <use> may refer to #id, an <image> hold {PNG_URI}…, nothing else",
                short(value)
            ));
        }
        name if known.contains(&name) || name.starts_with("data-") => {}
        name => {
            if !initial.clone().set(name, value, colours)? {
                return Err(format!("its attribute {} is not supported", short(name)));
            }
        }
    }
    if name == "style" { styled(initial, node, colours).map(drop) } else { Ok(()) }
}

/// A style with the element's own properties.
pub(crate) fn styled(inherited: &Style, node: Node<'_, '_>, colours: &mut Colours) -> Result<Style, String> {
    let mut style = inherited.clone();
    style.gone = false;
    for attribute in node.attributes().filter(|attribute| attribute.namespace().is_none()) {
        // Names were vetted; a geometry attribute is none of the properties.
        style.set(attribute.name(), attribute.value(), colours)?;
    }
    for property in node.attribute("style").unwrap_or_default().split(';') {
        let property = property.trim();
        if property.is_empty() {
            continue;
        }
        let (name, value) = property.split_once(':').ok_or_else(|| format!("\"{}\" is no style", short(property)))?;
        if !style.set(name.trim(), value, colours)? {
            return Err(format!("the style {} is not supported", short(name)));
        }
    }
    Ok(style)
}

/// An attribute in pixels; 0 if absent.
pub(crate) fn px(node: Node<'_, '_>, name: &str) -> Result<f64, String> {
    node.attribute(name).map_or(Ok(0.0), length)
}

/// The reference of a `use` or an `image`, with or without the old prefix.
pub(crate) fn href<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    node.attribute("href").or_else(|| node.attribute((XLINK, "href")))
}
