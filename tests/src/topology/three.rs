//! Three processes over loopback gRPC: `reshelf platform`, `reshelf-worker`, `reshelf-gateway`.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use app::data_dir::DataDir;
use cluster::Database;
use gateway::token::{LOCAL_AUDIENCE, LOCAL_ISSUER};
use tokio::process::Command;

use super::{Postgres, START_LIMIT, Topology};
use crate::{
    grpc::Doors,
    process::{Program, program},
    rest::Rest,
    wait::until,
};

/// Loopback ports that nobody has now. Asked for all at once, so that they differ.
pub fn free_ports<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let held = [(); COUNT].map(|()| TcpListener::bind(("127.0.0.1", 0)).expect("a free port"));
    held.map(|listener| listener.local_addr().expect("its address"))
}

pub(super) fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

pub(super) fn command(name: &str, config: &Path) -> Command {
    let mut command = Command::new(program(name));
    if name == "reshelf" {
        command.arg("platform");
    }
    command.arg("--config").arg(config);
    command
}

impl Topology {
    /// The three processes, empty, until the gateway says that it is ready and the worker's queues exist.
    pub async fn three() -> Self {
        Self::three_over(None, "").await
    }

    /// Likewise, the platform's data in PostgreSQL.
    pub async fn three_on_postgres() -> Self {
        Self::three_over(Some(Database::new().expect("a database")), "").await
    }

    /// As [`Self::three`], with further sections in the gateway's configuration.
    pub async fn three_with(sections: &str) -> Self {
        Self::three_over(None, sections).await
    }

    async fn three_over(postgres: Option<Database>, sections: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::create(&folder.path().join("data")).expect("a data directory");
        data.write_registry().expect("a registry");
        let issuer = data.operator_issuer().expect("the issuer's key");
        let [platform, triggers, rest] = free_ports();
        let (registry, keys) = (data.registry(), data.keys());
        let (registry, keys) = (registry.display(), keys.display());

        let database =
            postgres.as_ref().map_or_else(|| format!("sqlite://{}", data.database().display()), Database::url);
        let platform_config =
            format!("database = \"{database}\"\nlisten = \"{platform}\"\nregistry = \"{registry}\"\nlog = \"json\"\n");
        let worker_config = format!(
            "services = [\"ecc-image-render-service\", \"studio-renderer\", \"esl-image-merger\", \"hardware-exporter\"]\n\
             platform = [\"http://{platform}\"]\nlisten = \"{triggers}\"\nregistry = \"{registry}\"\n\
             keys = \"{keys}\"\nlog = \"json\"\n\n[exporter]\nfolder = \"{labels}\"\n",
            labels = data.labels().display()
        );
        let gateway_config = format!(
            "listen = \"{rest}\"\nservice_key = \"{keys}/operator-gateway.key\"\nplatform = [\"http://{platform}\"]\n\
             log = \"json\"\n\n[triggers]\necc-image-render-service = [\"http://{triggers}\"]\n\
             studio-renderer = [\"http://{triggers}\"]\n\n\
             [[issuers]]\nissuer = \"{LOCAL_ISSUER}\"\naudience = \"{LOCAL_AUDIENCE}\"\nalgorithms = [\"EdDSA\"]\n\
             keys = [{{ ed25519 = \"{key}\" }}]\n\n{sections}",
            key = issuer.public().as_str()
        );
        let start = |name: &str, program: &str, config: &str| {
            let path = written(folder.path(), &format!("{name}.toml"), config);
            Program::start(name, command(program, &path), folder.path())
        };
        let mut programs = vec![
            start("platform", "reshelf", &platform_config),
            start("worker", "reshelf-worker", &worker_config),
            start("gateway", "reshelf-gateway", &gateway_config),
        ];
        for (program, sign) in programs.iter_mut().zip(["listening on", "running", "listening"]) {
            program.shows(&format!("to say {sign:?}"), START_LIMIT, |text| text.contains(sign).then_some(())).await;
        }
        let base = format!("http://{rest}");
        ready(&base).await;
        let door = |address: SocketAddr| daemon::channel::connect(&[format!("http://{address}")]).expect("an address");
        Self {
            doors: Doors { platform: door(platform), triggers: door(triggers), keys: Doors::keys_in(&data.keys()) },
            base,
            issuer,
            data,
            programs,
            command: None,
            served: None,
            ahead_ms: 0,
            postgres: postgres.map(Postgres::Shared),
            folder,
        }
    }

    /// SIGKILL to the gateway of the three; the others go on.
    pub async fn kill_gateway(&mut self) {
        self.programs.last_mut().expect("the gateway is the last of the three").kill().await;
    }

    /// Starts it again over its configuration, at its address.
    pub async fn start_gateway(&mut self) {
        let path = self.folder.path().join("gateway.toml");
        let gateway = Program::start("gateway", command("reshelf-gateway", &path), self.folder.path());
        *self.programs.last_mut().expect("the gateway is the last of the three") = gateway;
        ready(&self.base).await;
    }
}

async fn ready(base: &str) {
    let anonymous = Rest::new(base, None);
    until("the gateway to be ready", START_LIMIT, || async {
        match anonymous.try_get("/readyz").await {
            Some(answer) if answer.status == 200 => Ok(()),
            Some(answer) => Err(answer.text()),
            None => Err("no answer".to_owned()),
        }
    })
    .await;
}
