//! `reshelf labels`: what there is, and what each label shows.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use domain::{RecordId, StoreId};
use serde_json::Value;

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session,
    output::{at, column, note, number, pairs, time_at},
};

/// `reshelf labels`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Stores of the tenant, with their labels
    Stores(LimitArgs),
    /// ECC models of a store, with their labels
    Models {
        /// The store
        #[arg(long)]
        store: StoreId,
        #[command(flatten)]
        limit: LimitArgs,
    },
    /// Access points of a store, with their labels
    AccessPoints {
        /// The store
        #[arg(long)]
        store: StoreId,
        #[command(flatten)]
        limit: LimitArgs,
    },
    /// Studio designs of the tenant, with their labels
    Designs(LimitArgs),
    /// Labels of a store
    List {
        /// The store
        #[arg(long)]
        store: StoreId,
        #[command(flatten)]
        limit: LimitArgs,
    },
    /// One label: hardware, item, picture, delivery
    Show(LabelArgs),
    /// What happened to one label, newest first: its pictures and deliveries, and why
    History {
        #[command(flatten)]
        label: LabelArgs,
        #[command(flatten)]
        limit: LimitArgs,
    },
    /// The picture that a label shall show, as PNG
    Image {
        #[command(flatten)]
        label: LabelArgs,
        /// File to write, replaced when it is there; `-`: standard output
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

#[derive(Debug, ClapArgs)]
struct LimitArgs {
    /// Print that many at most
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

#[derive(Debug, ClapArgs)]
struct LabelArgs {
    /// The label
    label: RecordId,
    /// Its store
    #[arg(long)]
    store: StoreId,
}

impl LimitArgs {
    fn entries(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    let tenant = format!("/v1/tenants/{}", session.tenant().await?);
    match args.what {
        What::Stores(limit) => stores(&session, &tenant, &limit).await,
        What::Models { store, limit } => models(&session, &format!("{tenant}/stores/{store}/models"), &limit).await,
        What::AccessPoints { store, limit } => {
            access_points(&session, &format!("{tenant}/stores/{store}/access-points"), &limit).await
        }
        What::Designs(limit) => designs(&session, &tenant, &limit).await,
        What::List { store, limit } => labels(&session, &format!("{tenant}/stores/{store}/labels"), &limit).await,
        What::Show(label) => show(&session, &format!("{tenant}/stores/{}/labels/{}", label.store, label.label)).await,
        What::History { label, limit } => {
            let path = format!("{tenant}/stores/{}/labels/{}/history", label.store, label.label);
            history(&session, &path, &limit).await
        }
        What::Image { label, to } => {
            let path = format!("{tenant}/stores/{}/labels/{}/image.png", label.store, label.label);
            image(&session, &path, &to).await
        }
    }
}

async fn stores(session: &Session, tenant: &str, limit: &LimitArgs) -> Result<Exit, CliError> {
    let found = session.client.list(&format!("{tenant}/stores"), &[], "stores", limit.entries()).await?;
    let columns = [column("store", |row| at(row, "/store_id")), number("labels", |row| at(row, "/labels"))];
    session.output.many(&found, &columns, "there are no stores")?;
    Ok(Exit::Success)
}

async fn models(session: &Session, path: &str, limit: &LimitArgs) -> Result<Exit, CliError> {
    let found = session.client.list(path, &[], "models", limit.entries()).await?;
    let columns = [
        column("model", |row| at(row, "/model_id")),
        column("name", |row| at(row, "/name")),
        number("version", |row| at(row, "/version")),
        number("labels", |row| at(row, "/labels")),
        column("updated", |row| time_at(row, "/updated_at")),
    ];
    session.output.many(&found, &columns, "there are no models")?;
    Ok(Exit::Success)
}

async fn access_points(session: &Session, path: &str, limit: &LimitArgs) -> Result<Exit, CliError> {
    let found = session.client.list(path, &[], "access_points", limit.entries()).await?;
    let columns = [
        column("access point", |row| at(row, "/access_point_id")),
        column("driver", |row| at(row, "/driver")),
        number("labels", |row| at(row, "/labels")),
        column("updated", |row| time_at(row, "/updated_at")),
    ];
    session.output.many(&found, &columns, "there are no access points")?;
    Ok(Exit::Success)
}

async fn designs(session: &Session, tenant: &str, limit: &LimitArgs) -> Result<Exit, CliError> {
    let found = session.client.list(&format!("{tenant}/designs"), &[], "designs", limit.entries()).await?;
    let columns = [
        column("design", |row| at(row, "/design_id")),
        column("name", |row| at(row, "/name")),
        number("version", |row| at(row, "/version")),
        number("labels", |row| at(row, "/labels")),
        column("updated", |row| time_at(row, "/updated_at")),
    ];
    session.output.many(&found, &columns, "there are no designs")?;
    Ok(Exit::Success)
}

async fn labels(session: &Session, path: &str, limit: &LimitArgs) -> Result<Exit, CliError> {
    let found = session.client.list(path, &[], "labels", limit.entries()).await?;
    let columns = [
        column("label", |row| at(row, "/label_id")),
        column("item", |row| at(row, "/item_id")),
        column("model", |row| at(row, "/model_id")),
        column("design", |row| at(row, "/design_id")),
        column("shows", |row| at(row, "/source")),
        column("delivery", |row| at(row, "/delivery_state")),
    ];
    session.output.many(&found, &columns, "there are no labels")?;
    Ok(Exit::Success)
}

async fn show(session: &Session, path: &str) -> Result<Exit, CliError> {
    let label = session.client.get_json(path).await?;
    session.output.one(&label, || shown(&label))?;
    Ok(Exit::Success)
}

fn shown(label: &Value) -> String {
    let text = |pointer: &str| at(label, pointer);
    let size = |part: &str| match (text(&format!("/{part}/width")), text(&format!("/{part}/height"))) {
        (width, height) if !width.is_empty() => format!("{width}×{height}"),
        _ => String::new(),
    };
    let mut parts = vec![pairs(&[
        ("label", text("/label_id")),
        ("store", text("/store_id")),
        ("tenant", text("/tenant_id")),
        ("hardware", text("/hardware/hardware_address")),
        ("access point", text("/hardware/access_point_id")),
        (
            "panel",
            format!("{} {} {}", text("/hardware/esl_type_id"), size("panel"), text("/panel/palette")).trim().to_owned(),
        ),
        ("item", text("/item/item_id")),
        ("model", text("/model_id")),
        ("design", text("/design_id")),
        ("shall show", text("/picture/source")),
        ("picture", text("/picture/digest")),
        ("delivery", text("/delivery/state")),
        ("evidence", text("/delivery/evidence")),
        ("confirmed", text("/delivery/confirmed_digest")),
        ("on its way", text("/delivery/sent_digest")),
        ("attempts", text("/delivery/attempts")),
        ("last error", text("/delivery/last_error")),
        ("updated", time_at(label, "/delivery/updated_at")),
        ("by", text("/delivery/tracking_id")),
    ])];
    if let Some(values) = label.pointer("/item/values").and_then(Value::as_object) {
        let values: Vec<(&str, String)> = values.iter().map(|(name, value)| (name.as_str(), at(value, ""))).collect();
        parts.push(pairs(&values));
    }
    parts.join("\n\n")
}

async fn history(session: &Session, path: &str, limit: &LimitArgs) -> Result<Exit, CliError> {
    let found = session.client.list(path, &[], "entries", limit.entries()).await?;
    let columns = [
        column("when", |row| time_at(row, "/at")),
        column("what", |row| at(row, "/event")),
        column("picture", |row| short(row, "/new_digest")),
        column("before", |row| short(row, "/old_digest")),
        column("evidence", |row| at(row, "/evidence")),
        column("why", why),
        column("tracking id", |row| at(row, "/tracking_id")),
    ];
    session.output.many(&found, &columns, "nothing is kept of the label's past")?;
    Ok(Exit::Success)
}

/// The beginning of a digest: enough to tell a label's pictures apart.
fn short(row: &Value, pointer: &str) -> String {
    at(row, pointer).chars().take(12).collect()
}

fn why(row: &Value) -> String {
    if at(row, "/cause") != "OPERATION" {
        return "ordinary change".to_owned();
    }
    if row.get("operation").is_none() {
        return "an operation".to_owned();
    }
    format!("{} by {}: {}", at(row, "/operation/trigger"), at(row, "/operation/operator"), at(row, "/operation/reason"))
}

async fn image(session: &Session, path: &str, to: &std::path::Path) -> Result<Exit, CliError> {
    let picture = session.client.get(path, &[]).await?.body;
    if to.as_os_str() == "-" {
        session.output.raw(&picture)?;
        return Ok(Exit::Success);
    }
    std::fs::write(to, &picture)
        .map_err(|error| CliError::usage("--to", format!("cannot write {}: {error}", to.display())))?;
    if !session.output.quiet {
        note(&format!("{} bytes written to {}", picture.len(), to.display()));
    }
    Ok(Exit::Success)
}
