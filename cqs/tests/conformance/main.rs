//! The one conformance suite: every guarantee, on every twin and through the gRPC client.
//!
//! `each_port!` runs a scenario five times: against the memory twin, the SQLite twin, the PostgreSQL twin, and through a client
//! over the in-process transport in front of each of the latter two.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking; its scenarios are not #[test] functions themselves"
)]

mod audit;
mod audit_chain;
mod coalescing;
mod control;
mod evidence;
mod failures;
mod failures_world;
mod further;
mod handed_over;
mod lanes;
mod leases;
mod ledger;
mod limits;
mod outcomes;
mod overview;
mod retention;
mod retries;
mod self_enqueue;
mod server;
mod splits;
mod twins;
mod world;

/// Runs `async fn scenario(world: World)` on every port.
macro_rules! each_port {
    ($($scenario:ident),+ $(,)?) => {
        $(mod $scenario {
            use crate::world::{Port, World};

            #[tokio::test]
            async fn memory() {
                super::scenario_impl::$scenario(World::new(Port::Memory).await).await;
            }

            #[tokio::test]
            async fn sqlite() {
                super::scenario_impl::$scenario(World::new(Port::Sqlite).await).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::scenario_impl::$scenario(World::new(Port::Postgres).await).await;
            }

            #[tokio::test]
            async fn grpc() {
                super::scenario_impl::$scenario(World::new(Port::Grpc).await).await;
            }

            #[tokio::test]
            async fn grpc_postgres() {
                super::scenario_impl::$scenario(World::new(Port::GrpcPostgres).await).await;
            }
        })+
    };
}
pub(crate) use each_port;
