//! Where the preload library is: beside this program in a build tree, or in its place in an installed one.

use std::{
    env,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The library's file.
pub const NAME: &str = "libsidestep.so";

/// Its path.
pub fn find() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("cannot tell where this program is: {error}"))?;
    let folder = program.parent().unwrap_or(&program);
    let places = [folder.join(NAME), folder.join("deps").join(NAME), folder.join("../lib/sidestep").join(NAME)];
    // Cargo keeps two in a build tree, and does not always renew both.
    let found = places.iter().filter(|place| place.is_file()).max_by_key(|place| modified(place));
    let found = found.ok_or_else(|| {
        format!(
            "{NAME} is neither beside {} nor in ../lib/sidestep: in the source tree, build it with `cargo build --release \
             --package sidestep-preload` and copy it there, or install everything with `./sidestep install`",
            program.display()
        )
    })?;
    // The dynamic linker takes a blank or a colon for the end of a name.
    let path = found.canonicalize().map_err(|error| format!("{}: {error}", found.display()))?;
    match path.to_str().is_none_or(|path| path.contains([' ', ':'])) {
        true => Err(format!("{}: a path with a blank or a colon cannot be preloaded", path.display())),
        false => Ok(path),
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|status| status.modified()).ok()
}
