//! `reshelf trigger`: forces a service to process again.
//!
//! One call for one store or tenant (`one`); with `--stores` one call for each of many (`many`).

mod many;
mod one;
mod touch;

pub(super) use one::send;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use domain::{Reason, RecordId, StoreId, TrackingId, Trigger};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session, duration,
    follow::Wait,
    operation::Until,
    output::{at, column},
    stores::Stores,
};

/// Labels after which a share of failures says something, unless another number is given: below, one bad label is percents.
const SAMPLE_MIN: u32 = 100;

/// `reshelf trigger`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List what can be triggered
    List,
    /// Render every label of an ECC model of a store again
    ModelRefresh {
        #[command(flatten)]
        place: PlaceArgs,
        /// The model
        #[arg(long)]
        model: RecordId,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Render every label of a Studio design again, in all stores of the tenant
    DesignRefresh {
        /// The design
        #[arg(long)]
        design: RecordId,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Render every label of a store that is linked to an ECC model again
    EccStoreRerender {
        #[command(flatten)]
        place: PlaceArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Render every label of a store that is linked to a Studio design again
    StudioStoreRerender {
        #[command(flatten)]
        place: PlaceArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Send the picture of every label of a store again
    StoreReexport {
        #[command(flatten)]
        place: PlaceArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Send the picture of every label of an access point again
    AccessPointReexport {
        /// The store
        #[arg(long)]
        store: StoreId,
        /// The access point
        #[arg(long)]
        access_point: RecordId,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Send the picture of one label again
    LabelReexport {
        /// The store
        #[arg(long)]
        store: StoreId,
        /// The label
        #[arg(long)]
        label: RecordId,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Announce records again without changing them, for one hop
    Touch(touch::TouchArgs),
}

/// Which store, or stores.
#[derive(Debug, ClapArgs)]
struct PlaceArgs {
    /// The store
    #[arg(long, required_unless_present = "stores", conflicts_with = "stores")]
    store: Option<StoreId>,
    /// One call for each of many stores: `all` of the tenant, or a file with one id a line (`-`: standard input). Each
    /// operation is named {tracking id}:{store}; repeating the command goes on where it stopped
    #[arg(long, value_name = "all|FILE", requires = "tracking_id")]
    stores: Option<Stores>,
}

/// What every trigger takes.
#[derive(Debug, ClapArgs)]
struct CommonArgs {
    /// Why; stands in the audit log
    #[arg(long)]
    reason: Reason,
    /// Names the operation, e.g. by its ticket; repeating a request with the same id never does it twice [default: made,
    /// and kept until there is an answer]
    #[arg(long)]
    tracking_id: Option<TrackingId>,
    /// Only count what it would do
    #[arg(long)]
    dry_run: bool,
    /// End with 10 when the dry run found something to do
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    /// When it should be done, RFC 3339 [default: now and the trigger's bulk allowance]
    #[arg(long, value_name = "TIME")]
    sla: Option<String>,
    /// The plan of a dry run: the run is refused when other labels than that counted are concerned
    #[arg(long, value_name = "PLAN_ID")]
    plan: Option<String>,
    /// Labels that may have come or gone since the plan
    #[arg(long, value_name = "LABELS", requires = "plan")]
    max_drift: Option<u32>,
    /// Labels a second that may be begun in each stage
    #[arg(long, value_name = "LABELS")]
    throttle: Option<u32>,
    /// Labels that may be in workers' hands at once in each stage
    #[arg(long, value_name = "LABELS")]
    max_in_flight: Option<u32>,
    /// Stop by itself when more than this share of the labels failed
    #[arg(long, value_name = "PERCENT")]
    stop_when_failed: Option<u32>,
    /// Labels after which that share is looked at first
    #[arg(long, value_name = "LABELS", requires = "stop_when_failed", default_value_t = SAMPLE_MIN)]
    min_sample: u32,
    /// Wait until it is done
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// How far to wait
    #[arg(long, value_enum, default_value_t, requires = "wait")]
    until: Until,
    /// Wait no longer than that, e.g. 30m
    #[arg(long, requires = "wait", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

/// A trigger's request, but for tenant, store and tracking id.
struct Asked {
    path: String,
    fields: Map<String, Value>,
    store: Option<StoreId>,
    common: CommonArgs,
}

impl CommonArgs {
    fn waiting(&self) -> Option<Wait> {
        self.wait.then_some(Wait {
            until: self.until,
            deadline: self.timeout.map(|timeout| Instant::now() + timeout),
            through_holds: false,
        })
    }

    fn end_of_dry_run(&self, labels: i64) -> Exit {
        if self.detailed_exitcode && labels > 0 { Exit::WouldChange } else { Exit::Success }
    }
}

impl Asked {
    fn new(trigger: Trigger, named: Option<(&str, &RecordId)>, store: Option<StoreId>, common: CommonArgs) -> Self {
        let mut fields = Map::new();
        if let Some((name, id)) = named {
            fields.insert(name.to_owned(), json!(id.as_str()));
        }
        fields.insert("reason".to_owned(), json!(common.reason.as_str()));
        fields.insert("dry_run".to_owned(), json!(common.dry_run));
        if let Some(sla) = &common.sla {
            fields.insert("sla_timestamp".to_owned(), json!(sla));
        }
        if let Some(plan) = &common.plan {
            fields.insert("plan_id".to_owned(), json!(plan));
        }
        if let Some(labels) = common.max_drift {
            fields.insert("max_drift".to_owned(), json!(labels));
        }
        let limits = [("throttle_per_s", common.throttle), ("max_in_flight", common.max_in_flight)];
        let limits: Map<String, Value> =
            limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), json!(limit?)))).collect();
        if !limits.is_empty() {
            fields.insert("limits".to_owned(), Value::Object(limits));
        }
        if let Some(percent) = common.stop_when_failed {
            let stop = json!({"failure_ratio_percent": percent, "min_sample": common.min_sample});
            fields.insert("stop_when".to_owned(), stop);
        }
        Self { path: format!("/v1/triggers/{trigger}"), fields, store, common }
    }

    /// The body of one call.
    fn body(&self, tenant: &domain::TenantId, store: Option<&StoreId>) -> Value {
        let mut body = self.fields.clone();
        body.insert("tenant_id".to_owned(), json!(tenant.as_str()));
        if let Some(store) = store {
            body.insert("store_id".to_owned(), json!(store.as_str()));
        }
        Value::Object(body)
    }
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    let (asked, stores) = match args.what {
        What::List => return list(&session).await,
        What::Touch(args) => return touch::run(&session, &args).await,
        What::ModelRefresh { place, model, common } => {
            (Asked::new(Trigger::ModelRefresh, Some(("model_id", &model)), place.store, common), place.stores)
        }
        What::DesignRefresh { design, common } => {
            (Asked::new(Trigger::DesignRefresh, Some(("design_id", &design)), None, common), None)
        }
        What::EccStoreRerender { place, common } => {
            (Asked::new(Trigger::EccStoreRerender, None, place.store, common), place.stores)
        }
        What::StudioStoreRerender { place, common } => {
            (Asked::new(Trigger::StudioStoreRerender, None, place.store, common), place.stores)
        }
        What::StoreReexport { place, common } => {
            (Asked::new(Trigger::StoreReexport, None, place.store, common), place.stores)
        }
        What::AccessPointReexport { store, access_point, common } => {
            let named = Some(("access_point_id", &access_point));
            (Asked::new(Trigger::AccessPointReexport, named, Some(store), common), None)
        }
        What::LabelReexport { store, label, common } => {
            (Asked::new(Trigger::LabelReexport, Some(("label_id", &label)), Some(store), common), None)
        }
    };
    match stores {
        None => one::run(&session, asked).await,
        Some(stores) => many::run(&session, asked, &stores).await,
    }
}

async fn list(session: &Session) -> Result<Exit, CliError> {
    let answer = session.client.get_json("/v1/triggers").await?;
    let triggers = answer["triggers"].as_array().map_or(&[][..], Vec::as_slice);
    let columns = [
        column("trigger", |row| at(row, "/name")),
        column("service", |row| at(row, "/service")),
        column("what it does", |row| at(row, "/description")),
    ];
    session.output.many(triggers, &columns, "there is nothing to trigger")?;
    Ok(Exit::Success)
}
