//! Wake-ups between processes, by `NOTIFY` and `LISTEN`.
//!
//! PostgreSQL takes one lock over the whole database while a transaction with a NOTIFY commits, so no unit of work carries
//! one: whoever rings does so afterwards, in a transaction of its own that holds nothing else and needs no sync. A ring
//! may be lost (with a connection, or behind a pooler that shares connections); then it costs its hearers one poll.

use std::time::Duration;

use sqlx::{PgPool, postgres::PgListener};

use crate::DbError;

/// Pause before listening again after the connection was lost.
const AGAIN: Duration = Duration::from_secs(1);

/// A bell that every process on the database hears, the ringing one too.
#[derive(Debug, Clone)]
pub struct Bell {
    pool: PgPool,
    name: &'static str,
}

impl Bell {
    pub(super) fn new(pool: PgPool, name: &'static str) -> Self {
        Self { pool, name }
    }

    /// Rings with each of these texts (each below 8,000 bytes), in one transaction.
    pub async fn ring(&self, texts: &[String]) -> Result<(), DbError> {
        let (pool, name, texts) = (self.pool.clone(), self.name, texts.to_vec());
        // In a task of its own, like every unit of work.
        let ringing = tokio::spawn(async move {
            let mut transaction = pool.begin().await?;
            // Nothing is written, so there is nothing to wait for.
            sqlx::query("SELECT pg_notify($1, text) FROM unnest($2::text[]) AS texts (text)")
                .bind(name)
                .bind(texts)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await
        });
        Ok(ringing.await.map_err(|_| DbError::Closed)??)
    }

    /// Calls `heard` with each text that is rung, for ever. After the connection was lost it is called with none, because
    /// something may have been missed.
    pub async fn listen(&self, heard: impl Fn(Option<&str>) + Send) {
        loop {
            match self.hear(&heard).await {
                Ok(()) | Err(DbError::Closed) => return,
                Err(error) => tracing::debug!(%error, "not hearing other processes; polls go on"),
            }
            tokio::time::sleep(AGAIN).await;
            heard(None);
        }
    }

    async fn hear(&self, heard: &(impl Fn(Option<&str>) + Send)) -> Result<(), DbError> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(self.name).await?;
        while let Some(rung) = listener.try_recv().await? {
            heard(Some(rung.payload()));
        }
        // The connection was lost.
        Err(DbError::Lost("the listening connection ended".to_owned()))
    }
}
