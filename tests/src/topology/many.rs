//! Many processes over one PostgreSQL of their own, each killed, stopped and started again as a test likes.

use std::{net::SocketAddr, path::PathBuf, sync::Mutex, time::Duration};

use app::data_dir::DataDir;
use cluster::Cluster;
use domain::OperatorScope;
use gateway::token::{LOCAL_AUDIENCE, LOCAL_ISSUER, mint};
use tempfile::TempDir;

use super::{
    Postgres, START_LIMIT, Topology,
    three::{command, free_ports, written},
};
use crate::{grpc::Doors, process::Program, rest::Rest, tables::Tables, wait::until};

/// Addresses asked for at once; more than any [`Shape`] here needs.
const PORTS: usize = 12;

/// How many of each, and how the workers work.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// `reshelf platform`.
    pub platforms: usize,
    /// `reshelf-gateway`.
    pub gateways: usize,
    /// `reshelf-worker`, each with every service.
    pub workers: usize,
    /// Length of the workers' leases, in milliseconds: what a killed worker held comes back after it.
    pub lease_ms: u32,
}

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `reshelf platform`.
    Platform,
    /// `reshelf-gateway`.
    Gateway,
    /// `reshelf-worker`.
    Worker,
}

impl Role {
    fn program(self) -> &'static str {
        match self {
            Self::Platform => "reshelf",
            Self::Gateway => "reshelf-gateway",
            Self::Worker => "reshelf-worker",
        }
    }

    fn running_sign(self) -> &'static str {
        match self {
            Self::Platform => "listening on",
            Self::Gateway => "listening",
            Self::Worker => "running",
        }
    }
}

#[derive(Debug)]
struct Member {
    role: Role,
    name: String,
    config: PathBuf,
    folder: PathBuf,
    program: Program,
}

impl Member {
    fn start(role: Role, name: String, (folder, config): (&TempDir, &str)) -> Self {
        let (config, folder) = (written(folder.path(), &format!("{name}.toml"), config), folder.path().to_owned());
        let program = Program::start(&name, command(role.program(), &config), &folder);
        Self { role, name, config, folder, program }
    }

    fn start_again(&mut self) {
        self.program = Program::start(&self.name, command(self.role.program(), &self.config), &self.folder);
    }
}

/// The product as many processes.
#[derive(Debug)]
pub struct Many {
    /// Doors to all platform servers in turn, the first gateway, records and pictures.
    pub topology: Topology,
    members: Vec<Member>,
    platforms: Vec<String>,
    gateways: Vec<String>,
}

fn listed(addresses: &[String]) -> String {
    format!("[{}]", addresses.iter().map(|address| format!("{address:?}")).collect::<Vec<_>>().join(", "))
}

fn urls(ports: &mut impl Iterator<Item = SocketAddr>, count: usize) -> Vec<String> {
    ports.take(count).map(|address| format!("http://{address}")).collect()
}

impl Many {
    /// Starts them all, empty, until every worker's queues exist and every gateway is ready.
    pub async fn start(shape: Shape) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::create(&folder.path().join("data")).expect("a data directory");
        data.write_registry().expect("a registry");
        let issuer = data.operator_issuer().expect("the issuer's key");
        let server = Cluster::start().expect("a PostgreSQL");
        let url = server.database("many").expect("a database");
        let mut ports = free_ports::<PORTS>().into_iter();
        let platforms = urls(&mut ports, shape.platforms);
        let gateways = urls(&mut ports, shape.gateways);
        let workers = urls(&mut ports, shape.workers);
        let (registry, keys, labels) = (data.registry(), data.keys(), data.labels());
        let (registry, keys, labels) = (registry.display(), keys.display(), labels.display());

