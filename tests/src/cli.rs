//! The program `reshelf` as an operator runs it, and a gateway that answers what a test wants.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinHandle,
};

use crate::{process::program, rest::Rest};

/// An operator with a shell: a gateway, a token, and a home of their own.
#[derive(Debug)]
pub struct Shell {
    home: PathBuf,
    url: String,
    token: String,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// The command line, for failures.
    pub line: String,
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Shell {
    /// The operator that `rest` is, at home in `home`.
    pub fn new(rest: &Rest, home: &Path) -> Self {
        let token = rest.token().unwrap_or("no.token.at-all").to_owned();
        Self { home: home.to_owned(), url: rest.base().to_owned(), token }
    }

    /// The same operator at another gateway.
    pub fn at(url: &str, home: &Path) -> Self {
        Self { home: home.to_owned(), url: url.to_owned(), token: "a.b.c".to_owned() }
    }

    /// Where files of the operator lie.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A command line, ready to be started.
    pub fn command(&self, line: &[&str]) -> Command {
        let token = self.home.join("test.token");
        std::fs::write(&token, &self.token).expect("the token is written");
        let mut command = Command::new(program("reshelf"));
        command.args(line).current_dir(&self.home);
        for name in ["CONFIG", "CONTEXT", "TENANT", "OUTPUT", "TOKEN"] {
            command.env_remove(format!("RESHELF_{name}"));
        }
        command.env("HOME", &self.home).env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command.env("RESHELF_URL", &self.url).env("RESHELF_TOKEN_FILE", &token).env("RESHELF_RETRY_FOR", "2s");
        command.kill_on_drop(true);
        command
    }

    /// Runs a command line to its end. The token shows nowhere.
    pub async fn run(&self, line: &[&str]) -> Ran {
        let output = self.command(line).stdin(std::process::Stdio::null()).output().await.expect("reshelf runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ran = Ran {
            line: line.join(" "),
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(!ran.out.contains(&self.token) && !ran.err.contains(&self.token), "{}: shows the token", ran.line);
        ran
    }
}

impl Ran {
    /// Itself, when it ended with that code.
    #[expect(clippy::return_self_not_must_use, reason = "the code alone is often what is asked for")]
    pub fn ended(self, code: u8) -> Self {
        assert_eq!(self.code, Some(i32::from(code)), "{}\n{}\n{}", self.line, self.out, self.err);
        self
    }

    /// Standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{}: {error} in\n{}", self.line, self.out))
    }

    /// Standard output as one JSON document a line.
    pub fn jsonl(&self) -> Vec<Value> {
        let parse =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.line));
        self.out.lines().map(parse).collect()
    }
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// E.g. `GET`.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Its header lines.
    pub headers: Vec<(String, String)>,
    /// The JSON body; null when there was none.
    pub body: Value,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    }
}

/// What the gateway of a test answers; `None` hangs up.
pub type Script = dyn Fn(&Asked) -> Option<(u16, Vec<(&'static str, String)>, Value)> + Send + Sync;

/// A gateway that answers what it is told to, and remembers what it was asked.
#[derive(Debug)]
pub struct Scripted {
    /// Its address.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: JoinHandle<()>,
}

impl Scripted {
    /// Starts it.
    pub async fn start(
        script: impl Fn(&Asked) -> Option<(u16, Vec<(&'static str, String)>, Value)> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (script, known): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&asked));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&script), Arc::clone(&known)));
            }
        });
        Self { url, asked, serving }
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Answers one request of one connection.
async fn answer(mut stream: TcpStream, script: Arc<Script>, known: Arc<Mutex<Vec<Asked>>>) {
    let mut bytes = Vec::new();
    let asked = loop {
        let mut chunk = [0; 4_096];
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => bytes.extend(chunk.iter().take(count)),
            _ => return,
        }
        if let Some(asked) = request(&bytes) {
            break asked;
        }
    };
    known.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let Some((status, headers, body)) = script(&asked) else { return };
    // A text is sent as it is: a stream of events, say.
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let mut head = format!("HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.extend([name, ": ", &value, "\r\n"]);
    }
    head.push_str("\r\n");
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

/// The request, once all of it is there.
fn request(bytes: &[u8]) -> Option<Asked> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let asked = Asked { method, path, headers, body: serde_json::from_str(body).unwrap_or_default() };
    let length = asked.header("content-length").and_then(|length| length.parse::<usize>().ok());
    (body.len() >= length.unwrap_or_default()).then_some(asked)
}
