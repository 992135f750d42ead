//! Locks that are no row's. All end with the transaction.
//!
//! The second half of a key is a hash: two that share one wait for each other needlessly, nothing else.

use domain::{StoreId, TenantId};
use sha2::{Digest as _, Sha256};

use super::PostgresUnit;
use crate::StoreError;

/// What is locked; the first half of the key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock<'a> {
    /// Arrivals in a lane of a queue share it; raising its marks takes it alone.
    Arrivals(i64, i64),
    /// Looking whether an operation's lane is idle.
    Settling(i64),
    /// Claiming a parent of a lane of a queue.
    Parents(i64, i64),
    /// Claiming in a store of a queue that is exclusive by store.
    Store(i64, &'a TenantId, &'a StoreId),
}

impl Lock<'_> {
    fn key(self) -> (i32, i32) {
        match self {
            Self::Arrivals(queue, lane) => (0x7265_0001, hash(&[&queue.to_le_bytes(), &lane.to_le_bytes()])),
            Self::Settling(lane) => (0x7265_0002, hash(&[&lane.to_le_bytes()])),
            Self::Parents(queue, lane) => (0x7265_0003, hash(&[&queue.to_le_bytes(), &lane.to_le_bytes()])),
            Self::Store(queue, tenant, store) => (
                0x7265_0004,
                hash(&[&queue.to_le_bytes(), tenant.as_str().as_bytes(), b"/", store.as_str().as_bytes()]),
            ),
        }
    }
}

fn hash(parts: &[&[u8]]) -> i32 {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update(part);
    }
    let digest = sha.finalize();
    digest.iter().take(4).fold(0_i32, |key, byte| (key << 8) | i32::from(*byte))
}

impl PostgresUnit<'_> {
    /// Waits for it.
    pub(super) async fn lock(&mut self, lock: Lock<'_>) -> Result<(), StoreError> {
        let (class, key) = lock.key();
        let statement = match lock {
            Lock::Arrivals(..) => "SELECT pg_advisory_xact_lock_shared($1, $2)",
            Lock::Settling(_) | Lock::Parents(..) | Lock::Store(..) => "SELECT pg_advisory_xact_lock($1, $2)",
        };
        sqlx::query(statement).bind(class).bind(key).execute(&mut *self.conn).await?;
        Ok(())
    }

    /// Takes it alone if nobody has it.
    pub(super) async fn try_lock(&mut self, lock: Lock<'_>) -> Result<bool, StoreError> {
        let (class, key) = lock.key();
        Ok(sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1, $2)")
            .bind(class)
            .bind(key)
            .fetch_one(&mut *self.conn)
            .await?)
    }
}