        let mut members = Vec::new();
        for (index, address) in platforms.iter().enumerate() {
            let listen = address.trim_start_matches("http://");
            let config =
                format!("database = \"{url}\"\nlisten = \"{listen}\"\nregistry = \"{registry}\"\nlog = \"json\"\n");
            members.push(Member::start(Role::Platform, format!("platform-{index}"), (&folder, &config)));
        }
        for (index, address) in gateways.iter().enumerate() {
            let (listen, platform, triggers) =
                (address.trim_start_matches("http://"), listed(&platforms), listed(&workers));
            let config = format!(
                "listen = \"{listen}\"\nservice_key = \"{keys}/operator-gateway.key\"\nplatform = {platform}\n\
                 log = \"json\"\n\n[triggers]\necc-image-render-service = {triggers}\nstudio-renderer = {triggers}\n\n\
                 [[issuers]]\nissuer = \"{LOCAL_ISSUER}\"\naudience = \"{LOCAL_AUDIENCE}\"\nalgorithms = [\"EdDSA\"]\n\
                 keys = [{{ ed25519 = \"{key}\" }}]\n",
                key = issuer.public().as_str()
            );
            members.push(Member::start(Role::Gateway, format!("gateway-{index}"), (&folder, &config)));
        }
        for (index, address) in workers.iter().enumerate() {
            let (listen, platform) = (address.trim_start_matches("http://"), listed(&platforms));
            let config = format!(
                "services = [\"ecc-image-render-service\", \"studio-renderer\", \"esl-image-merger\", \
                 \"hardware-exporter\"]\nplatform = {platform}\nlisten = \"{listen}\"\nregistry = \"{registry}\"\n\
                 keys = \"{keys}\"\nlog = \"json\"\n\n[pipelines]\nlease_ms = {lease_ms}\n\n\
                 [exporter]\nfolder = \"{labels}\"\n",
                lease_ms = shape.lease_ms
            );
            members.push(Member::start(Role::Worker, format!("worker-{index}"), (&folder, &config)));
        }
        for member in &mut members {
            let sign = member.role.running_sign();
            let look = |text: &str| text.contains(sign).then_some(());
            member.program.shows(&format!("to say {sign:?}"), START_LIMIT, look).await;
        }
        let topology = Topology {
            doors: Self::doors(&platforms, &workers, &data),
            base: gateways.first().cloned().unwrap_or_default(),
            issuer,
            data,
            programs: Vec::new(),
            command: None,
            served: None,
            ahead_ms: 0,
            postgres: Some(Postgres::Own { server, url }),
            folder,
        };
        let mut many = Self { topology, members, platforms, gateways };
        many.ready(START_LIMIT).await;
        many
    }

    fn doors(platforms: &[String], workers: &[String], data: &DataDir) -> Doors {
        let door = |addresses: &[String]| daemon::channel::connect(addresses).expect("addresses");
        Doors { platform: door(platforms), triggers: door(workers), keys: Doors::keys_in(&data.keys()) }
    }

    /// How many processes there are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Indices of the processes of one role.
    pub fn of(&self, role: Role) -> Vec<usize> {
        (0..self.members.len()).filter(|index| self.members.get(*index).is_some_and(|own| own.role == role)).collect()
    }

    fn member(&mut self, index: usize) -> &mut Member {
        self.members.get_mut(index).expect("a process of that number")
    }

    /// One process.
    pub fn program(&mut self, index: usize) -> &mut Program {
        &mut self.member(index).program
    }

    /// Starts a process that has ended; waits for nothing.
    pub fn start_again(&mut self, index: usize) {
        self.member(index).start_again();
    }

    /// Ends PostgreSQL as a power cut would.
    pub fn stop_postgres(&self) {
        tokio::task::block_in_place(|| self.server().stop_immediately()).expect("PostgreSQL stops");
    }

    /// Starts PostgreSQL again, and waits until it answers.
    pub fn start_postgres(&self) {
        tokio::task::block_in_place(|| self.server().start_again()).expect("PostgreSQL starts");
    }

    fn server(&self) -> &Cluster {
        match &self.topology.postgres {
            Some(Postgres::Own { server, .. }) => server,
            _ => panic!("many processes have a PostgreSQL of their own"),
        }
    }

    /// One gateway as an operator with every scope on these tenants.
    pub fn operator(&self, gateway: usize, tenants: &[&str]) -> Rest {
        let claims = self.topology.claims(tenants, OperatorScope::ALL);
        let token = mint(&self.topology.issuer, &claims).expect("the local issuer signs");
        Rest::new(self.gateways.get(gateway).expect("a gateway of that number"), Some(&token))
    }

    /// What a gateway says of its readiness: the status and `down`; none when it does not answer.
    pub async fn readiness(&self, gateway: usize) -> Option<(u16, String)> {
        let answer = Rest::new(self.gateways.get(gateway)?, None).try_get("/readyz").await?;
        Some((answer.status, answer.text()))
    }

    /// Waits until every gateway is ready. Whatever ended meanwhile is started again, as whoever runs a service does:
    /// a platform server that finds no database does not start.
    pub async fn ready(&mut self, limit: Duration) {
        let members = Mutex::new(&mut self.members);
        let gateways = &self.gateways;
        until("every gateway to be ready", limit, || {
            for member in members.lock().expect("one at a time").iter_mut() {
                if member.program.has_ended() {
                    member.start_again();
                }
            }
            async move {
                for base in gateways {
                    match Rest::new(base, None).try_get("/readyz").await {
                        Some(answer) if answer.status == 200 => {}
                        Some(answer) => return Err(format!("{base}: {}", answer.text())),
                        None => return Err(format!("{base}: no answer")),
                    }
                }
                Ok(())
            }
        })
        .await;
        // Connections of before may be half dead.
        self.topology.doors.platform = daemon::channel::connect(&self.platforms).expect("addresses");
    }

    /// The database, read from outside.
    pub async fn tables(&self) -> Tables {
        self.topology.tables().await
    }

    /// Ends all in order, the platform last; each must end with exit code 0.
    pub async fn stop(mut self) {
        for member in self.members.iter_mut().rev() {
            assert_eq!(member.program.stop(START_LIMIT).await, Some(0), "{} ends in order", member.name);
        }
    }
}
