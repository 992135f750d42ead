//! A first look at the bytes, in one pass and without allocating: what would make an XML reader work or recurse without
//! bound is refused before one sees it.

use super::error::DesignError;
use super::limits::{ATTRIBUTES_MAX, DEPTH_MAX, NAMESPACES_MAX, TAGS_MAX};

/// Refuses document types, processing instructions, deep nesting, too many tags, too many attributes. Whether the
/// document is well-formed is for the XML reader to say.
pub(crate) fn scan(text: &str) -> Result<(), DesignError> {
    let fail = |why: String| Err(DesignError::Svg(why));
    if text.matches("xmlns").nth(NAMESPACES_MAX).is_some() {
        return fail(format!("it declares more than {NAMESPACES_MAX} namespaces"));
    }
    let (mut depth, mut tags) = (0_usize, 0_usize);
    let mut rest = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if let Some(after) = rest.strip_prefix("<?xml ") {
        rest = past(after, "?>")?;
    }
    while let Some((_, tag)) = rest.split_once('<') {
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = past(comment, "-->")?;
        } else if let Some(data) = tag.strip_prefix("![CDATA[") {
            rest = past(data, "]]>")?;
        } else if tag.starts_with('!') {
            return fail("document types and entities are not allowed".to_owned());
        } else if tag.starts_with('?') {
            return fail("processing instructions are not allowed".to_owned());
        } else if tag.starts_with('/') {
            depth = depth.saturating_sub(1);
            rest = tag;
        } else {
            tags += 1;
            let (attributes, closed, after) = open_tag(tag)?;
            depth += usize::from(!closed);
            rest = after;
            if tags > TAGS_MAX {
                return fail(format!("it has more than {TAGS_MAX} elements"));
            }
            if attributes > ATTRIBUTES_MAX {
                return fail(format!("an element has more than {ATTRIBUTES_MAX} attributes"));
            }
            if depth > DEPTH_MAX {
                return fail(format!("elements are nested more than {DEPTH_MAX} deep"));
            }
        }
    }
    Ok(())
}

fn past<'a>(text: &'a str, end: &str) -> Result<&'a str, DesignError> {
    text.split_once(end).map(|(_, after)| after).ok_or_else(|| DesignError::Svg(format!("\"{end}\" is missing")))
}

/// Attributes, whether the tag closes itself, and what follows it.
fn open_tag(tag: &str) -> Result<(usize, bool, &str), DesignError> {
    let mut attributes = 0;
    let mut quote = None;
    let mut last = 0;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None, b'"' | b'\'') => {
                attributes += 1;
                quote = Some(byte);
            }
            (None, b'>') => return Ok((attributes, last == b'/', tag.get(at + 1..).unwrap_or_default())),
            _ => {}
        }
        last = byte;
    }
    Err(DesignError::Svg("an element is not closed".to_owned()))
}
