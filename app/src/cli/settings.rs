//! Which gateway, with which token: flags before environment before configuration file before a data directory here.
//!
//! A token is only ever sent to the address it was configured with: naming another `--url` needs a token of its own.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use domain::TenantId;
use secrecy::SecretString;
use serde::Deserialize;

use super::{CliError, Format, Output, Patience, TokenSource, duration};
use crate::data_dir;

/// Where a configuration file lies unless `--config` says otherwise, below the user's configuration directory.
const CONFIG_FILE: &str = "reshelf/config.toml";
/// Variable that holds a token itself. There is no flag for it: command lines are seen by every account of the machine.
const TOKEN_VARIABLE: &str = "RESHELF_TOKEN";

/// The flags that every command talking to a gateway has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Gateway and output")]
pub struct ConnectionArgs {
    /// Configuration file with contexts [default: reshelf/config.toml in the configuration directory]
    #[arg(long, global = true, value_name = "FILE", env = "RESHELF_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Context of the configuration file
    #[arg(long, global = true, value_name = "NAME", env = "RESHELF_CONTEXT", hide_env_values = true)]
    context: Option<String>,
    /// Address of the gateway, e.g. `https://gateway.example`
    #[arg(long, global = true, env = "RESHELF_URL", hide_env_values = true)]
    url: Option<String>,
    /// File that holds an operator token; `RESHELF_TOKEN` may hold the token itself
    #[arg(long, global = true, value_name = "FILE", env = "RESHELF_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// Tenant, where a command needs one [default: the context's, or the only one of the token]
    #[arg(long, global = true, env = "RESHELF_TENANT", hide_env_values = true)]
    pub tenant: Option<TenantId>,
    /// How answers look
    #[arg(long, short, global = true, value_enum, default_value_t, env = "RESHELF_OUTPUT", hide_env_values = true)]
    output: Format,
    /// Print ids only, and nothing about progress
    #[arg(long, short, global = true)]
    quiet: bool,
    /// How long a request is repeated while the gateway or a service behind it is away
    #[arg(long, global = true, value_parser = duration::parse, default_value = "60s", env = "RESHELF_RETRY_FOR", hide_env_values = true)]
    retry_for: Duration,
    /// Send the token to another machine although the address is not https
    #[arg(long, global = true)]
    insecure: bool,
}

/// The configuration file. Paths in it are relative to the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    /// The context that is used when none is named.
    context: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// One gateway.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    url: String,
    token_file: Option<PathBuf>,
    /// Program and arguments that print a token; no shell is involved.
    token_command: Option<Vec<String>>,
    tenant: Option<String>,
    /// Whether the token may go to another machine without https.
    #[serde(default)]
    insecure: bool,
}

/// What a command works with.
#[derive(Debug)]
pub struct Settings {
    /// Address of the gateway, without a slash at its end.
    pub url: String,
    /// Where the token comes from.
    pub token: TokenSource,
    /// The tenant, when one was named.
    pub tenant: Option<TenantId>,
    /// Standard output.
    pub output: Output,
    /// Where the address comes from, for people.
    pub origin: String,
    /// Whether the token may go to another machine without https.
    pub insecure: bool,
    /// How long a request is repeated.
    pub patience: Patience,
}

/// What the environment says, apart so that tests can say it.
#[derive(Debug, Default)]
struct Surroundings {
    token: Option<String>,
    config_dir: Option<PathBuf>,
    folder: PathBuf,
}

impl Surroundings {
    fn of_process() -> Self {
        let not_empty = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let config_dir = not_empty("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| not_empty("HOME").map(|home| PathBuf::from(home).join(".config")));
        Self {
            token: env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()),
            config_dir,
            folder: PathBuf::new(),
        }
    }
}

/// An address with the token that belongs to it.
struct Known {
    url: String,
    token: Option<TokenSource>,
    tenant: Option<TenantId>,
    origin: String,
    insecure: bool,
}

impl ConnectionArgs {
    /// Standard output as the flags want it.
    pub fn output(&self) -> Output {
        Output { format: self.output, quiet: self.quiet }
    }

    /// Settles which gateway is meant.
    pub fn settings(&self) -> Result<Settings, CliError> {
        self.settings_in(&Surroundings::of_process())
    }

