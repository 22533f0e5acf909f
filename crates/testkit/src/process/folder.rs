//! A registry of its own for a test.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A folder in memory, as the registry has it, for `SIDESTEP_DIR`. Goes away with this.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// One that no other test of this process has by this name.
    pub fn new(name: &str) -> Folder {
        let path = PathBuf::from(format!("/dev/shm/sidestep-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What lies in it.
    pub fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
