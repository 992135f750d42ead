//! Child processes: the built programs, their output and their end.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::process::{Child, Command};

use crate::wait::until;

/// The program `name`, built beside the test executable.
///
/// `cargo nextest run --workspace` (and `cargo test --workspace`) builds it; running this room alone does not. The
/// variable `RESHELF_TEST_PROGRAMS` names another folder to take the programs from, e.g. that of a release build.
pub fn program(name: &str) -> PathBuf {
    let beside = env::var_os("RESHELF_TEST_PROGRAMS").map_or_else(
        || {
            let test = env::current_exe().expect("the test's own path");
            // target/debug/deps/it-… → target/debug
            test.ancestors().nth(2).expect("the test lies in target/…/deps").to_path_buf()
        },
        PathBuf::from,
    );
    let path = beside.join(name);
    assert!(
        path.is_file(),
        "{} is missing: build it with `cargo build --workspace` or run the tests with `--workspace`",
        path.display()
    );
    path
}

/// A running program. Killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts `command`, its output going to `{name}.out` and `{name}.err` in `folder` (added to what stands there).
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Self {
        let open = |suffix: &str| {
            let path = folder.join(format!("{name}.{suffix}"));
            let file = fs::OpenOptions::new().create(true).append(true).open(&path);
            (file.unwrap_or_else(|error| panic!("{}: {error}", path.display())), path)
        };
        let ((out_file, out), (err_file, err)) = (open("out"), open("err"));
        let child = command
            .stdin(Stdio::null())
            .stdout(out_file)
            .stderr(err_file)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), child, out, err }
    }

    /// Standard output so far.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Standard error so far: the log.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// The process id while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until `look` finds something in what it printed or logged; fails at once when the program ended.
    pub async fn shows<T>(&mut self, what: &str, limit: Duration, look: impl Fn(&str) -> Option<T>) -> T {
        let name = self.name.clone();
        let (out, err) = (self.out.clone(), self.err.clone());
        let child = std::sync::Mutex::new(&mut self.child);
        until(&format!("{name}: {what}"), limit, || {
            let ended = child.lock().ok().and_then(|mut child| child.try_wait().ok().flatten());
            let text = [&out, &err].map(|path| fs::read_to_string(path).unwrap_or_default()).join("\n");
            let found = look(&text);
            if found.is_none()
                && let Some(status) = ended
            {
                panic!("{name} ended with {status} before {what}\n{}", tail(&text));
            }
            async move { found.ok_or_else(|| tail(&text)) }
        })
        .await
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().ok().flatten().is_some()
    }

    /// Sends it a signal, e.g. `STOP`.
    pub async fn signal(&self, signal: &str) {
        let id = self.child.id().unwrap_or_else(|| panic!("{} has ended", self.name));
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(id.to_string()).status().await;
        assert!(sent.is_ok_and(|status| status.success()), "{}: SIG{signal}", self.name);
    }

    /// SIGKILL, and waits for the end.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// SIGTERM, and waits for the end; gives the exit code.
    pub async fn stop(&mut self, limit: Duration) -> Option<i32> {
        if let Some(id) = self.child.id() {
            let sent = Command::new("kill").arg("-TERM").arg(id.to_string()).status().await;
            assert!(sent.is_ok_and(|status| status.success()), "{}: SIGTERM", self.name);
        }
        self.ended(limit).await
    }

    /// Waits for its end; gives the exit code.
    pub async fn ended(&mut self, limit: Duration) -> Option<i32> {
        let Ok(status) = tokio::time::timeout(limit, self.child.wait()).await else {
            panic!("{} did not end within {limit:?}\n{}", self.name, tail(&self.log()));
        };
        status.unwrap_or_else(|error| panic!("{}: {error}", self.name)).code()
    }
}

/// The last lines of a text, enough to see why a program did not do what it should.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}