    fn settings_in(&self, around: &Surroundings) -> Result<Settings, CliError> {
        let explicit = match (&around.token, &self.token_file) {
            (_, Some(path)) => Some(TokenSource::File(path.clone())),
            (Some(token), None) => Some(TokenSource::Environment(SecretString::from(token.clone()))),
            (None, None) => None,
        };
        let known = match self.context(around)? {
            Some(known) => Some(known),
            None => left_here(&around.folder),
        };
        let named = self.url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
        let same = known.as_ref().is_some_and(|known| named.as_ref().is_none_or(|url| *url == known.url));
        let (known_token, tenant, origin, insecure) = match known.as_ref().filter(|_| same) {
            Some(known) => (known.token.clone(), known.tenant.clone(), known.origin.clone(), known.insecure),
            None => (None, None, "--url or RESHELF_URL".to_owned(), false),
        };
        let url = named.or_else(|| known.map(|known| known.url)).ok_or_else(|| {
            CliError::usage("--url", "no gateway is named").advise(
                "name one with --url, RESHELF_URL or a context of the configuration file, or go where `reshelf dev` has its .reshelf",
            )
        })?;
        let token = explicit.or(known_token).ok_or_else(|| {
            CliError::usage("--token-file", format!("no token is named for {url}"))
                .advise("name a file with --token-file, or set RESHELF_TOKEN; a context's token only goes to that context's url")
        })?;
        let settings = Settings {
            url,
            token,
            tenant: self.tenant.clone().or(tenant),
            output: self.output(),
            origin,
            insecure: self.insecure || insecure,
            patience: Patience(self.retry_for),
        };
        settings.require_private()?;
        Ok(settings)
    }

    /// The context that is named, or the file's own choice; none when there is no file.
    fn context(&self, around: &Surroundings) -> Result<Option<Known>, CliError> {
        let usual = around.config_dir.as_ref().map(|dir| dir.join(CONFIG_FILE)).filter(|path| path.exists());
        let Some(path) = self.config.clone().or(usual) else {
            return match &self.context {
                None => Ok(None),
                Some(name) => {
                    Err(CliError::usage("--context", format!("there is no configuration file, so no context {name}"))
                        .advise(format!("write ~/.config/{CONFIG_FILE}, or name a file with --config")))
                }
            };
        };
        let file: ConfigFile = daemon::config::read(&path).map_err(|error| {
            let causes: Vec<String> = anyhow::Error::new(error).chain().map(ToString::to_string).collect();
            CliError::usage("--config", causes.join(": ").trim_end())
        })?;
        let Some(name) = self.context.as_ref().or(file.context.as_ref()) else { return Ok(None) };
        let Some(context) = file.contexts.get(name) else {
            let names = file.contexts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(CliError::usage("--context", format!("{} has no context {name}", path.display()))
                .advise(format!("it has: {names}")));
        };
        context.known(name, &path).map(Some)
    }
}

impl Context {
    fn known(&self, name: &str, path: &Path) -> Result<Known, CliError> {
        let key = |key: &str| format!("contexts.{name}.{key}");
        let folder = path.parent().unwrap_or(Path::new(""));
        let token = match (&self.token_file, &self.token_command) {
            (Some(_), Some(_)) => {
                return Err(CliError::usage(key("token_command"), "stands beside token_file; one of them must go"));
            }
            (Some(file), None) => Some(TokenSource::File(folder.join(file))),
            (None, Some(words)) if words.is_empty() => {
                return Err(CliError::usage(key("token_command"), "must name a program"));
            }
            (None, Some(words)) => Some(TokenSource::Command(words.clone())),
            (None, None) => None,
        };
        let tenant = self.tenant.as_ref().map(|tenant| tenant.parse());
        Ok(Known {
            url: self.url.trim_end_matches('/').to_owned(),
            token,
            tenant: tenant.transpose().map_err(|error| CliError::usage(key("tenant"), error))?,
            origin: format!("context {name} of {}", path.display()),
            insecure: self.insecure,
        })
    }
}

/// What a `reshelf dev` that runs, or ran, in this folder left for whoever stands here.
fn left_here(folder: &Path) -> Option<Known> {
    let dir = folder.join(data_dir::USUAL);
    let token = dir.join(data_dir::OPERATOR_TOKEN);
    let url = fs::read_to_string(dir.join(data_dir::GATEWAY_ADDRESS)).ok()?;
    token.exists().then(|| Known {
        url: url.trim().trim_end_matches('/').to_owned(),
        token: Some(TokenSource::File(token)),
        tenant: None,
        origin: format!("the data directory {}", dir.display()),
        insecure: false,
    })
}

