//! Who uses a server, and who stops it when nobody does.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::server::Place;

/// How long a server stays without users, in seconds: longer than the pause between two test processes of one run.
const UNUSED_S: u32 = 20;

/// A share in the server of a folder, given back by the operating system when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Users {
    // Only held: closing the file gives the share back.
    file: File,
}

impl Users {
    /// Waits while the server is being stopped.
    pub(crate) fn join(folder: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(users_file(folder))?;
        file.lock_shared()?;
        Ok(Self { file })
    }

    /// Whether the lock is that of the file that lies there now.
    pub(crate) fn is_current(&self, folder: &Path) -> bool {
        let of = |file: &std::fs::Metadata| (file.dev(), file.ino());
        let ours = self.file.metadata();
        let theirs = std::fs::metadata(users_file(folder));
        matches!((ours, theirs), (Ok(ours), Ok(theirs)) if of(&ours) == of(&theirs))
    }
}

/// Beside the folder, so that it can be held while the folder goes.
fn users_file(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".users");
    PathBuf::from(name)
}

/// Starts the watcher of a server. It is in a session of its own, so whoever ends the tests does not end it.
pub(crate) fn stop_when_unused(place: &Place) -> io::Result<()> {
    let users = users_file(&place.folder);
    let users = users.display();
    // Waits until nobody holds a share, then whether somebody comes back; ends the server with the lock in hand, so that
    // whoever comes then waits, and finds no server.
    let script = format!(
        "exec 9>>'{users}'
         while :; do
             flock -x 9; flock -u 9; sleep {UNUSED_S}
             if flock -n -x 9; then {farewell}; rm -f '{users}'; exit; fi
         done",
        farewell = place.farewell()
    );
    let mut watcher = Command::new("setsid");
    watcher
        .args(["-f", "sh", "-c", &script])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let started = watcher.status()?;
    if started.success() { Ok(()) } else { Err(io::Error::other(format!("setsid ended with {started}"))) }
}
