//! `reshelf migrate`.

use clap::Args as ClapArgs;
use db::DatabaseUrl;

use crate::platform::Database;

/// `reshelf migrate`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Which database, e.g. `sqlite://.reshelf/reshelf.db`
    #[arg(long)]
    database: DatabaseUrl,
}

pub(super) async fn run(args: &Args) -> anyhow::Result<()> {
    let DatabaseUrl::Sqlite(path) = &args.database else { anyhow::bail!(super::SQLITE_ONLY) };
    Database::migrate(path).await?.close().await?;
    println!("{} has this program's schema", path.display());
    Ok(())
}
