//! One server for all test processes of a build, a database for each test.

use std::{
    collections::hash_map::DefaultHasher,
    fs::{self, File, OpenOptions},
    hash::{Hash as _, Hasher as _},
    io,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    server::{Place, memory},
    watch::{self, Users},
};

/// An empty database of a test's own. Goes when dropped.
#[derive(Debug)]
pub struct Database {
    name: String,
    place: Place,
    _users: Users,
}

impl Database {
    /// A new database in the server that all tests of this build share; starts it when it is the first one.
    ///
    /// # Errors
    /// Without PostgreSQL's programs, or where they fail.
    pub fn new() -> io::Result<Self> {
        Self::made(Place::create)
    }

    /// A new database with everything that is in this one, to which nobody may be connected meanwhile.
    ///
    /// # Errors
    /// While somebody is.
    pub fn copy(&self) -> io::Result<Self> {
        Self::made(|place, name| place.copy(&self.name, name))
    }

    fn made(make: impl FnOnce(&Place, &str) -> io::Result<()>) -> io::Result<Self> {
        /// Tells apart the databases of one process.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (place, users) = shared()?;
        let name = format!("t{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // Left behind by a killed process of the same number.
        place.forget(&name)?;
        make(&place, &name)?;
        Ok(Self { name, place, _users: users })
    }

    /// The socket of its server, for a proxy between it and the product.
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }

    /// Its name in the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to reach it.
    pub fn url(&self) -> String {
        self.place.url(&self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // At the end of a test there is nobody to tell; it goes with the server at the latest.
        let _ = self.place.forget(&self.name);
    }
}

fn shared() -> io::Result<(Place, Users)> {
    let folder = folder()?;
    let users = loop {
        let users = Users::join(&folder)?;
        // Whoever stopped the server removed the file whose lock was waited for.
        if users.is_current(&folder) {
            break users;
        }
    };
    let starting = lock(&folder)?;
    let ready = folder.join("ready");
    if !ready.exists() {
        if folder.exists() {
            // A start that was killed halfway.
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        let place = Place::make(&folder)?;
        place.start()?;
        watch::stop_when_unused(&place)?;
        fs::write(&ready, "")?;
    }
    drop(starting);
    Ok((Place::at(&folder)?, users))
}

/// One server a build folder, so that two working copies do not stop each other's.
fn folder() -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    std::env::current_exe()?.parent().hash(&mut hasher);
    Ok(memory().join(format!("reshelf-pg-{:08x}", hasher.finish() >> 32)))
}

fn lock(folder: &std::path::Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(folder.with_extension("starting"))?;
    file.lock()?;
    Ok(file)
}
