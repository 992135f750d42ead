//! `reshelf dev` as a child process: what a person starts.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use app::data_dir::DataDir;
use tokio::process::Command;

use super::{START_LIMIT, Topology};
use crate::{
    grpc::Doors,
    process::{Program, program},
    wait::moment,
};

/// How `reshelf dev` is started.
#[derive(Debug, Clone)]
pub struct DevOptions {
    /// Whether the demo tenant is loaded.
    pub demo: bool,
    /// URL of the PostgreSQL database that holds the data; none: a file of the data directory does.
    pub database: Option<String>,
    /// Above how many labels an operation waits for a second operator; none: as it is by default.
    pub approval_above: Option<u32>,
    /// Where the REST API listens.
    pub listen: String,
    /// Whether the first start is killed while the demo tenant is being loaded, and a second one goes on.
    pub first_start_killed: bool,
    /// Whether its labels hang on simulated access points.
    pub simulated_hardware: bool,
}

impl Default for DevOptions {
    fn default() -> Self {
        Self {
            demo: true,
            database: None,
            approval_above: None,
            listen: "127.0.0.1:0".to_owned(),
            first_start_killed: false,
            simulated_hardware: false,
        }
    }
}

/// The command line of `reshelf dev` over a data directory.
pub fn dev_command(data: &Path, options: &DevOptions) -> Command {
    let mut command = Command::new(program("reshelf"));
    // As a person does it: in the folder that holds the data directory.
    command.current_dir(data.parent().expect("a data directory lies in a folder"));
    command.arg("dev").arg("--data-dir").arg(data).arg("--listen").arg(&options.listen);
    if let Some(database) = &options.database {
        command.arg("--database").arg(database);
    }
    if let Some(labels) = options.approval_above {
        command.arg("--approval-above").arg(labels.to_string());
    }
    if !options.demo {
        command.arg("--no-demo");
    }
    if options.simulated_hardware {
        command.args(["--hardware", "sim"]);
    }
    command
}

/// The address after `REST API` in what `dev` prints once everything runs.
fn rest_address(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| line.starts_with("REST API"))?;
    let address = line.split_whitespace().find(|word| word.starts_with("http://"))?;
    Some(address.trim_end_matches("/v1").to_owned())
}

impl Topology {
    /// `reshelf dev` on an empty directory, until it says that it runs.
    pub async fn dev(options: DevOptions) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".reshelf");
        if options.first_start_killed {
            let mut program = Program::start("dev-killed", dev_command(&path, &options), folder.path());
            let loading = |text: &str| text.contains("notifications to go").then_some(());
            program.shows("to report that it loads the demo tenant", START_LIMIT, loading).await;
            program.kill().await;
        }
        let (program, base) = start(&path, folder.path(), &options).await;
        let data = DataDir::open(&path).expect("dev made its data directory");
        let platform = platform_of(&data);
        Self {
            doors: Doors { triggers: platform.clone(), platform, keys: Doors::keys_in(&data.keys()) },
            base,
            issuer: data.operator_issuer().expect("the issuer's key"),
            data,
            programs: vec![program],
            command: Some(options),
            served: None,
            ahead_ms: 0,
            postgres: None,
            folder,
        }
    }

    /// Starts `reshelf dev` again over its data, whatever became of the last one.
    pub async fn restart(&mut self) {
        let options = self.command.clone().expect("only `reshelf dev` is started again");
        for program in &mut self.programs {
            program.kill().await;
        }
        let (program, base) = start(self.data.path(), self.folder.path(), &options).await;
        self.programs = vec![program];
        self.base = base;
        self.doors.platform = platform_of(&self.data);
    }
}

impl Topology {
    /// Starts `reshelf dev` again over its data and kills it after that time, wherever it then is.
    pub async fn restart_cut_short(&mut self, after: Duration) {
        let options = self.command.clone().expect("only `reshelf dev` is started again");
        for program in &mut self.programs {
            program.kill().await;
        }
        let mut program = Program::start("dev-cut-short", dev_command(self.data.path(), &options), self.folder.path());
        moment(after).await;
        program.kill().await;
    }
}

async fn start(data: &Path, logs: &Path, options: &DevOptions) -> (Program, String) {
    // Its own output file for each start: what an earlier one printed must not count.
    let name = (1..1_000).map(|number| format!("dev-{number}")).find(|name| !out_file(logs, name).exists());
    let name = name.expect("a free name");
    let mut program = Program::start(&name, dev_command(data, options), logs);
    let base = program.shows("to say where it answers", START_LIMIT, rest_address).await;
    (program, base)
}

fn out_file(logs: &Path, name: &str) -> PathBuf {
    logs.join(format!("{name}.out"))
}

/// The gRPC door that a running `dev` names in its data directory.
fn platform_of(data: &DataDir) -> proto::Transport {
    let address = fs::read_to_string(data.platform_address()).expect("a running dev names its gRPC address");
    daemon::channel::connect(&[address.trim().to_owned()]).expect("an address")
}

#[cfg(test)]
mod tests {
    use super::rest_address;

    #[test]
    fn the_address_is_found_in_what_dev_prints() {
        let text =
            "reshelf is running.\n\nREST API    http://127.0.0.1:4711/v1\nSwagger UI  http://127.0.0.1:4711/docs\n";
        assert_eq!(rest_address(text).as_deref(), Some("http://127.0.0.1:4711"));
        assert_eq!(rest_address("reshelf is"), None);
    }
}
