//! One command's connection: settings, client, and the tenant it is about.

use domain::TenantId;

use super::{CliError, Client, ConnectionArgs, Exit, Output, Settings, output::at};

/// What a command works with.
#[derive(Debug)]
pub struct Session {
    /// The settled flags.
    pub settings: Settings,
    /// The gateway.
    pub client: Client,
    /// Standard output.
    pub output: Output,
}

impl Session {
    /// Settles the flags. Nothing is sent yet.
    pub fn open(args: &ConnectionArgs) -> Result<Self, CliError> {
        let settings = args.settings()?;
        let client = Client::new(&settings)?;
        let output = settings.output;
        Ok(Self { settings, client, output })
    }

    /// The tenant that was named, or the only one that the token has.
    pub async fn tenant(&self) -> Result<TenantId, CliError> {
        if let Some(tenant) = &self.settings.tenant {
            return Ok(tenant.clone());
        }
        let me = self.client.get_json("/v1/me").await?;
        let tenants: Vec<String> =
            me["tenants"].as_array().into_iter().flatten().map(|tenant| at(tenant, "/tenant_id")).collect();
        match tenants.as_slice() {
            [only] => {
                only.parse().map_err(|_| CliError::new(Exit::Unexpected, "the gateway names a tenant that cannot be"))
            }
            [] => Err(CliError::new(Exit::NotAllowed, "the token may act on no tenant")),
            _ => Err(CliError::usage("--tenant", "is needed: the token has several tenants")
                .advise(format!("name one of {}", tenants.join(", ")))),
        }
    }
}
