//! Whether an element is drawn.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::Deserialize;

use super::value::{Key, Values, Words};
use crate::decimal::Decimal;
use crate::error::Cause;

/// One condition; all of an element's must hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    pub(crate) key: Key,
    pub(crate) is: Test,
    /// What is compared with; present exactly for the comparisons.
    pub(crate) value: Option<Words>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Test {
    Present,
    Absent,
    Equals,
    NotEquals,
    Greater,
    Less,
}

impl Test {
    pub(crate) const fn compares(self) -> bool {
        !matches!(self, Self::Present | Self::Absent)
    }
}

/// Whether all conditions hold. An absent or blank value is not present, equals nothing, and is neither greater nor
/// less than anything; so is one compared with an absent value.
pub(crate) fn hold(conditions: &[Condition], values: Values<'_>) -> Result<bool, Cause> {
    for condition in conditions {
        if !holds(condition, values)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(condition: &Condition, values: Values<'_>) -> Result<bool, Cause> {
    let value = condition.key.value(values);
    let other = match condition.value.as_ref().map(|words| words.plain(values)) {
        None | Some(Err(Cause::Missing { .. })) => None,
        Some(other) => Some(other?),
    };
    let equal = value.zip(other.as_deref()).is_some_and(|(value, other)| value.trim() == other.trim());
    Ok(match condition.is {
        Test::Present => value.is_some(),
        Test::Absent => value.is_none(),
        Test::Equals => equal,
        Test::NotEquals => !equal,
        Test::Greater => order(&condition.key, value, other)? == Some(Ordering::Greater),
        Test::Less => order(&condition.key, value, other)? == Some(Ordering::Less),
    })
}

fn order(key: &Key, value: Option<&str>, other: Option<Cow<'_, str>>) -> Result<Option<Ordering>, Cause> {
    let (Some(value), Some(other)) = (value, other) else { return Ok(None) };
    let decimal = |text: &str| {
        Decimal::parse(text.trim()).ok_or_else(|| Cause::Condition { key: key.to_string(), value: text.to_owned() })
    };
    Ok(Some(decimal(value)?.cmp(&decimal(&other)?)))
}
