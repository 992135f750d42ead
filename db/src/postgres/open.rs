//! Opening: self-check, migrations, pools.

use std::{
    str::FromStr as _,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _, Executor as _, PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{Inner, OpenOptions, PostgresDb, SelfCheckError, migrations, self_check::Facts};
use crate::DbError;

/// Prepared statements kept per connection: more than all rooms have together, so none is prepared twice.
const STATEMENTS_CACHED: usize = 512;
/// Connections for units of work: enough that commits share their syncs, few enough for several servers within
/// PostgreSQL's usual hundred.
const WRITERS_MAX: u32 = 16;
/// Connections for reading, apart so that slow lists do not keep work waiting.
const READERS_MAX: u32 = 6;
/// Connections that listen to other processes.
const LISTENERS: u32 = 1;
/// Longest wait for a connection. Below the longest call (60 s), so that the caller learns why.
const CONNECTION_WAIT: Duration = Duration::from_secs(10);
/// Name in `pg_stat_activity`.
const APPLICATION: &str = "reshelf";

/// Why a database did not open. Each text is one line and names what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be understood.
    #[error("the database URL is not understood: {0}")]
    Url(String),
    /// It lets nobody in.
    #[error("cannot connect to the database: {0}: check the URL's database, user and password")]
    Connect(String),
    /// Nobody answers now: it is down, starts or is full. Later it may.
    #[error("the database does not answer: {0}: check that PostgreSQL runs and the URL's host")]
    Away(String),
    /// The self-check failed.
    #[error("refusing to serve: {0}")]
    SelfCheck(#[from] SelfCheckError),
    /// Written by a newer build.
    #[error("the database has schema {found}, this build knows {known}: start the newer build again")]
    NewerSchema {
        /// Schema of the database.
        found: i64,
        /// Newest schema of this build.
        known: i64,
    },
    /// Written by an older build, and migrating was not asked for.
    #[error("the database has the older schema {found}, this build needs {known}: run `reshelf migrate --database …`")]
    OlderSchema {
        /// Schema of the database.
        found: i64,
        /// Newest schema of this build.
        known: i64,
    },
    /// Written by a build whose migrations differ.
    #[error("migration {version} of the database is not this build's: use the build that made it")]
    OtherSchema {
        /// The migration that differs.
        version: i64,
    },
    /// Anything else PostgreSQL says.
    #[error("cannot open the database: {0}")]
    Database(DbError),
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

pub(super) async fn open(options: OpenOptions) -> Result<PostgresDb, OpenError> {
    let connect = PgConnectOptions::from_str(options.url.expose())
        .map_err(|error| OpenError::Url(error.to_string()))?
        .application_name(APPLICATION)
        .statement_cache_capacity(STATEMENTS_CACHED)
        // Of no use without floats in texts, and the one thing at the start of a connection that PgBouncer refuses.
        .extra_float_digits(None)
        // Notices are about statements of ours; what goes wrong comes as an error.
        .log_statements(tracing::log::LevelFilter::Off);
    let mut conn = checked(&connect).await?;
    migrations::migrate(&mut conn, options.schema).await?;
    conn.close().await?;
    let pool = |most: u32| {
        PgPoolOptions::new()
            .max_connections(most)
            .acquire_timeout(CONNECTION_WAIT)
            // A dead connection is met by the unit itself, which then runs again: cheaper than asking each time.
            .test_before_acquire(false)
            .after_connect(|conn, _| {
                Box::pin(async move { conn.execute("SET client_min_messages = error").await.map(|_| ()) })
            })
            .after_release(|conn, _| {
                // Whatever left it in a transaction: the next unit must not land in that. Errors close the connection.
                Box::pin(async move { conn.execute("ROLLBACK").await.map(|_| true) })
            })
            .connect_lazy_with(connect.clone())
    };
    let inner = Inner { writers: pool(WRITERS_MAX), readers: pool(READERS_MAX), begun: AtomicU64::default() };
    Ok(PostgresDb { inner: Arc::new(inner) })
}

/// A connection to a server that passed the self-check.
async fn checked(connect: &PgConnectOptions) -> Result<PgConnection, OpenError> {
    let mut conn = connect.connect().await.map_err(not_connected)?;
    let facts = async {
        let mut other = connect.connect().await.map_err(not_connected)?;
        let facts = Facts::of(&mut conn, &mut other).await.map_err(lost)?;
        other.close().await?;
        Ok::<_, OpenError>(facts)
    };
    // A pooler that has one connection to the server keeps the second one waiting for the first.
    let facts = tokio::time::timeout(CONNECTION_WAIT, facts).await.map_err(|_| {
        let seconds = CONNECTION_WAIT.as_secs();
        let most = WRITERS_MAX + READERS_MAX + LISTENERS;
        OpenError::Away(format!("no second connection within {seconds} s; a pooler needs {most} for each server"))
    })??;
    facts.check()?;
    Ok(conn)
}

/// Why there is no connection: whoever is refused by name will be again.
fn not_connected(error: sqlx::Error) -> OpenError {
    let text = one_line(&error);
    if DbError::from(error).passes_with_time() { OpenError::Away(text) } else { OpenError::Connect(text) }
}

/// A connection that ends while it says what it is, is that of a server that goes down.
fn lost(error: sqlx::Error) -> OpenError {
    let text = one_line(&error);
    match DbError::from(error) {
        gone if gone.passes_with_time() => OpenError::Away(text),
        other => OpenError::Database(other),
    }
}

fn one_line(error: &sqlx::Error) -> String {
    error.to_string().replace('\n', " ")
}