impl Settings {
    /// Refuses to send a token in the clear over a network, unless it was said.
    fn require_private(&self) -> Result<(), CliError> {
        let url = reqwest::Url::parse(&self.url)
            .map_err(|error| CliError::usage("--url", format!("{} is no address: {error}", self.url)))?;
        let loopback = match url.host_str() {
            Some("localhost" | "[::1]") => true,
            Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
            None => return Err(CliError::usage("--url", format!("{} names no host", self.url))),
        };
        let plain = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        match url.scheme() {
            _ if plain => Err(CliError::usage("--url", "must hold no user, password or query")),
            "https" => Ok(()),
            "http" if loopback || self.insecure => Ok(()),
            "http" => Err(CliError::usage("--url", format!("{} would carry the token in the clear", self.url))
                .advise("use the https address; or say --insecure, if the network is yours alone")),
            scheme => Err(CliError::usage("--url", format!("{scheme} is neither https nor http"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> ConnectionArgs {
        ConnectionArgs {
            config: None,
            context: None,
            url: None,
            token_file: None,
            tenant: None,
            output: Format::Table,
            quiet: false,
            retry_for: Duration::from_mins(1),
            insecure: false,
        }
    }

    fn with_config(text: &str) -> (tempfile::TempDir, Surroundings) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("reshelf");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
        let around = Surroundings {
            config_dir: Some(folder.path().to_owned()),
            folder: folder.path().to_owned(),
            ..Surroundings::default()
        };
        (folder, around)
    }

    const TWO: &str = r#"
        context = "shop"
        [contexts.shop]
        url = "https://gateway.example/"
        token_file = "shop.token"
        tenant = "acme"
        [contexts.lab]
        url = "http://127.0.0.1:8080"
        token_command = ["print-token"]
    "#;

    #[test]
    fn flags_go_before_the_file_and_a_contexts_token_stays_with_its_address() {
        let (folder, around) = with_config(TWO);
        let settings = args().settings_in(&around).unwrap();
        assert_eq!(settings.url, "https://gateway.example");
        assert_eq!(settings.tenant.unwrap().as_str(), "acme");
        assert!(matches!(settings.token, TokenSource::File(path) if path == folder.path().join("reshelf/shop.token")));

        let lab = ConnectionArgs { context: Some("lab".to_owned()), ..args() };
        assert!(matches!(lab.settings_in(&around).unwrap().token, TokenSource::Command(_)));

        let elsewhere = ConnectionArgs { url: Some("https://other.example".to_owned()), ..args() };
        let error = elsewhere.settings_in(&around).unwrap_err();
        assert_eq!(error.field, "--token-file", "{error}");
        let named = Surroundings { token: Some("t".to_owned()), ..around };
        assert_eq!(elsewhere.settings_in(&named).unwrap().url, "https://other.example");
    }

    #[test]
    fn wrong_files_are_refused_by_name() {
        for (text, word) in [
            ("contxt = \"shop\"", "contxt"),
            ("[contexts.a]\nurl = \"https://a\"\ntoken = \"secret\"", "token"),
            ("context = \"a\"\n[contexts.a]\nurl = \"https://a\"\ntenant = \"no tenant\"", "tenant"),
            ("context = \"b\"\n[contexts.a]\nurl = \"https://a\"", "no context b"),
            (
                "context = \"a\"\n[contexts.a]\nurl = \"https://a\"\ntoken_file = \"t\"\ntoken_command = [\"t\"]",
                "token_command",
            ),
            ("context = \"a\"\n[contexts.a]\nurl = \"https://a\"\ntoken_command = []", "token_command"),
        ] {
            let (_folder, around) = with_config(text);
            let error = args().settings_in(&around).expect_err(text);
            assert!(error.to_string().contains(word), "{text}: {error}");
            assert!(!error.to_string().contains("secret\""), "{error}");
        }
    }

    #[test]
    fn a_token_never_crosses_a_network_in_the_clear_by_accident() {
        let around = Surroundings { token: Some("t".to_owned()), ..Surroundings::default() };
        let to = |url: &str, insecure: bool| {
            ConnectionArgs { url: Some(url.to_owned()), insecure, ..args() }.settings_in(&around)
        };
        for good in
            ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:8080", "https://gateway.example/reshelf/"]
        {
            assert!(to(good, false).is_ok(), "{good}");
        }
        for bad in [
            "http://10.0.0.1",
            "http://127.0.0.1.example",
            "ftp://localhost",
            "gateway",
            "https://u:p@gateway",
            "https://a?b=c",
        ] {
            assert!(to(bad, false).is_err(), "{bad}");
        }
        assert!(to("http://10.0.0.1", true).is_ok());
    }

    #[test]
    fn a_data_directory_here_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let around = Surroundings { folder: folder.path().to_owned(), ..Surroundings::default() };
        assert!(args().settings_in(&around).unwrap_err().to_string().contains("no gateway is named"));
        let dir = folder.path().join(data_dir::USUAL);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("operator.token"), "t").unwrap();
        fs::write(dir.join("gateway.addr"), "http://127.0.0.1:4711\n").unwrap();
        assert_eq!(args().settings_in(&around).unwrap().url, "http://127.0.0.1:4711");
    }
}
