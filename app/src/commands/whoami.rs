//! `reshelf whoami`: what the gateway makes of the token.

use clap::Args as ClapArgs;

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session,
    output::{at, pairs, time_at},
};

/// `reshelf whoami`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    let me = session.client.get_json("/v1/me").await?;
    session.output.one(&me, || {
        let scopes: Vec<String> = me["scopes"].as_array().into_iter().flatten().map(|scope| at(scope, "")).collect();
        let tenants = me["tenants"].as_array().into_iter().flatten().map(|tenant| {
            let narrowed = |what: &str, key: &str| {
                let list: Vec<String> = tenant[key].as_array()?.iter().map(|one| at(one, "")).collect();
                Some(format!("{what} {}", list.join(", ")))
            };
            let narrowed: Vec<String> =
                [narrowed("stores", "stores"), narrowed("only", "scopes")].into_iter().flatten().collect();
            let name = at(tenant, "/tenant_id");
            if narrowed.is_empty() { name } else { format!("{name} ({})", narrowed.join("; ")) }
        });
        pairs(&[
            ("subject", at(&me, "/subject")),
            ("gateway", session.settings.url.clone()),
            ("tenants", tenants.collect::<Vec<_>>().join(", ")),
            ("scopes", scopes.join(", ")),
            ("token ends", time_at(&me, "/expires_at")),
        ])
    })?;
    Ok(Exit::Success)
}
