//! `reshelf panels`: the panel types known to the drivers, as lines for `reshelf import`.

use std::io::{self, Write as _};

use clap::Args as ClapArgs;
use domain::{DtoType, TenantId};
use picture::{PANELS, Panel};
use serde_json::json;

/// `reshelf panels`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Tenant whose types they become
    #[arg(long)]
    tenant: TenantId,
    /// Only these numbers, as tags report them: two hexadecimal digits, comma-separated
    #[arg(long, value_delimiter = ',', value_parser = number)]
    only: Vec<u8>,
}

fn number(text: &str) -> Result<u8, String> {
    let number = u8::from_str_radix(text, 16).map_err(|error| error.to_string())?;
    Panel::of(number).map(|panel| panel.number).ok_or_else(|| format!("no panel type {number:02X} is known here"))
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for panel in PANELS.iter().filter(|panel| args.only.is_empty() || args.only.contains(&panel.number)) {
        writeln!(out, "{}", line(&args.tenant, panel))?;
    }
    Ok(())
}

/// The type's record. Its rotation is 0: access points turn pictures for their panels themselves.
fn line(tenant: &TenantId, panel: &Panel) -> serde_json::Value {
    json!({
        "dto_type": DtoType::EslType.as_str(),
        "dto_id": format!("t/{tenant}/esltypes/oepl-{:02x}", panel.number),
        "record": {
            "name": panel.name, "width": panel.width, "height": panel.height,
            "palette": panel.inks.palette().name(), "rotation": 0,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record_from_json;

    #[test]
    fn every_panel_type_can_be_imported() {
        let tenant: TenantId = "acme".parse().unwrap();
        for panel in PANELS {
            let read = record_from_json(&line(&tenant, panel).to_string()).unwrap();
            assert_eq!(read.urn.to_string(), format!("t/acme/esltypes/oepl-{:02x}", panel.number));
        }
    }

    #[test]
    fn an_unknown_number_is_refused() {
        assert_eq!(number("33"), Ok(0x33));
        assert!(number("fe").is_err() && number("x").is_err());
    }
}
