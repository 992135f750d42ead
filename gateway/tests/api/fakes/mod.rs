//! CQS, DTOflow and the triggers of the services, as far as the gateway can see them.

mod cqs;
mod dtoflow;
mod triggers;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use domain::Refusal;
use proto::status_from_refusal;
use tokio::sync::Semaphore;
use tonic::{Request, Status};

pub(crate) use cqs::FakeCqs;
pub(crate) use dtoflow::FakeDtoFlow;
pub(crate) use triggers::FakeTriggers;

/// Refuses whom the registry does not let call `rpc`.
fn gate<T>(request: &Request<T>, rpc: &str) -> Result<(), Status> {
    daemon::identity::caller(request)
        .and_then(|caller| caller.require_rpc(rpc))
        .map_err(|refusal| status_from_refusal(&refusal))
}

fn refuse<T>(refusal: &Refusal) -> Result<T, Status> {
    Err(status_from_refusal(refusal))
}

/// How a fake's next calls end instead of as usual.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// With this status, without doing anything.
    Status(tonic::Code),
    /// As the peer's own refusal.
    Refusal(Refusal),
}

impl Fault {
    fn status(&self) -> Status {
        match self {
            Self::Status(code) => Status::new(*code, "fault"),
            Self::Refusal(refusal) => status_from_refusal(refusal),
        }
    }
}

/// Lets a test hold calls inside a fake and let them go.
#[derive(Clone)]
pub(crate) struct Hold {
    entered: Arc<AtomicUsize>,
    release: Arc<Semaphore>,
}

impl Hold {
    /// Holds calls until `let_go`.
    pub(crate) fn closed() -> Self {
        Self { entered: Arc::default(), release: Arc::new(Semaphore::new(0)) }
    }

    async fn pass(&self) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        self.release.acquire().await.unwrap().forget();
    }

    /// Waits until that many calls came in.
    pub(crate) async fn held(&self, calls: usize) {
        while self.entered.load(Ordering::SeqCst) < calls {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn let_go(&self, calls: usize) {
        self.release.add_permits(calls);
    }
}

/// One page of `all`, from the number that the token is.
fn page<T: Clone>(all: &[T], size: i32, token: &str) -> Result<(Vec<T>, String), Status> {
    let from: usize = match token {
        "" => 0,
        text => match text.strip_prefix("at-").and_then(|text| text.parse().ok()) {
            Some(from) => from,
            None => return refuse(&Refusal::field("page_token", "is not one of ours")),
        },
    };
    let to = all.len().min(from + usize::try_from(size).unwrap());
    let next = if to < all.len() { format!("at-{to}") } else { String::new() };
    Ok((all[from.min(to)..to].to_vec(), next))
}
