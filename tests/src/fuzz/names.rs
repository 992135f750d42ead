//! Names of records and of people.

use daemon::tls::SpiffeId;
use domain::{OperatorSubject, Reason, RecordId, TenantId, TrackingId, Urn};

use super::{Target, seeds, text};

pub(super) fn names() -> Target {
    let cases = seeds::cases("names.jsonl");
    let seeds = cases.iter().map(|case| seeds::field(case, "text").as_bytes().to_vec()).collect();
    Target::new(seeds, |bytes| {
        let name = text(bytes);
        if let Ok(urn) = name.parse::<Urn>() {
            assert_eq!(urn.to_string(), name);
        }
        if let Ok(id) = name.parse::<TrackingId>() {
            assert_eq!(id.as_str(), name);
        }
        if let Ok(id) = name.parse::<RecordId>() {
            assert!(!id.as_str().contains('/'), "a record's id is one segment of its name");
        }
        if let Ok(reason) = name.parse::<Reason>() {
            assert!(!reason.as_str().contains(char::is_control), "a reason is one line");
        }
        let _ = (name.parse::<TenantId>(), name.parse::<OperatorSubject>());
        if let Ok(id) = name.parse::<SpiffeId>() {
            assert_eq!(id.to_string(), name);
        }
    })
}
