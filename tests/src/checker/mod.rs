//! The checker: what must hold in the tables at every instant, whatever was killed and however often.
//!
//! It opens the database by itself, knows only the table definitions in `migrations/`, and shares no code with the
//! system. Everything is read in one snapshot, so it may run beside a working product.
//!
//! [`invariants`] are queries that find violations; [`aliases`] derives the alias index anew from the records.

mod aliases;
mod invariants;
#[cfg(test)]
mod tests;

use sqlx::Row as _;

use crate::tables::{Heads, Tables};

impl Tables {
    /// Everything that does not hold, in words; empty when the tables are exact.
    pub async fn check(&mut self) -> Vec<String> {
        sqlx::query("BEGIN").execute(&mut self.0).await.expect("a snapshot");
        let mut wrong = Vec::new();
        for invariant in invariants::ALL {
            if self.1 == Heads::Elsewhere && invariant.violations.contains("cqs_head") {
                continue;
            }
            let found = sqlx::query(invariant.violations)
                .fetch_all(&mut self.0)
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", invariant.name));
            wrong.extend(found.iter().map(|row| {
                let text: String = row.get(0);
                format!("{}: {text}", invariant.name)
            }));
        }
        wrong.extend(aliases::check(self).await);
        sqlx::query("COMMIT").execute(&mut self.0).await.expect("the snapshot ends");
        wrong
    }
}
