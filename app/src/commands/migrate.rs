//! `reshelf migrate`.

use clap::Args as ClapArgs;
use db::DatabaseUrl;

use crate::platform::Database;

/// `reshelf migrate`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Which database, e.g. `sqlite://.reshelf/reshelf.db` or `postgres://reshelf@db.example/reshelf`
    #[arg(long)]
    database: DatabaseUrl,
}

pub(super) async fn run(args: &Args) -> anyhow::Result<()> {
    Database::migrate_url(&args.database).await?.close().await?;
    match &args.database {
        DatabaseUrl::Sqlite(path) => println!("{} has this program's schema", path.display()),
        DatabaseUrl::Postgres(url) => println!("{url} has this program's schema"),
    }
    Ok(())
}
